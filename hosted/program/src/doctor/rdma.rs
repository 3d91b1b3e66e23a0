//! RDMA: the library, the devices and their ports, and what is wrong with each.
//!
//! Everything here is read from files, so that it works in a program without the driver and can
//! be tested on a folder that looks like a machine:
//!
//! | asked | read |
//! |---|---|
//! | is libibverbs here? | the library directories |
//! | which devices does the kernel know? | `sys/class/infiniband` |
//! | is a port active, has it an address that peers reach? | `…/ports/N/{state,link_layer,gids}` |
//! | may this user open the device? | `sys/class/infiniband_verbs`, `dev/infiniband` |
//! | could soft-RoCE make a device? | `lib/modules` |
//!
//! No file shows whether the device has remote atomics and whether memory can be registered: a
//! program with the driver opens each device and reports that too.
//!
//! Having none of it is no fault: on one host everything works over shared memory. So nothing
//! here is ever worse than a warning.

use super::{Finding, Severity};
use weft::cluster::{Cluster, Verbs};

mod driver;
mod host;
mod trouble;

use host::RdmaHost;
use trouble::RdmaTrouble;

/// The findings about the host whose files lie below `/`.
pub(super) fn examine(cluster: &Cluster) -> Vec<Finding> {
    let host = RdmaHost::probe("/".as_ref());
    let mut findings = advise(&host);
    if !host.devices.is_empty() {
        findings.extend(driver::examine());
        findings.push(detection(&cluster.verbs));
    }
    findings
}

/// What makes a device of a host that has none; the same that the report says.
pub(super) fn cure_of_no_device() -> String {
    cure(&RdmaHost::probe("/".as_ref()))
}

fn cure(host: &RdmaHost) -> String {
    let found = advise(host).into_iter().find(|finding| finding.verdict > Severity::Good);
    // With everything as it should be a device has come meanwhile.
    found.map_or_else(|| "`rdma link` lists devices".to_owned(), |finding| finding.cure)
}

fn advise(host: &RdmaHost) -> Vec<Finding> {
    let mut findings = vec![library(host), devices(host)];
    if !host.devices.is_empty() {
        findings.extend([ports(host), addresses(host), access(host)]);
    }
    findings
}

fn warn(subject: &'static str, found: impl Into<String>, trouble: &RdmaTrouble) -> Finding {
    Finding::warning(subject, found).because(trouble.to_string()).cured_by(trouble.cure())
}

fn library(host: &RdmaHost) -> Finding {
    const SUBJECT: &str = "rdma library";
    match &host.library {
        Some(path) => Finding::good(SUBJECT, path.display().to_string()),
        None => warn(SUBJECT, "no libibverbs", &RdmaTrouble::NoLibrary),
    }
}

fn devices(host: &RdmaHost) -> Finding {
    const SUBJECT: &str = "rdma devices";
    if host.devices.is_empty() {
        return warn(SUBJECT, "none", &RdmaTrouble::NoDevice { can_make_one: host.has_soft_roce });
    }
    let names: Vec<_> = host.devices.iter().map(|device| device.name.as_str()).collect();
    Finding::good(SUBJECT, names.join(", "))
}

fn ports(host: &RdmaHost) -> Finding {
    const SUBJECT: &str = "rdma ports";
    let ports = || host.devices.iter().flat_map(|device| &device.ports);
    let states: Vec<_> = ports().map(|port| format!("{port} {}", port.state)).collect();
    match ports().find(|port| !port.is_active()) {
        None if states.is_empty() => warn(SUBJECT, "none", &RdmaTrouble::NoPort),
        None => Finding::good(SUBJECT, states.join(", ")),
        Some(port) => {
            warn(SUBJECT, states.join(", "), &RdmaTrouble::PortDown { port: port.to_string() })
        }
    }
}

fn addresses(host: &RdmaHost) -> Finding {
    const SUBJECT: &str = "rdma addresses";
    let ports: Vec<_> = host.devices.iter().flat_map(|device| &device.ports).collect();
    let lacking = ports.iter().find(|port| port.is_active() && port.address().is_none());
    let addresses = ports.iter().filter_map(|port| Some(format!("{port} {}", port.address()?.gid)));
    let addresses: Vec<_> = addresses.collect();
    let found = if addresses.is_empty() { "none".to_owned() } else { addresses.join(", ") };
    match lacking {
        Some(port) => warn(SUBJECT, found, &RdmaTrouble::NoAddress { port: port.to_string() }),
        None if addresses.is_empty() => warn(SUBJECT, found, &RdmaTrouble::NoPort),
        None => Finding::good(SUBJECT, found),
    }
}

/// What the numbers of the cluster file come to.
fn detection(verbs: &Verbs) -> Finding {
    Finding::good("rdma detection", verbs.detection().to_string())
}

fn access(host: &RdmaHost) -> Finding {
    const SUBJECT: &str = "rdma access";
    match host.devices.iter().find(|device| !device.is_open_to_us) {
        None => Finding::good(SUBJECT, "this user may open every device"),
        Some(device) => {
            let trouble = RdmaTrouble::NoAccess { device: device.name.clone() };
            warn(SUBJECT, format!("{} is closed", device.name), &trouble)
        }
    }
}

#[cfg(test)]
mod tests;

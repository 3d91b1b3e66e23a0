//! Findings that need the driver, which opens each device as a node would.

use super::super::Finding;

#[cfg(feature = "verbs")]
pub(super) fn examine() -> Vec<Finding> {
    use weft_driver::{Device, DeviceChoice};

    // Why the driver finds none that the kernel knows, the other findings say.
    let names = Device::names().unwrap_or_default();
    names
        .into_iter()
        .map(|name| of(Device::open(&DeviceChoice { name: Some(name), port: 1 })))
        .collect()
}

#[cfg(feature = "verbs")]
fn of(opened: Result<weft_driver::Device, weft_driver::Error>) -> Finding {
    const SUBJECT: &str = "rdma driver";
    match opened {
        Ok(device) => {
            let limits = device.limits();
            let (name, depth, len) = (device.name(), limits.depth, limits.message_len);
            let found =
                format!("{name} opens, with atomics; {depth} works deep, messages of {len} bytes");
            Finding::good(SUBJECT, found)
        }
        Err(error) => Finding::warning(SUBJECT, "a device cannot be used")
            .because(error.to_string())
            .cured_by(error.cure()),
    }
}

/// A program without the driver reports just that, because it is why no cluster over verbs can
/// start.
#[cfg(not(feature = "verbs"))]
pub(super) fn examine() -> Vec<Finding> {
    let finding = Finding::warning("rdma driver", "not in this program")
        .because("it is unknown whether a device has remote atomics, and no cluster can use RDMA")
        .cured_by("build it with `cargo build --release --features weft/verbs`");
    vec![finding]
}

#[cfg(all(test, feature = "verbs"))]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_device_without_atomics_is_of_no_use_and_says_why() {
        let finding = of(Err(weft_driver::Error::NoAtomics));
        assert_eq!(finding.verdict, Severity::Warning);
        assert!(finding.cause.contains("atomics") && !finding.cure.is_empty(), "{finding:?}");
    }
}

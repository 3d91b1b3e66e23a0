//! RDMA devices: which ones the kernel knows.
//!
//! Only their names. Whether a port is up and memory can be registered is a question for the
//! driver, which this file does not ask. Having none is no fault: on one host
//! everything works over shared memory.

use std::fs;

use super::Finding;

/// The names of all devices, sorted.
pub(super) fn probe() -> Vec<String> {
    // No such directory means that no driver is loaded, and so that there is no device.
    let entries = fs::read_dir("/sys/class/infiniband").into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

pub(super) fn advise(devices: &[String]) -> Finding {
    const SUBJECT: &str = "rdma devices";
    if devices.is_empty() {
        return Finding::warning(SUBJECT, "none")
            .because("nodes on different hosts cannot reach each other's memory")
            .cured_by("nothing is needed on one host: shared memory works without");
    }
    Finding::good(SUBJECT, devices.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn no_device_is_no_obstacle() {
        assert_eq!(advise(&[]).verdict, Verdict::Warning);
        let finding = advise(&["mlx5_0".to_owned(), "rxe0".to_owned()]);
        assert_eq!((finding.verdict, finding.found.as_str()), (Verdict::Good, "mlx5_0, rxe0"));
    }
}

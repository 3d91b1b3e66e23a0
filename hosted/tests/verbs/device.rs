//! Which devices there are to use.

use std::fs;

use weft::explain::Explain;
use weft::node::VerbsPort;

/// The devices of the virtual machine that have cables of their own.
const CABLED: [&str; 4] = ["rxe1", "rxe2", "rxe3", "rxe4"];

/// The devices for `--devices`, if there are any: those with cables of their own, so that packets
/// are real, else those that `WEFT_RDMA_DEVICE` names.
pub(crate) fn devices() -> Option<String> {
    let is_there =
        |name: &&str| fs::exists(format!("/sys/class/infiniband/{name}")).unwrap_or(false);
    if CABLED.iter().all(is_there) {
        return Some(CABLED.join(","));
    }
    let named = std::env::var("WEFT_RDMA_DEVICE").ok();
    match VerbsPort::check_device(named.as_deref()) {
        Ok(()) => Some(named.unwrap_or_else(first)),
        Err(error) => {
            let is_required = std::env::var_os("REQUIRE_RXE").is_some_and(|value| value == "1");
            assert!(!is_required, "{error}; {}", error.cure());
            eprintln!("skipped: {error}; {}", error.cure());
            None
        }
    }
}

fn first() -> String {
    let entries = fs::read_dir("/sys/class/infiniband").expect("a device was just opened");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names.swap_remove(0)
}

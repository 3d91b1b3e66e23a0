//! Which devices there are to use.

use std::fs;
use std::process::Command;

use weft::explain::Explain;
use weft::node::VerbsPort;

/// The devices of the virtual machine that have cables of their own, which stay whole.
const CABLED: [&str; 2] = ["rxe1", "rxe2"];
/// The two that have cables to be hurt.
const HURT: [&str; 2] = ["rxe3", "rxe4"];

fn are_there(names: &[&str]) -> bool {
    let mut names = names.iter();
    names.all(|name| fs::exists(format!("/sys/class/infiniband/{name}")).unwrap_or(false))
}

/// Devices whose cables a test may hurt, one test at a time; only the virtual machine has such.
pub(crate) fn devices_to_hurt() -> Option<String> {
    if are_there(&HURT) {
        return Some(HURT.join(","));
    }
    eprintln!("skipped: no cables to hurt here");
    None
}

/// Takes the cable of the second of them off the bridge, or puts it back.
pub(crate) fn cable(state: &[&str]) {
    let mut command = Command::new("ip");
    let status = command.args(["link", "set", "port4"]).args(state).status();
    assert!(status.expect("ip can be run").success(), "{state:?}");
}

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

//! What the machine may lack: each a typed error with its cure, and nothing left behind.

use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use weft_core::fabric::conformance::layout;
use weft_core::ids::Peer;
use weft_driver::{Config, Device, DeviceChoice, Errno, Error, Heap, Verb, VerbsFabric};

use crate::rig;
use crate::wire::Wires;

/// Lowers, while it is held, what this process may lock, and takes from this thread the right to
/// lock more. The tests beside it keep theirs.
struct Tight {
    limit: Rlimit,
}

impl Tight {
    /// None without that right, when the tests beside this one would feel the limit.
    fn new() -> Option<Self> {
        let mut rights = capabilities(None).expect("a thread may ask for its own");
        if !rights.effective.contains(CapabilitySet::IPC_LOCK) {
            eprintln!("skipped: every test would feel the limit here");
            return None;
        }
        rights.effective.remove(CapabilitySet::IPC_LOCK);
        set_capabilities(None, rights).expect("a right may be given up");
        let limit = getrlimit(Resource::Memlock);
        let lower = Rlimit { current: Some(4096), ..limit };
        setrlimit(Resource::Memlock, lower).expect("a limit may be lowered");
        Some(Self { limit })
    }
}

impl Drop for Tight {
    fn drop(&mut self) {
        // The right is this thread's, which ends with the test.
        let _ = setrlimit(Resource::Memlock, self.limit);
    }
}

#[test]
fn memory_that_may_not_be_locked_is_an_error_that_names_the_limit() {
    let Some(device) = rig::device(Peer(0)) else { return };
    let Some(_tight) = Tight::new() else { return };
    let memory = Arc::new(Heap::new(&layout()));
    let refused = VerbsFabric::new(Peer(0), layout(), device, Config::default(), memory);
    let error = refused.expect_err("more is registered than may be locked");
    assert_eq!(error, Error::Verb(Verb::RegisterMemory, Errno::NOMEM), "{error}");
    assert!(error.cure().contains("ulimit -l"), "{}", error.cure());
}

#[test]
fn a_port_that_is_down_is_an_error_that_says_so() {
    let Some(wires) = Wires::take() else { return };
    let end = wires.end(Peer(2), &layout(), Config::default());
    let name = Some(end.device().name().to_owned());
    let choice = DeviceChoice { name, ..DeviceChoice::default() };
    wires.take_down(&end);
    let error = Device::open(&choice).expect_err("its interface is down");
    assert_eq!(error, Error::PortDown(1), "{error}");
    assert!(error.cure().contains("up"), "{}", error.cure());
    wires.bring_up(&end);
    assert!(Device::open(&choice).is_ok());
}

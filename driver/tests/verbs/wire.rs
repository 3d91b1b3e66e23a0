//! Cables that may be hurt: the devices that `ci/rxe` joins by real packets in its machine.
//!
//! `WEFT_RDMA_WIRED` names the devices, separated by commas; device `rxeN` lies on the network
//! interface `netN`, whose other end is `portN` of a bridge. Where the variable is missing there
//! is nothing that one may hurt, and each test says so and passes.
//!
//! One test at a time has the cables. What it did to them is taken back when it ends.

use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_core::fabric::Layout;
use weft_core::ids::Peer;
use weft_driver::{Config, Device, DeviceChoice, Heap, VerbsFabric};

use crate::rig::End;

static CABLES: Mutex<()> = Mutex::new(());

/// Where packets of one interface are dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hook {
    /// As they come in.
    Input,
    /// Before they go out: the device receives a report that they went.
    Output,
}

/// All cables, unhurt.
pub(crate) struct Wires {
    devices: Vec<String>,
    _only: MutexGuard<'static, ()>,
}

fn run(line: &str) {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    let output = command.args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Wires {
    pub(crate) fn take() -> Option<Self> {
        let Ok(names) = std::env::var("WEFT_RDMA_WIRED") else {
            eprintln!(
                "skipped: there are no cables to hurt; `ci/rxe test` has some in its machine"
            );
            return None;
        };
        let devices = names.split(',').map(ToOwned::to_owned).collect();
        // A test that failed has taken back what it did all the same.
        let only = CABLES.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Self { devices, _only: only })
    }

    /// The endpoint `me` over new memory, on the cable of its own number, counted from 1.
    pub(crate) fn end(&self, me: Peer, layout: &Layout, config: Config) -> End {
        let name = Some(self.devices[me.index()].clone());
        let device = Device::open(&DeviceChoice { name, ..DeviceChoice::default() }).unwrap();
        let memory = Arc::new(Heap::new(layout));
        VerbsFabric::new(me, layout.clone(), device, config, memory).unwrap()
    }

    fn interface(end: &End) -> String {
        end.device().name().replace("rxe", "net")
    }

    /// What all processes together hold of the device of `peer`, in the kernel's own words.
    pub(crate) fn holdings(&self, peer: Peer) -> String {
        let device = &self.devices[peer.index()];
        let output = Command::new("rdma").args(["resource", "show", device]).output().unwrap();
        let counts = String::from_utf8(output.stdout).unwrap();
        assert!(counts.contains(" qp "), "{counts}");
        counts
    }

    /// Lets the kernel's netem do `what` to every packet that leaves `end`.
    pub(crate) fn disturb(&self, end: &End, what: &str) {
        run(&format!("tc qdisc replace dev {} root netem {what}", Self::interface(end)));
    }

    /// Drops every RDMA packet that passes `hook` on the interface of `end`.
    pub(crate) fn cut(&self, end: &End, hook: Hook) {
        let interface = Self::interface(end);
        let (hook, direction) = match hook {
            Hook::Input => ("input", "iifname"),
            Hook::Output => ("output", "oifname"),
        };
        run("nft add table ip weft");
        run(&format!("nft add chain ip weft cut {{ type filter hook {hook} priority 0 ; }}"));
        run(&format!("nft add rule ip weft cut {direction} {interface} udp dport 4791 drop"));
    }

    /// Takes back every cut.
    pub(crate) fn mend(&self) {
        run("nft delete table ip weft");
    }

    /// Takes the interface of `end` down.
    pub(crate) fn take_down(&self, end: &End) {
        run(&format!("ip link set {} down", Self::interface(end)));
    }

    /// Brings the interface of `end` up again, with what the kernel forgot of it.
    pub(crate) fn bring_up(&self, end: &End) {
        run(&mending(&Self::interface(end)));
    }
}

fn mending(interface: &str) -> String {
    let devices = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci/rxe.d/devices");
    format!("{devices} mend {}", interface.trim_start_matches("net"))
}

impl Drop for Wires {
    fn drop(&mut self) {
        let undo = |line: &str| {
            let mut words = line.split_whitespace();
            // What was not done cannot be undone, which is no fault.
            let _ = Command::new(words.next().unwrap()).args(words).output();
        };
        undo("nft delete table ip weft");
        for device in &self.devices {
            let interface = device.replace("rxe", "net");
            undo(&format!("tc qdisc delete dev {interface} root"));
            undo(&mending(&interface));
        }
    }
}

//! Faults by order: what stalls goes on, what is cut off is not reached, what hangs still shows.

use std::time::Instant;

use serde_json::Value;
use weft::process::{Pid, Pidfd, Signal};

use crate::PATIENCE;
use crate::place::{Place, eventually};

#[test]
fn a_component_that_stalls_goes_on_as_the_same() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    place.weft("inject stall 1 --ms 50 --name t").done();
    place.weft_with("put --name t --from 1 --to 0", "late\n").done();
    assert_eq!(place.weft("get --name t --node 0 --count 1").done(), "late\n");
    nodes.assert_unharmed();
}

#[test]
fn a_node_that_is_cut_off_from_another_reaches_the_rest_and_heals() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    let cut = place.weft("inject partition 0 --from 1 --name t --json").object();
    assert_eq!((&cut["from"], &cut["one_way"]), (&vec![1].into(), &false.into()));
    let put = |from, to| {
        let line = format!("put --name t --from {from} --to {to} --timeout 0.1 --json");
        place.weft_with(&line, "a\n")
    };
    put(0, 1).refused(32, "node_unreachable");
    put(1, 0).refused(32, "node_unreachable");
    put(0, 2).object();
    put(2, 1).object();
    // At both ends.
    place.weft("inject heal 0 --name t").done();
    put(0, 1).object();
    put(1, 0).object();
    nodes.await_joined();
}

#[test]
fn a_one_way_partition_leaves_the_other_way() {
    let place = Place::new();
    let (_up, _nodes) = place.up("--nodes 2");
    place.weft("inject partition 0 --one-way --name t").done();
    let put = |from, to| {
        let line = format!("put --name t --from {from} --to {to} --timeout 0.1 --json");
        place.weft_with(&line, "a\n")
    };
    put(0, 1).refused(32, "node_unreachable");
    put(1, 0).object();
}

#[test]
fn a_node_that_is_killed_takes_all_below_it_along() {
    let place = Place::new();
    let task = "name = \"job\"\nprogram = \"sleep\"\nargs = [\"1000\"]\nnodes = [1]\n";
    let file = place.file("t.toml", format!("name = \"t\"\nnodes = 2\n[[task]]\n{task}"));
    let (_up, nodes) = place.up(&file);
    let mut before = None;
    eventually("the task runs", || {
        let status = nodes.client(1).status().expect("a status");
        before = status.tasks[0].pid.zip(status.component_pid);
        before.is_some()
    });
    let (task, component) = before.expect("both run");
    let open = |pid| Pidfd::open(Pid::from_raw(pid).expect("a number")).expect("it runs");
    let below = [open(task), open(component)];
    let reply = place.weft("inject node 1 --wait 0 --name t").done();
    assert_eq!(reply, "node 1: killed, with the component of incarnation 1\n");
    for process in below {
        let ended = process.wait_dead(PATIENCE).expect("a pidfd");
        assert_eq!(ended, weft::process::Liveness::Dead);
    }
}

#[test]
fn a_fault_that_makes_no_sense_is_refused() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 4");
    let senseless = ["stall 1 --ms 0", "stall 1 --ms 3600001", "stall 1 --ms 99999999999"];
    for fault in senseless {
        let line = format!("inject {fault} --name t --json");
        let refused = place.weft(&line).refused(2, "usage");
        assert!(refused.contains("1..=3600000"), "{refused}");
    }
    for fault in ["partition 1 --from 1", "partition 1 --from 0,1", "partition 1 --from 0,,2"] {
        place.weft(&format!("inject {fault} --name t --json")).refused(2, "usage");
    }
    for fault in ["partition 1 --from 0,4", "partition 1 --from 4 --one-way"] {
        place.weft(&format!("inject {fault} --name t --json")).refused(15, "node_out_of_range");
    }
    place.weft_with("put --name t --from 0 --to 1", "no node was cut off\n").done();
    let cut = place.weft("inject partition 1 --from 3,0 --from 3 --name t --json").object();
    assert_eq!(cut["from"], serde_json::json!([0, 3]));
    place.weft("inject heal --name t").done();
    nodes.await_joined();
}

/// The time is counted from the fault, and the evidence says which of the two it was. On a host
/// that is late itself, one may look like the other for once.
#[test]
fn a_hang_and_a_silence_are_told_apart() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 3\n[restart]\nmax = 1000\n");
    let (_up, nodes) = place.up(&file);
    let reply = [(1, "hang", "flag stands still"), (2, "silence", "still hears others")];
    for (node, fault, evidence) in reply {
        eventually("the evidence says which it was", || {
            let line = format!("inject {fault} {node} --wait 60 --name t --json");
            let recovery_us = place.weft(&line).object()["recovery_us"].as_u64().expect("a number");
            let why = place.weft(&format!("status --why {node} --name t --json")).object();
            let noted = why["noted"].as_array().expect("a list");
            let last = |said: &str| {
                let is_it = |it: &&Value| it["text"].as_str().expect("text").contains(said);
                noted.iter().rev().find(is_it).unwrap_or_else(|| panic!("no {said:?}: {why}"))
            };
            let at_us = |said| last(said)["at_ns"].as_u64().expect("a number") / 1_000;
            assert!(recovery_us >= at_us("greeted by all") - at_us("raises the alarm"), "{why}");
            last("raises the alarm")["text"].as_str().expect("text").contains(evidence)
        });
    }
    nodes.await_joined();
}

/// No node notices the hang, so that the command waits until the cluster ends.
#[test]
fn a_command_that_waits_for_a_node_ends_with_its_cluster() {
    let place = Place::new();
    let (up, _nodes) = place.up_calm(2);
    let waits = place.start("inject hang 1 --wait 60 --name t --json", "");
    let fds = format!("/proc/{}/fd", waits.pid());
    let is_socket = |fd: std::io::Result<std::fs::DirEntry>| {
        let target = fd.and_then(|fd| std::fs::read_link(fd.path()));
        target.is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
    };
    let is_connected = || std::fs::read_dir(&fds).is_ok_and(|mut fds| fds.any(is_socket));
    eventually("the command speaks to node 1", is_connected);
    up.signal(Signal::TERM);
    let begin = Instant::now();
    waits.wait().refused(13, "cluster_not_running");
    assert!(begin.elapsed() < PATIENCE / 2, "it waited for its deadline");
}

#[test]
fn a_fault_of_nobody_is_refused() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    for fault in ["hang 2", "stall 2", "node 2", "partition 2", "heal 2", "kill 2"] {
        let line = format!("inject {fault} --name t --json");
        place.weft(&line).refused(15, "node_out_of_range");
    }
    place.weft("inject partition 0 --from 2 --name t --json").refused(15, "node_out_of_range");
    nodes.assert_unharmed();
}

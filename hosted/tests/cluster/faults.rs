//! Faults by order: what stalls goes on, what is cut off is not reached, what hangs still shows.

use weft::process::{Pid, Pidfd};

use crate::PATIENCE;
use crate::place::{Place, eventually};

#[test]
fn a_component_that_stalls_goes_on_as_the_same() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 2");
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
    place.weft("inject heal --name t").done();
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
    place.weft("inject node 1 --wait 0 --name t").done();
    for process in below {
        let ended = process.wait_dead(PATIENCE).expect("a pidfd");
        assert_eq!(ended, weft::process::Liveness::Dead);
    }
}

#[test]
fn a_fault_of_nobody_is_refused() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 2");
    for fault in ["hang 2", "stall 2", "node 2", "partition 2", "heal 2", "kill 2"] {
        let line = format!("inject {fault} --name t --json");
        place.weft(&line).refused(15, "node_out_of_range");
    }
    place.weft("inject partition 0 --from 2 --name t --json").refused(15, "node_out_of_range");
    nodes.assert_unharmed();
}

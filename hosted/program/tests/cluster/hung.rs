//! A supervisor that is stopped while its component goes on.

use weft::clock::Deadline;
use weft::node::chronicle::What;
use weft::process::{Liveness, Pid, Pidfd, Signal};
use weft_core::dirnet::Verdict;

use crate::PATIENCE;
use crate::place::{Nodes, Place, Running, eventually};

/// A cluster that gives a supervisor less time than it would by default.
fn cluster(nodes: u16) -> String {
    format!("name = \"t\"\nnodes = {nodes}\ndirnet.timing.clone_ms = 6000\n")
}

/// Stops the supervisor of a node.
pub(crate) fn stop_supervisor(nodes: &Nodes, rank: u16) -> Pidfd {
    let status = nodes.client(rank).status().expect("a status");
    let pid = Pid::from_raw(status.supervisor_pid).expect("a number");
    let supervisor = Pidfd::open(pid).expect("it lives");
    supervisor.signal(Signal::STOP).expect("a process of this user");
    supervisor
}

/// When node `by` has noted this about `node`, if it has.
fn noted(nodes: &Nodes, by: u16, node: u16, is_it: fn(&What) -> bool) -> Option<u64> {
    let chronicle = nodes.client(by).whole_chronicle(Some(node), 0).expect("a chronicle");
    chronicle.iter().find(|entry| is_it(&entry.what)).map(|entry| entry.at_ns)
}

fn is_down(what: &What) -> bool {
    what.is_verdict(Verdict::NodeDown)
}

fn is_reset(what: &What) -> bool {
    matches!(what, What::ResetOrdered { .. })
}

/// Its component reports it, and the launcher replaces the node.
#[test]
fn a_stopped_supervisor_is_a_node_failure_by_its_own_rule() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", cluster(3)));
    let before = nodes.client(2).status().expect("a status").incarnation;
    let stopped = stop_supervisor(&nodes, 2);
    eventually("node 2 is reset", || noted(&nodes, 0, 2, is_reset).is_some());
    assert_eq!(stopped.wait_dead(PATIENCE).expect("a pidfd"), Liveness::Dead);
    let why = place.weft("status --name t --why 2").done();
    assert!(why.contains("supervisor-hung"), "{why}");
    assert!(why.contains("its supervisor stands still, as its component reports"), "{why}");
    nodes.await_joined();
    assert!(nodes.client(2).status().expect("a status").incarnation > before);
}

/// Another manager follows, and removes it.
#[test]
fn a_manager_whose_supervisor_is_stopped_is_followed() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", cluster(3)));
    let stopped = stop_supervisor(&nodes, 0);
    eventually("node 0 is reset", || noted(&nodes, 1, 0, is_reset).is_some());
    assert_eq!(stopped.wait_dead(PATIENCE).expect("a pidfd"), Liveness::Dead);
    nodes.await_joined();
    let role = |rank| nodes.client(rank).status().expect("a status").dirnet.expect("it runs").role;
    eventually("another is manager", || role(0) == "backup" && role(1) == "manager");
}

/// No node is reset before the supervisors of all members know that it is removed: a supervisor
/// that cannot acknowledge it is removed itself, first.
#[test]
fn no_node_is_reset_behind_the_back_of_a_stopped_supervisor() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", cluster(4)));
    let stopped = stop_supervisor(&nodes, 2);
    nodes.kill(3);
    eventually("node 3 is reset", || noted(&nodes, 0, 3, is_reset).is_some());
    let (reset, down) = (noted(&nodes, 0, 3, is_reset), noted(&nodes, 0, 2, is_down));
    assert!(down.is_some() && down < reset, "{down:?} {reset:?}");
    assert_eq!(stopped.wait_dead(PATIENCE).expect("a pidfd"), Liveness::Dead);
    nodes.await_joined();
}

/// Without a launcher, `weft status` shows the cure, and soon.
#[test]
fn a_stopped_supervisor_that_was_started_by_hand_is_shown_with_its_cure() {
    let place = Place::new();
    let file = place.file("t.toml", cluster(3));
    let node = |rank| place.start(&format!("node {file} --rank {rank}"), "");
    let mut running: Vec<Running> = (0..3).map(node).collect();
    let nodes = place.find();
    nodes.await_joined();
    running[2].signal(Signal::STOP);
    eventually("node 2 is removed", || noted(&nodes, 0, 2, is_down).is_some());
    let shown = place.weft("status --name t").done();
    let pid = running[2].pid();
    let cure = format!("`kill -9 {pid}` ends it and `weft node FILE --rank 2` starts it again");
    assert!(shown.contains(&cure), "{shown}");
    // Ended and started again, it is a member as before; killed, it has no process to ask.
    running[2].signal(Signal::KILL);
    drop(running.remove(2));
    let asked = Deadline::after(PATIENCE / 2);
    place.weft("status --name t --patience 3600").done();
    assert!(!asked.has_passed(), "a node without a process is known to be down at once");
    running.push(node(2));
    nodes.await_joined();
}

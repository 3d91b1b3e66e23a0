//! Broadcasts go on without a node that the cluster has removed, and with it once it returns; or
//! wait for it where they must.

use sha2::{Digest as _, Sha256};
use weft::node::control::NodeState;

use crate::isolation::await_manager;
use crate::place::{Nodes, Place, eventually};

const FOUR: &str = "name = \"t\"\nnodes = 4\n[neb]\nslots = 64\n";

/// More than a window of messages.
fn long() -> Vec<u8> {
    include_bytes!("../../../../core/src/mailbox/owner.rs").repeat(8)
}

/// Node `from` broadcasts more than a window, which each of `to` gets.
fn broadcast(place: &Place, from: u16, to: &[u16]) {
    let (bytes, file) = (long(), place.file("long.bin", long()));
    let digest: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    let origin = format!("--origin {from} --name t --json");
    let line = |node| format!("bcast --neb --receive --node {node} {origin}");
    let listeners: Vec<_> = to.iter().map(|node| place.start(&line(node), "")).collect();
    let sent = place.weft(&format!("bcast --neb {file} --from {from} --name t --json")).object();
    assert_eq!(sent["sha256"], digest);
    for listener in listeners {
        assert_eq!(listener.wait().object()["sha256"], digest);
    }
}

/// Waits until all of `by` go on without exactly those `left`.
fn await_left(nodes: &Nodes, by: &[u16], left: &[u16]) {
    eventually("who takes part in broadcasts is known", || {
        by.iter().all(|rank| {
            let status = nodes.client(*rank).status().expect("a status");
            status.dirnet.is_some_and(|dirnet| dirnet.left_broadcasts == left)
        })
    });
}

/// Waits until all count node 3 again, and has it broadcast and receive as the others do.
fn assert_returned(place: &Place, nodes: &Nodes) {
    nodes.await_joined();
    await_left(nodes, &[0, 1, 2, 3], &[]);
    broadcast(place, 0, &[1, 2, 3]);
    broadcast(place, 3, &[0, 1, 2]);
}

#[test]
fn broadcasts_go_on_without_a_node_that_is_isolated_and_after_it_was_released() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", FOUR));
    await_manager(&nodes);
    place.weft("isolate 3 --name t --wait 60").done();
    await_left(&nodes, &[0, 1, 2], &[3]);
    broadcast(&place, 0, &[1, 2]);
    let shown = place.weft("status --name t").done();
    assert!(shown.contains("node 3 was removed from broadcasts"), "{shown}");

    // The next components of an origin and of a voter learn of it again.
    for rank in [0, 1] {
        nodes.client(rank).kill().expect("it runs");
        eventually("the next one runs", || {
            let status = nodes.client(rank).status().expect("a status");
            status.restarts > 0 && status.state == NodeState::Running
        });
    }
    await_left(&nodes, &[0, 1, 2], &[3]);
    broadcast(&place, 0, &[1, 2]);

    place.weft("release 3 --name t --wait 60").done();
    assert_returned(&place, &nodes);
    // Those that count it do so in their next incarnations too, and it goes on in its own.
    for rank in [0, 3] {
        let restarts = nodes.client(rank).status().expect("a status").restarts;
        nodes.client(rank).kill().expect("it runs");
        eventually("the next one runs", || {
            let status = nodes.client(rank).status().expect("a status");
            status.restarts > restarts && status.state == NodeState::Running
        });
    }
    assert_returned(&place, &nodes);
}

/// Its memory is new, and so is its key.
fn nodes_return_with_new_memory(form: &str) {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", format!("{FOUR}form = \"{form}\"\n")));
    await_manager(&nodes);
    broadcast(&place, 3, &[0, 1, 2]);
    for _ in 0..2 {
        place.weft("inject node 3 --wait 60 --name t").done();
        assert_returned(&place, &nodes);
    }
    // One that stayed for those returns, returns itself.
    place.weft("inject node 0 --wait 60 --name t").done();
    assert_returned(&place, &nodes);
}

#[test]
fn a_node_whose_supervisor_was_killed_broadcasts_and_receives_again() {
    nodes_return_with_new_memory("unsigned");
}

#[test]
fn a_node_that_returns_with_a_new_key_signs_what_it_broadcasts() {
    nodes_return_with_new_memory("signed");
}

#[test]
fn broadcasts_under_way_go_on_when_a_node_is_removed() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", FOUR));
    await_manager(&nodes);
    // Node 3 has no listener: it holds the window up until it is removed.
    let file = place.file("long.bin", long());
    let line = |node| format!("bcast --neb --receive --node {node} --origin 0 --timeout 600");
    let start = |line: String| place.start(&format!("{line} --name t --json"), "");
    let listeners = [1, 2].map(|node| start(line(node)));
    let sender = start(format!("bcast --neb {file} --from 0 --timeout 600"));
    eventually("the window is full", || nodes.origin(1, 0).delivered == 63);
    place.weft("isolate 3 --name t --wait 60").done();
    let sent = sender.wait().object();
    for listener in listeners {
        assert_eq!(listener.wait().object()["sha256"], sent["sha256"]);
    }
    await_left(&nodes, &[0, 1, 2], &[3]);
    place.weft("release 3 --name t --wait 60").done();
    assert_returned(&place, &nodes);
}

#[test]
fn where_membership_is_fixed_a_removed_node_is_waited_for_by_name() {
    let place = Place::new();
    let file = place.file("t.toml", format!("{FOUR}membership = \"fixed\"\n"));
    let (_up, nodes) = place.up(&file);
    await_manager(&nodes);
    place.weft("isolate 3 --name t --wait 60").done();
    let file = place.file("long.bin", long());
    let line = format!("bcast --neb {file} --from 0 --timeout 0.5 --name t --json");
    let refused = place.weft(&line).refused(25, "window_full");
    assert!(refused.contains("node 3 has not taken message 1"), "{refused}");
    assert!(refused.contains("restart the cluster"), "{refused}");
    let shown = place.weft("status --name t").done();
    assert!(!shown.contains("removed from broadcasts"), "{shown}");
}

/// Its supervisor has kept what it promised.
#[test]
fn where_membership_is_fixed_a_node_that_is_released_goes_on() {
    let place = Place::new();
    let file = place.file("t.toml", format!("{FOUR}membership = \"fixed\"\n"));
    let (_up, nodes) = place.up(&file);
    await_manager(&nodes);
    let receive = |rank: u16| place.weft(&format!("bcast --neb --receive --node {rank} --name t"));
    place.weft_with("bcast --neb --from 3 --name t", "before").done();
    place.weft("isolate 3 --name t --wait 60").done();
    place.weft_with("bcast --neb --from 0 --name t", "meanwhile").done();
    place.weft("release 3 --name t --wait 60").done();
    nodes.await_joined();
    place.weft_with("bcast --neb --from 3 --name t", "after").done();
    for rank in [0, 1, 2] {
        let line = format!("bcast --neb --receive --node {rank} --origin 3 --name t");
        assert_eq!([place.weft(&line).done(), place.weft(&line).done()], ["before", "after"]);
    }
    for rank in [1, 2, 3] {
        assert_eq!(receive(rank).done(), "meanwhile");
    }
}

/// It has lost its promises, and others may wait for it: a second message of the same number
/// would be one that others have delivered otherwise.
#[test]
fn where_membership_is_fixed_a_node_that_lost_its_memory_promises_nothing() {
    let place = Place::new();
    let file = place.file("t.toml", format!("{FOUR}membership = \"fixed\"\n"));
    let (_up, nodes) = place.up(&file);
    await_manager(&nodes);
    let (one, other) = (place.file("one", "XX\n"), place.file("other", "YY\n"));
    place.weft(&format!("bcast --neb {one} --from 2 --name t")).done();
    place.weft("inject node 2 --name t --wait 60").done();
    nodes.await_joined();
    place.weft(&format!("bcast --neb {other} --from 2 --name t --json")).refused(17, "standing");
    place.weft("bcast --neb --receive --node 2 --name t --json").refused(17, "standing");
    let shown = place.weft("status --name t").done();
    assert!(shown.contains("node 2 has lost its broadcast memory"), "{shown}");
    let long = place.file("long.bin", long());
    let line = format!("bcast --neb {long} --from 0 --timeout 600 --name t --json");
    let refused = place.weft(&line).refused(25, "window_full");
    assert!(refused.contains("node 2 has not taken message 1"), "{refused}");
    assert!(refused.contains("restart the cluster"), "{refused}");
    for rank in [0, 1, 3] {
        let line = format!("bcast --neb --receive --node {rank} --origin 2 --name t");
        assert_eq!(place.weft(&line).done(), "XX\n");
    }
}

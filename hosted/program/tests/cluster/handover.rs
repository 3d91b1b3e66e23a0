//! The manager hands over by order of an operator: no node and no component restarts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;
use weft::node::control::NodeState;

use crate::PATIENCE;
use crate::isolation::await_manager;
use crate::place::{Nodes, Place, eventually};

/// Incarnation and role of each node, and the epoch that it knows.
fn look(nodes: &Nodes) -> Vec<(u32, String, u32)> {
    let of = |rank| {
        let status = nodes.client(rank).status().expect("a status");
        let standing = status.dirnet.expect("it takes part");
        (status.incarnation, standing.role, standing.epoch)
    };
    nodes.ranks().map(of).collect()
}

/// Sends from node 1 to node 3 until `ends`, and takes what arrives; returns how many did.
fn stream(nodes: &Nodes, ends: &AtomicBool) -> u32 {
    let (mut from, mut to) = (nodes.client(1), nodes.client(3));
    let mut count = 0;
    while !ends.load(Ordering::Relaxed) {
        let bytes = format!("{count}").into_bytes();
        from.put(3, &[&bytes], PATIENCE).expect("the node answers");
        let taken = to.take(1, PATIENCE).expect("the node answers");
        assert_eq!(taken.len(), 1, "message {count} has not arrived");
        assert_eq!(taken[0].payload.0, bytes, "in order, none lost, none twice");
        to.release(vec![taken[0].receipt]).expect("the node answers");
        count += 1;
    }
    count
}

#[test]
fn streams_go_on_while_one_node_after_the_other_is_manager() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(4);
    nodes.await_joined();
    await_manager(&nodes);
    let before = look(&nodes);
    let ends = AtomicBool::new(false);
    let count = thread::scope(|scope| {
        let streams = scope.spawn(|| stream(&nodes, &ends));
        for (to, manager, epoch) in [("2", 2, 2), ("", 3, 3), ("", 0, 4), ("1", 1, 5)] {
            let reply = place.weft(&format!("handover {to} --name t --wait 60 --json")).object();
            assert_eq!((&reply["node"], &reply["epoch"]), (&manager.into(), &epoch.into()));
            assert_eq!(reply["changed"], true);
            let now = look(&nodes);
            let roles: Vec<_> = now.iter().map(|(_, role, _)| role == "manager").collect();
            assert_eq!(roles, [0, 1, 2, 3].map(|rank| rank == manager), "{}", nodes.state());
            assert!(now.iter().all(|(.., known)| *known == epoch), "{}", nodes.state());
        }
        ends.store(true, Ordering::Relaxed);
        streams.join().expect("the stream goes on")
    });
    assert!(count > 0);
    let incarnations = |of: &[(u32, String, u32)]| of.iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(incarnations(&look(&nodes)), incarnations(&before));
    nodes.assert_unharmed();
    let again = place.weft("handover 1 --name t --wait 60").done();
    assert!(again.contains("node 1 is already the manager, in term 5.1"), "{again}");
    let why: Value = place.weft("status --name t --why 2 --json").object();
    assert!(why.to_string().contains("takes over as manager by rule handover"), "{why}");
}

#[test]
fn a_manager_that_is_to_be_isolated_hands_over_first() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    nodes.await_joined();
    await_manager(&nodes);
    let refused = place.weft("isolate 0 --name t --json").refused(17, "standing");
    assert!(refused.contains("`weft handover`"), "{refused}");
    place.weft("handover --name t --wait 60").done();
    place.weft("isolate 0 --name t --wait 60").done();
    eventually("it is quiet", || {
        let status = nodes.client(0).status().expect("a status");
        status.state == NodeState::Isolated
    });
    let refused = place.weft("handover 0 --name t --json").refused(17, "standing");
    assert!(refused.contains("node 0 is isolated"), "{refused}");
    assert!(refused.contains("weft release 0"), "{refused}");
}

#[test]
fn a_handover_that_cannot_be_done_says_why() {
    let place = Place::new();
    let roles = "dirnet.roles = [\"manager\", \"agent\"]";
    let text = format!("name = \"t\"\nnodes = 2\n{roles}\n{}", crate::place::CALM);
    let (up, nodes) = place.up(&place.file("t.toml", text));
    nodes.await_joined();
    await_manager(&nodes);
    place.weft("handover 2 --name t --json").refused(15, "node_out_of_range");
    let agent = place.weft("handover 1 --name t --json").refused(17, "standing");
    assert!(agent.contains("node 1 is an agent"), "{agent}");
    let none = place.weft("handover --name t --json").refused(17, "standing");
    assert!(none.contains("no other node could take over now"), "{none}");
    drop(up);
    let gone = place.weft("handover 1 --name t --patience 0.1 --wait nan --json");
    gone.refused(2, "usage");
}

/// The node's component stands still: it obeys once it goes on, or its clone does.
#[test]
fn a_node_that_stands_still_is_waited_for() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    nodes.await_joined();
    await_manager(&nodes);
    place.weft("inject stall 2 --ms 160 --name t").done();
    let reply = place.weft("handover 2 --name t --wait 60 --json").object();
    assert_eq!((&reply["node"], &reply["changed"]), (&2.into(), &true.into()));
    await_manager(&nodes);
}

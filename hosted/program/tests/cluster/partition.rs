//! Injected faults are noted at the nodes that they affect. Partitions: a cut is detected, does not
//! harm the majority, and is healed by one order.

use weft::node::control::{DirNetStatus, NodeState, NodeStatus, PeerStatus};

use crate::isolation::await_manager;
use crate::place::{Nodes, Place, eventually};

fn look(nodes: &Nodes, rank: u16) -> NodeStatus {
    nodes.client(rank).status().expect("a status")
}

/// Whether these nodes agree on a manager and have removed no node.
fn are_whole(nodes: &Nodes, ranks: std::ops::Range<u16>) -> bool {
    let standings: Option<Vec<_>> = ranks.map(|rank| look(nodes, rank).dirnet).collect();
    standings.is_some_and(|all| {
        let managers = all.iter().filter(|standing| standing.role == "manager").count();
        let is_well = |it: &DirNetStatus| {
            (it.epoch, it.manager) == (all[0].epoch, all[0].manager)
                && it.is_member()
                && it.removed.is_empty()
                && it.suspects.is_empty()
        };
        managers == 1 && all.iter().all(is_well)
    })
}

/// G-11: all others are silent to the manager, and it has no node to ask.
#[test]
fn a_manager_that_is_cut_off_resets_nobody_and_one_order_brings_it_back() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 4");
    await_manager(&nodes);
    let before: Vec<_> = (1..4).map(|rank| look(&nodes, rank).supervisor_pid).collect();
    place.weft("inject partition 0 --name t").done();
    // Which of them follows it depends on which peers each had met by then.
    eventually("the others remove it and go on", || {
        let standings: Option<Vec<_>> = (1..4).map(|rank| look(&nodes, rank).dirnet).collect();
        standings.is_some_and(|all| {
            let follow = |it: &DirNetStatus| it.removed == [0] && it.manager == all[0].manager;
            all[0].manager != 0 && all.iter().all(follow)
        })
    });
    let shown = place.weft("status --name t").done();
    for rank in 1..4 {
        let line = format!("node {rank} does not reach node 0, by order; `weft inject heal`");
        assert!(shown.contains(&line), "{shown}");
    }
    assert_eq!(look(&nodes, 2).cut, [0]);
    eventually("its next incarnation is known, and does not answer", || {
        let is_it = |peer: &PeerStatus| peer.rank == 0 && peer.incarnation.is_some();
        look(&nodes, 1).peers.iter().any(|peer| is_it(peer) && !peer.joined)
    });
    assert_eq!(look(&nodes, 1).state, NodeState::Running);
    let why = place.weft("status --name t --why 0").done();
    for said in ["by order: node 3 does not reach it", "node down by rule silence", "fenced, boot"]
    {
        assert!(why.contains(said), "{why}");
    }

    place.weft("inject heal --name t").done();
    eventually("all nodes are back", || are_whole(&nodes, 0..4));
    nodes.await_joined();
    for rank in 1..4 {
        let why = place.weft(&format!("status --name t --why {rank}")).done();
        assert!(!why.contains("node down"), "{why}");
    }
    let after: Vec<_> = (1..4).map(|rank| look(&nodes, rank).supervisor_pid).collect();
    assert_eq!(after, before);
    let why = place.weft("status --name t --why 0").done();
    assert!(why.contains("admitted by rule joined"), "{why}");
}

/// G-11: two nodes that are cut off with the manager replace no memory of the other five.
#[test]
fn two_of_seven_nodes_keep_no_acknowledged_message_from_the_majority() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 7");
    await_manager(&nodes);
    // Who was no member yet is not removed: it was never heard.
    eventually("all are members", || {
        let views: Option<Vec<_>> = (0..7).map(|rank| look(&nodes, rank).dirnet).collect();
        views.is_some_and(|all| all.iter().all(|it| it.view.members.len() == 7))
    });
    let kept = "acknowledged\nbefore the cut\n";
    place.weft_with("put --name t --from 2 --to 3", kept).done();
    let before: Vec<_> = (2..7).map(|rank| look(&nodes, rank).supervisor_pid).collect();
    for node in [0, 1] {
        place.weft(&format!("inject partition {node} --from 2,3,4,5,6 --name t")).done();
    }
    eventually("the five remove the two and go on", || {
        let standings: Option<Vec<_>> = (2..7).map(|rank| look(&nodes, rank).dirnet).collect();
        standings.is_some_and(|all| all.iter().all(|it| it.removed == [0, 1] && it.manager > 1))
    });
    place.weft("inject heal --name t").done();
    eventually("all nodes are back", || are_whole(&nodes, 0..7));
    assert_eq!(place.weft("get --name t --node 3 --count 2").done(), kept);
    let after: Vec<_> = (2..7).map(|rank| look(&nodes, rank).supervisor_pid).collect();
    assert_eq!(after, before);
}

/// One node has no component to heal; the others are healed all the same.
#[test]
fn a_cut_is_made_and_mended_where_no_component_runs() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 3\nrestart.max = 0\n");
    let (_up, nodes) = place.up(&file);
    await_manager(&nodes);
    place.weft("inject kill 1 --wait 0 --name t").done();
    eventually("it has given up", || look(&nodes, 1).state == NodeState::GivenUp);
    place.weft("inject partition 1 --from 2 --name t").done();
    assert_eq!((look(&nodes, 1).cut, look(&nodes, 2).cut), (vec![2], vec![1]));
    let why = place.weft("status --name t --why 1").done();
    assert!(why.contains("by order: does not reach node 2"), "{why}");
    place.weft("inject heal --name t").done();
    assert!((0..3).all(|rank| look(&nodes, rank).cut.is_empty()));
}

/// G-32: the original's INJECT named no node, and its macros dropped their arguments.
#[test]
fn g32_a_fault_strikes_the_node_it_names_with_what_it_was_given() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    await_manager(&nodes);
    let faults = [
        ("stall 1 --ms 50", "stalls for 50 ms"),
        ("partition 1 --from 2 --one-way", "does not reach node 2"),
        // It waits for no peer behind the cut link.
        ("kill 1 --wait 60", "killed"),
        ("heal 1", "healed"),
        ("silence 1 --wait 60", "its timers stop"),
        ("hang 1 --wait 60", "hangs"),
    ];
    for (fault, _) in faults {
        place.weft(&format!("inject {fault} --name t")).done();
    }
    let why = |node: u16| place.weft(&format!("status --name t --why {node}")).done();
    let reply = why(1);
    for (_, words) in faults {
        assert!(reply.contains(&format!("by order: {words}")), "{words}: {reply}");
    }
    assert!(!why(0).contains("by order"), "{}", why(0));
    assert_eq!(why(2).matches("by order").count(), 1, "{}", why(2));
    assert!(why(2).contains("by order: node 1 does not reach it"), "{}", why(2));
}

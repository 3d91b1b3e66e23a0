//! No command waits after a decision: with deadlines beyond the patience of these tests, each end
//! comes because of what the nodes know.

use std::collections::BTreeSet;

use crate::broadcast::{FILE, fill_window};
use crate::isolation::await_manager;
use crate::place::{Nodes, Place, Running, eventually};

/// An input without end.
const ENDLESS: &str = "/dev/zero";

/// Starts to broadcast something without end.
fn send(place: &Place, from: u16) -> Running {
    let line = format!("bcast --neb {ENDLESS} --from {from} --timeout 600 --name t --json");
    place.start(&line, "")
}

/// Starts a receive at `node`.
fn receive(place: &Place, node: u16, rest: &str) -> Running {
    let line = format!("bcast --neb --receive --node {node} --timeout 600 --name t --json");
    place.start(&format!("{line} {rest}"), "")
}

/// Waits until `node` is in the middle of a broadcast of `origin`.
fn await_midst(nodes: &Nodes, node: u16, origin: u16) {
    eventually("it is in the middle of a file", || nodes.origin(node, origin).delivered > 300);
}

#[test]
fn a_lie_in_the_midst_of_a_file_ends_it_for_everybody() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(4);
    let sender = send(&place, 1);
    let receivers = [(0, ""), (2, "--origin 1"), (3, "--origin 1")];
    let receivers = receivers.map(|(node, rest)| (node, receive(&place, node, rest)));
    let honest = receive(&place, 1, "");
    await_midst(&nodes, 3, 1);
    let lie = place.weft("inject equivocate 1 --wait 60 --name t --json").object();
    assert_eq!((&lie["original"], &lie["altered"]), (&vec![0, 3].into(), &vec![2].into()));

    let refused = sender.wait().refused(34, "conflict");
    assert!(refused.contains("saw a conflict about node 1"), "{refused}");
    let mut disputing = BTreeSet::new();
    for (node, receiver) in receivers {
        let said = receiver.wait();
        if nodes.origin(node, 1).conflicts > 0 {
            disputing.insert(node);
            let refused = said.refused(34, "conflict");
            assert!(refused.starts_with("node 1 or node"), "{refused}");
        } else {
            // Whatever comes first: the word that the sender gave up, or that it has to.
            let refused = match said.status {
                Some(37) => said.refused(37, "abandoned"),
                _ => said.refused(34, "conflict"),
            };
            assert!(refused.contains("saw a conflict about"), "{refused}");
        }
    }
    assert!(!disputing.is_empty(), "{}", nodes.state());

    // The next component reports the conflict at once, too.
    for node in disputing {
        nodes.client(node).kill().expect("it runs");
        let refused = receive(&place, node, "--origin 1").wait().refused(34, "conflict");
        assert!(refused.starts_with("node 1 or node"), "{refused}");
    }
    // A receiver of all origins gets the messages of correct nodes.
    place.weft_with("bcast --neb --from 0 --name t", "honest").done();
    assert_eq!(honest.wait().object()["bytes"], 6);
}

#[test]
fn a_sender_that_was_removed_ends_those_who_receive() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 4");
    await_manager(&nodes);
    let sender = send(&place, 3);
    let receivers = [(0, ""), (1, "--origin 3"), (2, "--origin 3")];
    let receivers = receivers.map(|(node, rest)| receive(&place, node, rest));
    await_midst(&nodes, 2, 3);
    place.weft("inject node 3 --wait 0 --name t").done();
    sender.wait().refused(32, "node_unreachable");
    for receiver in receivers {
        let refused = receiver.wait().refused(37, "abandoned");
        assert!(refused.contains("of its file: it was removed"), "{refused}");
        assert!(refused.starts_with("node 3 sends nothing after"), "{refused}");
    }
    // No other node is delayed by it.
    let next = receive(&place, 0, "");
    place.weft_with("bcast --neb --from 1 --name t", "next").done();
    assert_eq!(next.wait().object()["bytes"], 4);
}

#[test]
fn whoever_is_left_alone_broadcasts_to_nobody() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 2");
    await_manager(&nodes);
    let (sender, receiver) = (send(&place, 0), receive(&place, 1, ""));
    await_midst(&nodes, 1, 0);
    place.weft("inject node 1 --wait 0 --name t").done();
    receiver.wait().refused(32, "node_unreachable");
    let refused = sender.wait().refused(32, "node_unreachable");
    assert!(refused.contains("no other node takes part in broadcasts"), "{refused}");
    let refused = place.weft_with("bcast --neb --from 0 --name t --json", "more");
    refused.refused(32, "node_unreachable");
}

#[test]
fn where_membership_is_fixed_a_lost_memory_ends_those_who_wait_for_it() {
    let place = Place::new();
    let text = "name = \"t\"\nnodes = 4\n[neb]\nslots = 64\nmembership = \"fixed\"\n";
    let (_up, nodes) = place.up(&place.file("t.toml", text));
    await_manager(&nodes);
    let of_lost = receive(&place, 0, "--origin 2");
    let sender = send(&place, 0);
    eventually("the window is full", || nodes.origin(0, 0).window.is_full());
    place.weft("inject node 2 --wait 60 --name t").done();
    let refused = sender.wait().refused(25, "window_full");
    assert!(refused.contains("node 2 has not taken message 1"), "{refused}");
    assert!(refused.contains("node 2 has lost its broadcast memory"), "{refused}");
    let refused = of_lost.wait().refused(17, "standing");
    assert!(refused.contains("after this: it has lost its broadcast memory"), "{refused}");
    // Others deliver what it does not.
    let refused = receive(&place, 1, "").wait().refused(37, "abandoned");
    assert!(refused.contains("node 2 has lost its broadcast memory"), "{refused}");
}

#[test]
fn a_window_that_nobody_opens_is_named_by_who_waits_for_the_next_file() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    let file = place.file("long.bin", FILE.repeat(10));
    drop(fill_window(&place, &nodes, &file));
    receive(&place, 1, "--origin 0").wait().refused(37, "abandoned");
    let line = "bcast --neb --receive --node 1 --timeout 0.1 --name t --json";
    for rest in ["", "--origin 0"] {
        let refused = place.weft(&format!("{line} {rest}")).refused(30, "timeout");
        assert!(refused.contains("node 2 has not taken message 1 of node 0"), "{refused}");
        assert!(refused.contains("--node 2 --origin 0`"), "{refused}");
    }
    let line = "bcast --neb --from 0 --timeout 0.1 --name t --json";
    let refused = place.weft_with(line, "next").refused(25, "window_full");
    assert!(
        refused.contains("is full, and nothing of this file was sent: node 2 has"),
        "{refused}"
    );
    assert!(refused.contains("message 1, which was broadcast before this"), "{refused}");
}

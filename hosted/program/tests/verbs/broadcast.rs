//! Broadcasts over verbs: all nodes get the same bytes, and an equivocation is detected and proven.

use crate::device::devices;
use crate::place::{Nodes, Place, Running, eventually};

/// A real file: the longest source of the core.
const FILE: &[u8] = include_bytes!("../../../../core/src/mailbox/owner.rs");

fn up(place: &Place, nodes: u16, devices: &str) -> (Running, Nodes) {
    let file = format!("name = \"t\"\nnodes = {nodes}\n[neb]\nform = \"signed\"\n");
    let file = place.file("signed.toml", file);
    let (up, nodes) = place.up(&format!("{file} --fabric verbs --devices {devices}"));
    nodes.await_joined();
    (up, nodes)
}

fn listen(place: &Place, node: u16) -> Running {
    place.start(&format!("bcast --neb --receive --node {node} --origin 0 --name t --json"), "")
}

#[test]
fn a_file_reaches_every_other_node_with_the_same_digest() {
    let Some(devices) = devices() else { return };
    let place = Place::new();
    let (_up, nodes) = place.up(&format!("--nodes 4 --fabric verbs --devices {devices}"));
    nodes.await_joined();
    // Longer than the window, so that the sender waits for the listeners.
    let file = place.file("long.bin", FILE.repeat(8));
    let listeners: Vec<Running> = (1..4).map(|node| listen(&place, node)).collect();
    let sent = place.weft(&format!("bcast --neb {file} --from 0 --name t --json")).object();
    for listener in listeners {
        let heard = listener.wait().object();
        assert_eq!((&heard["sha256"], &heard["messages"]), (&sent["sha256"], &sent["messages"]));
    }
}

#[test]
fn an_equivocation_is_reported_and_proven() {
    let Some(devices) = devices() else { return };
    let place = Place::new();
    let (_up, nodes) = up(&place, 4, &devices);
    let lie = place.weft("inject equivocate 1 --wait 60 --name t --json").object();
    assert!(!lie["conflicts"].as_array().expect("an array").is_empty(), "{lie}");
    let (node, file) = (nodes.await_proof(1), place.file("proof", ""));
    place.weft(&format!("neb proof --node {node} --output {file} --name t")).done();
    let verdict = place.weft(&format!("neb verify {file} --json")).object();
    assert_eq!((&verdict["origin"], &verdict["seq"]), (&1.into(), &lie["seq"]), "{verdict}");
}

#[test]
fn a_component_killed_in_mid_broadcast_costs_nothing() {
    let Some(devices) = devices() else { return };
    let place = Place::new();
    let (_up, nodes) = up(&place, 3, &devices);
    let file = place.file("long.bin", FILE.repeat(16));
    let listeners: Vec<Running> = (1..3).map(|node| listen(&place, node)).collect();
    let sender = place.start(&format!("bcast --neb {file} --from 0 --name t --json"), "");
    eventually("the broadcast goes on", || {
        let delivers = |row: &weft::node::control::OriginStatus| row.delivered > 50;
        nodes.client(2).status().is_ok_and(|status| status.broadcasts.first().is_some_and(delivers))
    });
    nodes.client(1).kill().expect("it runs");
    let sent = sender.wait().object();
    for listener in listeners {
        assert_eq!(listener.wait().object()["sha256"], sent["sha256"]);
    }
}

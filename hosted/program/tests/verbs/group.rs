//! Groups over verbs: blocks that are read by RDMA, barriers, and a node that returns.

use crate::device::devices;
use crate::place::{Nodes, Place, Running, eventually};

/// A real file: the longest source of the core.
const FILE: &[u8] = include_bytes!("../../../../core/src/mailbox/owner.rs");

/// A cluster of three whose windows hold 16 blocks of 4 KiB, less than [`FILE`] four times.
fn up(place: &Place, devices: &str) -> (Running, Nodes) {
    let file = "name = \"t\"\nnodes = 3\ngroup.count = 1\ngroup.block_len = 4096\n";
    let file = place.file("g.toml", file);
    let (up, nodes) = place.up(&format!("{file} --fabric verbs --devices {devices}"));
    nodes.await_joined();
    (up, nodes)
}

fn receive(place: &Place, origin: u16, node: u16) -> Running {
    let line = format!("bcast --tree --receive --node {node} --origin {origin}");
    place.start(&format!("{line} --timeout 120 --name t --json"), "")
}

/// GT-4, GT-7, GT-19: however its blocks travel, and across the kill of a member that forwards.
#[test]
fn a_file_longer_than_the_window_reaches_all_in_every_way_and_across_a_kill() {
    let Some(devices) = devices() else { return };
    let place = Place::new();
    let (_up, nodes) = up(&place, &devices);
    let file = place.file("long.bin", FILE.repeat(16));
    for (topology, victim) in [("pipeline", None), ("binary", None), ("pipe", Some(1))] {
        let receivers = [1, 2].map(|node| receive(&place, 0, node));
        let line = format!("bcast --tree {file} --from 0 --topology {topology} --name t --json");
        let sender = place.start(&format!("{line} --timeout 120"), "");
        if let Some(victim) = victim {
            let before = delivered(&nodes, 2);
            eventually("it goes on", || delivered(&nodes, 2) > before);
            nodes.client(victim).kill().expect("it runs");
        }
        let sent = sender.wait().object();
        for receiver in receivers {
            assert_eq!(receiver.wait().object()["sha256"], sent["sha256"], "{topology}");
        }
    }
    assert_eq!(place.weft("group barrier all --name t --json").object()["barrier"], 1);
}

/// How many messages of node 0 a client of `node` has received.
fn delivered(nodes: &Nodes, node: u16) -> u64 {
    let status = nodes.client(node).status().expect("a status");
    let roots = status.groups.first().map(|group| group.roots.clone()).unwrap_or_default();
    roots.iter().find(|row| row.root == 0).map_or(0, |row| row.delivered)
}

/// GT-20: a node that was lost with its memory receives and sends again.
#[test]
fn a_node_that_was_removed_returns_to_its_group() {
    let Some(devices) = devices() else { return };
    let place = Place::new();
    let (_up, nodes) = up(&place, &devices);
    place.weft("inject node 1 --name t --wait 120").done();
    nodes.await_joined();
    let file = place.file("long.bin", FILE.repeat(8));
    let receivers = [1, 2].map(|node| receive(&place, 0, node));
    eventually("all count it", || {
        let listed = place.weft("group ls --name t --json").object();
        let group = &listed["groups"][0];
        let mut parts = group["nodes"].as_array().into_iter().flatten();
        group["removed"] == serde_json::json!([]) && parts.all(|part| part["standing"] == "open")
    });
    let line = format!("bcast --tree {file} --name t --json --timeout 120");
    let sent = place.weft(&format!("{line} --from 0")).object();
    for receiver in receivers {
        assert_eq!(receiver.wait().object()["sha256"], sent["sha256"]);
    }
    let receivers = [0, 2].map(|node| receive(&place, 1, node));
    let sent = place.weft(&format!("{line} --from 1")).object();
    for receiver in receivers {
        assert_eq!(receiver.wait().object()["sha256"], sent["sha256"]);
    }
}

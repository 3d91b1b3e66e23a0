//! A node whose broadcast memory is overwritten with garbage is named, by its status and by the
//! senders that wait for it, with what to do about it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;

use weft_core::ids::Peer;

use crate::broadcast::{FILE, listen};
use crate::place::{Nodes, Place, eventually};

/// Writes garbage over the slot of message `seq` of `origin` in the memory of node `rank`.
fn scribble(nodes: &Nodes, rank: u16, origin: u16, seq: u64) {
    let plan = weft::node::plan(&nodes.cluster).expect("it can be laid out");
    let (sizes, regions) = plan.broadcast().expect("it broadcasts");
    let at = sizes.written_at(&regions, Peer(origin), seq);
    let supervisor = nodes.client(rank).status().expect("a status").supervisor_pid;
    let name = format!("-{rank}-r{} (deleted)", at.region.0);
    let open = fs::read_dir(format!("/proc/{supervisor}/fd")).expect("a process of this user");
    let mut open = open.map(|entry| entry.expect("an entry").path());
    let segment = open.find(|path| {
        let target = fs::read_link(path).unwrap_or_default();
        target.to_string_lossy().ends_with(&name)
    });
    let segment = segment.expect("the supervisor holds the memory of its node");
    let segment = OpenOptions::new().write(true).open(segment).expect("it can be written");
    let garbage = vec![0xA5; sizes.stride() as usize];
    segment.write_all_at(&garbage, at.offset.into()).expect("it is as long as that");
}

#[test]
fn a_node_with_garbage_in_its_ring_is_named_and_its_next_component_gets_the_message() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    let file = place.file("long.bin", FILE.repeat(30));
    let line = format!("bcast --neb {file} --from 0 --timeout 5 --name t --json");
    let sender = place.start(&line, "");
    eventually("the window is full", || nodes.origin(0, 0).window.is_full());
    // Further ahead than a node looks before it delivers.
    scribble(&nodes, 1, 0, 200);
    let listeners = listen(&place, 0, &[1, 2]);
    eventually("node 1 names itself", || nodes.origin(1, 0).damaged == Some(1));
    assert_eq!(nodes.origin(1, 0).delivered, 199);
    let counters = nodes.client(1).status().expect("a status").counters.expect("it runs");
    assert_eq!(counters.broadcast_unfit, 1);
    let named = "the memory of node 1 holds garbage where a message of node 0 is due";
    let status = place.weft("status --name t").done();
    assert!(status.contains(named), "{status}");
    let refused = sender.wait().refused(25, "window_full");
    assert!(refused.contains(named) && refused.contains("`weft inject kill 1`"), "{refused}");

    place.weft("inject kill 1 --name t").done();
    eventually("it goes on", || {
        let row = nodes.origin(1, 0);
        row.delivered > 200 && row.damaged.is_none()
    });
    drop(listeners);
}

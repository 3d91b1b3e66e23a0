//! A peer that is met and talks nonsense: what is no frame is counted by reason, and shown.

use std::sync::Arc;
use std::sync::mpsc::channel;

use weft::bootstrap::{
    Bootstrap, Courier, Desk, Hello, Letter, LocalBootstrap, News, Tidings, VERSION,
};
use weft::cluster::FabricKind;
use weft::node;
use weft::node::control::Payload;
use weft::shm::NodeMemory;
use weft_core::dirnet::FRAME_LEN;
use weft_core::ids::Peer;

use crate::PATIENCE;
use crate::place::{Nodes, Place, eventually};

/// Node 1, as somebody else would play it: it is met by node 0, and no component of it lives.
fn meet(nodes: &Nodes) -> (LocalBootstrap, Box<dyn Courier>) {
    let layout = node::plan(&nodes.cluster).expect("it runs").layout().clone();
    let memory = Arc::new(NodeMemory::create("babbler", &layout).expect("memory"));
    let (cluster, fabric) = ("t".to_owned(), FabricKind::Shm);
    let hello = Hello { version: VERSION, cluster, layout: layout.digest(), fabric, rank: 1 };
    let (sender, tidings) = channel();
    let sink = move |tidings| {
        // Nobody listens any more once the two have met.
        let _ = sender.send(tidings);
    };
    let met = LocalBootstrap::start(&nodes.dir, hello, layout, Some(memory), sink);
    let bootstrap = met.expect("its place is free");
    let is_met = |it| matches!(it, Tidings::Heard { peer: Peer(0), news: News::Met(_), .. });
    while !is_met(tidings.recv_timeout(PATIENCE).expect("node 0 is there")) {}
    let courier = bootstrap.courier();
    (bootstrap, courier)
}

#[test]
fn what_is_no_frame_is_counted_by_reason_and_shown() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 2\n");
    let _first = place.start(&format!("node {file} --rank 0"), "");
    let nodes = place.find();
    eventually("node 0 manages", || {
        let dirnet = nodes.client(0).status().expect("a status").dirnet;
        dirnet.is_some_and(|dirnet| dirnet.role == "manager")
    });
    let (_bootstrap, courier) = meet(&nodes);
    for nonsense in [0, 0x55, 0xFF].map(|byte| vec![byte; FRAME_LEN]) {
        courier.send(Peer(0), &Letter { to: Desk::Component, bytes: Payload(nonsense) });
    }
    eventually("each is counted", || {
        let refused =
            nodes.client(0).status().expect("a status").dirnet.expect("it manages").refused;
        let frames = refused.iter().filter(|(reason, _)| reason.starts_with("frame-"));
        frames.map(|(_, count)| count).sum::<u32>() == 3
    });
    let shown = place.weft("status --name t").done();
    assert!(shown.contains("frame-"), "people are shown it, too: {shown}");
    assert_eq!(nodes.client(0).status().expect("a status").restarts, 0, "nobody is harmed");
}

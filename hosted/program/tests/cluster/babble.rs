//! A peer that is met and sends garbage: what is not a frame is counted by reason, and shown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;

use weft::bootstrap::{
    Bootstrap, BootstrapEvent, Datagram, DatagramPort, DatagramSender, Hello, LocalBootstrap, News,
    VERSION,
};
use weft::cluster::FabricKind;
use weft::node;
use weft::node::control::{NodeState, Payload};
use weft::shm::NodeMemory;
use weft_core::dirnet::FRAME_LEN;
use weft_core::ids::Peer;

use crate::PATIENCE;
use crate::place::{Nodes, Place, eventually};

/// Plays node 1 as a stranger would: node 0 meets it, and no component of it runs.
fn meet(nodes: &Nodes) -> (LocalBootstrap, Box<dyn DatagramSender>) {
    let layout = node::plan(&nodes.cluster).expect("it runs").layout().clone();
    let memory = Arc::new(NodeMemory::create("babbler", &layout).expect("memory"));
    let (cluster, fabric) = ("t".to_owned(), FabricKind::Shm);
    let dirnet = nodes.cluster.dirnet.digest(nodes.cluster.nodes);
    let digest = nodes.cluster.layout_digest(&layout);
    let instance = nodes.dir.instance().expect("it runs");
    let hello = Hello {
        version: VERSION,
        cluster,
        instance,
        layout: digest,
        dirnet,
        script: 0,
        fabric,
        rank: 1,
    };
    let (sender, events) = channel();
    let sink = move |event| {
        // Once the two have met, the events are no longer received.
        let _ = sender.send(event);
    };
    let met = LocalBootstrap::start(&nodes.dir, hello, layout, Some(memory), sink);
    let bootstrap = met.expect("its place is free");
    let is_met = |it| matches!(it, BootstrapEvent::Heard { peer: Peer(0), news: News::Met(_), .. });
    while !is_met(events.recv_timeout(PATIENCE).expect("node 0 is there")) {}
    let datagrams = bootstrap.datagrams();
    (bootstrap, datagrams)
}

#[test]
fn a_datagram_that_nobody_can_take_is_counted_and_shown() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 2\nrestart.max = 0\n");
    let _first = place.start(&format!("node {file} --rank 0"), "");
    let nodes = place.find();
    let look = || nodes.client(0).status().expect("a status");
    eventually("node 0 runs", || look().dirnet.is_some());
    nodes.client(0).kill().expect("it is there");
    eventually("it has given up", || look().state == NodeState::GivenUp);
    let (_bootstrap, datagrams) = meet(&nodes);
    for _ in 0..3 {
        let bytes = Payload(vec![0; FRAME_LEN]);
        datagrams.send(Peer(0), &Datagram { to: DatagramPort::Component, bytes });
    }
    eventually("each is counted", || look().refused_by_supervisor.get("not-entered") == Some(&3));
    let shown = place.weft("status --verbose --name t").done();
    assert!(shown.contains("not-entered 3 (supervisor)"), "{shown}");
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
    let (_bootstrap, datagrams) = meet(&nodes);
    let bytes = [0, 0x55, 0xFF].map(|byte| vec![byte; FRAME_LEN]);
    let lengths = [0, FRAME_LEN - 1, FRAME_LEN + 1, 4_000].map(|len| vec![0; len]);
    for nonsense in bytes.into_iter().chain(lengths) {
        for to in [DatagramPort::Component, DatagramPort::ImAliveTask] {
            datagrams.send(Peer(0), &Datagram { to, bytes: Payload(nonsense.clone()) });
        }
    }
    let counts = |refused: &BTreeMap<String, u32>| {
        let frames = refused.iter().filter(|(reason, _)| reason.starts_with("frame-"));
        let all: u32 = frames.map(|(_, count)| count).sum();
        (all, refused.get("frame-length").copied())
    };
    eventually("each is counted, by the component and by the I'm-Alive Task", || {
        let status = nodes.client(0).status().expect("a status");
        let by_component = status.dirnet.map(|dirnet| counts(&dirnet.refused));
        by_component == Some((7, Some(4))) && counts(&status.refused_by_task) == (7, Some(4))
    });
    let shown = place.weft("status --verbose --name t").done();
    for said in ["frame-length 4,", "frame-length 4 (I'm-Alive Task)"] {
        assert!(shown.contains(said), "people are shown it, too: {shown}");
    }
    assert_eq!(
        nodes.client(0).status().expect("a status").restarts,
        0,
        "no other node is affected"
    );
}

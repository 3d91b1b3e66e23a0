//! Strangers at the socket where nodes meet: refused with the reason, and no node is harmed.

use std::process::{Child, Command};

use rustix::net::{SendFlags, send};
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;
use weft::bootstrap::{Hello, Refusal, VERSION};
use weft::cluster::FabricKind;
use weft::node;
use weft::packet::{PacketError, Socket};
use weft::process::{Pidfd, Signal};

use crate::PATIENCE;
use crate::place::{Nodes, Place};

/// The answer of a node to a hello, as another build would read it.
#[derive(Debug, PartialEq, Eq, Deserialize)]
enum Answer {
    Welcome(Hello),
    Refused(Refusal),
}

/// What a node says when its component begins.
#[derive(Debug, Serialize, Deserialize)]
enum SessionMessage {
    Alive { incarnation: u32, boot: u32, memory: u64 },
}

fn connect(nodes: &Nodes, rank: usize) -> Socket {
    let path = nodes.dir.peer_socket(rank).expect("a short path");
    Socket::connect(&path, PATIENCE).expect("the node listens")
}

/// What node `rank` of this cluster would say.
fn hello(nodes: &Nodes, rank: u16) -> Hello {
    let plan = node::plan(&nodes.cluster).expect("it runs");
    let layout = nodes.cluster.layout_digest(plan.layout());
    let (dirnet, fabric) = (nodes.cluster.dirnet.digest(nodes.cluster.nodes), FabricKind::Shm);
    let (cluster, instance) = ("t".to_owned(), nodes.dir.instance().expect("it runs"));
    Hello { version: VERSION, cluster, instance, layout, dirnet, script: 0, fabric, rank }
}

/// The answer of node 0.
fn greet(nodes: &Nodes, hello: &Hello) -> (Socket, Answer) {
    let socket = connect(nodes, 0);
    socket.send(hello, &[], PATIENCE).expect("it is open");
    let answer = socket.recv(PATIENCE).expect("the node answers").0;
    (socket, answer)
}

/// A process that does nothing.
struct Idler(Child);

impl Idler {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").spawn().expect("sleep is there"))
    }
}

impl Drop for Idler {
    fn drop(&mut self) {
        // One that was fenced is dead already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_stranger_is_refused_with_the_reason() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    let ours = hello(&nodes, 1);
    let version = Refusal::Version { ours: VERSION, theirs: 99 };
    let (layout, theirs) = (ours.layout, ours.layout + 1);
    let instance = Refusal::Instance { ours: ours.instance, theirs: 1 };
    let cluster = Refusal::Cluster { ours: "t".to_owned(), theirs: "u".to_owned() };
    for (stranger, reason) in [
        (Hello { version: 99, ..ours.clone() }, version),
        (Hello { cluster: "u".to_owned(), ..ours.clone() }, cluster),
        (Hello { instance: 1, ..ours.clone() }, instance),
        (Hello { dirnet: theirs, ..ours.clone() }, Refusal::DirNet { ours: ours.dirnet, theirs }),
        (Hello { layout: theirs, ..ours.clone() }, Refusal::Layout { ours: layout, theirs }),
        (
            Hello { fabric: FabricKind::Verbs, ..ours.clone() },
            Refusal::Fabric { ours: FabricKind::Shm, theirs: FabricKind::Verbs },
        ),
        (Hello { rank: 3, ..ours.clone() }, Refusal::Rank { rank: 3 }),
        (Hello { rank: u16::MAX, ..ours.clone() }, Refusal::Rank { rank: u16::MAX }),
        (Hello { rank: 0, ..ours.clone() }, Refusal::Rank { rank: 0 }),
        (ours, Refusal::Rank { rank: 1 }),
    ] {
        let (socket, answer) = greet(&nodes, &stranger);
        assert_eq!(answer, Answer::Refused(reason));
        assert!(matches!(socket.recv::<Answer>(PATIENCE), Err(PacketError::Closed)));
    }
    nodes.assert_unharmed();
}

#[test]
fn nonsense_and_silence_harm_nobody() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let silent: Vec<Socket> = (0..10).map(|_| connect(&nodes, 0)).collect();
    for nonsense in [&b"GET / HTTP/1.1"[..], b"{}", b"\xff\xff", b"null"] {
        let socket = connect(&nodes, 0);
        send(&socket, nonsense, SendFlags::empty()).expect("it is open");
        assert!(matches!(socket.recv::<Answer>(PATIENCE), Err(PacketError::Closed)));
    }
    nodes.assert_unharmed();
    drop(silent);
}

#[test]
fn a_peer_that_grants_nothing_is_let_go_and_the_true_one_let_in() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 2\n");
    let first = place.start(&format!("node {file} --rank 0"), "");
    let nodes = place.find();
    nodes.client(0).await_running(1, PATIENCE).expect("alone");
    let (socket, answer) = greet(&nodes, &hello(&nodes, 1));
    assert!(matches!(answer, Answer::Welcome(Hello { rank: 0, .. })), "{answer:?}");
    let idler = Idler::new();
    let process = Pidfd::from_child(&idler.0).expect("a child");
    let word = SessionMessage::Alive { incarnation: 1, boot: 1, memory: 1 };
    socket.send(&word, &[process.as_fd()], PATIENCE).expect("it is open");
    // A peer that learns of the node's own incarnation has been met.
    let (SessionMessage::Alive { incarnation, .. }, _) =
        socket.recv(PATIENCE).expect("it sends its incarnation");
    assert_eq!(incarnation, 1);
    let (_, second) = greet(&nodes, &hello(&nodes, 1));
    assert_eq!(second, Answer::Refused(Refusal::Rank { rank: 1 }), "it is met already");
    drop(socket);

    let second = place.start(&format!("node {file} --rank 1"), "");
    // An incarnation 1 of that name was seen and is over, so the true one begins after it.
    let status = nodes.client(1).await_joined(2, 1, PATIENCE).expect("it is admitted");
    assert_eq!((status.incarnation, status.peers[0].incarnation), (2, Some(1)));
    assert_eq!(nodes.client(0).status().expect("a status").restarts, 0);
    for node in [first, second] {
        node.signal(Signal::TERM);
        node.wait().done();
    }
    place.assert_nothing_left();
}

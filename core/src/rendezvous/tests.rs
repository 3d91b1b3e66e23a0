//! Nodes over the loopback fabric, a test for each behaviour.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::decision::Decision;
use crate::fabric::loopback::{Loopback, Net};
use crate::fabric::{Completion, Fabric, Layout, Memory};
use crate::ids::{Incarnation, Peer, Term};
use crate::lane::LaneWriter;
use crate::time::Instant;
use crate::wire::rendezvous::{Flags, Handle, Head, Kind};

mod parts;
mod planted;
mod table;
mod wires;
mod writes;

const PEERS: usize = 3;
const SLOTS: usize = 6;
const WORDS: usize = 16384;
/// No deadline of a test before this one.
const LATE: Instant = Instant(1_000_000_000);

type World = Net<PEERS, WORDS>;

/// One incarnation of one node.
struct Node<'net> {
    fabric: Loopback<'net, PEERS, WORDS>,
    adapter: Adapter<PEERS, SLOTS>,
}

struct Setup {
    net: World,
    config: RendezvousConfig,
    regions: RendezvousRegions,
}

fn sizes() -> RendezvousSizes {
    RendezvousSizes {
        peers: PEERS as u16,
        slots: SLOTS as u16,
        leaf_len: 64,
        offer_leaves: 64,
        landing_leaves: 64,
        inline: 16,
        piece_len: 32,
        digest: Digest::Crc32c,
        path: Path::Read,
        parts: PartSizes::NONE,
        lane_slots: 4,
    }
}

fn setup(sizes: RendezvousSizes) -> Setup {
    let config = RendezvousConfig::new(sizes).unwrap();
    let mut layout = Layout::new(PEERS as u16);
    let regions = config.add_regions(&mut layout).unwrap();
    Setup { net: Net::new(layout), config, regions }
}

/// All nodes of a setup that no test looks at; it outlives the test.
fn nodes(sizes: RendezvousSizes) -> Vec<Node<'static>> {
    Box::leak(Box::new(setup(sizes))).nodes()
}

impl Setup {
    fn start(&self, me: u16, incarnation: u32) -> Node<'_> {
        let fabric = self.net.endpoint(Peer(me), Incarnation(incarnation));
        let started = (Incarnation(incarnation), incarnation);
        let adapter = Adapter::new(&fabric, self.config, self.regions, started);
        Node { fabric, adapter }
    }

    /// All nodes in their first incarnation, joined.
    fn nodes(&self) -> Vec<Node<'_>> {
        let mut nodes: Vec<_> = (0..PEERS as u16).map(|me| self.start(me, 1)).collect();
        for (one, node) in nodes.iter_mut().enumerate() {
            for other in (0..PEERS).filter(|other| *other != one) {
                node.admit(other as u16, 1);
            }
        }
        nodes
    }

    /// Node `me` begins again over new memory; `others` fence what it was and admit it.
    fn restart<'net>(&'net self, nodes: &mut [Node<'net>], me: u16, others: &[u16]) {
        nodes[usize::from(me)] = self.start(me, 2);
        for other in others {
            nodes[usize::from(*other)].fence(me);
            nodes[usize::from(*other)].admit(me, 2);
            nodes[usize::from(me)].admit(*other, 1);
        }
    }
}

impl Node<'_> {
    fn admit(&mut self, peer: u16, incarnation: u32) {
        self.adapter.prepare(&self.fabric, Peer(peer), Incarnation(incarnation));
        self.fabric.admit(Peer(peer), Incarnation(incarnation)).unwrap();
        self.adapter.handle_admitted(Peer(peer));
    }

    fn fence(&mut self, peer: u16) {
        self.fabric.fence(Peer(peer)).unwrap();
        self.adapter.handle_fenced(Peer(peer));
    }

    /// Handles completions.
    fn complete(&mut self) {
        let mut done = [Completion::NONE; 8];
        let count = self.fabric.poll(Instant(0), &mut done);
        done[..count].iter().for_each(|it| self.adapter.handle_completion(&self.fabric, it));
    }

    fn poll(&mut self, now: Instant) {
        self.complete();
        self.adapter.poll(&mut self.fabric, now);
    }

    fn send(&mut self, key: &Key, place: Place, bytes: &[u8]) -> OfferId {
        let shape = Shape::new(Dtype::U8, &[bytes.len() as u64]).unwrap();
        let value = (shape, bytes);
        self.adapter.send_bytes(&mut self.fabric, Instant(0), (key, place), value).unwrap()
    }

    fn receive(&mut self, key: &Key, place: Place) -> RequestId {
        let how = (Expect::any(), LATE);
        self.adapter.receive(&mut self.fabric, Instant(0), (key, place), how).unwrap()
    }

    fn cancel(&mut self, request: RequestId) {
        self.adapter.cancel(&mut self.fabric, Instant(0), request).unwrap();
    }

    fn events(&mut self) -> Vec<RendezvousEvent> {
        core::iter::from_fn(|| self.adapter.poll_event()).collect()
    }

    /// The bytes of a value that was received.
    fn bytes(&self, request: RequestId) -> Vec<u8> {
        let tensor = self.adapter.tensor(request).expect("a value");
        let mut bytes = vec![0; tensor.bytes as usize];
        self.fabric.memory().copy_out(tensor.at.region, tensor.at.offset, &mut bytes);
        bytes
    }

    /// Takes the value of `request`, whose two events are the next.
    fn take(&mut self, request: RequestId) -> Vec<u8> {
        assert_eq!(self.events(), ended(request, Received::Value));
        let bytes = self.bytes(request);
        self.adapter.release(request).unwrap();
        bytes
    }

    /// Nothing is held and no slot is used.
    fn assert_empty(&self) {
        assert_eq!(self.adapter.used(), [0; 3]);
        assert!(self.adapter.offers().is_whole() && self.adapter.landings().is_whole());
        assert_eq!(self.adapter.poll_timeout(), None);
    }
}

fn ended(request: RequestId, outcome: Received) -> Vec<RendezvousEvent> {
    let end = RendezvousEvent::Ended { request, outcome };
    vec![end, RendezvousEvent::Returned { request }]
}

/// Polls until nothing can change any more.
fn run(nodes: &mut [Node<'_>]) {
    for _ in 0..40 {
        nodes.iter_mut().for_each(|node| node.poll(Instant(0)));
    }
}

/// One value of node 0 was consumed, and nothing is left of it anywhere.
fn assert_consumed(nodes: &mut [Node<'_>]) {
    run(nodes);
    assert!(matches!(nodes[0].events()[..], [RendezvousEvent::Consumed { .. }]));
    nodes.iter().for_each(Node::assert_empty);
}

/// A value of `source` for `destination`.
fn key(source: u16, destination: u16) -> Key {
    Key::new((Peer(source), None), Peer(destination), ("edge", "0:0")).unwrap()
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(7).wrapping_add(seed)).collect()
}

const STEP: Place = Place::whole(5);

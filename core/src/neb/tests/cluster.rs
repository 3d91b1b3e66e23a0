//! A cluster of members over memory that outlives them, with the means of a liar.

use std::boxed::Box;
use std::vec::Vec;

use super::held::Held;
use super::{DEPTH, NET_SLOTS, WORDS};
use crate::decision::Decision;
use crate::fabric::loopback::Net;
use crate::fabric::{At, Completion, Fabric, Layout, Memory, Op};
use crate::ids::{Incarnation, Peer, PeerSet, Term};
use crate::neb::{Config, Conflict, Membership, Neb, Outcome, Regions, Retry, Sizes, begin_epoch};
use crate::time::{Duration, Instant};
use crate::wire::broadcast::{Form, Header, seal};
use crate::wire::crc32c;

pub(super) const FIRST: Incarnation = Incarnation(1);

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    Agreement,
    Integrity,
    Validity,
    /// A correct member reports a conflict about a message that a correct origin has signed.
    Blame,
}

pub(super) const SIZES: Sizes = Sizes {
    peers: 0,
    slots: NET_SLOTS,
    depth: DEPTH as u16,
    message_len: 24,
    form: Form::Unsigned,
    membership: Membership::Decided,
    retry: Retry { after: Duration(10), after_max: Duration(80) },
};

/// The memory and sizes that survive every process.
pub(super) struct World<const N: usize> {
    pub(super) net: Box<Net<N, WORDS>>,
    pub(super) config: Config,
    pub(super) regions: Regions,
}

impl<const N: usize> World<N> {
    pub(super) fn new() -> Self {
        Self::with(SIZES)
    }

    /// For a test that does not look at it, which it outlives.
    pub(super) fn leaked(self) -> &'static Self {
        Box::leak(Box::new(self))
    }

    pub(super) fn with(sizes: Sizes) -> Self {
        let config = Config::new(Sizes { peers: N as u16, ..sizes }).unwrap();
        let mut layout = Layout::new(N as u16);
        let regions = config.add_regions(&mut layout).unwrap();
        Self { net: Box::new(Net::new(layout)), config, regions }
    }

    /// A whole slot.
    pub(super) fn slot(&self, origin: Peer, seq: u64, payload: &[u8]) -> Vec<u8> {
        let stamp = self.config.stamp(origin, seq);
        let len = payload.len() as u16;
        let header = Header { stamp, len, tag: 7, form: self.config.form() };
        let mut slot = std::vec![0; self.config.stride() as usize];
        header.write(&mut slot);
        slot[header.payload()].copy_from_slice(payload);
        #[cfg(feature = "signed")]
        if header.form == Form::Signed {
            super::signed::keys::<N>(origin).sign(&header, &mut slot);
        }
        seal(&mut slot[..header.used()], crc32c);
        slot
    }
}

/// One delivery: origin, number, payload.
pub(super) type Delivered = (Peer, u64, Vec<u8>);

pub(super) struct Node<'net, const N: usize> {
    pub(super) fabric: Held<'net, N>,
    pub(super) neb: Neb<N, DEPTH>,
    pub(super) delivered: Vec<Delivered>,
    pub(super) conflicts: Vec<Conflict>,
    pub(super) incarnation: Incarnation,
    /// It is not running.
    pub(super) stopped: bool,
}

pub(super) struct Cluster<'net, const N: usize> {
    pub(super) world: &'net World<N>,
    pub(super) nodes: Vec<Node<'net, N>>,
    pub(super) now: Instant,
    /// What correct members broadcast.
    pub(super) broadcast: Vec<Delivered>,
    pub(super) liars: PeerSet,
}

impl<'net, const N: usize> Cluster<'net, N> {
    pub(super) fn new(world: &'net World<N>) -> Self {
        let mut nodes: Vec<Node<'net, N>> = Vec::new();
        for me in (0..N as u16).map(Peer) {
            nodes.push(Node::new(world, me, FIRST));
        }
        for node in &mut nodes {
            let me = node.fabric.me();
            for peer in (0..N as u16).map(Peer).filter(|peer| *peer != me) {
                node.admit(peer, FIRST);
            }
        }
        let (now, liars) = (Instant(0), PeerSet::EMPTY);
        Self { world, nodes, now, broadcast: Vec::new(), liars }
    }

    pub(super) fn node(&mut self, peer: Peer) -> &mut Node<'net, N> {
        &mut self.nodes[peer.index()]
    }

    /// `peer` broadcasts, if its window has room.
    pub(super) fn broadcast(&mut self, peer: Peer, payload: &[u8]) -> Option<u64> {
        let node = &mut self.nodes[peer.index()];
        let seq = node.neb.broadcast(&mut node.fabric, 7, payload).ok()?;
        self.broadcast.push((peer, seq, payload.to_vec()));
        Some(seq)
    }

    /// The liar `origin` writes `slot` as its message `seq` into `to`.
    pub(super) fn forge(&mut self, origin: Peer, to: Peer, seq: u64, slot: &[u8]) {
        self.liars.insert(origin);
        let at = self.world.config.written_at(&self.world.regions, origin, seq);
        self.write(origin, to, at, slot);
    }

    /// `who` writes `bytes` to `at` of `to`, with its own rights.
    pub(super) fn write(&mut self, who: Peer, to: Peer, at: At, bytes: &[u8]) {
        // A refusal is part of the test.
        let _refused = self.node(who).fabric.effect(to, &Op::Write { to: at, bytes });
    }

    /// The liar `replayer` exposes `slot` as message `seq` of `origin`.
    pub(super) fn expose(&mut self, replayer: Peer, origin: Peer, seq: u64, slot: &[u8]) {
        self.liars.insert(replayer);
        let at = self.world.config.exposed_at(&self.world.regions, origin, seq);
        self.world.net.memory(replayer).copy_in(at.region, at.offset, slot);
    }

    /// Every running member executes one turn of its loop.
    pub(super) fn turn(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| !node.stopped) {
            node.turn(self.now);
        }
        self.now = self.now.after(Duration(5));
    }

    /// Only `peer` executes one turn of its loop.
    pub(super) fn turn_of(&mut self, peer: Peer) {
        let now = self.now;
        self.node(peer).turn(now);
    }

    /// Turns until nothing changes any more.
    pub(super) fn settle(&mut self) {
        for _ in 0..120 {
            self.turn();
        }
    }

    /// All remaining members remove `peer`.
    pub(super) fn remove(&mut self, peer: Peer) {
        let decision = Decision { term: Term::of_epoch(1), removed: peer, last: FIRST };
        self.liars.insert(peer);
        self.node(peer).stopped = true;
        for node in &mut self.nodes {
            if node.fabric.me() != peer && !node.stopped {
                node.neb.remove(&mut node.fabric, decision).unwrap();
            }
        }
    }

    /// Correct members.
    fn correct(&self) -> impl Iterator<Item = &Node<'net, N>> {
        self.nodes.iter().filter(|node| !self.liars.contains(node.fabric.me()))
    }

    /// Checks agreement and integrity of all deliveries, and that no correct origin is blamed.
    pub(super) fn check_safety(&self) -> Result<(), Broken> {
        let mut agreed: Vec<&Delivered> = Vec::new();
        for node in self.correct() {
            let mut last = [0; N];
            for delivered @ (origin, seq, payload) in &node.delivered {
                if *seq != last[origin.index()] + 1 {
                    return Err(Broken::Integrity);
                }
                last[origin.index()] = *seq;
                if !self.liars.contains(*origin) && !self.broadcast.contains(delivered) {
                    return Err(Broken::Integrity);
                }
                match agreed.iter().find(|other| (other.0, other.1) == (*origin, *seq)) {
                    Some(other) if other.2 != *payload => return Err(Broken::Agreement),
                    Some(_) => {}
                    None => agreed.push(delivered),
                }
            }
            let is_signed = self.world.config.form() == Form::Signed;
            let is_correct = |conflict: &Conflict| !self.liars.contains(conflict.origin);
            if is_signed && node.conflicts.iter().any(is_correct) {
                return Err(Broken::Blame);
            }
        }
        Ok(())
    }

    /// Checks validity as well: every message of a correct member was delivered.
    pub(super) fn check(&self) -> Result<(), Broken> {
        self.check_safety()?;
        let complete = self.correct().all(|node| {
            let correct = self.broadcast.iter().filter(|sent| !self.liars.contains(sent.0));
            correct.into_iter().all(|sent| node.delivered.contains(sent))
        });
        if complete { Ok(()) } else { Err(Broken::Validity) }
    }
}

impl<'net, const N: usize> Node<'net, N> {
    pub(super) fn new(world: &'net World<N>, me: Peer, incarnation: Incarnation) -> Self {
        Self::in_epoch(world, me, incarnation, FIRST)
    }

    /// As [`Self::new`], in an epoch that began in the incarnation `epoch`.
    pub(super) fn in_epoch(
        world: &'net World<N>,
        me: Peer,
        incarnation: Incarnation,
        epoch: Incarnation,
    ) -> Self {
        let fabric = Held::new(world.net.endpoint(me, incarnation));
        begin_epoch(&fabric, world.config, world.regions, epoch).unwrap();
        let neb = match world.config.form() {
            Form::Unsigned => Neb::attach(&fabric, world.config, world.regions),
            #[cfg(feature = "signed")]
            Form::Signed => {
                let keys = super::signed::keys(me);
                Neb::attach_signed(&fabric, world.config, world.regions, keys)
            }
            #[cfg(not(feature = "signed"))]
            Form::Signed => unreachable!("no such configuration"),
        };
        let (delivered, conflicts) = (Vec::new(), Vec::new());
        Self { fabric, neb, delivered, conflicts, incarnation, stopped: false }
    }

    pub(super) fn admit(&mut self, peer: Peer, incarnation: Incarnation) {
        self.fabric.admit(peer, incarnation).unwrap();
        self.neb.handle_admitted(peer);
    }

    /// One turn of the loop: completions, poll, outcomes.
    pub(super) fn turn(&mut self, now: Instant) {
        self.hear(now);
        self.neb.poll(&mut self.fabric, now);
        self.take();
    }

    /// Handles all completions.
    pub(super) fn hear(&mut self, now: Instant) {
        let mut done = [Completion::NONE; 4];
        loop {
            let count = self.fabric.poll(now, &mut done);
            for completion in &done[..count] {
                self.neb.handle_completion(&mut self.fabric, now, completion);
            }
            if count == 0 {
                return;
            }
        }
    }

    /// Takes up to eight outcomes.
    pub(super) fn take(&mut self) {
        for _ in 0..8 {
            match self.neb.take(&self.fabric) {
                Some(Outcome::Delivered(message)) => {
                    let payload = message.payload.to_vec();
                    self.delivered.push((message.origin, message.seq, payload));
                }
                Some(Outcome::Conflict(conflict)) => self.conflicts.push(conflict),
                None => return,
            }
        }
    }
}

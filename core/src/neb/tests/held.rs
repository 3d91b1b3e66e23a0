//! A fabric whose work takes effect when the test says so, torn if it wants, in a queue of any
//! length. Work that is not held takes effect at once.

use std::collections::VecDeque;
use std::vec::Vec;

use crate::fabric::loopback::{Loopback, LoopbackMemory};
use crate::fabric::{
    At, Completion, CompletionFlags, Fabric, Failure, FenceError, Layout, Op, Placement, PostError,
    Work, WorkId,
};
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::time::Instant;

use super::WORDS;

struct Posted {
    peer: Peer,
    id: WorkId,
    op: Op<'static>,
    flags: CompletionFlags,
    /// Which bytes have arrived.
    arrived: Vec<bool>,
}

pub(super) struct Held<'net, const N: usize> {
    inner: Loopback<'net, N, WORDS>,
    waiting: VecDeque<Posted>,
    done: VecDeque<Completion>,
    /// Work for them waits for [`Self::land`].
    pub(super) holds: PeerSet,
    /// How many works may be under way.
    pub(super) depth: usize,
    /// How many works were accepted.
    pub(super) posted: u64,
    open: PeerSet,
}

impl<'net, const N: usize> Held<'net, N> {
    pub(super) fn new(inner: Loopback<'net, N, WORDS>) -> Self {
        Self {
            open: PeerSet::only(inner.me()),
            inner,
            waiting: VecDeque::new(),
            done: VecDeque::new(),
            holds: PeerSet::EMPTY,
            depth: usize::MAX,
            posted: 0,
        }
    }

    /// Whether any work for `peer` waits.
    pub(super) fn waits(&self, peer: Peer) -> bool {
        self.waiting.iter().any(|work| work.peer == peer)
    }

    /// The oldest work for `peer` takes effect and completes.
    pub(super) fn land(&mut self, peer: Peer) -> bool {
        let first = self.waiting.iter().position(|work| work.peer == peer);
        let Some(work) = first.and_then(|first| self.waiting.remove(first)) else {
            return false;
        };
        self.carry_out(work);
        true
    }

    /// Of the oldest work for `peer`, those bytes arrive now that `arrives` names; it does not
    /// complete before the others have too.
    pub(super) fn tear(&mut self, peer: Peer, arrives: impl Fn(u32) -> bool) {
        let first = self.waiting.iter().position(|work| work.peer == peer);
        let Some(mut work) = first.and_then(|first| self.waiting.remove(first)) else {
            return;
        };
        // A peer that is gone is noticed when the work lands.
        let _gone = self.place(&mut work, arrives);
        self.waiting.insert(first.unwrap_or(0), work);
    }

    /// Those bytes arrive that `arrives` names and that have not arrived before.
    fn place(&mut self, work: &mut Posted, arrives: impl Fn(u32) -> bool) -> Result<u64, Failure> {
        let further = |at: At, by| At { offset: at.offset + by, ..at };
        for byte in 0..work.arrived.len() as u32 {
            if !arrives(byte) || work.arrived[byte as usize] {
                continue;
            }
            let op = match work.op {
                Op::Read { from, into, .. } => {
                    Op::Read { from: further(from, byte), into: further(into, byte), len: 1 }
                }
                Op::WriteFrom { to, from, .. } => {
                    Op::WriteFrom { to: further(to, byte), from: further(from, byte), len: 1 }
                }
                op => op,
            };
            self.effect(work.peer, &op)?;
            work.arrived[byte as usize] = true;
        }
        Ok(0)
    }

    /// The pair with `peer` fails: everything for it ends, and nothing more is accepted.
    pub(super) fn fail(&mut self, peer: Peer) {
        self.open.remove(peer);
        while let Some(at) = self.waiting.iter().position(|work| work.peer == peer) {
            let id = self.waiting[at].id;
            self.waiting.remove(at);
            let outcome = Err(Failure::DeadlinePassed);
            self.done.push_back(Completion { id, peer, outcome });
        }
    }

    /// An operation takes effect now, whatever waits.
    pub(super) fn effect(&mut self, peer: Peer, op: &Op<'_>) -> Result<u64, Failure> {
        let work = Work { id: WorkId(0), op: *op, flags: CompletionFlags::empty() };
        let mut done = [Completion::NONE];
        match self.inner.post(peer, work) {
            Ok(()) => assert_eq!(self.inner.poll(Instant(0), &mut done), 1),
            Err(PostError::Gone) => return Err(Failure::Gone),
            Err(error) => panic!("{error}"),
        }
        done[0].outcome
    }

    fn carry_out(&mut self, mut work: Posted) {
        let outcome = if work.arrived.contains(&true) {
            self.place(&mut work, |_| true)
        } else {
            self.effect(work.peer, &work.op)
        };
        if outcome.is_err() || !work.flags.contains(CompletionFlags::QUIET) {
            self.done.push_back(Completion { id: work.id, peer: work.peer, outcome });
        }
        if outcome == Err(Failure::Gone) {
            self.fail(work.peer);
        }
    }
}

impl<'net, const N: usize> Fabric for Held<'net, N> {
    type Memory = LoopbackMemory<'net>;

    fn me(&self) -> Peer {
        self.inner.me()
    }

    fn layout(&self) -> &Layout {
        self.inner.layout()
    }

    fn placement(&self) -> Placement {
        Placement::Bytes
    }

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        work.op.check(self.layout(), peer).map_err(PostError::Rejected)?;
        if !self.open.contains(peer) {
            return Err(PostError::Gone);
        }
        if self.waiting.len() + self.done.len() >= self.depth {
            return Err(PostError::Full);
        }
        let op = match work.op {
            Op::WriteFrom { to, from, len } => Op::WriteFrom { to, from, len },
            Op::Read { from, into, len } => Op::Read { from, into, len },
            op => panic!("the machine posts no {op:?}"),
        };
        self.posted += 1;
        let arrived = std::vec![false; op.target().1];
        let posted = Posted { peer, id: work.id, op, flags: work.flags, arrived };
        if self.holds.contains(peer) {
            self.waiting.push_back(posted);
        } else {
            self.carry_out(posted);
        }
        Ok(())
    }

    fn poll(&mut self, _now: Instant, done: &mut [Completion]) -> usize {
        let count = done.len().min(self.done.len());
        for (place, completion) in done.iter_mut().zip(self.done.drain(..count)) {
            *place = completion;
        }
        count
    }

    fn memory(&self) -> &Self::Memory {
        self.inner.memory()
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        self.inner.fence(peer)?;
        self.fail(peer);
        Ok(())
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        self.inner.admit(peer, incarnation)?;
        self.open.insert(peer);
        Ok(())
    }
}

/// Every byte with its turn in `bits`.
pub(super) fn bits(bits: u64) -> impl Fn(u32) -> bool {
    move |byte| bits >> (byte % 61) & 1 == 1
}

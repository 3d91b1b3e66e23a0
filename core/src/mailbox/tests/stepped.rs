//! A fabric whose work takes effect when the test says so, byte by byte if it wants.
//!
//! ```text
//!   post ──▶ held ── land, tear, answer ──▶ done ──▶ poll
//!              └── fail ──▶ straggling ── may land until the target fences the poster
//! ```
//!
//! A test can also limit an endpoint's number of actions: every word stored in own memory, every
//! post and every word placed remotely is one. Later actions have no effect, which the endpoint
//! does not notice.

use std::cell::Cell;
use std::collections::VecDeque;
use std::vec::Vec;

use super::{PEERS, WORDS};
use crate::fabric::loopback::Loopback;
use crate::fabric::{
    At, Completion, CompletionFlags, Fabric, Failure, FenceError, Layout, Memory, Op, Placement,
    PostError, Posted, Region, Work, WorkId,
};
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::time::Instant;

enum HeldOp {
    Write { to: At, bytes: Vec<u8> },
    Read { from: At, into: At, len: u32 },
    FetchAdd { at: At, add: u64 },
    CompareSwap { at: At, expected: u64, new: u64 },
}

impl HeldOp {
    fn copy(op: &Op<'_>) -> Self {
        match *op {
            Op::Write { to, bytes } => Self::Write { to, bytes: bytes.to_vec() },
            Op::Read { from, into, len } => Self::Read { from, into, len },
            Op::FetchAdd { at, add } => Self::FetchAdd { at, add },
            Op::CompareSwap { at, expected, new } => Self::CompareSwap { at, expected, new },
            Op::WriteFrom { .. } => panic!("no mailbox writes from a region"),
        }
    }

    fn op(&self) -> Op<'_> {
        match *self {
            Self::Write { to, ref bytes } => Op::Write { to, bytes },
            Self::Read { from, into, len } => Op::Read { from, into, len },
            Self::FetchAdd { at, add } => Op::FetchAdd { at, add },
            Self::CompareSwap { at, expected, new } => Op::CompareSwap { at, expected, new },
        }
    }

    /// Bytes that may arrive one by one.
    fn len(&self) -> usize {
        match self {
            Self::Write { bytes, .. } => bytes.len(),
            Self::Read { len, .. } => *len as usize,
            Self::FetchAdd { .. } | Self::CompareSwap { .. } => 0,
        }
    }

    /// The operation on up to `len` of its bytes from `start`.
    fn part(&self, start: usize, len: usize) -> Op<'_> {
        let end = self.len().min(start + len);
        let further = |at: At| At { offset: at.offset + start as u32, ..at };
        match *self {
            Self::Write { to, ref bytes } => {
                Op::Write { to: further(to), bytes: &bytes[start..end] }
            }
            Self::Read { from, into, .. } => {
                Op::Read { from: further(from), into: further(into), len: (end - start) as u32 }
            }
            Self::FetchAdd { .. } | Self::CompareSwap { .. } => self.op(),
        }
    }
}

struct Held {
    peer: Peer,
    id: WorkId,
    op: HeldOp,
    /// Which bytes of a write or a read have arrived.
    arrived: Vec<bool>,
}

pub(super) struct Stepped<'net> {
    inner: Loopback<'net, PEERS, WORDS>,
    held: VecDeque<Held>,
    straggling: VecDeque<Held>,
    done: VecDeque<Completion>,
    open: PeerSet,
    /// Posts to refuse as if the queue were full.
    pub(super) refusals: u32,
    /// Work takes effect at once, and is answered at once where the poster asks for that.
    pub(super) prompt: bool,
    placement: Placement,
    actions_left: Cell<Option<u32>>,
    dead: Cell<bool>,
}

impl<'net> Stepped<'net> {
    pub(super) fn new(inner: Loopback<'net, PEERS, WORDS>, placement: Placement) -> Self {
        Self {
            placement,
            open: PeerSet::only(inner.me()),
            inner,
            held: VecDeque::new(),
            straggling: VecDeque::new(),
            done: VecDeque::new(),
            refusals: 0,
            prompt: false,
            actions_left: Cell::new(None),
            dead: Cell::new(false),
        }
    }

    /// Nothing takes effect after the next `actions`.
    pub(super) fn die_after(&mut self, actions: u32) {
        self.actions_left.set(Some(actions));
    }

    /// Whether anything was done that did not take effect.
    pub(super) fn is_dead(&self) -> bool {
        self.dead.get()
    }

    fn acts(&self) -> bool {
        match self.actions_left.get() {
            None => return true,
            Some(0) => self.dead.set(true),
            Some(left) => self.actions_left.set(Some(left - 1)),
        }
        !self.dead.get()
    }

    /// The failed pair with `peer` was set up again.
    pub(super) fn reopen(&mut self, peer: Peer) {
        self.open.insert(peer);
    }

    /// Whether posts to `peer` are accepted.
    pub(super) fn is_open(&self, peer: Peer) -> bool {
        self.open.contains(peer)
    }

    /// What is held for `peer`, oldest first.
    pub(super) fn held(&self, peer: Peer) -> usize {
        self.held.iter().filter(|held| held.peer == peer).count()
    }

    /// The oldest work for `peer` takes effect.
    pub(super) fn land(&mut self, peer: Peer) -> bool {
        let Some(mut held) = self.next_held(peer) else {
            return false;
        };
        if let Some(outcome) = self.carry_out(&mut held) {
            self.finish(&held, outcome);
        }
        true
    }

    /// The oldest work for `peer` takes effect and, being an atomic, answers -1.
    pub(super) fn answer_implausibly(&mut self, peer: Peer) -> bool {
        let is_atomic = |held: &Held| matches!(held.op, HeldOp::FetchAdd { .. });
        let first = self.held.iter().find(|held| held.peer == peer);
        let landed = first.is_some_and(is_atomic) && self.land(peer);
        if let (true, Some(last)) = (landed, self.done.back_mut()) {
            last.outcome = last.outcome.map(|_| u64::MAX);
        }
        landed
    }

    /// Of the oldest work for `peer`, a write or a read, those bytes arrive that `arrives` names.
    pub(super) fn tear(&mut self, peer: Peer, arrives: impl Fn(usize) -> bool) {
        let first = self.held.iter().position(|held| held.peer == peer);
        let Some(mut held) = first.and_then(|first| self.held.remove(first)) else {
            return;
        };
        let outcome = self.place(&mut held, arrives);
        self.held.insert(first.unwrap_or(0), held);
        if outcome.is_err() {
            self.lose(peer);
        }
    }

    /// The pair with `peer` fails: its work ends now and may take effect later all the same.
    pub(super) fn fail(&mut self, peer: Peer) {
        self.open.remove(peer);
        while let Some(held) = self.next_held(peer) {
            self.complete(&held, Err(Failure::DeadlinePassed));
            self.straggling.push_back(held);
        }
    }

    /// The process is gone; what it posted may still take effect.
    pub(super) fn linger(&mut self) {
        self.straggling.append(&mut self.held);
    }

    /// Some bytes of the oldest straggler arrive; an atomic takes effect at once.
    pub(super) fn straggle(&mut self, arrives: impl Fn(usize) -> bool) {
        let Some(mut held) = self.straggling.pop_front() else {
            return;
        };
        // Its failure is reported to no caller.
        let _gone = self.place(&mut held, arrives);
        if held.arrived.is_empty() {
            let _gone = self.inner_work(held.peer, held.op.op());
        } else if held.arrived.contains(&false) {
            self.straggling.push_front(held);
        }
    }

    fn next_held(&mut self, peer: Peer) -> Option<Held> {
        let first = self.held.iter().position(|held| held.peer == peer)?;
        self.held.remove(first)
    }

    /// Those bytes arrive that `arrives` names and that have not arrived before; or the words that
    /// begin with them, the last one behind all others (F-14).
    fn place(&mut self, held: &mut Held, arrives: impl Fn(usize) -> bool) -> Result<u64, Failure> {
        let (grain, len) = (self.grain(), held.arrived.len());
        for start in (0..len).step_by(grain) {
            let end = len.min(start + grain);
            let is_early = grain > 1 && end == len && held.arrived[..start].contains(&false);
            if arrives(start) && !held.arrived[start] && !is_early {
                self.inner_work(held.peer, held.op.part(start, grain))?;
                held.arrived[start..end].fill(true);
            }
        }
        Ok(0)
    }

    /// Bytes that arrive at once.
    const fn grain(&self) -> usize {
        match self.placement {
            Placement::Bytes => 1,
            Placement::WholeWords => 8,
        }
    }

    /// `None` if this endpoint dies during it.
    fn carry_out(&mut self, held: &mut Held) -> Option<Result<u64, Failure>> {
        if held.arrived.contains(&true) {
            return Some(self.place(held, |_| true));
        }
        if self.actions_left.get().is_none() || held.arrived.is_empty() {
            return self.acts().then(|| self.inner_work(held.peer, held.op.op()));
        }
        for start in (0..held.arrived.len()).step_by(8) {
            if !self.acts() {
                return None;
            }
            if let Err(failure) = self.inner_work(held.peer, held.op.part(start, 8)) {
                return Some(Err(failure));
            }
        }
        Some(Ok(0))
    }

    fn inner_work(&mut self, peer: Peer, op: Op<'_>) -> Result<u64, Failure> {
        let work = Work { id: WorkId(0), op, flags: CompletionFlags::empty() };
        let mut done = [Completion::NONE];
        match self.inner.post(peer, work) {
            Ok(()) => assert_eq!(self.inner.poll(Instant(0), &mut done), 1),
            Err(PostError::Gone) => return Err(Failure::Gone),
            Err(error) => panic!("{error}"),
        }
        done[0].outcome
    }

    fn finish(&mut self, held: &Held, outcome: Result<u64, Failure>) {
        self.complete(held, outcome);
        if outcome.is_err() {
            self.lose(held.peer);
        }
    }

    fn lose(&mut self, peer: Peer) {
        self.open.remove(peer);
        while let Some(held) = self.next_held(peer) {
            self.complete(&held, Err(Failure::Gone));
        }
    }

    fn complete(&mut self, held: &Held, outcome: Result<u64, Failure>) {
        self.done.push_back(Completion { id: held.id, peer: held.peer, outcome });
    }
}

impl Fabric for Stepped<'_> {
    type Memory = Self;

    fn me(&self) -> Peer {
        self.inner.me()
    }

    fn layout(&self) -> &Layout {
        self.inner.layout()
    }

    fn placement(&self) -> Placement {
        self.placement
    }

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        if !self.open.contains(peer) {
            return Err(PostError::Gone);
        }
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(PostError::Full);
        }
        if self.acts() {
            let op = HeldOp::copy(&work.op);
            let arrived = std::vec![false; op.len()];
            let id = work.id;
            self.held.push_back(Held { peer, id, op, arrived });
            if self.prompt {
                self.land(peer);
            }
        }
        Ok(())
    }

    fn post_now(&mut self, peer: Peer, work: Work<'_>) -> Result<Posted, PostError> {
        let waiting = self.done.len();
        self.post(peer, work)?;
        let answered = self.prompt && self.done.len() > waiting;
        let answer = if answered { self.done.pop_back() } else { None };
        Ok(answer.map_or(Posted::Pending, |completion| Posted::Ended(completion.outcome)))
    }

    fn poll(&mut self, _now: Instant, done: &mut [Completion]) -> usize {
        let count = done.len().min(self.done.len());
        for (place, completion) in done.iter_mut().zip(self.done.drain(..count)) {
            *place = completion;
        }
        count
    }

    fn memory(&self) -> &Self {
        self
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        self.inner.fence(peer)?;
        self.lose(peer);
        Ok(())
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        self.inner.admit(peer, incarnation)?;
        self.open.insert(peer);
        Ok(())
    }
}

impl Memory for Stepped<'_> {
    fn load(&self, region: Region, offset: u32) -> u64 {
        self.inner.memory().load(region, offset)
    }

    fn store(&self, region: Region, offset: u32, value: u64) {
        if self.acts() {
            self.inner.memory().store(region, offset, value);
        }
    }

    fn copy_out(&self, region: Region, offset: u32, into: &mut [u8]) {
        self.inner.memory().copy_out(region, offset, into);
    }

    fn copy_in(&self, region: Region, offset: u32, bytes: &[u8]) {
        for (index, word) in (0u32..).zip(bytes.chunks(8)) {
            if self.acts() {
                self.inner.memory().copy_in(region, offset + index * 8, word);
            }
        }
    }
}

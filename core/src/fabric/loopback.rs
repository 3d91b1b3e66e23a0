//! A fabric in one program's memory, without `std`: several endpoints over one [`Net`].
//!
//! For doc examples, fuzzing, tests and bare-metal programs. Work takes effect inside `post`,
//! under the target's gate, so the contract holds also when endpoints run on several cores;
//! completions wait in a ring of [`DEPTH`].
//!
//! ```
//! use weft_core::fabric::loopback::Net;
//! use weft_core::fabric::{
//!     Access, At, Completion, CompletionFlags, Fabric, Layout, Memory, Op, RegionSpec, Work,
//!     WorkId,
//! };
//! use weft_core::ids::{Incarnation, Peer, PeerSet};
//! use weft_core::time::Instant;
//!
//! let mut layout = Layout::new(2);
//! let access = Access::REMOTE_WRITE;
//! let region = layout.add(RegionSpec { len: 64, access, peers: PeerSet::first(2) })?;
//!
//! let net = Net::<2, 8>::new(layout);
//! let mut writer = net.endpoint(Peer(0), Incarnation(1));
//! let mut reader = net.endpoint(Peer(1), Incarnation(1));
//! writer.admit(Peer(1), Incarnation(1))?;
//! reader.admit(Peer(0), Incarnation(1))?;
//!
//! let op = Op::Write { to: At { region, offset: 8 }, bytes: b"one-side" };
//! writer.post(Peer(1), Work { id: WorkId(7), op, flags: CompletionFlags::empty() })?;
//!
//! let mut done = [Completion::NONE; 4];
//! assert_eq!(writer.poll(Instant(0), &mut done), 1);
//! assert_eq!((done[0].id, done[0].outcome), (WorkId(7), Ok(0)));
//! assert_eq!(reader.memory().load(region, 8), u64::from_le_bytes(*b"one-side"));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

use crate::sync::AtomicU64;

use heapless::Deque;
use spin::Mutex;

use super::{
    Completion, CompletionFlags, Fabric, Failure, FenceError, Layout, Op, Placement, PostError,
    Region, WordMemory, Words, Work,
};
use crate::ids::{Incarnation, Peer};
use crate::time::Instant;

/// How many completions an endpoint holds before `post` reports [`PostError::Full`].
pub const DEPTH: usize = 32;

/// The memory of `PEERS` endpoints with `WORDS` 8-byte words each.
pub struct Net<const PEERS: usize, const WORDS: usize> {
    layout: Layout,
    memory: [[AtomicU64; WORDS]; PEERS],
    gates: [Mutex<Gate<PEERS>>; PEERS],
}

/// Whom an endpoint lets in. Held while foreign work takes effect, so `fence` waits for it.
struct Gate<const PEERS: usize> {
    alive: bool,
    incarnation: Incarnation,
    admitted: [Incarnation; PEERS],
    /// The earliest incarnation of each peer that may still be admitted.
    earliest: [Incarnation; PEERS],
}

/// One incarnation of an endpoint of a [`Net`].
pub struct Loopback<'net, const PEERS: usize, const WORDS: usize> {
    net: &'net Net<PEERS, WORDS>,
    me: Peer,
    incarnation: Incarnation,
    open: [Incarnation; PEERS],
    memory: LoopbackMemory<'net>,
    done: Deque<Completion, DEPTH>,
}

/// An endpoint's own regions in a [`Net`].
pub struct LoopbackMemory<'net> {
    layout: &'net Layout,
    words: Words<'net>,
}

impl<const PEERS: usize, const WORDS: usize> Net<PEERS, WORDS> {
    /// Zeroed memory for `layout` at every endpoint.
    ///
    /// # Panics
    /// When `layout` is for another number of peers or needs more than `WORDS` words.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        assert!(usize::from(layout.peers()) == PEERS, "the layout is for other peers");
        assert!(layout.total_len() <= WORDS as u64 * 8, "the layout needs more words");
        Self {
            layout,
            memory: core::array::from_fn(|_| core::array::from_fn(|_| AtomicU64::new(0))),
            gates: core::array::from_fn(|_| {
                Mutex::new(Gate {
                    alive: false,
                    incarnation: Incarnation(0),
                    admitted: [Incarnation(0); PEERS],
                    earliest: [Incarnation(1); PEERS],
                })
            }),
        }
    }

    /// The endpoint `me`, starting as `incarnation`. An earlier handle of the same
    /// endpoint is dead from now on; the memory stays.
    ///
    /// # Panics
    /// When there is no such peer, or `incarnation` is not later than its last one.
    pub fn endpoint(&self, me: Peer, incarnation: Incarnation) -> Loopback<'_, PEERS, WORDS> {
        let mut gate = self.gates[me.index()].lock();
        assert!(incarnation > gate.incarnation, "an incarnation begins after the last one");
        gate.alive = true;
        gate.incarnation = incarnation;
        gate.earliest = [Incarnation(1); PEERS];
        gate.admitted = [Incarnation(0); PEERS];
        gate.admitted[me.index()] = incarnation;
        let mut open = [Incarnation(0); PEERS];
        open[me.index()] = incarnation;
        let memory = self.memory(me);
        Loopback { net: self, me, incarnation, open, memory, done: Deque::new() }
    }

    /// The memory of `peer`, whichever incarnation uses it.
    ///
    /// # Panics
    /// When there is no such peer.
    pub fn memory(&self, peer: Peer) -> LoopbackMemory<'_> {
        LoopbackMemory { layout: &self.layout, words: Words(&self.memory[peer.index()]) }
    }

    /// Ends the incarnation of `peer`: every later post to it fails and loses the peer.
    ///
    /// # Panics
    /// When there is no such peer.
    pub fn lose(&self, peer: Peer) {
        self.gates[peer.index()].lock().alive = false;
    }

    fn region(&self, peer: Peer, region: Region) -> Words<'_> {
        self.memory(peer).region(region)
    }
}

impl<'net> LoopbackMemory<'net> {
    fn region(&self, region: Region) -> Words<'net> {
        let len = self.layout.spec(region).map_or(0, |spec| spec.len as usize);
        #[expect(clippy::cast_possible_truncation, reason = "bounded by WORDS at construction")]
        self.words.range(self.layout.offset(region) as usize, len)
    }
}

impl<const PEERS: usize, const WORDS: usize> Loopback<'_, PEERS, WORDS> {
    /// Carries `op` out in the memory of `peer` and returns the old value of an atomic.
    fn carry_out(&self, peer: Peer, op: &Op<'_>) -> u64 {
        let region = |at: Region| self.net.region(peer, at);
        let mine = |at: Region| self.net.region(self.me, at);
        match *op {
            Op::Write { to, bytes } => {
                region(to.region).copy_in(to.offset as usize, bytes);
                0
            }
            Op::WriteFrom { to, from, len } => {
                let source = (mine(from.region), from.offset as usize);
                copy(source, (region(to.region), to.offset as usize), len as usize);
                0
            }
            Op::Read { from, into, len } => {
                let target = (mine(into.region), into.offset as usize);
                copy((region(from.region), from.offset as usize), target, len as usize);
                0
            }
            Op::FetchAdd { at, add } => region(at.region).fetch_add(at.offset as usize, add),
            Op::CompareSwap { at, expected, new } => {
                region(at.region).compare_swap(at.offset as usize, expected, new)
            }
        }
    }

    /// Carries `op` out if the incarnation of the peer that was admitted here still runs, has
    /// admitted this incarnation, and grants the right.
    fn attempt(&mut self, peer: Peer, op: &Op<'_>) -> Result<u64, Failure> {
        let gate = self.net.gates[peer.index()].lock();
        let reached = gate.alive && gate.incarnation == self.open[peer.index()];
        if !reached || gate.admitted[self.me.index()] != self.incarnation {
            drop(gate);
            self.open[peer.index()] = Incarnation(0);
            return Err(Failure::Gone);
        }
        let region = op.target().0.region;
        if !self.net.layout.allows(region, self.me, op.needs()) {
            return Err(Failure::AccessDenied);
        }
        Ok(self.carry_out(peer, op))
    }
}

/// Copies between two runs of words, through private memory, 64 bytes at a time.
fn copy(from: (Words<'_>, usize), to: (Words<'_>, usize), len: usize) {
    let mut buffer = [0; 64];
    let mut done = 0;
    while done < len {
        let chunk = &mut buffer[..(len - done).min(64)];
        from.0.copy_out(from.1 + done, chunk);
        to.0.copy_in(to.1 + done, chunk);
        done += chunk.len();
    }
}

impl WordMemory for LoopbackMemory<'_> {
    fn words(&self, region: Region) -> Words<'_> {
        self.region(region)
    }
}

impl<'net, const PEERS: usize, const WORDS: usize> Fabric for Loopback<'net, PEERS, WORDS> {
    type Memory = LoopbackMemory<'net>;

    fn me(&self) -> Peer {
        self.me
    }

    fn layout(&self) -> &Layout {
        &self.net.layout
    }

    fn placement(&self) -> Placement {
        Placement::WholeWords
    }

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        work.op.check(&self.net.layout, peer).map_err(PostError::Rejected)?;
        if self.open[peer.index()] == Incarnation(0) {
            return Err(PostError::Gone);
        }
        if self.done.is_full() {
            return Err(PostError::Full);
        }
        let outcome = self.attempt(peer, &work.op);
        if outcome.is_err() || !work.flags.contains(CompletionFlags::QUIET) {
            // There is room: looked at above, and nothing else fills the ring.
            let _ = self.done.push_back(Completion { id: work.id, peer, outcome });
        }
        Ok(())
    }

    fn poll(&mut self, _now: Instant, done: &mut [Completion]) -> usize {
        let mut count = 0;
        while let Some(place) = done.get_mut(count) {
            let Some(completion) = self.done.pop_front() else {
                break;
            };
            *place = completion;
            count += 1;
        }
        count
    }

    fn memory(&self) -> &Self::Memory {
        &self.memory
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        if peer.index() >= PEERS || peer == self.me {
            return Err(FenceError::UnknownPeer);
        }
        self.open[peer.index()] = Incarnation(0);
        let mut gate = self.net.gates[self.me.index()].lock();
        // The memory belongs to a later incarnation of this endpoint, which admits peers itself.
        if gate.incarnation != self.incarnation {
            return Err(FenceError::StillReaching);
        }
        let admitted = core::mem::take(&mut gate.admitted[peer.index()]);
        if admitted != Incarnation(0) {
            gate.earliest[peer.index()] = admitted.next();
        }
        Ok(())
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        if peer.index() >= PEERS || peer == self.me {
            return Err(FenceError::UnknownPeer);
        }
        let mut gate = self.net.gates[self.me.index()].lock();
        if gate.incarnation != self.incarnation || incarnation < gate.earliest[peer.index()] {
            return Err(FenceError::NotReady);
        }
        gate.earliest[peer.index()] = incarnation;
        gate.admitted[peer.index()] = incarnation;
        self.open[peer.index()] = incarnation;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

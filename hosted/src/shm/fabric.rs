//! The fabric over shared memory: work takes effect inside `post`, by the poster's own hand.
//!
//! How the contract is kept where it is not obvious:
//!
//! | rule | how |
//! |---|---|
//! | F-1 | a post is complete when it returns, and each copy begins with a release fence |
//! | F-5 | the rights are checked before posting, and the pages of a region are mapped only by those who have one, read-only if that is the right |
//! | F-6 | a peer's death is noticed by its pidfd, looked at once a millisecond or when the owner says so, never by its pid |
//! | F-9 | the gate for the peer is closed, which every honest poster sees before each post; and if the peer lives in another process, that process is killed and waited for, since its mappings cannot be taken away. If it cannot be killed within a second, `fence` fails with `StillReaching`: the gate stays closed, its lane is not read, and its tickets are waited for |
//! | F-12 | nothing stays open: work is done when posted |
//! | F-13 | the memory belongs to the node's supervisor, so it is reached while the component is stopped |
//! | F-14 | a write from bytes is copied word by word, the last word behind a release fence |

use std::collections::VecDeque;
use std::time::Duration;

use weft_core::fabric::{
    Access, At, Completion, CompletionFlags, Fabric, Failure, FenceError, INLINE_LEN, Layout, Op,
    Placement, PostError, Posted, WordMemory, Words, Work, WorkId,
};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::{self, Instant};

use super::bulk;
use super::checksum;
use super::node_memory::{OwnMemory, RemoteMemory, RemoteRegion};
use super::wait::Wait;
use crate::process::{Liveness, Pidfd};

/// Completions held before `post` reports [`PostError::Full`]; the ends of peers have room of their
/// own.
const DEPTH: usize = 64;
/// How often dead peers are looked for.
const WATCH_EVERY: time::Duration = time::Duration::from_millis(1);
/// How long a killed process may take to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// The outcome of accepted work, or why it was not accepted.
type Attempt = Result<Result<u64, Failure>, PostError>;

/// A peer as this endpoint reaches it.
#[derive(Debug)]
struct PeerLink {
    memory: RemoteMemory,
    /// The process that posts for the peer; none when it runs in this process.
    process: Option<Pidfd>,
    open: bool,
    /// Whether its process was killed and waited for.
    is_killed: bool,
}

/// Which incarnations of a peer were admitted and fenced, whatever its link.
#[derive(Clone, Copy, Debug, Default)]
struct AdmissionRecord {
    admitted: Incarnation,
    fenced: Incarnation,
}

/// One endpoint over shared memory.
#[derive(Debug)]
pub struct ShmFabric {
    me: Peer,
    incarnation: Incarnation,
    layout: Layout,
    own: OwnMemory,
    links: Vec<Option<PeerLink>>,
    records: Vec<AdmissionRecord>,
    done: VecDeque<Completion>,
    /// Whether peers may sleep, so that work which says so rings their bell.
    peers_sleep: bool,
    watch_at: Instant,
    /// Where a test stops a writer: behind its look at the gate, before its copy.
    #[cfg(test)]
    pub(super) stall: WriteStall,
}

/// What a test does there with each write.
#[cfg(test)]
pub(super) struct WriteStall(pub(super) Box<dyn Fn(&Op<'_>) + Send>);

#[cfg(test)]
impl std::fmt::Debug for WriteStall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stall")
    }
}

impl ShmFabric {
    /// The endpoint `me` in incarnation `incarnation`, over its own memory; no peer is admitted.
    #[must_use]
    pub fn new(
        me: Peer,
        incarnation: Incarnation,
        layout: Layout,
        own: OwnMemory,
        wait: Wait,
    ) -> Self {
        for peer in (0..layout.peers()).map(Peer) {
            own.set_gate(peer, Incarnation(0));
        }
        let links = (0..layout.peers()).map(|_| None).collect();
        let records = vec![AdmissionRecord::default(); usize::from(layout.peers())];
        let done = VecDeque::with_capacity(DEPTH + records.len());
        let peers_sleep = wait.needs_bell();
        let watch_at = Instant(0);
        Self {
            me,
            incarnation,
            layout,
            own,
            links,
            records,
            done,
            peers_sleep,
            watch_at,
            #[cfg(test)]
            stall: WriteStall(Box::new(|_| ())),
        }
    }

    /// Where `peer` lies and which process posts for it, to be admitted by the next `admit`. What
    /// was known of an earlier incarnation is forgotten; fence it first.
    pub fn connect(&mut self, peer: Peer, memory: RemoteMemory, process: Option<Pidfd>) {
        self.forget_end(peer);
        if let Some(link) = self.links.get_mut(peer.index()) {
            *link = Some(PeerLink { memory, process, open: false, is_killed: false });
        }
    }

    /// Leaves it to the caller to [watch](Self::watch): `poll` makes no system call any more.
    pub fn watch_on_demand(&mut self) {
        self.watch_at = Instant(u64::MAX);
    }

    /// Closes the pair with every peer whose process has ended, and reports each (F-6).
    #[inline(never)]
    pub fn watch(&mut self) {
        for (peer, link) in (0..).map(Peer).zip(&mut self.links) {
            let Some(link) = link.as_mut().filter(|link| link.open) else { continue };
            let Some(process) = &link.process else { continue };
            if !matches!(process.is_dead(), Ok(true)) {
                continue;
            }
            link.open = false;
            // One for each peer fits, and is not polled after its fence.
            self.done.push_back(gone(peer));
        }
    }

    /// Moves completions to `done`; how many.
    #[inline(never)]
    fn hand_out(&mut self, done: &mut [Completion]) -> usize {
        let count = done.len().min(self.done.len());
        for (place, completion) in done.iter_mut().zip(self.done.drain(..count)) {
            *place = completion;
        }
        count
    }

    /// The end of `peer`, if it was noticed and not polled, is no news any more.
    fn forget_end(&mut self, peer: Peer) {
        self.done.retain(|completion| *completion != gone(peer));
    }

    /// This endpoint's bell.
    #[must_use]
    pub const fn own(&self) -> &OwnMemory {
        &self.own
    }

    /// Carries `work` out, and wakes `peer` if the work says so.
    // Machines name the operation where they post it, so each call folds to one arm of it.
    #[inline(always)]
    fn attempt(&self, peer: Peer, work: &Work<'_>) -> Attempt {
        let outcome = match work.op {
            Op::Write { to, bytes } => match self.write_at_once(peer, to, bytes) {
                Some(()) => Ok(0),
                None => self.write_checked(peer, to, bytes)?,
            },
            Op::FetchAdd { at, add } => match self.add_at_once(peer, at, add) {
                Some(old) => Ok(old),
                None => self.add_checked(peer, at, add)?,
            },
            Op::WriteFrom { .. } | Op::Read { .. } | Op::CompareSwap { .. } => {
                self.check_and_carry_out(peer, &work.op)?
            }
        };
        if self.peers_sleep
            && work.flags.contains(CompletionFlags::WAKE)
            && let Some(link) = self.link(peer)
        {
            // A bell that cannot be rung is a peer that wakes by its own timeout.
            let _ = link.memory.bell().ring_if_armed();
        }
        Ok(outcome)
    }

    /// Writes `bytes` to `to`, if nothing speaks against it; what does says [`Self::accept`].
    #[inline(always)]
    fn write_at_once(&self, peer: Peer, to: At, bytes: &[u8]) -> Option<()> {
        let link = self.open_link(peer)?;
        let words = link.memory.granted(to.region, Access::REMOTE_WRITE)?;
        if !bytes.len().is_multiple_of(8) || bytes.len() > INLINE_LEN {
            return None;
        }
        let target = words.starting_at(to.offset as usize)?.0.get(..bytes.len() / 8)?;
        #[cfg(test)]
        (self.stall.0)(&Op::Write { to, bytes });
        Words(target).copy_in(0, bytes);
        Some(())
    }

    /// Adds to the word at `at`, if nothing speaks against it; what does says [`Self::accept`].
    #[inline(always)]
    fn add_at_once(&self, peer: Peer, at: At, add: u64) -> Option<u64> {
        let link = self.open_link(peer)?;
        let words = link.memory.granted(at.region, Access::REMOTE_ATOMIC)?;
        let is_there = at.offset.is_multiple_of(8) && (at.offset as usize / 8) < words.0.len();
        if !is_there {
            return None;
        }
        #[cfg(test)]
        (self.stall.0)(&Op::FetchAdd { at, add });
        Some(words.fetch_add(at.offset as usize, add))
    }

    #[cold]
    fn write_checked(&self, peer: Peer, to: At, bytes: &[u8]) -> Attempt {
        self.check_and_carry_out(peer, &Op::Write { to, bytes })
    }

    #[cold]
    fn add_checked(&self, peer: Peer, at: At, add: u64) -> Attempt {
        self.check_and_carry_out(peer, &Op::FetchAdd { at, add })
    }

    /// Carries `op` out if the rights allow it.
    #[inline(always)]
    fn check_and_carry_out(&self, peer: Peer, op: &Op<'_>) -> Attempt {
        let is_allowed = self.accept(peer, op)?;
        #[cfg(test)]
        (self.stall.0)(op);
        Ok(match is_allowed {
            true => self.carry_out(peer, op),
            false => Err(Failure::AccessDenied),
        })
    }

    /// Whether the rights allow `op` for `peer`, if it can be attempted at all.
    #[inline(always)]
    fn accept(&self, peer: Peer, op: &Op<'_>) -> Result<bool, PostError> {
        let target = op.check(&self.layout, peer).map_err(PostError::Rejected)?;
        if !self.is_open(peer) {
            return Err(PostError::Gone);
        }
        Ok(target.allows(self.me, op.needs()))
    }

    /// Carries `op` out. The rights were checked, so a barred region cannot come up.
    #[inline(always)]
    fn carry_out(&self, peer: Peer, op: &Op<'_>) -> Result<u64, Failure> {
        let denied = Failure::AccessDenied;
        let theirs = |at: At| match self.link(peer) {
            None => Some(self.own.words(at.region)),
            Some(link) => link.memory.granted(at.region, op.needs()),
        };
        match *op {
            Op::Write { to, bytes } => {
                theirs(to).ok_or(denied)?.copy_in(to.offset as usize, bytes);
                Ok(0)
            }
            Op::WriteFrom { to, from, len } => {
                let source = self.own.words(from.region);
                let target = theirs(to).ok_or(denied)?;
                let whole = whole_words(from, to, len);
                let words = source.range(from.offset as usize, whole);
                let range = target.range(to.offset as usize, whole);
                if whole > 0 && !bulk::copy(range.0, words.0) {
                    range.copy_from(words);
                }
                in_chunks(len, whole, |done, chunk| {
                    source.copy_out(from.offset as usize + done, chunk);
                    target.copy_in(to.offset as usize + done, chunk);
                });
                Ok(0)
            }
            Op::Read { from, into, len } => self.read(peer, from, into, len),
            Op::FetchAdd { at, add } => {
                Ok(theirs(at).ok_or(denied)?.fetch_add(at.offset as usize, add))
            }
            Op::CompareSwap { at, expected, new } => {
                Ok(theirs(at).ok_or(denied)?.compare_swap(at.offset as usize, expected, new))
            }
        }
    }

    fn read(&self, peer: Peer, from: At, into: At, len: u32) -> Result<u64, Failure> {
        let target: Words<'_> = self.own.words(into.region);
        let mut whole = 0;
        if let Some(RemoteRegion::ReadOnly(region)) =
            self.link(peer).map(|link| link.memory.region(from.region))
        {
            whole = whole_words(from, into, len);
            let target = target.range(into.offset as usize, whole);
            region.copy_words(from.offset as usize, target);
        }
        let mut granted = true;
        in_chunks(len, whole, |done, chunk| {
            let offset = from.offset as usize + done;
            match self.link(peer) {
                None => self.own.words(from.region).copy_out(offset, chunk),
                Some(link) => granted &= link.memory.region(from.region).copy_out(offset, chunk),
            }
            target.copy_in(into.offset as usize + done, chunk);
        });
        granted.then_some(0).ok_or(Failure::AccessDenied)
    }

    #[inline]
    fn link(&self, peer: Peer) -> Option<&PeerLink> {
        self.links[peer.index()].as_ref()
    }

    /// The link to `peer`, if it was admitted here and admits this incarnation there.
    #[inline(always)]
    fn open_link(&self, peer: Peer) -> Option<&PeerLink> {
        let link = self.links.get(peer.index())?.as_ref()?;
        let is_open = link.open && link.memory.gate(self.me) == u64::from(self.incarnation.0);
        is_open.then_some(link)
    }

    /// Whether work for `peer` is accepted.
    #[inline]
    fn is_open(&self, peer: Peer) -> bool {
        peer == self.me || self.open_link(peer).is_some()
    }
}

/// That `peer` has ended.
const fn gone(peer: Peer) -> Completion {
    Completion { id: WorkId::GONE, peer, outcome: Err(Failure::Gone) }
}

/// How many of `len` bytes are whole words at both ends, from the first byte on.
fn whole_words(one: At, other: At, len: u32) -> usize {
    let are_aligned = (one.offset | other.offset).is_multiple_of(8);
    if are_aligned { len as usize & !7 } else { 0 }
}

/// Goes over the bytes from `done` to `len` in chunks of private memory.
fn in_chunks(len: u32, mut done: usize, mut step: impl FnMut(usize, &mut [u8])) {
    let mut buffer = [0; 256];
    while done < len as usize {
        let chunk = &mut buffer[..(len as usize - done).min(256)];
        step(done, chunk);
        done += chunk.len();
    }
}

impl Fabric for ShmFabric {
    type Memory = OwnMemory;

    fn me(&self) -> Peer {
        self.me
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    fn placement(&self) -> Placement {
        Placement::WholeWords
    }

    #[inline(always)]
    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        if self.done.len() >= DEPTH {
            return Err(self.accept(peer, &work.op).err().unwrap_or(PostError::Full));
        }
        let outcome = self.attempt(peer, &work)?;
        if outcome.is_err() || !work.flags.contains(CompletionFlags::QUIET) {
            self.done.push_back(Completion { id: work.id, peer, outcome });
        }
        Ok(())
    }

    #[inline(always)]
    fn post_now(&mut self, peer: Peer, work: Work<'_>) -> Result<Posted, PostError> {
        self.attempt(peer, &work).map(Posted::Ended)
    }

    #[inline]
    fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        if now >= self.watch_at {
            self.watch_at = now.after(WATCH_EVERY);
            self.watch();
        }
        if self.done.is_empty() { 0 } else { self.hand_out(done) }
    }

    fn memory(&self) -> &Self::Memory {
        &self.own
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        if peer.0 >= self.layout.peers() || peer == self.me {
            return Err(FenceError::UnknownPeer);
        }
        self.own.set_gate(peer, Incarnation(0));
        self.forget_end(peer);
        let record = &mut self.records[peer.index()];
        record.fenced = record.admitted;
        let Some(link) = &mut self.links[peer.index()] else { return Ok(()) };
        link.open = false;
        let Some(process) = &link.process else { return Ok(()) };
        // A process that refuses the signal is found alive by the wait.
        let _ = process.kill();
        // Fences that fail are repeated by a loop that has other peers: the first one alone waits.
        let is_killed = std::mem::replace(&mut link.is_killed, true);
        match process.wait_dead(if is_killed { Duration::ZERO } else { KILL_TIMEOUT }) {
            Ok(Liveness::Dead) => Ok(()),
            Ok(Liveness::Alive) | Err(_) => Err(FenceError::StillReaching),
        }
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        if peer.0 >= self.layout.peers() || peer == self.me {
            return Err(FenceError::UnknownPeer);
        }
        self.forget_end(peer);
        let record = &mut self.records[peer.index()];
        let is_later = incarnation > record.fenced && incarnation >= record.admitted;
        match &mut self.links[peer.index()] {
            Some(link) if is_later => link.open = true,
            Some(_) | None => return Err(FenceError::NotReady),
        }
        record.admitted = incarnation;
        self.own.set_gate(peer, incarnation);
        Ok(())
    }

    #[inline]
    fn crc32c(&self, bytes: &[u8]) -> u32 {
        checksum::crc32c(bytes)
    }
}

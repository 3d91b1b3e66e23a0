//! What the members show one another, in memory that all of them map.
//!
//! ```text
//!   line 0: struck, decided, over    line 1 + m: delivered, its time, received of member m
//! ```

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use weft_core::ids::Peer;

use crate::error::BenchError;
use weft::shm::{Mapping, Segment};

/// Words of a line: two cache lines, since processors fetch the neighbour along.
const LINE_WORDS: usize = 16;

/// The board as one member sees it.
#[derive(Debug)]
pub(super) struct GroupBoard {
    words: Mapping,
    members: u16,
}

impl GroupBoard {
    const fn len(members: u16) -> usize {
        (1 + members as usize) * LINE_WORDS * 8
    }

    pub(super) fn segment(members: u16) -> Result<Segment, BenchError> {
        Ok(Segment::create("weft-bench-board", Self::len(members))?)
    }

    pub(super) fn map(fd: impl AsFd, members: u16) -> Result<Self, BenchError> {
        Ok(Self { words: Mapping::writable(fd.as_fd(), Self::len(members))?, members })
    }

    fn word(&self, line: usize, word: usize) -> &AtomicU64 {
        &self.words.words()[line * LINE_WORDS + word]
    }

    /// The last member stops here.
    pub(super) fn note_struck(&self) {
        self.word(0, 0).store(1, Ordering::Release);
    }

    pub(super) fn is_struck(&self) -> bool {
        self.word(0, 0).load(Ordering::Acquire) == 1
    }

    /// The removal of the last member is decided.
    pub(super) fn note_decided(&self) {
        self.word(0, 1).store(1, Ordering::Release);
    }

    pub(super) fn is_decided(&self) -> bool {
        self.word(0, 1).load(Ordering::Acquire) == 1
    }

    pub(super) fn note_over(&self) {
        self.word(0, 2).store(1, Ordering::Release);
    }

    pub(super) fn is_over(&self) -> bool {
        self.word(0, 2).load(Ordering::Relaxed) == 1
    }

    /// `member` has received so many bytes of the present message.
    pub(super) fn note_received(&self, member: usize, bytes: u64) {
        self.word(1 + member, 2).store(bytes, Ordering::Release);
    }

    /// `member` has all of message `seq`, since `at_ns`.
    pub(super) fn note_delivered(&self, member: usize, seq: u64, at_ns: u64) {
        self.word(1 + member, 1).store(at_ns, Ordering::Relaxed);
        self.word(1 + member, 0).store(seq, Ordering::Release);
    }

    /// The members that receive and have not stopped.
    fn receivers(&self) -> impl Iterator<Item = usize> + use<> {
        1..usize::from(self.members) - usize::from(self.is_struck())
    }

    /// When the last member delivered message `seq`, once all have.
    pub(super) fn delivered_by_all(&self, seq: u64) -> Option<u64> {
        let shown = |member, word, order| self.word(1 + member, word).load(order);
        let all = self.receivers().all(|member| shown(member, 0, Ordering::Acquire) >= seq);
        let times = self.receivers().map(|member| shown(member, 1, Ordering::Relaxed));
        all.then(|| times.max().unwrap_or_default())
    }

    pub(super) fn is_received(&self, bytes: u64) -> bool {
        let received = |member| self.word(1 + member, 2).load(Ordering::Acquire);
        self.receivers().all(|member| received(member) >= bytes)
    }

    pub(super) const fn last(&self) -> Peer {
        Peer(self.members - 1)
    }
}

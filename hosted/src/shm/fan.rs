//! One writer and many readers on one host: each message to all of them, through one ring.
//!
//! ```text
//!   writer ── slot, then head ──▶ [ ring, which readers map read-only ] ──▶ reader: copies it out
//!     │ ── wake ─────────────────────────────────────────────────────────────▶ │
//!     └ room ◀───── [ its count, which the writer maps read-only ] ◀── counts ─┘
//! ```
//!
//! The writer uses a slot again once each reader has counted past what is in it.
//!
//! **A reader that dies**, wherever it is, holds up no message: the writer has its pidfd, which is
//! readable once no thread of that process reaches the ring any more. The wait for room ends with
//! it, and [`FanWriter::send`] returns its name. A reader that lives and does not read is waited
//! for and named ([`FanError::Full`]), never skipped: no timeout decides that a process is dead.
//! **A writer that dies** ends its readers with an error ([`FanError::WriterEnded`]), after what it
//! had published: a slot becomes visible with the head, so none is read that is half written.
//!
//! Each side maps what the other writes read-only, copies it out and checks it. Readers join at any
//! time, by the path of a Unix socket, and read what is sent from then on.
//!
//! What this does not do: it crosses no host, restarts no process, and defends neither side against
//! a process of the same user that means harm ([`super`]).

mod error;
mod reader;
mod writer;

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use serde::{Deserialize, Serialize};

pub use error::FanError;
pub use reader::FanReader;
pub use writer::FanWriter;

use super::{Segment, SegmentError};

/// The most readers of a writer: each costs it four descriptors.
const READERS_MAX: usize = 128;
/// The longest name of a reader, in bytes.
const NAME_MAX: usize = 64;
const SLOTS_MAX: usize = 1 << 16;
const MESSAGE_LEN_MAX: usize = 1 << 30;

/// Both sides lay the ring out alike.
const VERSION: u32 = 1;

/// How many messages of which length the ring holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanPlan {
    /// How many messages a reader may be behind.
    pub slots: usize,
    /// The longest message, in bytes.
    pub message_len: usize,
}

impl FanPlan {
    /// In the ring: how many messages were published.
    const HEAD: usize = 0;
    /// In the ring: whether the writer has closed it.
    const CLOSED: usize = 8;
    const FIRST: usize = 64;
    /// In a slot: number of the message, from 1; its length; its bytes.
    const LEN: usize = 8;
    const BYTES: usize = 16;

    /// Length of a reader's segment, of which the first word is its count.
    const COUNT_LEN: usize = 4096;

    const fn check(self) -> Result<Self, FanError> {
        let Self { slots, message_len } = self;
        if slots == 0 || slots > SLOTS_MAX || message_len > MESSAGE_LEN_MAX {
            return Err(FanError::Plan { slots, message_len });
        }
        Ok(self)
    }

    const fn slot_len(self) -> usize {
        Self::BYTES + self.message_len.next_multiple_of(Segment::WORD_LEN)
    }

    const fn ring_len(self) -> usize {
        Self::FIRST + self.slots * self.slot_len()
    }

    /// Where message number `seq`, from 0, lies.
    const fn slot(self, seq: u64) -> usize {
        Self::FIRST + (seq % self.slots as u64) as usize * self.slot_len()
    }
}

/// What a reader sends first, with its count to be mapped read-only, and its pidfd.
#[derive(Debug, Serialize, Deserialize)]
struct JoinRequest {
    version: u32,
    name: String,
}

/// What the writer answers: with the ring to be mapped read-only, both events, and its pidfd.
#[derive(Debug, Serialize, Deserialize)]
enum JoinAnswer {
    Joined { plan: FanPlan, next: u64 },
    OtherVersion { version: u32 },
    NameInUse,
    ReadersFull,
}

/// What a reader sends last.
#[derive(Debug, Serialize, Deserialize)]
struct ReaderLeft;

/// What the other side waits for: a counter in the kernel that is readable unless it is zero.
#[derive(Debug)]
struct EventCounter(OwnedFd);

impl EventCounter {
    fn new() -> Result<Self, SegmentError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        eventfd(0, flags).map(Self).map_err(SegmentError::os("eventfd"))
    }

    /// To be called behind what it gives notice of.
    fn give(&self) {
        // A counter that is full is readable as well.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// To be called ahead of the look for what it gives notice of.
    fn clear(&self) {
        // It is zero already where another notice was not given yet.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for EventCounter {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests;

//! The lane: one writer, one reader, a ring in the reader's memory.
//!
//! ```text
//!  writer's memory                     reader's memory, writable by the writer alone
//!  ┌────────┐                          ┌────────┬──────┬──────┬─ … ─┬──────┐
//!  │ credit │◀── taken, half a ring ── │ pulse  │ slot │ slot │     │ slot │
//!  └────────┘    at the latest         └────────┴──────┴──────┴─ … ─┴──────┘
//!       └──────── one write a message ─────────────▲
//! ```
//!
//! One write a message and no atomics. The slot is the mailbox's: its epoch is the pass over the
//! ring, its ticket the index. A full lane refuses ([`SendError::Full`]); no other peer's
//! traffic can fill it, so lanes carry control messages.
//!
//! A lane lasts as long as its two ends: when either starts again, both begin again. Passes are
//! counted from a number made of both incarnations, so what an earlier pair left in the ring is
//! never read as new. Messages that were not taken by then are lost with the incarnation that
//! they were meant for.
//!
//! Specification: `core/src/mailbox/SPEC.md`, section Lane.

mod mutants;
mod pulse;
mod reader;
mod writer;

pub use mutants::MUTANTS;
pub use pulse::{PULSE_LEN, is_pulse};
pub use reader::{LaneMessage, LaneReader};
pub use writer::{LaneWriter, SendError};

use core::fmt;

use crate::fabric::{At, INLINE_LEN, Inbound, Layout, LayoutError};
use crate::ids::{Incarnation, PeerSet};
use crate::wire::slot::{Slot, Stamp, TRAILER_LEN, used};

/// The machine number in the names of a lane's works.
pub const LANE_WORK: u8 = 3;

/// The longest lane message in bytes.
pub const MESSAGE_LEN_MAX: u16 = 1000;

/// The largest number of slots of a ring.
pub const SLOTS_MAX: u32 = 1 << 16;

/// The credit and the pulse stand in the first cache line of what a peer writes.
const SLOTS_START: u32 = 64;

const _: () = assert!(used(MESSAGE_LEN_MAX as usize) <= INLINE_LEN);

/// The sizes of all lanes of a cluster. All members have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    peers: u16,
    slots: u32,
    message_len: u16,
}

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Peers must be 1 to 64.
    Peers(u16),
    /// Slots must be a power of two from 2 to [`SLOTS_MAX`].
    Slots(u32),
    /// A message must be 1 to [`MESSAGE_LEN_MAX`] bytes.
    MessageLen(u16),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peers(n) => write!(f, "{n} peers; lanes join 1 to {}", PeerSet::CAPACITY),
            Self::Slots(n) => write!(f, "{n} slots; want a power of two from 2 to {SLOTS_MAX}"),
            Self::MessageLen(n) => write!(f, "messages of {n} bytes; want 1 to {MESSAGE_LEN_MAX}"),
        }
    }
}

impl core::error::Error for ConfigError {}

/// What each peer writes: its credit for the lane the other way, its pulse and its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Regions(Inbound);

impl Config {
    /// Lanes between `peers` endpoints with `slots` slots for messages of up to `message_len`.
    ///
    /// # Errors
    /// [`ConfigError`] names the value and its limit.
    pub const fn new(peers: u16, slots: u32, message_len: u16) -> Result<Self, ConfigError> {
        if peers == 0 || peers as usize > PeerSet::CAPACITY {
            return Err(ConfigError::Peers(peers));
        }
        if slots < 2 || slots > SLOTS_MAX || !slots.is_power_of_two() {
            return Err(ConfigError::Slots(slots));
        }
        if message_len == 0 || message_len > MESSAGE_LEN_MAX {
            return Err(ConfigError::MessageLen(message_len));
        }
        Ok(Self { peers, slots, message_len })
    }

    /// How many endpoints the lanes join.
    #[must_use]
    pub const fn peers(&self) -> u16 {
        self.peers
    }

    /// Slots of each ring.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// The longest message in bytes.
    #[must_use]
    pub const fn message_len(&self) -> u16 {
        self.message_len
    }

    /// Adds a ring, a credit and a pulse that each peer alone may write to `layout`.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn add_regions(&self, layout: &mut Layout) -> Result<Regions, LayoutError> {
        layout.add_inbound(SLOTS_START + self.slots * self.stride()).map(Regions)
    }

    const fn stride(&self) -> u32 {
        (TRAILER_LEN as u32 + self.message_len as u32).next_multiple_of(32)
    }

    /// Where message number `index` of a session lies in the lane at `start`.
    fn slot(&self, start: At, session: u32, index: u64) -> Slot {
        #[expect(clippy::cast_possible_truncation, reason = "passes wrap, slots are masked")]
        let (pass, ticket) =
            ((index >> self.slots.trailing_zeros()) as u32, index as u32 & (self.slots - 1));
        let stamp = Stamp { epoch: session.wrapping_add(pass), ticket };
        let stride = self.stride();
        Slot {
            end: At { offset: start.offset + SLOTS_START + (ticket + 1) * stride, ..start },
            stamp,
            capacity: self.message_len,
            stride,
            slots: self.slots,
        }
    }
}

/// The number from which the passes of a lane between these two incarnations are counted.
fn session(writer: Incarnation, reader: Incarnation) -> u32 {
    if mutants::SESSION_IGNORED.is_planted() {
        return 1;
    }
    writer.0.wrapping_mul(0x9E37_79B1) ^ reader.0.wrapping_mul(0x85EB_CA6B).rotate_left(16)
}

#[cfg(test)]
mod tests;

//! What a caller receives: deliveries, conflicts, refusals, counters.

use core::fmt;

use crate::ids::Peer;

/// A delivered message, in private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The origin.
    pub origin: Peer,
    /// Its number among the origin's messages, from 1.
    pub seq: u64,
    /// As the origin gave it.
    pub tag: u64,
    /// As the origin gave it.
    pub payload: &'a [u8],
}

/// Two members hold different messages for one slot. Neither it nor any later message of the same
/// origin is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conflict {
    /// The origin of the slot.
    pub origin: Peer,
    /// Its number.
    pub seq: u64,
    /// The member that showed a different message from this member's. Without signatures the fault
    /// cannot be attributed: either the origin equivocated or the replayer lies.
    pub replayer: Peer,
}

/// The outcome of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Every correct member that delivers the slot delivers these bytes.
    Delivered(Message<'a>),
    /// This member never delivers the slot.
    Conflict(Conflict),
}

/// Why a message was not broadcast. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BroadcastError {
    /// A member, possibly this one, has not delivered the message that is in the slot.
    WindowFull,
    /// The message is longer than the configured slot.
    TooLong,
}

impl fmt::Display for BroadcastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WindowFull => "the window is full: a member has not delivered yet",
            Self::TooLong => "the message is longer than a slot",
        })
    }
}

impl core::error::Error for BroadcastError {}

/// The state of one origin's broadcast at this member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The last message that was broadcast, as far as this member has seen.
    pub seen: u64,
    /// The last message delivered.
    pub delivered: u64,
    /// The last message before those that this member delivers: of an earlier epoch of the origin,
    /// or before this member returned.
    pub behind: u64,
    /// The last message that every live member is known to have delivered.
    pub settled: u64,
    /// Slots in conflict.
    pub conflicts: u32,
    /// The member whose memory holds no message where the next one is due: this member, or a
    /// replayer that stays torn. Its memory is damaged, or the origin writes garbage there.
    pub damaged: Option<Peer>,
}

/// The counters of one incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages broadcast.
    pub broadcast: u64,
    /// Messages delivered, own ones included.
    pub delivered: u64,
    /// Slots found in conflict.
    pub conflicts: u64,
    /// Writes posted; one carries a whole batch.
    pub writes: u64,
    /// Replays read.
    pub reads: u64,
    /// Those repeated because the read before was torn or failed.
    pub reads_again: u64,
    /// Progresses read.
    pub progress_reads: u64,
    /// Completions handled.
    pub completions: u64,
    /// Places in this member's rings and replays that held no message where one was due, for
    /// longer than the longest pause of [`Config`](super::Config): damaged, or written by an origin
    /// that stopped in the middle of its write. Nothing there is delivered.
    pub unfit: u64,
    /// Reads that returned a later message than the one asked for.
    pub newer: u64,
    /// Reads that returned a slot of another origin, place or pass than the one asked for: the
    /// replayer is broken or lies.
    pub misplaced: u64,
}

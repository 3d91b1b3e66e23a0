//! What a caller hears: deliveries, conflicts, refusals, counts.

use core::fmt;

use crate::ids::Peer;

/// A delivered message, in private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who broadcast it.
    pub origin: Peer,
    /// The how-manieth of its origin it is, from 1.
    pub seq: u64,
    /// As the origin gave it.
    pub tag: u64,
    /// As the origin gave it.
    pub payload: &'a [u8],
}

/// Two members hold different messages for one slot. It is not delivered, and nothing later of
/// the same origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conflict {
    /// Whose slot.
    pub origin: Peer,
    /// Which one.
    pub seq: u64,
    /// Who showed something else than what this member has. Without signatures nobody is to
    /// blame for sure: the origin may have equivocated or the replayer may lie.
    pub replayer: Peer,
}

/// What became of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Every correct member that delivers the slot delivers these bytes.
    Delivered(Message<'a>),
    /// Nobody correct delivers the slot any more who sees what this member sees.
    Conflict(Conflict),
}

/// Why a message was not broadcast. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BroadcastError {
    /// Somebody, this member included, has not delivered the message that lies in the slot.
    WindowFull,
    /// The message is longer than the configured slot.
    TooLong,
}

impl fmt::Display for BroadcastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WindowFull => "the window is full: some member has not delivered yet",
            Self::TooLong => "the message is longer than a slot",
        })
    }
}

impl core::error::Error for BroadcastError {}

/// How this member stands with one origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The last message that was broadcast, as far as this member has seen.
    pub seen: u64,
    /// The last message delivered.
    pub delivered: u64,
    /// The last message that every live member is known to have delivered.
    pub settled: u64,
    /// Slots in conflict.
    pub conflicts: u32,
    /// The member whose memory holds no message where the next one is due: this member, or a
    /// replayer that stays torn. Its memory is damaged, or the origin writes garbage there.
    pub damaged: Option<Peer>,
}

/// What was done since this life began.
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
    /// Of those, once more: what was read before was torn or did not arrive.
    pub reads_again: u64,
    /// Progresses read.
    pub progress_reads: u64,
    /// Completions handled.
    pub completions: u64,
    /// Places in this member's rings and replays that held no message where one was due, for
    /// longer than the longest pause of [`Config`](super::Config): damaged, or written by an origin
    /// that stopped in the middle of its write. Nothing there is delivered.
    pub unfit: u64,
    /// Replays that showed a later message than the one they were asked for.
    pub newer: u64,
    /// Replays that showed a slot of another origin, place or pass than the one that they were
    /// asked for: their replayer is broken or lies.
    pub misplaced: u64,
}

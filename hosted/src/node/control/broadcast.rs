//! Broadcasts, as clients and nodes speak of them.

use serde::{Deserialize, Serialize};

use super::Payload;
use crate::signing::PublicKey;

/// How far a broadcast came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BroadcastOutcome {
    /// So many of the messages are on their way to every member, whatever becomes of the
    /// component.
    pub broadcast: usize,
    /// The number of the last message that this node has broadcast.
    pub last: u64,
    /// Why not all were broadcast.
    pub stopped: Option<BroadcastStopped>,
}

/// What a client means to do after it has broadcast something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// Broadcast what belongs to it: nothing of another client comes between, before this one has
    /// said [`Then::Rest`] or has left.
    GoOn {
        /// What the node broadcasts in its place if it leaves first, with the same tag and behind
        /// what it has broadcast, if there is anything; one longer than a message is void.
        will: Payload,
    },
    /// Nothing: others may broadcast.
    Rest,
}

/// Why a broadcast stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BroadcastStopped {
    /// The window stayed full past the deadline: some member has not taken what came before.
    WindowFull {
        /// The last message that every member has taken.
        settled: u64,
    },
    /// No other node takes part in broadcasts any more.
    Alone,
    /// A message is longer than a slot.
    TooLong {
        /// The limit.
        limit: usize,
    },
}

/// A message that was delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveredMessage {
    /// Who broadcast it.
    pub origin: u16,
    /// The how-manieth of its origin it is, from 1.
    pub seq: u64,
    /// As the origin gave it.
    pub tag: u64,
    /// As the origin gave it.
    pub payload: Payload,
}

/// Two members hold different messages for one slot: it is delivered by nobody who knows, and
/// nothing that its origin broadcasts later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictStatus {
    /// Whose slot.
    pub origin: u16,
    /// Which one.
    pub seq: u64,
    /// Who showed something else than what this node was told.
    pub replayer: u16,
}

/// What a node has to hand out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliveries {
    /// For each origin, the message before the first that this reply may hold.
    pub after: Vec<u64>,
    /// In the order of each origin.
    pub messages: Vec<DeliveredMessage>,
    /// Of the origins that were asked for; the first of each, once all before it was dealt with.
    pub conflicts: Vec<ConflictStatus>,
}

/// Which peers received which message from a node that equivocated by order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Equivocation {
    /// The message's number.
    pub seq: u64,
    /// Peers that received the original message.
    pub original: Vec<u16>,
    /// Peers that received the altered message.
    pub altered: Vec<u16>,
}

/// How a node stands with one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginStatus {
    /// The origin's rank.
    pub origin: u16,
    /// The last message that was broadcast, as far as this node has seen.
    pub broadcast: u64,
    /// The last message delivered here.
    pub delivered: u64,
    /// The last message that every member is known to have delivered.
    pub settled: u64,
    /// How full its window is, as far as this node knows.
    pub window: WindowStatus,
    /// Slots that were in conflict, in this life of the component or an earlier one.
    pub conflicts: u32,
    /// The first of them.
    pub first_conflict: Option<ConflictStatus>,
    /// The node whose memory holds garbage where the next message is due: this one, or a replayer.
    pub damaged: Option<u16>,
    /// What it signs with, as this node was told, if broadcasts are signed.
    pub key: Option<PublicKey>,
}

/// How full the window of an origin is. The last slot is kept for the word that a sender has given
/// up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowStatus {
    /// Messages that were broadcast and that not every member is known to have delivered.
    pub used: u64,
    /// So many at most.
    pub slots: u32,
}

impl WindowStatus {
    /// Whether the next message of a client has to wait.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.used + 1 >= self.slots as u64
    }
}

/// A proof that a node told different nodes different things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldProof {
    /// Who did.
    pub origin: u16,
    /// Under which number.
    pub seq: u64,
    /// What a third party checks: see [`weft_core::neb::Proof`].
    pub bytes: Payload,
}

impl HeldProof {
    /// That it is held.
    #[must_use]
    pub const fn status(&self) -> ProofStatus {
        ProofStatus { origin: self.origin, seq: self.seq }
    }
}

/// That a proof is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofStatus {
    /// Against whom.
    pub origin: u16,
    /// About which number.
    pub seq: u64,
}

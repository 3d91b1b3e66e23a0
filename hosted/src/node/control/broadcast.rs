//! Broadcasts in the requests and replies of clients.

use serde::{Deserialize, Serialize};

use super::Payload;
use crate::signing::PublicKey;

/// How much of a broadcast was sent, and why it stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BroadcastOutcome {
    /// How many of the messages are on their way to every member, whatever becomes of the
    /// component.
    pub broadcast: usize,
    /// The number of the last message that this node has broadcast.
    pub last: u64,
    /// Why not all were broadcast.
    pub stopped: Option<BroadcastStopped>,
}

/// What a client intends after a broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// To broadcast what belongs to it: no message of another client comes between, until this one
    /// has sent [`Then::Rest`] or has left.
    GoOn {
        /// The abort marker that the node broadcasts if the client leaves first, with the same tag
        /// and behind its broadcasts, if there are any; one longer than a message is void.
        marker: Payload,
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
    /// Some were broadcast, and the node did not answer, or refused, the rest of what the client
    /// had split: how much of that was broadcast is not known. A
    /// [`Speaker`](crate::client::Speaker) finds out, and goes on.
    Interrupted,
}

/// A message that was delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveredMessage {
    /// The origin.
    pub origin: u16,
    /// Its number among the messages of its origin, from 1.
    pub seq: u64,
    /// The tag that the origin gave it.
    pub tag: u64,
    /// The payload that the origin gave it.
    pub payload: Payload,
}

/// Two members hold different messages for one slot: no member that knows delivers it, nor anything
/// that its origin broadcasts later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictStatus {
    /// The origin of the slot.
    pub origin: u16,
    /// Its number.
    pub seq: u64,
    /// The member that showed something else than what this node received.
    pub replayer: u16,
}

/// The deliveries of a node to a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliveries {
    /// For each origin, the message before the first that this reply may hold.
    pub after: Vec<u64>,
    /// In the order of each origin.
    pub messages: Vec<DeliveredMessage>,
    /// Of the requested origins; the first of each, once all messages before it were processed.
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

/// A node's state for one origin.
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
    /// Slots that were in conflict, in this incarnation of the component or an earlier one.
    pub conflicts: u32,
    /// The first of them.
    pub first_conflict: Option<ConflictStatus>,
    /// The node whose memory holds garbage where the next message is due: this one, or a replayer.
    pub damaged: Option<u16>,
    /// The public key of its broadcasts, as far as this node knows, if broadcasts are signed.
    pub key: Option<PublicKey>,
}

/// How full the window of an origin is. The last slot is reserved for the abort marker of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowStatus {
    /// Messages that were broadcast and that not every member is known to have delivered.
    pub used: u64,
    /// Its size in messages.
    pub slots: u32,
}

impl WindowStatus {
    /// Whether the next message of a client must wait.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.used + 1 >= self.slots as u64
    }
}

/// A proof that a node has equivocated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldProof {
    /// The node that equivocated.
    pub origin: u16,
    /// The number of its broadcast.
    pub seq: u64,
    /// What a third party checks: see [`weft_core::neb::Proof`].
    pub bytes: Payload,
}

impl HeldProof {
    /// Its status: that it is held.
    #[must_use]
    pub const fn status(&self) -> ProofStatus {
        ProofStatus { origin: self.origin, seq: self.seq }
    }
}

/// A proof that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofStatus {
    /// The node that it convicts.
    pub origin: u16,
    /// The number of the broadcast.
    pub seq: u64,
}

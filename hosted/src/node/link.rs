//! What a supervisor and its component say to each other.
//!
//! The component finds its end of the link at descriptor [`LINK_FD`]. Descriptors travel with
//! `Start` (the node's own memory) and, over shared memory, `Connect` (what may be reached of a
//! peer, and the peer's process last).

use std::os::fd::RawFd;

use serde::{Deserialize, Serialize};

use super::control::{Outcome, Want};
use crate::bootstrap::PairEnd;

/// Where a component finds the link.
pub(super) const LINK_FD: RawFd = 3;

/// Names a request on the link: whose it is, and the client's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Ticket {
    pub(super) client: u64,
    pub(super) id: u64,
}

/// From the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToComponent {
    /// Be this node, in this life.
    Start { rank: u16, incarnation: u32, cluster: String },
    /// Fence whatever life of `peer` was known, and admit this one: at once over shared memory,
    /// when both ends of a pair are made over verbs.
    Connect { peer: u16, incarnation: u32 },
    /// That life of `peer` has made its end of the pair with this life.
    Offer { peer: u16, incarnation: u32, end: PairEnd },
    /// The life of `peer` has ended.
    Fence { peer: u16 },
    /// A client wants something.
    Request { ticket: Ticket, what: Want },
    /// A client has left: what it holds goes back, what it waits for is dropped.
    Left { client: u64 },
    /// End in order.
    Stop,
}

/// From the component.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromComponent {
    /// The endpoint is made; peers may admit it.
    Ready,
    /// Messages have gone to that life of `peer` and back.
    Joined { peer: u16, incarnation: u32 },
    /// The own end of the pair with that life of `peer`.
    Offer { peer: u16, incarnation: u32, end: PairEnd },
    /// The answer to a request.
    Reply { ticket: Ticket, what: Outcome },
    /// A peer is not admitted: what it granted or offered does not lead to its memory.
    Unreachable { peer: u16, error: String },
    /// Work for that life of `peer` was lost: it has ended, or the pair with it has.
    Lost { peer: u16, incarnation: u32 },
    /// A peer could not be fenced: its process does not die.
    StillReaching { peer: u16 },
}

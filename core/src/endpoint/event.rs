//! The events and counters of an endpoint.

use core::fmt;

use crate::fabric::{Failure, PostError};
use crate::ids::Peer;
use crate::mailbox::{self, PutEvent, StageError};

/// The outcome of a put, or the loss of a peer or lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The first `count` messages staged for `to` are in its memory; `left` are still staged.
    Put {
        /// The owner.
        to: Peer,
        /// Messages put.
        count: u32,
        /// Messages still staged: flush again.
        left: u32,
    },
    /// The mailbox of `to` is full; everything is still staged: flush again later.
    Full {
        /// The owner.
        to: Peer,
    },
    /// The fabric answered implausibly; nothing was put, everything is still staged.
    TicketUnknown {
        /// The owner.
        to: Peer,
    },
    /// `peer` does not answer any more. Messages for it are still staged; the first `unknown` of
    /// them may have been put.
    Lost {
        /// The lost peer.
        peer: Peer,
        /// Messages that may be in the owner's memory.
        unknown: u32,
        /// The failure that the fabric reported.
        failure: Failure,
    },
    /// The process of `peer` has ended, as the fabric noticed by itself: fence it. Over shared
    /// memory it comes once for each admission, within a millisecond of polls; other fabrics may
    /// know of no end before a post fails ([`Event::Lost`], [`Event::LaneLost`]).
    Gone {
        /// The peer that has ended.
        peer: Peer,
    },
    /// A fence of `peer` that had failed holds now ([`Endpoint::fence`](super::Endpoint::fence)).
    Fenced {
        /// The fenced peer.
        peer: Peer,
    },
    /// A lane message or its credit did not reach `peer`: the lane is useless until the peer
    /// is fenced and admitted again.
    LaneLost {
        /// The lost peer.
        peer: Peer,
        /// The failure that the fabric reported.
        failure: Failure,
    },
}

/// Why a put did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PutError {
    /// The message was not staged.
    Stage(StageError),
    /// The messages are staged and the reservation was not accepted: flush again later.
    Post(PostError),
    /// There is no such peer.
    UnknownPeer,
}

impl fmt::Display for PutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stage(error) => error.fmt(f),
            Self::Post(error) => error.fmt(f),
            Self::UnknownPeer => f.write_str("there is no such peer"),
        }
    }
}

impl core::error::Error for PutError {}

/// The counters of an endpoint since it was created (MB-10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Messages put into mailboxes.
    pub put: u64,
    /// Flushes that found the mailbox full.
    pub full: u64,
    /// Flushes that ended with an unknown ticket.
    pub tickets_unknown: u64,
    /// The owner's side.
    pub mailbox: mailbox::Counters,
    /// Damaged or foreign lane messages.
    pub lane_failures: u64,
}

impl Counters {
    /// Counts the outcome of a flush towards `peer`.
    #[inline]
    pub(super) fn note(&mut self, peer: Peer, event: PutEvent) -> Event {
        match event {
            PutEvent::Put { count, left } => {
                self.put += u64::from(count);
                Event::Put { to: peer, count, left }
            }
            PutEvent::Full => {
                self.full += 1;
                Event::Full { to: peer }
            }
            PutEvent::TicketUnknown => {
                self.tickets_unknown += 1;
                Event::TicketUnknown { to: peer }
            }
            PutEvent::Lost { unknown, failure } => Event::Lost { peer, unknown, failure },
        }
    }
}

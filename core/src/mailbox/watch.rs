//! Evidence that a member wrote over the reservation word (MB-14).
//!
//! Every member may write the word and every slot, so a lying member can do harm, but not without
//! leaving evidence. None of this occurs while all members follow the protocol:
//!
//! | evidence | what the liar did |
//! |---|---|
//! | the count of the open epoch decreases | tickets are given out twice, messages overwrite each other |
//! | an epoch that the owner did not open | the same, in the other half |
//! | a message beyond the count | its sender did not reserve the ticket: another sender will get it |
//! | a ticket that no admitted sender reserved | it increased the count: slots are lost until questioned |
//! | a gap in a sender's sequence | a message was overwritten before it was taken |
//!
//! Where slots are sealed by their stamps (F-14), a liar that overwrites the last slot of a batch
//! before the owner has seen it removes all of it: the write has lost its end, and each of its
//! tickets counts as reserved by no admitted sender.
//!
//! A fabric causes a ticket without a holder as well if it answers an atomic wrongly, which the
//! sender counts (`tickets_unknown`), or executes one after it has reported its failure.
//!
//! Not detected: a message that was overwritten before it was taken, if its sender puts no other
//! and the count was restored before the owner read it.

use core::fmt;

use super::mutants::INCARNATION_IGNORED;
use crate::ids::Peer;
use crate::wire::slot::{Stamp, Trailer};

/// Evidence that a member did not follow the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forgery {
    /// The count decreased: tickets `to` to `from` of `epoch` are given out again.
    WentBack {
        /// The open epoch.
        epoch: u32,
        /// The count read before.
        from: u32,
        /// The count read now.
        to: u32,
    },
    /// The word showed an epoch that the owner did not open.
    Epoch {
        /// The epoch that is open.
        open: u32,
        /// The epoch in the word.
        shown: u32,
    },
    /// A slot holds a message for a ticket that the word never gave out.
    NotGivenOut {
        /// The ticket.
        ticket: Stamp,
    },
    /// The word gave out a ticket that no admitted sender reserved.
    NotAskedFor {
        /// The ticket.
        ticket: Stamp,
    },
    /// A message broke its sender's sequence.
    Sequence {
        /// The sender that the message names.
        sender: Peer,
        /// The expected number.
        due: u32,
        /// The number of the message.
        came: u32,
    },
}

impl fmt::Display for Forgery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WentBack { epoch, from, to } => {
                write!(f, "the count of epoch {epoch} went back from {from} to {to}")
            }
            Self::Epoch { open, shown } => {
                write!(f, "the reservation word shows epoch {shown} while {open} is open")
            }
            Self::NotGivenOut { ticket: Stamp { epoch, ticket } } => {
                write!(f, "a message landed for ticket {ticket} of epoch {epoch}, never given out")
            }
            Self::NotAskedFor { ticket: Stamp { epoch, ticket } } => {
                write!(f, "no member asked for ticket {ticket} of epoch {epoch}")
            }
            Self::Sequence { sender, due, came } => {
                write!(f, "message {came} of node {} came where {due} was due", sender.0)
            }
        }
    }
}

/// A sender's next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Expected {
    pub(super) incarnation: u16,
    pub(super) sequence: u32,
    /// The previous message lay in an epoch that this owner began, so that no earlier owner can
    /// have released a later one, and no ticket after it was skipped.
    pub(super) is_certain: bool,
}

impl Expected {
    /// The message after `trailer`.
    pub(super) const fn after(trailer: &Trailer, is_certain: bool) -> Self {
        let sequence = trailer.sequence.wrapping_add(1);
        Self { incarnation: trailer.incarnation, sequence, is_certain }
    }

    /// Whether `trailer` is the sender's next message.
    pub(super) fn is(&self, trailer: &Trailer) -> bool {
        if INCARNATION_IGNORED.is_planted() {
            return self.sequence == trailer.sequence;
        }
        (self.incarnation, self.sequence) == (trailer.incarnation, trailer.sequence)
    }

    /// The evidence, if any, in that `trailer` came now.
    pub(super) fn judge(&self, trailer: &Trailer, is_certain: bool) -> Option<Forgery> {
        let comparable = self.is_certain && is_certain && self.incarnation == trailer.incarnation;
        (comparable && !self.is(trailer)).then_some(Forgery::Sequence {
            sender: Peer(trailer.sender),
            due: self.sequence,
            came: trailer.sequence,
        })
    }
}

/// What the owner has read of the word in the open epoch.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Watch {
    /// The count as last read.
    count: u32,
    /// All tickets below were given out or are reported as forged.
    noted: u32,
    /// The foreign epoch that was last reported.
    foreign: Option<u32>,
}

impl Watch {
    /// The word of an epoch in which `count` tickets were given out before this owner began.
    pub(super) const fn new(count: u32) -> Self {
        Self { count, noted: count, foreign: None }
    }

    /// Compares `word`, in the open epoch, with the earlier ones; the tickets up to `owed` were
    /// given out or have a message. Returns the evidence of forgery, if any, and the number of
    /// tickets.
    pub(super) fn see(&mut self, word: Stamp, owed: u32, slots: u32) -> Option<(Forgery, u32)> {
        let Stamp { epoch, ticket: to } = word;
        let from = core::mem::replace(&mut self.count, to);
        self.foreign = None;
        if to < from {
            let again = from.min(slots).saturating_sub(to.min(slots)).max(1);
            return Some((Forgery::WentBack { epoch, from, to }, again));
        }
        self.noted = self.noted.max(to.min(slots));
        let past = owed.saturating_sub(self.noted);
        let ticket = Stamp { epoch, ticket: self.noted };
        self.noted = self.noted.max(owed);
        (past > 0).then_some((Forgery::NotGivenOut { ticket }, past))
    }

    /// The word shows epoch `shown`, which is neither `open` nor the next: evidence, returned once.
    pub(super) fn see_foreign(&mut self, open: u32, shown: u32) -> Option<Forgery> {
        let is_new = self.foreign.replace(shown) != Some(shown);
        is_new.then_some(Forgery::Epoch { open, shown })
    }
}

//! What shows that a member wrote over the reservation word (MB-14).
//!
//! Every member may write the word and every slot, so one that lies can do harm; it cannot do it
//! unseen. Nothing of this happens while all members keep to the protocol:
//!
//! | evidence | what a liar did |
//! |---|---|
//! | the count of the open epoch goes back | tickets are given out twice, messages overwrite each other |
//! | an epoch that the owner did not open | likewise, in the other half |
//! | a message lands past the count | its sender never had the ticket: another will get it |
//! | a ticket that no admitted sender asked for | it added to the count: slots are lost until questioned |
//! | a gap in a sender's sequence | the message between was overwritten before it was taken |
//!
//! A fabric leaves a ticket unasked for as well when it answers an atomic wrongly, which the sender
//! counts (`tickets_unknown`), or carries one out that it had given up for lost.
//!
//! What is never seen: a message overwritten before it was taken, when its sender puts none after
//! it and the count was put right before the owner looked.

use core::fmt;

use super::mutants::INCARNATION_IGNORED;
use crate::ids::Peer;
use crate::wire::slot::{Header, Stamp};

/// What an owner saw that no member causes by keeping to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forgery {
    /// The count went back: tickets `to` to `from` of `epoch` are given out again.
    WentBack {
        /// The open epoch.
        epoch: u32,
        /// The count seen before.
        from: u32,
        /// The count seen now.
        to: u32,
    },
    /// The word showed an epoch that the owner did not open.
    Epoch {
        /// The epoch that is open.
        open: u32,
        /// What the word showed.
        shown: u32,
    },
    /// A message landed for a ticket that the word never gave out.
    NotGivenOut {
        /// The ticket.
        ticket: Stamp,
    },
    /// The word gave out a ticket that no admitted sender asked for.
    NotAskedFor {
        /// The ticket.
        ticket: Stamp,
    },
    /// A message came out of its sender's sequence.
    Sequence {
        /// Under whose name.
        sender: Peer,
        /// The number that was due.
        due: u32,
        /// The number that came.
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
    /// The message before lay in an epoch that this owner began: an earlier owner released none
    /// behind it.
    pub(super) is_certain: bool,
}

impl Expected {
    /// What follows `header`.
    pub(super) const fn after(header: &Header, is_certain: bool) -> Self {
        let sequence = header.sequence.wrapping_add(1);
        Self { incarnation: header.incarnation, sequence, is_certain }
    }

    /// Whether `header` is the sender's next message.
    pub(super) fn is(&self, header: &Header) -> bool {
        if INCARNATION_IGNORED.is_planted() {
            return self.sequence == header.sequence;
        }
        (self.incarnation, self.sequence) == (header.incarnation, header.sequence)
    }

    /// What it shows that `header` came now.
    pub(super) fn judge(&self, header: &Header, is_certain: bool) -> Option<Forgery> {
        let comparable = self.is_certain && is_certain && self.incarnation == header.incarnation;
        (comparable && !self.is(header)).then_some(Forgery::Sequence {
            sender: Peer(header.sender),
            due: self.sequence,
            came: header.sequence,
        })
    }
}

/// What the owner has seen of the word in the open epoch.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Watch {
    /// The count, as the word last showed it.
    count: u32,
    /// Tickets below were given out, or it is noted that they were not.
    noted: u32,
    /// A foreign epoch of this value is noted.
    foreign: Option<u32>,
}

impl Watch {
    /// The word of an epoch that gave out `count` tickets before this owner looked.
    pub(super) const fn new(count: u32) -> Self {
        Self { count, noted: count, foreign: None }
    }

    /// The word shows `count` in the open epoch, and tickets up to `owed` have landed or were
    /// given out. What that shows, and how many tickets it is about.
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

    /// The word shows epoch `shown`, which is neither `open` nor the next. What that shows, once.
    pub(super) fn see_foreign(&mut self, open: u32, shown: u32) -> Option<Forgery> {
        let is_new = self.foreign.replace(shown) != Some(shown);
        is_new.then_some(Forgery::Epoch { open, shown })
    }
}

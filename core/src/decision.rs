//! The manager's decision to remove a member, which every machine that counts members executes.
//!
//! A timeout is not a failure: no machine removes a member for any other reason, and none before
//! the member is fenced. Decisions are ordered by their terms; one of an earlier term is refused.

use core::fmt;

use crate::fabric::{Fabric, FenceError};
use crate::ids::{Incarnation, Peer, Term};

/// The manager's decision to remove a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The term it was taken in.
    pub term: Term,
    /// The removed member.
    pub removed: Peer,
    /// The last of its incarnations that is removed: a later one is not.
    pub last: Incarnation,
}

impl Decision {
    /// Fences the removed one of `peers` members, unless a decision of a later term than this was
    /// executed: `latest`, which becomes this one's. What only a fenced member makes safe comes
    /// after it.
    ///
    /// # Errors
    /// [`RemoveError`]; nothing changed.
    pub(crate) fn fence(
        self,
        fabric: &mut impl Fabric,
        peers: u16,
        latest: &mut Term,
    ) -> Result<(), RemoveError> {
        let Self { term, removed, .. } = self;
        if removed == fabric.me() || removed.0 >= peers {
            return Err(RemoveError::UnknownPeer);
        }
        if term < *latest {
            return Err(RemoveError::StaleTerm(*latest));
        }
        fabric.fence(removed).map_err(RemoveError::NotFenced)?;
        *latest = term;
        Ok(())
    }
}

/// What decisions have removed: of each member the epochs up to one. It only grows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Removals<const PEERS: usize> {
    last: [Incarnation; PEERS],
    /// The term of the last decision that was executed.
    term: Term,
}

impl<const PEERS: usize> Default for Removals<PEERS> {
    fn default() -> Self {
        Self { last: [Incarnation(0); PEERS], term: Term::default() }
    }
}

impl<const PEERS: usize> Removals<PEERS> {
    /// Whether the epoch of `peer` that began in incarnation `epoch` is not removed. Of one that is
    /// no member nothing is.
    #[must_use]
    pub fn counts(&self, peer: Peer, epoch: Incarnation) -> bool {
        self.last.get(peer.index()).is_none_or(|last| *last < epoch)
    }

    /// The members of which an epoch is removed, each with the last one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Peer, Incarnation)> {
        (0..).map(Peer).zip(self.last).filter(|(_, last)| *last > Incarnation(0))
    }

    /// The epochs of `peer` up to `last` are removed, and fenced.
    pub(crate) fn insert(&mut self, peer: Peer, last: Incarnation) {
        if let Some(known) = self.last.get_mut(peer.index()) {
            *known = last.max(*known);
        }
    }

    /// Executes `decision` in a cluster of `peers` members: fences what it removes.
    ///
    /// # Errors
    /// [`RemoveError`]; nothing changed.
    pub(crate) fn execute(
        &mut self,
        fabric: &mut impl Fabric,
        decision: Decision,
        peers: u16,
    ) -> Result<(), RemoveError> {
        decision.fence(fabric, peers, &mut self.term)?;
        self.insert(decision.removed, decision.last);
        Ok(())
    }
}

/// Why the member was not removed. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemoveError {
    /// The machine removes no member ([`Membership::Fixed`](crate::neb::Membership::Fixed)).
    Fixed,
    /// There is no such other member.
    UnknownPeer,
    /// A decision of this later term was executed already.
    StaleTerm(Term),
    /// The peer could not be fenced and may still reach this member.
    NotFenced(FenceError),
}

impl fmt::Display for RemoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed => f.write_str("membership is fixed"),
            Self::UnknownPeer => f.write_str("there is no such other member"),
            Self::StaleTerm(later) => write!(f, "a decision of term {later} was executed"),
            Self::NotFenced(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RemoveError {}

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

//! Who takes part, and how somebody stops doing so (N-7).
//!
//! A timeout is not a death. A member leaves only by a decision of the current term, and only
//! once it is fenced: from then on nothing that it does reaches this member, and nothing here is
//! read by it any more.

use core::fmt;

use super::mutants::SUBTRACT_ORIGIN_TWICE;
use crate::fabric::FenceError;
use crate::ids::{Peer, PeerSet, Term};

/// Whether members can be removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Membership {
    /// Never: whoever is silent is waited for.
    #[default]
    Fixed,
    /// By a [`Decision`].
    Decided,
}

/// The manager's decision that a member is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The term it was taken in.
    pub term: Term,
    /// Who is out.
    pub removed: Peer,
}

/// Why nobody was removed. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemoveError {
    /// Membership is [`Membership::Fixed`].
    Fixed,
    /// There is no such other member.
    UnknownPeer,
    /// A decision of the later term was carried out already.
    StaleTerm(Term),
    /// The peer could not be fenced, so it may still reach this member.
    NotFenced(FenceError),
}

impl fmt::Display for RemoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed => f.write_str("membership is fixed"),
            Self::UnknownPeer => f.write_str("there is no such other member"),
            Self::StaleTerm(later) => write!(f, "a decision of term {later} was carried out"),
            Self::NotFenced(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RemoveError {}

/// Who takes part, as this member knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Members {
    pub(super) me: Peer,
    pub(super) live: PeerSet,
    /// The term of the last decision that was carried out.
    pub(super) term: Term,
}

impl Members {
    pub(super) const fn all(me: Peer, peers: u16) -> Self {
        Self { me, live: PeerSet::first(peers as usize), term: Term(0) }
    }

    /// Everybody else.
    pub(super) const fn others(&self) -> PeerSet {
        self.live.without(PeerSet::only(self.me))
    }

    /// Whose votes a slot of `origin` needs. As a set: an origin that left is not subtracted
    /// again, and who left is not counted.
    pub(super) fn voters(&self, origin: Peer) -> PeerSet {
        let voters = self.others().without(PeerSet::only(origin));
        if SUBTRACT_ORIGIN_TWICE.is_planted() && !self.live.contains(origin) {
            let last = voters.iter().last();
            return voters.without(last.map_or(PeerSet::EMPTY, PeerSet::only));
        }
        voters
    }
}

//! The members that take part, and their removal (N-7).
//!
//! A timeout is not a failure. A member is removed only by a decision of the current term, and only
//! once it is fenced: from then on it can neither write nor read this member's memory.

use super::mutants::SUBTRACT_ORIGIN_TWICE;
use crate::ids::{Peer, PeerSet, Term};

/// Whether members can be removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Membership {
    /// Never: a silent member is waited for.
    #[default]
    Fixed,
    /// By a [`Decision`](crate::decision::Decision).
    Decided,
}

/// The members, as this one knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Members {
    pub(super) me: Peer,
    pub(super) live: PeerSet,
    /// The term of the last decision that was executed.
    pub(super) term: Term,
}

impl Members {
    pub(super) const fn all(me: Peer, peers: u16) -> Self {
        Self { me, live: PeerSet::first(peers as usize), term: Term::of_epoch(0) }
    }

    /// All other members.
    pub(super) const fn others(&self) -> PeerSet {
        self.live.without(PeerSet::only(self.me))
    }

    /// The members whose votes a slot of `origin` needs. A set, so that an origin that was removed
    /// is not subtracted twice, and no removed member counts.
    pub(super) fn voters(&self, origin: Peer) -> PeerSet {
        let voters = self.others().without(PeerSet::only(origin));
        if SUBTRACT_ORIGIN_TWICE.is_planted() && !self.live.contains(origin) {
            let last = voters.iter().last();
            return voters.without(last.map_or(PeerSet::EMPTY, PeerSet::only));
        }
        voters
    }
}

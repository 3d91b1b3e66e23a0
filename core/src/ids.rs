//! Who is who: members, endpoints, and how often they have started.
//!
//! Membership is fixed by configuration; incarnations change. A [`Rank`] names a member
//! forever, a [`Peer`] names one of the endpoints of a fabric (a member may have several), an
//! [`Incarnation`] distinguishes two runs of the same peer.

use core::fmt;

/// A member of the cluster, `0..nodes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rank(pub u16);

/// An endpoint of a fabric, `0..peers`. Dense, so that tables are indexed by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Peer(pub u16);

impl Peer {
    /// The position of this peer in a table of peers.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One run of a peer. Grows by at least one each time the peer is started again.
///
/// Two things are counted so, in one sequence for each node: the starts of its component, as the
/// endpoint and the events of a member name them, and its boots, each under the number of its first
/// start. Within a boot the membership counts the components that it cloned:
/// [`ComponentIncarnation`](crate::dirnet::ComponentIncarnation).
///
/// Zero means "never seen": no live peer carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Incarnation(pub u32);

impl Incarnation {
    /// The incarnation after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// The term of a manager. Decisions carry the term that they were taken in, and one of an earlier
/// term binds no member. Terms are ordered by epoch, then claimant. Two different nodes therefore
/// never claim the same term, and one node never claims an epoch that it has known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Term {
    /// A lower bound on the number of terms before it.
    pub epoch: u32,
    /// The node that claims the term.
    pub claimant: Rank,
}

impl Term {
    /// The term of node 0 in this epoch.
    #[must_use]
    pub const fn of_epoch(epoch: u32) -> Self {
        Self { epoch, claimant: Rank(0) }
    }

    /// The term that `claimant` may claim once it has known this one; none if epochs are exhausted.
    #[must_use]
    pub const fn claimed_by(self, claimant: Rank) -> Option<Self> {
        match self.epoch.checked_add(1) {
            Some(epoch) => Some(Self { epoch, claimant }),
            None => None,
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.claimant)
    }
}

/// Distinguishes an order of a recovery script from all others, but not from its repetition (RL-3);
/// grows with each.
///
/// The mark of an order cannot: an order about a task without unanswered errors moves no mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderId {
    /// The term of the manager that gave it.
    pub term: Term,
    /// The number of the evaluation in its term; the list behind a PAUSE has its own.
    pub evaluation: u32,
    /// Its index among the orders of the evaluation, those of DEFAULT included.
    pub index: u16,
}

/// A set of peers, as a bitmap: at most [`PeerSet::CAPACITY`] of them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PeerSet(u64);

impl PeerSet {
    /// The largest number of peers that a set, and so a fabric, can hold.
    pub const CAPACITY: usize = 64;
    /// No peer.
    pub const EMPTY: Self = Self(0);

    /// The peers `0..count`.
    ///
    /// # Panics
    /// When `count` is larger than [`PeerSet::CAPACITY`]: a configuration error.
    #[must_use]
    pub const fn first(count: usize) -> Self {
        assert!(count <= Self::CAPACITY, "a fabric holds at most 64 peers");
        if count == Self::CAPACITY { Self(u64::MAX) } else { Self((1 << count) - 1) }
    }

    /// Exactly one peer; none when it lies past the capacity.
    #[must_use]
    pub const fn only(peer: Peer) -> Self {
        if peer.index() < Self::CAPACITY { Self(1 << peer.0) } else { Self::EMPTY }
    }

    /// Whether `peer` is in the set.
    #[must_use]
    pub const fn contains(self, peer: Peer) -> bool {
        self.0 & Self::only(peer).0 != 0
    }

    /// Adds `peer`.
    pub const fn insert(&mut self, peer: Peer) {
        self.0 |= Self::only(peer).0;
    }

    /// Removes `peer`.
    pub const fn remove(&mut self, peer: Peer) {
        self.0 &= !Self::only(peer).0;
    }

    /// All peers that are in one of the two.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// All peers that are in this one and not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many peers are in the set.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The bitmap, bit n for peer n.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The peers of the set in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Peer> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let peer = Peer(u16::try_from(left.trailing_zeros()).ok().filter(|n| *n < 64)?);
            left &= left - 1;
            Some(peer)
        })
    }
}

impl fmt::Debug for PeerSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|peer| peer.0)).finish()
    }
}

macro_rules! displays_its_number {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

displays_its_number!(Rank Peer Incarnation);

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_claim_is_above_all_that_the_claimant_knew() {
        let known = Term { epoch: 7, claimant: Rank(3) };
        assert!(known.claimed_by(Rank(0)).unwrap() > known);
        let last = Term { epoch: u32::MAX, claimant: Rank(0) };
        assert_eq!(last.claimed_by(Rank(1)), None);
    }

    #[test]
    fn a_set_lists_its_peers_in_order() {
        let mut set = PeerSet::first(5);
        set.remove(Peer(2));
        set.insert(Peer(63));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 1, 3, 4, 63].map(Peer));
        assert_eq!(set.count(), 5);
        assert_eq!(
            set.without(PeerSet::first(4)),
            PeerSet::only(Peer(4)).union(PeerSet::only(Peer(63)))
        );
    }

    #[test]
    fn a_peer_past_the_capacity_is_in_no_set() {
        let mut set = PeerSet::first(64);
        set.insert(Peer(64));
        assert!(!set.contains(Peer(64)));
        assert_eq!(set.count(), 64);
    }
}

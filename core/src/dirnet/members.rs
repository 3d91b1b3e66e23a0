//! The provenance of a frame: incarnations, members.

use core::fmt;

use crate::ids::{Incarnation, Peer, PeerSet, Rank};

/// An incarnation of a component, as views and verdicts name it: the boot of its node and its
/// generation in that boot. It rises with each one that joins; the number of a start
/// ([`Incarnation`]) rises with each start, also of one that never joins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ComponentIncarnation {
    /// How often the node was started. Zero: never seen.
    pub boot: Incarnation,
    /// How many components this boot of the node had before.
    pub generation: u32,
}

impl ComponentIncarnation {
    /// The incarnation that starts when a clone of the component is spawned.
    #[must_use]
    pub const fn clone_of(self) -> Self {
        Self { generation: self.generation.saturating_add(1), ..self }
    }
}

impl fmt::Display for ComponentIncarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.boot, self.generation)
    }
}

/// A set of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Members(PeerSet);

impl Members {
    /// The empty set.
    pub const NONE: Self = Self(PeerSet::EMPTY);

    /// Exactly one member.
    #[must_use]
    pub const fn only(rank: Rank) -> Self {
        Self(PeerSet::only(Peer(rank.0)))
    }

    /// Whether `rank` is one of them.
    #[must_use]
    pub const fn contains(self, rank: Rank) -> bool {
        self.0.contains(Peer(rank.0))
    }

    /// Adds `rank`.
    pub const fn insert(&mut self, rank: Rank) {
        self.0.insert(Peer(rank.0));
    }

    /// Removes `rank`.
    pub const fn remove(&mut self, rank: Rank) {
        self.0.remove(Peer(rank.0));
    }

    /// The set without `rank`.
    #[must_use]
    pub const fn without(mut self, rank: Rank) -> Self {
        self.remove(rank);
        self
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The number of members in the set.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count()
    }

    /// The bitmap, bit n for rank n.
    pub(super) const fn bits(self) -> u64 {
        self.0.bits()
    }

    /// The set with this bitmap.
    pub(super) fn of_bits(bits: u64) -> Self {
        (0..64).filter(|rank| bits >> rank & 1 == 1).map(Rank).collect()
    }

    /// The members in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Rank> {
        self.0.iter().map(|peer| Rank(peer.0))
    }
}

impl FromIterator<Rank> for Members {
    fn from_iter<I: IntoIterator<Item = Rank>>(ranks: I) -> Self {
        let mut members = Self::NONE;
        for rank in ranks {
            members.insert(rank);
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_is_a_later_life_and_a_reboot_a_later_one_still() {
        let incarnation = ComponentIncarnation { boot: Incarnation(2), generation: 5 };
        let reboot = ComponentIncarnation { boot: Incarnation(3), generation: 0 };
        assert!(incarnation < incarnation.clone_of() && incarnation.clone_of() < reboot);
    }
}

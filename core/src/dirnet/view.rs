//! Views: who the members are, numbered so that all members that show a number show the same.
//!
//! ```text
//!   bits of a number   63       32         24        0      as an integer, it orders views
//!                      │ epoch  │ claimant │ count   │
//!
//!   in a frame         │ count (4) │ digest of the members and their incarnations (8) │
//! ```
//!
//! The manager of a term numbers the memberships that it decides, from 1. No two managers have the
//! same term, so no number is given twice, and views are totally ordered: by term, then by count.
//! A [`ViewTag`] names a view of the sender's term in 12 bytes. A member that knows the manager's
//! standings shows the view; by the digest it finds that it does. Different memberships have the
//! same digest with a probability of 2⁻⁶⁴: a digest detects what was lost, not what was forged.

use super::{ComponentIncarnation, Members, Term};
use crate::ids::{Incarnation, Rank};

/// The place of a view in the order of all views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewNumber {
    /// The term in which it was decided.
    pub term: Term,
    /// Counts the views of that term, from 1; zero for no view.
    pub count: u32,
}

impl ViewNumber {
    /// The most views of a term; the manager claims the next term long before.
    pub const COUNT_MAX: u32 = (1 << Self::COUNT_BITS) - 1;
    const COUNT_BITS: u32 = 24;

    /// The number as an integer: of two views the later one has the higher number.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        let Term { epoch, claimant: Rank(claimant) } = self.term;
        let claimant = (claimant & 0xff) as u64;
        (epoch as u64) << 32 | claimant << Self::COUNT_BITS | (self.count & Self::COUNT_MAX) as u64
    }
}

/// The incarnation of each node; of one that is no member, the default.
pub(super) type Incarnations<const NODES: usize> = [ComponentIncarnation; NODES];

/// The members of a cluster, as its manager decided and this member has carried out: what the view
/// does not contain is fenced here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View<const NODES: usize> {
    pub(super) number: ViewNumber,
    pub(super) incarnations: Incarnations<NODES>,
}

impl<const NODES: usize> Default for View<NODES> {
    fn default() -> Self {
        Self {
            number: ViewNumber::default(),
            incarnations: [ComponentIncarnation::default(); NODES],
        }
    }
}

impl<const NODES: usize> View<NODES> {
    /// Its number; that of no view is zero.
    #[must_use]
    pub const fn number(&self) -> ViewNumber {
        self.number
    }

    /// The manager that decided it.
    #[must_use]
    pub const fn manager(&self) -> Rank {
        self.number.term.claimant
    }

    /// The members.
    #[must_use]
    pub fn members(&self) -> Members {
        let ranks = (0..).map(Rank).take(NODES);
        ranks.filter(|node| self.incarnation(*node).is_some()).collect()
    }

    /// The incarnation of `node`, if it is a member.
    #[must_use]
    pub fn incarnation(&self, node: Rank) -> Option<ComponentIncarnation> {
        self.incarnations.get(usize::from(node.0)).copied().filter(is_member)
    }
}

/// Names a view of the sender's term; the default names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ViewTag {
    /// Which view of the term.
    pub count: u32,
    /// The digest of its content.
    pub digest: u64,
}

impl ViewTag {
    /// The tag as words of a frame.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    pub(super) const fn words(self) -> [u32; 3] {
        [self.count, self.digest as u32, (self.digest >> 32) as u32]
    }

    /// The tag that [`Self::words`] encoded.
    pub(super) fn from_words([count, low, high]: [u32; 3]) -> Option<Self> {
        let digest = u64::from(low) | u64::from(high) << 32;
        let is_possible = if count == 0 { digest == 0 } else { count <= ViewNumber::COUNT_MAX };
        is_possible.then_some(Self { count, digest })
    }

    /// The tag in a heartbeat: a part of the digest of the database.
    pub(super) const fn folded(self) -> u32 {
        let [count, low, high] = self.words();
        count.wrapping_mul(0x9e37_79b9) ^ low ^ high
    }
}

/// The digest of a membership. Nodes that are no members do not count, so that a larger table has
/// the same digest.
pub(super) fn digest<const NODES: usize>(incarnations: &Incarnations<NODES>) -> u64 {
    let members = (0_u64..).zip(incarnations);
    members.filter(|(_, it)| is_member(it)).fold(0, |digest, (node, it)| {
        let incarnation = u64::from(it.boot.0) << 32 | u64::from(it.generation);
        mixed(mixed(digest ^ (node + 1)) ^ incarnation)
    })
}

fn is_member(incarnation: &ComponentIncarnation) -> bool {
    incarnation.boot != Incarnation(0)
}

/// The finaliser of splitmix64: a bijection in which every bit affects every other.
const fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers() -> impl Strategy<Value = ViewNumber> {
        (any::<u32>(), 0..64_u16, 0..=ViewNumber::COUNT_MAX).prop_map(|(epoch, rank, count)| {
            ViewNumber { term: Term { epoch, claimant: Rank(rank) }, count }
        })
    }

    proptest! {
        #[test]
        fn m6_numbers_are_ordered_as_views_are(one in numbers(), other in numbers()) {
            prop_assert_eq!(one.cmp(&other), one.to_bits().cmp(&other.to_bits()));
        }

        #[test]
        fn m6_a_tag_is_had_back_from_its_words(
            count in 1..=ViewNumber::COUNT_MAX, digest in any::<u64>(),
        ) {
            let tag = ViewTag { count, digest };
            prop_assert_eq!(ViewTag::from_words(tag.words()), Some(tag));
        }
    }

    #[test]
    fn m6_a_tag_of_no_view_or_of_too_many_is_refused() {
        assert_eq!(ViewTag::from_words([0; 3]), Some(ViewTag::default()));
        assert_eq!(ViewTag::from_words([0, 1, 0]), None);
        assert_eq!(ViewTag::from_words([ViewNumber::COUNT_MAX + 1, 1, 0]), None);
    }

    #[test]
    fn m6_memberships_have_digests_of_their_own() {
        let one = ComponentIncarnation { boot: Incarnation(1), generation: 0 };
        let other = one.clone_of();
        let memberships = [[one, one], [one, other], [other, one], [one, Default::default()]];
        let mut digests = memberships.map(|it| digest(&it));
        digests.sort_unstable();
        assert!(digests.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(digest(&[one]), digest(&[one, Default::default()]));
    }
}

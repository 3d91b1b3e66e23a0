//! Who sits where: granks, relative granks, and positions among the members that are left.
//!
//! Trees and plans know positions only, `0..count`, and the root is position 0 (GT-1). Members
//! that are removed are skipped: positions are counted over the live relative granks in order, so
//! each root has trees of the same shape and no range wraps.

use super::mutants::GROOT_IGNORED;

/// The rank of a member in its group: its place in the list that the group was opened with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grank(pub u16);

impl Grank {
    /// The position of this member in a table of members.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The set of this member alone; none when it lies past 64.
    #[must_use]
    pub const fn bit(self) -> u64 {
        if self.0 < 64 { 1 << self.0 } else { 0 }
    }
}

/// The members as one of them knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Members {
    pub(super) count: u16,
    pub(super) me: Grank,
    /// Those that this member counts, itself included.
    pub(super) live: u64,
    /// Digest of those with their epochs: the removed set alone is the same before a return and
    /// after the next removal.
    pub(super) epochs: u64,
}

impl Members {
    pub(super) const fn all(&self) -> u64 {
        u64::MAX >> (64 - self.count)
    }

    pub(super) const fn others(&self) -> u64 {
        self.live & !self.me.bit()
    }

    /// The live members after this one, nearest first, in the order of `root`.
    pub(super) fn after_me(&self) -> impl Iterator<Item = Grank> + use<> {
        let Self { count, me, live, .. } = *self;
        let granks = (1..count).map(move |ahead| Grank((me.0 + ahead) % count));
        granks.filter(move |grank| live & grank.bit() != 0)
    }
}

/// The live members of a group as one root sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seats {
    members: u16,
    root: Grank,
    live: u64,
}

impl Seats {
    /// The seats of `live` of a group of `members`, for the messages of `root`.
    #[must_use]
    pub fn new(members: u16, root: Grank, live: u64) -> Self {
        let root = if GROOT_IGNORED.is_planted() { Grank(0) } else { root };
        Self { members, root, live }
    }

    /// How many members are live.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.live.count_ones() as u16
    }

    /// The position of `grank`; none if it is not live.
    #[must_use]
    pub fn position(&self, grank: Grank) -> Option<u16> {
        (self.live & grank.bit() != 0).then(|| {
            let relative = self.relative(grank);
            let before = self.granks().filter(|other| self.relative(*other) < relative);
            #[expect(clippy::cast_possible_truncation, reason = "at most 64 members")]
            let position = before.count() as u16;
            position
        })
    }

    /// Who sits at `position`; none past the last.
    #[must_use]
    pub fn at(&self, position: u16) -> Option<Grank> {
        self.granks().find(|grank| self.position(*grank) == Some(position))
    }

    fn granks(&self) -> impl Iterator<Item = Grank> + use<> {
        let live = self.live;
        (0..self.members).map(Grank).filter(move |grank| live & grank.bit() != 0)
    }

    const fn relative(&self, grank: Grank) -> u16 {
        (grank.0 + self.members - self.root.0) % self.members
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Class, Costs, Tree};
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn positions_are_counted_from_the_root_over_live_members() {
        let seats = Seats::new(5, Grank(3), 0b1_1011);
        let order: Vec<_> = (0..seats.count()).filter_map(|at| seats.at(at)).collect();
        assert_eq!(order, [Grank(3), Grank(4), Grank(0), Grank(1)]);
        assert_eq!((seats.position(Grank(2)), seats.at(4)), (None, None));
    }

    /// GT-2 after removals: of up to three members, whichever forwarders they are.
    #[test]
    fn the_removal_of_any_forwarder_leaves_a_plan() {
        for class in [Class::Serial, Class::Pipe, Class::Binary, Class::Fibonacci] {
            let tree = Tree { class, costs: Costs::postal(3) };
            for members in [3, 4, 7, 8, 13] {
                for removed in 0..1_u64 << members {
                    if removed.count_ones() > 3 || removed & 1 != 0 {
                        continue;
                    }
                    let live = ((1 << members) - 1) & !removed;
                    let seats = Seats::new(members, Grank(0), live);
                    let mut received = vec![0; usize::from(members)];
                    let mut nodes = vec![(0, 1..seats.count())];
                    while let Some((_, range)) = nodes.pop() {
                        for part in tree.parts(range) {
                            let grank = seats.at(part.start).expect("a live member");
                            received[grank.index()] += 1;
                            nodes.push((part.start, part.start + 1..part.end));
                        }
                    }
                    for grank in (1..members).map(Grank) {
                        let due = u32::from(live & grank.bit() != 0);
                        assert_eq!(received[grank.index()], due, "{class:?} {live:b}");
                    }
                }
            }
        }
    }
}

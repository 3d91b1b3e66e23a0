//! The trees along which entries travel: a range of members, and who serves which part of it.
//!
//! ```text
//!   the node of [0 │ 1 2 3 4 5 6 7]     Binary: halves        Serial: one each    Pipe: all to one
//!                                        [1 │ 2 3 4] [5 │ 6 7]  [1] [2] … [7]       [1 │ 2 … 7]
//! ```
//!
//! Members are positions in the sorted list of live relative granks (see [`super::Seats`]): the
//! root is position 0. A range is split into the part of its first member and the rest, so that
//! parts never overlap (GT-2). Everything is a function of class, costs and range: each node
//! splits its own range again, and each receiver computes from whom it receives.
//!
//! The ratio of the Fibonacci-like tree follows from three costs (GT-3). Reached in t:
//! a(t) = a(t − gap) + a(t − delay), a(t) = 1 for t < arrival. A node with N members, itself
//! included, takes the least t with a(t) ≥ N, gives N · a(t − delay) / a(t) of them away with its
//! next send, and keeps the rest.

use core::ops::Range;

use super::mutants::OVERLAPPING_HALVES;
use crate::wire::group::Spread;

/// How a range is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Class {
    /// The node sends to each member of the range.
    Serial,
    /// The node sends to the first member alone, which serves the rest.
    Pipe,
    /// The node sends to the first member of each half.
    #[default]
    Binary,
    /// Parts of unequal size, by [`Costs`].
    Fibonacci,
}

/// The costs of a send, in units of the caller's choice, each from 1 to [`Costs::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Costs {
    /// How long a sender is busy with one send.
    pub gap: u8,
    /// How long after the send began its receiver can forward.
    pub delay: u8,
    /// How long after the send began its receiver has everything.
    pub arrival: u8,
}

impl Costs {
    /// The largest cost.
    pub const MAX: u8 = 63;

    /// A latency of `latency` sends: the postal model, for small messages.
    #[must_use]
    pub const fn postal(latency: u8) -> Self {
        Self { gap: 1, delay: latency, arrival: latency }
    }

    pub(super) const fn is_valid(self) -> bool {
        let is_paid = self.gap > 0 && self.delay > 0 && self.delay <= self.arrival;
        is_paid && self.gap <= Self::MAX && self.arrival <= Self::MAX
    }

    /// Of `members`, the sender included, how many its next send must reach.
    fn given(self, members: u16) -> u16 {
        let wanted = u32::from(members);
        // The last values of a, by time: no cost reaches further back.
        let mut reached = [1_u32; Self::MAX as usize + 1];
        let before = |reached: &[u32], now: usize, cost: u8| {
            now.checked_sub(usize::from(cost)).map_or(1, |then| reached[then % reached.len()])
        };
        let mut now = 0;
        loop {
            let (kept, given) =
                (before(&reached, now, self.gap), before(&reached, now, self.delay));
            let is_early = now < usize::from(self.arrival);
            let all = if is_early { 1 } else { kept.saturating_add(given) };
            if all >= wanted {
                // Nearest rounding: neither part is then larger than what it can reach in time.
                let share = (2 * u64::from(wanted) * u64::from(given) + u64::from(all))
                    / (2 * u64::from(all));
                return u16::try_from(share).unwrap_or(members).clamp(1, members - 1);
            }
            reached[now % reached.len()] = all;
            now += 1;
        }
    }
}

/// The shape of all trees of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tree {
    /// How ranges are split.
    pub class: Class,
    /// By which ratio [`Class::Fibonacci`] splits.
    pub costs: Costs,
}

impl Tree {
    /// The trees along which blocks travel; none where each member reads from the root, or by the
    /// plan of the pipeline.
    pub(super) const fn of_blocks(self, spread: Spread) -> Option<Self> {
        let class = match spread {
            Spread::Flat | Spread::Pipeline => return None,
            Spread::Pipe => Class::Pipe,
            Spread::Binary => Class::Binary,
            Spread::Fibonacci => Class::Fibonacci,
        };
        Some(Self { class, ..self })
    }

    /// The parts into which the node of `range` splits it, in the order of its sends. The first
    /// member of a part receives from the node and serves the others of its part.
    pub fn parts(self, range: Range<u16>) -> impl Iterator<Item = Range<u16>> + use<> {
        let (mut left, mut is_first) = (range, true);
        core::iter::from_fn(move || {
            let count = left.end.saturating_sub(left.start);
            if count == 0 {
                return None;
            }
            let given = match self.class {
                Class::Serial => 1,
                Class::Pipe => count,
                Class::Binary if is_first => count.div_ceil(2),
                Class::Binary => count,
                Class::Fibonacci => self.costs.given(count + 1),
            };
            let part = left.start..left.start + given;
            let overlap = u16::from(OVERLAPPING_HALVES.is_planted() && is_first && given < count);
            left.start += given - overlap;
            is_first = false;
            Some(part)
        })
    }

    /// From whom `member` of `0..members` receives, and the range that it serves.
    ///
    /// # Panics
    /// When there is no such member, or it is the root: a bug of the caller.
    #[must_use]
    pub fn place(self, members: u16, member: u16) -> Place {
        assert!(member > 0 && member < members, "every member but the root has a place");
        let (mut from, mut range) = (0, 1..members);
        loop {
            let part = self.parts(range).find(|part| part.contains(&member));
            let part = part.unwrap_or(member..member + 1);
            let rest = part.start + 1..part.end;
            if part.start == member {
                return Place { from, serves: rest };
            }
            (from, range) = (part.start, rest);
        }
    }

    /// The range that `member` of `0..members` serves.
    #[must_use]
    pub fn serves(self, members: u16, member: u16) -> Range<u16> {
        if member == 0 { 1..members } else { self.place(members, member).serves }
    }
}

/// The place of a member in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// From whom it receives.
    pub from: u16,
    /// To whom it forwards.
    pub serves: Range<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn trees() -> Vec<Tree> {
        let costs = Costs::postal(4);
        let plain = [Class::Serial, Class::Pipe, Class::Binary];
        let mut trees: Vec<_> = plain.map(|class| Tree { class, costs }).into();
        for costs in [
            Costs::postal(1),
            Costs::postal(2),
            costs,
            Costs::postal(32),
            Costs { gap: 5, delay: 1, arrival: 5 },
            Costs { gap: 63, delay: 1, arrival: 63 },
        ] {
            trees.push(Tree { class: Class::Fibonacci, costs });
        }
        trees
    }

    /// When the last of `members` is reached, sends taken one after the other.
    fn takes(tree: Tree, members: u16) -> u64 {
        let mut last = 0;
        let mut nodes = vec![(0_u64, 1..members)];
        while let Some((start, range)) = nodes.pop() {
            let mut send = start;
            for part in tree.parts(range) {
                last = last.max(send + u64::from(tree.costs.arrival));
                nodes.push((send + u64::from(tree.costs.delay), part.start + 1..part.end));
                send += u64::from(tree.costs.gap);
            }
        }
        last
    }

    /// The least t with a(t) >= members, by the recursion as it is written.
    fn optimum(costs: Costs, members: u64) -> u64 {
        let mut a: Vec<u64> = Vec::new();
        loop {
            let t = a.len();
            let at = |cost: u8| t.checked_sub(usize::from(cost)).map_or(1, |then| a[then]);
            let is_early = t < usize::from(costs.arrival);
            let all = if is_early { 1 } else { at(costs.gap) + at(costs.delay) };
            if all >= members {
                return t as u64;
            }
            a.push(all);
        }
    }

    /// GT-2: a partition, for every size.
    #[test]
    fn each_member_receives_once_and_from_its_predecessor() {
        for tree in trees() {
            for members in (2..=130).chain([255, 256, 257, 511, 1000, 1023, 1024]) {
                let mut received = vec![0_u32; usize::from(members)];
                let mut nodes = vec![(0, 1..members)];
                while let Some((node, range)) = nodes.pop() {
                    for part in tree.parts(range) {
                        received[usize::from(part.start)] += 1;
                        let serves = part.start + 1..part.end;
                        let place = Place { from: node, serves: serves.clone() };
                        assert_eq!(tree.place(members, part.start), place, "{tree:?} {members}");
                        nodes.push((part.start, serves));
                    }
                }
                assert_eq!(received[0], 0);
                assert!(received[1..].iter().all(|times| *times == 1), "{tree:?} {members}");
            }
        }
    }

    /// GT-3.
    #[test]
    fn the_ratio_of_the_costs_meets_the_optimum() {
        for tree in trees().into_iter().filter(|tree| tree.class == Class::Fibonacci) {
            for members in 2..=1024_u16 {
                let best = optimum(tree.costs, u64::from(members));
                assert_eq!(takes(tree, members), best, "{tree:?} {members}");
            }
        }
    }

    #[test]
    fn equal_costs_give_halves_and_long_messages_a_pipe() {
        let parts = |costs| {
            let tree = Tree { class: Class::Fibonacci, costs };
            tree.parts(1..8).collect::<Vec<_>>()
        };
        assert_eq!(parts(Costs::postal(1)), [1..5, 5..7, 7..8]);
        assert_eq!(parts(Costs { gap: 63, delay: 1, arrival: 63 }).first(), Some(&(1..8)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_costs_and_size_give_a_partition(
            members in 2..=1024_u16, gap in 1..=63_u8, delay in 1..=63_u8, more in 0..=62_u8,
        ) {
            let costs = Costs { gap, delay, arrival: delay.saturating_add(more).min(63) };
            prop_assume!(costs.is_valid());
            let tree = Tree { class: Class::Fibonacci, costs };
            let mut seen: Vec<_> = tree.parts(1..members).flatten().collect();
            seen.dedup();
            prop_assert_eq!(seen, (1..members).collect::<Vec<_>>());
            for member in 1..members {
                let place = tree.place(members, member);
                prop_assert!(place.from < member && place.serves.end <= members);
            }
        }
    }
}

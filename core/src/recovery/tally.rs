//! What the ballots of one round come to, by the algorithm of their N-version task (RL-10).
//!
//! ```text
//!   numbers   3  4 │ 41  42  44 │ 97        METRIC WITHIN 5: three of six agree, none of them
//!             └─ 2 ┘ └─── 3 ────┘ └ 1       is further than 5 from another
//! ```
//!
//! Ballots agree if they are equal, or are numbers of which no two are further apart than METRIC
//! says. No outcome is better than one of two that could be defended: where two sets of ballots are
//! the largest, there is none.

use heapless::Vec;

use super::Algorithm;
use super::limits::VERSIONS_MAX;
use crate::vote::{Ballot, BallotKind};

/// The ballots of a round, by version from 1; none for a version that did not vote.
pub type Ballots = [Option<Ballot>; VERSIONS_MAX];

/// What they come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// Who has voted, the first version in bit 0.
    pub voters: u8,
    /// Who agrees with the value; none if there is no value.
    pub agreed: u8,
    /// What [`Self::value`] is.
    pub kind: BallotKind,
    /// The value.
    pub value: i64,
}

/// Counts `ballots` of `versions` versions. Numbers within `within` of each other agree.
#[must_use]
pub fn tally(algorithm: Algorithm, within: Option<u32>, versions: u8, ballots: &Ballots) -> Tally {
    let voters = set_of(ballots, |_| true);
    let majority = |agreed: u8, of: u32| agreed.count_ones() * 2 > of;
    let none = Tally { voters, ..Tally::default() };
    let agreed = largest(ballots, within.unwrap_or_default());
    let of_set = |agreed: u8| {
        let first = ballots.iter().flatten().find(|it| agreed & bit(it.version) != 0);
        first.map_or(none, |Ballot { kind, value, .. }| Tally {
            voters,
            agreed,
            kind: *kind,
            value: *value,
        })
    };
    match algorithm {
        Algorithm::Majority => {
            agreed.filter(|it| majority(*it, versions.into())).map_or(none, of_set)
        }
        Algorithm::SimpleMajority => {
            agreed.filter(|it| majority(*it, voters.count_ones())).map_or(none, of_set)
        }
        Algorithm::Plurality => agreed.map_or(none, of_set),
        Algorithm::Median | Algorithm::Average | Algorithm::WeightedAverage => {
            let numbers = numbers(ballots);
            let value = match algorithm {
                Algorithm::Median => median(&numbers),
                Algorithm::Average => average(&numbers),
                _ => weighted_average(&numbers),
            };
            let near = |at: &Ballot, value: i64| {
                within.is_none_or(|within| at.value.abs_diff(value) <= u64::from(within))
            };
            value.map_or(none, |value| {
                let agreed = set_of(ballots, |it| it.kind == BallotKind::Number && near(it, value));
                Tally { voters, agreed, kind: BallotKind::Number, value }
            })
        }
    }
}

const fn bit(version: u8) -> u8 {
    match version {
        1..=8 => 1 << (version - 1),
        _ => 0,
    }
}

fn set_of(ballots: &Ballots, is_in: impl Fn(&Ballot) -> bool) -> u8 {
    let found = ballots.iter().flatten().filter(|it| is_in(it));
    found.fold(0, |set, it| set | bit(it.version))
}

/// The largest set of ballots that agree; none if there are several, or no ballots.
fn largest(ballots: &Ballots, within: u32) -> Option<u8> {
    let lowest = |low: &Ballot| {
        let agrees = |it: &Ballot| match (low.kind, it.kind) {
            (BallotKind::Number, BallotKind::Number) => {
                it.value >= low.value && it.value.abs_diff(low.value) <= u64::from(within)
            }
            _ => (it.kind, it.value) == (low.kind, low.value),
        };
        set_of(ballots, agrees)
    };
    let sets = || ballots.iter().flatten().map(lowest);
    let most = sets().map(u8::count_ones).max()?;
    let mut found = sets().filter(|set| set.count_ones() == most);
    let first = found.next()?;
    found.all(|set| set == first).then_some(first)
}

/// The numbers, the smallest first.
fn numbers(ballots: &Ballots) -> Vec<i64, VERSIONS_MAX> {
    let mut numbers = Vec::<i64, VERSIONS_MAX>::new();
    for ballot in ballots.iter().flatten().filter(|it| it.kind == BallotKind::Number) {
        let pushed = numbers.push(ballot.value);
        debug_assert!(pushed.is_ok(), "there is room for all versions");
    }
    // The sort of `core` can panic, and these are eight at most.
    for at in (0..numbers.len()).cycle().take(numbers.len() * numbers.len()) {
        if let Some([low, high]) = numbers.get_mut(at..at + 2)
            && *low > *high
        {
            core::mem::swap(low, high);
        }
    }
    numbers
}

/// The middle number, of an even count the lower of both.
fn median(numbers: &[i64]) -> Option<i64> {
    numbers.get(numbers.len().checked_sub(1)? / 2).copied()
}

fn average(numbers: &[i64]) -> Option<i64> {
    let sum: i128 = numbers.iter().copied().map(i128::from).sum();
    let count = i128::try_from(numbers.len()).ok().filter(|count| *count > 0)?;
    i64::try_from(sum.div_euclid(count)).ok()
}

/// The mean in which a number weighs the less, the further the others are from it: with D for the
/// sum of its distances from the others, as 1 to 1 + D. Distances are rounded where they have more
/// than 40 bits, so that the sums have room.
fn weighted_average(numbers: &[i64]) -> Option<i64> {
    let (least, greatest) = (*numbers.first()?, *numbers.last()?);
    let coarse = 64_u32.saturating_sub(greatest.abs_diff(least).leading_zeros()).saturating_sub(40);
    let far = |number: i64| -> i128 {
        numbers.iter().map(|other| i128::from(number.abs_diff(*other) >> coarse)).sum()
    };
    let furthest = numbers.iter().map(|number| far(*number)).max()?;
    let weight = |number: i64| ((1 + furthest) << 16).checked_div(1 + far(number)).unwrap_or(0);
    let total: i128 = numbers.iter().map(|number| weight(*number)).sum();
    let offset = |number: i64| i128::from(number) - i128::from(least);
    let sum: i128 = numbers.iter().map(|number| weight(*number) * offset(*number)).sum();
    i64::try_from(i128::from(least) + sum.checked_div(total)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ballots(kind: BallotKind, values: &[i64]) -> Ballots {
        let mut all = Ballots::default();
        for ((slot, value), version) in all.iter_mut().zip(values).zip(1..) {
            *slot = Some(Ballot { nversion: 0, version, round: 1, kind, value: *value });
        }
        all
    }

    fn of(algorithm: Algorithm, within: Option<u32>, values: &[i64]) -> (u8, i64) {
        let ballots = ballots(BallotKind::Number, values);
        let found = tally(algorithm, within, 5, &ballots);
        (found.agreed, found.value)
    }

    #[test]
    fn rl10_each_algorithm_has_its_outcome() {
        use Algorithm::{Average, Majority, Median, Plurality, SimpleMajority, WeightedAverage};
        let none = (0, 0);
        for (algorithm, within, values, wanted) in [
            (Majority, None, &[4, 9, 4, 4][..], (0b1101, 4)),
            // Three of five versions are needed, however few have voted.
            (Majority, None, &[4, 4], none),
            (SimpleMajority, None, &[4, 4, 7], (0b011, 4)),
            (SimpleMajority, None, &[4, 7], none),
            (Plurality, None, &[1, 2, 3, 3, 9], (0b1100, 3)),
            (Plurality, None, &[1, 1, 3, 3, 9], none),
            (Majority, Some(5), &[40, 97, 44, 42], (0b1101, 40)),
            // 0 and 5 agree, 5 and 10 agree, and all three do not.
            (SimpleMajority, Some(5), &[0, 5, 10], none),
            (Median, None, &[900, 3, 5], (0b111, 5)),
            (Median, Some(2), &[900, 3, 5, 4], (0b1110, 4)),
            (Average, None, &[1, 2, 6], (0b111, 3)),
            (Average, None, &[-1, -2], (0b11, -2)),
            (Average, Some(10), &[100, 98, 0], (0, 66)),
            (WeightedAverage, None, &[100, 102, 1_000], (0b111, 281)),
            (WeightedAverage, None, &[i64::MIN, i64::MAX], (0b11, -1)),
            (Median, None, &[], none),
            (WeightedAverage, None, &[], none),
        ] {
            assert_eq!(of(algorithm, within, values), wanted, "{algorithm:?} of {values:?}");
        }
    }

    #[test]
    fn rl10_digests_agree_if_they_are_equal_and_have_no_mean() {
        let digests = ballots(BallotKind::Digest, &[7, 8, 7]);
        let found = tally(Algorithm::Majority, Some(5), 3, &digests);
        assert_eq!((found.agreed, found.kind, found.value), (0b101, BallotKind::Digest, 7));
        let mean = tally(Algorithm::Average, None, 3, &digests);
        assert_eq!((mean.voters, mean.agreed), (0b111, 0));
    }
}

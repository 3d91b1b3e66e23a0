//! Random numbers that mean the same on every machine: ChaCha8, one stream for each purpose.
//!
//! Streams are apart so that one more draw for one purpose moves nothing else: a fault that is
//! left out of a replay leaves every other fault where it was.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What random numbers are drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Sizes, rates and roles of the run.
    Setup = 1,
    /// How long things take that go well.
    Schedule = 2,
    /// What the nodes are asked to do.
    Work = 3,
    /// Who restarts when, after a death.
    Recovery = 4,
    /// Which bytes arrive first during a read.
    Races = 5,
    /// What a liar does.
    Lies = 6,
    /// Which writes that are apart overtake reads and atomics.
    Overtaking = 7,
    /// What the fabric promises, and which works it answers at once.
    Promises = 8,
    /// Faults: the stream of fault kind `k` is this and `k`.
    Faults = 64,
}

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draws(Box<ChaCha8Rng>);

impl Draws {
    /// The stream of `seed` for `purpose`.
    #[must_use]
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        Self::numbered(seed, purpose, 0)
    }

    /// One of several streams for the same purpose.
    #[must_use]
    pub fn numbered(seed: u64, purpose: Purpose, number: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(purpose as u64 + number);
        Self(Box::new(generator))
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        scale(self.word(), end)
    }

    /// A number from `low` to `high`, both included.
    ///
    /// # Panics
    /// When `low` is above `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A number from `low` to about `high`, any order of magnitude as likely as another.
    pub fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let doublings = (high / low.max(1)).max(1).ilog2();
        let base = low << self.below(u64::from(doublings) + 1);
        self.between(base, base.saturating_mul(2)).min(high)
    }

    /// True `times` out of `of`.
    pub fn chance(&mut self, times: u64, of: u64) -> bool {
        self.below(of) < times
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// When there is none.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// A position in a list of `len`.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(usize::MAX)
    }

    /// Puts `items` into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// `len` random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}

/// `word` as a number below `end`.
pub(super) fn scale(word: u64, end: u64) -> u64 {
    ((u128::from(word) * u128::from(end)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_for_ever() {
        let mut draws = Draws::new(7, Purpose::Setup);
        assert_eq!(
            [draws.word(), draws.word()],
            [18_301_176_669_829_311_175, 166_969_048_821_288_533]
        );
    }

    #[test]
    fn purposes_are_apart_and_numbers_stay_in_range() {
        let mut one = Draws::new(7, Purpose::Setup);
        let mut other = Draws::new(7, Purpose::Schedule);
        assert_ne!(one.word(), other.word());
        assert!((0..1000).all(|_| (3..=5).contains(&one.between(3, 5))));
        let all: Vec<u64> = (0..1000).map(|_| one.magnitude(10, 10_000)).collect();
        assert!(all.iter().all(|n| (10..=10_000).contains(n)));
        assert!(all.iter().filter(|n| **n < 100).count() > 200);
        assert_eq!(one.below(0), 0);
    }
}

//! A histogram of latencies in powers of two: to record one is two additions.

use serde::{Deserialize, Serialize};

/// How often something took how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// How many took no longer than [`Self::BOUNDS_NS`] at the same place, and longer than the one
    /// before it; the last place counts those that took longer than all of them.
    pub counts: [u64; Self::PLACES],
    /// The sum of all of them, in nanoseconds.
    pub sum_ns: u64,
}

impl Latency {
    const PLACES: usize = 26;
    /// The first bound is two to the power of this.
    const FIRST_LOG2: u32 = 9;

    /// Nothing yet.
    pub(in crate::node) const NONE: Self = Self { counts: [0; Self::PLACES], sum_ns: 0 };

    /// The upper bounds, inclusive: from half a microsecond to eight seconds.
    pub const BOUNDS_NS: [u64; Self::PLACES - 1] = {
        let (mut bounds, mut at) = ([1 << Self::FIRST_LOG2; Self::PLACES - 1], 1);
        while at < bounds.len() {
            bounds[at] = bounds[at - 1] * 2;
            at += 1;
        }
        bounds
    };

    /// Counts one that began and ended at these times, by one clock.
    #[inline]
    pub(in crate::node) fn record(&mut self, began_ns: u64, ended_ns: u64) {
        let took_ns = ended_ns.saturating_sub(began_ns);
        let log2 = u64::BITS - took_ns.saturating_sub(1).leading_zeros();
        let place = log2.saturating_sub(Self::FIRST_LOG2) as usize;
        self.counts[place.min(Self::PLACES - 1)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(took_ns);
    }

    /// Of both together.
    #[must_use]
    pub(in crate::node) fn plus(mut self, other: &Self) -> Self {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, more)| *sum += more);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_latency_is_counted_below_the_first_bound_that_holds_it() {
        let place_of = |took_ns| {
            let mut latency = Latency::default();
            latency.record(1, 1 + took_ns);
            assert_eq!((latency.sum_ns, latency.counts.iter().sum()), (took_ns, 1_u64));
            latency.counts.iter().position(|count| *count == 1).expect("it is counted")
        };
        for took_ns in [0, 1, 511, 512, 513, 1024, 1025, 1 << 33, (1 << 33) + 1, u64::MAX - 1] {
            let bound = Latency::BOUNDS_NS.iter().position(|bound| took_ns <= *bound);
            assert_eq!(place_of(took_ns), bound.unwrap_or(Latency::BOUNDS_NS.len()), "{took_ns}");
        }
        assert_eq!(Latency::BOUNDS_NS.last(), Some(&(1 << 33)));
    }

    #[test]
    fn a_clock_that_runs_backwards_counts_as_no_time() {
        let mut latency = Latency::default();
        latency.record(7, 3);
        assert_eq!((latency.counts[0], latency.sum_ns), (1, 0));
        assert_eq!(latency.plus(&latency).counts[0], 2);
    }
}

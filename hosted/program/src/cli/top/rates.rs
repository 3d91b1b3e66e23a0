//! From two surveys to rates.

use std::collections::BTreeMap;

use crate::cli::survey::Survey;

/// Messages per second of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rates {
    pub(super) put: u64,
    pub(super) taken: u64,
}

/// The counters of one node, and its incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    incarnation: u32,
    put: u64,
    taken: u64,
}

/// What is drawn.
#[derive(Debug, Default)]
pub(super) struct Screen {
    pub(super) survey: Option<Survey>,
    pub(super) rates: BTreeMap<u16, Rates>,
    counts: BTreeMap<u16, Count>,
    counted_at_ns: u64,
}

impl Screen {
    pub(super) fn handle_survey(&mut self, at_ns: u64, survey: Survey) {
        let period_ns = at_ns.saturating_sub(self.counted_at_ns).max(1);
        let counts: BTreeMap<u16, Count> = survey
            .answered()
            .filter_map(|node| {
                let (incarnation, counters) = (node.incarnation, node.counters?);
                let count = Count { incarnation, put: counters.put, taken: counters.taken };
                Some((node.rank, count))
            })
            .collect();
        self.rates = counts
            .iter()
            .filter_map(|(rank, now)| Some((*rank, now.since(self.counts.get(rank)?, period_ns)?)))
            .collect();
        self.counts = counts;
        self.counted_at_ns = at_ns;
        self.survey = Some(survey);
    }
}

impl Count {
    /// The rates since `earlier`; none if another incarnation counted then.
    fn since(&self, earlier: &Self, period_ns: u64) -> Option<Rates> {
        let rate = |now: u64, then: u64| {
            let per_s = u128::from(now.saturating_sub(then)) * 1_000_000_000;
            u64::try_from(per_s / u128::from(period_ns)).unwrap_or(u64::MAX)
        };
        (self.incarnation == earlier.incarnation).then(|| Rates {
            put: rate(self.put, earlier.put),
            taken: rate(self.taken, earlier.taken),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_one_life() {
        let earlier = Count { incarnation: 1, put: 100, taken: 7 };
        let later = Count { put: 1100, ..earlier };
        let half_a_second = 500_000_000;
        let expected = Rates { put: 2000, taken: 0 };
        assert_eq!(later.since(&earlier, half_a_second), Some(expected));
        let next_life = Count { incarnation: 2, ..later };
        assert_eq!(next_life.since(&earlier, half_a_second), None);
    }
}

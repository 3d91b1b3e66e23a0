//! Samples and what is said of them: order statistics, never means.

use serde::{Deserialize, Serialize};

/// Samples beyond these are not kept: 32 MiB.
const SAMPLES_MAX: usize = 1 << 22;

/// Spans of one kind, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Samples(Vec<f64>);

/// What is said of samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Figure {
    pub(super) count: usize,
    pub(super) min_ns: f64,
    pub(super) max_ns: f64,
    pub(super) p50_ns: f64,
    pub(super) p99_ns: f64,
    pub(super) p999_ns: f64,
}

impl Samples {
    /// Adds a span that `parts` of equal length share.
    #[inline]
    pub(super) fn push(&mut self, span_ns: u64, parts: u64) {
        if self.0.len() < SAMPLES_MAX {
            self.0.push(span_ns as f64 / parts as f64);
        }
    }

    /// Adds a number as it is.
    pub(super) fn push_value(&mut self, value: f64) {
        if self.0.len() < SAMPLES_MAX {
            self.0.push(value);
        }
    }

    /// Adds the samples of another round.
    pub(super) fn extend(&mut self, other: Self) {
        let room = SAMPLES_MAX - self.0.len();
        self.0.extend(other.0.into_iter().take(room));
    }

    /// The median; nothing of nothing.
    pub(super) fn median(&mut self) -> Option<f64> {
        self.0.sort_unstable_by(f64::total_cmp);
        (!self.0.is_empty()).then(|| rank(&self.0, 500))
    }

    /// The order statistics; nothing of nothing.
    pub(super) fn figure(&self) -> Option<Figure> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Figure {
            count: sorted.len(),
            min_ns: *sorted.first()?,
            max_ns: *sorted.last()?,
            p50_ns: rank(&sorted, 500),
            p99_ns: rank(&sorted, 990),
            p999_ns: rank(&sorted, 999),
        })
    }
}

/// The smallest sample that `permille` of all samples do not exceed (nearest rank).
fn rank(sorted: &[f64], permille: usize) -> f64 {
    let rank = (sorted.len() * permille).div_ceil(1000).max(1);
    sorted[rank - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_of_the_nearest_rank() {
        let mut samples = Samples::default();
        for ns in (1..=1000).rev() {
            samples.push(ns, 1);
        }
        let figure = samples.figure().unwrap();
        assert_eq!((figure.count, figure.min_ns, figure.max_ns), (1000, 1.0, 1000.0));
        assert_eq!((figure.p50_ns, figure.p99_ns, figure.p999_ns), (500.0, 990.0, 999.0));
    }

    #[test]
    fn one_sample_is_every_percentile_and_none_is_no_figure() {
        let mut samples = Samples::default();
        samples.push(7, 2);
        let figure = samples.figure().unwrap();
        assert_eq!([figure.p50_ns, figure.p99_ns, figure.p999_ns], [3.5; 3]);
        assert_eq!(Samples::default().figure(), None);
    }
}

//! Alpha-count (Bondavalli et al.): tells transient faults from permanent ones by how often a task
//! fails (RL-7).
//!
//! An error adds 1; a period without one is a success and multiplies by the factor. In Q8.8: 256 is
//! 1. The count saturates just below 256.

use crate::time::{Duration, Instant};

/// How the errors of a task are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AlphaRule {
    /// Below it a fault is transient, in 256ths.
    pub threshold: u16,
    /// What a success leaves of the count, in 256ths; at most [`AlphaRule::ONE`].
    pub factor: u16,
    /// A period without an error is a success.
    pub period: Duration,
}

impl AlphaRule {
    /// 1 in Q8.8.
    pub const ONE: u16 = 256;
}

/// The count of one task, as its node keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AlphaCount {
    alpha: u16,
    since: Instant,
}

impl AlphaCount {
    /// A count that was `alpha` at `since`.
    #[must_use]
    pub const fn new(alpha: u16, since: Instant) -> Self {
        Self { alpha, since }
    }

    /// Counts an error. The period begins again.
    pub fn handle_error(&mut self, now: Instant, rule: &AlphaRule) {
        let alpha = self.at(now, rule).saturating_add(AlphaRule::ONE);
        *self = Self { alpha, since: now };
    }

    /// The count at `now`, after the successes since the last error.
    #[must_use]
    pub fn at(&self, now: Instant, rule: &AlphaRule) -> u16 {
        if rule.factor >= AlphaRule::ONE {
            return self.alpha;
        }
        let successes = now.since(self.since).0.checked_div(rule.period.0).unwrap_or(0);
        let mut alpha = u32::from(self.alpha);
        // Each step takes at least 1 off, so there are fewer than 65,536.
        for _ in 0..successes {
            if alpha == 0 {
                break;
            }
            alpha = (alpha * u32::from(rule.factor)) >> 8;
        }
        u16::try_from(alpha).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: AlphaRule =
        AlphaRule { threshold: 768, factor: 128, period: Duration::from_millis(1_000) };

    const fn ms(count: u64) -> Instant {
        Instant(count * 1_000_000)
    }

    #[test]
    fn rl7_an_error_adds_one_and_a_period_without_one_halves() {
        let mut count = AlphaCount::default();
        count.handle_error(ms(0), &RULE);
        count.handle_error(ms(10), &RULE);
        assert_eq!(count.at(ms(1_009), &RULE), 512);
        assert_eq!(count.at(ms(1_010), &RULE), 256);
        assert_eq!(count.at(ms(3_010), &RULE), 64);
        count.handle_error(ms(3_010), &RULE);
        assert_eq!(count, AlphaCount::new(320, ms(3_010)));
    }

    #[test]
    fn rl7_the_count_saturates_and_decays_to_zero() {
        let mut count = AlphaCount::default();
        for _ in 0..300 {
            count.handle_error(ms(5), &RULE);
        }
        assert_eq!(count.at(ms(5), &RULE), u16::MAX);
        assert_eq!(count.at(Instant(u64::MAX), &RULE), 0);
        let slow = AlphaRule { factor: 255, ..RULE };
        assert_eq!(count.at(Instant(u64::MAX), &slow), 0);
    }

    #[test]
    fn a_factor_of_one_and_a_period_of_zero_never_decay() {
        let count = AlphaCount::new(700, ms(0));
        let (whole, still) = (AlphaRule { factor: 256, ..RULE }, Duration(0));
        assert_eq!(count.at(Instant(u64::MAX), &whole), 700);
        assert_eq!(count.at(Instant(u64::MAX), &AlphaRule { period: still, ..RULE }), 700);
    }
}

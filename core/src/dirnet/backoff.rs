//! Exponential back-off: the wait before a retry doubles with each failure in a row.

use crate::time::Duration;

/// The waits between failures in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// Waits `first` after the first failure, and never longer than `longest`.
    pub(super) const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// Counts a failure and returns the wait before the next try.
    pub(super) fn fail(&mut self) -> Duration {
        let factor = 1_u64.checked_shl(self.failures).unwrap_or(u64::MAX);
        self.failures = self.failures.saturating_add(1);
        Duration(self.first.0.saturating_mul(factor)).min(self.longest)
    }

    /// Counts a success: the next failure waits for the shortest time again.
    pub(super) const fn succeed(&mut self) {
        self.failures = 0;
    }

    /// The number of failures in a row.
    pub(super) const fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew_after_a_success() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(10), ms(70));
        for wait in [10, 20, 40, 70, 70] {
            assert_eq!(backoff.fail(), ms(wait));
        }
        for _ in 0..100 {
            assert_eq!(backoff.fail(), ms(70));
        }
        assert_eq!(backoff.failures(), 105);
        backoff.succeed();
        assert_eq!((backoff.failures(), backoff.fail()), (0, ms(10)));
    }
}

//! Restart intensity: at most r restarts within t, as Erlang's supervisors have it.

use super::config::RestartLimit;
use crate::time::{Duration, Instant};

/// Counts restarts within a sliding window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Intensity {
    /// When the latest restarts happened, oldest first.
    restarts: [Instant; RestartLimit::MAX as usize],
    count: u8,
}

impl Intensity {
    /// Whether one more restart at `now` is within `limit`; if so, it is counted.
    pub(super) fn allows(&mut self, now: Instant, limit: RestartLimit) -> bool {
        let mut kept = 0;
        for at in 0..usize::from(self.count) {
            if now.since(self.restarts[at]) < limit.within {
                self.restarts[kept] = self.restarts[at];
                kept += 1;
            }
        }
        self.restarts[kept..].fill(Instant(0));
        let is_allowed = kept < usize::from(limit.max);
        if is_allowed {
            self.restarts[kept] = now;
            kept += 1;
        }
        self.count = u8::try_from(kept).unwrap_or(RestartLimit::MAX);
        is_allowed
    }

    /// The same counts, seen from an origin of time that lies `by` later.
    pub(super) fn rebase(&mut self, by: Duration) {
        for at in &mut self.restarts[..usize::from(self.count)] {
            *at = Instant(at.since(Instant(by.0)).0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWICE: RestartLimit = RestartLimit { max: 2, within: Duration(10) };

    #[test]
    fn restarts_leave_the_window_one_by_one() {
        let mut intensity = Intensity::default();
        assert!(intensity.allows(Instant(1), TWICE) && intensity.allows(Instant(5), TWICE));
        assert!(!intensity.allows(Instant(10), TWICE));
        assert!(intensity.allows(Instant(11), TWICE));
        assert!(!intensity.allows(Instant(14), TWICE));
        assert!(intensity.allows(Instant(15), TWICE));
    }

    #[test]
    fn none_allowed_means_none() {
        let limit = RestartLimit { max: 0, within: Duration(1) };
        assert!(!Intensity::default().allows(Instant(0), limit));
    }
}

//! Restart intensity: at most so many restarts within so long, as in Erlang's supervisors.

use std::collections::VecDeque;
use std::time::Duration;

use crate::cluster::Restart;

/// The longest pause before a restart.
const PAUSE_NS_MAX: u64 = 1_000_000_000;

/// Counts restarts within a sliding window.
#[derive(Debug)]
pub(super) struct Intensity {
    max: usize,
    within_ns: u64,
    /// When the counted restarts happened, at most `max` of them.
    restarts: VecDeque<u64>,
}

impl Intensity {
    pub(super) fn new(limit: &Restart) -> Self {
        let within: Duration = limit.within();
        let within_ns = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
        Self { max: limit.max, within_ns, restarts: VecDeque::new() }
    }

    /// Drops the restarts that no longer count.
    pub(super) fn handle_time(&mut self, now_ns: u64) {
        while self.restarts.front().is_some_and(|at| now_ns - at >= self.within_ns) {
            self.restarts.pop_front();
        }
    }

    /// How many more restarts the limit allows, as of the last `handle_time`.
    pub(super) fn left(&self) -> usize {
        self.max - self.restarts.len()
    }

    /// How long to wait before the next restart: not at all when none counts, and otherwise so long
    /// that a process that fails at once is not started in a tight loop. All pauses together are a
    /// quarter of the window at most, so that they hide no failure from the limit.
    pub(super) fn pause_ns(&mut self, now_ns: u64) -> u64 {
        self.handle_time(now_ns);
        if self.restarts.is_empty() {
            return 0;
        }
        let share = self.within_ns / 4 / u64::try_from(self.max.max(1)).unwrap_or(u64::MAX);
        share.min(PAUSE_NS_MAX)
    }

    /// Counts from the beginning.
    pub(super) fn forget(&mut self) {
        self.restarts.clear();
    }

    /// Whether one more restart at `now_ns` is within the limit; if so, it is counted.
    pub(super) fn allows(&mut self, now_ns: u64) -> bool {
        self.handle_time(now_ns);
        let allowed = self.restarts.len() < self.max;
        if allowed {
            self.restarts.push_back(now_ns);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn twice_in_ten_seconds() -> Intensity {
        Intensity::new(&Restart { max: 2, within_s: 10 })
    }

    #[test]
    fn the_third_restart_within_the_window_is_one_too_many() {
        let mut intensity = twice_in_ten_seconds();
        assert!(intensity.allows(SECOND) && intensity.allows(2 * SECOND));
        assert!(!intensity.allows(10 * SECOND));
    }

    #[test]
    fn restarts_leave_the_window_one_by_one() {
        let mut intensity = twice_in_ten_seconds();
        assert!(intensity.allows(0) && intensity.allows(5 * SECOND));
        assert!(intensity.allows(10 * SECOND));
        assert!(!intensity.allows(14 * SECOND));
        assert!(intensity.allows(15 * SECOND));
    }

    #[test]
    fn the_first_restart_needs_no_pause_and_pauses_fit_into_the_window() {
        let mut intensity = twice_in_ten_seconds();
        assert_eq!(intensity.pause_ns(0), 0);
        assert!(intensity.allows(0));
        assert_eq!((intensity.pause_ns(SECOND), intensity.left()), (SECOND, 1));
        assert_eq!(intensity.pause_ns(10 * SECOND), 0);
        for (max, within_s) in [(1, 1), (10, 1), (10_000, 1), (10_000, 86_400)] {
            let mut intensity = Intensity::new(&Restart { max, within_s });
            assert!(intensity.allows(0));
            let pauses = intensity.pause_ns(0) * max as u64;
            assert!(pauses <= within_s * SECOND / 4, "{max} in {within_s} s");
        }
    }

    #[test]
    fn none_allowed_means_none() {
        assert!(!Intensity::new(&Restart { max: 0, within_s: 1 }).allows(0));
    }
}

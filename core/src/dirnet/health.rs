//! Local health: an observer that was late itself extends the deadlines of others.
//!
//! The loop calls no later than the earliest deadline. Any delay beyond that is time in which this
//! node did not poll and could have heard no peer, so silence over that span is no evidence.

use crate::time::{Duration, Instant};

/// Measures how late this node's own loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Health {
    looked: Instant,
}

impl Health {
    pub(super) const fn new(now: Instant) -> Self {
        Self { looked: now }
    }

    /// Records that the loop calls now although it was due at `due`. Returns how late it is, if
    /// that is more than `tolerated`.
    pub(super) fn look(
        &mut self,
        now: Instant,
        due: Option<Instant>,
        tolerated: Duration,
    ) -> Option<Duration> {
        let expected = due.map_or(now, |due| due.max(self.looked));
        self.looked = now.max(self.looked);
        let lag = now.since(expected);
        (lag > tolerated && !super::NO_LOCAL_HEALTH.is_planted()).then_some(lag)
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.looked = Instant(self.looked.since(Instant(by.0)).0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x3_a_lag_is_noticed_once_and_only_past_what_is_tolerated() {
        let mut health = Health::new(Instant(0));
        let tolerated = Duration(10);
        assert_eq!(health.look(Instant(15), Some(Instant(5)), tolerated), None);
        assert_eq!(health.look(Instant(41), Some(Instant(30)), tolerated), Some(Duration(11)));
        assert_eq!(health.look(Instant(42), Some(Instant(30)), tolerated), None);
        assert_eq!(health.look(Instant(99), Some(Instant(100)), tolerated), None);
        assert_eq!(health.look(Instant(300), None, tolerated), None);
    }
}

//! The idle back-off of the loop: the bound on noticing what rings no bell.
//!
//! Peers over shared memory ring when they have written. Over verbs no peer rings, so a sleep is
//! how long a message lies unread. It grows with idleness: a node that polled two thousand times a
//! second would take processor time from processes that have work:
//!
//! ```text
//!   idle for   up to 4 ms     8 ms      16 ms     40 ms and more
//!   sleeps       0.5 ms       1 ms      2 ms      5 ms
//! ```

use std::time::Duration;

use crate::cluster::FabricKind;

/// The longest sleep where peers ring.
const RUNG: Duration = Duration::from_millis(10);
/// The shortest and the longest sleep where they do not.
const UNRUNG_MIN: Duration = Duration::from_micros(500);
const UNRUNG_MAX: Duration = Duration::from_millis(5);
/// A sleep is at most one part in so many of the time without progress.
const PART: u64 = 8;

/// The sleeps of one loop.
#[derive(Debug)]
pub(super) struct IdleBackoff {
    fabric: FabricKind,
    /// The time of the last known progress.
    busy_at_ns: u64,
}

impl IdleBackoff {
    pub(super) const fn new(fabric: FabricKind, now_ns: u64) -> Self {
        Self { fabric, busy_at_ns: now_ns }
    }

    /// Records progress: idleness starts over.
    pub(super) const fn note_progress(&mut self, now_ns: u64) {
        self.busy_at_ns = now_ns;
    }

    /// How long a sleep that begins now may last.
    pub(super) fn longest(&self, now_ns: u64) -> Duration {
        match self.fabric {
            FabricKind::Shm => RUNG,
            FabricKind::Verbs => {
                let idle = Duration::from_nanos(now_ns.saturating_sub(self.busy_at_ns) / PART);
                idle.clamp(UNRUNG_MIN, UNRUNG_MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn unrung_sleeps_grow_with_idleness_and_start_over_with_progress() {
        let mut idle_backoff = IdleBackoff::new(FabricKind::Verbs, 100 * MS);
        assert_eq!(idle_backoff.longest(101 * MS), UNRUNG_MIN);
        assert_eq!(idle_backoff.longest(116 * MS), Duration::from_millis(2));
        assert_eq!(idle_backoff.longest(999 * MS), UNRUNG_MAX);
        idle_backoff.note_progress(999 * MS);
        assert_eq!(idle_backoff.longest(999 * MS), UNRUNG_MIN);
    }

    #[test]
    fn who_is_rung_sleeps_for_long() {
        assert_eq!(IdleBackoff::new(FabricKind::Shm, 0).longest(0), RUNG);
    }
}

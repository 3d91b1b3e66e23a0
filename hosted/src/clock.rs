//! The one clock of the hosted crate.
//!
//! Every other module takes time as a number or a [`Deadline`]; only this one asks the kernel.
//! The clock is CLOCK_MONOTONIC, which all processes of one host share: a stamp written into
//! shared memory by one process can be compared with the clock of another. It neither jumps
//! nor runs backwards, and it stands still while the machine is suspended.
//!
//! Not for comparing hosts. The one date that is read is that from which counters count.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;

/// Nanoseconds of CLOCK_MONOTONIC, comparable between the processes of one host.
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The clock starts at boot, so neither part is negative and 584 years fit.
    now.tv_sec.unsigned_abs() * NS_PER_S + now.tv_nsec.unsigned_abs()
}

/// Milliseconds since 1970, by the host's calendar, which may be set.
#[must_use]
pub fn unix_ms() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    // A calendar before 1970 counts as 1970.
    let (s, ns) = (now.tv_sec.max(0).unsigned_abs(), now.tv_nsec.unsigned_abs());
    s * 1_000 + ns / 1_000_000
}

/// The end of a wait: a fixed point in time, so that interrupted waits do not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    at_ns: u64,
}

impl Deadline {
    /// The point `timeout` from now; a timeout too long to represent never passes.
    #[must_use]
    pub fn after(timeout: Duration) -> Self {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        Self { at_ns: now_ns().saturating_add(timeout_ns) }
    }

    /// The time left, zero once the deadline has passed.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        Duration::from_nanos(self.at_ns.saturating_sub(now_ns()))
    }

    /// Whether no time is left.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.remaining().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_never_runs_backwards() {
        let stamps: Vec<u64> = (0..1000).map(|_| now_ns()).collect();
        assert!(stamps.is_sorted());
        assert!(stamps[0] > 0);
    }

    #[test]
    fn zero_timeout_has_passed_at_once() {
        let deadline = Deadline::after(Duration::ZERO);
        assert!(deadline.has_passed());
        assert_eq!(deadline.remaining(), Duration::ZERO);
    }

    #[test]
    fn longest_timeout_saturates_and_stays_open() {
        let deadline = Deadline::after(Duration::MAX);
        assert!(!deadline.has_passed());
        assert!(deadline.remaining() > Duration::from_secs(1_000_000_000));
    }

    #[test]
    fn later_timeouts_order_after_earlier_ones() {
        let near = Deadline::after(Duration::from_secs(10));
        let far = Deadline::after(Duration::from_secs(20));
        assert!(near < far);
    }
}

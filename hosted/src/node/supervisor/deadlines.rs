//! The supervisor's deadlines, all in one wheel: its loop sleeps until the earliest.
//!
//! Each part that waits for something exposes one deadline, computed from its state; after every
//! turn of the loop it is set here again. An expired deadline only causes a turn, in which every
//! part checks the time itself.

use std::time::Duration;

use weft_core::time::{self, Instant};
use weft_core::wheel::{Key, Wheel};

/// Deadlines are rounded up to multiples of this.
const TICK: time::Duration = time::Duration::from_millis(1);
/// Steps of the wheel in a turn: more than all its timers need.
const BUDGET: u32 = 64;

/// The parts that have a deadline.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// An incarnation for which work was lost is fenced, or a peer is fenced again.
    Fence,
    /// A client's request times out.
    Clients,
    /// A client's broadcast that waits for another client times out.
    SendQueue,
    /// A task has sent no beat for too long.
    Tasks,
    /// A component that just started has made no progress for too long, or enters the DIR net; one
    /// that could not be started is tried again.
    Starts,
    /// A client has waited for a tensor, or for its receiver, for too long.
    Tensors,
}

const TIMERS: usize = Timer::Tensors as usize + 1;

/// One deadline for each [`Timer`].
#[derive(Debug)]
pub(super) struct Deadlines {
    wheel: Wheel<TIMERS>,
}

impl Deadlines {
    pub(super) const fn new() -> Self {
        Self { wheel: Wheel::new(TICK) }
    }

    /// Sets the deadline of `timer`, or cancels it.
    pub(super) fn keep(&mut self, timer: Timer, deadline_ns: Option<u64>) {
        let kept = self.wheel.keep(Key(timer as u32), deadline_ns.map(Instant));
        debug_assert!(kept.is_ok(), "every timer has its key");
    }

    /// Advances the time, and drops the deadlines that have passed.
    pub(super) fn pass(&mut self, now_ns: u64) {
        if self.wheel.advance(Instant(now_ns), BUDGET).is_ok() {
            while self.wheel.poll_expired().is_some() {}
        }
    }

    /// How long from `now_ns` until the earliest deadline, at most `longest`.
    pub(super) fn sleep(&self, now_ns: u64, longest: Duration) -> Duration {
        let next = self.wheel.next_deadline();
        let left = next.map(|at| Duration::from_nanos(at.0.saturating_sub(now_ns)));
        left.unwrap_or(longest).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LONGEST: Duration = Duration::from_secs(1);

    #[test]
    fn the_loop_sleeps_until_the_earliest_deadline_and_no_longer_than_it_may() {
        let mut deadlines = Deadlines::new();
        assert_eq!(deadlines.sleep(0, LONGEST), LONGEST);
        deadlines.keep(Timer::Tasks, Some(40 * MS));
        deadlines.keep(Timer::Fence, Some(10 * MS));
        assert_eq!(deadlines.sleep(2 * MS, LONGEST), Duration::from_millis(8));
        deadlines.keep(Timer::Fence, None);
        assert_eq!(deadlines.sleep(2 * MS, LONGEST), Duration::from_millis(38));
        assert_eq!(deadlines.sleep(2 * MS, Duration::from_millis(1)), Duration::from_millis(1));
    }

    #[test]
    fn a_deadline_that_has_come_is_gone_until_it_is_kept_anew() {
        let mut deadlines = Deadlines::new();
        deadlines.keep(Timer::Clients, Some(5 * MS));
        deadlines.pass(5 * MS);
        assert_eq!(deadlines.sleep(5 * MS, LONGEST), LONGEST);
        deadlines.keep(Timer::Clients, Some(3 * MS));
        assert_eq!(deadlines.sleep(5 * MS, LONGEST), Duration::ZERO);
    }
}

//! The owner's side of waiting: from an empty poll to the next one.
//!
//! ```text
//!   loop {
//!       if poll() { waiter.progress(); continue; }
//!       waiter.idle(poll_again, timeout)?;      one step: spin, yield, or sleep
//!   }
//! ```
//!
//! With `futex` the steps grow from a spin to a yield to a sleep, and start over with progress:
//! an endpoint under load never sleeps, and an idle one soon costs nothing.

use std::hint;
use std::time::Duration;

use rustix::thread::sched_yield;

use super::bell::Sleep;
use super::{Bell, BellError, Wait};
use crate::clock::Deadline;

/// Empty polls since the last progress after which a `futex` waiter merely spins.
const SPINS_MAX: u32 = 200;
/// Of those, one in so many gives way: on a host with fewer processors than loops, a spin holds up
/// the very process that it waits for until the system ends its slice.
const YIELD_EVERY: u32 = 8;
/// Empty polls after those in which it gives way to other threads.
const YIELDS_MAX: u32 = 50;

/// The one thread that waits on a bell.
#[derive(Debug)]
pub struct Waiter {
    bell: Bell,
    pause: Pause,
}

/// The steps of one thread from its last progress to a sleep.
#[derive(Debug)]
pub(crate) struct Pause {
    strategy: Wait,
    steps: u32,
    spins_max: u32,
    yields_max: u32,
}

/// What a thread that found nothing does before it looks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleStep {
    Spin,
    Yield,
    Sleep,
}

impl Pause {
    pub(crate) const fn new(strategy: Wait) -> Self {
        Self { strategy, steps: 0, spins_max: SPINS_MAX, yields_max: YIELDS_MAX }
    }

    /// The next step.
    pub(crate) fn next(&mut self) -> IdleStep {
        match self.strategy {
            Wait::Spin => IdleStep::Spin,
            Wait::Yield => IdleStep::Yield,
            Wait::Futex if self.steps >= self.spins_max + self.yields_max => IdleStep::Sleep,
            Wait::Futex => {
                self.steps += 1;
                let is_spin =
                    self.steps <= self.spins_max && !self.steps.is_multiple_of(YIELD_EVERY);
                if is_spin { IdleStep::Spin } else { IdleStep::Yield }
            }
        }
    }
}

impl IdleStep {
    /// Spins or yields; whether it did.
    pub(crate) fn take(self) -> bool {
        match self {
            Self::Spin => hint::spin_loop(),
            Self::Yield => sched_yield(),
            Self::Sleep => return false,
        }
        true
    }
}

/// What one idle step came to. In every case the caller polls next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idled {
    /// It span or yielded; no time worth speaking of has passed.
    Stepped,
    /// It was about to sleep, but the last look found something.
    Found,
    /// It slept, until a ring or a signal.
    Woken,
    /// It slept for the whole timeout.
    TimedOut,
}

impl Waiter {
    /// A waiter that follows `strategy` on its own endpoint's bell.
    #[must_use]
    pub fn new(strategy: Wait, bell: Bell) -> Self {
        Self { bell, pause: Pause::new(strategy) }
    }

    /// The bell, for ringing oneself from another thread's work.
    #[must_use]
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// The last poll found something: idleness starts over.
    pub fn progress(&mut self) {
        self.pause.steps = 0;
    }

    /// One step of waiting after a poll that found nothing.
    ///
    /// `poll_again` says whether there is anything to do by now, and is called at most once: right
    /// before a sleep, when all peers can already see that they have to ring. It must look at
    /// everything that peers ring for.
    ///
    /// # Errors
    /// [`BellError::Sleep`].
    pub fn idle(
        &mut self,
        poll_again: impl FnOnce() -> bool,
        timeout: Duration,
    ) -> Result<Idled, BellError> {
        if self.step() { Ok(Idled::Stepped) } else { self.sleep(poll_again, timeout) }
    }

    /// Spins or yields, where no sleep is due; whether it did. Before a [sleep](Self::sleep) alone
    /// its caller has to find out how long it may last.
    pub(crate) fn step(&mut self) -> bool {
        self.pause.next().take()
    }

    /// As [`Self::idle`], where no [step](Self::step) was due.
    pub(crate) fn sleep(
        &self,
        poll_again: impl FnOnce() -> bool,
        timeout: Duration,
    ) -> Result<Idled, BellError> {
        let deadline = Deadline::after(timeout);
        self.bell.arm_word().arm();
        // SYNC: bell-arm. The load of work that the fence in `arm` is for.
        let slept = if poll_again() { None } else { Some(self.bell.sleep(deadline)) };
        self.bell.arm_word().disarm();
        match slept.transpose()? {
            None => Ok(Idled::Found),
            Some(Sleep::Over) => Ok(Idled::Woken),
            Some(Sleep::TimedOut) => Ok(Idled::TimedOut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::{Ring, Segment};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// So long that reaching it means a lost wake-up.
    const NEVER: Duration = Duration::from_secs(60);

    fn bell() -> (Segment, Bell) {
        let segment = Bell::segment("weft-test-bell").unwrap();
        let bell = Bell::open(segment.writable_fd()).unwrap();
        (segment, bell)
    }

    /// Goes to sleep at the first empty poll.
    fn sleepy(bell: Bell) -> Waiter {
        let pause = Pause { spins_max: 0, yields_max: 0, ..Pause::new(Wait::Futex) };
        Waiter { bell, pause }
    }

    #[test]
    fn spin_and_yield_never_sleep_nor_arm() {
        for strategy in [Wait::Spin, Wait::Yield] {
            let mut waiter = Waiter::new(strategy, bell().1);
            for _ in 0..2 * (SPINS_MAX + YIELDS_MAX) {
                let idled = waiter.idle(|| unreachable!("only before a sleep"), NEVER);
                assert_eq!(idled, Ok(Idled::Stepped));
            }
            assert_eq!(waiter.bell().ring_if_armed(), Ok(Ring::Unneeded));
        }
    }

    #[test]
    fn m3_a_waiter_that_spins_before_it_sleeps_gives_way_now_and_then() {
        let mut pause = Pause::new(Wait::Futex);
        let steps: Vec<_> = (0..SPINS_MAX).map(|_| pause.next()).collect();
        let every = YIELD_EVERY as usize;
        assert!(steps.chunks(every).all(|some| some.contains(&IdleStep::Yield)));
        let spins = steps.iter().filter(|step| **step == IdleStep::Spin).count();
        assert_eq!(spins, steps.len() / every * (every - 1), "the rest keep the processor");
    }

    #[test]
    fn futex_steps_before_it_sleeps_and_anew_after_progress() {
        let mut waiter = Waiter::new(Wait::Futex, bell().1);
        for _ in 0..2 {
            for _ in 0..SPINS_MAX + YIELDS_MAX {
                assert_eq!(waiter.idle(|| unreachable!("not yet"), NEVER), Ok(Idled::Stepped));
            }
            for _ in 0..2 {
                assert_eq!(waiter.idle(|| false, Duration::ZERO), Ok(Idled::TimedOut));
            }
            waiter.progress();
        }
    }

    #[test]
    fn last_look_sees_the_armed_bell_and_prevents_the_sleep() {
        let (segment, own) = bell();
        let peer = Bell::open(segment.writable_fd()).unwrap();
        let mut waiter = sleepy(own);
        assert_eq!(waiter.idle(|| true, NEVER), Ok(Idled::Found));
        assert_eq!(peer.ring_if_armed(), Ok(Ring::Unneeded));

        // Rung between the last look and the sleep.
        let look = || {
            assert_eq!(peer.ring_if_armed(), Ok(Ring::Rung));
            false
        };
        assert_eq!(waiter.idle(look, NEVER), Ok(Idled::Woken));
    }

    #[test]
    fn forced_ring_ends_a_sleep_whose_ringer_died() {
        let (segment, own) = bell();
        let peer = Bell::open(segment.writable_fd()).unwrap();
        let mut waiter = sleepy(own);
        let asleep = std::thread::spawn(move || waiter.idle(|| false, NEVER));
        while !asleep.is_finished() {
            peer.ring().unwrap();
            sched_yield();
        }
        assert_eq!(asleep.join().unwrap(), Ok(Idled::Woken));
    }

    /// Waits until `work` is `goal`, sleeping whenever it is not.
    fn await_work(waiter: &mut Waiter, work: &AtomicU64, goal: u64) {
        let arrived = || work.load(Ordering::Acquire) == goal;
        while !arrived() {
            assert_ne!(waiter.idle(arrived, NEVER), Ok(Idled::TimedOut), "lost wake-up");
        }
        waiter.progress();
    }

    #[test]
    fn no_wake_up_is_lost_between_two_threads() {
        const ROUNDS: u64 = 20_000;
        let (left_segment, left_bell) = bell();
        let (right_segment, right_bell) = bell();
        let (to_left, to_right) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let ring_right = Bell::open(right_segment.writable_fd()).unwrap();
                let mut waiter = sleepy(left_bell);
                for round in 1..=ROUNDS {
                    to_right.store(round, Ordering::Release);
                    ring_right.ring_if_armed().unwrap();
                    await_work(&mut waiter, &to_left, round);
                }
            });
            scope.spawn(|| {
                let ring_left = Bell::open(left_segment.writable_fd()).unwrap();
                let mut waiter = sleepy(right_bell);
                for round in 1..=ROUNDS {
                    await_work(&mut waiter, &to_right, round);
                    to_left.store(round, Ordering::Release);
                    ring_left.ring_if_armed().unwrap();
                }
            });
        });
    }

    #[test]
    fn no_wake_up_is_lost_among_many_ringers() {
        const RINGERS: u64 = 3;
        const RINGS: u64 = 5_000;
        let (segment, own) = bell();
        let work = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..RINGERS {
                scope.spawn(|| {
                    let bell = Bell::open(segment.writable_fd()).unwrap();
                    for _ in 0..RINGS {
                        work.fetch_add(1, Ordering::Release);
                        bell.ring_if_armed().unwrap();
                    }
                });
            }
            let mut waiter = sleepy(own);
            let mut seen = 0;
            while seen < RINGERS * RINGS {
                let idled = waiter.idle(|| work.load(Ordering::Acquire) > seen, NEVER);
                assert_ne!(idled, Ok(Idled::TimedOut), "lost wake-up");
                seen = work.load(Ordering::Acquire);
            }
        });
    }
}

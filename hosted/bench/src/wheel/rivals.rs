//! The timers that others wrote.

use std::task::{Context, Poll, Waker};
use std::time;

use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use tokio_util::time::{DelayQueue, delay_queue};
use weft_core::time::{Duration, Instant};

use super::contender::{Contender, Faulty, TICK};

/// `tokio_util::time::DelayQueue`, polled as an executor polls it. It goes by tokio's clock.
pub(super) struct TokioQueue {
    queue: DelayQueue<u32>,
    keys: Vec<Option<delay_queue::Key>>,
    /// Time zero by tokio's clock.
    origin: tokio::time::Instant,
    now: Instant,
}

impl TokioQueue {
    /// Needs the runtime of [`runtime`] around it, as its timers do.
    pub(super) fn new(timers: usize) -> Self {
        // The deadline of a sleep for no time is the present.
        let origin = tokio::time::sleep(time::Duration::ZERO).deadline();
        let queue = DelayQueue::with_capacity(timers);
        Self { queue, keys: vec![None; timers], origin, now: Instant(0) }
    }

    fn at(&self, delay: Duration) -> tokio::time::Instant {
        self.origin + time::Duration::from_nanos(self.now.after(delay).0)
    }
}

/// The runtime that tokio's timers look for.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_time().build()
}

impl Contender for TokioQueue {
    #[inline]
    fn start(&mut self, number: u32, delay: Duration) -> Result<(), Faulty> {
        self.keys[number as usize] = Some(self.queue.insert_at(number, self.at(delay)));
        Ok(())
    }

    #[inline]
    fn stop(&mut self, number: u32) -> Result<(), Faulty> {
        let removed = self.queue.remove(self.keys[number as usize].as_ref().ok_or(Faulty)?);
        if removed.into_inner() == number { Ok(()) } else { Err(Faulty) }
    }

    #[inline]
    fn renew(&mut self, number: u32, delay: Duration) -> Result<(), Faulty> {
        let when = self.at(delay);
        self.queue.reset_at(self.keys[number as usize].as_ref().ok_or(Faulty)?, when);
        Ok(())
    }

    #[inline]
    fn advance(&mut self, now: Instant) -> Result<(), Faulty> {
        self.now = now;
        match self.queue.poll_expired(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Ok(()),
            Poll::Ready(_) => Err(Faulty),
        }
    }
}

/// The cancellable wheel of `hierarchical_hash_wheel_timer`. It cannot renew, and what it cancels
/// stays in its slots until they come up.
pub(super) struct HashWheel {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u32>>,
    /// Ticks that have passed.
    ticks: u64,
}

impl HashWheel {
    pub(super) fn new() -> Self {
        Self { wheel: QuadWheelWithOverflow::new(), ticks: 0 }
    }
}

impl Contender for HashWheel {
    #[inline]
    fn start(&mut self, number: u32, delay: Duration) -> Result<(), Faulty> {
        let delay = time::Duration::from_nanos(delay.0);
        let entry = IdOnlyTimerEntry { id: number, delay };
        self.wheel.insert(entry).map_err(|_| Faulty)
    }

    #[inline]
    fn stop(&mut self, number: u32) -> Result<(), Faulty> {
        self.wheel.cancel(&(number)).map_err(|_| Faulty)
    }

    #[inline]
    fn renew(&mut self, number: u32, delay: Duration) -> Result<(), Faulty> {
        self.stop(number)?;
        self.start(number, delay)
    }

    #[inline]
    fn advance(&mut self, now: Instant) -> Result<(), Faulty> {
        let mut left = (now.0 / TICK.0).saturating_sub(self.ticks);
        self.ticks += left;
        while left > 0 {
            match self.wheel.can_skip() {
                Skip::Empty => return Err(Faulty),
                Skip::Millis(ticks) if u64::from(ticks) >= left => {
                    self.wheel.skip(left as u32);
                    return Ok(());
                }
                Skip::Millis(ticks) => {
                    self.wheel.skip(ticks);
                    left -= u64::from(ticks);
                }
                Skip::None => {
                    if !self.wheel.tick().is_empty() {
                        return Err(Faulty);
                    }
                    left -= 1;
                }
            }
        }
        Ok(())
    }
}

//! Who is compared: each keeps timers by a number and forgets none.

use std::collections::BTreeMap;

use weft_core::time::{Duration, Instant};
use weft_core::wheel::{Handle, Key, Progress, Repeat, Wheel};

/// What every contender rounds deadlines to; the rivals know no other.
pub(super) const TICK: Duration = Duration::from_millis(1);
/// As many timers as are measured at most.
pub(super) const TIMERS_MAX: usize = 1_000_000;
/// More work than an advance ever has here.
const BUDGET: u32 = 1_000;

/// A contender did what it must not: a timer was lost, or expired too soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Faulty;

/// Timers by number. Every delay is longer than a whole run, so none of them expires.
pub(super) trait Contender {
    /// Starts the timer `number`, which does not run, `delay` from now.
    fn start(&mut self, number: u32, delay: Duration) -> Result<(), Faulty>;
    /// Stops the timer `number` and leaves nothing of it behind, where that is a choice.
    fn forget(&mut self, number: u32) -> Result<(), Faulty> {
        self.stop(number)
    }
    /// Stops the timer `number`.
    fn stop(&mut self, number: u32) -> Result<(), Faulty>;
    /// Has the running timer `number` expire `delay` from now, its delay when it was started.
    fn renew(&mut self, number: u32, delay: Duration) -> Result<(), Faulty>;
    /// Lets time pass until `now`, at which nothing is due.
    fn advance(&mut self, now: Instant) -> Result<(), Faulty>;
}

/// Our own wheel.
pub(super) struct Ours {
    wheel: Box<Wheel<TIMERS_MAX>>,
    handles: Vec<Option<Handle>>,
    now: Instant,
}

impl Ours {
    pub(super) fn new(timers: usize) -> Self {
        let wheel = Box::new(Wheel::new(TICK));
        Self { wheel, handles: vec![None; timers], now: Instant(0) }
    }
}

impl Contender for Ours {
    #[inline]
    fn start(&mut self, number: u32, delay: Duration) -> Result<(), Faulty> {
        let key = Key(number);
        let started = self.wheel.start(self.now, key, self.now.after(delay), Repeat::Once);
        self.handles[number as usize] = Some(started.map_err(|_| Faulty)?);
        Ok(())
    }

    fn forget(&mut self, number: u32) -> Result<(), Faulty> {
        self.wheel.keep(Key(number), None).map_err(|_| Faulty)
    }

    #[inline]
    fn stop(&mut self, number: u32) -> Result<(), Faulty> {
        self.wheel.stop(self.handles[number as usize].ok_or(Faulty)?).map_err(|_| Faulty)
    }

    #[inline]
    fn renew(&mut self, number: u32, _delay: Duration) -> Result<(), Faulty> {
        self.wheel.renew(self.now, self.handles[number as usize].ok_or(Faulty)?).map_err(|_| Faulty)
    }

    #[inline]
    fn advance(&mut self, now: Instant) -> Result<(), Faulty> {
        self.now = now;
        let progress = self.wheel.advance(now, BUDGET);
        if progress == Ok(Progress::CaughtUp) && self.wheel.poll_expired().is_none() {
            Ok(())
        } else {
            Err(Faulty)
        }
    }
}

/// What one writes without a wheel: a sorted map by deadline and number.
#[derive(Default)]
pub(super) struct SortedMap {
    timers: BTreeMap<(Instant, u32), ()>,
    deadlines: Vec<Instant>,
    now: Instant,
}

impl SortedMap {
    pub(super) fn new(timers: usize) -> Self {
        Self { deadlines: vec![Instant(0); timers], ..Self::default() }
    }
}

impl Contender for SortedMap {
    #[inline]
    fn start(&mut self, number: u32, delay: Duration) -> Result<(), Faulty> {
        let deadline = self.now.after(delay);
        self.deadlines[number as usize] = deadline;
        self.timers.insert((deadline, number), ()).map_or(Ok(()), |()| Err(Faulty))
    }

    #[inline]
    fn stop(&mut self, number: u32) -> Result<(), Faulty> {
        self.timers.remove(&(self.deadlines[number as usize], number)).ok_or(Faulty)
    }

    #[inline]
    fn renew(&mut self, number: u32, delay: Duration) -> Result<(), Faulty> {
        self.stop(number)?;
        self.start(number, delay)
    }

    #[inline]
    fn advance(&mut self, now: Instant) -> Result<(), Faulty> {
        self.now = now;
        match self.timers.first_key_value() {
            Some(((deadline, _), ())) if *deadline > now => Ok(()),
            Some(_) | None => Err(Faulty),
        }
    }
}

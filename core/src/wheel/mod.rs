//! The timeout wheel: every deadline of one owner, in a static slab, in the owner's loop.
//!
//! ```text
//!  start renew resume             advance(now, budget)              poll_expired
//!        │                                 │                              │
//!        ▼            slot begins          ▼            sorted            ▼
//!  level 0 … 3, overflow ───────────▶ drain ──▶ runs ────────────▶ ready ──▶ expiry
//!        ▲                              │
//!        └── due later: a level down, ──┘
//!            or renewed
//! ```
//!
//! **When.** A deadline counts in full ticks, rounded up: a timer is reported from the first
//! multiple of the tick at or after it, so never early and late by less than one tick (W-3). One
//! that lies past the last full tick before the end of time is never reported.
//!
//! **Order.** Expiries come in the order of (due, start order), over any number of advances and
//! whatever the budgets. A deadline that has passed when it is given counts as due at that time.
//! Start order is that in which timers were last started, renewed or resumed; a cyclic timer keeps
//! its place from cycle to cycle. The timers of a tick are merge-sorted before the first of them is
//! reported (`sort`), which is work like any other: charged to the budget, resumed by the next
//! advance. Filing in order of arrival would not do, for a lazily renewed timer arrives late.
//!
//! **Work.** Start, stop, renew, suspend, resume and poll touch a constant number of timers (W-1).
//! An advance does at most `budget` steps (W-6); a step touches at most two timers. Between being
//! started and reported, a timer costs at most one step for each level or overflow bit it comes
//! down, one for each slot it was renewed from, and its share of the sort; one that is stopped is
//! struck out where it stands, which costs a step when that slot comes up. An advance at which
//! nothing can be due is a comparison, so a loop may call it at every turn.
//!
//! Links are `u32` where the original design has `u16`: a wheel of 10^6 timers is measured, and
//! an entry of 40 bytes would only shrink by one word.
//!
//! Not here: a callback, a clock, a thread, and any fairness between the owners of keys.
//! Source: [`spec`], W-1 to W-9.

mod error;
mod expiry;
mod level;
mod slab;
mod sort;
mod timer;

#[doc = include_str!("SPEC.md")]
pub mod spec {}

pub use error::{
    NoSuchKey, PeriodError, RenewError, ResumeError, Stale, StartError, SuspendError, TimeWentBack,
};
pub use expiry::Progress;
pub use timer::{Expiry, Handle, Key, Repeat, Suspension, Timer, TimerState};

use core::fmt;

use self::level::List;
use self::slab::{Slab, State};
use self::sort::Sort;
use crate::time::{Duration, Instant};

/// Up to `TIMERS` timers, with the keys `0..TIMERS`.
///
/// ```
/// use weft_core::time::{Duration, Instant};
/// use weft_core::wheel::{Key, Progress, Repeat, Wheel};
///
/// let mut wheel = Wheel::<16>::new(Duration::from_millis(1));
/// let heartbeat = Repeat::Every(Duration::from_millis(10));
/// wheel.start(Instant(0), Key(3), Instant(10_000_000), heartbeat).unwrap();
///
/// assert_eq!(wheel.next_deadline(), Some(Instant(10_000_000)));
/// assert_eq!(wheel.advance(Instant(35_000_000), 100), Ok(Progress::CaughtUp));
/// let expiry = wheel.poll_expired().unwrap();
/// assert_eq!((expiry.key, expiry.missed), (Key(3), 2));
/// assert_eq!(wheel.next_deadline(), Some(Instant(40_000_000)));
/// ```
#[derive(Clone, Hash)]
pub struct Wheel<const TIMERS: usize> {
    tick: Duration,
    /// The time last advanced to.
    now: Instant,
    /// A tick that has come, and no list begins between it and what was last advanced to, except
    /// those that the budget did not reach.
    cursor: u64,
    /// An advance to an earlier time has nothing to do.
    quiet_until: Instant,
    /// How many starts, renewals and resumptions there have been.
    orders: u64,
    sort: Sort,
    timers: Slab<TIMERS>,
}

impl<const TIMERS: usize> Wheel<TIMERS> {
    /// A wheel at time zero whose deadlines are rounded up to multiples of `tick`.
    ///
    /// # Panics
    /// When `tick` is zero: a configuration error.
    #[must_use]
    pub const fn new(tick: Duration) -> Self {
        assert!(tick.0 > 0, "a tick takes time");
        Self {
            tick,
            now: Instant(0),
            cursor: 0,
            quiet_until: Instant(0),
            orders: 0,
            sort: Sort::new(),
            timers: Slab::new(),
        }
    }

    /// Starts the timer `key`, due at `deadline`, or at `now` if that is later.
    ///
    /// # Errors
    /// [`StartError`]; nothing changed.
    pub fn start(
        &mut self,
        now: Instant,
        key: Key,
        deadline: Instant,
        repeat: Repeat,
    ) -> Result<Handle, StartError> {
        self.refuse_going_back(now)?;
        if key.0 as usize >= TIMERS {
            return Err(StartError::NoSuchKey);
        }
        if repeat == Repeat::Every(Duration(0)) {
            return Err(StartError::ZeroPeriod);
        }
        self.settle(key.0);
        let due = deadline.max(now);
        let entry = self.timers.entry_mut(key.0);
        if entry.is_live() {
            return Err(StartError::Live);
        }
        (entry.period, entry.is_cyclic) = match repeat {
            Repeat::Once => (due.since(now), false),
            Repeat::Every(period) => (period, true),
        };
        let generation = entry.generation;
        self.set_due(key.0, due);
        Ok(Handle { key, generation })
    }

    /// Has the timer `key` expire once, at `deadline`, or at the time last advanced to if that is
    /// later; with none, it is stopped. For an owner that recomputes its deadline at every turn
    /// and wants no handle: one that stays is a comparison, one that moves away a store (W-8).
    ///
    /// # Errors
    /// [`NoSuchKey`]; nothing changed.
    pub fn keep(&mut self, key: Key, deadline: Option<Instant>) -> Result<(), NoSuchKey> {
        if key.0 as usize >= TIMERS {
            return Err(NoSuchKey);
        }
        let due = deadline.map(|deadline| deadline.max(self.now));
        let entry = self.timers.entry(key.0);
        let stands = entry.state == State::Filed && !entry.is_silent && !entry.is_cyclic;
        match due {
            Some(due) if stands && due == entry.due => return Ok(()),
            Some(due) if stands && due > entry.due => {
                self.set_due(key.0, due);
                return Ok(());
            }
            Some(_) | None => {}
        }
        if entry.state != State::Vacant {
            self.take_off(key.0);
        }
        if let Some(due) = due {
            let period = due.since(self.now);
            let entry = self.timers.entry_mut(key.0);
            (entry.period, entry.is_cyclic) = (period, false);
            self.set_due(key.0, due);
        }
        Ok(())
    }

    /// Stops a timer, suspended or not; an expiry that was not polled yet is withdrawn.
    ///
    /// One that waits in a slot is struck out there and no more, so that its neighbours, which a
    /// large wheel has far apart in memory, are left alone. Its key is free at once.
    ///
    /// # Errors
    /// [`Stale`]; nothing changed.
    pub fn stop(&mut self, handle: Handle) -> Result<(), Stale> {
        let index = self.find(handle)?;
        let entry = self.timers.entry_mut(index);
        match entry.state {
            State::Filed => entry.end_life(State::Struck),
            State::Vacant | State::Struck | State::Collected | State::Paused => {
                self.take_off(index);
            }
        }
        Ok(())
    }

    /// Gives a timer its full period, from `now`; an expiry that was not polled yet is withdrawn.
    /// A paused timer stays paused, with its full period left.
    ///
    /// # Errors
    /// [`RenewError`]; nothing changed.
    pub fn renew(&mut self, now: Instant, handle: Handle) -> Result<(), RenewError> {
        self.refuse_going_back(now)?;
        let index = self.find(handle)?;
        let entry = self.timers.entry_mut(index);
        if entry.state == State::Paused {
            entry.due = Instant(entry.period.0);
        } else {
            let due = now.after(entry.period);
            self.set_due(index, due);
        }
        Ok(())
    }

    /// Changes the period of a timer. The deadline that it is waiting for stays; the new period
    /// counts from there on, or from the next renewal.
    ///
    /// # Errors
    /// [`PeriodError`]; nothing changed.
    pub fn set_period(&mut self, handle: Handle, period: Duration) -> Result<(), PeriodError> {
        let index = self.find(handle)?;
        let entry = self.timers.entry_mut(index);
        if entry.is_cyclic && period.0 == 0 {
            return Err(PeriodError::ZeroPeriod);
        }
        entry.period = period;
        Ok(())
    }

    /// Keeps a timer from being reported, an expiry that was not polled yet included.
    ///
    /// # Errors
    /// [`SuspendError`]; nothing changed.
    pub fn suspend(
        &mut self,
        now: Instant,
        handle: Handle,
        suspension: Suspension,
    ) -> Result<(), SuspendError> {
        self.refuse_going_back(now)?;
        let index = self.find(handle)?;
        let entry = self.timers.entry_mut(index);
        if entry.is_silent || entry.state == State::Paused {
            return Err(SuspendError::AlreadySuspended);
        }
        match suspension {
            Suspension::Silent => {
                entry.is_silent = true;
                self.settle(index);
            }
            Suspension::Paused => {
                entry.state = State::Paused;
                entry.due = Instant(entry.due.since(now).0);
                self.timers.unlink(index);
            }
        }
        Ok(())
    }

    /// Lets a suspended timer be reported again. One that was paused goes on with the time it had
    /// left; one that was silent goes on as it is.
    ///
    /// # Errors
    /// [`ResumeError`]; nothing changed.
    pub fn resume(&mut self, now: Instant, handle: Handle) -> Result<(), ResumeError> {
        self.refuse_going_back(now)?;
        let index = self.find(handle)?;
        let entry = self.timers.entry_mut(index);
        if entry.state == State::Paused {
            let due = now.after(Duration(entry.due.0));
            self.set_due(index, due);
        } else if entry.is_silent {
            entry.is_silent = false;
        } else {
            return Err(ResumeError::NotSuspended);
        }
        Ok(())
    }

    /// Whether the timer `key` is on its way to a deadline: started, not over, not paused.
    #[must_use]
    pub fn is_running(&self, key: Key) -> bool {
        self.timer(key).is_some_and(|timer| !matches!(timer.state, TimerState::Paused { .. }))
    }

    /// The timer `key`, unless it is stopped or over.
    #[must_use]
    pub fn timer(&self, key: Key) -> Option<Timer> {
        if key.0 as usize >= TIMERS {
            return None;
        }
        let entry = self.timers.entry(key.0);
        let state = match entry.state {
            State::Vacant | State::Struck => return None,
            State::Paused => TimerState::Paused { left: Duration(entry.due.0) },
            State::Filed | State::Collected if !entry.is_silent => {
                TimerState::Running { due: entry.due }
            }
            State::Filed | State::Collected if self.is_over(key.0) => {
                TimerState::Silent { due: self.next_cycle(key.0)?.due }
            }
            State::Filed | State::Collected => TimerState::Silent { due: entry.due },
        };
        Some(Timer { key, period: entry.period, is_cyclic: entry.is_cyclic, state })
    }

    /// Every timer that is not stopped or over, by key; for a dump.
    pub fn iter(&self) -> impl Iterator<Item = Timer> {
        (0..TIMERS as u32).filter_map(|index| self.timer(Key(index)))
    }

    fn refuse_going_back(&self, now: Instant) -> Result<(), TimeWentBack> {
        if now < self.now { Err(TimeWentBack { latest: self.now }) } else { Ok(()) }
    }

    fn next_order(&mut self) -> u64 {
        let order = self.orders;
        self.orders += 1;
        order
    }

    /// The entry of a timer that is not over.
    fn find(&mut self, handle: Handle) -> Result<u32, Stale> {
        let index = handle.key.0;
        if index as usize >= TIMERS {
            return Err(Stale);
        }
        self.settle(index);
        let entry = self.timers.entry(index);
        let is_meant = entry.is_live() && entry.generation == handle.generation;
        if is_meant { Ok(index) } else { Err(Stale) }
    }

    /// Does for a silent timer what a later step would do, so that what a caller sees does not
    /// depend on how far the budget went.
    fn settle(&mut self, index: u32) {
        if self.timers.entry(index).is_silent && self.is_over(index) {
            self.timers.unlink(index);
            self.conclude(index);
        }
    }

    /// Ends the run of a timer and takes it off its list.
    fn take_off(&mut self, index: u32) {
        match self.timers.entry(index).state {
            State::Filed | State::Struck | State::Collected => self.timers.unlink(index),
            State::Vacant | State::Paused => {}
        }
        self.timers.entry_mut(index).end_life(State::Vacant);
    }

    /// Gives a timer the deadline `due`. One that moves away from where it is filed stays there:
    /// that slot comes up no later than before, and then it is filed again (W-8).
    fn set_due(&mut self, index: u32, due: Instant) {
        let order = self.next_order();
        let entry = self.timers.entry_mut(index);
        let filed_for = core::mem::replace(&mut entry.due, due);
        entry.order = order;
        match entry.state {
            State::Filed | State::Struck if due >= filed_for => entry.state = State::Filed,
            State::Filed | State::Struck | State::Collected => {
                self.timers.unlink(index);
                self.file(index);
            }
            State::Vacant | State::Paused => self.file(index),
        }
    }

    /// Puts a timer that is on no list where its deadline belongs.
    fn file(&mut self, index: u32) {
        let due = self.tick_of(self.timers.entry(index).due);
        let list = if due > self.cursor { List::of(due, self.cursor) } else { List::DRAIN };
        self.timers.entry_mut(index).state = State::Filed;
        self.timers.push_back(list, index);
        // It may be the earliest now; the next advance finds out.
        self.quiet_until = Instant(0);
    }

    /// The tick at which `due` is reported: no earlier than it.
    const fn tick_of(&self, due: Instant) -> u64 {
        due.0.div_ceil(self.tick.0)
    }
}

impl<const TIMERS: usize> fmt::Debug for Wheel<TIMERS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wheel at {} ns, tick {} ns ", self.now.0, self.tick.0)?;
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;

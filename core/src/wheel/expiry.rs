//! Time passes: slots are opened, due timers sorted and handed out, cycles restarted.

use super::level::List;
use super::slab::State;
use super::timer::{Expiry, Key};
use super::{TimeWentBack, Wheel};
use crate::time::Instant;

/// An idle wheel brings its cursor up after so many ticks, for that costs a division.
const CURSOR_LAG_MAX: u64 = 64;

/// How far an advance got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Progress {
    /// Every timer that is due can be polled.
    CaughtUp,
    /// The budget ran out. What is due and cannot be polled yet is left to the next advance, to
    /// the same time or a later one.
    Behind,
}

/// The cycle after the one that has expired.
pub(super) struct Cycle {
    pub(super) due: Instant,
    missed: u64,
}

impl<const TIMERS: usize> Wheel<TIMERS> {
    /// Lets time pass until `now`, in at most `budget` steps, and makes what came due ready for
    /// [`Wheel::poll_expired`]. Any jump forward is as good as many small ones.
    ///
    /// # Errors
    /// [`TimeWentBack`]; nothing changed.
    // At each place: between two deadlines it is two comparisons.
    #[inline(always)]
    pub fn advance(&mut self, now: Instant, budget: u32) -> Result<Progress, TimeWentBack> {
        self.refuse_going_back(now)?;
        self.now = now;
        if now < self.quiet_until {
            return Ok(Progress::CaughtUp);
        }
        Ok(self.catch_up(budget))
    }

    #[inline(never)]
    fn catch_up(&mut self, budget: u32) -> Progress {
        for _ in 0..budget {
            if self.timers.occupancy.has_work() {
                self.work();
            } else if let Some(list) = self.next_to_open() {
                self.open(list);
            } else {
                break;
            }
        }
        if self.timers.occupancy.has_work() || self.next_to_open().is_some() {
            return Progress::Behind;
        }
        self.bring_up_cursor();
        self.quiet_until = self.time_of(self.cursor.saturating_add(CURSOR_LAG_MAX));
        if let Some(list) = self.timers.occupancy.earliest() {
            self.quiet_until = self.quiet_until.min(self.time_of(list.begin(self.cursor)));
        }
        Progress::CaughtUp
    }

    /// The next timer that came due, in the order of (due, start order).
    ///
    /// A cyclic timer is waiting for its next cycle when this returns; any other is over.
    pub fn poll_expired(&mut self) -> Option<Expiry> {
        let index = self.timers.pop_front(List::READY)?;
        let due = self.timers.entry(index).due;
        let missed = self.conclude(index);
        Some(Expiry { key: Key(index), due, missed })
    }

    /// When to advance next: at the latest when the earliest running timer can be reported, that
    /// is, at its deadline rounded up to the tick. It may be earlier, while timers wait in a slot
    /// wider than a tick or were renewed or stopped since. `None` when no slot holds a timer.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        if let Some(index) = self.timers.first(List::READY) {
            return Some(self.timers.entry(index).due);
        }
        let tick = if self.timers.occupancy.has_work() {
            self.cursor
        } else {
            self.timers.occupancy.earliest()?.begin(self.cursor)
        };
        Some(self.time_of(tick))
    }

    /// The earliest list, if its first tick has come.
    fn next_to_open(&self) -> Option<List> {
        self.timers.occupancy.earliest().filter(|list| self.has_come(list.begin(self.cursor)))
    }

    fn open(&mut self, list: List) {
        self.cursor = list.begin(self.cursor);
        self.timers.append(List::DRAIN, list);
    }

    /// One step at the cursor. No other list is opened before all of them are done.
    fn work(&mut self) {
        if self.sort.merge(&mut self.timers) {
            return;
        }
        match self.timers.pop_front(List::DRAIN) {
            Some(index) => self.look_at(index),
            None => self.sort.finish(&mut self.timers),
        }
    }

    /// Decides about a timer of the opened list.
    fn look_at(&mut self, index: u32) {
        let entry = self.timers.entry_mut(index);
        let (is_silent, due) = (entry.is_silent, entry.due);
        if entry.state == State::Struck {
            entry.state = State::Vacant;
        } else if self.tick_of(due) > self.cursor {
            self.file(index);
        } else if is_silent {
            self.conclude(index);
        } else {
            self.timers.entry_mut(index).state = State::Collected;
            self.sort.add(&mut self.timers, index);
        }
    }

    /// Ends a timer that expired and is on no list, or begins its next cycle. Returns how many
    /// cycles were missed.
    pub(super) fn conclude(&mut self, index: u32) -> u64 {
        let Some(Cycle { due, missed }) = self.next_cycle(index) else {
            self.timers.entry_mut(index).end_life(State::Vacant);
            return 0;
        };
        self.timers.entry_mut(index).due = due;
        self.file(index);
        missed
    }

    /// The first cycle of an expired timer that is still to be reported; none when the timer is
    /// not cyclic, or when that cycle would end after the end of time.
    pub(super) fn next_cycle(&self, index: u32) -> Option<Cycle> {
        let entry = self.timers.entry(index);
        if !entry.is_cyclic {
            return None;
        }
        // A cycle that ended since the last full tick is not missed: the next tick reports it.
        let last_tick = Instant(self.now.0 - self.now.0 % self.tick.0);
        let missed = last_tick.since(entry.due).0 / entry.period.0;
        let span = missed.checked_add(1)?.checked_mul(entry.period.0)?;
        Some(Cycle { due: Instant(entry.due.0.checked_add(span)?), missed })
    }

    /// Whether the time advanced to is one at which this timer is reported.
    pub(super) fn is_over(&self, index: u32) -> bool {
        let entry = self.timers.entry(index);
        match entry.state {
            State::Filed | State::Collected => self.has_come(self.tick_of(entry.due)),
            State::Vacant | State::Struck | State::Paused => false,
        }
    }

    fn has_come(&self, tick: u64) -> bool {
        tick.checked_mul(self.tick.0).is_some_and(|at| at <= self.now.0)
    }

    /// When `tick` comes, or the end of time if it never does.
    const fn time_of(&self, tick: u64) -> Instant {
        Instant(tick.saturating_mul(self.tick.0))
    }

    /// Nothing begins up to now, so the cursor may pass it all; what is started next is then
    /// filed as low as it can be.
    fn bring_up_cursor(&mut self) {
        let since = self.now.0 - self.cursor * self.tick.0;
        if since / CURSOR_LAG_MAX >= self.tick.0 {
            self.cursor = self.now.0 / self.tick.0;
        }
    }
}

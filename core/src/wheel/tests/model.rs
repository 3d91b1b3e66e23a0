//! The wheel against a sorted map: the same operations, the same expiries in the same order.
//!
//! The model is caught up at once whatever the budget, so where the wheel is behind it may report
//! nothing, but what it reports is what the map has first. An ordinary run tries 10^6 operations;
//! 10^9, all of which agreed, take a core two and a half minutes:
//!
//! ```sh
//! WEFT_WHEEL_OPS=1000000000 cargo test --release --package weft-core the_wheel_is_a_sorted_map
//! ```

use std::collections::BTreeMap;
use std::env;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;

const KEYS: usize = 24;
const OPS_PER_CASE: usize = 1000;

/// A key, what to do, and how far or how much.
type Op = (u32, u8, u64);

#[derive(Clone, Debug)]
struct Expected {
    handle: Handle,
    due: u64,
    order: u64,
    period: u64,
    is_cyclic: bool,
    suspension: Option<Suspension>,
}

impl Expected {
    fn timer(&self, key: u32) -> Timer {
        let due = Instant(self.due);
        let state = match self.suspension {
            None => TimerState::Running { due },
            Some(Suspension::Silent) => TimerState::Silent { due },
            Some(Suspension::Paused) => TimerState::Paused { left: Duration(self.due) },
        };
        let (period, is_cyclic) = (Duration(self.period), self.is_cyclic);
        Timer { key: Key(key), period, is_cyclic, state }
    }
}

struct Model {
    tick: u64,
    now: u64,
    orders: u64,
    timers: [Option<Expected>; KEYS],
    /// By due and order: what runs, silent or not.
    running: BTreeMap<(u64, u64), u32>,
}

impl Model {
    fn at(now: u64, tick: u64) -> Self {
        let timers = [const { None }; KEYS];
        Self { tick, now, orders: 0, timers, running: BTreeMap::new() }
    }

    /// When `due` is reported; possibly after the end of time.
    fn reported_at(&self, due: u64) -> u128 {
        u128::from(due).next_multiple_of(u128::from(self.tick))
    }

    fn has_come(&self, due: u64) -> bool {
        self.reported_at(due) <= u128::from(self.now)
    }

    fn take(&mut self, key: u32) -> Expected {
        let timer = self.timers[key as usize].take().unwrap();
        self.running.remove(&(timer.due, timer.order));
        timer
    }

    fn put(&mut self, key: u32, timer: Expected) {
        if timer.suspension != Some(Suspension::Paused) {
            assert_eq!(self.running.insert((timer.due, timer.order), key), None);
        }
        self.timers[key as usize] = Some(timer);
    }

    fn set(&mut self, key: u32, mut timer: Expected, due: u64) {
        timer.due = due;
        timer.order = self.orders;
        self.orders += 1;
        self.put(key, timer);
    }

    /// The timer has expired: what it missed, and its next cycle if there is one.
    fn conclude(&mut self, key: u32) -> u64 {
        let mut timer = self.take(key);
        if !timer.is_cyclic {
            return 0;
        }
        let last_tick = self.now / self.tick * self.tick;
        let missed = (last_tick - timer.due) / timer.period;
        let next = u128::from(timer.due) + (u128::from(missed) + 1) * u128::from(timer.period);
        match u64::try_from(next) {
            Ok(next) => {
                timer.due = next;
                self.put(key, timer);
                missed
            }
            Err(_) => 0,
        }
    }

    fn first(&self, is_wanted: impl Fn(&Expected) -> bool) -> Option<u32> {
        let due = self.running.iter().take_while(|((due, _), _)| self.has_come(*due));
        due.map(|(_, key)| *key)
            .find(|key| self.timers[*key as usize].as_ref().is_some_and(&is_wanted))
    }

    fn pass_silent(&mut self) {
        while let Some(key) = self.first(|timer| timer.suspension.is_some()) {
            self.conclude(key);
        }
    }

    fn expire(&mut self) -> Option<Expiry> {
        let key = self.first(|timer| timer.suspension.is_none())?;
        let due = Instant(self.timers[key as usize].as_ref()?.due);
        Some(Expiry { key: Key(key), due, missed: self.conclude(key) })
    }
}

struct Pair {
    wheel: Wheel<KEYS>,
    model: Model,
    scale: u32,
    /// A handle that may be stale.
    old: Option<Handle>,
    /// Until then a timer that was stopped may still stand in its slot.
    struck_until: u64,
}

impl Pair {
    /// A span, short ones as likely as long ones, up to what this run is made for.
    fn span(&self, amount: u64) -> u64 {
        let bits = (amount as u32 & 63) % self.scale;
        (amount >> 6) & ((1 << bits) - 1)
    }

    fn start(&mut self, key: u32, amount: u64) {
        // Many are due together.
        let at = if amount & 64 == 0 { self.model.now & !31 } else { self.model.now };
        let (late, span) = (amount >> 60 == 0, self.span(amount));
        let deadline = if late { at.saturating_sub(span) } else { at.saturating_add(span) };
        let now = Instant(self.model.now);
        let is_cyclic = amount & 128 == 0;
        let period = self.span(amount.rotate_right(20)) + 1;
        let repeat = if is_cyclic { Repeat::Every(Duration(period)) } else { Repeat::Once };
        let started = self.wheel.start(now, Key(key), Instant(deadline), repeat);
        if self.model.timers[key as usize].is_some() {
            assert_eq!(started, Err(StartError::Live));
            return;
        }
        let (handle, due) = (started.unwrap(), deadline.max(now.0));
        let period = if is_cyclic { period } else { due - now.0 };
        let timer = Expected { handle, due, order: 0, period, is_cyclic, suspension: None };
        self.model.set(key, timer, due);
    }

    fn keep(&mut self, key: u32, amount: u64) {
        let now = self.model.now;
        let deadline = now.saturating_add(self.span(amount));
        // A deadline that stays, one that moves, and none.
        let stays = self.model.timers[key as usize].as_ref().map(|timer| timer.due);
        let deadline = match amount & 3 << 6 {
            0 => None,
            64 => Some(stays.unwrap_or(deadline)),
            _ => Some(deadline),
        };
        self.wheel.keep(Key(key), deadline.map(Instant)).unwrap();
        let due = deadline.map(|deadline| deadline.max(now));
        let kept = self.model.timers[key as usize].as_ref();
        let runs_once = |timer: &&Expected| timer.suspension.is_none() && !timer.is_cyclic;
        let generation = self.wheel.timers.entry(key).generation;
        let handle = Handle { key: Key(key), generation };
        let kept = kept.filter(runs_once).filter(|timer| timer.handle == handle);
        // Whether its run goes on is the wheel's affair, which depends on how far it came.
        let period = kept.map(|timer| timer.period);
        if self.model.timers[key as usize].is_some() {
            if kept.is_some_and(|timer| Some(timer.due) == due) {
                return;
            }
            self.model.take(key);
        }
        if let Some(due) = due {
            let period = period.unwrap_or(due - now);
            let timer =
                Expected { handle, due, order: 0, period, is_cyclic: false, suspension: None };
            self.model.set(key, timer, due);
        }
    }

    fn change(&mut self, key: u32, what: u8, amount: u64) {
        let Some(timer) = self.model.timers[key as usize].clone() else {
            if let Some(old) = self.old {
                let is_live = self.model.timers[old.key.0 as usize]
                    .as_ref()
                    .is_some_and(|timer| timer.handle == old);
                if !is_live {
                    assert_eq!(self.wheel.stop(old), Err(Stale));
                }
            }
            return;
        };
        let (handle, now) = (timer.handle, Instant(self.model.now));
        self.old = Some(handle);
        match what {
            0 => {
                self.wheel.stop(handle).unwrap();
                self.struck_until = self.struck_until.max(self.model.take(key).due);
            }
            1 => self.set_period(key, handle, self.span(amount)),
            2 => self.suspend(key, handle, Suspension::Silent),
            3 => self.suspend(key, handle, Suspension::Paused),
            4 => self.resume(key, handle),
            _ => {
                self.wheel.renew(now, handle).unwrap();
                let timer = self.model.take(key);
                let is_paused = timer.suspension == Some(Suspension::Paused);
                let from = if is_paused { 0 } else { now.0 };
                let due = from.saturating_add(timer.period);
                self.model.set(key, timer, due);
                self.model.pass_silent();
            }
        }
    }

    fn set_period(&mut self, key: u32, handle: Handle, period: u64) {
        let mut timer = self.model.take(key);
        let result = self.wheel.set_period(handle, Duration(period));
        if timer.is_cyclic && period == 0 {
            assert_eq!(result, Err(PeriodError::ZeroPeriod));
        } else {
            assert_eq!(result, Ok(()));
            timer.period = period;
        }
        self.model.put(key, timer);
    }

    fn suspend(&mut self, key: u32, handle: Handle, suspension: Suspension) {
        let result = self.wheel.suspend(Instant(self.model.now), handle, suspension);
        let mut timer = self.model.take(key);
        if timer.suspension.is_some() {
            assert_eq!(result, Err(SuspendError::AlreadySuspended));
        } else {
            assert_eq!(result, Ok(()));
            timer.suspension = Some(suspension);
            if suspension == Suspension::Paused {
                timer.due = timer.due.saturating_sub(self.model.now);
            }
        }
        self.model.put(key, timer);
        self.model.pass_silent();
    }

    fn resume(&mut self, key: u32, handle: Handle) {
        let now = self.model.now;
        let result = self.wheel.resume(Instant(now), handle);
        let mut timer = self.model.take(key);
        let suspension = timer.suspension.take();
        let expected = suspension.map(|_| ()).ok_or(ResumeError::NotSuspended);
        assert_eq!(result, expected);
        if suspension == Some(Suspension::Paused) {
            let due = now.saturating_add(timer.due);
            self.model.set(key, timer, due);
        } else {
            self.model.put(key, timer);
        }
    }

    fn advance(&mut self, what: u8, amount: u64) {
        let now = self.model.now.saturating_add(self.span(amount));
        let budget = if what == 0 { (amount >> 58) as u32 } else { u32::MAX };
        if let Some(back) = self.model.now.checked_sub(1) {
            let error = TimeWentBack { latest: Instant(self.model.now) };
            assert_eq!(self.wheel.advance(Instant(back), budget), Err(error));
        }
        self.model.now = now;
        self.model.pass_silent();
        let progress = self.wheel.advance(Instant(now), budget).unwrap();
        let polls = if amount & 256 == 0 { usize::MAX } else { 2 };
        for _ in 0..polls {
            let found = self.wheel.poll_expired();
            if found.is_none() && progress == Progress::Behind {
                break;
            }
            assert_eq!(found, self.model.expire());
            if found.is_none() {
                break;
            }
        }
    }

    fn check_deadline(&self) {
        let earliest = self.model.running.first_key_value().map(|((due, _), _)| *due);
        let deadline = self.wheel.next_deadline();
        match (deadline, earliest) {
            (Some(deadline), Some(due)) => {
                assert!(u128::from(deadline.0) <= self.model.reported_at(due));
            }
            // A silent timer that is over, which the budget did not reach, or a stopped one.
            (Some(deadline), None) => {
                let until = self.model.reported_at(self.struck_until.max(self.model.now));
                assert!(u128::from(deadline.0) <= until);
            }
            (None, earliest) => assert_eq!(earliest, None),
        }
    }

    fn check_timers(&self) {
        for (key, timer) in (0..).zip(&self.model.timers) {
            let timer = timer.as_ref().map(|timer| timer.timer(key));
            assert_eq!(self.wheel.timer(Key(key)), timer);
        }
    }
}

fn run(begin: u64, tick: u64, scale: u32, ops: &[Op]) {
    let mut wheel = Wheel::new(Duration(tick));
    assert_eq!(wheel.advance(Instant(begin), 1), Ok(Progress::CaughtUp));
    let mut pair = Pair { wheel, model: Model::at(begin, tick), scale, old: None, struck_until: 0 };
    for (index, (key, what, amount)) in ops.iter().enumerate() {
        match what {
            0..6 => pair.start(*key, *amount),
            6..14 => pair.change(*key, what - 6, *amount),
            14..16 => pair.keep(*key, *amount),
            16.. => pair.advance(what - 16, *amount),
        }
        pair.check_deadline();
        if index % 32 == 0 {
            pair.check_timers();
        }
    }
    pair.check_timers();
}

fn begin() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), any::<u64>(), (0..1_u64 << 20).prop_map(|before| u64::MAX - before)]
}

#[test]
fn the_wheel_is_a_sorted_map() {
    let ops = env::var("WEFT_WHEEL_OPS").map_or(1_000_000, |ops| ops.parse().unwrap());
    let cases = u32::try_from(usize::div_ceil(ops, OPS_PER_CASE)).unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new(config);
    let op = (0..KEYS as u32, 0..20_u8, any::<u64>());
    let tick = prop_oneof![Just(1_u64), 2..100_u64, Just(1_000_000)];
    let ops = vec(op, OPS_PER_CASE);
    runner
        .run(&(begin(), tick, 4..58_u32, ops), |(begin, tick, scale, ops): (_, _, _, Vec<Op>)| {
            run(begin, tick, scale, &ops);
            Ok(())
        })
        .unwrap();
}

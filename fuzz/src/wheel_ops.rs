//! A wheel beside a sorted map, as a sequence of operations.
//!
//! ```text
//! first byte: the tick │ each operation: 4 bytes │ what │ key │ bits │ amount │
//! ```
//!
//! `bits` says how wide a span may be and `amount` how much of it, so that four bytes reach from
//! the next tick to the overflow lists. What the wheel reports is what the map has first, in order.

use std::collections::BTreeMap;

use weft_core::time::{Duration, Instant};
use weft_core::wheel::{Expiry, Handle, Key, Progress, Repeat, StartError, Wheel};

const KEYS: usize = 16;
/// From here on keys are kept, below they are started and go by their handles.
const KEPT: usize = 12;
const OPS_MAX: usize = 1000;

#[derive(Clone, Copy)]
struct Timer {
    handle: Option<Handle>,
    due: u64,
    order: u64,
    period: u64,
    is_cyclic: bool,
}

struct Pair {
    wheel: Wheel<KEYS>,
    tick: u64,
    now: u64,
    orders: u64,
    timers: [Option<Timer>; KEYS],
    running: BTreeMap<(u64, u64), usize>,
    /// Until then a timer that was stopped may still stand in its slot.
    struck_until: u64,
}

impl Pair {
    fn new(tick: u64) -> Self {
        let (timers, running) = ([None; KEYS], BTreeMap::new());
        let wheel = Wheel::new(Duration(tick));
        Self { wheel, tick, now: 0, orders: 0, timers, running, struck_until: 0 }
    }

    fn step(&mut self, [what, key, bits, amount]: [u8; 4]) {
        let key = usize::from(key) % KEYS;
        let kept = KEPT + key % (KEYS - KEPT);
        let handled = key % KEPT;
        let span = u64::from(amount) << (bits % 48) >> 8;
        match what % 8 {
            0 => self.start(handled, span, Repeat::Once),
            1 => self.start(handled, span, Repeat::Every(Duration(span + 1))),
            2 => self.stop(handled),
            3 => self.renew(handled),
            4 => self.keep(kept, Some(self.now + span)),
            5 => self.keep(kept, None),
            6 => self.advance(span, u32::MAX),
            _ => self.advance(span, u32::from(amount)),
        }
        self.check_deadline();
    }

    fn put(&mut self, key: usize, mut timer: Timer) {
        timer.order = self.orders;
        self.orders += 1;
        self.running.insert((timer.due, timer.order), key);
        self.timers[key] = Some(timer);
    }

    fn take(&mut self, key: usize) -> Option<Timer> {
        let timer = self.timers[key].take()?;
        self.running.remove(&(timer.due, timer.order));
        Some(timer)
    }

    fn start(&mut self, key: usize, span: u64, repeat: Repeat) {
        let (now, due) = (Instant(self.now), self.now + span);
        let started = self.wheel.start(now, Key(key as u32), Instant(due), repeat);
        if self.timers[key].is_some() {
            assert_eq!(started, Err(StartError::Live));
            return;
        }
        let handle = Some(started.expect("the key is free"));
        let (period, is_cyclic) = match repeat {
            Repeat::Once => (span, false),
            Repeat::Every(period) => (period.0, true),
        };
        self.put(key, Timer { handle, due, order: 0, period, is_cyclic });
    }

    fn stop(&mut self, key: usize) {
        let Some(handle) = self.timers[key].and_then(|timer| timer.handle) else { return };
        assert_eq!(self.wheel.stop(handle), Ok(()));
        assert!(self.wheel.stop(handle).is_err());
        if let Some(stopped) = self.take(key) {
            self.struck_until = self.struck_until.max(stopped.due);
        }
    }

    fn renew(&mut self, key: usize) {
        let Some(handle) = self.timers[key].and_then(|timer| timer.handle) else { return };
        assert_eq!(self.wheel.renew(Instant(self.now), handle), Ok(()));
        if let Some(timer) = self.take(key) {
            self.put(key, Timer { due: self.now + timer.period, ..timer });
        }
    }

    fn keep(&mut self, key: usize, deadline: Option<u64>) {
        if self.timers[key].map(|timer| timer.due) == deadline {
            // Its place among those due together depends on how far the budget went.
            return;
        }
        assert_eq!(self.wheel.keep(Key(key as u32), deadline.map(Instant)), Ok(()));
        self.take(key);
        if let Some(due) = deadline {
            self.put(key, Timer { handle: None, due, order: 0, period: 0, is_cyclic: false });
        }
    }

    fn advance(&mut self, span: u64, budget: u32) {
        self.now += span;
        let progress = self.wheel.advance(Instant(self.now), budget).expect("time goes on");
        while let Some(found) = self.wheel.poll_expired() {
            assert_eq!(Some(found), self.expire());
        }
        if progress == Progress::CaughtUp {
            assert_eq!(self.expire(), None);
        }
    }

    /// The first timer of the map that is due by the last full tick; its next cycle begins.
    fn expire(&mut self) -> Option<Expiry> {
        let full = self.now - self.now % self.tick;
        let (&(due, _), &key) = self.running.first_key_value()?;
        if due > full {
            return None;
        }
        let timer = self.take(key)?;
        let mut missed = 0;
        if timer.is_cyclic {
            missed = (full - due) / timer.period;
            let next = Timer { due: due + (missed + 1) * timer.period, ..timer };
            self.running.insert((next.due, next.order), key);
            self.timers[key] = Some(next);
        }
        Some(Expiry { key: Key(key as u32), due: Instant(due), missed })
    }

    fn check_deadline(&self) {
        let earliest = self.running.first_key_value().map(|((due, _), _)| *due);
        match (self.wheel.next_deadline(), earliest) {
            (Some(deadline), Some(due)) => {
                assert!(deadline.0 <= due.next_multiple_of(self.tick));
            }
            (Some(deadline), None) => {
                let until = self.struck_until.max(self.now).next_multiple_of(self.tick);
                assert!(deadline.0 <= until);
            }
            (None, earliest) => assert_eq!(earliest, None),
        }
    }
}

/// Carries out `bytes`.
pub fn run(bytes: &[u8]) {
    let Some((tick, ops)) = bytes.split_first() else { return };
    let mut pair = Pair::new(u64::from(*tick) + 1);
    for op in ops.as_chunks::<4>().0.iter().take(OPS_MAX) {
        pair.step(*op);
    }
}

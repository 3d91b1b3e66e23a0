//! The armed word: a waiter that has announced its sleep, and ringers that have stored work.
//! SYNC: bell-arm.
//!
//! The kernel's part is modelled by what it promises: it puts the waiter to sleep only while the
//! word is armed, looking at it and queueing the waiter as one step, and a wake-up ends the sleep
//! of the queued waiter. So a wake-up is lost when the waiter sleeps, all ringers are done, and
//! none of them woke.

use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use weft_core::fabric::arm::{ARMED, ArmWord, Duty};
use weft_core::sync::AtomicU32;

use crate::alone;
use crate::publication::PREEMPTIONS;

/// What waiter and ringers share.
struct Bell {
    word: AtomicU32,
    work: AtomicU64,
    /// The kernel's queue: whether the waiter stands in it.
    asleep: Mutex<bool>,
    woken: Condvar,
}

impl Bell {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            word: AtomicU32::new(0),
            work: AtomicU64::new(0),
            asleep: Mutex::new(false),
            woken: Condvar::new(),
        })
    }

    fn arm(&self) -> ArmWord<'_> {
        ArmWord(&self.word)
    }

    /// The kernel's wait: until a wake-up, if the word is armed. A lost wake-up is a deadlock,
    /// which loom reports.
    fn wait(&self) {
        let mut asleep = self.asleep.lock().unwrap();
        // The kernel orders its look at the word by the lock of its queue.
        if self.word.load(Ordering::SeqCst) != ARMED {
            return;
        }
        *asleep = true;
        while *asleep {
            asleep = self.woken.wait(asleep).unwrap();
        }
    }

    /// The kernel's wake-up.
    fn wake(&self) {
        *self.asleep.lock().unwrap() = false;
        self.woken.notify_all();
    }

    fn ring(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
        if self.arm().start_ring() == Duty::Wake {
            self.wake();
            self.arm().finish_ring();
        }
    }

    /// Waits until there is `goal` work.
    fn await_work(&self, goal: u64) {
        while self.work.load(Ordering::Relaxed) < goal {
            self.arm().arm();
            if self.work.load(Ordering::Relaxed) < goal {
                self.wait();
            }
            self.arm().disarm();
        }
    }
}

/// A waiter and so many ringers; with a bound beyond two threads.
pub(crate) fn no_wake_up_is_lost(ringers: u64) {
    let mut model = Builder::new();
    model.preemption_bound = (ringers > 1).then_some(PREEMPTIONS);
    model.check(move || {
        let bell = Bell::new();
        let ringing: Vec<_> = (0..ringers)
            .map(|_| {
                let bell = Arc::clone(&bell);
                thread::spawn(move || bell.ring())
            })
            .collect();
        bell.await_work(ringers);
        for ringer in ringing {
            ringer.join().unwrap();
        }
    });
}

#[test]
fn one_ringer_always_reaches_the_waiter() {
    let _alone = alone();
    no_wake_up_is_lost(1);
}

#[test]
fn two_ringers_always_reach_the_waiter() {
    let _alone = alone();
    no_wake_up_is_lost(2);
}

#[test]
fn a_ringer_that_died_before_its_wake_up_is_replaced_by_the_next() {
    let _alone = alone();
    let mut model = Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.check(|| {
        let bell = Bell::new();
        let (killed, next) = (Arc::clone(&bell), Arc::clone(&bell));
        let killed = thread::spawn(move || {
            killed.work.fetch_add(1, Ordering::Relaxed);
            // Killed by here, whatever its duty was.
            let _ = killed.arm().start_ring();
        });
        let next = thread::spawn(move || next.ring());
        bell.await_work(1);
        killed.join().unwrap();
        next.join().unwrap();
    });
}

#[test]
fn a_forced_ring_ends_the_sleep_that_a_killed_ringer_left() {
    let _alone = alone();
    loom::model(|| {
        let bell = Bell::new();
        let ringing = Arc::clone(&bell);
        let supervisor = thread::spawn(move || {
            ringing.work.fetch_add(1, Ordering::Relaxed);
            let _ = ringing.arm().start_ring();
            // Its supervisor has seen the death.
            ringing.arm().start_forced_ring();
            ringing.wake();
            ringing.arm().finish_ring();
        });
        bell.await_work(1);
        supervisor.join().unwrap();
    });
}

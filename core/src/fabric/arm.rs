//! The armed word of a bell: who must wake whom, without a system call in sight. For fabrics over
//! memory that the waiter and its ringers share.
//!
//! ```text
//!               arm (waiter)              start_ring (ringer)
//!   IDLE ────────────────────▶ ARMED ─────────────────────────▶ RINGING
//!    ▲                           │ disarm (waiter)                 │
//!    └───────────────────────────┴── finish_ring (ringer), disarm ─┘
//! ```
//!
//! The waiter sleeps only while the word is ARMED, which the kernel checks as it puts it to
//! sleep; a ringer takes the word out of ARMED before it wakes. So no wake-up falls between the
//! waiter's last look and its sleep.
//!
//! RINGING is there for crashes: a ringer that is killed before its wake-up leaves a sleeper,
//! but not an IDLE word, and so the next ringer wakes it. What remains (no other ringer comes,
//! or two of them die in each other's way) is ended by the process that notices the
//! death and rings by force, and at last by the sleeper's timeout.
//!
//! The word lies in shared memory, so a hostile peer can write anything: unknown values count as
//! RINGING, and the most it gains is needless wake-ups and sleeps up to their timeout.

use crate::mutant::Mutant;
use crate::sync::{AtomicU32, Ordering, fence};

/// The fences left out, one at a time, for the model checker to miss (`core/tests/loom`).
pub const WEAKENED: &[Mutant] = &[UNFENCED_WAITER, UNFENCED_RINGER];

const UNFENCED_WAITER: Mutant = Mutant::new("bell", "armed-without-fence", "no lost wake-up");
const UNFENCED_RINGER: Mutant = Mutant::new("bell", "rung-without-fence", "no lost wake-up");

const IDLE: u32 = 0;
/// The value on which the kernel lets a waiter sleep.
pub const ARMED: u32 = 1;
const RINGING: u32 = 2;

/// What a ringer has to do after looking at the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// No waiter sleeps or is about to.
    Nothing,
    /// Wake the sleeper, then [`ArmWord::finish_ring`].
    Wake,
}

/// A view of the word. At any time there is one waiter, and any number of ringers.
#[derive(Clone, Copy, Debug)]
pub struct ArmWord<'w>(pub &'w AtomicU32);

impl ArmWord<'_> {
    /// Waiter: announces a sleep. Between this and the sleep it must look for work once more.
    pub fn arm(self) {
        self.0.store(ARMED, Ordering::Relaxed);
        // SYNC: bell-arm. Waiter: store ARMED, fence, load work. Ringer: store work, fence, load
        // the word. One of two SeqCst fences is first, and the side of the other one sees what
        // was stored before it: the waiter finds the work or the ringer finds the waiter.
        if !UNFENCED_WAITER.is_planted() {
            fence(Ordering::SeqCst);
        }
    }

    /// Waiter: takes the announcement back, having slept or not.
    pub fn disarm(self) {
        // May overwrite a RINGING: the waiter is awake, and that is all a ring is for. A swap, so
        // that it reads what it overwrites: the model checker does not conclude from a ringer's
        // exchanges that the changes of the word have one order. It is next to a system call.
        self.0.swap(IDLE, Ordering::Relaxed);
    }

    /// Ringer, having stored work: whether a waiter must be woken for it.
    #[must_use]
    pub fn start_ring(self) -> Duty {
        // SYNC: bell-arm. The counterpart of the fence in `arm`.
        if !UNFENCED_RINGER.is_planted() {
            fence(Ordering::SeqCst);
        }
        // A plain load first, so that the cache line stays shared while the waiter is busy.
        if self.0.load(Ordering::Relaxed) == IDLE {
            return Duty::Nothing;
        }
        match self.0.compare_exchange(ARMED, RINGING, Ordering::Relaxed, Ordering::Relaxed) {
            // It disarmed since the load. If it arms again, its fence comes after ours, for
            // otherwise the load had seen that; and so it finds the work before it sleeps.
            Err(IDLE) => Duty::Nothing,
            // Another ringer is at it, but may have been killed before it woke the waiter.
            Ok(_) | Err(_) => Duty::Wake,
        }
    }

    /// Ringer: a wake-up is due whatever the word says. Followed as [`Duty::Wake`] is.
    pub fn start_forced_ring(self) {
        // SYNC: bell-arm. As in `start_ring`, for a waiter that arms after the store below.
        fence(Ordering::SeqCst);
        self.0.store(RINGING, Ordering::Relaxed);
    }

    /// Ringer: the wake-up is done, and later ringers need not repeat it. Right even if it found
    /// no waiter: one on its way to sleep is turned back by IDLE as much as by RINGING.
    pub fn finish_ring(self) {
        match self.0.compare_exchange(RINGING, IDLE, Ordering::Relaxed, Ordering::Relaxed) {
            // On failure the waiter has disarmed, and perhaps armed again: the word is its own.
            Ok(_) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::vec::Vec;

    fn word_after(steps: impl FnOnce(ArmWord<'_>)) -> u32 {
        let word = AtomicU32::new(IDLE);
        steps(ArmWord(&word));
        word.into_inner()
    }

    #[test]
    fn busy_waiter_needs_no_ring() {
        let word = word_after(|word| assert_eq!(word.start_ring(), Duty::Nothing));
        assert_eq!(word, IDLE);
        let word = word_after(|word| {
            word.arm();
            word.disarm();
            assert_eq!(word.start_ring(), Duty::Nothing);
        });
        assert_eq!(word, IDLE);
    }

    #[test]
    fn armed_waiter_is_woken_by_the_first_ringer_alone() {
        let word = word_after(|word| {
            word.arm();
            assert_eq!(word.start_ring(), Duty::Wake);
            word.finish_ring();
            assert_eq!(word.start_ring(), Duty::Nothing);
        });
        assert_eq!(word, IDLE);
    }

    #[test]
    fn ringer_that_died_before_its_wake_up_is_replaced_by_the_next() {
        let word = word_after(|word| {
            word.arm();
            assert_eq!(word.start_ring(), Duty::Wake);
            assert_eq!(word.start_ring(), Duty::Wake);
        });
        assert_eq!(word, RINGING);
    }

    #[test]
    fn late_finish_leaves_a_new_announcement_alone() {
        let word = word_after(|word| {
            word.arm();
            assert_eq!(word.start_ring(), Duty::Wake);
            word.disarm();
            word.arm();
            word.finish_ring();
        });
        assert_eq!(word, ARMED);
    }

    #[test]
    fn forced_ring_turns_back_a_waiter_on_its_way_to_sleep() {
        let turned_back = word_after(|word| {
            word.arm();
            word.start_forced_ring();
        });
        assert_ne!(turned_back, ARMED);
        let still = word_after(|word| {
            word.arm();
            word.start_forced_ring();
            word.finish_ring();
        });
        assert_eq!(still, IDLE);
    }

    #[test]
    fn scribbled_word_is_woken_for_and_healed_by_the_waiter() {
        let word = AtomicU32::new(0xdead_beef);
        assert_eq!(ArmWord(&word).start_ring(), Duty::Wake);
        ArmWord(&word).disarm();
        assert_eq!(word.into_inner(), IDLE);
    }

    /// One race of a waiter about to sleep with a ringer, on a cache line of its own.
    #[derive(Default)]
    #[repr(align(128))]
    struct Race {
        word: AtomicU32,
        work: AtomicU32,
    }

    /// The litmus test of `SYNC: bell-arm`. Both sides run through the races side by side, and
    /// meet in some of them; without one of the fences most runs fail, even on x86.
    #[test]
    fn waiter_finds_the_work_or_ringer_finds_the_waiter() {
        const RACES: usize = 20_000;
        for _ in 0..10 {
            let races: Vec<Race> = std::iter::repeat_with(Race::default).take(RACES).collect();
            let start = Barrier::new(2);
            let look = |race: &Race| {
                ArmWord(&race.word).arm();
                race.work.load(Ordering::Relaxed)
            };
            let ring = |race: &Race| {
                race.work.store(1, Ordering::Relaxed);
                ArmWord(&race.word).start_ring()
            };
            let (looks, duties): (Vec<u32>, Vec<Duty>) = std::thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    start.wait();
                    races.iter().map(look).collect()
                });
                start.wait();
                let duties = races.iter().map(ring).collect();
                (waiter.join().unwrap(), duties)
            });
            let lost = std::iter::zip(looks, duties).position(|seen| seen == (0, Duty::Nothing));
            assert_eq!(lost, None, "neither side saw the other");
        }
    }
}

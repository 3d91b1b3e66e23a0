//! The wheel's promises one by one, then all of them against a sorted map.

use std::format;
use std::vec::Vec;

use super::*;

mod model;

const TICK: u64 = 10;
type TestWheel = Wheel<64>;

fn wheel() -> TestWheel {
    Wheel::new(Duration(TICK))
}

impl<const TIMERS: usize> Wheel<TIMERS> {
    fn start_once(&mut self, key: u32, due: u64) -> Handle {
        self.start(self.now, Key(key), Instant(due), Repeat::Once).unwrap()
    }

    fn start_cyclic(&mut self, key: u32, due: u64, period: u64) -> Handle {
        self.start(self.now, Key(key), Instant(due), Repeat::Every(Duration(period))).unwrap()
    }

    /// What is reported once `now` has come: key, due, missed.
    fn expired_by(&mut self, now: u64) -> Vec<(u32, u64, u64)> {
        assert_eq!(self.advance(Instant(now), u32::MAX), Ok(Progress::CaughtUp));
        self.polled()
    }

    fn polled(&mut self) -> Vec<(u32, u64, u64)> {
        let expiries = core::iter::from_fn(|| self.poll_expired());
        expiries.map(|expiry| (expiry.key.0, expiry.due.0, expiry.missed)).collect()
    }

    /// How often an advance by one step is needed to catch up.
    fn steps_to(&mut self, now: u64) -> usize {
        let is_behind = |wheel: &mut Self| wheel.advance(Instant(now), 1) == Ok(Progress::Behind);
        core::iter::from_fn(|| is_behind(self).then_some(())).count() + 1
    }

    /// How many entries of the slab differ from those of `before`.
    fn written_since(&self, before: &Self) -> usize {
        let entry = |wheel: &Self, index| format!("{:?}", wheel.timers.entry(index));
        (0..TIMERS as u32).filter(|index| entry(self, *index) != entry(before, *index)).count()
    }
}

/// A wheel whose timers all wait in the same slot.
fn crowd() -> (TestWheel, [Handle; 63]) {
    let mut wheel = wheel();
    let handles = core::array::from_fn(|key| wheel.start_once(key as u32, 1_000));
    (wheel, handles)
}

fn silent_heartbeat() -> (TestWheel, Handle) {
    let mut wheel = wheel();
    let handle = wheel.start_cyclic(1, 100, 100);
    wheel.suspend(Instant(0), handle, Suspension::Silent).unwrap();
    (wheel, handle)
}

fn paused_at_40_of_100() -> (TestWheel, Handle) {
    let mut wheel = wheel();
    let handle = wheel.start_once(1, 100);
    wheel.suspend(Instant(40), handle, Suspension::Paused).unwrap();
    (wheel, handle)
}

#[test]
fn w1_an_operation_writes_to_a_constant_number_of_timers() {
    let (mut wheel, handles) = crowd();
    let before = wheel.clone();
    wheel.start_once(63, 1_000);
    assert!(wheel.written_since(&before) <= 2);
    let before = wheel.clone();
    wheel.stop(handles[30]).unwrap();
    assert!(wheel.written_since(&before) <= 3);
    let before = wheel.clone();
    wheel.renew(Instant(0), handles[31]).unwrap();
    assert_eq!(wheel.written_since(&before), 1);
    wheel.suspend(Instant(0), handles[32], Suspension::Paused).unwrap();
    let before = wheel.clone();
    wheel.resume(Instant(0), handles[32]).unwrap();
    assert!(wheel.written_since(&before) <= 2);
}

#[test]
fn w2_empty_time_is_skipped() {
    let mut wheel = wheel();
    wheel.start_once(1, (1 << 23) * TICK);
    assert!(wheel.steps_to(((1 << 23) - 1) * TICK) <= 1);
    wheel.start_once(2, (1 << 40) * TICK);
    assert!(wheel.steps_to((1 << 41) * TICK) <= 8, "open, look and make ready, for each");
    assert_eq!(wheel.polled().len(), 2);
}

#[test]
fn w2_a_timer_comes_down_from_the_overflow_to_its_tick() {
    for shift in [1, 5, 6, 11, 12, 17, 18, 23, 24, 40, 59] {
        for tick in [(1 << shift) - 1, 1 << shift, (1 << shift) + 1, (2 << shift) - 1] {
            let mut wheel = wheel();
            wheel.start_once(1, tick * TICK);
            assert_eq!(wheel.expired_by(tick * TICK - 1), []);
            assert_eq!(wheel.expired_by(tick * TICK), [(1, tick * TICK, 0)]);
        }
    }
}

#[test]
fn w3_a_timer_is_never_early_and_late_by_less_than_a_tick() {
    for due in 0..200 {
        let mut wheel = wheel();
        wheel.start_once(1, due);
        let now = (0..).find(|now| !wheel.expired_by(*now).is_empty()).unwrap();
        assert!((due..due + TICK).contains(&now), "due {due}, reported at {now}");
    }
}

#[test]
fn w3_a_deadline_that_has_passed_is_due_at_once() {
    let mut wheel = wheel();
    assert_eq!(wheel.expired_by(500), []);
    wheel.start_once(1, 20);
    assert_eq!(wheel.next_deadline(), Some(Instant(500)));
    assert_eq!(wheel.expired_by(500), [(1, 500, 0)]);
}

#[test]
fn w4_time_that_goes_back_is_refused_and_nothing_changes() {
    let mut wheel = wheel();
    let handle = wheel.start_once(1, 900);
    assert_eq!(wheel.expired_by(500), []);
    let before = format!("{:?}{:?}{}", wheel, wheel.timers, wheel.orders);
    let (back, error) = (Instant(499), TimeWentBack { latest: Instant(500) });
    assert_eq!(wheel.advance(back, 9), Err(error));
    assert_eq!(wheel.start(back, Key(2), back, Repeat::Once), Err(error.into()));
    assert_eq!(wheel.renew(back, handle), Err(error.into()));
    assert_eq!(wheel.suspend(back, handle, Suspension::Paused), Err(error.into()));
    assert_eq!(wheel.resume(back, handle), Err(error.into()));
    assert_eq!(format!("{:?}{:?}{}", wheel, wheel.timers, wheel.orders), before);
}

#[test]
fn w4_a_jump_to_the_end_of_time_is_an_advance_like_any_other() {
    let mut wheel = Wheel::<8>::new(Duration(1));
    for (key, due) in [0, 1, 1 << 30, u64::MAX - 1, u64::MAX].into_iter().enumerate() {
        wheel.start_once(key as u32, due);
    }
    wheel.start_cyclic(7, 3, 1 << 62);
    let keys: Vec<_> = wheel.expired_by(u64::MAX).iter().map(|expiry| expiry.0).collect();
    assert_eq!(keys, [0, 1, 7, 2, 3, 4]);
    assert!(!wheel.is_running(Key(7)), "its next cycle would end after the end of time");
    assert_eq!(wheel.next_deadline(), None);
}

#[test]
fn w5_a_cyclic_timer_keeps_its_phase_and_counts_what_it_missed() {
    let mut wheel = wheel();
    wheel.start_cyclic(1, 105, 100);
    assert_eq!(wheel.expired_by(109), []);
    assert_eq!(wheel.expired_by(110), [(1, 105, 0)]);
    assert_eq!(wheel.expired_by(532), [(1, 205, 3)]);
    assert_eq!(wheel.next_deadline().map(|at| at <= Instant(610)), Some(true));
    assert_eq!(wheel.expired_by(610), [(1, 605, 0)]);
}

#[test]
fn w5_a_cycle_that_ended_since_the_last_full_tick_is_not_missed() {
    let mut wheel = wheel();
    wheel.start_cyclic(1, 100, 4);
    assert_eq!(wheel.expired_by(109), [(1, 100, 0)]);
    assert_eq!(wheel.expired_by(110), [(1, 104, 1)]);
}

#[test]
fn w5_a_new_period_counts_from_the_next_cycle() {
    let mut wheel = wheel();
    let handle = wheel.start_cyclic(1, 100, 100);
    assert_eq!(wheel.set_period(handle, Duration(0)), Err(PeriodError::ZeroPeriod));
    wheel.set_period(handle, Duration(30)).unwrap();
    assert_eq!(wheel.expired_by(99), []);
    assert_eq!(wheel.expired_by(100), [(1, 100, 0)]);
    assert_eq!(wheel.expired_by(130), [(1, 130, 0)]);
}

#[test]
fn w6_any_budget_gives_the_same_expiries() {
    let (mut one, _) = crowd();
    for key in 0..20 {
        one.stop(Handle { key: Key(key), generation: 0 }).unwrap();
        one.start_once(key, 1_000 - u64::from(key) % 7);
    }
    let mut other = one.clone();
    let expected = one.expired_by(5_000);
    let mut found = Vec::new();
    while other.advance(Instant(5_000), 1) == Ok(Progress::Behind) {
        found.extend(other.polled());
    }
    found.extend(other.polled());
    assert_eq!((found.len(), found), (63, expected));
}

#[test]
fn w6_an_advance_without_a_budget_only_says_what_is_left() {
    let (mut wheel, _) = crowd();
    assert_eq!(wheel.advance(Instant(639), 0), Ok(Progress::CaughtUp));
    assert_eq!(wheel.advance(Instant(1_000), 0), Ok(Progress::Behind));
    assert_eq!(wheel.poll_expired(), None);
    assert_eq!(wheel.next_deadline().map(|at| at <= Instant(1_000)), Some(true));
}

#[test]
fn w6_the_worst_order_costs_a_step_for_each_doubling() {
    const COUNT: usize = 1024;
    let steps = |due: fn(u32) -> u64| {
        let mut wheel = Wheel::<COUNT>::new(Duration(1_000_000));
        (0..COUNT as u32).for_each(|key| _ = wheel.start_once(key, due(key)));
        wheel.steps_to(1_000_000)
    };
    assert!(steps(|_| 5_000) <= COUNT + 3);
    assert!(steps(|key| 5_000 - u64::from(key)) <= COUNT * (1 + 10 + 2));
}

#[test]
fn w6_a_sort_that_is_never_finished_takes_any_number_of_timers() {
    const STEPS_TO_MERGE_ONE_MORE: u32 = 5;
    let mut wheel = wheel();
    wheel.start_once(0, 100);
    let mut other = wheel.start_once(1, 95);
    // The slot is opened, both timers are looked at, and their two runs merged in three steps.
    assert_eq!(wheel.advance(Instant(100), 1 + 2 + 3), Ok(Progress::Behind));
    for _ in 0..100 {
        wheel.stop(other).unwrap();
        other = wheel.start_once(1, 100);
        assert_eq!(wheel.advance(Instant(100), STEPS_TO_MERGE_ONE_MORE), Ok(Progress::Behind));
    }
    assert_eq!(wheel.expired_by(100), [(0, 100, 0), (1, 100, 0)]);
}

#[test]
fn w7_sleeping_until_the_next_deadline_is_never_too_long() {
    for due in (1..64).chain([640, 641, 6_400, 1 << 20, 1 << 40]) {
        let mut wheel = wheel();
        wheel.start_once(1, due);
        let mut wakes = 0;
        while let Some(at) = wheel.next_deadline() {
            assert!(at <= Instant(due.next_multiple_of(TICK)));
            wheel.expired_by(at.0);
            wakes += 1;
        }
        assert!(wakes <= 1 + 4 + 40, "due {due}: {wakes} wakes");
    }
}

#[test]
fn w7_a_paused_timer_wakes_nobody() {
    let (wheel, _) = paused_at_40_of_100();
    assert_eq!(wheel.next_deadline(), None);
    assert!(!wheel.is_running(Key(1)));
}

#[test]
fn w8_a_renewal_stores_the_deadline_and_files_when_the_old_slot_comes_up() {
    let mut wheel = wheel();
    let handle = wheel.start_once(1, 100);
    wheel.renew(Instant(90), handle).unwrap();
    assert_eq!(wheel.next_deadline(), Some(Instant(100)), "still in its old slot");
    assert_eq!(wheel.expired_by(100), []);
    assert_eq!(wheel.expired_by(189), []);
    assert_eq!(wheel.expired_by(190), [(1, 190, 0)]);
}

#[test]
fn a_stopped_timer_stands_in_its_slot_until_that_comes_up() {
    let mut wheel = wheel();
    let handle = wheel.start_once(1, 100);
    wheel.stop(handle).unwrap();
    assert_eq!((wheel.timer(Key(1)), wheel.stop(handle)), (None, Err(Stale)));
    assert_eq!(wheel.next_deadline(), Some(Instant(100)), "no advance has looked");
    assert_eq!(wheel.expired_by(100), []);
    assert_eq!(wheel.next_deadline(), None);
}

#[test]
fn a_stopped_timer_is_started_again_where_it_stands_or_earlier() {
    let mut wheel = wheel();
    for (due, expected) in [(300, [(1, 300, 0)]), (320, [(1, 320, 0)])] {
        let handle = wheel.start_once(1, 310);
        wheel.stop(handle).unwrap();
        wheel.start_once(1, due);
        assert_eq!(wheel.expired_by(due - 10), []);
        assert_eq!(wheel.expired_by(due), expected);
    }
}

#[test]
fn w8_a_renewal_to_an_earlier_time_files_at_once() {
    let mut wheel = wheel();
    let handle = wheel.start_once(1, 1_000);
    wheel.set_period(handle, Duration(50)).unwrap();
    wheel.renew(Instant(0), handle).unwrap();
    assert_eq!(wheel.next_deadline(), Some(Instant(50)));
    assert_eq!(wheel.expired_by(50), [(1, 50, 0)]);
}

#[test]
fn w8_a_renewal_withdraws_an_expiry_that_was_not_polled() {
    let (mut wheel, handles) = crowd();
    assert_eq!(wheel.advance(Instant(1_000), u32::MAX), Ok(Progress::CaughtUp));
    wheel.renew(Instant(1_000), handles[0]).unwrap();
    assert_eq!(wheel.polled().len(), 62);
    assert_eq!(wheel.expired_by(2_000), [(0, 2_000, 0)]);
}

#[test]
fn w9_timers_due_together_are_all_reported_in_start_order() {
    let (mut wheel, handles) = crowd();
    wheel.renew(Instant(0), handles[7]).unwrap();
    let keys: Vec<_> = wheel.expired_by(1_000).iter().map(|expiry| expiry.0).collect();
    let expected: Vec<_> = (0..63).filter(|key| *key != 7).chain([7]).collect();
    assert_eq!(keys, expected, "the renewed one was started last");
}

#[test]
fn within_a_tick_the_earlier_deadline_is_reported_first() {
    let mut wheel = wheel();
    for (key, due) in [(1, 109), (2, 101), (3, 110), (4, 105)] {
        wheel.start_once(key, due);
    }
    assert_eq!(wheel.expired_by(110), [(2, 101, 0), (4, 105, 0), (1, 109, 0), (3, 110, 0)]);
}

#[test]
fn a_live_key_is_not_started_again() {
    let mut wheel = wheel();
    let first = wheel.start_once(1, 100);
    let start = |wheel: &mut TestWheel, key| {
        wheel.start(Instant(0), Key(key), Instant(9), Repeat::Once).map(|_| ())
    };
    assert_eq!(start(&mut wheel, 1), Err(StartError::Live));
    assert_eq!(start(&mut wheel, 64), Err(StartError::NoSuchKey));
    let never = Repeat::Every(Duration(0));
    let refused = wheel.start(Instant(0), Key(2), Instant(9), never);
    assert_eq!(refused, Err(StartError::ZeroPeriod));
    wheel.stop(first).unwrap();
    assert_eq!(start(&mut wheel, 1), Ok(()));
}

#[test]
fn a_handle_of_an_earlier_life_is_stale() {
    let mut wheel = wheel();
    let old = wheel.start_once(1, 100);
    assert_eq!(wheel.expired_by(100), [(1, 100, 0)]);
    assert_eq!(wheel.stop(old), Err(Stale));
    let new = wheel.start_once(1, 200);
    assert_eq!(wheel.stop(old), Err(Stale));
    assert_eq!(wheel.renew(Instant(100), old), Err(RenewError::Stale));
    assert_eq!(wheel.set_period(old, Duration(1)), Err(PeriodError::Stale));
    let suspended = wheel.suspend(Instant(100), old, Suspension::Silent);
    assert_eq!(suspended, Err(SuspendError::Stale));
    assert_eq!(wheel.resume(Instant(100), old), Err(ResumeError::Stale));
    assert_eq!(wheel.stop(new), Ok(()));
}

#[test]
fn a_silent_timer_keeps_its_phase_and_is_not_reported() {
    let (mut wheel, handle) = silent_heartbeat();
    assert_eq!(wheel.expired_by(250), []);
    assert!(wheel.is_running(Key(1)));
    let again = wheel.suspend(Instant(250), handle, Suspension::Paused);
    assert_eq!(again, Err(SuspendError::AlreadySuspended));
    wheel.resume(Instant(250), handle).unwrap();
    assert_eq!(wheel.expired_by(300), [(1, 300, 0)]);
}

#[test]
fn a_silent_timer_that_is_renewed_for_no_time_is_over() {
    let mut wheel = wheel();
    let handle = wheel.start_once(1, 100);
    wheel.suspend(Instant(0), handle, Suspension::Silent).unwrap();
    wheel.set_period(handle, Duration(0)).unwrap();
    wheel.renew(Instant(0), handle).unwrap();
    assert!(!wheel.is_running(Key(1)));
    assert_eq!(wheel.stop(handle), Err(Stale));
}

#[test]
fn what_expired_and_was_not_polled_is_silenced_too() {
    let (mut wheel, handles) = crowd();
    assert_eq!(wheel.advance(Instant(1_000), u32::MAX), Ok(Progress::CaughtUp));
    wheel.suspend(Instant(1_000), handles[0], Suspension::Silent).unwrap();
    assert!(!wheel.is_running(Key(0)), "due once, it is over");
    assert_eq!(wheel.polled().len(), 62);
}

#[test]
fn a_paused_timer_keeps_the_time_it_had_left() {
    let (mut wheel, handle) = paused_at_40_of_100();
    assert_eq!(wheel.expired_by(5_000), []);
    assert_eq!(
        wheel.timer(Key(1)).map(|timer| timer.state),
        Some(TimerState::Paused { left: Duration(60) })
    );
    wheel.resume(Instant(5_000), handle).unwrap();
    assert_eq!(wheel.resume(Instant(5_000), handle), Err(ResumeError::NotSuspended));
    assert_eq!(wheel.expired_by(5_060), [(1, 5_060, 0)]);
}

#[test]
fn a_dump_shows_every_timer_by_key() {
    let mut wheel = wheel();
    let once = wheel.start_once(9, 80);
    wheel.start_cyclic(2, 30, 40);
    wheel.suspend(Instant(0), once, Suspension::Silent).unwrap();
    let states: Vec<_> = wheel.iter().map(|timer| (timer.key.0, timer.state)).collect();
    let (running, silent) = (TimerState::Running { due: Instant(30) }, Instant(80));
    assert_eq!(states, [(2, running), (9, TimerState::Silent { due: silent })]);
    assert!(format!("{wheel:?}").starts_with("Wheel at 0 ns, tick 10 ns [Timer { key: Key(2)"));
}

#[test]
fn a_wheel_costs_40_bytes_a_timer_and_3_kilobytes() {
    let fixed = size_of::<Wheel<1>>() - 40;
    assert_eq!(fixed, 2_960);
    assert_eq!(size_of::<Wheel<1000>>(), fixed + 40 * 1000);
}

/// What is started behind a long idle time is filed as closely as in a new wheel.
#[test]
fn w7_a_wheel_that_was_idle_wakes_no_timer_early() {
    let mut wheel = wheel();
    assert_eq!(wheel.expired_by(1_000 * TICK), []);
    wheel.start_once(1, 1_010 * TICK);
    assert_eq!(wheel.next_deadline(), Some(Instant(1_010 * TICK)));
}

#[test]
fn w8_a_deadline_that_stays_keeps_its_place_among_equal_ones() {
    let mut wheel = wheel();
    [1, 2, 1].iter().for_each(|key| wheel.keep(Key(*key), Some(Instant(100))).unwrap());
    assert_eq!(wheel.expired_by(100), [(1, 100, 0), (2, 100, 0)]);
}

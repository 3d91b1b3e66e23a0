//! The send queue, by cases and against a device that ends works at random.

use proptest::prelude::*;

use super::*;

const DEPTH: u16 = 32;
const GONE: Result<(), Failure> = Err(Failure::Gone);

/// A queue with these works, numbered from 0.
fn queue_of(works: &[(Report, Fetch)]) -> SendQueue {
    let mut queue = SendQueue::new(DEPTH);
    for (number, (report, fetch)) in (0..).zip(works) {
        queue.push(WorkId(number), *report, *fetch);
    }
    queue
}

const QUIET: (Report, Fetch) = (Report::Quiet, Fetch::Nothing);
const LOUD: (Report, Fetch) = (Report::Loud, Fetch::Nothing);
const PART: (Report, Fetch) = (Report::Part, Fetch::Nothing);
const FETCH: (Report, Fetch) = (Report::Quiet, Fetch::Bytes);

fn reported(ended: Option<Ended>) -> Option<(u64, Result<(), Failure>)> {
    ended.map(|ended| (ended.id.0, ended.outcome))
}

#[test]
fn every_sixteenth_quiet_write_is_signalled() {
    let mut queue = SendQueue::new(128);
    let signals = (0..100).map(|id| queue.push(WorkId(id), Report::Quiet, Fetch::Nothing).1);
    let signalled: Vec<_> = (1..)
        .zip(signals)
        .filter(|(_, signal)| *signal == Signal::Yes)
        .map(|(nth, _)| nth)
        .collect();
    assert_eq!(signalled, [16, 32, 48, 64, 80, 96]);
}

#[test]
fn loud_works_and_fetches_are_always_signalled() {
    let mut queue = queue_of(&[QUIET, QUIET]);
    for (report, fetch) in [LOUD, FETCH, (Report::Quiet, Fetch::Word)] {
        assert_eq!(queue.push(WorkId(9), report, fetch).1, Signal::Yes);
    }
}

#[test]
fn a_success_speaks_for_all_before_it() {
    let mut queue = queue_of(&[QUIET, QUIET, LOUD, QUIET]);
    assert_eq!(reported(queue.end(Place(2), Ok(()))), Some((2, Ok(()))));
    assert_eq!(queue.len(), 1);
    assert_eq!(reported(queue.end(Place(1), Ok(()))), None, "reported twice");
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_quiet_failure_is_told_and_a_quiet_success_is_not() {
    let mut queue = queue_of(&[QUIET, QUIET, QUIET]);
    assert_eq!(reported(queue.end(Place(0), Ok(()))), None);
    assert_eq!(reported(queue.end(Place(1), GONE)), Some((1, GONE)));
    assert_eq!(reported(queue.end(Place(2), GONE)), Some((2, GONE)));
    assert!(queue.is_empty());
}

#[test]
fn the_first_failure_of_a_part_is_told_once_in_the_name_of_the_whole() {
    let mut queue = queue_of(&[PART, PART, LOUD, LOUD]);
    assert_eq!(reported(queue.end(Place(0), Err(Failure::AccessDenied))), None);
    assert_eq!(reported(queue.end(Place(1), GONE)), None);
    let whole = reported(queue.end(Place(2), GONE));
    assert_eq!(whole, Some((2, Err(Failure::AccessDenied))));
    assert_eq!(reported(queue.end(Place(3), GONE)), Some((3, GONE)));
}

#[test]
fn what_is_denied_here_ends_behind_all_that_was_posted_before_it() {
    let denied = (Report::Denied, Fetch::Nothing);
    let mut queue = queue_of(&[QUIET, denied, LOUD, denied]);
    assert_eq!(queue.push(WorkId(4), Report::Denied, Fetch::Nothing).1, Signal::Yes);
    let access_denied = Err(Failure::AccessDenied);
    assert_eq!(reported(queue.end(Place(1), Ok(()))), Some((1, access_denied)));
    assert_eq!(reported(queue.end(Place(2), Ok(()))), Some((2, Ok(()))));
    // With the pair, it is gone.
    assert_eq!(reported(queue.end(Place(3), GONE)), Some((3, GONE)));
}

#[test]
fn a_place_is_kept_for_the_marker() {
    let mut queue = queue_of(&[QUIET; DEPTH as usize - 1]);
    assert_eq!(queue.room(), 0);
    let (place, signal) = queue.push(WorkId(99), Report::Marker, Fetch::Nothing);
    assert_eq!(signal, Signal::Yes);
    assert_eq!(reported(queue.end(place, GONE)), None, "the marker is no work of a caller");
    assert_eq!(queue.room(), usize::from(DEPTH) - 1);
}

#[test]
fn writes_wait_for_fetches_and_atomics_for_reads() {
    let kinds = [Fetch::Nothing, Fetch::Word, Fetch::Bytes];
    let behind = [Behind::Fetches, Behind::Reads, Behind::Nothing];
    let waiting = |queue: &SendQueue| behind.map(|behind| queue.must_wait(behind));
    for (kind, expected) in
        kinds.into_iter().zip([[false, false, false], [true, false, false], [true, true, false]])
    {
        let mut queue = queue_of(&[QUIET, (Report::Loud, kind)]);
        assert_eq!(waiting(&queue), [false; 3], "nothing is in the device's hands");
        queue.hand_over(Place(0));
        queue.hand_over(Place(1));
        assert_eq!(waiting(&queue), expected, "behind {kind:?}");
        queue.end(Place(0), Ok(()));
        assert_eq!(waiting(&queue), expected, "behind {kind:?}");
        queue.end(Place(1), Ok(()));
        assert_eq!(waiting(&queue), [false; 3]);
    }
}

#[test]
fn a_write_that_passed_a_read_ends_behind_it_and_lets_no_write_pass() {
    let mut queue = queue_of(&[(Report::Loud, Fetch::Bytes), QUIET, LOUD]);
    // The read, and a write apart that does not wait for it; the last one does.
    queue.hand_over(Place(0));
    queue.hand_over(Place(1));
    assert!(queue.must_wait(Behind::Fetches), "the write apart hides the read");
    assert_eq!(reported(queue.end(Place(0), Ok(()))), Some((0, Ok(()))));
    assert_eq!(queue.len(), 2, "the end of the read speaks for what was posted behind it");
    assert!(!queue.must_wait(Behind::Fetches));
    queue.hand_over(Place(2));
    assert_eq!(reported(queue.end(Place(2), Ok(()))), Some((2, Ok(()))));
    assert!(queue.is_empty());
}

#[test]
fn age_is_counted_from_the_first_poll_and_only_for_what_the_device_owes() {
    let mut queue = queue_of(&[QUIET, QUIET]);
    assert_eq!(queue.uncovered_since(), None);
    queue.see(Instant(7));
    queue.see(Instant(9));
    assert_eq!((queue.owed_since(), queue.uncovered_since()), (None, Some(Instant(7))));
    queue.push(WorkId(2), Report::Loud, Fetch::Nothing);
    queue.see(Instant(11));
    assert_eq!((queue.owed_since(), queue.uncovered_since()), (Some(Instant(11)), None));
}

#[test]
fn a_retracted_work_leaves_no_trace() {
    let mut queue = queue_of(&[QUIET, LOUD]);
    queue.retract();
    assert_eq!(reported(queue.end(Place(1), Ok(()))), None);
    queue.see(Instant(4));
    assert_eq!(queue.uncovered_since(), Some(Instant(4)), "nothing covers the quiet work now");
    let (place, signal) = queue.push(WorkId(5), Report::Loud, Fetch::Nothing);
    assert_eq!((place, signal), (Place(1), Signal::Yes));
    assert_eq!(reported(queue.end(place, Ok(()))), Some((5, Ok(()))));
}

#[test]
fn what_the_device_never_ends_is_abandoned_in_order() {
    let mut queue = queue_of(&[LOUD, QUIET, PART, LOUD]);
    queue.see(Instant(3));
    let mut ended = Vec::new();
    while let Some(report) = queue.abandon(|seen| {
        assert_eq!(seen, Some(Instant(3)));
        Failure::DeadlinePassed
    }) {
        ended.extend(report.map(|ended| ended.id.0));
    }
    assert_eq!(ended, [0, 1, 3]);
    assert!(queue.is_empty());
}

/// A step of the model: post a work, or let the device end up to so many signalled ones.
#[derive(Clone, Copy, Debug)]
enum Step {
    Post(Report, Fetch),
    End(usize),
    Fail,
}

fn any_step() -> impl Strategy<Value = Step> {
    let fetch = prop_oneof![Just(Fetch::Nothing), Just(Fetch::Bytes), Just(Fetch::Word)];
    prop_oneof![
        6 => Just(Step::Post(Report::Quiet, Fetch::Nothing)),
        2 => fetch.prop_map(|fetch| Step::Post(Report::Loud, fetch)),
        2 => (0usize..8).prop_map(Step::End),
        1 => Just(Step::Fail),
    ]
}

proptest! {
    /// Each work ends once; the device's completions never outnumber the queue's places.
    #[test]
    fn each_work_ends_once_and_completions_fit(
        steps in proptest::collection::vec(any_step(), 0..400),
    ) {
        let mut queue = SendQueue::new(DEPTH);
        let (mut outstanding, mut signalled) = (Vec::new(), Vec::new());
        for (id, step) in (0..).zip(steps) {
            match step {
                Step::Post(report, fetch) if queue.room() > 0 => {
                    let (place, signal) = queue.push(WorkId(id), report, fetch);
                    outstanding.push((place, id, report));
                    signalled.extend((signal == Signal::Yes).then_some(place));
                }
                Step::Post(..) => prop_assert_eq!(outstanding.len(), usize::from(DEPTH) - 1),
                Step::End(count) => {
                    for place in signalled.drain(..count.min(signalled.len())) {
                        let ended = reported(queue.end(place, Ok(())));
                        let last = outstanding.iter().find(|(at, ..)| *at == place);
                        let loud = last.filter(|(.., report)| *report == Report::Loud);
                        prop_assert_eq!(ended, loud.map(|(_, id, _)| (*id, Ok(()))));
                        outstanding.retain(|(at, ..)| *at > place);
                    }
                }
                Step::Fail => {
                    for (place, id, _) in outstanding.drain(..) {
                        prop_assert_eq!(reported(queue.end(place, GONE)), Some((id, GONE)));
                    }
                    signalled.clear();
                }
            }
            prop_assert!(signalled.len() < usize::from(DEPTH));
            prop_assert_eq!(queue.len(), outstanding.len());
        }
    }
}

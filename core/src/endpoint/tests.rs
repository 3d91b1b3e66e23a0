//! The endpoint over the in-memory fabric: batches, fences, and successive incarnations.

use std::boxed::Box;
use std::vec::Vec;

use super::*;
use crate::fabric::PostError;
use crate::fabric::loopback::{Loopback, Net};
use crate::lane::PULSE_LEN;
use crate::mailbox::StageError;
use crate::time::Duration;
use crate::{lane, mailbox};

const A: Peer = Peer(0);
const B: Peer = Peer(1);
const FIRST: Incarnation = Incarnation(1);
const NOW: Instant = Instant(0);
const SLOTS: usize = 4;
const WORDS: usize = 320;

type TestNet = Net<2, WORDS>;
/// Has room for more peers than the plan names.
type TestEndpoint<'net> = Endpoint<Loopback<'net, 2, WORDS>, SLOTS, 4>;

fn plan() -> Plan {
    let mailbox = mailbox::Config::new(2, SLOTS as u32, 40, Duration::from_millis(1)).unwrap();
    Plan::new(mailbox, lane::Config::new(2, 4, 16).unwrap()).unwrap()
}

fn net() -> Box<TestNet> {
    Box::new(TestNet::new(plan().layout().clone()))
}

fn endpoint(net: &TestNet, me: Peer, incarnation: Incarnation) -> TestEndpoint<'_> {
    let mut endpoint = Endpoint::new(net.endpoint(me, incarnation), &plan(), incarnation);
    if incarnation == FIRST {
        // No process had this memory before.
        endpoint.handle_all_named();
    }
    endpoint
}

/// Two endpoints that have admitted each other.
fn pair(net: &TestNet) -> [TestEndpoint<'_>; 2] {
    let (mut a, mut b) = (endpoint(net, A, FIRST), endpoint(net, B, FIRST));
    a.admit(B, FIRST).unwrap();
    b.admit(A, FIRST).unwrap();
    [a, b]
}

/// Polls until nothing completes any more, and returns the events.
fn settle(endpoint: &mut TestEndpoint<'_>) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..8 {
        endpoint.poll(NOW);
        events.extend(core::iter::from_fn(|| endpoint.poll_event()));
    }
    events
}

/// Takes and releases all messages that have arrived.
fn drain(endpoint: &mut TestEndpoint<'_>) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    while let Some(message) = endpoint.take(NOW) {
        let (payload, receipt) = (message.payload.to_vec(), message.receipt);
        endpoint.release(receipt).unwrap();
        payloads.push(payload);
    }
    payloads
}

fn put(to: Peer, count: u32, left: u32) -> Event {
    Event::Put { to, count, left }
}

#[test]
fn a_message_is_due_from_its_arrival_until_it_is_taken() {
    let net = net();
    let [mut a, mut b] = pair(&net);
    assert!(!b.has_message(NOW));
    a.put(B, 0, b"one").unwrap();
    assert!(!b.has_message(NOW), "its ticket alone is no message");
    settle(&mut a);
    assert!(b.has_message(NOW) && b.has_message(NOW), "looking takes nothing");
    assert_eq!(drain(&mut b), [b"one"]);
    assert!(!b.has_message(NOW));
    assert_eq!(b.counters().mailbox.taken, 1);
}

#[test]
fn a_batch_longer_than_a_half_goes_half_by_half() {
    let net = net();
    let [mut a, mut b] = pair(&net);
    for n in 0..10u8 {
        a.stage(B, 0, &[n]).unwrap();
    }
    let mut taken = Vec::new();
    for (count, left) in [(4, 6), (4, 2), (2, 0)] {
        a.flush(B).unwrap();
        assert_eq!(settle(&mut a), [put(B, count, left)]);
        settle(&mut b);
        taken.extend(drain(&mut b));
        settle(&mut b);
    }
    assert_eq!(taken, (0..10).map(|n| [n]).collect::<Vec<_>>());
}

#[test]
fn two_that_are_full_put_to_each_other_and_neither_waits() {
    let net = net();
    let mut both = pair(&net);
    let mut accepted = [0, 0];
    for round in 0..40 {
        for (me, other) in [(0, B), (1, A)] {
            if both[me].put(other, 0, &[round]).is_err() {
                continue;
            }
            let events = settle(&mut both[me]);
            assert_eq!(events.len(), 1);
            accepted[me] += u32::from(matches!(events[0], Event::Put { .. }));
            both[me].outbox(other).unwrap().discard();
        }
    }
    assert!(accepted.iter().all(|count| *count <= 2 * SLOTS as u32));
    for (me, from) in [(0, 1), (1, 0)] {
        let taken = drain(&mut both[me]);
        assert_eq!(taken.len(), accepted[from] as usize);
        settle(&mut both[me]);
    }
    both[0].put(B, 0, b"again").unwrap();
    assert_eq!(settle(&mut both[0]), [put(B, 1, 0)]);
}

#[test]
fn an_endpoint_puts_to_itself() {
    let net = net();
    let mut a = endpoint(&net, A, FIRST);
    for round in 0..20u8 {
        a.put(A, 0, &[round]).unwrap();
        assert_eq!(settle(&mut a), [put(A, 1, 0)]);
        assert_eq!(drain(&mut a), [[round]]);
    }
}

#[test]
fn a_put_that_cannot_start_returns_the_reason() {
    let net = net();
    let mut a = endpoint(&net, A, FIRST);
    let _b = endpoint(&net, B, FIRST);
    assert_eq!(a.put(Peer(2), 0, b""), Err(PutError::UnknownPeer));
    assert_eq!(a.put(Peer(9), 0, b""), Err(PutError::UnknownPeer));
    let gone = Err(PutError::Post(PostError::Gone));
    assert_eq!(a.put(B, 0, b"to no peer"), gone);
    let too_long = Err(PutError::Stage(StageError::TooLong { limit: 40 }));
    assert_eq!(a.put(A, 0, &[0; 41]), too_long);
    a.put(A, 0, b"under way").unwrap();
    assert_eq!(a.put(A, 0, b""), Err(PutError::Stage(StageError::Busy)));
    settle(&mut a);
    let limit = plan().mailbox().batch();
    for _ in 0..limit {
        a.stage(A, 0, b"").unwrap();
    }
    let full = Err(PutError::Stage(StageError::BatchFull { limit }));
    assert_eq!(a.stage(A, 0, b""), full);
}

#[test]
fn a_fence_ends_the_put_under_way() {
    let net = net();
    let [mut a, _b] = pair(&net);
    a.put(B, 0, b"in doubt").unwrap();
    a.fence(B).unwrap();
    let lost = Event::Lost { peer: B, unknown: 0, failure: crate::fabric::Failure::Gone };
    assert_eq!(a.poll_event(), Some(lost));
    assert!(!a.admitted().contains(B));
    assert_eq!(settle(&mut a), []);
    assert_eq!(a.flush(B), Err(PutError::Post(PostError::Gone)));
}

#[test]
fn a_new_incarnation_delivers_what_the_old_one_received() {
    let net = net();
    let [mut a, mut b] = pair(&net);
    a.put(B, 0, b"old").unwrap();
    settle(&mut a);
    let second = FIRST.next();
    let mut a = endpoint(&net, A, second);
    b.fence(A).unwrap();
    b.admit(A, second).unwrap();
    a.admit(B, FIRST).unwrap();
    a.put(B, 0, b"new").unwrap();
    assert_eq!(settle(&mut a), [put(B, 1, 0)]);
    assert_eq!(drain(&mut b), [b"old", b"new"]);
}

#[test]
fn a_restarted_owner_delivers_all_unreleased_messages() {
    let net = net();
    let [mut a, mut b] = pair(&net);
    a.put(B, 0, b"kept").unwrap();
    settle(&mut a);
    assert!(b.take(NOW).is_some());
    let second = FIRST.next();
    let mut b = endpoint(&net, B, second);
    a.fence(B).unwrap();
    a.admit(B, second).unwrap();
    b.admit(A, FIRST).unwrap();
    assert_eq!(drain(&mut b), [b"kept"]);
    a.put(B, 0, b"more").unwrap();
    assert_eq!(settle(&mut a), [put(B, 1, 0)]);
    assert_eq!(drain(&mut b), [b"more"]);
}

#[test]
fn a_ticket_that_a_fenced_peer_only_reserved_is_skipped() {
    let net = net();
    let [mut a, mut b] = pair(&net);
    a.put(B, 0, b"never written").unwrap();
    b.poll(NOW);
    assert!(b.take(NOW).is_none());
    b.fence(A).unwrap();
    settle(&mut b);
    assert_eq!((b.owed(), b.counters().mailbox.skipped), (0, 1));
}

#[test]
#[should_panic(expected = "drain poll_event")]
fn events_are_drained_before_the_next_poll() {
    let net = net();
    let [mut a, _b] = pair(&net);
    a.put(B, 0, b"").unwrap();
    for _ in 0..3 {
        a.poll(NOW);
    }
}

/// Found by reading: the own outbox was lost before the fabric refused.
#[test]
fn no_endpoint_fences_itself() {
    let net = net();
    let mut a = endpoint(&net, A, FIRST);
    assert_eq!(a.fence(A), Err(FenceError::UnknownPeer));
    assert_eq!(a.admit(A, FIRST), Err(FenceError::UnknownPeer));
    a.put(A, 0, b"still here").unwrap();
    assert_eq!(settle(&mut a), [put(A, 1, 0)]);
}

/// Found by reading: it panicked where the endpoint had room for more peers than the plan.
#[test]
fn a_peer_that_the_plan_does_not_name_is_refused() {
    let net = net();
    let mut a = endpoint(&net, A, FIRST);
    assert_eq!(a.admit(Peer(2), FIRST), Err(FenceError::UnknownPeer));
    assert_eq!(a.fence(Peer(3)), Err(FenceError::UnknownPeer));
}

/// Found by reading: the lane's ring was cleared under the messages in it, and a put under way
/// ended without an event.
#[test]
fn an_admitted_peer_is_not_admitted_again() {
    let net = net();
    let [mut a, mut b] = pair(&net);
    b.send(A, 3, b"waiting").unwrap();
    a.put(B, 0, b"under way").unwrap();
    assert_eq!(a.admit(B, FIRST), Err(FenceError::NotReady));
    assert_eq!(a.take_lane().unwrap().payload, b"waiting");
    assert_eq!(settle(&mut a), [put(B, 1, 0)]);
    assert_eq!(drain(&mut b), [b"under way"]);
}

#[test]
fn a_pulse_belongs_to_one_incarnation_of_an_admitted_peer() {
    let net = net();
    let [mut a, mut b] = pair(&net);
    assert_eq!(b.pulse_of(A), Some([0; PULSE_LEN]));
    a.pulse(B, &[7; PULSE_LEN]).unwrap();
    assert_eq!(b.pulse_of(A), Some([7; PULSE_LEN]));
    assert_eq!((a.pulse(A, &[7; PULSE_LEN]), a.pulse_of(A)), (Err(PostError::Gone), None));

    b.fence(A).unwrap();
    assert_eq!(b.pulse_of(A), None);
    let mut a = endpoint(&net, A, FIRST.next());
    b.admit(A, FIRST.next()).unwrap();
    assert_eq!(b.pulse_of(A), Some([0; PULSE_LEN]));
    assert_eq!(a.pulse(B, &[8; PULSE_LEN]), Err(PostError::Gone));
    a.admit(B, FIRST).unwrap();
    a.pulse(B, &[8; PULSE_LEN]).unwrap();
    assert_eq!(b.pulse_of(A), Some([8; PULSE_LEN]));
}

#[test]
fn the_owners_deadlines_and_the_machines_share_one_wheel() {
    let net = net();
    let [_, mut b] = pair(&net);
    assert_eq!(b.poll_timeout(), None);
    b.wake_at(0, Some(Instant(70_000))).unwrap();
    b.wake_at(OWNER_TIMERS - 1, Some(Instant(30_000))).unwrap();
    assert_eq!(b.poll_timeout(), Some(Instant(30_000)));

    // The later one is in a wider slot of the wheel: it may expire sooner, but never later.
    b.poll(Instant(30_000));
    let next = b.poll_timeout().unwrap();
    assert!(next > Instant(30_000) && next <= Instant(70_000));
    b.wake_at(0, None).unwrap();
    assert_eq!(b.poll_timeout(), None);
    assert_eq!(b.wake_at(OWNER_TIMERS, Some(NOW)), Err(NoSuchKey));
}

#[test]
fn a_ticket_without_a_message_sets_a_deadline_of_the_mailbox() {
    let net = net();
    let [mut a, mut b] = pair(&net);
    // The ticket is given out, and the write is not posted.
    a.put(B, 0, b"late").unwrap();
    b.poll(NOW);
    assert!(b.take(NOW).is_none());
    let question = b.poll_timeout().expect("the ticket is missing");
    assert!(question > NOW && question <= NOW.after(Duration::from_millis(1)));
    settle(&mut a);
    assert_eq!(drain(&mut b), [b"late"]);
    settle(&mut b);
    assert_eq!(b.poll_timeout(), None);
}

mod answered;
mod broadcast;
mod groups;
mod member;
mod rendezvous;

//! Puts over a fabric that answers some works when they are posted, and fences that fail at first.

use std::boxed::Box;
use std::vec::Vec;

use super::*;
use crate::fabric::{Failure, FenceError, Op, Posted, Work};

/// Answers atomics at once, and writes if it is set to; refuses the first `refusals` writes, and
/// the first `fence_refusals` fences.
struct Prompt<'net> {
    inner: Loopback<'net, 2, WORDS>,
    answers_writes: bool,
    refusals: u32,
    /// What it carries out and answers with a failure.
    fails: fn(&Op<'_>) -> bool,
    fence_refusals: u32,
    fences: u32,
    /// Its next poll says that it has lost this peer.
    lost: Option<Peer>,
}

impl<'net> Fabric for Prompt<'net> {
    type Memory = <Loopback<'net, 2, WORDS> as Fabric>::Memory;

    crate::delegate_fabric!(self => self.inner);

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        self.inner.post(peer, work)
    }

    fn post_now(&mut self, peer: Peer, work: Work<'_>) -> Result<Posted, PostError> {
        let is_write = matches!(work.op, Op::Write { .. });
        if is_write && self.refusals > 0 {
            self.refusals -= 1;
            return Err(PostError::Full);
        }
        self.inner.post(peer, work)?;
        if is_write && !self.answers_writes {
            return Ok(Posted::Pending);
        }
        let mut done = [Completion::NONE];
        assert_eq!(self.inner.poll(NOW, &mut done), 1, "work ends when it is posted");
        let has_failed = (self.fails)(&work.op);
        Ok(Posted::Ended(if has_failed { Err(Failure::DeadlinePassed) } else { done[0].outcome }))
    }

    fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        if let Some(peer) = self.lost.take() {
            done[0] = Completion { id: WorkId::GONE, peer, outcome: Err(Failure::Gone) };
            return 1;
        }
        self.inner.poll(now, done)
    }

    fn memory(&self) -> &Self::Memory {
        self.inner.memory()
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        self.fences += 1;
        if self.fences <= self.fence_refusals {
            return Err(FenceError::StillReaching);
        }
        self.inner.fence(peer)
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        self.inner.admit(peer, incarnation)
    }
}

type Member<'net> = Endpoint<Prompt<'net>, SLOTS, 4>;

fn writer(
    net: &TestNet,
    answers_writes: bool,
    refusals: u32,
) -> (Box<Member<'_>>, TestEndpoint<'_>) {
    let inner = net.endpoint(A, FIRST);
    let mut b = endpoint(net, B, FIRST);
    let fails = |_: &Op<'_>| false;
    let (fence_refusals, fences, lost) = (0, 0, None);
    let prompt = Prompt { inner, answers_writes, refusals, fails, fence_refusals, fences, lost };
    let mut a: Box<Member<'_>> = Box::new(Endpoint::new(prompt, &plan(), FIRST));
    a.admit(B, FIRST).unwrap();
    b.admit(A, FIRST).unwrap();
    (a, b)
}

#[test]
fn a_put_that_ends_when_it_is_flushed_needs_no_poll() {
    let net = net();
    let (mut a, mut b) = writer(&net, true, 0);
    a.put(B, 0, b"one").unwrap();
    assert_eq!(drain(&mut b), [b"one"]);
    assert_eq!(a.stage(B, 0, b"two"), Err(PutError::Stage(StageError::Busy)), "its event is due");
    assert_eq!(a.poll(NOW), 1, "a loop does not sleep over it");
    assert_eq!(a.poll_event(), Some(put(B, 1, 0)));
    assert_eq!((a.poll_event(), a.poll(NOW)), (None, 0));
    assert_eq!(a.counters().put, 1);
    a.put(B, 0, b"two").unwrap();
    assert_eq!((a.poll_event(), a.poll_event()), (Some(put(B, 1, 0)), None));
}

#[test]
fn a_flush_that_says_what_it_put_leaves_no_event_of_it() {
    let net = net();
    let (mut a, mut b) = writer(&net, true, 0);
    assert_eq!(a.flush_now(B), Ok(None), "nothing is staged");
    for n in 0..SLOTS as u8 {
        a.stage(B, 0, &[n]).unwrap();
        assert_eq!(a.flush_now(B), Ok(Some(1)));
        assert_eq!((a.poll_event(), a.outbox(B).unwrap().staged()), (None, 0));
    }
    assert_eq!(a.counters().put, SLOTS as u64);
    a.stage(B, 0, b"more").unwrap();
    assert_eq!(a.flush_now(B), Ok(None), "the half is full");
    assert_eq!(a.flush_now(B), Ok(None), "its event is due");
    assert_eq!((a.poll_event(), a.poll_event()), (Some(Event::Full { to: B }), None));
    settle(&mut b);
    assert_eq!(drain(&mut b).len(), SLOTS);
    settle(&mut b);
    assert_eq!(a.flush_now(B), Ok(None), "a probe comes before");
    assert_eq!((a.poll_event(), a.poll_event()), (Some(put(B, 1, 0)), None));
    assert_eq!(a.flush_now(Peer(9)), Err(PutError::UnknownPeer));
}

/// What was written may be there, what was not written is not; both stay staged.
#[test]
fn a_work_that_is_answered_with_a_failure_leaves_in_doubt_what_it_may_have_put() {
    for unknown in [2, 0] {
        let net = net();
        let (mut a, _b) = writer(&net, true, 0);
        a.fabric().fails = match unknown {
            0 => |op| matches!(op, Op::FetchAdd { .. }),
            _ => |op| matches!(op, Op::Write { .. }),
        };
        a.stage(B, 0, b"one").unwrap();
        a.stage(B, 0, b"two").unwrap();
        a.flush(B).unwrap();
        let lost = Event::Lost { peer: B, unknown, failure: Failure::DeadlinePassed };
        assert_eq!(a.poll_event(), Some(lost));
        assert_eq!(a.outbox(B).unwrap().staged(), 2);
        assert_eq!(a.flush(B), Err(PutError::Post(PostError::Gone)), "not before it is readmitted");
    }
}

#[test]
fn a_half_that_is_full_is_found_by_the_flush() {
    let net = net();
    let (mut a, mut b) = writer(&net, true, 0);
    for n in 0..SLOTS as u8 {
        a.put(B, 0, &[n]).unwrap();
        assert_eq!(a.poll_event(), Some(put(B, 1, 0)));
    }
    a.put(B, 0, b"more").unwrap();
    assert_eq!(a.poll_event(), Some(Event::Full { to: B }));
    settle(&mut b);
    assert_eq!(drain(&mut b).len(), SLOTS);
    settle(&mut b);
    a.flush(B).unwrap();
    assert_eq!(a.poll_event(), Some(put(B, 1, 0)), "the probe finds room and the put goes on");
}

#[test]
fn a_flush_that_is_refused_or_not_answered_ends_in_a_later_poll() {
    let flushes: [fn(&mut Member<'_>) -> _; 2] =
        [|a| a.flush(B).map(|()| None), |a| a.flush_now(B)];
    for (answers_writes, refusals) in [(true, 1), (false, 1), (false, 0)] {
        for flush in flushes {
            let net = net();
            let (mut a, mut b) = writer(&net, answers_writes, refusals);
            a.stage(B, 0, b"one").unwrap();
            assert_eq!((flush(&mut a), a.poll_event()), (Ok(None), None));
            let polled = core::iter::from_fn(|| {
                a.poll(NOW);
                Some(a.poll_event())
            });
            let events: Vec<_> = polled.take(3).flatten().collect();
            assert_eq!((events, drain(&mut b)), ([put(B, 1, 0)].into(), [b"one".to_vec()].into()));
        }
    }
}

#[test]
fn an_event_that_is_due_outlives_the_fence_of_its_owner() {
    let net = net();
    let (mut a, _b) = writer(&net, true, 0);
    a.put(B, 0, b"one").unwrap();
    a.fence(B).unwrap();
    assert_eq!((a.poll_event(), a.poll_event()), (Some(put(B, 1, 0)), None));
    a.stage(B, 0, b"two").unwrap();
    assert_eq!(a.flush(B), Err(PutError::Post(PostError::Gone)));
}

#[test]
fn a_fence_that_fails_is_tried_again_every_100_ms_until_it_holds_and_then_never() {
    let net = net();
    let (mut a, _b) = writer(&net, false, 0);
    a.fabric().fence_refusals = 2;
    assert_eq!(a.fence(B), Err(FenceError::StillReaching));
    assert_eq!(a.poll_timeout(), Some(Instant(0)), "the time of the failure is the next poll's");
    // The first poll after each millisecond.
    let mut held = None;
    let mut attempts = [0; 4];
    for ms in 0..400 {
        a.poll(Instant(ms * 1_000_000));
        while let Some(event) = a.poll_event() {
            if event == (Event::Fenced { peer: B }) {
                assert_eq!(held.replace(ms), None, "once");
            }
        }
        attempts[ms as usize / 100] = a.fabric().fences;
        assert_eq!(a.unfenced().contains(B), held.is_none());
        assert_eq!(a.admitted().contains(B), held.is_none());
    }
    assert_eq!((held, attempts), (Some(200), [1, 2, 3, 3]));
    a.admit(B, Incarnation(2)).unwrap();
    a.poll(Instant(1_000_000_000));
    assert!(a.admitted().contains(B), "the next incarnation is not fenced");
    a.fabric().fence_refusals = 4;
    assert_eq!(a.fence(B), Err(FenceError::StillReaching));
    a.poll(Instant(1_000_000_000));
    assert_eq!(a.fabric().fences, 4, "it is tried again in 100 ms");
}

#[test]
fn a_peer_that_the_fabric_has_lost_is_reported_unless_it_is_fenced() {
    let net = net();
    let (mut a, _b) = writer(&net, false, 0);
    a.fabric().lost = Some(B);
    a.poll(NOW);
    assert_eq!((a.poll_event(), a.poll_event()), (Some(Event::Gone { peer: B }), None));
    a.fence(B).unwrap();
    a.fabric().lost = Some(B);
    a.poll(NOW);
    assert_eq!(a.poll_event(), None);
}

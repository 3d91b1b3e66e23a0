//! A peer that cannot be killed: its gate is closed, its lane and its incarnation are refused.

use weft::shm::ShmFabric;
use weft_core::endpoint::PutError;
use weft_core::fabric::{Completion, Fabric, FenceError, PostError, Work};
use weft_core::ids::{Incarnation, Peer};
use weft_core::lane::SendError;
use weft_core::time::Instant;

use crate::pair::{A, B, FIRST, Member, Pair, SECOND};

const NOW: Instant = Instant(0);

/// Both admitted, in this process.
fn admitted() -> (Pair, Member, Member) {
    let pair = Pair::new();
    let (mut a, mut b) = (pair.member(A, FIRST), pair.member(B, FIRST));
    pair.admit(&mut a, B, FIRST, None);
    pair.admit(&mut b, A, FIRST, None);
    (pair, a, b)
}

/// Asserts that no message of this incarnation is accepted, by lane or mailbox.
#[track_caller]
fn assert_refused(b: &mut Member) {
    assert_eq!(b.send(A, 1, b"lane"), Err(SendError::Post(PostError::Gone)));
    assert_eq!(b.put(A, 1, b"mailbox"), Err(PutError::Post(PostError::Gone)));
    b.outbox(A).expect("a peer").discard();
}

/// The next lane message that is delivered.
fn heard(a: &mut Member) -> Option<Vec<u8>> {
    a.take_lane().map(|message| message.payload.to_vec())
}

#[test]
fn a_fenced_peer_is_refused_by_lane_and_mailbox() {
    let (_pair, mut a, mut b) = admitted();
    b.send(A, 1, b"before").expect("it is admitted");
    assert_eq!(heard(&mut a).as_deref(), Some(&b"before"[..]));
    a.fence(B).expect("there is no process to kill");
    assert_refused(&mut b);
    a.poll(NOW);
    assert!(heard(&mut a).is_none() && a.take(NOW).is_none());
    assert_eq!(a.owed(), 0);
    a.fence(B).expect("fencing twice is fencing once");
}

#[test]
fn what_lay_in_the_lane_of_a_fenced_peer_is_not_delivered() {
    let (pair, mut a, mut b) = admitted();
    b.send(A, 1, b"too late").expect("it is admitted");
    a.fence(B).expect("there is no process to kill");
    assert!(heard(&mut a).is_none());
    pair.admit(&mut a, B, SECOND, None);
    assert!(heard(&mut a).is_none(), "a message of the earlier incarnation");
}

/// Shared memory that answers no post at once, so that a put has a moment between its ticket and
/// its write.
struct Unanswered(ShmFabric);

impl Fabric for Unanswered {
    type Memory = <ShmFabric as Fabric>::Memory;

    weft_core::delegate_fabric!(self => self.0);

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        self.0.post(peer, work)
    }

    fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        self.0.poll(now, done)
    }

    fn memory(&self) -> &Self::Memory {
        self.0.memory()
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        self.0.fence(peer)
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        self.0.admit(peer, incarnation)
    }
}

#[test]
fn a_put_that_the_fence_overtakes_never_lands() {
    let pair = Pair::new();
    let mut a = pair.member(A, FIRST);
    pair.admit(&mut a, B, FIRST, None);
    let mut fabric = pair.fabric(B, FIRST);
    fabric.connect(A, pair.remote(A, B), None);
    let mut b = pair.member_over(Unanswered(fabric), FIRST);
    b.admit(A, FIRST).expect("it is connected");
    b.put(A, 1, b"reserved").expect("it is admitted");
    a.fence(B).expect("there is no process to kill");
    // The ticket was given out before the fence; the write comes after it.
    b.poll(NOW);
    while b.poll_event().is_some() {}
    for now in [NOW, Instant(10_000_000), Instant(20_000_000)] {
        a.poll(now);
        assert!(a.take(now).is_none());
    }
    assert_eq!((a.owed(), a.counters().mailbox.skipped), (0, 1));
}

#[test]
fn the_next_life_is_let_in_and_the_one_before_is_not() {
    let (pair, mut a, mut before) = admitted();
    a.fence(B).expect("there is no process to kill");
    let mut next = pair.member(B, SECOND);
    pair.admit(&mut a, B, SECOND, None);
    pair.admit(&mut next, A, FIRST, None);
    assert_refused(&mut before);
    next.send(A, 1, b"hello").expect("it is admitted");
    assert_eq!(heard(&mut a).as_deref(), Some(&b"hello"[..]));
}

//! Incarnations, admission and loss: what the conformance suite cannot ask of every fabric.

use super::*;
use crate::fabric::{Access, At, RegionSpec, WorkId};
use crate::ids::PeerSet;

const A: Peer = Peer(0);
const B: Peer = Peer(1);
const WORD: At = At { region: Region(0), offset: 0 };

fn net() -> Net<2, 1> {
    let mut layout = Layout::new(2);
    let spec = RegionSpec { len: 8, access: Access::REMOTE_ATOMIC, peers: PeerSet::first(2) };
    layout.add(spec).unwrap();
    Net::new(layout)
}

fn joined(net: &Net<2, 1>) -> (Loopback<'_, 2, 1>, Loopback<'_, 2, 1>) {
    let mut a = net.endpoint(A, Incarnation(1));
    let mut b = net.endpoint(B, Incarnation(1));
    a.admit(B, Incarnation(1)).unwrap();
    b.admit(A, Incarnation(1)).unwrap();
    (a, b)
}

/// The outcome of adding 1 to the word of `peer`.
fn add(from: &mut Loopback<'_, 2, 1>, peer: Peer) -> Result<u64, Failure> {
    let op = Op::FetchAdd { at: WORD, add: 1 };
    from.post(peer, Work { id: WorkId(0), op, flags: CompletionFlags::empty() }).unwrap();
    let mut done = [Completion::NONE];
    assert_eq!(from.poll(Instant(0), &mut done), 1);
    done[0].outcome
}

#[test]
fn a_new_life_that_was_not_admitted_here_is_not_reached() {
    let net = net();
    let (mut a, _) = joined(&net);
    let mut again = net.endpoint(B, Incarnation(2));
    again.admit(A, Incarnation(1)).unwrap();

    assert_eq!(add(&mut a, B), Err(Failure::Gone));
    a.admit(B, Incarnation(2)).unwrap();
    assert_eq!(add(&mut a, B), Ok(0));
}

#[test]
fn a_fenced_life_is_never_admitted_again() {
    let net = net();
    let (mut a, _) = joined(&net);
    a.fence(B).unwrap();
    assert_eq!(a.admit(B, Incarnation(1)), Err(FenceError::NotReady));
    assert_eq!(a.admit(B, Incarnation(2)), Ok(()));
    assert_eq!(a.admit(B, Incarnation(1)), Err(FenceError::NotReady));
}

#[test]
fn an_old_handle_cannot_decide_for_the_new_life() {
    let net = net();
    let (mut old, mut b) = joined(&net);
    let _new = net.endpoint(A, Incarnation(2));
    b.admit(A, Incarnation(2)).unwrap();

    assert_eq!(old.admit(B, Incarnation(1)), Err(FenceError::NotReady));
    assert_eq!(old.fence(B), Err(FenceError::StillReaching));
    assert_eq!(add(&mut b, A), Err(Failure::Gone), "the new incarnation has admitted no peer yet");
}

#[test]
#[should_panic(expected = "an incarnation begins after the last one")]
fn a_life_cannot_begin_twice() {
    let net = net();
    net.endpoint(A, Incarnation(1));
    net.endpoint(A, Incarnation(1));
}

#[test]
#[should_panic(expected = "an incarnation begins after the last one")]
fn no_life_is_numbered_zero() {
    net().endpoint(A, Incarnation(0));
}

#[test]
fn a_lost_peer_is_gone_whatever_its_rights() {
    let net = net();
    let (mut a, _) = joined(&net);
    net.lose(B);
    let op = Op::Write { to: WORD, bytes: &[1] };
    let work = Work { id: WorkId(0), op, flags: CompletionFlags::empty() };
    a.post(B, work).unwrap();
    let mut done = [Completion::NONE];
    assert_eq!(a.poll(Instant(0), &mut done), 1);
    assert_eq!(done[0].outcome, Err(Failure::Gone));
    assert_eq!(a.post(B, work), Err(PostError::Gone));
}

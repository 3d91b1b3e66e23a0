//! The broadcast as part of the endpoint.

use super::*;
use crate::fabric::Memory;
use crate::neb::{self, BroadcastError, Conflict, Membership, Outcome, Retry, Sizes};
use crate::wire::broadcast::Form;

const C: Peer = Peer(2);
const WORDS: usize = 2048;

type Net3 = Net<3, WORDS>;
type Three<'net> = Endpoint<Loopback<'net, 3, WORDS>, SLOTS, 3>;

fn sizes(peers: u16) -> neb::Config {
    let retry = Retry { after: Duration(1000), after_max: Duration(1000) };
    let (form, membership) = (Form::Unsigned, Membership::Fixed);
    let sizes = Sizes { peers, slots: 8, depth: 4, message_len: 24, form, membership, retry };
    neb::Config::new(sizes).unwrap()
}

fn plan() -> Plan {
    let mailbox = mailbox::Config::new(3, SLOTS as u32, 40, Duration::from_millis(1)).unwrap();
    let plan = Plan::new(mailbox, lane::Config::new(3, 4, 16).unwrap()).unwrap();
    plan.with_broadcast(sizes(3)).unwrap()
}

fn endpoint(net: &Net3, me: Peer, incarnation: Incarnation) -> Three<'_> {
    Endpoint::new(net.endpoint(me, incarnation), &plan(), incarnation)
}

fn three(net: &Net3) -> [Three<'_>; 3] {
    let mut all = [A, B, C].map(|me| endpoint(net, me, FIRST));
    for endpoint in &mut all {
        let me = endpoint.me();
        for peer in [A, B, C].into_iter().filter(|peer| *peer != me) {
            endpoint.admit(peer, FIRST).unwrap();
        }
    }
    all
}

fn broadcast(endpoint: &mut Three<'_>, payload: &[u8]) -> Result<u64, BroadcastError> {
    let (broadcast, fabric) = endpoint.broadcast().unwrap();
    broadcast.broadcast(fabric, 7, payload)
}

/// Polls all members, and returns what `of` delivers.
fn deliver(all: &mut [Three<'_>; 3], of: Peer) -> Vec<(u64, Vec<u8>)> {
    for _ in 0..4 {
        for endpoint in &mut *all {
            endpoint.poll(NOW);
        }
    }
    let (broadcast, fabric) = all[of.index()].broadcast().unwrap();
    let mut delivered = Vec::new();
    while let Some(message) = broadcast.take_from(fabric, A) {
        delivered.push((message.seq, message.payload.to_vec()));
    }
    delivered
}

#[test]
fn a_broadcast_is_delivered_by_all_others() {
    let net = Box::new(Net3::new(plan().layout().clone()));
    let mut all = three(&net);
    assert_eq!(broadcast(&mut all[0], b"to all"), Ok(1));
    for of in [A, B, C] {
        assert_eq!(deliver(&mut all, of), [(1, b"to all".to_vec())]);
        assert_eq!(deliver(&mut all, of), []);
    }
}

#[test]
fn a_later_incarnation_continues_after_the_fenced_one() {
    let net = Box::new(Net3::new(plan().layout().clone()));
    let mut all = three(&net);
    assert_eq!(broadcast(&mut all[0], b"one"), Ok(1));
    assert_eq!(deliver(&mut all, A), [(1, b"one".to_vec())]);
    all[0] = endpoint(&net, A, FIRST.next());
    for peer in [B, C] {
        all[peer.index()].fence(A).unwrap();
        all[peer.index()].admit(A, FIRST.next()).unwrap();
        all[0].admit(peer, FIRST).unwrap();
    }
    assert_eq!(broadcast(&mut all[0], b"two"), Ok(2));
    for of in [B, C] {
        assert_eq!(deliver(&mut all, of), [(1, b"one".to_vec()), (2, b"two".to_vec())]);
    }
}

#[test]
fn a_conflict_is_reported_while_nothing_is_taken() {
    let net = Box::new(Net3::new(plan().layout().clone()));
    let mut all = three(&net);
    assert_eq!(broadcast(&mut all[0], b"black"), Ok(1));
    // The message in C's memory is overwritten before C reads it.
    let (sizes, at) = plan().broadcast().unwrap();
    let at = sizes.written_at(&at, A, 1);
    let (memory, mut slot) = (net.memory(C), [0; 40]);
    memory.copy_out(at.region, at.offset, &mut slot);
    slot[32..37].copy_from_slice(b"white");
    crate::wire::broadcast::seal(&mut slot[..37], crate::wire::crc32c);
    memory.copy_in(at.region, at.offset, &slot);
    // B reads first, finds nothing exposed at C, and delivers; C reads what B exposes.
    assert_eq!(deliver(&mut all, B), [(1, b"black".to_vec())]);
    let mut conflict = |of: Peer| all[of.index()].broadcast().unwrap().0.take_conflict();
    assert_eq!(conflict(C), Some(Conflict { origin: A, seq: 1, replayer: B }));
    assert_eq!((conflict(C), conflict(B)), (None, None));
    assert_eq!(deliver(&mut all, C), []);
}

#[test]
fn a_full_window_sets_a_deadline_at_which_the_others_are_asked() {
    let net = Box::new(Net3::new(plan().layout().clone()));
    let mut all = three(&net);
    for n in 0..8u8 {
        broadcast(&mut all[0], &[n]).unwrap();
    }
    assert_eq!(deliver(&mut all, A).len(), 8);
    assert_eq!(broadcast(&mut all[0], b"9"), Err(BroadcastError::WindowFull));
    assert!(all[0].poll_timeout().is_some_and(|at| at <= NOW.after(Duration(1000))));
}

#[test]
fn a_plan_of_another_size_and_an_endpoint_without_broadcast_are_distinguished() {
    let lanes = lane::Config::new(2, 4, 16).unwrap();
    let mailbox = mailbox::Config::new(2, SLOTS as u32, 40, Duration::from_millis(1)).unwrap();
    let plan = Plan::new(mailbox, lanes).unwrap();
    assert_eq!(plan.clone().with_broadcast(sizes(3)), Err(PlanError::Peers));
    let net = net();
    assert!(super::endpoint(&net, A, FIRST).broadcast().is_none());
}

/// Both outcomes in one call, as a caller without flow control takes them.
#[test]
fn an_outcome_is_a_delivery_or_a_conflict() {
    let net = Box::new(Net3::new(plan().layout().clone()));
    let mut all = three(&net);
    broadcast(&mut all[0], b"x").unwrap();
    let (neb, fabric) = all[0].broadcast().unwrap();
    let own = neb.take(fabric);
    assert!(matches!(own, Some(Outcome::Delivered(message)) if message.payload == b"x"));
}

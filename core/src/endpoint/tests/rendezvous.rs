//! The rendezvous as part of the endpoint.

use super::*;
use crate::decision::Decision;
use crate::fabric::Memory;
use crate::ids::Term;
use crate::rendezvous::{
    Adapter, Digest, Dtype, Expect, Key, PartSizes, Path, Place, ReceiveError, Received,
    RendezvousConfig, RendezvousEvent, RendezvousSizes, RequestId, Shape,
};

const PEERS: usize = 3;
const WORDS: usize = 1 << 14;
const SOURCE: Peer = Peer(0);
const DESTINATION: Peer = Peer(1);
const STEP: Place = Place::whole(7);
const LATE: Instant = Instant(1_000_000_000);

type Net3 = Net<PEERS, WORDS>;
type Three<'net> = Endpoint<Loopback<'net, PEERS, WORDS>, SLOTS, PEERS, Tensors>;

type Tensors = Machines<NoMachine, Box<Adapter<PEERS, 6>>>;

fn plan() -> Plan {
    let mailbox = mailbox::Config::new(3, SLOTS as u32, 40, Duration::from_millis(1)).unwrap();
    let plan = Plan::new(mailbox, lane::Config::new(3, 4, 16).unwrap()).unwrap();
    let sizes = RendezvousSizes {
        peers: 3,
        slots: 6,
        leaf_len: 64,
        offer_leaves: 64,
        landing_leaves: 64,
        inline: 16,
        piece_len: 256,
        digest: Digest::Crc32c,
        path: Path::Read,
        parts: PartSizes::NONE,
        lane_slots: 4,
    };
    plan.with_rendezvous(RendezvousConfig::new(sizes).unwrap()).unwrap()
}

fn endpoint<'net>(net: &'net Net3, plan: &Plan, me: Peer, incarnation: Incarnation) -> Three<'net> {
    let mut endpoint = Three::new(net.endpoint(me, incarnation), plan, incarnation);
    let (sizes, at) = plan.rendezvous().unwrap();
    let adapter = Adapter::new(endpoint.fabric(), sizes, at, (incarnation, incarnation.0));
    endpoint.begin_rendezvous(Box::new(adapter)).unwrap();
    endpoint
}

fn three<'net>(net: &'net Net3, plan: &Plan) -> Vec<Three<'net>> {
    let peers = [Peer(0), Peer(1), Peer(2)];
    let mut all: Vec<_> = peers.into_iter().map(|me| endpoint(net, plan, me, FIRST)).collect();
    for endpoint in &mut all {
        let me = endpoint.me();
        for peer in peers.into_iter().filter(|peer| *peer != me) {
            endpoint.admit(peer, FIRST).unwrap();
        }
    }
    all
}

fn key() -> Key {
    Key::new((SOURCE, None), DESTINATION, ("weights", "0:0")).unwrap()
}

fn send(endpoint: &mut Three<'_>, bytes: &[u8]) {
    let shape = Shape::new(Dtype::U8, &[bytes.len() as u64]).unwrap();
    let (adapter, fabric) = endpoint.rendezvous().unwrap();
    adapter.send_bytes(fabric, NOW, (&key(), STEP), (shape, bytes)).unwrap();
}

fn receive(endpoint: &mut Three<'_>) -> Result<RequestId, ReceiveError> {
    let (adapter, fabric) = endpoint.rendezvous().unwrap();
    adapter.receive(fabric, NOW, (&key(), STEP), (Expect::any(), LATE))
}

fn run(all: &mut [Three<'_>], now: Instant) {
    for _ in 0..32 {
        for endpoint in all.iter_mut() {
            endpoint.poll(now);
            while endpoint.poll_event().is_some() {}
        }
    }
}

fn events(endpoint: &mut Three<'_>) -> Vec<RendezvousEvent> {
    let (adapter, _) = endpoint.rendezvous().unwrap();
    core::iter::from_fn(|| adapter.poll_event()).collect()
}

fn ended(request: RequestId, outcome: Received) -> Vec<RendezvousEvent> {
    let end = RendezvousEvent::Ended { request, outcome };
    [end, RendezvousEvent::Returned { request }].into()
}

/// The bytes of the value that `request` has ended with.
fn take(endpoint: &mut Three<'_>, request: RequestId) -> Vec<u8> {
    assert_eq!(events(endpoint), ended(request, Received::Value));
    let (adapter, fabric) = endpoint.rendezvous().unwrap();
    let tensor = adapter.tensor(request).unwrap();
    let mut bytes = std::vec![0; tensor.bytes as usize];
    fabric.memory().copy_out(tensor.at.region, tensor.at.offset, &mut bytes);
    adapter.release(request).unwrap();
    bytes
}

#[test]
fn rz1_a_value_in_its_message_and_one_that_is_read_meet_their_receiver() {
    let plan = plan();
    let net = Box::new(Net3::new(plan.layout().clone()));
    let mut all = three(&net, &plan);
    for len in [0, 16, 17, 3000] {
        let sent: Vec<u8> = (0..len).map(|at: u32| (at % 251) as u8).collect();
        let request = receive(&mut all[1]).unwrap();
        run(&mut all, NOW);
        send(&mut all[0], &sent);
        run(&mut all, NOW);
        assert_eq!(take(&mut all[1], request), sent);
        run(&mut all, NOW);
        assert!(matches!(events(&mut all[0])[..], [RendezvousEvent::Consumed { .. }]));
        assert!(all[0].rendezvous().unwrap().0.offers().is_whole());
    }
}

/// RZ-16: its deadlines are in the endpoint's wheel.
#[test]
fn rz12_a_receive_ends_at_its_deadline_which_the_endpoint_names() {
    let plan = plan();
    let net = Box::new(Net3::new(plan.layout().clone()));
    let mut all = three(&net, &plan);
    assert_eq!(all[1].poll_timeout(), None);
    let request = receive(&mut all[1]).unwrap();
    run(&mut all, NOW);
    assert!(all[1].poll_timeout().is_some_and(|at| at <= LATE));
    assert_eq!(events(&mut all[1]), []);
    run(&mut all, LATE);
    assert_eq!(events(&mut all[1]), ended(request, Received::TimedOut));
    assert_eq!(all[1].poll_timeout(), None);
    assert_eq!(all[0].rendezvous().unwrap().0.used(), [0; 3], "and its waiter has ended");
}

#[test]
fn rz15_a_fenced_source_ends_its_receives_and_its_next_incarnation_sends_again() {
    let plan = plan();
    let net = Box::new(Net3::new(plan.layout().clone()));
    let mut all = three(&net, &plan);
    let request = receive(&mut all[1]).unwrap();
    run(&mut all, NOW);
    let next = FIRST.next();
    all[0] = endpoint(&net, &plan, SOURCE, next);
    for peer in [Peer(1), Peer(2)] {
        all[peer.index()].fence(SOURCE).unwrap();
        all[peer.index()].admit(SOURCE, next).unwrap();
        all[0].admit(peer, FIRST).unwrap();
    }
    assert_eq!(events(&mut all[1]), ended(request, Received::PeerGone));
    let again = receive(&mut all[1]).unwrap();
    send(&mut all[0], b"again");
    run(&mut all, NOW);
    assert_eq!(take(&mut all[1], again), b"again");
}

/// What a peer was lent is stored again behind its fence; a removed source is asked nothing.
#[test]
fn rz15_one_decision_removes_a_member_from_the_rendezvous_as_well() {
    let plan = plan();
    let net = Box::new(Net3::new(plan.layout().clone()));
    let mut all = three(&net, &plan);
    send(&mut all[0], &[1; 100]);
    receive(&mut all[1]).unwrap();
    all[0].poll(NOW);
    net.lose(DESTINATION);
    all[0]
        .remove(Decision { term: Term::of_epoch(1), removed: DESTINATION, last: Incarnation(1) })
        .unwrap();
    all[0].fence(DESTINATION).unwrap();
    let (adapter, fabric) = all[0].rendezvous().unwrap();
    assert_eq!(adapter.used(), [0, 1, 0], "the value is there, and no waiter");
    assert!(!adapter.live().contains(DESTINATION));
    adapter.cleanup_all();
    adapter.poll(fabric, NOW);
    assert!(adapter.offers().is_whole());
    all[2]
        .remove(Decision { term: Term::of_epoch(1), removed: SOURCE, last: Incarnation(1) })
        .unwrap();
    let (adapter, fabric) = all[2].rendezvous().unwrap();
    let key = Key::new((SOURCE, None), Peer(2), ("weights", "0:0")).unwrap();
    let refused = adapter.receive(fabric, NOW, (&key, STEP), (Expect::any(), LATE));
    assert_eq!(refused, Err(ReceiveError::PeerGone));
}

#[test]
fn a_rendezvous_has_its_place_before_a_peer_is_admitted() {
    type Without<'net> = Endpoint<Loopback<'net, PEERS, WORDS>, SLOTS, PEERS>;
    let plan = plan();
    let net = Box::new(Net3::new(plan.layout().clone()));
    let mut all = three(&net, &plan);
    let (sizes, at) = plan.rendezvous().unwrap();
    let late = Box::new(Adapter::new(all[1].fabric(), sizes, at, (FIRST, 1)));
    assert!(all[1].begin_rendezvous(late).is_err());
    let next = FIRST.next();
    let mut without = Without::new(net.endpoint(Peer(0), next), &plan, next);
    assert!(without.rendezvous().is_none());
}

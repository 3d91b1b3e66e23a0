//! The groups as part of the endpoint.

use super::*;
use crate::decision::Decision;
use crate::fabric::Memory;
use crate::group::{
    Class, Config, Costs, Delivery, Grank, GroupId, Groups, SendError, Sizes, Spread, Tree,
};
use crate::ids::{Incarnation, Term};

const PEERS: usize = 4;
const WORDS: usize = 1 << 14;
const WORLD: GroupId = GroupId(0);
const ALL: [Peer; PEERS] = [Peer(0), Peer(1), Peer(2), Peer(3)];
const MIB: usize = 1 << 20;

type Net4 = Net<PEERS, WORDS>;
type Inline = Groups<PEERS, 1>;
type Four<'net> = Endpoint<Loopback<'net, PEERS, WORDS>, SLOTS, PEERS, Apart>;

/// Groups in a box.
type Apart = Machines<Box<Inline>>;
/// Groups in the endpoint.
type Within = Machines<Inline>;

fn sizes(spread: Spread) -> Config {
    let tree = Tree { class: Class::Pipe, costs: Costs::postal(1) };
    let (entries, blocks, block_len, lane_slots) = (4, 16, 1024, 4);
    let (peers, groups, eager) = (PEERS as u16, 1, 64);
    let sizes =
        Sizes { peers, groups, entries, blocks, block_len, eager, lane_slots, tree, spread };
    Config::new(sizes).unwrap()
}

fn plan(spread: Spread) -> Plan {
    let mailbox = mailbox::Config::new(4, SLOTS as u32, 40, Duration::from_millis(1)).unwrap();
    let plan = Plan::new(mailbox, lane::Config::new(4, 4, 16).unwrap()).unwrap();
    plan.with_groups(sizes(spread)).unwrap()
}

fn endpoint<'net>(net: &'net Net4, plan: &Plan, me: Peer, incarnation: Incarnation) -> Four<'net> {
    let mut endpoint = Four::new(net.endpoint(me, incarnation), plan, incarnation);
    let (sizes, at) = plan.groups().unwrap();
    let groups = Groups::new(endpoint.fabric(), sizes, at, incarnation);
    endpoint.begin_groups(Box::new(groups)).unwrap();
    let (groups, fabric) = endpoint.groups().unwrap();
    groups.open(fabric, WORLD, &ALL).unwrap();
    endpoint
}

/// Four endpoints that have admitted each other and opened the group.
fn four<'net>(net: &'net Net4, plan: &Plan) -> Vec<Four<'net>> {
    let mut all: Vec<_> = ALL.into_iter().map(|me| endpoint(net, plan, me, FIRST)).collect();
    for endpoint in &mut all {
        let me = endpoint.me();
        for peer in ALL.into_iter().filter(|peer| *peer != me) {
            endpoint.admit(peer, FIRST).unwrap();
        }
    }
    for _ in 0..8 {
        all.iter_mut().for_each(poll);
    }
    all
}

fn poll(endpoint: &mut Four<'_>) {
    endpoint.poll(NOW);
    while endpoint.poll_event().is_some() {}
}

/// What one member has received.
#[derive(Debug, Default, PartialEq, Eq)]
struct Received {
    messages: Vec<Vec<u8>>,
    part: Vec<u8>,
    ends: Vec<Delivery>,
}

impl Received {
    fn take(&mut self, endpoint: &mut Four<'_>) {
        let (groups, fabric) = endpoint.groups().unwrap();
        while let Some(delivery) = groups.receive(fabric, WORLD) {
            let Delivery::Chunk(chunk) = delivery else {
                self.ends.push(delivery);
                continue;
            };
            let from = self.part.len();
            assert_eq!(chunk.offset, from as u64);
            self.part.resize(from + chunk.len as usize, 0);
            fabric.memory().copy_out(chunk.at.region, chunk.at.offset, &mut self.part[from..]);
            groups.release(fabric, chunk.receipt).unwrap();
            if chunk.is_last {
                self.messages.push(core::mem::take(&mut self.part));
            }
        }
    }
}

fn message(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 1000 + at) as u8).collect()
}

/// Writes the blocks of `bytes` for which the window has room; the rest of them.
fn stream<'b>(endpoint: &mut Four<'_>, mut bytes: &'b [u8]) -> &'b [u8] {
    let (groups, fabric) = endpoint.groups().unwrap();
    while let Some((at, len)) = groups.space(fabric, WORLD) {
        let (block, rest) = bytes.split_at(len as usize);
        fabric.memory().copy_in(at.region, at.offset, block);
        groups.commit(fabric, WORLD).unwrap();
        bytes = rest;
    }
    bytes
}

/// Streams 1 MiB from member 0; when half of it is written, `victim` ends, and the others execute
/// the decision to remove it.
fn stream_with_a_kill(spread: Spread, victim: Peer) -> Vec<Received> {
    let plan = plan(spread);
    let net = Box::new(Net4::new(plan.layout().clone()));
    let mut all = four(&net, &plan);
    let mut received: Vec<_> = ALL.into_iter().map(|_| Received::default()).collect();
    let sent = message(MIB);
    let (groups, fabric) = all[0].groups().unwrap();
    assert_eq!(groups.begin(fabric, WORLD, 7, MIB as u64), Ok(1));
    let (mut left, mut killed) = (&sent[..], false);
    for _ in 0..4 * MIB / 1024 {
        left = stream(&mut all[0], left);
        if !killed && left.len() < MIB / 2 {
            killed = true;
            net.lose(victim);
            for survivor in all.iter_mut().filter(|it| it.me() != victim) {
                survivor.fence(victim).unwrap();
                survivor
                    .remove(Decision {
                        term: Term::of_epoch(1),
                        removed: victim,
                        last: Incarnation(1),
                    })
                    .unwrap();
            }
        }
        for (endpoint, received) in all.iter_mut().zip(&mut received) {
            if !killed || endpoint.me() != victim {
                poll(endpoint);
                received.take(endpoint);
            }
        }
    }
    assert!(left.is_empty(), "the window does not wait for the removed member");
    received
}

#[test]
fn messages_of_every_length_reach_all_endpoints() {
    let plan = plan(Spread::Flat);
    let net = Box::new(Net4::new(plan.layout().clone()));
    let mut all = four(&net, &plan);
    let mut received: Vec<_> = ALL.into_iter().map(|_| Received::default()).collect();
    let mut sent = [const { Vec::new() }; PEERS];
    for (root, len) in [(0, 5), (1, 0), (2, 64), (3, 65), (0, 16 * 1024), (2, 3000)] {
        let (groups, fabric) = all[root].groups().unwrap();
        groups.broadcast(fabric, WORLD, 0, &message(len)).unwrap();
        (0..PEERS).filter(|it| *it != root).for_each(|it| sent[it].push(message(len)));
        for _ in 0..64 {
            for (endpoint, received) in all.iter_mut().zip(&mut received) {
                poll(endpoint);
                received.take(endpoint);
            }
        }
    }
    for (received, sent) in received.iter().zip(&sent) {
        assert_eq!((&received.messages, received.ends.len()), (sent, 0));
    }
}

/// In the pipe, each member forwards entries to the next; in the pipeline, blocks as well.
#[test]
fn survivors_deliver_a_long_message_whose_forwarder_ends_in_the_middle() {
    let sent = message(MIB);
    for spread in [Spread::Flat, Spread::Pipeline] {
        for victim in [Peer(1), Peer(2), Peer(3)] {
            let received = stream_with_a_kill(spread, victim);
            for it in ALL.into_iter().filter(|it| ![Peer(0), victim].contains(it)) {
                let Received { messages, ends, .. } = &received[it.index()];
                assert_eq!(messages.len(), 1, "{spread:?}, {victim:?} at {it:?}");
                let differs = messages[0].iter().zip(&sent).position(|(a, b)| a != b);
                let found = (messages[0].len(), differs);
                assert_eq!(found, (MIB, None), "{spread:?}, {victim:?} at {it:?}");
                let lost =
                    Delivery::RootLost { root: Grank(victim.0), epoch: Incarnation(1), last: 0 };
                assert_eq!(ends, &[lost]);
            }
        }
    }
}

#[test]
fn a_root_that_is_removed_ends_its_stream_at_all_survivors() {
    let plan = plan(Spread::Flat);
    let net = Box::new(Net4::new(plan.layout().clone()));
    let mut all = four(&net, &plan);
    let (groups, fabric) = all[0].groups().unwrap();
    groups.broadcast(fabric, WORLD, 0, b"last").unwrap();
    poll(&mut all[1]);
    for survivor in &mut all[1..] {
        survivor.fence(Peer(0)).unwrap();
        survivor
            .remove(Decision { term: Term::of_epoch(1), removed: Peer(0), last: Incarnation(1) })
            .unwrap();
    }
    let mut received: Vec<_> = ALL.into_iter().map(|_| Received::default()).collect();
    for _ in 0..32 {
        for at in 1..PEERS {
            poll(&mut all[at]);
            received[at].take(&mut all[at]);
        }
    }
    for it in &received[1..] {
        assert_eq!(it.messages, [b"last"]);
        assert_eq!(
            it.ends,
            [Delivery::RootLost { root: Grank(0), epoch: Incarnation(1), last: 1 }]
        );
    }
}

/// A component that begins again receives what its predecessor did not release.
#[test]
fn a_later_incarnation_continues_after_the_fenced_one() {
    let plan = plan(Spread::Flat);
    let net = Box::new(Net4::new(plan.layout().clone()));
    let mut all = four(&net, &plan);
    let (groups, fabric) = all[0].groups().unwrap();
    groups.broadcast(fabric, WORLD, 0, b"kept").unwrap();
    for _ in 0..8 {
        all.iter_mut().for_each(poll);
    }
    all[2] = endpoint(&net, &plan, Peer(2), FIRST.next());
    for peer in [Peer(0), Peer(1), Peer(3)] {
        all[peer.index()].fence(Peer(2)).unwrap();
        all[peer.index()].admit(Peer(2), FIRST.next()).unwrap();
        all[2].admit(peer, FIRST).unwrap();
    }
    for _ in 0..8 {
        all.iter_mut().for_each(poll);
    }
    let (groups, fabric) = all[2].groups().unwrap();
    groups.broadcast(fabric, WORLD, 0, b"from the later one").unwrap();
    let mut received: Vec<_> = ALL.into_iter().map(|_| Received::default()).collect();
    for _ in 0..16 {
        for (endpoint, received) in all.iter_mut().zip(&mut received) {
            poll(endpoint);
            received.take(endpoint);
        }
    }
    assert_eq!(received[2].messages, [b"kept"]);
    assert_eq!(received[1].messages.len(), 2);
    assert_eq!(received[0].messages, [b"from the later one"]);
}

/// Groups stand in the endpoint itself, or apart; in one without them they take no memory.
#[test]
fn groups_have_their_place_before_a_peer_is_admitted() {
    type Without<'net> = Endpoint<Loopback<'net, PEERS, WORDS>, SLOTS, PEERS>;
    type Inside<'net> = Endpoint<Loopback<'net, PEERS, WORDS>, SLOTS, PEERS, Within>;
    assert!(size_of::<Inside<'_>>() >= size_of::<Without<'_>>() + size_of::<Inline>());

    let plan = plan(Spread::Flat);
    let net = Box::new(Net4::new(plan.layout().clone()));
    let mut all = four(&net, &plan);
    let (sizes, at) = plan.groups().unwrap();
    let late = Box::new(Groups::new(all[1].fabric(), sizes, at, FIRST));
    assert!(all[1].begin_groups(late).is_err());
    let (groups, fabric) = all[1].groups().unwrap();
    let unknown = groups.broadcast(fabric, GroupId(1), 0, b"");
    assert_eq!(unknown, Err(SendError::NotOpen));
    let next = FIRST.next();
    let mut without = Without::new(net.endpoint(Peer(0), next), &plan, next);
    assert!(without.groups().is_none());
}

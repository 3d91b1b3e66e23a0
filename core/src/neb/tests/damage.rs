//! N-15: memory of one member is overwritten with garbage. Nothing of it is delivered, the member
//! counts it and names itself, and its next incarnation is sent the messages again.

use super::cluster::{Cluster, World};
use crate::fabric::{At, Memory};
use crate::ids::{Peer, PeerSet};

const O: Peer = Peer(0);
const P: Peer = Peer(1);
const Q: Peer = Peer(2);

/// Garbage over the slot at `at` of `peer`, except for its first `kept` bytes.
fn scribble<const N: usize>(cluster: &Cluster<'_, N>, peer: Peer, at: At, kept: u32) {
    let garbage = std::vec![0xA5; (cluster.world.config.stride() - kept) as usize];
    cluster.world.net.memory(peer).copy_in(at.region, at.offset + kept, &garbage);
}

/// What `peer` shows of `origin`: messages delivered, damaged places, the damaged member.
fn seen<const N: usize>(
    cluster: &mut Cluster<'_, N>,
    peer: Peer,
    origin: Peer,
) -> (u64, u64, Option<Peer>) {
    let neb = &cluster.node(peer).neb;
    let standing = neb.standing(origin).unwrap();
    (standing.delivered, neb.counters().unfit, standing.damaged)
}

#[test]
fn garbage_in_a_ring_is_counted_and_the_next_incarnation_gets_the_message() {
    for kept in [0, 8] {
        let world = World::<3>::new();
        let mut cluster = Cluster::new(&world);
        cluster.node(P).stopped = true;
        cluster.broadcast(O, b"first").unwrap();
        scribble(&cluster, P, world.config.written_at(&world.regions, O, 1), kept);
        cluster.settle();
        cluster.node(P).stopped = false;
        cluster.settle();
        assert_eq!(seen(&mut cluster, P, O), (0, 1, Some(P)), "{kept} bytes kept");
        assert_eq!(seen(&mut cluster, Q, O), (1, 0, None));
        cluster.revive(P);
        cluster.broadcast(O, b"second").unwrap();
        cluster.settle();
        assert_eq!(seen(&mut cluster, P, O), (2, 0, None));
        assert_eq!(cluster.check(), Ok(()));
    }
}

#[test]
fn garbage_in_a_ring_that_is_overwritten_is_forgotten() {
    let world = World::<3>::new();
    let mut cluster = Cluster::new(&world);
    let at = world.config.written_at(&world.regions, O, 1);
    for times in 1..=2 {
        scribble(&cluster, P, at, 0);
        cluster.settle();
        assert_eq!(seen(&mut cluster, P, O), (0, times, Some(P)));
        world.net.memory(P).store(at.region, at.offset, 0);
        cluster.settle();
        assert_eq!(seen(&mut cluster, P, O), (0, times, None));
    }
    cluster.broadcast(O, b"first").unwrap();
    cluster.settle();
    assert_eq!(seen(&mut cluster, P, O), (1, 2, None));
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn a_damaged_own_replay_is_neither_delivered_nor_evidence_of_a_conflict() {
    for is_voted_before in [false, true] {
        let world = World::<3>::new();
        let mut cluster = Cluster::new(&world);
        cluster.node(P).fabric.holds = PeerSet::only(Q);
        cluster.broadcast(O, b"first").unwrap();
        cluster.settle();
        let at = world.config.exposed_at(&world.regions, O, 1);
        let now = cluster.now;
        if is_voted_before {
            cluster.node(P).fabric.land(Q);
            cluster.node(P).hear(now);
        }
        // From here on the private buffer of p holds this message, and its own memory the first.
        cluster.broadcast(Q, b"other").unwrap();
        let node = cluster.node(P);
        node.neb.poll(&mut node.fabric, now);
        scribble(&cluster, P, at, 8);
        cluster.node(P).fabric.holds = PeerSet::EMPTY;
        cluster.node(P).fabric.land(Q);
        cluster.settle();
        assert_eq!(seen(&mut cluster, P, O), (0, 1, Some(P)));
        assert_eq!(cluster.node(P).conflicts, []);
        cluster.revive(P);
        cluster.settle();
        assert_eq!(cluster.check(), Ok(()));
    }
}

#[test]
fn a_damaged_message_of_its_own_is_not_delivered_to_the_origin() {
    let world = World::<3>::new();
    let mut cluster = Cluster::new(&world);
    cluster.broadcast(O, b"first").unwrap();
    scribble(&cluster, O, world.config.written_at(&world.regions, O, 1), 0);
    cluster.settle();
    assert_eq!(seen(&mut cluster, O, O), (0, 1, Some(O)));
    assert_eq!(seen(&mut cluster, P, O), (1, 0, None));
    assert_eq!(cluster.check_safety(), Ok(()));
}

#[test]
fn a_replayer_whose_slot_stays_torn_is_named() {
    let world = World::<4>::new();
    let mut cluster = Cluster::new(&world);
    cluster.node(P).fabric.holds = PeerSet::only(Peer(3));
    cluster.node(Q).stopped = true;
    scribble(&cluster, Q, world.config.exposed_at(&world.regions, O, 1), 0);
    cluster.broadcast(O, b"first").unwrap();
    for _ in 0..3 {
        cluster.settle();
    }
    assert_eq!(seen(&mut cluster, P, O), (0, 0, Some(Q)));
    let now = cluster.now;
    cluster.node(P).hear(now);
    assert!(cluster.node(P).fabric.land(Peer(3)));
    cluster.node(P).hear(now);
    assert_eq!(seen(&mut cluster, P, O), (0, 0, Some(Q)), "whatever another one shows");
}

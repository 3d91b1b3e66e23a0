//! Members that die, restart on their memory, and continue.

use super::cluster::{Cluster, Node, World};
use crate::fabric::Fabric;
use crate::ids::{Peer, PeerSet};

const O: Peer = Peer(0);
const P: Peer = Peer(1);
const Q: Peer = Peer(2);

impl<const N: usize> Cluster<'_, N> {
    /// A new incarnation of `peer` takes over its memory.
    pub(super) fn revive(&mut self, peer: Peer) {
        let incarnation = self.node(peer).incarnation.next();
        let mut next = Node::new(self.world, peer, incarnation);
        for node in self.nodes.iter_mut().filter(|node| node.fabric.me() != peer) {
            node.fabric.fence(peer).unwrap();
            node.admit(peer, incarnation);
            next.admit(node.fabric.me(), node.incarnation);
        }
        let dead = core::mem::replace(self.node(peer), next);
        self.node(peer).delivered = dead.delivered;
        self.node(peer).conflicts = dead.conflicts;
    }
}

#[test]
fn a_member_that_restarts_delivers_the_rest_and_nothing_twice() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    cluster.broadcast(O, b"first").unwrap();
    cluster.settle();
    cluster.node(P).stopped = true;
    cluster.broadcast(O, b"second").unwrap();
    cluster.settle();
    cluster.revive(P);
    cluster.broadcast(O, b"third").unwrap();
    cluster.broadcast(P, b"own").unwrap();
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn an_origin_that_restarts_sends_its_numbered_messages_to_all() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    cluster.node(O).fabric.holds = PeerSet::only(Q);
    cluster.broadcast(O, b"reaches p alone").unwrap();
    cluster.node(O).stopped = true;
    cluster.settle();
    assert_eq!(cluster.node(Q).delivered, []);
    cluster.revive(O);
    cluster.settle();
    assert_eq!(cluster.broadcast(O, b"the next number"), Some(2));
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn an_exposed_message_stays_exposed_in_the_next_incarnation() {
    let world = World::<3>::new();
    let (yes, no) = (world.slot(O, 1, b"yes"), world.slot(O, 1, b"no"));
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, P, 1, &yes);
    cluster.node(P).fabric.holds = PeerSet::only(Q);
    cluster.turn_of(P);
    cluster.node(P).fabric.fail(Q);
    // p has exposed and died before it read q. The origin sends its next incarnation another
    // message.
    cluster.forge(O, P, 1, &no);
    cluster.forge(O, Q, 1, &yes);
    cluster.revive(P);
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
    assert_eq!(cluster.node(P).delivered, [(O, 1, b"yes".to_vec())]);
    assert_eq!(cluster.node(Q).delivered, [(O, 1, b"yes".to_vec())]);
}

#[test]
fn a_peer_that_dies_with_reads_outstanding_is_waited_for() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    cluster.node(P).fabric.holds = PeerSet::only(Q);
    cluster.broadcast(O, b"patience").unwrap();
    cluster.turn_of(P);
    assert!(cluster.node(P).fabric.waits(Q));
    cluster.node(Q).stopped = true;
    cluster.node(P).fabric.fail(Q);
    cluster.settle();
    assert_eq!(cluster.node(P).delivered, [], "a timeout is not a failure");
    cluster.node(P).fabric.holds = PeerSet::EMPTY;
    cluster.revive(Q);
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn a_decision_ends_the_wait_for_a_member_that_does_not_restart() {
    let mut cluster = Cluster::new(World::<4>::new().leaked());
    for peer in [O, P, Peer(3)] {
        cluster.node(peer).fabric.holds = PeerSet::only(Q);
    }
    cluster.node(Q).stopped = true;
    cluster.broadcast(O, b"without q").unwrap();
    cluster.settle();
    assert_eq!(cluster.node(P).delivered, []);
    cluster.remove(Q);
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
    for n in 0..20u8 {
        cluster.broadcast(O, &[n]).unwrap();
        cluster.settle();
    }
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn members_restart_during_ten_wraps() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    for n in 0..40u8 {
        if n == 13 {
            cluster.revive(O);
            // Until it has read the others' progress, its window counts as full.
            cluster.settle();
        }
        if n == 27 {
            cluster.revive(P);
        }
        cluster.broadcast(O, &[n]).unwrap();
        cluster.settle();
    }
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn a_delivered_message_can_be_taken_again_until_its_slot_is_reused() {
    let world = World::<3>::new();
    let mut cluster = Cluster::new(&world);
    cluster.broadcast(O, b"one").unwrap();
    cluster.settle();
    for who in [O, P] {
        cluster.revive(who);
        let node = cluster.node(who);
        let again = node.neb.delivered(&node.fabric, O, 1).map(|message| message.payload.to_vec());
        assert_eq!(again, Some(b"one".to_vec()));
    }
    let node = cluster.node(P);
    for nothing in [(O, 0), (O, 2), (P, 1), (Peer(3), 1)] {
        assert_eq!(node.neb.delivered(&node.fabric, nothing.0, nothing.1), None);
    }
    for n in 0..2 * world.config.slots() as u8 {
        cluster.broadcast(O, &[n]).unwrap();
        cluster.settle();
    }
    for who in [O, P] {
        let node = cluster.node(who);
        assert_eq!(node.neb.delivered(&node.fabric, O, 1), None);
    }
}

//! Members that return with a new epoch: what they deliver, and what others deliver with them.
//!
//! Members are o, the origin, and p, q, r, its replayers.

use std::vec::Vec;

use super::NET_SLOTS;
use super::cluster::{Broken, Cluster, FIRST, Node, SIZES, World};
#[cfg(feature = "mutants")]
use super::traps::Scenario;
use crate::decision::Decision;
use crate::fabric::{Fabric, Memory};
use crate::ids::{Incarnation, Peer, Term};
use crate::neb::{BroadcastError, EPOCH_MAX, EpochError, Membership, Sizes, number_before};

const O: Peer = Peer(0);
const P: Peer = Peer(1);
const Q: Peer = Peer(2);
const R: Peer = Peer(3);
const SECOND: Incarnation = Incarnation(2);

/// The scenarios by name.
#[cfg(feature = "mutants")]
pub(super) const SCENARIOS: &[(&str, Scenario)] = &[
    ("an epoch has numbers of its own", an_epoch_has_numbers_of_its_own),
    ("counted before it reads", counted_before_it_reads),
    ("counted by the next incarnation", counted_by_the_next_incarnation),
    ("not counted by all", not_counted_by_all),
    ("two that return at once", two_that_return_at_once),
    ("a decision about an earlier epoch", a_decision_about_an_earlier_epoch),
];

impl<'net, const N: usize> Cluster<'net, N> {
    /// The epoch of `peer` ends; a new one begins over its memory and knows no other member yet.
    fn begin(&mut self, peer: Peer) {
        let epoch = self.node(peer).incarnation.next();
        let next = Node::in_epoch(self.world, peer, epoch, epoch);
        *self.node(peer) = next;
        self.liars.remove(peer);
    }

    /// What o has written into the memory of `peer` is lost with it.
    fn lose_ring(&mut self, peer: Peer) {
        for seq in 1..=u64::from(NET_SLOTS) {
            let at = self.world.config.written_at(&self.world.regions, O, seq);
            self.world.net.memory(peer).store(at.region, at.offset, 0);
        }
    }

    /// The next incarnation of `peer` goes on in the same epoch and knows no other member yet.
    fn go_on(&mut self, peer: Peer, epoch: Incarnation) {
        let incarnation = self.node(peer).incarnation.next();
        let next = Node::in_epoch(self.world, peer, incarnation, epoch);
        let last = core::mem::replace(self.node(peer), next);
        self.node(peer).delivered = last.delivered;
    }

    /// The two fence what they knew of each other and admit each other, in these epochs.
    fn meet(&mut self, one: (Peer, Incarnation), other: (Peer, Incarnation)) {
        for ((who, _), (peer, epoch)) in [(one, other), (other, one)] {
            let incarnation = self.node(peer).incarnation;
            let node = self.node(who);
            node.fabric.fence(peer).unwrap();
            node.neb.handle_epoch(&node.fabric, peer, epoch).unwrap();
            #[cfg(feature = "signed")]
            if node.neb.keys().is_some() {
                let public = super::signed::keys::<N>(peer).own.verifying_key().to_bytes();
                node.neb.learn_key(peer, &public).unwrap();
            }
            node.admit(peer, incarnation);
        }
    }

    /// `peer` is removed by all others, returns in its second epoch and meets them all.
    fn return_of(&mut self, peer: Peer) {
        self.remove(peer);
        self.begin(peer);
        for other in (0..N as u16).map(Peer).filter(|other| *other != peer) {
            self.meet((peer, SECOND), (other, FIRST));
        }
        self.settle();
    }

    /// `who` executes the decision that removed the first epoch of `peer`.
    fn decide(&mut self, who: Peer, peer: Peer) {
        let decision = Decision { term: Term::of_epoch(1), removed: peer, last: FIRST };
        let node = self.node(who);
        node.neb.remove(&mut node.fabric, decision).unwrap();
    }

    fn heard(&mut self, who: Peer) -> Vec<(u64, Vec<u8>)> {
        let delivered = self.node(who).delivered.iter();
        delivered.map(|(_, seq, payload)| (*seq, payload.clone())).collect()
    }

    /// Whether `who` has delivered message 1 of o alone, as the scenario needs it.
    fn has_heard(&mut self, who: Peer, payload: &[u8]) -> Result<(), Broken> {
        let has = self.heard(who) == [(1, payload.to_vec())];
        if has { Ok(()) } else { Err(Broken::Validity) }
    }

    /// Agreement among those: a number of an origin has one message.
    fn agree(&mut self, among: &[Peer]) -> Result<(), Broken> {
        let delivered = among.iter().flat_map(|who| self.nodes[who.index()].delivered.iter());
        let all: Vec<_> = delivered.collect();
        let differs = |one: &super::cluster::Delivered| {
            all.iter().any(|other| (one.0, one.1) == (other.0, other.1) && one.2 != other.2)
        };
        if all.iter().any(|one| differs(one)) { Err(Broken::Agreement) } else { Ok(()) }
    }
}

/// L1: p has delivered message 1 of an earlier epoch of o.
fn an_epoch_has_numbers_of_its_own() -> Result<(), Broken> {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    cluster.broadcast(O, b"old").unwrap();
    cluster.settle();
    cluster.lose_ring(O);
    cluster.return_of(O);
    let seq = cluster.broadcast(O, b"new").unwrap();
    cluster.settle();
    let heard = cluster.heard(P);
    let once = heard.iter().filter(|(number, _)| *number == seq).count() == 1;
    if once && heard.last() == Some(&(seq, b"new".to_vec())) {
        Ok(())
    } else {
        Err(Broken::Integrity)
    }
}

/// L2: q delivers before p has its message, and p has counted q.
fn counted_before_it_reads() -> Result<(), Broken> {
    let world = World::<3>::new();
    let mut cluster = Cluster::new(&world);
    cluster.return_of(Q);
    cluster.forge(O, Q, 1, &world.slot(O, 1, b"no"));
    cluster.settle();
    cluster.forge(O, P, 1, &world.slot(O, 1, b"yes"));
    cluster.settle();
    cluster.has_heard(Q, b"no")?;
    cluster.agree(&[P, Q])
}

/// L3: p has read an equal copy of q's earlier epoch; q delivers what is signed.
#[cfg(feature = "signed")]
pub(super) fn votes_of_an_earlier_epoch() -> Result<(), Broken> {
    let world = World::<4>::with(super::signed::SIGNED);
    let no = super::signed::unsigned(&world, 1, b"no");
    let mut cluster = Cluster::new(&world);
    for peer in [P, Q] {
        cluster.forge(O, peer, 1, &no);
    }
    // p has all votes but that of r.
    cluster.node(P).fabric.holds = crate::ids::PeerSet::only(R);
    cluster.settle();
    cluster.lose_ring(Q);
    cluster.begin(Q);
    for other in [O, P, R] {
        cluster.meet((Q, SECOND), (other, FIRST));
    }
    cluster.settle();
    cluster.forge(O, Q, 1, &world.slot(O, 1, b"yes"));
    cluster.settle();
    cluster.has_heard(Q, b"yes")?;
    cluster.forge(O, R, 1, &no);
    for _ in 0..60 {
        cluster.turn();
        while cluster.node(P).fabric.land(R) {}
    }
    cluster.agree(&[P, Q])
}

/// L4: p counts q in its second epoch; the next incarnation of p reads of the first one's removal.
fn counted_by_the_next_incarnation() -> Result<(), Broken> {
    let world = World::<3>::new();
    let mut cluster = Cluster::new(&world);
    cluster.return_of(Q);
    cluster.forge(O, Q, 1, &world.slot(O, 1, b"no"));
    cluster.settle();
    cluster.go_on(P, FIRST);
    cluster.decide(P, Q);
    cluster.meet((P, FIRST), (O, FIRST));
    cluster.forge(O, P, 1, &world.slot(O, 1, b"yes"));
    cluster.settle();
    cluster.agree(&[P, Q])
}

/// L5: q has met o, and not p, which delivers without q.
fn not_counted_by_all() -> Result<(), Broken> {
    let world = World::<3>::new();
    let mut cluster = Cluster::new(&world);
    cluster.remove(Q);
    cluster.begin(Q);
    cluster.meet((Q, SECOND), (O, FIRST));
    cluster.settle();
    cluster.forge(O, Q, 1, &world.slot(O, 1, b"no"));
    cluster.settle();
    cluster.forge(O, P, 1, &world.slot(O, 1, b"yes"));
    cluster.settle();
    cluster.has_heard(P, b"yes")?;
    cluster.meet((Q, SECOND), (P, FIRST));
    cluster.settle();
    cluster.agree(&[P, Q])
}

/// L6: q is open before r, which has met o and p.
fn two_that_return_at_once() -> Result<(), Broken> {
    let world = World::<4>::new();
    let mut cluster = Cluster::new(&world);
    cluster.remove(Q);
    cluster.remove(R);
    for (returns, gone) in [(Q, R), (R, Q)] {
        cluster.begin(returns);
        cluster.decide(returns, gone);
        for other in [O, P] {
            cluster.meet((returns, SECOND), (other, FIRST));
        }
        cluster.settle();
    }
    cluster.forge(O, Q, 1, &world.slot(O, 1, b"yes"));
    cluster.settle();
    cluster.has_heard(Q, b"yes")?;
    cluster.forge(O, R, 1, &world.slot(O, 1, b"no"));
    cluster.settle();
    cluster.agree(&[P, Q, R])?;
    cluster.meet((Q, SECOND), (R, SECOND));
    cluster.settle();
    if !cluster.node(R).neb.is_open() {
        return Err(Broken::Validity);
    }
    cluster.agree(&[P, Q, R])
}

/// L7: p counts the second epoch of q when the removal of the first one is repeated.
fn a_decision_about_an_earlier_epoch() -> Result<(), Broken> {
    let world = World::<3>::new();
    let mut cluster = Cluster::new(&world);
    cluster.return_of(Q);
    cluster.forge(O, Q, 1, &world.slot(O, 1, b"no"));
    cluster.settle();
    cluster.decide(P, Q);
    cluster.forge(O, P, 1, &world.slot(O, 1, b"yes"));
    cluster.settle();
    cluster.agree(&[P, Q])
}

#[test]
fn every_scenario_holds() {
    assert_eq!(an_epoch_has_numbers_of_its_own(), Ok(()));
    assert_eq!(counted_before_it_reads(), Ok(()));
    assert_eq!(counted_by_the_next_incarnation(), Ok(()));
    assert_eq!(not_counted_by_all(), Ok(()));
    assert_eq!(two_that_return_at_once(), Ok(()));
    assert_eq!(a_decision_about_an_earlier_epoch(), Ok(()));
    #[cfg(feature = "signed")]
    assert_eq!(votes_of_an_earlier_epoch(), Ok(()));
}

#[test]
fn a_member_that_returned_takes_part() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    cluster.broadcast(O, b"before").unwrap();
    cluster.settle();
    cluster.return_of(Q);
    let to_it = cluster.broadcast(O, b"to it").unwrap();
    let of_it = cluster.broadcast(Q, b"of it").unwrap();
    cluster.settle();
    assert_eq!(of_it, number_before(SECOND).unwrap() + 1);
    let heard = [(to_it, b"to it".to_vec()), (of_it, b"of it".to_vec())];
    for who in [O, P, Q] {
        let all = cluster.heard(who);
        assert!(heard.iter().all(|message| all.contains(message)), "{who}: {all:?}");
    }
    assert_eq!(cluster.heard(Q).len(), 2, "not what was before");
    assert_eq!(cluster.node(Q).neb.standing(O).unwrap().behind, 1);
}

#[test]
fn members_return_one_after_the_other() {
    let mut cluster = Cluster::new(World::<4>::new().leaked());
    for (returns, epochs) in [(P, [1, 1, 1, 1]), (Q, [1, 2, 1, 1]), (O, [1, 2, 2, 1])] {
        cluster.remove(returns);
        cluster.begin(returns);
        for other in (0..4).map(Peer).filter(|other| *other != returns) {
            let epoch = Incarnation(epochs[other.index()]);
            cluster.meet((returns, SECOND), (other, epoch));
        }
        cluster.settle();
        for origin in (0..4).map(Peer) {
            let seq = cluster.broadcast(origin, b"all").unwrap();
            cluster.settle();
            for who in (0..4).map(Peer) {
                let last = cluster.node(who).delivered.last().cloned();
                assert_eq!(last, Some((origin, seq, b"all".to_vec())), "to {who}");
            }
        }
    }
}

#[test]
fn windows_wrap_across_returns() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    for n in 0..3 * NET_SLOTS as u8 {
        cluster.broadcast(O, &[n]).unwrap();
        cluster.settle();
    }
    cluster.return_of(Q);
    cluster.return_of_epoch(Q, Incarnation(3));
    for n in 0..3 * NET_SLOTS as u8 {
        for origin in [O, Q] {
            cluster.broadcast(origin, &[n]).unwrap();
            cluster.settle();
        }
    }
    assert_eq!(cluster.heard(Q).len(), 6 * NET_SLOTS as usize);
    assert_eq!(cluster.heard(P).len(), 9 * NET_SLOTS as usize);
    assert_eq!(cluster.agree(&[O, P, Q]), Ok(()));
}

impl<const N: usize> Cluster<'_, N> {
    /// `peer` begins another epoch without a decision: its supervisor was started again.
    fn return_of_epoch(&mut self, peer: Peer, epoch: Incarnation) {
        self.begin(peer);
        for other in (0..N as u16).map(Peer).filter(|other| *other != peer) {
            self.meet((peer, epoch), (other, FIRST));
        }
        self.settle();
    }
}

/// What the epoch has counted and numbered is in its memory.
#[test]
fn an_epoch_goes_on_in_its_next_incarnation() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    cluster.return_of(Q);
    let first = cluster.broadcast(Q, b"one").unwrap();
    cluster.settle();
    cluster.go_on(Q, SECOND);
    assert!(cluster.node(Q).neb.is_open());
    for other in [O, P] {
        cluster.meet((Q, SECOND), (other, FIRST));
    }
    cluster.settle();
    assert_eq!(cluster.broadcast(Q, b"two"), Some(first + 1));
    cluster.settle();
    assert_eq!(cluster.heard(P).len(), 2);
    assert_eq!(cluster.node(Q).neb.standing(O).unwrap().behind, 0);
}

#[test]
fn an_epoch_that_is_not_counted_broadcasts_nothing() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    cluster.remove(Q);
    cluster.begin(Q);
    cluster.meet((Q, SECOND), (O, FIRST));
    cluster.settle();
    let node = cluster.node(Q);
    assert!(!node.neb.is_open());
    let refused = node.neb.broadcast(&mut node.fabric, 0, b"early");
    assert_eq!(refused, Err(BroadcastError::WindowFull));
}

/// With a fixed membership no decision removes a member, but memory can be lost.
#[test]
fn a_member_whose_memory_is_new_returns_where_none_is_removed() {
    let world = World::<3>::with(Sizes { membership: Membership::Fixed, ..SIZES });
    let mut cluster = Cluster::new(&world);
    cluster.broadcast(O, b"before").unwrap();
    cluster.settle();
    cluster.return_of_epoch(Q, SECOND);
    cluster.broadcast(O, b"after").unwrap();
    cluster.settle();
    assert_eq!(cluster.heard(Q), [(2, b"after".to_vec())]);
    assert_eq!(cluster.heard(P).len(), 2);
}

#[test]
fn an_epoch_for_which_no_numbers_are_left_is_refused() {
    let late = EPOCH_MAX.next();
    let mut cluster = Cluster::new(World::<2>::new().leaked());
    let node = cluster.node(O);
    assert_eq!(node.neb.handle_epoch(&node.fabric, P, late), Err(EpochError(late)));
    assert_eq!(node.neb.epoch(P), Incarnation(0));
    assert!(number_before(EPOCH_MAX).is_ok());
}

/// N-17: q has met p, which begins another epoch before q meets o.
#[test]
fn a_member_that_returns_meanwhile_must_count_the_epoch_again() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    cluster.remove(Q);
    cluster.begin(Q);
    cluster.meet((Q, SECOND), (P, FIRST));
    cluster.settle();
    let node = cluster.node(Q);
    node.fabric.fence(P).unwrap();
    node.neb.handle_epoch(&node.fabric, P, SECOND).unwrap();
    cluster.meet((Q, SECOND), (O, FIRST));
    cluster.settle();
    assert!(!cluster.node(Q).neb.is_open(), "p in its second epoch does not count it");
}

/// N-17.
#[test]
fn an_epoch_that_a_member_does_not_count_stays_closed() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    cluster.remove(Q);
    cluster.begin(Q);
    cluster.meet((Q, SECOND), (O, FIRST));
    for (who, peer) in [(P, Q), (Q, P)] {
        let incarnation = cluster.node(peer).incarnation;
        cluster.node(who).fabric.fence(peer).unwrap();
        cluster.node(who).admit(peer, incarnation);
    }
    cluster.settle();
    assert!(!cluster.node(Q).neb.is_open(), "p is read, and does not count it");
    let node = cluster.node(P);
    node.neb.handle_epoch(&node.fabric, Q, SECOND).unwrap();
    cluster.settle();
    assert!(cluster.node(Q).neb.is_open());
}

/// N-17: p alone counts the second epoch of r, and both are removed before q is open.
#[test]
fn what_a_removed_member_has_named_is_not_waited_for() {
    let mut cluster = Cluster::new(World::<4>::new().leaked());
    cluster.remove(Q);
    cluster.begin(Q);
    let node = cluster.node(P);
    node.neb.handle_epoch(&node.fabric, R, SECOND).unwrap();
    for other in [O, P] {
        cluster.meet((Q, SECOND), (other, FIRST));
    }
    cluster.settle();
    assert!(!cluster.node(Q).neb.is_open());
    for (who, gone) in [(O, P), (Q, P), (O, R), (Q, R)] {
        cluster.decide(who, gone);
    }
    cluster.settle();
    assert!(cluster.node(Q).neb.is_open());
}

//! The traps of `SPEC.md`: one scenario each, which holds with every guard in place.
//!
//! Members are o, the origin, and p, q, r, its replayers.

use super::cluster::{Broken, Cluster, FIRST, SIZES, World};
use super::held::bits;
use super::{DEPTH, NET_SLOTS};
use crate::decision::{Decision, RemoveError};
use crate::fabric::Completion;
use crate::ids::{Peer, PeerSet, Term};
use crate::neb::work::Errand;
use crate::neb::{Conflict, Membership, Sizes};
use crate::wire::broadcast::Stamp;

const O: Peer = Peer(0);
const P: Peer = Peer(1);
const Q: Peer = Peer(2);
const R: Peer = Peer(3);

#[cfg(feature = "mutants")]
pub(super) type Scenario = fn() -> Result<(), Broken>;

/// The scenarios by name.
#[cfg(feature = "mutants")]
pub(super) const SCENARIOS: &[(&str, Scenario)] = &[
    ("equivocation between halves", equivocation_between_halves),
    ("votes of a removed member", votes_of_a_removed_member),
    ("slow is not dead", slow_is_not_dead),
    ("equivocate, then die", equivocate_then_die),
    ("rewritten after replay", rewritten_after_replay),
    ("landings apart", landings_apart),
    ("torn by the origin", torn_by_the_origin),
    ("delivered before the removal", delivered_before_the_removal),
    ("foreign writer", foreign_writer),
    ("newer than asked", newer_than_asked),
    ("conflict, then silence", conflict_then_silence),
    ("wraps with a slow reader", wraps_with_a_slow_reader),
    ("an origin that overruns", an_origin_that_overruns),
    ("all correct", all_correct),
];

macro_rules! scenarios_hold {
    ($($name:ident)*) => {$(
        mod $name {
            #[test]
            fn holds() {
                assert_eq!(super::$name(), Ok(()));
            }
        }
    )*};
}

scenarios_hold! {
    equivocation_between_halves votes_of_a_removed_member slow_is_not_dead equivocate_then_die
    rewritten_after_replay landings_apart torn_by_the_origin delivered_before_the_removal
    foreign_writer newer_than_asked conflict_then_silence wraps_with_a_slow_reader all_correct
    an_origin_that_overruns
}

/// The origin's two slots for number 1, for different members.
fn two_faces<const N: usize>(world: &World<N>) -> [std::vec::Vec<u8>; 2] {
    [world.slot(O, 1, b"yes"), world.slot(O, 1, b"no")]
}

/// U3: both reads are posted before either is answered.
fn equivocation_between_halves() -> Result<(), Broken> {
    let world = World::<3>::new();
    let [yes, no] = two_faces(&world);
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, P, 1, &yes);
    cluster.forge(O, Q, 1, &no);
    cluster.settle();
    cluster.check()
}

/// U5: q has voted and is removed; r has another message and has not voted.
fn votes_of_a_removed_member() -> Result<(), Broken> {
    let world = World::<4>::new();
    let [yes, no] = two_faces(&world);
    let mut cluster = Cluster::new(&world);
    cluster.node(P).fabric.holds = PeerSet::only(R);
    cluster.forge(O, R, 1, &no);
    // r asks p and q, who have nothing.
    cluster.turn_of(R);
    cluster.forge(O, P, 1, &yes);
    // p has read q, and not yet r.
    for _ in 0..3 {
        cluster.turn_of(P);
    }
    cluster.remove(Q);
    cluster.settle();
    cluster.node(P).fabric.holds = PeerSet::EMPTY;
    cluster.node(P).fabric.land(R);
    cluster.settle();
    cluster.check()
}

/// U6 and N-7: q has delivered another message, and only its answer is slow.
fn slow_is_not_dead() -> Result<(), Broken> {
    let world = World::<3>::new();
    let [yes, no] = two_faces(&world);
    let mut cluster = Cluster::new(&world);
    cluster.node(P).fabric.holds = PeerSet::only(Q);
    cluster.forge(O, Q, 1, &no);
    cluster.settle();
    cluster.forge(O, P, 1, &yes);
    cluster.turn_of(P);
    cluster.node(P).fabric.fail(Q);
    cluster.settle();
    cluster.check()
}

/// U8: the origin is removed, and all other members are still asked.
fn equivocate_then_die() -> Result<(), Broken> {
    let world = World::<4>::new();
    let [yes, no] = two_faces(&world);
    let mut cluster = Cluster::new(&world);
    // r delivers while p and q have nothing.
    cluster.forge(O, R, 1, &no);
    cluster.settle();
    cluster.node(P).fabric.holds = PeerSet::only(R);
    cluster.forge(O, P, 1, &yes);
    cluster.remove(O);
    cluster.settle();
    cluster.check_safety()?;
    cluster.node(P).fabric.land(R);
    cluster.settle();
    cluster.check()
}

/// T1: once p has copied and exposed, the origin writes q's value into its slot at p.
fn rewritten_after_replay() -> Result<(), Broken> {
    let world = World::<3>::new();
    let [yes, no] = two_faces(&world);
    let mut cluster = Cluster::new(&world);
    cluster.node(P).fabric.holds = PeerSet::only(Q);
    cluster.forge(O, P, 1, &yes);
    cluster.forge(O, Q, 1, &yes);
    cluster.settle();
    cluster.forge(O, P, 1, &no);
    cluster.node(P).fabric.land(Q);
    cluster.settle();
    cluster.check()?;
    let all = |peer: Peer| &cluster.nodes[peer.index()].delivered;
    if all(P).len() == 1 && all(P) == all(Q) { Ok(()) } else { Err(Broken::Agreement) }
}

/// T2: the answer of one replayer does not stand for that of another.
fn landings_apart() -> Result<(), Broken> {
    let world = World::<4>::new();
    let [yes, no] = two_faces(&world);
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, R, 1, &no);
    cluster.settle();
    cluster.node(P).fabric.holds = PeerSet::only(Q).union(PeerSet::only(R));
    cluster.forge(O, P, 1, &yes);
    cluster.turn_of(P);
    // Both have landed before either is looked at.
    cluster.node(P).fabric.land(R);
    cluster.node(P).fabric.land(Q);
    cluster.settle();
    cluster.check()
}

/// T3: half of a message is not a message.
fn torn_by_the_origin() -> Result<(), Broken> {
    let world = World::<3>::new();
    let mut torn = world.slot(O, 1, b"all or nothing at all");
    torn[40..].fill(0);
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, P, 1, &torn);
    cluster.forge(O, Q, 1, &torn);
    cluster.settle();
    for peer in [P, Q] {
        let node = cluster.node(peer);
        if !node.delivered.is_empty() || !node.conflicts.is_empty() {
            return Err(Broken::Integrity);
        }
    }
    cluster.check()
}

/// T4: a removal causes no second delivery.
fn delivered_before_the_removal() -> Result<(), Broken> {
    let mut cluster = Cluster::new(World::<4>::new().leaked());
    cluster.broadcast(O, b"once").unwrap();
    cluster.node(P).fabric.holds = PeerSet::only(R);
    cluster.settle();
    cluster.remove(R);
    cluster.settle();
    cluster.check()
}

/// T5: p tries to write into o's ring at q.
fn foreign_writer() -> Result<(), Broken> {
    let world = World::<4>::new();
    let mut cluster = Cluster::new(&world);
    let forged = world.slot(O, 1, b"never sent");
    let at = world.config.written_at(&world.regions, O, 1);
    for victim in [Q, R] {
        cluster.write(P, victim, at, &forged);
    }
    cluster.liars.insert(P);
    cluster.settle();
    cluster.check()
}

/// N-5: q shows a later message, and has delivered a different one.
fn newer_than_asked() -> Result<(), Broken> {
    let world = World::<3>::new();
    let [yes, no] = two_faces(&world);
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, Q, 1, &no);
    cluster.settle();
    // The liar's slot wraps early; that q is correct but for this makes it a worst case.
    let newer = world.slot(O, 1 + u64::from(NET_SLOTS), b"later");
    cluster.expose(Q, O, 1, &newer);
    cluster.liars.remove(Q);
    cluster.forge(O, P, 1, &yes);
    cluster.settle();
    cluster.check()
}

/// N-6: q shows a different message once.
fn conflict_then_silence() -> Result<(), Broken> {
    let world = World::<3>::new();
    let [yes, no] = two_faces(&world);
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, Q, 1, &no);
    cluster.settle();
    cluster.forge(O, P, 1, &yes);
    cluster.settle();
    let conflict = Conflict { origin: O, seq: 1, replayer: Q };
    assert_eq!(cluster.node(P).conflicts.first(), Some(&conflict));
    cluster.expose(Q, O, 1, &yes);
    cluster.liars.remove(Q);
    cluster.settle();
    cluster.check()
}

/// N-1 and N-9: ten wraps of the window, q running a turn in ten.
fn wraps_with_a_slow_reader() -> Result<(), Broken> {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    let mut sent = 0u8;
    for round in 0..2_000 {
        cluster.node(Q).stopped = round % 10 != 0;
        if sent < 10 * NET_SLOTS as u8 && cluster.broadcast(O, &[sent]).is_some() {
            sent += 1;
        }
        cluster.turn();
    }
    cluster.node(Q).stopped = false;
    cluster.settle();
    if sent < 10 * NET_SLOTS as u8 { Err(Broken::Validity) } else { cluster.check() }
}

/// N-9: an origin does not wait for q; p keeps what q still reads.
fn an_origin_that_overruns() -> Result<(), Broken> {
    let world = World::<3>::new();
    let mut cluster = Cluster::new(&world);
    let all = u64::from(NET_SLOTS);
    cluster.node(Q).stopped = true;
    for seq in 1..=all + 2 {
        let slot = world.slot(O, seq, &[seq as u8]);
        if seq <= all {
            cluster.forge(O, Q, seq, &slot);
        }
        cluster.forge(O, P, seq, &slot);
        cluster.settle();
    }
    cluster.node(Q).stopped = false;
    cluster.settle();
    cluster.check()?;
    let delivered = cluster.node(Q).delivered.len() as u64;
    if delivered == all { Ok(()) } else { Err(Broken::Validity) }
}

fn all_correct() -> Result<(), Broken> {
    let mut cluster = Cluster::new(World::<4>::new().leaked());
    for round in 0..3u8 {
        for origin in (0..4).map(Peer) {
            cluster.broadcast(origin, &[round, origin.0 as u8]).unwrap();
        }
        cluster.settle();
    }
    cluster.check()
}

#[test]
fn an_equivocation_is_reported_by_the_members_that_see_it() {
    let world = World::<4>::new();
    let [yes, no] = two_faces(&world);
    let mut cluster = Cluster::new(&world);
    for (to, slot) in [(P, &yes), (Q, &yes), (R, &no)] {
        cluster.forge(O, to, 1, slot);
    }
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
    let heard: usize = cluster.nodes.iter().map(|node| node.conflicts.len()).sum();
    assert!(heard > 0, "a member saw it");
    let again: usize = {
        cluster.settle();
        cluster.nodes.iter().map(|node| node.conflicts.len()).sum()
    };
    assert_eq!(again, heard, "reported once");
}

#[test]
fn a_torn_replay_is_read_again_until_it_is_whole() {
    for mask in [0x0F0F_0F0F, 0xFF, u64::MAX << 8, 0x5555_5555_5555_5555] {
        let world = World::<3>::new();
        let mut cluster = Cluster::new(&world);
        cluster.node(P).fabric.holds = PeerSet::only(Q);
        cluster.node(Q).stopped = true;
        cluster.broadcast(O, b"a message of many bytes");
        cluster.turn_of(P);
        // Some bytes are read before q exposes, the others after.
        cluster.node(P).fabric.tear(Q, bits(mask));
        cluster.node(Q).stopped = false;
        cluster.turn_of(Q);
        cluster.node(P).fabric.land(Q);
        cluster.node(P).fabric.holds = PeerSet::EMPTY;
        cluster.settle();
        assert_eq!(cluster.check(), Ok(()), "mask {mask:x}");
        assert_eq!(cluster.node(P).conflicts, [], "mask {mask:x}");
    }
}

#[test]
fn a_replayer_that_stays_torn_is_read_ever_more_rarely() {
    let world = World::<3>::new();
    let mut cluster = Cluster::new(&world);
    let mut torn = world.slot(O, 1, b"yes");
    torn[33] ^= 1;
    cluster.node(Q).stopped = true;
    cluster.expose(Q, O, 1, &torn);
    cluster.broadcast(O, b"yes");
    cluster.settle();
    let now = cluster.now;
    cluster.node(P).hear(now);
    let counters = cluster.node(P).neb.counters();
    // 120 turns are 600 ns: pauses of 10, 20, 40, 80, 80, …
    assert!((5..=12).contains(&counters.reads_again), "{counters:?}");
    assert_eq!((counters.delivered, counters.conflicts), (0, 0));
    assert!(cluster.node(P).neb.poll_timeout().is_some());
}

#[test]
fn a_fixed_membership_removes_no_member() {
    let decision = |term, removed| Decision { term: Term::of_epoch(term), removed, last: FIRST };
    let fixed = World::<3>::with(Sizes { membership: Membership::Fixed, ..SIZES });
    let mut cluster = Cluster::new(&fixed);
    let node = cluster.node(P);
    let refused = node.neb.remove(&mut node.fabric, decision(1, Q));
    assert_eq!(refused, Err(RemoveError::Fixed));
}

#[test]
fn a_decision_binds_once_and_in_its_term() {
    let decision = |term, removed| Decision { term: Term::of_epoch(term), removed, last: FIRST };
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    let node = cluster.node(P);
    let mut remove = |term, peer| node.neb.remove(&mut node.fabric, decision(term, peer));
    assert_eq!(remove(1, P), Err(RemoveError::UnknownPeer));
    assert_eq!(remove(1, Peer(3)), Err(RemoveError::UnknownPeer));
    assert_eq!(remove(2, Q), Ok(()));
    assert_eq!(remove(2, Q), Ok(()), "idempotent");
    assert_eq!(remove(1, O), Err(RemoveError::StaleTerm(Term::of_epoch(2))));
    assert_eq!(node.neb.live(), PeerSet::only(O).union(PeerSet::only(P)));
}

#[test]
fn two_members_read_no_replay() {
    let mut cluster = Cluster::new(World::<2>::new().leaked());
    for n in 0..NET_SLOTS as u8 {
        cluster.broadcast(O, &[n]).unwrap();
    }
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
    assert_eq!(cluster.node(P).neb.counters().reads, 0);
    assert!(DEPTH < NET_SLOTS as usize);
}

/// N-5: p waits for the vote of q.
#[test]
fn an_answer_of_another_peer_is_no_vote() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    cluster.node(P).fabric.holds = PeerSet::only(Q);
    cluster.broadcast(O, b"yes").unwrap();
    cluster.turn_of(P);
    let (config, now) = (&cluster.world.config, cluster.now);
    let (stamp, index) = (config.stamp(O, 1), config.index(1));
    for (peer, origin) in [(O, O), (Q, Peer(9))] {
        let id = Errand::vote(Q, Stamp { origin, ..stamp }, index).id();
        let node = cluster.node(P);
        let completion = Completion { id, peer, outcome: Ok(0) };
        node.neb.handle_completion(&mut node.fabric, now, &completion);
    }
    cluster.settle();
    assert_eq!(cluster.node(P).delivered, []);
}

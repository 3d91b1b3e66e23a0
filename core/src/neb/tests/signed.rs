//! The signed form: a liar cannot veto, and an equivocation can be proven.

use ed25519_dalek::SigningKey;
use proptest::prelude::*;

use super::cluster::{Broken, Cluster, SIZES, World};
use super::held::bits;
use super::schedules::{run_in, steps};
#[cfg(feature = "mutants")]
use super::traps::Scenario;
use crate::ids::{Incarnation, Peer, PeerSet};
use crate::neb::{Conflict, Equivocation, Keys, Neb, ProofError, SLOT_LEN_MAX, Sizes};
use crate::wire::broadcast::{Form, Header, SIGNATURE_LEN, Stamp, seal};
use crate::wire::crc32c;

const O: Peer = Peer(0);
const P: Peer = Peer(1);
const Q: Peer = Peer(2);
const SESSION: u64 = 77;

pub(super) const SIGNED: Sizes = Sizes { form: Form::Signed, ..SIZES };

#[cfg(feature = "mutants")]
/// By name, what must hold.
pub(super) const SCENARIOS: &[(&str, Scenario)] = &[
    ("silence is no signature", silence_is_no_signature),
    ("two unsigned faces", two_unsigned_faces),
    ("seen before it stood", seen_before_it_stood),
    ("another number's signature", another_numbers_signature),
    ("silence about another message", silence_about_another_message),
    ("another origin's message", another_origins_message),
    ("another pass", another_pass),
    ("another place", another_place),
    ("votes of an earlier epoch", super::epochs::votes_of_an_earlier_epoch),
];

fn key(peer: Peer) -> SigningKey {
    SigningKey::from_bytes(&[peer.0 as u8 + 1; 32])
}

/// The keys of `me`.
pub(super) fn keys<const N: usize>(me: Peer) -> Keys<N> {
    let mut keys = Keys::new(SESSION, key(me));
    for (peer, public) in (0..).map(Peer).zip(&mut keys.public) {
        *public = Some(key(peer).verifying_key());
    }
    keys
}

/// A slot that its origin did not sign, whole otherwise.
pub(super) fn unsigned<const N: usize>(
    world: &World<N>,
    seq: u64,
    payload: &[u8],
) -> std::vec::Vec<u8> {
    let mut slot = world.slot(O, seq, payload);
    let header = Header::peek(&slot).unwrap();
    slot[header.payload().end..][..SIGNATURE_LEN].fill(0xEE);
    seal(&mut slot[..header.used()], crc32c);
    slot
}

/// S3: p delivers nothing unsigned because q is silent; q would deliver what is signed.
fn silence_is_no_signature() -> Result<(), Broken> {
    let world = World::<3>::with(SIGNED);
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, P, 1, &unsigned(&world, 1, b"no"));
    cluster.settle();
    cluster.forge(O, Q, 1, &world.slot(O, 1, b"yes"));
    cluster.settle();
    cluster.check_safety()
}

/// S4: neither of two unsigned copies outweighs the other.
fn two_unsigned_faces() -> Result<(), Broken> {
    let world = World::<3>::with(SIGNED);
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, P, 1, &unsigned(&world, 1, b"no"));
    cluster.forge(O, Q, 1, &unsigned(&world, 1, b"yes"));
    cluster.settle();
    cluster.check_safety()
}

/// Bytes that change no checksum when they are xored in: the generator of CRC-32C itself, first
/// bit first.
fn unchecked() -> [u8; 5] {
    let mut bytes = [0; 5];
    for bit in 0..33 {
        bytes[bit / 8] |= ((0x1_1EDC_6F41_u64 >> (32 - bit) & 1) as u8) << (bit % 8);
    }
    bytes
}

/// S5: p's read of q meets an old body and a new stamp, which together are p's own copy, down to
/// the checksum: the origin has chosen its messages so.
fn seen_before_it_stood() -> Result<(), Broken> {
    let world = World::<3>::with(Sizes { slots: 1, depth: 1, ..SIGNED });
    let (old, mut new) = (*b"alike", unchecked());
    new.iter_mut().zip(old).for_each(|(byte, old)| *byte ^= old);
    let signed = world.slot(O, 2, &new);
    let mut unsigned = signed.clone();
    unsigned[32..37].copy_from_slice(&old);
    assert!(Header::open(&mut unsigned, crc32c).is_ok(), "the checksum is the same");
    let mut cluster = Cluster::new(&world);
    for peer in [P, Q] {
        cluster.forge(O, peer, 1, &world.slot(O, 1, &old));
    }
    cluster.settle();
    cluster.node(P).fabric.holds = PeerSet::only(Q);
    cluster.forge(O, P, 2, &unsigned);
    cluster.settle();
    // The payload is read now, everything else once q has exposed something else.
    cluster.node(P).fabric.tear(Q, |byte| (32..37).contains(&byte));
    cluster.forge(O, Q, 2, &signed);
    cluster.settle();
    cluster.node(P).fabric.holds = PeerSet::EMPTY;
    while cluster.node(P).fabric.land(Q) {}
    cluster.settle();
    cluster.check_safety()
}

/// S6: q shows a message that o signed under another number; no member takes it for a second one.
fn another_numbers_signature() -> Result<(), Broken> {
    let world = World::<3>::with(SIGNED);
    let mut cluster = Cluster::new(&world);
    cluster.broadcast(O, b"first").unwrap();
    cluster.settle();
    // Everything but the number is o's own.
    let mut stale = world.slot(O, 1, b"first");
    let header = Header::peek(&stale).unwrap();
    let restamped = Header { stamp: world.config.stamp(O, 2), ..header };
    restamped.write(&mut stale);
    seal(&mut stale[..header.used()], crc32c);
    cluster.node(Q).stopped = true;
    cluster.expose(Q, O, 2, &stale);
    cluster.broadcast(O, b"second").unwrap();
    cluster.settle();
    cluster.check()
}

/// S7: while q is silent, p delivers a message that is signed, not an unsigned one before it.
fn silence_about_another_message() -> Result<(), Broken> {
    let world = World::<3>::with(SIGNED);
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, P, 1, &unsigned(&world, 1, b"no"));
    cluster.forge(O, P, 2, &world.slot(O, 2, b"later"));
    cluster.settle();
    cluster.forge(O, Q, 1, &world.slot(O, 1, b"yes"));
    cluster.settle();
    cluster.check_safety()
}

/// q shows `shown` in the place of the first message of o, which is correct and sends a second one.
fn misplaced(shown: impl Fn(&World<3>) -> std::vec::Vec<u8>) -> Result<(), Broken> {
    let world = World::<3>::with(SIGNED);
    let shown = shown(&world);
    let mut cluster = Cluster::new(&world);
    cluster.node(Q).stopped = true;
    cluster.expose(Q, O, 1, &shown);
    cluster.broadcast(O, b"first").unwrap();
    cluster.broadcast(O, b"second").unwrap();
    cluster.settle();
    cluster.check()
}

/// S8: q shows a message of its own, that it named and signed as its own, under the same number.
fn another_origins_message() -> Result<(), Broken> {
    misplaced(|world| world.slot(Q, 1, b"mine"))
}

/// S9: q shows what o has signed, under a pass that is not that number's.
fn another_pass() -> Result<(), Broken> {
    misplaced(|world| {
        let mut slot = world.slot(O, 1, b"first");
        let header = Header::peek(&slot).unwrap();
        let stamp = Stamp { generation: header.stamp.generation + 1, ..header.stamp };
        Header { stamp, ..header }.write(&mut slot);
        seal(&mut slot[..header.used()], crc32c);
        slot
    })
}

/// S10: q shows o's second message, as o signed it, where the first belongs.
fn another_place() -> Result<(), Broken> {
    misplaced(|world| world.slot(O, 2, b"second"))
}

/// q is silent, and p learns o's key late: until then q's vote is missing.
#[test]
fn a_late_key_is_used_for_earlier_messages() {
    let world = World::<4>::with(SIGNED);
    let mut cluster = Cluster::new(&world);
    cluster.liars.insert(Q);
    cluster.node(Q).stopped = true;
    let node = cluster.node(P);
    let unknowing = Keys::new(SESSION, key(P));
    node.neb = Neb::attach_signed(&node.fabric, world.config, world.regions, unknowing);
    (0..4).map(Peer).for_each(|peer| node.neb.handle_admitted(peer));
    cluster.expose(Q, O, 1, &unsigned(&world, 1, b"lie"));
    cluster.broadcast(O, b"truth").unwrap();
    cluster.settle();
    assert_eq!(cluster.node(P).delivered, []);
    assert_eq!(cluster.node(P).neb.learn_key(O, &key(O).verifying_key().to_bytes()), Ok(()));
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
}

/// As S8, with a message that belongs in the same slot on its next pass.
#[test]
fn a_replayer_that_shows_its_own_later_message_cannot_veto() {
    let later = 1 + u64::from(SIGNED.slots);
    assert_eq!(misplaced(|world| world.slot(Q, later, b"mine")), Ok(()));
}

#[test]
fn the_scenarios_of_the_signed_form_hold() {
    assert_eq!(silence_is_no_signature(), Ok(()));
    assert_eq!(two_unsigned_faces(), Ok(()));
    assert_eq!(seen_before_it_stood(), Ok(()));
    assert_eq!(another_numbers_signature(), Ok(()));
    assert_eq!(silence_about_another_message(), Ok(()));
    assert_eq!(another_origins_message(), Ok(()));
    assert_eq!(another_pass(), Ok(()));
    assert_eq!(another_place(), Ok(()));
}

#[test]
fn all_correct_members_deliver_without_verifying_a_signature() {
    let mut cluster = Cluster::new(World::<4>::with(SIGNED).leaked());
    for round in 0..12u8 {
        for origin in (0..4).map(Peer) {
            cluster.broadcast(origin, &[round]).unwrap();
        }
        cluster.settle();
    }
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn a_signed_copy_that_is_the_same_is_read_again_without_a_pause() {
    let mut cluster = Cluster::new(World::<3>::with(SIGNED).leaked());
    cluster.broadcast(O, b"same").unwrap();
    cluster.turn_of(Q);
    (0..4).for_each(|_| cluster.turn_of(P));
    let node = cluster.node(P);
    assert_eq!((node.delivered.len(), node.neb.counters().reads_again), (1, 0));
}

/// N-19.
#[test]
fn a_member_that_returns_has_no_key_until_it_is_learnt_again() {
    let mut cluster = Cluster::new(World::<3>::with(SIGNED).leaked());
    let node = cluster.node(P);
    node.neb.handle_epoch(&node.fabric, Q, Incarnation(2)).unwrap();
    let known = node.neb.keys().unwrap().public.each_ref().map(Option::is_some);
    assert_eq!(known, [true, true, false]);
}

#[test]
fn a_replayer_that_lies_or_is_silent_cannot_veto() {
    for lie in [None, Some(b"lie")] {
        let world = World::<4>::with(SIGNED);
        let mut cluster = Cluster::new(&world);
        cluster.liars.insert(Q);
        cluster.node(Q).stopped = true;
        if let Some(lie) = lie {
            let forged = unsigned(&world, 1, lie);
            cluster.expose(Q, O, 1, &forged);
        }
        cluster.broadcast(O, b"truth").unwrap();
        cluster.settle();
        assert_eq!(cluster.check(), Ok(()), "{lie:?}");
        assert_eq!(cluster.node(P).conflicts, []);
    }
}

/// A slot of another number in the same place, and a torn one.
#[test]
fn a_replayer_that_stays_newer_or_torn_cannot_veto() {
    let newer = |world: &World<4>| {
        let later = 1 + u64::from(world.config.slots());
        unsigned(world, later, b"newer")
    };
    let torn = |world: &World<4>| {
        let mut slot = world.slot(O, 1, b"a message that is longer");
        slot[40] ^= 1;
        slot
    };
    for shown in [newer, torn] {
        let world = World::<4>::with(SIGNED);
        let shown = shown(&world);
        let mut cluster = Cluster::new(&world);
        cluster.liars.insert(Q);
        cluster.node(Q).stopped = true;
        let seq = cluster.broadcast(O, b"truth").unwrap();
        cluster.expose(Q, O, seq, &shown);
        cluster.settle();
        assert_eq!(cluster.check(), Ok(()), "{shown:?}");
        assert_eq!(cluster.node(P).conflicts, []);
    }
}

/// A message longer than the own copy is first read in part, which is not a denial.
#[test]
fn a_longer_signed_message_is_a_conflict_and_not_torn() {
    let world = World::<3>::with(SIGNED);
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, P, 1, &world.slot(O, 1, b"no"));
    cluster.forge(O, Q, 1, &world.slot(O, 1, b"a message that is longer"));
    cluster.settle();
    assert_eq!(cluster.check_safety(), Ok(()));
    let conflicts = |peer: Peer| cluster.nodes[peer.index()].conflicts.len();
    assert!(conflicts(P) + conflicts(Q) > 0);
}

#[test]
fn an_equivocation_is_proven_to_any_holder_of_the_key() {
    let world = World::<3>::with(SIGNED);
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, P, 1, &world.slot(O, 1, b"yes"));
    cluster.forge(O, Q, 1, &world.slot(O, 1, b"no"));
    cluster.settle();
    let conflict = cluster.nodes.iter().flat_map(|node| node.conflicts.clone()).next();
    let conflict = conflict.expect("a member saw it");
    let witness = if conflict.replayer == Q { P } else { Q };
    let mut slots = [[0; SLOT_LEN_MAX]; 2];
    let node = cluster.node(witness);
    let proof = node.neb.equivocation(&node.fabric, conflict, &mut slots).expect("both signed");
    let public = |peer| key(peer).verifying_key().to_bytes();
    assert_eq!(proof.verify(&public(O)), Ok((O, 1)));
    assert_eq!(proof.verify(&public(P)), Err(ProofError::Signature));
    let elsewhere = Equivocation { session: SESSION + 1, ..proof };
    assert_eq!(elsewhere.verify(&public(O)), Err(ProofError::Signature));
    let same = Equivocation { other: proof.one, ..proof };
    assert_eq!(same.verify(&public(O)), Err(ProofError::Same));
    let (yes, later) = (world.slot(O, 1, b"yes"), world.slot(O, 2, b"no"));
    assert_eq!(Equivocation::of(SESSION, &yes, &later), Err(ProofError::Unrelated));
    let used = Header::peek(&yes).unwrap().used();
    for len in 0..used {
        let cut = Equivocation::of(SESSION, &yes[..len], &later);
        assert_eq!(cut, Err(ProofError::Slot), "cut to {len}");
    }
}

#[test]
fn an_unsigned_own_copy_proves_nothing() {
    let world = World::<3>::with(SIGNED);
    let mut cluster = Cluster::new(&world);
    cluster.forge(O, P, 1, &unsigned(&world, 1, b"no"));
    cluster.forge(O, Q, 1, &world.slot(O, 1, b"yes"));
    cluster.settle();
    assert_eq!(cluster.check_safety(), Ok(()));
    let conflict = Conflict { origin: O, seq: 1, replayer: Q };
    assert_eq!(cluster.node(P).conflicts, [conflict]);
    let mut slots = [[0; SLOT_LEN_MAX]; 2];
    let node = cluster.node(P);
    assert_eq!(node.neb.equivocation(&node.fabric, conflict, &mut slots), None);
    assert_eq!(cluster.node(Q).delivered.len(), 1, "q has the signed message");
}

#[test]
fn a_torn_read_of_the_signed_form_is_read_again() {
    let mut cluster = Cluster::new(World::<3>::with(SIGNED).leaked());
    cluster.node(P).fabric.holds = PeerSet::only(Q);
    cluster.node(Q).stopped = true;
    cluster.broadcast(O, b"a message of many bytes");
    cluster.turn_of(P);
    cluster.node(P).fabric.tear(Q, bits(0x0F0F_3355_0F0F_3355));
    cluster.node(Q).stopped = false;
    cluster.turn_of(Q);
    cluster.node(P).fabric.holds = PeerSet::EMPTY;
    while cluster.node(P).fabric.land(Q) {}
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn members_of_the_signed_form_under_any_schedule(steps in steps()) {
        prop_assert_eq!(run_in(&World::<3>::with(SIGNED), &steps, None), Ok(()));
        prop_assert_eq!(run_in(&World::<4>::with(SIGNED), &steps, None), Ok(()));
    }

    #[test]
    fn members_of_the_signed_form_and_a_liar(steps in steps()) {
        prop_assert_eq!(run_in(&World::<3>::with(SIGNED), &steps, Some(O)), Ok(()));
        prop_assert_eq!(run_in(&World::<4>::with(SIGNED), &steps, Some(O)), Ok(()));
    }
}

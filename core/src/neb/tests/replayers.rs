//! A replayer that lies: it shows another message, flaps, stays empty, or tears.
//!
//! Members are o, the origin, p and r, which are correct, and q, which shows anything.

use std::vec::Vec;

#[cfg(feature = "signed")]
use super::cluster::SIZES;
use super::cluster::{Cluster, World};
use crate::ids::{Peer, PeerSet};
use crate::neb::Conflict;
#[cfg(feature = "signed")]
use crate::neb::Sizes;
use crate::wire::broadcast::Form;

const O: Peer = Peer(0);
const P: Peer = Peer(1);
const Q: Peer = Peer(2);
const R: Peer = Peer(3);

/// The message of o.
const TRUTH: &[u8] = b"truth";

/// What q shows to one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Truth,
    /// Another message, whole; where slots are signed, not signed by o.
    Another,
    Nothing,
    /// A later message that belongs in the same slot.
    Newer,
    Torn,
}

const ALL: [Shown; 5] = [Shown::Truth, Shown::Another, Shown::Nothing, Shown::Newer, Shown::Torn];

impl Shown {
    fn slot<const N: usize>(self, world: &World<N>) -> Vec<u8> {
        let mut slot = match self {
            Self::Truth | Self::Torn => world.slot(O, 1, TRUTH),
            Self::Another => forged(world, 1),
            Self::Newer => forged(world, 1 + u64::from(world.config.slots())),
            Self::Nothing => std::vec![0; world.config.stride() as usize],
        };
        if self == Self::Torn {
            slot[33] ^= 1;
        }
        slot
    }
}

fn forged<const N: usize>(world: &World<N>, seq: u64) -> Vec<u8> {
    match world.config.form() {
        Form::Unsigned => world.slot(O, seq, b"lie"),
        #[cfg(feature = "signed")]
        Form::Signed => super::signed::unsigned(world, seq, b"lie"),
        #[cfg(not(feature = "signed"))]
        Form::Signed => unreachable!("no such configuration"),
    }
}

/// Every sequence of three that q may show.
fn flaps() -> impl Iterator<Item = [Shown; 3]> {
    let all = || ALL.into_iter();
    all().flat_map(move |a| all().flat_map(move |b| all().map(move |c| [a, b, c])))
}

/// p and r read in turn, and q cycles through `shown`; in the end it shows the first to every read.
/// o sends the first of `said` to p and the second to r.
fn flap<'net>(world: &'net World<4>, said: [&[u8]; 2], shown: [Shown; 3]) -> Cluster<'net, 4> {
    let mut cluster = Cluster::new(world);
    cluster.liars.insert(Q);
    cluster.node(Q).stopped = true;
    for peer in [P, R] {
        cluster.node(peer).fabric.holds = PeerSet::only(Q);
    }
    if said[0] == said[1] {
        assert_eq!(cluster.broadcast(O, said[0]), Some(1));
    } else {
        cluster.forge(O, P, 1, &world.slot(O, 1, said[0]));
        cluster.forge(O, R, 1, &world.slot(O, 1, said[1]));
    }
    for _ in 0..4 {
        for (at, look) in shown.iter().enumerate() {
            cluster.expose(Q, O, 1, &look.slot(world));
            let reader = if at % 2 == 0 { P } else { R };
            cluster.turn_of(reader);
            cluster.node(reader).fabric.land(Q);
        }
        cluster.turn();
    }
    cluster.expose(Q, O, 1, &shown[0].slot(world));
    for peer in [P, R] {
        let node = cluster.node(peer);
        node.fabric.holds = PeerSet::EMPTY;
        while node.fabric.land(Q) {}
    }
    cluster.settle();
    cluster
}

/// In the unsigned form q can veto; but p and r deliver the truth or nothing, and a member that has
/// reported a conflict never delivers.
#[test]
fn a_replayer_that_flaps_vetoes_at_most() {
    for shown in flaps() {
        let world = World::<4>::new();
        let mut cluster = flap(&world, [TRUTH, TRUTH], shown);
        assert_eq!(cluster.check_safety(), Ok(()), "{shown:?}");
        for peer in [P, R] {
            let node = cluster.node(peer);
            let is_disputed = !node.conflicts.is_empty();
            assert!(!is_disputed || node.delivered.is_empty(), "{shown:?}: {peer}");
            if shown.iter().all(|look| matches!(look, Shown::Truth | Shown::Nothing)) {
                assert_eq!(node.delivered.len(), 1, "{shown:?} are votes: {peer}");
            }
        }
    }
}

/// Whatever q shows, p and r do not deliver two different messages of o.
#[test]
fn a_replayer_that_flaps_makes_no_two_faces_one() {
    for shown in flaps() {
        let world = World::<4>::new();
        let cluster = flap(&world, [TRUTH, b"other"], shown);
        assert_eq!(cluster.check_safety(), Ok(()), "{shown:?}");
    }
}

#[cfg(feature = "signed")]
#[test]
fn a_replayer_that_flaps_vetoes_nothing_that_is_signed() {
    for shown in flaps() {
        let world = World::<4>::with(Sizes { form: Form::Signed, ..SIZES });
        let mut cluster = flap(&world, [TRUTH, TRUTH], shown);
        assert_eq!(cluster.check(), Ok(()), "{shown:?}");
        for peer in [P, R] {
            assert_eq!(cluster.node(peer).conflicts, [], "{shown:?}: o has signed one thing");
        }
    }
}

#[cfg(feature = "signed")]
#[test]
fn a_replayer_that_flaps_makes_no_two_signed_faces_one() {
    for shown in flaps() {
        let world = World::<4>::with(Sizes { form: Form::Signed, ..SIZES });
        let cluster = flap(&world, [TRUTH, b"other"], shown);
        assert_eq!(cluster.check_safety(), Ok(()), "{shown:?}");
    }
}

/// p and r have o's message and q shows another: they report it and deliver nothing of o.
#[test]
fn a_replayer_that_lies_vetoes_and_is_named() {
    let world = World::<4>::new();
    let mut cluster = Cluster::new(&world);
    cluster.node(Q).stopped = true;
    cluster.expose(Q, O, 1, &Shown::Another.slot(&world));
    for payload in [TRUTH, b"later"] {
        cluster.broadcast(O, payload).unwrap();
    }
    cluster.settle();
    let conflict = Conflict { origin: O, seq: 1, replayer: Q };
    for peer in [P, R] {
        assert_eq!(cluster.node(peer).conflicts, [conflict]);
        assert_eq!(cluster.node(peer).delivered, [], "later messages of o wait for it");
        let neb = &cluster.node(peer).neb;
        assert_eq!((neb.counters().conflicts, neb.standing(O).unwrap().damaged), (1, None));
    }
    assert_eq!(cluster.check_safety(), Ok(()));
}

#[test]
fn a_replayer_that_stays_empty_delays_nothing() {
    let world = World::<4>::new();
    let mut cluster = Cluster::new(&world);
    cluster.liars.insert(Q);
    cluster.node(Q).stopped = true;
    for n in 0..world.config.slots() as u8 {
        cluster.broadcast(O, &[n]).unwrap();
    }
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
    assert_eq!(cluster.node(P).delivered.len(), world.config.slots() as usize);
    assert_eq!(cluster.broadcast(O, b"q has shown no progress"), None, "the window is full");
}

/// N-12, in the unsigned form: a slot that no correct replayer shows is no conflict and delays
/// nothing.
#[test]
fn a_slot_of_another_origin_or_place_delays_nothing() {
    for shown in [(Q, 1), (Q, 5), (O, 2)] {
        let world = World::<4>::new();
        let mut cluster = Cluster::new(&world);
        cluster.liars.insert(Q);
        cluster.node(Q).stopped = true;
        cluster.expose(Q, O, 1, &world.slot(shown.0, shown.1, b"lie"));
        cluster.broadcast(O, TRUTH).unwrap();
        cluster.settle();
        assert_eq!(cluster.check(), Ok(()), "{shown:?}");
        let node = cluster.node(P);
        assert_eq!((node.conflicts.len(), node.neb.counters().misplaced), (0, 1), "{shown:?}");
    }
}

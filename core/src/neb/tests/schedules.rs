//! Random schedules: members run and work completes in any order.

use std::vec::Vec;

use proptest::prelude::*;

use super::cluster::{Broken, Cluster, World};
use crate::ids::{Peer, PeerSet};
use crate::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Broadcast(u16),
    Turn(u16),
    Land(u16, u16),
    Tear(u16, u16, u64),
    Pass,
    /// The liar writes one of its faces.
    Equivocate(u16, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..8u16;
    prop_oneof![
        3 => who().prop_map(Step::Broadcast),
        8 => who().prop_map(Step::Turn),
        8 => (who(), who()).prop_map(|(a, b)| Step::Land(a, b)),
        1 => (who(), who(), any::<u64>()).prop_map(|(a, b, bits)| Step::Tear(a, b, bits)),
        2 => Just(Step::Pass),
        2 => (who(), 0..2u8).prop_map(|(to, face)| Step::Equivocate(to, face)),
    ]
}

/// Applies `steps` to N members, member 0 lying if `liar`, then lets all members finish.
fn run<const N: usize>(steps: &[Step], liar: Option<Peer>) -> Result<(), Broken> {
    run_in(&World::<N>::new(), steps, liar)
}

pub(super) fn run_in<const N: usize>(
    world: &World<N>,
    steps: &[Step],
    liar: Option<Peer>,
) -> Result<(), Broken> {
    let mut cluster = Cluster::new(world);
    let peer = |n: u16| Peer(n % N as u16);
    let all = PeerSet::first(N);
    for node in &mut cluster.nodes {
        node.fabric.holds = all;
    }
    if let Some(liar) = liar {
        cluster.liars.insert(liar);
        cluster.node(liar).stopped = true;
    }
    for step in steps {
        apply(&mut cluster, *step, peer, liar);
    }
    for node in &mut cluster.nodes {
        node.fabric.holds = PeerSet::EMPTY;
        for peer in all.iter() {
            while node.fabric.land(peer) {}
        }
    }
    cluster.settle();
    cluster.settle();
    if liar.is_some() { cluster.check_safety() } else { cluster.check() }
}

fn apply<const N: usize>(
    cluster: &mut Cluster<'_, N>,
    step: Step,
    peer: impl Fn(u16) -> Peer,
    liar: Option<Peer>,
) {
    let now = cluster.now;
    match step {
        Step::Broadcast(who) if Some(peer(who)) != liar => {
            let payload = (cluster.broadcast.len() as u32).to_le_bytes();
            cluster.broadcast(peer(who), &payload);
        }
        Step::Turn(who) if Some(peer(who)) != liar => cluster.node(peer(who)).turn(now),
        Step::Broadcast(_) | Step::Turn(_) => {}
        Step::Land(who, to) => drop(cluster.node(peer(who)).fabric.land(peer(to))),
        Step::Tear(who, to, bits) => {
            cluster.node(peer(who)).fabric.tear(peer(to), super::held::bits(bits));
        }
        Step::Pass => cluster.now = now.after(Duration(25)),
        Step::Equivocate(to, face) => {
            if let Some(liar) = liar.filter(|liar| *liar != peer(to)) {
                for seq in 1..3 {
                    let slot = cluster.world.slot(liar, seq, &[face; 5]);
                    cluster.forge(liar, peer(to), seq, &slot);
                }
            }
        }
    }
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 0..160)
}

/// The completions of p's reads of q and r come in every order; of one peer in posting order (F-1).
#[test]
fn completions_reordered_across_peers() {
    for order in 0..16_u32 {
        let world = World::<4>::new();
        let mut cluster = Cluster::new(&world);
        let (p, others) = (Peer(1), [Peer(2), Peer(3)]);
        cluster.node(p).fabric.holds = PeerSet::only(others[0]).union(PeerSet::only(others[1]));
        for payload in [b"one", b"two"] {
            cluster.broadcast(Peer(0), payload);
        }
        cluster.turn_of(p);
        // In the order of the bits while both have reads under way; then the rest.
        for bit in (0..4).chain(0..8) {
            let first = usize::from(order >> (bit % 4) & 1 == 1);
            let node = cluster.node(p);
            let landed = node.fabric.land(others[first]);
            if bit >= 4 && !landed {
                node.fabric.land(others[1 - first]);
            }
            cluster.turn_of(p);
        }
        let delivered: Vec<u64> =
            cluster.node(p).delivered.iter().map(|(_, seq, _)| *seq).collect();
        assert_eq!(delivered, [1, 2], "order {order:04b}");
        cluster.node(p).fabric.holds = PeerSet::EMPTY;
        cluster.settle();
        assert_eq!(cluster.check(), Ok(()), "order {order:04b}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn two_correct_members(steps in steps()) {
        prop_assert_eq!(run::<2>(&steps, None), Ok(()));
    }

    #[test]
    fn three_correct_members(steps in steps()) {
        prop_assert_eq!(run::<3>(&steps, None), Ok(()));
    }

    #[test]
    fn four_correct_members(steps in steps()) {
        prop_assert_eq!(run::<4>(&steps, None), Ok(()));
    }

    #[test]
    fn three_members_and_a_liar(steps in steps()) {
        prop_assert_eq!(run::<3>(&steps, Some(Peer(0))), Ok(()));
    }

    #[test]
    fn four_members_and_a_liar(steps in steps()) {
        prop_assert_eq!(run::<4>(&steps, Some(Peer(0))), Ok(()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn five_to_seven_correct_members(steps in steps()) {
        prop_assert_eq!(run::<5>(&steps, None), Ok(()));
        prop_assert_eq!(run::<6>(&steps, None), Ok(()));
        prop_assert_eq!(run::<7>(&steps, None), Ok(()));
    }

    #[test]
    fn seven_members_and_a_liar(steps in steps()) {
        prop_assert_eq!(run::<7>(&steps, Some(Peer(0))), Ok(()));
    }
}

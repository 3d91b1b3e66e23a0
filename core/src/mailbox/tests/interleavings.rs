//! The mailbox against a queue: any interleaving, any crash, any placement.

use std::vec;

use proptest::prelude::*;

use super::harness::world_with;
use super::model::{Model, model};
use super::{OWNER, PEERS, STALL};
use crate::fabric::Placement;
use crate::ids::Peer;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Stages that many messages, if none are under way, and flushes.
    Put(Peer, u8),
    Land(Peer),
    /// The bytes of the bits arrive.
    Tear(Peer, u64),
    AnswerImplausibly(Peer),
    Hear(Peer),
    /// That many posts are refused.
    Refuse(Peer, u8),
    /// The pair with the owner fails at the writer's side.
    FailPair(Peer),
    Straggle(Peer, u64),
    Crash(Peer),
    Fence(Peer),
    Revive(Peer),
    Take,
    /// A run of at most that many messages.
    TakeRun(u8),
    Release(u8),
    Poll,
    OwnerLand(Peer),
    OwnerTear(Peer, u64),
    OwnerHear,
    OwnerRefuse(u8),
    /// The owner's pair with itself fails, and is set up again.
    OwnerFail,
    OwnerStraggle,
    Pass,
    Succeed,
}

fn step() -> impl Strategy<Value = Step> {
    let writer = || (1..PEERS as u16).prop_map(Peer);
    let anyone = || (0..PEERS as u16).prop_map(Peer);
    prop_oneof![
        12 => (writer(), 1u8..6).prop_map(|(who, count)| Step::Put(who, count)),
        16 => writer().prop_map(Step::Land),
        3 => (writer(), any::<u64>()).prop_map(|(who, bits)| Step::Tear(who, bits)),
        1 => writer().prop_map(Step::AnswerImplausibly),
        16 => writer().prop_map(Step::Hear),
        1 => (writer(), 1u8..3).prop_map(|(who, count)| Step::Refuse(who, count)),
        1 => writer().prop_map(Step::FailPair),
        2 => (writer(), any::<u64>()).prop_map(|(who, bits)| Step::Straggle(who, bits)),
        1 => writer().prop_map(Step::Crash),
        1 => writer().prop_map(Step::Fence),
        2 => writer().prop_map(Step::Revive),
        8 => Just(Step::Take),
        6 => (1u8..6).prop_map(Step::TakeRun),
        12 => any::<u8>().prop_map(Step::Release),
        8 => Just(Step::Poll),
        12 => anyone().prop_map(Step::OwnerLand),
        2 => (writer(), any::<u64>()).prop_map(|(who, bits)| Step::OwnerTear(who, bits)),
        12 => Just(Step::OwnerHear),
        1 => (1u8..3).prop_map(Step::OwnerRefuse),
        1 => Just(Step::OwnerFail),
        1 => Just(Step::OwnerStraggle),
        6 => Just(Step::Pass),
        1 => Just(Step::Succeed),
    ]
}

fn bit(bits: u64) -> impl Fn(usize) -> bool {
    move |index| bits >> (index % 61) & 1 == 1
}

impl Model<'_> {
    fn apply(&mut self, step: Step) {
        match step {
            Step::Put(peer, count) if self.alive[peer.index()] => self.put(peer, count),
            Step::Hear(peer) if self.alive[peer.index()] => self.hear(peer),
            Step::Put(..) | Step::Hear(_) => {}
            Step::Land(peer) => drop(self.writer(peer).land()),
            Step::Tear(peer, bits) => self.writer(peer).fabric.tear(OWNER, bit(bits)),
            Step::AnswerImplausibly(peer) => {
                self.misled |= self.writer(peer).fabric.answer_implausibly(OWNER);
            }
            Step::Refuse(peer, count) => self.writer(peer).fabric.refusals = u32::from(count),
            Step::FailPair(peer) => self.writer(peer).fabric.fail(OWNER),
            Step::Straggle(peer, bits) => self.straggle(peer, bits),
            Step::Crash(peer) => self.crash(peer),
            Step::Fence(peer) => self.fence(peer),
            Step::Revive(peer) => self.revive(peer),
            Step::Succeed => self.succeed(),
            Step::Take | Step::TakeRun(_) | Step::Release(_) => self.own(step),
            Step::Poll | Step::Pass => self.own(step),
            Step::OwnerLand(_) | Step::OwnerTear(..) => self.own(step),
            Step::OwnerHear | Step::OwnerRefuse(_) => self.own(step),
            Step::OwnerFail | Step::OwnerStraggle => self.own(step),
        }
    }

    /// A step of the owner.
    fn own(&mut self, step: Step) {
        let owner = &mut self.cluster.owner;
        match step {
            Step::Take => drop(self.take()),
            Step::TakeRun(limit) => self.take_run(u32::from(limit)),
            Step::Release(which) if !self.hands.is_empty() => {
                self.release(usize::from(which) % self.hands.len());
            }
            Step::Poll => owner.poll(),
            Step::OwnerLand(peer) => drop(owner.fabric.land(peer)),
            Step::OwnerTear(peer, bits) => owner.fabric.tear(peer, bit(bits)),
            Step::OwnerHear => owner.hear(),
            Step::OwnerRefuse(count) => owner.fabric.refusals = u32::from(count),
            Step::OwnerFail => {
                owner.fabric.fail(OWNER);
                owner.fabric.reopen(OWNER);
            }
            Step::OwnerStraggle => owner.fabric.straggle(|_| true),
            Step::Pass => owner.now = owner.now.after(STALL),
            _ => {}
        }
    }

    fn straggle(&mut self, peer: Peer, bits: u64) {
        let count = self.cluster.count();
        self.writer(peer).fabric.straggle(bit(bits));
        for ghost in &mut self.cluster.ghosts {
            ghost.straggle(bit(bits));
        }
        // A reservation took effect after its failure was reported.
        self.misled |= self.cluster.count() != count;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16_000, ..ProptestConfig::default() })]

    #[test]
    fn the_mailbox_is_a_queue_for_each_sender(
        slots in prop_oneof![Just(2u32), Just(4), Just(8)],
        placement in prop_oneof![Just(Placement::Bytes), Just(Placement::WholeWords)],
        steps in proptest::collection::vec(step(), 0..240),
    ) {
        let world = world_with(slots, placement);
        let mut model = model(&world);
        for step in steps {
            model.apply(step);
        }
        model.heal();
        model.accept_more();
    }
}

//! A writer, an owner and an owner's successor die at every step.

use super::harness::{Cluster, PLACEMENTS, World, world, world_with};
use super::model::{Model, model};
use super::{A, B, OWNER, SLOTS};
use crate::fabric::Placement;
use crate::ids::Peer;
use crate::mailbox::UnknownReceipt;

const C: Peer = Peer(3);

/// Stores of a put's three claims beyond the first of each.
const fn claim_stores(placement: Placement) -> usize {
    match placement {
        Placement::Bytes => 3,
        Placement::WholeWords => 0,
    }
}

/// `peer` puts `count` messages and handles the outcome.
fn put(model: &mut Model<'_>, peer: Peer, count: u8) {
    model.put(peer, count);
    model.finish(peer);
}

/// A writer dies after so many actions within a put of `count` messages; the others go on.
/// Returns whether the put ended before that.
fn writer_dies(world: &World, count: u8, actions: u32) -> bool {
    let mut model = model(world);
    put(&mut model, B, 1);
    model.turn();
    let fabric = &mut model.writer(A).fabric;
    fabric.prompt = true;
    fabric.die_after(actions);
    put(&mut model, A, count);
    let finished = !model.writer(A).fabric.is_dead();
    model.crash(A);
    (0..3).for_each(|_| put(&mut model, B, 1));
    put(&mut model, C, 2);
    model.turn();
    model.fence(A);
    model.heal();
    assert!(model.staged[A.index()].is_empty(), "it was started again");
    model.accept_more();
    finished
}

#[test]
fn a_writer_may_die_at_any_step_of_a_put() {
    for (placement, (count, least)) in PLACEMENTS
        .into_iter()
        .flat_map(|placement| [(1, 11), (3, 27), (6, 27)].map(|count| (placement, count)))
    {
        for slots in [4, 8] {
            let died = |actions: &u32| !writer_dies(&world_with(slots, placement), count, *actions);
            let steps = (0..).take_while(died).count();
            // Where messages are packed, fewer words are written.
            let is_packed = placement == Placement::WholeWords && count > 1;
            let least = if is_packed { 18 } else { least } + claim_stores(placement);
            assert!(steps > least, "{steps} steps of putting {count}, {placement:?}");
        }
    }
}

/// Stopped, not dead: it may still complete its work.
#[test]
fn a_writer_that_stops_at_any_step_is_waited_for() {
    for placement in PLACEMENTS {
        let stopped = |actions: &usize| {
            let world = world_with(4, placement);
            let mut model = model(&world);
            let fabric = &mut model.writer(A).fabric;
            fabric.prompt = true;
            fabric.die_after(*actions as u32);
            put(&mut model, A, 2);
            model.cluster.owner.drain();
            let skipped = model.cluster.owner.mailbox.counters().skipped;
            assert_eq!(skipped, 0, "after {actions} actions");
            model.writer(A).fabric.is_dead()
        };
        let steps = (0..).take_while(stopped).count();
        assert!(steps > 11 + claim_stores(placement), "{steps} steps");
    }
}

/// An owner's work: it takes, releases out of order and closes halves, until it ends or dies.
fn own(model: &mut Model<'_>) {
    for round in 0..8u8 {
        put(model, A, 1 + round % 3);
        put(model, B, 1);
        while model.take() {}
        while model.hands.len() > usize::from(round % 2) {
            model.release(model.hands.len() - 1);
        }
        model.cluster.owner.wait();
        if model.cluster.owner.fabric.is_dead() {
            return;
        }
    }
}

/// Owners die in turn, each after its number of actions. Returns whether the last one survived.
fn owners_die(world: &World, deaths: &[u32]) -> bool {
    let mut model = model(world);
    let mut survived = false;
    for actions in deaths {
        let fabric = &mut model.cluster.owner.fabric;
        fabric.prompt = true;
        fabric.die_after(*actions);
        own(&mut model);
        survived = !model.cluster.owner.fabric.is_dead();
        model.succeed();
    }
    model.heal();
    assert_eq!(model.cluster.owner.mailbox.owed(), 0);
    model.accept_more();
    survived
}

#[test]
fn an_owner_may_die_at_any_step() {
    for (placement, slots) in
        PLACEMENTS.into_iter().flat_map(|it| [2, 4, SLOTS as u32].map(|slots| (it, slots)))
    {
        let died = |actions: &u32| !owners_die(&world_with(slots, placement), &[*actions]);
        let steps = (0..).take_while(died).count();
        assert!(steps > 20, "{steps} steps of owning {slots} slots");
    }
}

#[test]
fn a_successor_may_die_at_any_step() {
    let world = || world(4);
    let died = |actions: &u32| !owners_die(&world(), &[*actions]);
    for first in (0..).take_while(died) {
        let died = |second: &u32| !owners_die(&world(), &[first, *second]);
        let steps = (0..).take_while(died).count();
        assert!(steps > 10, "{steps} steps of the successor");
    }
}

/// A writer stops at some action and an owner at another; the successor delivers the rest.
#[test]
fn writer_and_owner_may_die_at_any_two_steps() {
    for (writer, owner) in (0..24).flat_map(|writer| (0..24).map(move |owner| (writer, owner))) {
        let world = world_with(2, PLACEMENTS[(writer + owner) as usize % 2]);
        let mut model = model(&world);
        put(&mut model, B, 1);
        model.writer(A).fabric.prompt = true;
        model.writer(A).fabric.die_after(writer);
        put(&mut model, A, 2);
        model.crash(A);
        model.cluster.owner.fabric.prompt = true;
        model.cluster.owner.fabric.die_after(owner);
        own(&mut model);
        assert_eq!(model.writer(B).fabric.held(OWNER), 0);
        model.succeed();
        model.heal();
        model.accept_more();
    }
}

/// The owner of `cluster`, with six messages taken: four of its first epoch, two of the next.
fn take_six(cluster: &mut Cluster<'_>) -> std::vec::Vec<super::owner::Taken> {
    for payloads in [[b"0", b"1"], [b"2", b"3"], [b"4", b"5"]] {
        let writer = cluster.writer(A);
        payloads.iter().for_each(|payload| writer.stage(*payload));
        writer.flush().unwrap();
        writer.finish();
        cluster.owner.wait();
    }
    std::iter::from_fn(|| cluster.owner.take()).collect()
}

#[test]
fn messages_that_are_released_together_cost_one_store_for_each_word_of_the_journal() {
    for (order, stores) in [([0, 1, 2, 3, 4, 5], 2), ([1, 0, 5, 3, 2, 4], 4)] {
        let world = world(4);
        let mut cluster = Cluster::new(&world);
        let taken = take_six(&mut cluster);
        let receipts = order.map(|place: usize| taken[place].receipt);
        let owner = &mut cluster.owner;
        owner.fabric.die_after(stores);
        owner.mailbox.release_all(&owner.fabric, receipts).unwrap();
        assert!(!owner.fabric.is_dead() && owner.mailbox.owed() == 0);
        cluster.succeed_owner(&[A]);
        assert_eq!(cluster.owner.drain(), []);
    }
}

#[test]
fn an_unknown_receipt_ends_a_release_of_several() {
    let world = world(8);
    let mut cluster = Cluster::new(&world);
    let taken = take_six(&mut cluster);
    let receipts = [0, 1, 0, 2].map(|place: usize| taken[place].receipt);
    let owner = &mut cluster.owner;
    assert_eq!(owner.mailbox.release_all(&owner.fabric, receipts), Err(UnknownReceipt));
    cluster.succeed_owner(&[A]);
    let expected: [&[u8]; 4] = [b"2", b"3", b"4", b"5"];
    assert_eq!(cluster.owner.drain_payloads(), expected);
}

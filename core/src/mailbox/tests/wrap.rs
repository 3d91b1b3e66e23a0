//! The 32-bit epoch wraps after 2^32 halves; nobody notices.

use super::harness::{Cluster, FIRST, World, world};
use super::model::model;
use super::owner::Owner;
use super::{A, OWNER, SLOTS};
use crate::fabric::Memory;
use crate::wire::slot::Stamp;

/// The memory of a mailbox that has been through nearly all epochs.
fn old_world(slots: u32, epoch: u32) -> World {
    let world = world(slots);
    let memory = world.net.memory(OWNER);
    let store = |at: crate::fabric::At, value| memory.store(at.region, at.offset, value);
    for (epoch, ticket) in [(epoch - 1, slots), (epoch, 0)] {
        let record = world.regions.record(&world.config, epoch);
        store(record, Stamp { epoch, ticket }.to_word());
    }
    let drained = (1 << slots) - 1;
    store(world.regions.bitmap(&world.config, epoch - 1, 0), drained);
    store(world.regions.word(), Stamp { epoch, ticket: 0 }.to_count());
    world
}

#[test]
fn messages_pass_from_the_last_epoch_to_the_first() {
    for slots in [2, 4, 8] {
        let world = old_world(slots, u32::MAX - 1);
        let mut model = model(&world);
        model.accept_more();
        let at = world.regions.word();
        let word = model.cluster.owner.fabric.load(at.region, at.offset);
        assert!(Stamp::from_count(word).epoch < SLOTS as u32 * 3, "it wrapped");
    }
}

#[test]
fn a_successor_finds_its_halves_on_both_sides_of_the_wrap() {
    let world = old_world(4, u32::MAX);
    let mut cluster = Cluster::new(&world);
    for round in 0..3u8 {
        cluster.writer(A).put(&[round]);
    }
    cluster.owner.turn();
    cluster.writer(A).put(&[3]);
    let first = cluster.owner.take().unwrap();
    cluster.owner.release(&first);
    cluster.succeed_owner(&[A]);
    assert_eq!(cluster.owner.drain_payloads(), [[1], [2], [3]]);
}

#[test]
fn owners_die_at_every_epoch_around_the_wrap() {
    let world = old_world(2, u32::MAX - 1);
    let mut model = model(&world);
    for _ in 0..8 {
        model.put(A, 1);
        model.finish(A);
        model.turn();
        model.succeed();
    }
    model.heal();
    model.accept_more();
}

/// An answer of -1 names the last epoch, which may be the open one.
#[test]
fn an_unknown_ticket_in_the_last_epoch_does_not_stop_its_writer() {
    let world = old_world(8, u32::MAX);
    let mut cluster = Cluster::new(&world);
    let writer = cluster.writer(A);
    writer.stage(b"again");
    writer.flush().unwrap();
    assert!(writer.fabric.answer_implausibly(OWNER));
    writer.hear();
    writer.flush().unwrap();
    writer.finish();
    assert_eq!(cluster.owner.drain_payloads(), [b"again"]);
}

#[test]
fn fresh_memory_is_an_empty_mailbox() {
    let world = world(8);
    let mut owner = Owner::attach(&world, FIRST);
    assert_eq!(owner.take(), None);
    assert_eq!(owner.mailbox.owed(), 0);
}

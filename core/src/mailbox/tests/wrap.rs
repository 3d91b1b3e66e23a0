//! The 32-bit epoch wraps after 2^32 halves without effect.

use super::super::half::{Half, Place};
use super::harness::{Cluster, FIRST, World, world};
use super::model::model;
use super::owner::Owner;
use super::{A, OWNER, SLOTS};
use crate::fabric::{At, Fabric, Memory};
use crate::wire::crc32c;
use crate::wire::slot::{Stamp, TRAILER_LEN, Trailer, seal};

/// The memory of a mailbox that has been through nearly all epochs.
fn old_world(slots: u32, epoch: u32) -> World {
    let world = world(slots);
    let memory = world.net.memory(OWNER);
    let store = |at: At, value| memory.store(at.region, at.offset, value);
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
    let mut cluster = Cluster::new(old_world(4, u32::MAX).leaked());
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
    let mut cluster = Cluster::new(old_world(8, u32::MAX).leaked());
    let writer = cluster.writer(A);
    writer.stage(b"again");
    writer.flush().unwrap();
    assert!(writer.fabric.answer_implausibly(OWNER));
    writer.hear();
    writer.flush().unwrap();
    writer.finish();
    assert_eq!(cluster.owner.drain_payloads(), [b"again"]);
}

/// Fills every slot of the half of `epoch` as a batch of 2^32 epochs ago left it.
fn leave_burst(world: &World, epoch: u32) {
    for ticket in 0..world.config.slots() {
        let stamp = Stamp { epoch, ticket };
        let mut slot = [0; TRAILER_LEN];
        Trailer { sender: A.0, kind: 7, ..Trailer::default() }.write(&mut slot);
        seal(&mut slot, stamp, 1, ticket, crc32c);
        let at = world.regions.slot(&world.config, stamp).start(0);
        world.net.memory(OWNER).copy_in(at.region, at.offset, &slot);
    }
}

/// Takes messages one at a time, so that every half is closed half full.
fn assert_each_comes_once(cluster: &mut Cluster<'_>, rounds: u8) {
    for round in 0..rounds {
        cluster.writer(A).put(&[round]);
        assert_eq!(cluster.owner.drain_payloads(), [[round]]);
    }
}

#[test]
fn what_a_burst_left_is_not_delivered_after_the_wrap() {
    for slots in [2, 4, 8] {
        for epoch in [0, 1] {
            let world = old_world(slots, u32::MAX - 1);
            leave_burst(&world, epoch);
            let mut cluster = Cluster::new(&world);
            assert_each_comes_once(&mut cluster, 4 * slots as u8);
        }
    }
}

/// The slot of a ticket that was given out and never written keeps its content.
#[test]
fn what_an_old_burst_left_is_not_delivered_for_a_skipped_ticket() {
    let world = old_world(2, u32::MAX - 1);
    leave_burst(&world, 0);
    let mut cluster = Cluster::new(&world);
    cluster.writer(A).hold_ticket(b"never written");
    cluster.revive(A);
    cluster.owner.drain();
    cluster.writer(A).put(b"last epoch");
    assert_eq!(cluster.owner.drain_payloads(), [b"last epoch"]);
    cluster.writer(A).hold_ticket(b"late");
    assert_eq!(cluster.owner.take(), None);
    cluster.writer(A).finish();
    assert_eq!(cluster.owner.drain_payloads(), [b"late"]);
}

/// Begins `epoch` in `half` over memory whose journal names `recorded` for it, and in which one
/// stamp is of a later epoch; whether it cleared that.
fn clears(world: &World, half: &mut Half<8>, epoch: u32, recorded: u32) -> bool {
    let fabric = world.net.endpoint(OWNER, FIRST);
    let store = |at: At, word| fabric.memory().store(at.region, at.offset, word);
    let stray = Stamp { epoch: 8 + epoch % 2, ticket: 5 };
    let At { region, offset } = world.regions.slot(&world.config, stray).end;
    let last = At { region, offset: offset - 8 };
    store(last, stray.sealed(1));
    store(world.regions.record(&world.config, epoch), u64::from(recorded));
    half.begin(&fabric, Place { config: &world.config, regions: world.regions }, epoch);
    stray.run_in(fabric.memory().load(region, last.offset)).is_none()
}

#[test]
fn stamps_are_cleared_once_in_so_many_epochs_and_not_before() {
    let not_due = [2_u32, 3, 65_534, 65_535].map(|epoch| (epoch, false));
    let due = [65_536, 65_537, 0, 1].map(|epoch| (epoch, true));
    for (epoch, is_due) in not_due.into_iter().chain(due) {
        let before = epoch.wrapping_sub(2);
        let mut half = Half::drained(before);
        assert_eq!(clears(&world(8), &mut half, epoch, before), is_due, "{epoch}");
    }
}

/// Members may have put into it under an epoch that was never open.
#[test]
fn a_half_that_an_earlier_owner_began_is_cleared_before_its_next_epoch() {
    let mut half = Half::drained(2);
    assert!(!clears(&world(8), &mut half, 4, 4), "members may write there by now");
    assert!(clears(&world(8), &mut half, 6, 4));
    assert!(!clears(&world(8), &mut half, 8, 6));
}

#[test]
fn fresh_memory_is_an_empty_mailbox() {
    let world = world(8);
    let mut owner = Owner::attach(&world, FIRST);
    assert_eq!(owner.take(), None);
    assert_eq!(owner.mailbox.owed(), 0);
}

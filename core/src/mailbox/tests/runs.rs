//! Messages of one write that are taken together, and released together.

use std::vec::Vec;

use super::super::half::{Half, Place};
use super::harness::{Cluster, FIRST, World, world_with};
use super::owner::{Owner, Taken};
use super::{A, B, OWNER, STALL};
use crate::fabric::loopback::Net;
use crate::fabric::{At, Fabric, Layout, Memory, Placement};
use crate::ids::Peer;
use crate::mailbox::{Config, Run, UnknownReceipt};
use crate::wire::slot::Stamp;

/// Halves of eight slots, where a write from bytes is placed as in shared memory.
fn world() -> World {
    world_with(8, Placement::WholeWords)
}

fn put(cluster: &mut Cluster<'_>, writer: Peer, payloads: &[&[u8]]) {
    stage(cluster, writer, payloads);
    cluster.writer(writer).finish();
}

/// As [`put`], up to the reservation.
fn stage(cluster: &mut Cluster<'_>, writer: Peer, payloads: &[&[u8]]) {
    let writer = cluster.writer(writer);
    payloads.iter().for_each(|payload| writer.stage(payload));
    writer.flush().unwrap();
}

/// The next run, with its messages.
fn take_run(owner: &mut Owner<'_>) -> Option<(Run, Vec<Taken>)> {
    take_at_most(owner, u32::MAX)
}

fn take_at_most(owner: &mut Owner<'_>, limit: u32) -> Option<(Run, Vec<Taken>)> {
    let mut taken = Vec::new();
    owner.mailbox.look(&owner.fabric, owner.now);
    let now = owner.now;
    let run = owner.mailbox.take_run(&owner.fabric, now, limit, |it| taken.push(Taken::of(it)))?;
    assert_eq!(run.count() as usize, taken.len());
    assert!(run.receipts().eq(taken.iter().map(|it| it.receipt)));
    Some((run, taken))
}

/// The payloads of the next run.
fn take_payloads(owner: &mut Owner<'_>) -> Vec<Vec<u8>> {
    take_run(owner).into_iter().flat_map(|(_, taken)| taken).map(|it| it.payload).collect()
}

#[test]
fn a_write_is_taken_as_one_run_and_each_write_as_its_own() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    let long = [7; 40];
    put(&mut cluster, A, &[b"a0", b"", &long]);
    put(&mut cluster, B, &[b"b0"]);
    put(&mut cluster, A, &[b"a3", b"a4"]);
    let (_, taken) = take_run(&mut cluster.owner).unwrap();
    let found: Vec<_> = taken.iter().map(|it| (it.sender, it.sequence, &it.payload[..])).collect();
    assert_eq!(found, [(A, 0, &b"a0"[..]), (A, 1, b""), (A, 2, &long)]);
    assert_eq!(take_payloads(&mut cluster.owner), [b"b0"]);
    assert_eq!(take_payloads(&mut cluster.owner), [b"a3", b"a4"]);
    assert_eq!(take_run(&mut cluster.owner), None);
    put(&mut cluster, A, &[b"a5"]);
    assert_eq!(take_payloads(&mut cluster.owner), [b"a5"]);
    assert_eq!(cluster.owner.mailbox.counters().taken, 7);
}

#[test]
fn a_run_has_no_more_messages_than_its_limit() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    put(&mut cluster, A, &[b"0", b"1", b"2", b"3", b"4", b"5"]);
    let mut all = Vec::new();
    for (limit, count) in [(0, 0), (1, 1), (3, 3), (0, 0), (3, 2), (1, 0)] {
        let before = all.len();
        let run = take_at_most(&mut cluster.owner, limit).into_iter();
        all.extend(run.flat_map(|(_, taken)| taken).flat_map(|it| it.payload));
        assert_eq!(all.len() - before, count);
    }
    assert_eq!(all, *b"012345");
}

#[test]
fn no_run_is_taken_where_bytes_appear_in_any_order() {
    let world = world_with(8, Placement::Bytes);
    let mut cluster = Cluster::new(&world);
    put(&mut cluster, A, &[b"a0", b"a1"]);
    assert_eq!(take_payloads(&mut cluster.owner), [b"a0"]);
    assert_eq!(take_payloads(&mut cluster.owner), [b"a1"]);
}

#[test]
fn a_run_ends_where_a_slot_holds_something_else_and_the_rest_comes_as_it_would_alone() {
    // Stamp and run, sequence and sender, incarnation: of the slot in the middle.
    for (behind, bit) in [(8, 1), (8, 1 << 50), (24, 1 << 32), (24, 1 << 16), (16, 1 << 48)] {
        let world = world();
        let mut cluster = Cluster::new(&world);
        put(&mut cluster, A, &[b"a0", b"a1", b"a2"]);
        let stamp = Stamp { ticket: 1, ..Stamp::from_count(cluster.count()) };
        let At { region, offset } = world.regions.slot(&world.config, stamp).end;
        let word = cluster.owner.fabric.load(region, offset - behind);
        cluster.owner.fabric.store(region, offset - behind, word ^ bit);
        assert_eq!(take_payloads(&mut cluster.owner), [b"a0"], "{behind} {bit:x}");
        cluster.owner.fabric.store(region, offset - behind, word);
        assert_eq!(take_payloads(&mut cluster.owner), [b"a1", b"a2"]);
    }
}

#[test]
fn a_ticket_behind_a_run_that_was_taken_before_is_not_taken_again() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    stage(&mut cluster, A, &[b"a0", b"a1"]);
    // The tickets are reserved, and the write of the messages comes behind that of another.
    assert!(cluster.writer(A).fabric.land(OWNER));
    cluster.writer(A).hear();
    put(&mut cluster, B, &[b"b0"]);
    // Until the owner has asked whose tickets are missing, they may be those of B.
    assert_eq!(take_run(&mut cluster.owner), None);
    cluster.owner.wait();
    assert_eq!(take_payloads(&mut cluster.owner), [b"b0"]);
    cluster.writer(A).finish();
    let mut all = Vec::new();
    while let Some((run, taken)) = take_run(&mut cluster.owner) {
        all.extend(taken.into_iter().map(|it| it.payload));
        cluster.owner.mailbox.release_run(&cluster.owner.fabric, run).unwrap();
    }
    assert_eq!(all, [b"a0", b"a1"]);
}

#[test]
fn a_restored_message_of_a_run_comes_again_alone() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    put(&mut cluster, A, &[b"a0", b"a1", b"a2"]);
    let (run, taken) = take_run(&mut cluster.owner).unwrap();
    let owner = &mut cluster.owner;
    owner.mailbox.restore(taken[1].receipt).unwrap();
    assert_eq!(owner.mailbox.release_run(&owner.fabric, run), Err(UnknownReceipt));
    assert_eq!(owner.mailbox.owed(), 3);
    assert_eq!(take_payloads(owner), [b"a1"]);
    assert_eq!(take_run(owner), None);
    owner.mailbox.release_run(&owner.fabric, run).unwrap();
    assert_eq!((owner.mailbox.owed(), owner.mailbox.counters().forged_tickets), (0, 0));
    assert_eq!(owner.mailbox.release_run(&owner.fabric, run), Err(UnknownReceipt));
}

#[test]
fn a_run_that_was_released_costs_one_store_and_is_not_delivered_to_a_successor() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    put(&mut cluster, A, &[b"a0", b"a1", b"a2"]);
    put(&mut cluster, A, &[b"a3", b"a4"]);
    let (run, _) = take_run(&mut cluster.owner).unwrap();
    take_run(&mut cluster.owner).unwrap();
    let owner = &mut cluster.owner;
    owner.fabric.die_after(1);
    owner.mailbox.release_run(&owner.fabric, run).unwrap();
    assert!(!owner.fabric.is_dead());
    cluster.succeed_owner(&[A]);
    assert_eq!(cluster.owner.drain_payloads(), [b"a3", b"a4"]);
}

#[test]
fn a_run_goes_on_where_the_sequence_wraps() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    cluster.writer(A).outbox.count_from(u32::MAX - 1);
    put(&mut cluster, A, &[b"0", b"1", b"2", b"3"]);
    let (_, taken) = take_run(&mut cluster.owner).unwrap();
    assert!(taken.iter().map(|it| it.sequence).eq([u32::MAX - 1, u32::MAX, 0, 1]));
}

#[test]
fn a_run_of_an_earlier_epoch_releases_nothing_of_this_one() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    let mut runs = Vec::new();
    for _ in 0..3 {
        put(&mut cluster, A, &[b"0", b"1", b"2", b"3"]);
        let owner = &mut cluster.owner;
        let (run, taken) = take_run(owner).unwrap();
        assert_eq!(taken.len(), 4);
        for earlier in &runs {
            assert_eq!(owner.mailbox.release_run(&owner.fabric, *earlier), Err(UnknownReceipt));
        }
        assert_eq!(owner.mailbox.owed(), 4);
        owner.mailbox.release_run(&owner.fabric, run).unwrap();
        runs.push(run);
        owner.wait();
    }
}

#[test]
fn a_run_across_words_of_the_journal_sets_the_bits_of_its_tickets_alone() {
    const SLOTS: u32 = 192;
    let config = Config::new(2, SLOTS, 8, STALL).unwrap();
    for (begin, end) in [(0, 1), (0, 64), (63, 65), (64, 128), (60, 130), (1, 192), (191, 192)] {
        let mut layout = Layout::new(2);
        let regions = config.add_regions(&mut layout).unwrap();
        let net = Net::<2, 2048>::new(layout);
        let fabric = net.endpoint(OWNER, FIRST);
        let place = Place { config: &config, regions };
        let mut half = Half::<{ SLOTS as usize }>::drained(0);
        half.begin(&fabric, place, 2);
        half.owe(SLOTS);
        (0..SLOTS).for_each(|ticket| assert!(!half.take(&fabric, place, ticket)));
        let run = Run { first: Stamp { epoch: 2, ticket: begin }, count: end - begin };
        assert!(half.finish_run(&fabric, place, run));
        let journalled = |ticket: &u32| {
            let at = regions.bitmap(&config, 2, ticket / 64);
            fabric.memory().load(at.region, at.offset) >> (ticket % 64) & 1 == 1
        };
        assert!((0..SLOTS).filter(journalled).eq(begin..end), "{begin} to {end}");
        assert_eq!(half.outstanding(), SLOTS - (end - begin));
        assert!(!half.finish_run(&fabric, place, run));
    }
}

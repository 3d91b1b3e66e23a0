//! Messages of one write that are taken together, and released together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

use super::super::half::{Half, Place};
use super::harness::{Cluster, FIRST, World, world_with};
use super::owner::{Owner, Taken};
use super::{A, B, OWNER, STALL};
use crate::fabric::loopback::Net;
use crate::fabric::{At, Fabric, Layout, Memory, Placement};
use crate::ids::Peer;
use crate::mailbox::{Config, Forgery, Mailbox, PutEvent, Run, StageError, UnknownReceipt};
use crate::wire::slot::{Stamp, Trailer, seal_packed};

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
    owner.take_run(u32::MAX)
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
        let run = cluster.owner.take_run(limit).into_iter();
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

/// Changes `bits` of the word that ends `behind` bytes in front of the end of the slot of `ticket`.
fn flip(cluster: &Cluster<'_>, world: &World, ticket: u32, (behind, bits): (u32, u64)) {
    let stamp = Stamp { ticket, ..Stamp::from_count(cluster.count()) };
    let At { region, offset } = world.regions.slot(&world.config, stamp).end;
    let word = cluster.owner.fabric.load(region, offset - behind);
    cluster.owner.fabric.store(region, offset - behind, word ^ bits);
}

#[test]
fn a_run_ends_where_a_slot_holds_something_else_and_the_rest_comes_as_it_would_alone() {
    // Stamp and run, sequence and sender, incarnation: of the slot in the middle.
    for change in [(8, 1), (8, 1 << 50), (24, 1 << 32), (24, 1 << 16), (16, 1 << 48)] {
        let world = world();
        let mut cluster = Cluster::new(&world);
        put(&mut cluster, A, &[b"a0", b"a1", b"of another length"]);
        flip(&cluster, &world, 1, change);
        assert_eq!(take_payloads(&mut cluster.owner), [b"a0"], "{change:?}");
        flip(&cluster, &world, 1, change);
        assert_eq!(take_payloads(&mut cluster.owner), [&b"a1"[..], b"of another length"]);
    }
}

/// Eight messages of one length: the first, then seven in one slot; or three of two words.
fn packed(len: usize) -> Vec<Vec<u8>> {
    (0..8u8).map(|n| (0..len).map(|at| 16 * n + at as u8).collect()).collect()
}

fn put_packed(cluster: &mut Cluster<'_>, writer: Peer, payloads: &[Vec<u8>]) {
    put(cluster, writer, &payloads.iter().map(|it| &it[..]).collect::<Vec<_>>());
}

#[test]
fn messages_of_one_length_and_kind_share_slots_and_come_as_they_were_put() {
    for (len, slots) in [(0, 2), (1, 2), (8, 2), (9, 4), (16, 4), (24, 5), (25, 8), (40, 8)] {
        let world = world();
        let mut cluster = Cluster::new(&world);
        let payloads = packed(len);
        put_packed(&mut cluster, A, &payloads);
        let slot = |ticket| {
            let stamp = Stamp { ticket, ..Stamp::from_count(cluster.count()) };
            let At { region, offset } = world.regions.slot(&world.config, stamp).end;
            cluster.owner.fabric.load(region, offset - 8)
        };
        assert_eq!((0..8).filter(|ticket| slot(*ticket) != 0).count(), slots, "{len} bytes");
        let (run, taken) = take_run(&mut cluster.owner).unwrap();
        assert!(taken.iter().map(|it| &it.payload).eq(&payloads), "{len} bytes");
        assert!(taken.iter().map(|it| (it.sender, it.sequence)).eq((0..8).map(|n| (A, n))));
        let owner = &mut cluster.owner;
        owner.mailbox.release_run(&owner.fabric, run).unwrap();
        // Nor is one sought behind the last.
        assert!(!owner.mailbox.has_message(&owner.fabric, owner.now));
        assert_eq!(owner.mailbox.counters().checksum_failures, 0);
    }
}

#[test]
fn packed_messages_are_taken_alone_and_in_parts_as_well() {
    for limits in [[1; 8], [3, 1, 4, 1, 0, 0, 0, 0], [2, 2, 2, 2, 0, 0, 0, 0]] {
        let world = world();
        let mut cluster = Cluster::new(&world);
        let payloads = packed(16);
        put_packed(&mut cluster, A, &payloads);
        let mut all = Vec::new();
        for limit in limits {
            let taken = cluster.owner.take_run(limit);
            all.extend(taken.into_iter().flat_map(|(_, taken)| taken));
        }
        assert!(all.iter().map(|it| &it.payload).eq(&payloads), "{limits:?}");
        all.iter().for_each(|it| cluster.owner.release(it));
        assert_eq!(cluster.owner.take(), None);
    }
    let world = world();
    let mut cluster = Cluster::new(&world);
    put_packed(&mut cluster, A, &packed(16));
    assert_eq!(cluster.owner.drain_payloads(), packed(16));
}

#[test]
fn packed_messages_that_were_not_released_come_to_a_successor_and_a_restored_one_comes_again() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    put_packed(&mut cluster, A, &packed(16));
    let (_, taken) = take_run(&mut cluster.owner).unwrap();
    cluster.owner.mailbox.restore(taken[6].receipt).unwrap();
    cluster.owner.mailbox.restore(taken[2].receipt).unwrap();
    assert_eq!(cluster.owner.take(), Some(taken[2].clone()));
    assert_eq!(cluster.owner.take(), Some(taken[6].clone()));
    assert_eq!(cluster.owner.take(), None);
    // The first one too, in whose slot the head lies.
    [0, 1, 2, 5].iter().for_each(|which| cluster.owner.release(&taken[*which]));
    cluster.succeed_owner(&[A]);
    let left: Vec<_> = cluster.owner.drain_payloads();
    assert_eq!(left, [3, 4, 6, 7].map(|which| packed(16)[which].clone()));
}

#[test]
fn a_packed_run_ends_where_a_slot_is_not_of_its_write_and_the_rest_comes_as_it_would_alone() {
    // Epoch, ticket, slots left, sender: of the second slot behind the first.
    for change in [(8, 1), (8, 1 << 32), (8, 1 << 48), (8, 1 << 56), (8, 1 << 63)] {
        let world = world();
        let mut cluster = Cluster::new(&world);
        put_packed(&mut cluster, A, &packed(16));
        flip(&cluster, &world, 2, change);
        assert_eq!(take_payloads(&mut cluster.owner), packed(16)[..4], "{change:?}");
        assert_eq!(take_run(&mut cluster.owner), None, "{change:?}");
        assert_eq!(cluster.owner.take(), None, "{change:?}");
        flip(&cluster, &world, 2, change);
        // Its ticket was missing.
        assert_eq!(take_payloads(&mut cluster.owner), packed(16)[4..5], "{change:?}");
        assert_eq!(take_payloads(&mut cluster.owner), packed(16)[5..], "{change:?}");
    }
    // Epoch, packing, messages: of the first slot, which is no longer one of this write; or of one
    // whose messages have all been taken, and that ends in the same slot.
    for (len, change) in [(16, (8, 1)), (16, (8, 1 << 62)), (16, (8, 1 << 50)), (8, (8, 11 << 48))]
    {
        let world = world();
        let mut cluster = Cluster::new(&world);
        put_packed(&mut cluster, A, &packed(len));
        cluster.owner.take_run(3).unwrap();
        flip(&cluster, &world, 0, change);
        assert_eq!(take_run(&mut cluster.owner), None, "{change:?}");
        flip(&cluster, &world, 0, change);
        // Its ticket was missing.
        assert_eq!(take_payloads(&mut cluster.owner), packed(len)[3..4], "{change:?}");
        assert_eq!(take_payloads(&mut cluster.owner), packed(len)[4..], "{change:?}");
    }
}

/// A lying member writes two packed messages of `sender` to the tickets from `ticket` on.
fn forge(cluster: &Cluster<'_>, world: &World, ticket: u32, sender: u16, sequence: u32) {
    let stride = world.config.stride() as usize;
    let stamp = Stamp { ticket, ..Stamp::from_count(cluster.count()) };
    let mut slots = std::vec![9; 2 * stride];
    let head = Trailer { len: 8, sender, kind: 7, incarnation: 1, ..Trailer::default() };
    head.write(&mut slots[..stride]);
    seal_packed(&mut slots, stride, stamp, (sender, 2, sequence));
    let At { region, offset } = world.regions.slot(&world.config, stamp).end;
    cluster.owner.fabric.copy_in(region, offset - world.config.stride(), &slots);
}

#[test]
fn packed_messages_of_a_sender_that_cannot_be_are_counted_as_forged() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    let config = Config::new(3, 8, 40, STALL).unwrap();
    cluster.owner.mailbox = Mailbox::attach(&cluster.owner.fabric, config, world.regions);
    forge(&cluster, &world, 0, 3, 0);
    assert_eq!(take_run(&mut cluster.owner), None);
    let counters = cluster.owner.mailbox.counters();
    assert_eq!((counters.forged, counters.taken), (1, 0));
}

#[test]
fn packed_messages_out_of_sequence_come_with_evidence() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    put_packed(&mut cluster, A, &packed(8)[..2]);
    assert_eq!(take_payloads(&mut cluster.owner), packed(8)[..2]);
    forge(&cluster, &world, 2, A.0, 5);
    assert_eq!(take_run(&mut cluster.owner).map(|(run, _)| run.count()), Some(1));
    let evidence = Forgery::Sequence { sender: A, due: 2, came: 5 };
    assert_eq!(cluster.owner.mailbox.counters().forgery, Some(evidence));
    assert_eq!(take_run(&mut cluster.owner).map(|(run, _)| run.count()), Some(1));
}

#[test]
fn packed_messages_are_none_where_slots_have_checksums() {
    let world = world_with(8, Placement::Bytes);
    let mut cluster = Cluster::new(&world);
    forge(&cluster, &world, 0, A.0, 0);
    assert_eq!(take_run(&mut cluster.owner), None);
    assert_eq!(cluster.owner.mailbox.counters().taken, 0);
}

/// An earlier owner released a message behind what its successor takes as a run, and behind a
/// message of another, or the gap would end the run.
#[test]
fn a_gap_that_an_earlier_owner_released_behind_a_run_is_no_evidence() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    put_packed(&mut cluster, A, &packed(8)[..2]);
    put(&mut cluster, B, &[b"between"]);
    put_packed(&mut cluster, A, &packed(8)[2..4]);
    let taken = [0, 1, 2, 3, 4].map(|_| cluster.owner.take().unwrap());
    taken[3..].iter().for_each(|it| cluster.owner.release(it));
    cluster.succeed_owner(&[A, B]);
    assert_eq!(cluster.owner.drain_runs(), 3);
    put(&mut cluster, A, &[b"behind"]);
    assert_eq!(cluster.owner.drain_runs(), 1);
    assert_eq!(cluster.owner.mailbox.counters().forgery, None);
}

/// A message was given up and its ticket skipped in the next half, before the run in front of it
/// was taken.
#[test]
fn a_gap_that_was_skipped_in_the_next_half_is_no_evidence_behind_a_run() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    cluster.writer(B).hold_ticket(b"late");
    put_packed(&mut cluster, A, &packed(8)[..4]);
    cluster.owner.turn();
    let writer = cluster.writer(A);
    writer.hold_ticket(b"given up");
    writer.fabric.fail(OWNER);
    assert!(matches!(writer.hear(), Some(PutEvent::Lost { unknown: 1, .. })));
    writer.outbox.discard();
    writer.fabric.reopen(OWNER);
    writer.outbox.readmit(&writer.fabric);
    put(&mut cluster, A, &[b"behind"]);
    // A ticket is missing, and a peer is fenced: the owner asks about all at once.
    assert_eq!(cluster.owner.take(), None);
    cluster.owner.fence(Peer(3));
    cluster.owner.poll();
    cluster.writer(B).finish();
    assert_eq!(take_payloads(&mut cluster.owner), [b"late"]);
    (0..2).for_each(|_| cluster.owner.turn());
    assert_eq!(cluster.owner.mailbox.counters().skipped, 1);
    assert_eq!(cluster.owner.drain_runs(), 5);
    assert_eq!(cluster.owner.mailbox.counters().forgery, None);
}

/// MB-6: what was seen to be given out is found without a poll.
#[test]
fn the_rest_of_a_run_is_found_without_a_poll() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    put_packed(&mut cluster, A, &packed(16));
    let owner = &mut cluster.owner;
    let run = owner.mailbox.take_run(&owner.fabric, owner.now, 3, |_| ());
    assert_eq!(run.map(Run::count), Some(3));
    assert_eq!(owner.mailbox.owed(), 8);
}

#[test]
fn a_run_is_taken_whole_in_a_half_that_is_closed() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    put_packed(&mut cluster, A, &packed(16));
    cluster.owner.turn();
    assert_eq!(Stamp::from_count(cluster.count()), Stamp { epoch: 1, ticket: 0 });
    assert_eq!(take_payloads(&mut cluster.owner), packed(16));
}

/// A liar resets the count before the owner has read it.
#[test]
fn a_run_in_a_closed_half_ends_with_the_tickets_that_were_given_out() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    put_packed(&mut cluster, A, &packed(16));
    let word = world.regions.word();
    let count = Stamp { epoch: 0, ticket: 4 }.to_count();
    cluster.owner.fabric.store(word.region, word.offset, count);
    cluster.owner.turn();
    assert_eq!(Stamp::from_count(cluster.count()).epoch, 1);
    assert_eq!(take_payloads(&mut cluster.owner), packed(16)[..4]);
    assert_eq!((cluster.owner.take(), cluster.owner.mailbox.owed()), (None, 4));
}

#[test]
fn of_a_run_whose_processing_panics_those_are_taken_that_were_handed_out() {
    let world = world();
    let mut cluster = Cluster::new(&world);
    put_packed(&mut cluster, A, &packed(16));
    let (owner, mut count) = (&mut cluster.owner, 0);
    owner.mailbox.look(&owner.fabric, owner.now);
    let run = catch_unwind(AssertUnwindSafe(|| {
        owner.mailbox.take_run(&owner.fabric, owner.now, u32::MAX, |_| {
            count += 1;
            assert!(count < 3, "the third is too much");
        })
    }));
    assert!(run.is_err());
    assert_eq!(owner.mailbox.counters().taken, 3);
    assert_eq!(cluster.owner.drain_payloads(), packed(16)[3..]);
}

/// The end of the write has not arrived, or says that another write ends there.
#[test]
fn a_packed_write_is_not_taken_before_its_end_has_arrived() {
    for change in [(8, 1), (8, 1 << 32), (8, 1 << 48), (8, 1 << 56), (8, 1 << 63)] {
        let world = world();
        let mut cluster = Cluster::new(&world);
        put_packed(&mut cluster, A, &packed(16));
        flip(&cluster, &world, 3, change);
        assert_eq!(take_run(&mut cluster.owner), None, "{change:?}");
        assert_eq!(cluster.owner.take(), None, "{change:?}");
        flip(&cluster, &world, 3, change);
        // Its ticket was missing.
        assert_eq!(take_payloads(&mut cluster.owner), packed(16)[..1], "{change:?}");
        assert_eq!(take_payloads(&mut cluster.owner), packed(16)[1..], "{change:?}");
    }
}

#[test]
fn packed_messages_without_room_in_the_half_stay_staged_and_are_put_into_the_next() {
    for before in 1..8 {
        let world = world();
        let mut cluster = Cluster::new(&world);
        (0..before).for_each(|n| put(&mut cluster, B, &[&[n]]));
        put_packed(&mut cluster, A, &packed(16));
        let staged: Vec<_> = cluster.writer(A).outbox.payloads().map(<[u8]>::to_vec).collect();
        assert_eq!(staged, packed(16)[8 - usize::from(before)..]);
        // Also of another length, behind one that is left or several.
        let last = &[77; 16][..if before % 2 == 0 { 16 } else { 5 }];
        cluster.writer(A).stage(last);
        let mut all = cluster.owner.drain_payloads();
        cluster.owner.wait();
        cluster.writer(A).flush().unwrap();
        cluster.writer(A).finish();
        cluster.writer(A).flush().unwrap();
        cluster.writer(A).finish();
        all.extend(cluster.owner.drain_payloads());
        assert_eq!(all[usize::from(before)..][..8], packed(16));
        assert_eq!(all.last().unwrap(), last, "{before}");
    }
}

#[test]
fn a_full_half_leaves_packed_messages_staged_and_more_can_be_staged_behind_them() {
    for (same, other) in [(0, 1), (1, 0), (1, 1), (2, 1)] {
        let world = world();
        let mut cluster = Cluster::new(&world);
        put_packed(&mut cluster, B, &packed(16));
        let mut due = packed(8)[..3].to_vec();
        due.iter().for_each(|payload| cluster.writer(A).stage(payload));
        cluster.writer(A).flush().unwrap();
        assert_eq!(cluster.writer(A).finish(), Some(PutEvent::Full));
        let more =
            packed(8).into_iter().skip(3).take(same).chain(packed(11).into_iter().take(other));
        for payload in more {
            cluster.writer(A).stage(&payload);
            due.push(payload);
        }
        assert!(cluster.writer(A).outbox.payloads().eq(&due), "{same} {other}");
        assert_eq!(cluster.owner.drain_payloads(), packed(16));
        cluster.owner.wait();
        cluster.writer(A).flush().unwrap();
        cluster.writer(A).finish();
        assert_eq!(cluster.owner.drain_payloads(), due, "{same} {other}");
    }
}

#[test]
fn a_message_of_another_length_or_kind_gives_each_staged_one_its_own_slot() {
    for (kind, len) in [(7, 15), (8, 16), (7, 40)] {
        let world = world();
        let mut cluster = Cluster::new(&world);
        let payloads = &packed(16)[..3];
        payloads.iter().for_each(|payload| cluster.writer(A).stage(payload));
        let outbox = &mut cluster.writer(A).outbox;
        outbox.stage(kind, &[5; 40][..len]).unwrap();
        assert!(outbox.payloads().take(3).eq(payloads), "{kind} {len}");
        assert_eq!(outbox.payloads().last(), Some(&[5; 40][..len]));
        cluster.writer(A).flush().unwrap();
        cluster.writer(A).finish();
        let owner = &mut cluster.owner;
        owner.mailbox.look(&owner.fabric, owner.now);
        let mut found = Vec::new();
        let now = owner.now;
        let deal = |it: &crate::mailbox::Message<'_>| found.push((it.kind, it.payload.to_vec()));
        owner.mailbox.take_run(&owner.fabric, now, 4, deal).unwrap();
        let due = payloads.iter().map(|it| (7, it.clone()));
        assert!(found.into_iter().eq(due.chain([(kind, std::vec![5; len])])), "{kind} {len}");
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
    // As a whole, and from behind the wrap; packed, and not.
    for (limit, last) in [(5, &b"4"[..]), (2, b"4"), (3, b"4"), (5, b"four"), (2, b"four")] {
        let world = world();
        let mut cluster = Cluster::new(&world);
        cluster.writer(A).outbox.count_from(u32::MAX - 1);
        put(&mut cluster, A, &[b"0", b"1", b"2", b"3", last]);
        let (_, mut taken) = cluster.owner.take_run(limit).unwrap();
        if limit < 5 {
            taken.extend(take_run(&mut cluster.owner).unwrap().1);
        }
        assert!(taken.iter().map(|it| it.sequence).eq([u32::MAX - 1, u32::MAX, 0, 1, 2]));
    }
}

#[test]
fn a_batch_has_no_more_messages_packed_than_each_in_its_slot() {
    for len in [8, 40] {
        let world = world();
        let mut cluster = Cluster::new(&world);
        let outbox = &mut cluster.writer(A).outbox;
        let limit = world.config.batch();
        (0..limit).for_each(|_| outbox.stage(7, &[1; 40][..len]).unwrap());
        let one_more = outbox.stage(7, &[1; 40][..len]);
        assert_eq!(one_more, Err(StageError::BatchFull { limit }), "{len} bytes");
        assert_eq!(outbox.staged(), limit);
    }
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

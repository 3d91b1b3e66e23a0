//! Bytes that no correct member writes: counted, never delivered, and survived.

use std::vec::Vec;

use super::harness::{Cluster, World, both_worlds, world, world_with};
use super::{A, B, OWNER};
use crate::fabric::{At, CompletionFlags, Fabric, Memory, Op, Placement, Work, WorkId};
use crate::mailbox::{Forgery, PutEvent, Receipt, UnknownReceipt};
use crate::wire::crc32c;
use crate::wire::slot::{Stamp, TRAILER_LEN, Trailer, seal, used};

const FIRST_TICKET: Stamp = Stamp { epoch: 0, ticket: 0 };

/// The bytes of a slot as a liar would seal it.
fn sealed(trailer: Trailer, payload: &[u8]) -> Vec<u8> {
    let mut slot = std::vec![0; used(payload.len())];
    slot[..payload.len()].copy_from_slice(payload);
    trailer.write(&mut slot);
    seal(&mut slot, trailer.stamp, 1, trailer.sequence, crc32c);
    slot
}

fn trailer(payload: &[u8]) -> Trailer {
    Trailer {
        len: payload.len() as u16,
        sender: A.0,
        sequence: 1,
        stamp: FIRST_TICKET,
        kind: 7,
        incarnation: 1,
        run: 1,
    }
}

/// A reserved ticket 0, wrote `slot` into it and reported the put.
fn with_slot<'net>(world: &'net World, slot: &[u8]) -> Cluster<'net> {
    let mut cluster = Cluster::new(world);
    let word = world.regions.word();
    let end = world.regions.slot(&world.config, FIRST_TICKET).end;
    let to = At { offset: end.offset - slot.len() as u32, ..end };
    post(&mut cluster, Op::FetchAdd { at: word, add: 1 });
    post(&mut cluster, Op::Write { to, bytes: slot });
    cluster
}

/// A posts without its outbox.
fn post(cluster: &mut Cluster<'_>, op: Op<'_>) {
    let (id, flags) = (WorkId(0), CompletionFlags::empty());
    let writer = cluster.writer(A);
    writer.fabric.post(OWNER, Work { id, op, flags }).unwrap();
    writer.land();
    writer.hear();
}

/// The mailbox delivers three times its size, from both writers.
fn assert_works(cluster: &mut Cluster<'_>) {
    for round in 0..24u8 {
        let writer = cluster.writer(if round % 2 == 0 { A } else { B });
        writer.stage(&[round]);
        for _ in 0..8 {
            let writer = cluster.writer(if round % 2 == 0 { A } else { B });
            writer.flush().unwrap();
            if let Some(PutEvent::Put { .. }) = writer.finish() {
                break;
            }
            cluster.owner.drain();
        }
        assert_eq!(cluster.owner.drain_payloads(), [[round]]);
    }
}

#[test]
fn bytes_with_the_right_stamp_and_a_wrong_checksum_are_counted() {
    let world = world(8);
    let mut slot = sealed(trailer(b"lies"), b"lies");
    slot[0] ^= 1;
    let mut cluster = with_slot(&world, &slot);
    assert_eq!(cluster.owner.drain().len(), 0);
    let counters = cluster.owner.mailbox.counters();
    assert!(counters.checksum_failures > 0);
    assert_eq!((counters.skipped, counters.forged), (1, 0));
    assert_works(&mut cluster);
}

/// F-14: where whole words are placed in order, bytes change in no other way than by damage.
#[test]
fn a_message_is_checked_where_words_are_whole_if_the_configuration_says_so() {
    let plain = world_with(8, Placement::WholeWords);
    let checked =
        World { config: plain.config.with_checksums(), ..world_with(8, Placement::WholeWords) };
    let mut slot = sealed(trailer(b"lies"), b"lies");
    slot[0] ^= 1;
    for (world, taken) in [(plain, 1), (checked, 0)] {
        let mut cluster = with_slot(&world, &slot);
        assert_eq!(cluster.owner.drain().len(), taken);
        let failures = cluster.owner.mailbox.counters().checksum_failures;
        assert_eq!(failures == 0, taken == 1, "{failures} failures");
    }
}

/// The owner finds the stamp of the first of two slots of one write.
#[test]
fn a_slot_waits_for_the_end_of_its_write() {
    let world = world_with(8, Placement::WholeWords);
    let mut slot = sealed(trailer(b"first"), b"first");
    seal(&mut slot, FIRST_TICKET, 2, 1, crc32c);
    let mut cluster = with_slot(&world, &slot);
    assert_eq!(cluster.owner.take(), None);
    let last = Stamp { ticket: 1, ..FIRST_TICKET };
    let bytes = sealed(Trailer { stamp: last, sequence: 2, ..trailer(b"last") }, b"last");
    let to = world.regions.slot(&world.config, last).start(4);
    post(&mut cluster, Op::FetchAdd { at: world.regions.word(), add: 1 });
    post(&mut cluster, Op::Write { to, bytes: &bytes });
    assert_eq!(cluster.owner.drain_payloads(), [&b"first"[..], b"last"]);
    // One that ends beyond the half is counted, and not followed.
    let mut slot = sealed(trailer(b"first"), b"first");
    seal(&mut slot, FIRST_TICKET, 9, 1, crc32c);
    let cluster = &mut with_slot(world_with(8, Placement::WholeWords).leaked(), &slot);
    assert_eq!(cluster.owner.take(), None);
    assert!(cluster.owner.mailbox.counters().checksum_failures > 0);
}

#[test]
fn a_length_past_the_slot_is_counted_and_not_followed() {
    let world = world(8);
    let mut slot = sealed(trailer(b"long"), b"long");
    let len = slot.len() - TRAILER_LEN;
    slot[len..len + 2].copy_from_slice(&u16::MAX.to_le_bytes());
    let mut cluster = with_slot(&world, &slot);
    assert_eq!(cluster.owner.drain().len(), 0);
    assert!(cluster.owner.mailbox.counters().checksum_failures > 0);
    assert_works(&mut cluster);
}

#[test]
fn a_sender_that_cannot_be_is_counted_as_forged() {
    let world = world(8);
    let slot = sealed(Trailer { sender: 4, ..trailer(b"me") }, b"me");
    let mut cluster = with_slot(&world, &slot);
    assert_eq!(cluster.owner.drain().len(), 0);
    let counters = cluster.owner.mailbox.counters();
    assert!(counters.forged > 0);
    assert_eq!((counters.skipped, counters.taken), (1, 0));
    assert_works(&mut cluster);
}

#[test]
fn a_message_from_the_past_is_no_message() {
    let world = world(8);
    let stamp = Stamp { epoch: u32::MAX - 1, ticket: 0 };
    let slot = sealed(Trailer { stamp, ..trailer(b"old") }, b"old");
    let mut cluster = with_slot(&world, &slot);
    assert_eq!(cluster.owner.drain().len(), 0);
    assert_eq!(cluster.owner.mailbox.counters().skipped, 1);
    assert_works(&mut cluster);
}

#[test]
fn a_late_write_of_a_fenced_writer_does_not_touch_a_recycled_slot() {
    let mut cluster = Cluster::new(world(2).leaked());
    cluster.writer(A).hold_ticket(b"too late");
    cluster.crash(A);
    cluster.owner.fence(A);
    for round in 0..4u8 {
        cluster.writer(B).put(&[round]);
        if round < 3 {
            cluster.owner.drain();
        }
    }
    cluster.writer(A).land();
    assert_eq!(cluster.owner.drain_payloads(), [[3]]);
}

#[test]
fn a_damaged_word_is_repaired() {
    for add in [1 << 40, 1 << 32, 1 << 31, 3 << 33, u64::MAX << 32] {
        let world = world(8);
        let mut cluster = Cluster::new(&world);
        cluster.writer(B).put(b"before");
        let at = world.regions.word();
        post(&mut cluster, Op::FetchAdd { at, add });
        assert_eq!(cluster.owner.drain_payloads(), [b"before"], "{add:#x}");
        assert_works(&mut cluster);
    }
}

/// MB-11: found by a fuzz target; what was put then came behind later messages of its sender.
#[test]
fn what_was_put_under_a_later_epoch_is_not_found_when_that_comes() {
    for is_succeeded in [false, true] {
        let world = world(4);
        let mut cluster = Cluster::new(&world);
        // Into a slot whose own message is released.
        cluster.writer(A).put(b"before");
        assert_eq!(cluster.owner.drain_payloads(), [b"before"]);
        post(&mut cluster, Op::FetchAdd { at: world.regions.word(), add: (2 << 32) - 1 });
        cluster.writer(B).put(b"stray");
        assert_eq!(cluster.owner.drain().len(), 0);
        assert_eq!(cluster.owner.mailbox.counters().word_repairs, 1);
        if is_succeeded {
            cluster.succeed_owner(&[A, B]);
        }
        for round in 0..20_u8 {
            cluster.writer(A).put(&[round]);
            let found = cluster.owner.drain_payloads();
            assert!(!found.contains(&b"stray".to_vec()), "in round {round}, {is_succeeded}");
        }
    }
}

#[test]
fn a_damaged_epoch_is_counted() {
    let world = world(8);
    let mut cluster = Cluster::new(&world);
    let at = world.regions.word();
    post(&mut cluster, Op::FetchAdd { at, add: 1 << 40 });
    assert_eq!(cluster.owner.drain().len(), 0);
    assert_eq!(cluster.owner.mailbox.counters().word_repairs, 1);
}

/// A successor that trusted the damaged word recognized neither half and lost both.
#[test]
fn a_successor_does_not_trust_a_damaged_word() {
    for add in [1 << 40, 1 << 32, 5 << 32, u64::MAX << 32] {
        let world = world(4);
        let mut cluster = Cluster::new(&world);
        for round in 0..3u8 {
            cluster.writer(B).put(&[round]);
        }
        cluster.owner.turn();
        cluster.writer(B).put(&[3]);
        let at = world.regions.word();
        post(&mut cluster, Op::FetchAdd { at, add });
        cluster.succeed_owner(&[A, B]);
        let expected = [[0], [1], [2], [3]];
        assert_eq!(cluster.owner.drain_payloads(), expected, "{add:#x}");
        assert_works(&mut cluster);
    }
}

/// The word changed although the fabric reported a failure: if its count were reset to zero,
/// tickets of the next half would be given out twice.
#[test]
fn a_half_closed_in_doubt_is_closed_once() {
    let world = world(4);
    let mut cluster = Cluster::new(&world);
    cluster.writer(B).put(&[0]);
    cluster.writer(B).put(&[1]);
    cluster.owner.poll();
    let word = cluster.owner.fabric.memory();
    let (at, next) = (world.regions.word(), 1 << 32);
    assert_eq!(word.load(at.region, at.offset), 2);
    word.store(at.region, at.offset, next);
    cluster.owner.fabric.fail(OWNER);
    cluster.owner.hear();
    cluster.owner.fabric.reopen(OWNER);
    cluster.writer(A).hold_ticket(b"ticket 0");
    cluster.owner.turn();
    assert_eq!(cluster.writer(B).put(&[2]), Some(PutEvent::Put { count: 1, left: 0 }));
    cluster.writer(A).finish();
    let mut payloads = cluster.owner.drain_payloads();
    payloads.sort();
    let expected: [&[u8]; 4] = [&[0], &[1], &[2], b"ticket 0"];
    assert_eq!(payloads, expected);
}

/// Writers that read an implausible count continued to add to it; after 2^32 the sum carries into
/// the epoch.
#[test]
fn no_writer_adds_to_an_implausible_count() {
    let world = world(8);
    let mut cluster = Cluster::new(&world);
    let at = world.regions.word();
    post(&mut cluster, Op::FetchAdd { at, add: 1 << 31 });
    let writer = cluster.writer(B);
    assert_eq!(writer.put(b"again"), Some(PutEvent::TicketUnknown));
    let before = cluster.owner.fabric.load(at.region, at.offset);
    for _ in 0..10 {
        let writer = cluster.writer(B);
        writer.flush().unwrap();
        assert_eq!(writer.finish(), Some(PutEvent::Full));
    }
    assert_eq!(cluster.owner.fabric.load(at.region, at.offset), before);
    cluster.owner.drain();
    cluster.writer(B).flush().unwrap();
    cluster.writer(B).finish();
    assert_eq!(cluster.owner.drain_payloads(), [b"again"]);
    assert_works(&mut cluster);
}

/// The ticket is of an epoch that the owner never opened, and its slot was given to another.
#[test]
fn a_slot_is_not_reused_during_a_write_with_a_damaged_ticket() {
    let world = world(2);
    let mut cluster = Cluster::new(&world);
    let at = world.regions.word();
    post(&mut cluster, Op::FetchAdd { at, add: 1 << 40 });
    cluster.writer(A).hold_ticket(b"misled");
    cluster.owner.drain();
    assert_eq!(cluster.owner.mailbox.owed(), 1, "its slot is waited for");
    let put = Some(PutEvent::Put { count: 1, left: 0 });
    assert_eq!(cluster.writer(B).put(&[0]), put);
    cluster.owner.drain();
    assert_eq!(cluster.writer(B).put(&[1]), put);
    cluster.writer(A).finish();
    let taken = cluster.owner.drain_payloads();
    assert_eq!(taken, [[0], [1]], "nothing is overwritten");
    assert_works(&mut cluster);
}

#[test]
fn a_receipt_that_names_no_taken_message_is_refused() {
    let mut cluster = Cluster::new(world(2).leaked());
    cluster.writer(A).put(b"once");
    let taken = cluster.owner.take().unwrap();
    cluster.owner.release(&taken);
    let owner = &mut cluster.owner;
    for bits in [taken.receipt.to_bits(), 1, 7, 1 << 32, u64::MAX] {
        let receipt = Receipt::from_bits(bits);
        let released = owner.mailbox.release(&owner.fabric, receipt);
        assert_eq!(released, Err(UnknownReceipt), "{bits:#x}");
    }
    assert_eq!(cluster.owner.mailbox.owed(), 0);
    assert_works(&mut cluster);
}

/// The latest evidence, and the number of forged tickets.
fn forged(cluster: &Cluster<'_>) -> (Option<Forgery>, u64) {
    let counters = cluster.owner.mailbox.counters();
    (counters.forgery, counters.forged_tickets)
}

#[test]
fn a_count_that_goes_back_is_noticed() {
    let world = world(8);
    let mut cluster = Cluster::new(&world);
    for round in 0..3u8 {
        cluster.writer(B).put(&[round]);
    }
    assert_eq!(cluster.owner.drain_payloads().len(), 3);
    assert_eq!(forged(&cluster), (None, 0));
    let at = world.regions.word();
    post(&mut cluster, Op::FetchAdd { at, add: 2u64.wrapping_neg() });
    cluster.owner.poll();
    let went_back = Forgery::WentBack { epoch: 0, from: 3, to: 1 };
    assert_eq!(forged(&cluster), (Some(went_back), 2));
}

#[test]
fn tickets_that_no_sender_reserved_are_noticed() {
    let world = world(8);
    let mut cluster = Cluster::new(&world);
    cluster.writer(B).put(b"before");
    let at = world.regions.word();
    post(&mut cluster, Op::FetchAdd { at, add: 2 });
    assert_eq!(cluster.owner.drain_payloads(), [b"before"]);
    let last = Forgery::NotAskedFor { ticket: Stamp { epoch: 0, ticket: 2 } };
    assert_eq!(forged(&cluster), (Some(last), 2));
    assert_works(&mut cluster);
    assert_eq!(forged(&cluster).1, 2);
}

#[test]
fn a_message_in_a_slot_that_was_not_given_out_is_noticed() {
    let world = world(8);
    let mut cluster = Cluster::new(&world);
    let to = world.regions.slot(&world.config, FIRST_TICKET).start(5);
    post(&mut cluster, Op::Write { to, bytes: &sealed(trailer(b"early"), b"early") });
    assert_eq!(cluster.owner.take().unwrap().payload, b"early");
    cluster.owner.poll();
    let not_given = Forgery::NotGivenOut { ticket: FIRST_TICKET };
    assert_eq!(forged(&cluster), (Some(not_given), 1));
    cluster.owner.poll();
    assert_eq!(forged(&cluster).1, 1, "it is noted once");
}

#[test]
fn a_message_that_vanished_is_noticed_with_its_senders_next_one() {
    for world in both_worlds(8) {
        let mut cluster = Cluster::new(&world);
        cluster.writer(B).put(b"first");
        assert_eq!(cluster.owner.drain_payloads(), [b"first"]);
        cluster.writer(B).put(b"vanishes");
        let at = world.regions.word();
        post(&mut cluster, Op::FetchAdd { at, add: 1u64.wrapping_neg() });
        cluster.writer(A).put(b"in its slot");
        cluster.writer(B).put(b"next");
        assert_eq!(cluster.owner.drain_payloads(), [&b"in its slot"[..], b"next"]);
        assert_eq!(forged(&cluster), (Some(Forgery::Sequence { sender: B, due: 1, came: 2 }), 1));
    }
}

/// Lets both halves begin again.
fn turn_over(cluster: &mut Cluster<'_>) {
    for round in 0..4u8 {
        (0..4).for_each(|_| assert!(cluster.writer(B).put(&[round]).is_some()));
        assert_eq!(cluster.owner.drain_payloads(), [[round]; 4]);
    }
}

/// A half that was recovered, had a sender fenced or a ticket skipped shows nothing of that in its
/// next epoch: evidence counts again.
#[test]
fn what_disturbed_a_half_is_over_with_its_epoch() {
    for world in both_worlds(8) {
        let mut cluster = Cluster::new(&world);
        turn_over(&mut cluster);
        cluster.succeed_owner(&[A, B]);
        turn_over(&mut cluster);
        cluster.revive(A);
        turn_over(&mut cluster);
        let (at, before) = (world.regions.word(), forged(&cluster).1);
        (0..3).for_each(|_| assert!(cluster.writer(B).put(b"before").is_some()));
        post(&mut cluster, Op::FetchAdd { at, add: 1 });
        assert_eq!(cluster.owner.drain_payloads(), [b"before"; 3]);
        let (evidence, now) = forged(&cluster);
        assert!(matches!(evidence, Some(Forgery::NotAskedFor { .. })));
        assert_eq!(now, before + 1);
        turn_over(&mut cluster);
        cluster.writer(B).put(b"vanishes");
        post(&mut cluster, Op::FetchAdd { at, add: 1u64.wrapping_neg() });
        cluster.writer(A).put(b"in its slot");
        cluster.writer(B).put(b"next");
        assert_eq!(cluster.owner.drain_payloads(), [&b"in its slot"[..], b"next"]);
        assert!(matches!(forged(&cluster).0, Some(Forgery::Sequence { sender: B, .. })));
    }
}

#[test]
fn a_foreign_epoch_is_noticed_once() {
    let world = world(8);
    let mut cluster = Cluster::new(&world);
    let at = world.regions.word();
    post(&mut cluster, Op::FetchAdd { at, add: 1 << 40 });
    cluster.owner.drain();
    assert_eq!(forged(&cluster), (Some(Forgery::Epoch { open: 0, shown: 256 }), 1));
}

/// A restored message comes behind later ones of its sender.
#[test]
fn a_message_that_comes_again_after_it_was_restored_is_no_evidence() {
    for world in both_worlds(8) {
        let mut cluster = Cluster::new(&world);
        [b"first", b"other"].iter().for_each(|it| assert!(cluster.writer(A).put(*it).is_some()));
        let [first, other] = [0, 1].map(|_| cluster.owner.take().unwrap());
        cluster.owner.mailbox.restore(first.receipt).unwrap();
        assert_eq!(cluster.owner.take(), Some(first));
        cluster.writer(A).put(b"third");
        assert_eq!(cluster.owner.take().unwrap().sequence, other.sequence + 1);
        assert_eq!(cluster.owner.mailbox.counters().forged_tickets, 0);
    }
}

/// Two messages are put twice, and the second is restored when it is the next of the sequence.
#[test]
fn a_restored_message_leaves_the_sequence_as_it_is() {
    for world in both_worlds(8) {
        let mut cluster = Cluster::new(&world);
        let writer = cluster.writer(A);
        [b"first", b"other"].iter().for_each(|payload| writer.stage(*payload));
        writer.flush().unwrap();
        assert_eq!((writer.land(), writer.hear()), (true, None));
        assert!(writer.land(), "all is written, and the writer does not hear of it");
        assert!(matches!(writer.outbox.lose(), Some(PutEvent::Lost { unknown: 2, .. })));
        assert_eq!(writer.hear(), None);
        writer.outbox.readmit(&writer.fabric);
        writer.flush().unwrap();
        assert_eq!(writer.finish(), Some(PutEvent::Put { count: 2, left: 0 }));
        let taken = [0, 1, 2].map(|_| cluster.owner.take().unwrap());
        assert_eq!(taken.each_ref().map(|it| it.sequence), [0, 1, 0]);
        let before = forged(&cluster).1;
        cluster.owner.mailbox.restore(taken[1].receipt).unwrap();
        assert_eq!(cluster.owner.take().as_ref(), Some(&taken[1]));
        assert_eq!(cluster.owner.take().unwrap().sequence, 1);
        assert_eq!(forged(&cluster).1, before, "they follow each other");
    }
}

/// What an earlier owner released lies between what its successor takes of that epoch and what it
/// takes of the next.
#[test]
fn a_gap_that_an_earlier_owner_released_is_no_evidence() {
    for world in both_worlds(8) {
        let mut cluster = Cluster::new(&world);
        (0..4).for_each(|_| assert!(cluster.writer(A).put(b"before").is_some()));
        let taken = [0, 1, 2, 3].map(|_| cluster.owner.take().unwrap());
        taken[2..].iter().for_each(|it| cluster.owner.release(it));
        cluster.succeed_owner(&[A, B]);
        assert_eq!(cluster.owner.drain_payloads(), [b"before"; 2]);
        cluster.writer(A).put(b"behind");
        assert_eq!(cluster.owner.drain_payloads(), [b"behind"]);
        assert_eq!(forged(&cluster), (None, 0));
    }
}

//! MB-7: which senders are asked about a missing ticket, which are waited for, what is skipped.

use std::vec;
use std::vec::Vec;

use super::harness::{Cluster, World, both_worlds, world};
use super::{A, B, OWNER, STALL};
use crate::fabric::{Fabric, Memory, PostError};
use crate::ids::Peer;
use crate::mailbox::PutEvent;
use crate::time::Duration;

const PUT: Option<PutEvent> = Some(PutEvent::Put { count: 1, left: 0 });

/// Both have put a message before; A holds a ticket, and its write is under way.
fn held_ticket(world: &World) -> Cluster<'_> {
    let mut cluster = Cluster::new(world);
    for sender in [A, B] {
        assert_eq!(cluster.writer(sender).put(b"before"), PUT);
        assert_eq!(cluster.owner.drain_payloads(), [b"before"]);
    }
    cluster.writer(A).hold_ticket(b"late");
    cluster
}

#[test]
fn a_live_holder_is_waited_for_however_long() {
    for world in both_worlds(8) {
        let mut cluster = held_ticket(&world);
        for _ in 0..100 {
            assert_eq!(cluster.owner.take(), None);
            cluster.owner.wait();
        }
        assert_eq!(cluster.owner.mailbox.counters().skipped, 0);
        assert!(cluster.owner.mailbox.counters().questioned >= 100);
        assert_eq!(cluster.writer(A).finish(), PUT);
        assert_eq!(cluster.owner.drain_payloads(), [b"late"]);
        assert!(cluster.owner.mailbox.counters().longest_stall >= Duration(100 * STALL.0));
        assert_eq!(cluster.owner.mailbox.poll_timeout(), None, "nothing is missing any more");
    }
}

#[test]
fn others_go_on_past_a_stalled_sender_into_the_next_half() {
    let world = world(4);
    let mut cluster = held_ticket(&world);
    let mut taken = 0;
    for _ in 0..20 {
        if cluster.writer(B).outbox.staged() == 0 {
            cluster.writer(B).stage(b"on and on");
        }
        cluster.writer(B).flush().unwrap();
        cluster.writer(B).finish();
        taken += cluster.owner.drain().len();
    }
    assert_eq!(taken, 5, "one more of this half and all of the next");
    assert_eq!(cluster.writer(A).finish(), PUT);
    assert_eq!(cluster.owner.drain_payloads(), [b"late"]);
    cluster.writer(B).flush().unwrap();
    assert_eq!(cluster.writer(B).finish(), PUT);
    assert_eq!(cluster.owner.drain_payloads(), [b"on and on"]);
}

/// A missing ticket delays only its own sender's later messages, even if this owner has taken
/// none of that sender before: the claim names the ticket.
#[test]
fn a_new_sender_goes_on_past_a_stalled_one() {
    let mut cluster = Cluster::new(world(4).leaked());
    cluster.writer(A).hold_ticket(b"late");
    assert_eq!(cluster.writer(B).put(b"hello"), PUT);
    assert_eq!(cluster.owner.drain_payloads(), [b"hello"]);
    assert_eq!(cluster.writer(A).finish(), PUT);
    assert_eq!(cluster.owner.drain_payloads(), [b"late"]);
}

#[test]
fn a_fenced_holder_is_skipped_at_once() {
    let world = world(8);
    let mut cluster = held_ticket(&world);
    assert_eq!(cluster.owner.take(), None);
    cluster.crash(A);
    cluster.owner.fence(A);
    // One turn asks, the next one hears.
    cluster.owner.turn();
    cluster.owner.turn();
    assert_eq!(cluster.owner.mailbox.counters().skipped, 1, "no time passed");
    assert_eq!(cluster.owner.mailbox.owed(), 0);
    cluster.owner.now = cluster.owner.now.after(STALL);
    assert_eq!(cluster.owner.take(), None);
    assert_eq!(cluster.owner.mailbox.counters().longest_stall, Duration(0), "it was over");
}

#[test]
fn a_dead_sender_that_is_not_fenced_is_waited_for() {
    let world = world(8);
    let mut cluster = held_ticket(&world);
    cluster.crash(A);
    assert_eq!(cluster.owner.drain_payloads(), Vec::<Vec<u8>>::new());
    assert_eq!(cluster.owner.mailbox.counters().skipped, 0);
    cluster.owner.fence(A);
    cluster.owner.drain();
    assert_eq!(cluster.owner.mailbox.counters().skipped, 1);
}

#[test]
fn a_reservation_seen_twice_under_one_number_is_waited_for() {
    let mut cluster = Cluster::new(world(8).leaked());
    let writer = cluster.writer(A);
    writer.stage(b"slow");
    writer.flush().unwrap();
    writer.land();
    // The ticket is given out and its holder does not know it yet.
    assert_eq!(cluster.owner.drain().len(), 0);
    assert_eq!(cluster.owner.mailbox.counters().skipped, 0);
    assert_eq!(cluster.writer(A).finish(), PUT);
    assert_eq!(cluster.owner.drain_payloads(), [b"slow"]);
}

#[test]
fn an_unknown_ticket_is_skipped_and_its_message_put_again() {
    let mut cluster = Cluster::new(world(8).leaked());
    let writer = cluster.writer(A);
    writer.stage(b"again");
    writer.flush().unwrap();
    assert!(writer.fabric.answer_implausibly(OWNER));
    assert_eq!(writer.hear(), Some(PutEvent::TicketUnknown));
    writer.flush().unwrap();
    assert_eq!(writer.finish(), PUT);
    assert_eq!(cluster.owner.drain_payloads(), [b"again"]);
    assert_eq!(cluster.owner.mailbox.counters().skipped, 1);
}

/// A holds back a batch of `count` messages, of which the one that `lost` names never arrives, and
/// B a message before it. A is fenced, and the lost ticket is skipped before A's others are taken.
fn skip_ahead(cluster: &mut Cluster<'_>, count: usize, lost: usize) {
    let stride = cluster.stride();
    let writer = cluster.writer(A);
    (1..count).for_each(|_| writer.stage(b"one of many"));
    writer.hold_ticket(b"the last");
    writer.fabric.tear(OWNER, |byte| byte / stride != lost);
    assert_eq!(cluster.owner.take(), None);
    cluster.crash(A);
    cluster.owner.fence(A);
    cluster.owner.poll();
    assert_eq!(cluster.writer(B).finish(), PUT);
    assert_eq!(cluster.owner.take().unwrap().payload, b"late");
    cluster.owner.turn();
    cluster.owner.turn();
    assert_eq!(cluster.owner.mailbox.counters().skipped, 1);
}

/// MB-14.
#[test]
fn a_gap_that_was_skipped_ahead_of_a_message_is_no_evidence() {
    for lost in 0..4 {
        let mut cluster = Cluster::new(world(8).leaked());
        cluster.writer(B).hold_ticket(b"late");
        skip_ahead(&mut cluster, 4, lost);
        assert_eq!(cluster.owner.drain().len(), 3);
        assert_eq!(cluster.owner.mailbox.counters().forgery, None, "message {lost} is lost");
    }
}

#[test]
fn nor_is_one_that_was_skipped_in_the_next_half() {
    let mut cluster = Cluster::new(world(4).leaked());
    cluster.writer(B).hold_ticket(b"late");
    for payload in [b"first", b"other"] {
        assert_eq!(cluster.writer(A).put(payload), PUT);
    }
    cluster.owner.turn();
    skip_ahead(&mut cluster, 2, 0);
    assert_eq!(cluster.owner.drain().len(), 3);
    assert_eq!(cluster.owner.mailbox.counters().forgery, None);
}

#[test]
fn a_claim_torn_by_the_read_is_read_again() {
    let world = world(8);
    let mut cluster = held_ticket(&world);
    assert_eq!(cluster.owner.take(), None);
    cluster.owner.now = cluster.owner.now.after(STALL);
    cluster.owner.poll();
    cluster.owner.fabric.tear(A, |byte| byte % 2 == 0);
    assert_eq!(cluster.writer(A).finish(), PUT);
    while cluster.owner.fabric.land(A) {
        cluster.owner.hear();
    }
    assert_eq!(cluster.owner.mailbox.counters().skipped, 0);
    assert_eq!(cluster.owner.drain_payloads(), [b"late"]);
}

#[test]
fn a_torn_claim_is_waited_for_until_the_next_incarnation_resets_it() {
    let world = world(8);
    let mut cluster = held_ticket(&world);
    let at = world.regions.claim(OWNER);
    let claims = cluster.writer(A).fabric.memory();
    claims.store(at.region, at.offset, 0x0102_0304);
    cluster.owner.drain();
    assert_eq!(cluster.owner.mailbox.counters().skipped, 0);
    cluster.crash(A);
    cluster.revive(A);
    assert_eq!(cluster.writer(A).put(b"next"), PUT);
    assert_eq!(cluster.owner.drain_payloads(), vec![b"next"]);
    assert_eq!(cluster.owner.mailbox.counters().skipped, 1);
}

/// The write lands between the answer "nothing is under way" and the verdict.
#[test]
fn what_lands_while_claims_are_read_is_not_skipped() {
    let world = world(8);
    let mut cluster = held_ticket(&world);
    assert_eq!(cluster.owner.take(), None);
    cluster.owner.now = cluster.owner.now.after(STALL);
    cluster.owner.poll();
    assert_eq!(cluster.writer(A).finish(), PUT);
    // No take in between: the owner still believes the ticket missing.
    cluster.owner.turn();
    cluster.owner.turn();
    assert_eq!(cluster.owner.mailbox.counters().skipped, 0);
    assert_eq!(cluster.owner.drain_payloads(), [b"late"]);
}

#[test]
fn the_next_in_a_senders_order_does_not_wait_for_any_question() {
    let world = world(8);
    let mut cluster = held_ticket(&world);
    assert_eq!(cluster.writer(B).put(b"at once"), PUT);
    let taken = cluster.owner.take().unwrap();
    assert_eq!(taken.payload, b"at once");
    assert_eq!(cluster.owner.mailbox.counters().questioned, 0);
    // The one before it is missing from now on all the same.
    let now = cluster.owner.now;
    assert_eq!(cluster.owner.mailbox.poll_timeout(), Some(now.after(STALL)));
    assert_eq!(cluster.writer(A).finish(), PUT);
    cluster.owner.now = now.after(Duration(3));
    assert_eq!(cluster.owner.take().unwrap().payload, b"late");
    assert_eq!(cluster.owner.mailbox.counters().longest_stall, Duration(3));
}

/// The pair failed at the writer's side only: its bytes may arrive until the owner fences it.
#[test]
fn a_write_that_failed_is_waited_for_until_its_writer_is_fenced() {
    let world = world(2);
    let mut cluster = held_ticket(&world);
    cluster.writer(A).fabric.fail(OWNER);
    let lost = cluster.writer(A).hear();
    assert!(matches!(lost, Some(PutEvent::Lost { unknown: 1, .. })));
    assert_eq!(cluster.owner.drain().len(), 0);
    assert_eq!(cluster.owner.mailbox.counters().skipped, 0);
    cluster.writer(A).fabric.straggle(|_| true);
    assert_eq!(cluster.owner.drain_payloads(), [b"late"]);
}

/// A sender that reserves without pause is in a different reservation at each read.
#[test]
fn a_busy_sender_does_not_keep_a_question_open() {
    let world = world(8);
    let mut cluster = held_ticket(&world);
    cluster.crash(A);
    assert_eq!(cluster.owner.take(), None);
    cluster.owner.fence(A);
    for round in 0..4 {
        cluster.writer(B).stage(&[round]);
        cluster.writer(B).flush().unwrap();
        // A missing answer is asked for again once per `STALL`.
        cluster.owner.now = cluster.owner.now.after(STALL);
        cluster.owner.turn();
        assert_eq!(cluster.writer(B).finish(), PUT);
    }
    assert_eq!(cluster.owner.mailbox.counters().skipped, 1);
}

/// Over shared memory a writer may stall between its look at the gate and its copy, and copy when
/// the owner's next incarnation has begun.
#[test]
fn an_owner_that_begins_questions_nothing_before_all_are_named() {
    let world = world(8);
    let mut cluster = held_ticket(&world);
    let (incarnation, now) = (cluster.owner.incarnation.next(), cluster.owner.now);
    cluster.owner = super::owner::Owner::attach(&world, incarnation);
    cluster.owner.now = now;
    for _ in 0..4 {
        assert_eq!(cluster.owner.take(), None);
        assert_eq!(cluster.owner.mailbox.poll_timeout(), None);
        cluster.owner.wait();
        assert_eq!(cluster.owner.mailbox.counters().skipped, 0);
    }
    cluster.owner.admit(A, crate::mailbox::tests::harness::FIRST);
    cluster.owner.mailbox.handle_all_named();
    cluster.owner.wait();
    cluster.owner.wait();
    assert_eq!(cluster.owner.mailbox.counters().skipped, 0, "A holds it");
    cluster.writer(A).fabric.admit(OWNER, incarnation).unwrap();
    cluster.writer(A).land();
    assert_eq!(cluster.owner.drain_payloads(), [b"late"]);
}

/// The same over memory that looks fresh: the writer stalls before its fetch-add, and the owner
/// ends before any ticket is given out. The message must not be skipped and reported as put.
#[test]
fn an_owner_of_fresh_memory_questions_nothing_before_all_are_named() {
    let world = world(8);
    let mut cluster = Cluster::new(&world);
    cluster.writer(A).stage(b"late");
    cluster.writer(A).flush().unwrap();
    let incarnation = cluster.owner.incarnation.next();
    cluster.owner = super::owner::Owner::attach(&world, incarnation);
    // To both fabrics the fetch-add is one that passed the gate before.
    cluster.owner.fabric.admit(A, crate::mailbox::tests::harness::FIRST).unwrap();
    cluster.writer(A).fabric.admit(OWNER, incarnation).unwrap();
    assert!(cluster.writer(A).land());
    for _ in 0..4 {
        assert_eq!(cluster.owner.take(), None);
        cluster.owner.wait();
        assert_eq!(cluster.owner.mailbox.counters().skipped, 0, "A was not named");
    }
    cluster.owner.mailbox.handle_admitted(A);
    cluster.owner.mailbox.handle_all_named();
    cluster.owner.wait();
    assert_eq!(cluster.writer(A).finish(), PUT);
    assert_eq!(cluster.owner.drain_payloads(), [b"late"]);
    assert_eq!(cluster.owner.mailbox.counters().forged_tickets, 0);
}

#[test]
fn once_all_are_named_a_ticket_of_a_dead_sender_is_skipped() {
    let world = world(8);
    let mut cluster = held_ticket(&world);
    cluster.succeed_owner(&[B]);
    cluster.owner.drain();
    let counters = cluster.owner.mailbox.counters();
    assert_eq!((counters.skipped, counters.forged_tickets), (1, 0));
}

/// MB-6: a message that has just come in order spares a poll the look at the count, and the last
/// look before a sleep nothing.
#[test]
fn a_message_behind_a_missing_ticket_is_not_slept_through() {
    let world = world(8);
    let mut cluster = Cluster::new(&world);
    assert_eq!(cluster.writer(B).put(b"before"), PUT);
    assert_eq!(cluster.owner.take().unwrap().payload, b"before");
    cluster.writer(A).hold_ticket(b"late");
    assert_eq!(cluster.writer(B).put(b"behind"), PUT);
    let owner = &mut cluster.owner;
    owner.now = owner.now.after(Duration(1));
    owner.poll();
    assert_eq!(owner.mailbox.take(&owner.fabric, owner.now), None);
    assert!(owner.mailbox.has_message(&owner.fabric, owner.now));
    assert_eq!(owner.take().unwrap().payload, b"behind");
}

/// MB-7: the next incarnation of the sender holds a ticket, and is asked for itself.
#[test]
fn an_answer_of_a_fenced_incarnation_says_nothing_about_the_next() {
    let world = world(8);
    let mut cluster = Cluster::new(&world);
    cluster.writer(B).hold_ticket(b"late");
    let answer_of = |cluster: &mut Cluster<'_>, peer| {
        assert!(cluster.owner.fabric.land(peer));
        cluster.owner.hear();
    };
    let ask = |cluster: &mut Cluster<'_>| {
        assert_eq!(cluster.owner.take(), None);
        cluster.owner.now = cluster.owner.now.after(STALL);
        cluster.owner.poll();
    };
    ask(&mut cluster);
    [B, Peer(3)].iter().for_each(|peer| answer_of(&mut cluster, *peer));
    assert!(cluster.owner.fabric.land(A), "it is heard later");
    cluster.revive(A);
    cluster.owner.poll();
    cluster.writer(A).hold_ticket(b"next");
    ask(&mut cluster);
    cluster.owner.hear();
    [B, Peer(3)].iter().for_each(|peer| answer_of(&mut cluster, *peer));
    cluster.owner.poll();
    assert_eq!(cluster.owner.mailbox.counters().skipped, 0, "A holds it");
    [A, B].iter().for_each(|sender| assert_eq!(cluster.writer(*sender).finish(), PUT));
    assert_eq!(cluster.owner.drain_payloads(), [b"late", b"next"]);
}

/// MB-9: a writer that found the half full, which has room again.
fn refused(world: &World) -> Cluster<'_> {
    let mut cluster = Cluster::new(world);
    (0..2).for_each(|_| assert_eq!(cluster.writer(A).put(b"before"), PUT));
    assert_eq!(cluster.writer(A).put(b"again"), Some(PutEvent::Full));
    assert_eq!(cluster.owner.drain_payloads(), [b"before"; 2]);
    cluster
}

/// MB-9: it probes for no room that an earlier connection lacked.
#[test]
fn a_writer_that_is_admitted_again_puts_without_a_probe() {
    let world = world(2);
    let mut cluster = refused(&world);
    let writer = cluster.writer(A);
    assert_eq!(writer.outbox.lose(), None);
    assert_eq!(writer.flush(), Err(PostError::Gone));
    writer.outbox.readmit(&writer.fabric);
    writer.fabric.prompt = true;
    assert_eq!(writer.outbox.flush_now(&mut writer.fabric), Ok(Some(1)));
    assert_eq!(cluster.owner.drain_payloads(), [b"again"]);
}

/// MB-3, MB-9.
#[test]
fn a_writer_probes_a_half_that_was_full_once_and_reports_each_put_once() {
    let world = world(2);
    let mut cluster = refused(&world);
    let writer = cluster.writer(A);
    writer.fabric.prompt = true;
    writer.flush().unwrap();
    assert_eq!(writer.hear(), PUT);
    writer.stage(b"later");
    assert_eq!(writer.outbox.flush_now(&mut writer.fabric), Ok(Some(1)), "without a probe");
    assert_eq!(cluster.owner.drain_payloads(), [b"again", b"later"]);
    let writer = cluster.writer(A);
    writer.stage(b"last");
    writer.flush().unwrap();
    assert_eq!(writer.outbox.lose(), PUT);
    assert_eq!(writer.hear(), None);
}

//! The mailbox and the lane over a device: many writers, halves that fill and are used again,
//! writers and owners that die in between.

use std::thread;

use weft_core::endpoint::Event;
use weft_core::fabric::PostError;
use weft_core::ids::Peer;

use crate::member::{Member, SLOTS, meet, party};
use crate::rig;

const OWNER: Peer = Peer(0);
const A: Peer = Peer(1);
const B: Peer = Peer(2);

fn payload(sender: Peer, number: u32) -> Vec<u8> {
    format!("{sender} says {number}").into_bytes()
}

/// Takes `count` messages of each of the `writers`, each one's in order and as it was put.
fn take_in_order(owner: &mut Member, writers: u16, count: u32) {
    let mut due = vec![0; usize::from(writers) + 1];
    for _ in 0..u32::from(writers) * count {
        let (sender, found) = owner.await_message();
        assert_eq!(found, payload(sender, due[sender.index()]), "of {due:?}");
        due[sender.index()] += 1;
    }
    assert_eq!(owner.take(), None);
    assert_eq!(owner.endpoint.counters().mailbox.skipped, 0);
}

/// Halves of eight slots, hundreds of times full, by batches that do not fit their ends.
#[test]
fn many_writers_fill_half_after_half() {
    const EACH: u32 = 300;
    let Some((mut owner, writers)) = party(3) else { return };
    thread::scope(|scope| {
        for mut writer in writers {
            scope.spawn(move || {
                let me = writer.me();
                let messages: Vec<_> = (0..EACH).map(|number| payload(me, number)).collect();
                for batch in messages.chunks(me.index()) {
                    let batch: Vec<_> = batch.iter().map(Vec::as_slice).collect();
                    writer.put(OWNER, &batch);
                }
            });
        }
        take_in_order(&mut owner, 3, EACH);
    });
    assert_eq!(owner.endpoint.owed(), 0);
}

#[test]
fn a_full_mailbox_says_so_and_goes_on_once_it_is_worked_off() {
    let Some((mut owner, mut writers)) = party(1) else { return };
    let writer = &mut writers[0];
    let mut put = 0;
    let full = loop {
        writer.endpoint.put(OWNER, 0, &payload(A, put)).unwrap();
        let event = rig::until("an event", || writer.turn().pop());
        match event {
            Event::Put { .. } => put += 1,
            other => break other,
        }
        // Closes the first half, and takes nothing.
        owner.turn();
    };
    assert_eq!(full, Event::Full { to: OWNER });
    assert!(put as usize >= SLOTS, "{put}");
    for number in 0..put {
        assert_eq!(owner.await_message(), (A, payload(A, number)));
    }
    writer.endpoint.flush(OWNER).unwrap();
    let (owner, writer) = (&mut owner, &mut *writer);
    let event = rig::until("room", || {
        owner.turn();
        match writer.turn().pop() {
            Some(Event::Full { .. }) => writer.endpoint.flush(OWNER).map(|()| None).unwrap(),
            other => other,
        }
    });
    assert_eq!(event, Event::Put { to: OWNER, count: 1, left: 0 });
    assert_eq!(owner.await_message(), (A, payload(A, put)));
}

/// How far a writer gets with its put before it dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// The device has carried its addition out, and it has not seen the answer.
    Reserving,
    /// It knows its ticket, and its write is not posted.
    Holding,
}

/// Lets `writer` come as far as `death` with a put; the owner has seen the ticket.
fn begin_a_put(owner: &mut Member, writer: &mut Member, death: Death) {
    writer.endpoint.fabric().close();
    writer.endpoint.put(OWNER, 0, b"never").unwrap();
    if matches!(death, Death::Holding) {
        rig::until("a ticket", || {
            assert_eq!(writer.turn(), []);
            (writer.endpoint.fabric().kept() == 1).then_some(())
        });
    }
    rig::until("the ticket at its owner", || {
        owner.turn();
        assert_eq!(owner.take(), None);
        (owner.endpoint.owed() == 1).then_some(())
    });
}

#[test]
fn a_writer_that_dies_with_a_ticket_holds_nobody_up() {
    for death in [Death::Reserving, Death::Holding] {
        let Some((mut owner, mut writers)) = party(2) else { return };
        let (mut b, mut a) = (writers.remove(1), writers.remove(0));
        begin_a_put(&mut owner, &mut a, death);
        // Once it is known whose ticket is missing, the other's message passes it.
        b.put(OWNER, &[b"one"]);
        let passes = matches!(death, Death::Holding);
        if passes {
            assert_eq!(owner.await_message(), (B, b"one".to_vec()));
        }
        let memory = a.memory.clone();
        let incarnation = a.incarnation.next();
        drop(a);
        for _ in 0..1_000 {
            owner.turn();
            assert_eq!(owner.endpoint.counters().mailbox.skipped, 0, "it is not fenced yet");
        }
        owner.endpoint.fence(A).unwrap();
        let mut again = Member::begin(A, incarnation, memory).unwrap();
        meet(&mut owner, &mut again);
        b.put(OWNER, &[b"two"]);
        again.put(OWNER, &[b"again"]);
        let mut taken: Vec<_> =
            (0..if passes { 2 } else { 3 }).map(|_| owner.await_message()).collect();
        taken.sort();
        let expected = [(A, b"again".to_vec()), (B, b"one".to_vec()), (B, b"two".to_vec())];
        let expected: Vec<_> =
            expected.into_iter().filter(|(_, said)| !(passes && said == b"one")).collect();
        assert_eq!(taken, expected, "{death:?}");
        assert_eq!(owner.endpoint.counters().mailbox.skipped, 1, "{death:?}");
    }
}

/// The write of a writer that stood still while it was fenced, and its ticket skipped.
#[test]
fn a_fenced_writers_late_write_changes_no_byte() {
    let Some((mut owner, mut writers)) = party(2) else { return };
    let (mut b, mut late) = (writers.remove(1), writers.remove(0));
    begin_a_put(&mut owner, &mut late, Death::Holding);
    owner.endpoint.fence(A).unwrap();
    rig::until("the ticket to be skipped", || {
        owner.turn();
        (owner.endpoint.counters().mailbox.skipped == 1).then_some(())
    });
    // Its slot is in use again.
    for round in 0..3 * SLOTS as u32 {
        b.put(OWNER, &[&payload(B, round)]);
        assert_eq!(owner.await_message(), (B, payload(B, round)));
    }
    b.put(OWNER, &[b"in its slot"]);
    let before = owner.image();
    assert_eq!(late.endpoint.fabric().open(), [Ok(())], "it does not know yet");
    let event = rig::until("the end of the late write", || late.turn().pop());
    assert!(matches!(event, Event::Lost { peer: OWNER, unknown: 1, .. }), "{event:?}");
    assert!(owner.image() == before, "a byte of the owner's memory changed");
    let fabric = late.endpoint.fabric().end();
    let refused = rig::post(
        fabric,
        OWNER,
        9,
        weft_core::fabric::Op::FetchAdd { at: rig::at(weft_core::fabric::Region(0), 0), add: 1 },
    );
    assert_eq!(refused, Err(PostError::Gone));
    assert_eq!(owner.await_message(), (B, b"in its slot".to_vec()));
}

/// A successor attaches to the memory of an owner that died: what was not released comes again,
/// what was does not, and writers with a put under way learn that it is in doubt.
#[test]
fn an_owner_is_succeeded_over_the_same_memory() {
    let Some((mut owner, mut writers)) = party(2) else { return };
    for writer in &mut writers {
        let me = writer.me();
        writer.put(OWNER, &[&payload(me, 0), &payload(me, 1), &payload(me, 2)]);
    }
    let released = owner.await_message();
    let in_hand = owner.endpoint.take(rig::now()).map(|message| message.payload.to_vec());
    assert!(in_hand.is_some());

    let mut owner = owner.next_life();
    for writer in &mut writers {
        writer.endpoint.fence(OWNER).unwrap();
        meet(&mut owner, writer);
    }
    let mut found: Vec<_> = (0..5).map(|_| owner.await_message()).collect();
    found.push(released);
    found.sort();
    let all = [A, B].into_iter().flat_map(|peer| (0..3).map(move |n| (peer, payload(peer, n))));
    assert_eq!(found, all.collect::<Vec<_>>());
    writers[0].put(OWNER, &[b"on"]);
    assert_eq!(owner.await_message(), (A, b"on".to_vec()));
}

/// Through rings of eight slots, both ways at once.
#[test]
fn lanes_carry_both_ways_and_keep_their_order() {
    const EACH: u32 = 200;
    let Some((mut owner, mut writers)) = party(1) else { return };
    let writer = &mut writers[0];
    let (mut sent, mut taken) = ([0; 2], [0; 2]);
    rig::until("all lane messages", || {
        for (side, member, to) in [(0, &mut owner, A), (1, &mut *writer, OWNER)] {
            let me = member.me();
            // A ring that is full takes none; it is tried again in the next turn.
            if sent[side] < EACH && member.endpoint.send(to, 7, &payload(me, sent[side])).is_ok() {
                sent[side] += 1;
            }
            assert_eq!(member.turn(), []);
            while let Some(message) = member.endpoint.take_lane() {
                let expected = payload(message.sender, taken[side]);
                assert_eq!((message.kind, message.payload), (7, &expected[..]));
                taken[side] += 1;
            }
        }
        (taken == [EACH; 2]).then_some(())
    });
}

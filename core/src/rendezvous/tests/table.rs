//! The table: who gets which value, when it is consumed, and what ends.

use super::*;

/// RZ-1, RZ-4: values of every length, sent before and after they are asked for.
#[test]
fn a_value_of_every_length_meets_its_receiver() {
    let mut nodes = nodes(sizes());
    for (round, len) in [0, 1, 16, 17, 32, 33, 64, 100, 300, 2000].into_iter().enumerate() {
        let place = Place::whole(round as i64);
        let value = pattern(len, round as u8);
        for is_first in [true, false] {
            let mut request = None;
            if !is_first {
                request = Some(nodes[1].receive(&key(0, 1), place));
                run(&mut nodes);
            }
            let offer = nodes[0].send(&key(0, 1), place, &value);
            let request = request.unwrap_or_else(|| nodes[1].receive(&key(0, 1), place));
            run(&mut nodes);
            assert_eq!(nodes[1].take(request), value, "{len} bytes");
            run(&mut nodes);
            assert_eq!(nodes[0].events(), [RendezvousEvent::Consumed { offer }]);
            nodes.iter().for_each(Node::assert_empty);
        }
    }
}

/// RZ-5: two receives of one key get two values, in order.
#[test]
fn values_of_one_key_come_in_order() {
    let mut nodes = nodes(sizes());
    let requests = [(); 2].map(|()| nodes[1].receive(&key(0, 1), STEP));
    run(&mut nodes);
    for seed in 0..2 {
        nodes[0].send(&key(0, 1), STEP, &pattern(90, seed));
    }
    run(&mut nodes);
    assert_eq!(nodes[1].events().len(), 4);
    for (request, seed) in requests.into_iter().zip(0..) {
        assert_eq!(nodes[1].bytes(request), pattern(90, seed));
    }
}

/// A value for the node itself takes no lane.
#[test]
fn a_node_meets_itself() {
    let setup = setup(sizes());
    let mut node = setup.start(2, 1);
    for len in [4, 200] {
        let request = node.receive(&key(2, 2), STEP);
        node.send(&key(2, 2), STEP, &pattern(len, 1));
        run(core::slice::from_mut(&mut node));
        assert_eq!(node.take(request), pattern(len, 1));
        run(core::slice::from_mut(&mut node));
        assert_eq!(node.events().len(), 1);
        node.assert_empty();
    }
}

/// RZ-8.
#[test]
fn a_dead_value_is_delivered_and_takes_no_memory() {
    let mut nodes = nodes(sizes());
    let Node { fabric, adapter } = &mut nodes[0];
    let offer = adapter.send_dead(fabric, Instant(0), (&key(0, 1), STEP)).unwrap();
    let request = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    assert_eq!(nodes[1].events(), ended(request, Received::Dead));
    run(&mut nodes);
    assert_eq!(nodes[0].events(), [RendezvousEvent::Consumed { offer }]);
    nodes.iter().for_each(Node::assert_empty);
}

/// RZ-6: the value stays, and the next receive gets it.
#[test]
fn a_value_that_is_not_expected_stays() {
    let mut nodes = nodes(sizes());
    for len in [8, 120] {
        nodes[0].send(&key(0, 1), STEP, &pattern(len, 0));
        let expect = Expect { dtype: Some(Dtype::F32), ..Expect::any() };
        let Node { fabric, adapter } = &mut nodes[1];
        let how = (expect, LATE);
        let refused = adapter.receive(fabric, Instant(0), (&key(0, 1), STEP), how).unwrap();
        run(&mut nodes);
        let found = Shape::new(Dtype::U8, &[len as u64]).unwrap();
        assert_eq!(nodes[1].events(), ended(refused, Received::Mismatch(found)));
        let request = nodes[1].receive(&key(0, 1), STEP);
        run(&mut nodes);
        assert_eq!(nodes[1].take(request), pattern(len, 0));
        run(&mut nodes);
        assert_eq!(nodes[0].events().len(), 1);
    }
    nodes.iter().for_each(Node::assert_empty);
}

/// RZ-3: parts are values of their own under one key.
#[test]
fn parts_of_a_value_are_received_apart() {
    let mut nodes = nodes(sizes());
    let whole = pattern(150, 3);
    let shape = Shape::new(Dtype::U8, &[150]).unwrap();
    let places = [1, 0].map(|part| Place { step: 1, part, parts: 2 });
    let requests = places.map(|place| nodes[1].receive(&key(0, 1), place));
    for (place, bytes) in places.into_iter().zip([&whole[100..], &whole[..100]]) {
        let Node { fabric, adapter } = &mut nodes[0];
        adapter.send_bytes(fabric, Instant(0), (&key(0, 1), place), (shape, bytes)).unwrap();
    }
    run(&mut nodes);
    assert_eq!(nodes[1].events().len(), 4);
    assert_eq!(nodes[1].bytes(requests[1]), whole[..100]);
    assert_eq!(nodes[1].bytes(requests[0]), whole[100..]);
}

/// RZ-4, RZ-12: a receive that finds no value ends at its deadline, and its waiter with it.
#[test]
fn a_deadline_ends_the_request_and_its_waiter() {
    let mut nodes = nodes(sizes());
    let request = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    assert_eq!(nodes[0].adapter.used(), [0, 0, 1]);
    assert_eq!(nodes[1].adapter.poll_timeout(), Some(LATE));
    nodes[1].poll(LATE);
    assert_eq!(nodes[1].events(), ended(request, Received::TimedOut));
    // Without a word of the requester, too.
    nodes[0].adapter.handle_timeout(LATE);
    nodes.iter().for_each(Node::assert_empty);
    run(&mut nodes);
    nodes.iter().for_each(Node::assert_empty);
}

/// RZ-12: `Ended` at once, `Returned` when no read is out.
#[test]
fn memory_is_returned_when_its_reads_are_in() {
    let mut nodes = nodes(sizes());
    nodes[0].send(&key(0, 1), STEP, &pattern(100, 0));
    let request = nodes[1].receive(&key(0, 1), STEP);
    nodes[0].poll(Instant(0));
    let Node { fabric, adapter } = &mut nodes[1];
    adapter.poll(fabric, Instant(0));
    nodes[1].cancel(request);
    let outcome = Received::Cancelled;
    assert_eq!(nodes[1].events(), [RendezvousEvent::Ended { request, outcome }]);
    assert!(!nodes[1].adapter.landings().is_whole());
    assert_eq!(nodes[1].adapter.quarantined(), 100);
    nodes[1].complete();
    assert_eq!(nodes[1].events(), [RendezvousEvent::Returned { request }]);
    assert!(nodes[1].adapter.landings().is_whole());
    run(&mut nodes);
    // RZ-13: the value is still there.
    let request = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    assert_eq!(nodes[1].take(request), pattern(100, 0));
}

/// RZ-13: a receive that is cancelled at any moment loses no value.
#[test]
fn a_cancelled_receive_leaves_the_value() {
    for (len, polls) in [(8, 0), (8, 1), (8, 2), (8, 3), (100, 0), (100, 1), (100, 2), (100, 3)] {
        let setup = setup(sizes());
        let mut nodes = setup.nodes();
        let request = nodes[1].receive(&key(0, 1), STEP);
        nodes[0].send(&key(0, 1), STEP, &pattern(len, 9));
        for _ in 0..polls {
            nodes.iter_mut().for_each(|node| node.poll(Instant(0)));
        }
        nodes[1].cancel(request);
        run(&mut nodes);
        let events = nodes[1].events();
        assert_eq!(events.len(), 2, "{len} {polls}");
        let request = match nodes[1].adapter.tensor(request) {
            Some(_) => request,
            None => {
                let again = nodes[1].receive(&key(0, 1), STEP);
                run(&mut nodes);
                assert_eq!(nodes[1].events(), ended(again, Received::Value));
                again
            }
        };
        assert_eq!(nodes[1].bytes(request), pattern(len, 9));
        nodes[1].adapter.release(request).unwrap();
        assert_consumed(&mut nodes);
    }
}

/// RZ-7: an end of a step reaches those that wait, drops values, and stands.
#[test]
fn a_step_that_is_over_answers_so() {
    let mut nodes = nodes(sizes());
    let waits = nodes[1].receive(&key(0, 1), STEP);
    nodes[0].send(&key(0, 2), STEP, &pattern(200, 0));
    run(&mut nodes);
    nodes[0].adapter.abort(STEP.step);
    nodes[0].adapter.cleanup(STEP.step);
    run(&mut nodes);
    assert_eq!(nodes[1].events(), ended(waits, Received::Aborted));
    let late = nodes[2].receive(&key(0, 2), STEP);
    run(&mut nodes);
    assert_eq!(nodes[2].events(), ended(late, Received::Aborted));
    let Node { fabric, adapter } = &mut nodes[0];
    let dead = adapter.send_dead(fabric, Instant(0), (&key(0, 1), STEP));
    assert_eq!(dead, Err(OfferError::Aborted));
    let how = (Expect::any(), LATE);
    let receive = adapter.receive(fabric, Instant(0), (&key(1, 0), STEP), how);
    assert_eq!(receive, Err(ReceiveError::Aborted));
    run(&mut nodes);
    nodes.iter().for_each(Node::assert_empty);
}

/// RZ-7: a value that is being read is dropped when its reader has done with it.
#[test]
fn a_step_that_is_over_keeps_what_is_lent() {
    let mut nodes = nodes(sizes());
    nodes[0].send(&key(0, 1), STEP, &pattern(100, 4));
    let request = nodes[1].receive(&key(0, 1), STEP);
    nodes[0].poll(Instant(0));
    nodes[0].adapter.cleanup_all();
    assert!(!nodes[0].adapter.offers().is_whole());
    run(&mut nodes);
    assert_eq!(nodes[1].take(request), pattern(100, 4));
    assert_consumed(&mut nodes);
}

/// RZ-5, RZ-15: what a reader was lent when it died is offered to its next incarnation.
#[test]
fn a_value_survives_its_reader() {
    let setup = setup(sizes());
    let mut nodes = setup.nodes();
    nodes[0].send(&key(0, 1), STEP, &pattern(100, 4));
    nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    // The value has landed, but the caller was not informed.
    setup.restart(&mut nodes, 1, &[0, 2]);
    let request = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    assert_eq!(nodes[1].take(request), pattern(100, 4));
    assert_consumed(&mut nodes);
}

/// RZ-15: what was asked of an incarnation that ended ends; a key may name a boot.
#[test]
fn a_source_that_begins_again_ends_its_requests() {
    let setup = setup(sizes());
    let mut nodes = setup.nodes();
    let old = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    setup.restart(&mut nodes, 0, &[1, 2]);
    assert_eq!(nodes[1].events(), ended(old, Received::PeerGone));
    let first_boot = Key::new((Peer(0), Some(1)), Peer(1), ("edge", "0:0")).unwrap();
    let request = nodes[1].receive(&first_boot, STEP);
    run(&mut nodes);
    assert_eq!(nodes[1].events(), ended(request, Received::SourceReborn));
    nodes.iter().for_each(Node::assert_empty);
}

#[test]
fn a_removed_source_ends_its_requests_and_is_asked_no_more() {
    let mut nodes = nodes(sizes());
    let request = nodes[1].receive(&key(0, 1), STEP);
    let Node { fabric, adapter } = &mut nodes[1];
    adapter
        .remove(
            fabric,
            Decision { term: Term::of_epoch(1), removed: Peer(0), last: Incarnation(1) },
        )
        .unwrap();
    let how = (Expect::any(), LATE);
    let refused = adapter.receive(fabric, Instant(0), (&key(0, 1), STEP), how);
    assert_eq!(refused, Err(ReceiveError::PeerGone));
    assert_eq!(nodes[1].events(), ended(request, Received::PeerGone));
}

/// A member that was removed and comes back sends and receives again.
#[test]
fn a_removed_member_that_comes_back_is_asked_again() {
    let setup = setup(sizes());
    let mut nodes = setup.nodes();
    let decision = Decision { term: Term::of_epoch(1), removed: Peer(0), last: Incarnation(1) };
    for other in [1, 2] {
        let Node { fabric, adapter } = &mut nodes[other];
        adapter.remove(fabric, decision).unwrap();
        assert!(!adapter.live().contains(Peer(0)));
    }
    nodes[0] = setup.start(0, 2);
    for other in [1, 2] {
        nodes[other].admit(0, 2);
        nodes[0].admit(other as u16, 1);
        // One that learns of the decision late does not fence the later epoch.
        let Node { fabric, adapter } = &mut nodes[other];
        adapter.remove(fabric, Decision { term: Term::of_epoch(2), ..decision }).unwrap();
        assert!(adapter.live().contains(Peer(0)));
    }
    let request = nodes[1].receive(&key(0, 1), STEP);
    nodes[0].send(&key(0, 1), STEP, b"again");
    run(&mut nodes);
    assert_eq!(nodes[1].bytes(request), b"again");
}

/// RZ-4: waiters are bounded, for each peer by its share.
#[test]
fn a_peer_takes_its_share_of_waiters_alone() {
    let mut nodes = nodes(sizes());
    let requests: Vec<_> =
        (0..3).map(|step| nodes[1].receive(&key(0, 1), Place::whole(step))).collect();
    run(&mut nodes);
    assert_eq!(nodes[1].events(), ended(requests[2], Received::NoSpace));
    nodes[2].receive(&key(0, 2), STEP);
    run(&mut nodes);
    assert_eq!(nodes[0].adapter.used(), [0, 0, 3]);
}

/// RZ-4: full is an error, and nothing is lost by it.
#[test]
fn full_tables_and_pools_refuse() {
    let setup = setup(sizes());
    let mut node = setup.start(0, 1);
    let Node { fabric, adapter } = &mut node;
    let bytes = |len: u64| Shape::new(Dtype::U8, &[len]).unwrap();
    assert_eq!(adapter.reserve(bytes(4097), 4097), Err(OfferError::TooLong));
    let half = adapter.reserve(bytes(2048), 2048).unwrap();
    assert_eq!(adapter.reserve(bytes(4096), 4096), Err(OfferError::NoSpace));
    let refused = adapter.send(fabric, Instant(0), (&key(1, 0), STEP), half);
    let Err((OfferError::NotMine, half)) = refused else { panic!("{refused:?}") };
    adapter.discard(half);
    for _ in 0..SLOTS {
        adapter.send_dead(fabric, Instant(0), (&key(0, 1), STEP)).unwrap();
    }
    let full = adapter.send_dead(fabric, Instant(0), (&key(0, 1), STEP));
    assert_eq!(full, Err(OfferError::Full));
    assert!(adapter.offers().is_whole());
}

/// RZ-10: a landing that does not fit now waits for one to be released, and one that never fits
/// ends.
#[test]
fn a_value_waits_for_a_landing() {
    let mut nodes = nodes(RendezvousSizes { landing_leaves: 2, ..sizes() });
    let values = [100, 120].map(|len| pattern(len, 1));
    let requests = [0, 1].map(|step| nodes[1].receive(&key(0, 1), Place::whole(step)));
    for (value, step) in values.iter().zip(0..) {
        nodes[0].send(&key(0, 1), Place::whole(step), value);
        run(&mut nodes);
    }
    assert_eq!(nodes[1].take(requests[0]), values[0]);
    run(&mut nodes);
    assert_eq!(nodes[1].take(requests[1]), values[1]);
    nodes[0].send(&key(0, 1), STEP, &pattern(129, 0));
    let request = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    assert_eq!(nodes[1].events(), ended(request, Received::TooLarge));
}

/// Fetches all that is handed over to a node; the tokens.
fn fetch(node: &mut Node<'_>, is_there: bool) -> Vec<(Peer, u64)> {
    let mut fetched = Vec::new();
    while let Some(hand_over) = node.adapter.poll_hand_over() {
        fetched.push((hand_over.source, hand_over.token));
        node.adapter.handle_handed_over(hand_over.request, is_there).unwrap();
        let again = node.adapter.handle_handed_over(hand_over.request, is_there);
        assert_eq!(again, Err(UnknownRequest));
    }
    fetched
}

fn hand_over(node: &mut Node<'_>, token: u64) -> OfferId {
    let shape = Shape::new(Dtype::F64, &[1 << 40]).unwrap();
    let Node { fabric, adapter } = node;
    adapter.hand_over(fabric, Instant(0), (&key(0, 1), STEP), (shape, token)).unwrap()
}

/// RZ-18: a value of any length takes no memory here; refused, it stays and comes again.
#[test]
fn rz18_a_value_is_handed_over_outside_of_the_pools() {
    let mut nodes = nodes(sizes());
    let offer = hand_over(&mut nodes[0], u64::MAX);
    let refused = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    assert!(nodes[0].adapter.offers().is_whole() && nodes[1].adapter.landings().is_whole());
    assert_eq!(nodes[1].events(), [], "it is not there yet");
    assert_eq!(fetch(&mut nodes[1], false), [(Peer(0), u64::MAX)]);
    assert_eq!(nodes[1].events(), ended(refused, Received::NotHandedOver));
    run(&mut nodes);
    assert_eq!(nodes[0].events(), [], "it is there still");
    let request = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    assert_eq!(fetch(&mut nodes[1], true), [(Peer(0), u64::MAX)]);
    assert_eq!(nodes[1].events(), ended(request, Received::Value));
    assert_eq!(nodes[1].adapter.tensor(request), None, "it lies elsewhere");
    nodes[1].adapter.release(request).unwrap();
    run(&mut nodes);
    assert_eq!(nodes[0].events(), [RendezvousEvent::Consumed { offer }]);
    nodes.iter().for_each(Node::assert_empty);
}

/// RZ-18, RZ-13: what comes after the end of its receive is not its.
#[test]
fn rz18_a_receive_that_ended_while_it_was_fetched_leaves_the_value() {
    let mut nodes = nodes(sizes());
    hand_over(&mut nodes[0], 7);
    let request = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    let hand_over = nodes[1].adapter.poll_hand_over().unwrap();
    assert_eq!(nodes[1].adapter.poll_hand_over(), None, "each once");
    nodes[1].cancel(request);
    assert_eq!(nodes[1].events(), ended(request, Received::Cancelled));
    assert_eq!(nodes[1].adapter.handle_handed_over(hand_over.request, true), Err(UnknownRequest));
    nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    assert_eq!(fetch(&mut nodes[1], true), [(Peer(0), 7)]);
}

/// RZ-15: what no incarnation has been sent yet is asked of the next.
#[test]
fn a_request_that_was_not_sent_is_sent_to_the_next_incarnation() {
    let setup = setup(sizes());
    let mut nodes = setup.nodes();
    // The lane has room for four.
    let ask = |step| nodes[1].receive(&key(0, 1), Place::whole(step));
    let requests: Vec<_> = (0..6).map(ask).collect();
    setup.restart(&mut nodes, 0, &[1]);
    let gone: Vec<_> = requests[..4].iter().flat_map(|it| ended(*it, Received::PeerGone)).collect();
    let events = nodes[1].events();
    assert!(events.len() == 8 && gone.iter().all(|event| events.contains(event)), "{events:?}");
    nodes[0].send(&key(0, 1), Place::whole(5), b"late");
    run(&mut nodes[..2]);
    assert_eq!(nodes[1].take(requests[5]), b"late");
}

/// RZ-13: a request that has lent no memory is taken back without an answer.
#[test]
fn a_cancel_of_what_lent_nothing_is_not_answered() {
    let mut nodes = nodes(sizes());
    let request = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    nodes[1].cancel(request);
    run(&mut nodes);
    assert_eq!(nodes[1].events(), ended(request, Received::Cancelled));
    assert_eq!(nodes[1].adapter.rejects(), MessageRejects::default());
    nodes.iter().for_each(Node::assert_empty);
}

/// RZ-10: at most 4 reads of a value are out, and 8 of a peer.
#[test]
fn a_poll_begins_no_more_than_eight_reads_of_a_peer() {
    let mut nodes = nodes(sizes());
    let places = [0, 1, 2].map(Place::whole);
    for place in &places {
        nodes[0].send(&key(0, 1), *place, &pattern(200, 0));
    }
    let requests = places.map(|place| nodes[1].receive(&key(0, 1), place));
    nodes[0].poll(Instant(0));
    let Node { fabric, adapter } = &mut nodes[1];
    adapter.poll(fabric, Instant(0));
    let mut done = [Completion::NONE; 32];
    let count = fabric.poll(Instant(0), &mut done);
    assert_eq!(count, 8);
    done[..count].iter().for_each(|it| adapter.handle_completion(fabric, it));
    run(&mut nodes);
    requests.iter().for_each(|it| assert_eq!(nodes[1].bytes(*it), pattern(200, 0)));
}

#[test]
fn a_value_of_a_wrong_name_is_refused() {
    let setup = setup(sizes());
    let Node { mut fabric, mut adapter } = setup.start(0, 1);
    let other_boot = Key::new((Peer(0), Some(9)), Peer(1), ("edge", "0:0")).unwrap();
    for wrong in [other_boot, key(0, 3)] {
        let refused = adapter.send_dead(&mut fabric, Instant(0), (&wrong, STEP));
        assert_eq!(refused, Err(OfferError::NotMine));
    }
    let part = Place { parts: 2, ..STEP };
    let value = (Shape::new(Dtype::U8, &[1]).unwrap(), 7);
    let refused = adapter.hand_over(&mut fabric, Instant(0), (&key(0, 1), part), value);
    assert_eq!((refused, adapter.used()), (Err(OfferError::BadShape), [0; 3]));
}

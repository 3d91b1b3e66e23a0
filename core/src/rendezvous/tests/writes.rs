//! The path write: what is lent, written, grown, cancelled, and returned.

use super::*;

fn write() -> RendezvousSizes {
    RendezvousSizes { path: Path::Write, ..sizes() }
}

/// Polls both once: each sees what the other has sent before.
fn turn(nodes: &mut [Node<'_>]) {
    nodes.iter_mut().for_each(|node| node.poll(Instant(0)));
}

/// RZ-1: values of every length, sent before and after they are asked for.
#[test]
fn a_value_of_every_length_is_written() {
    let mut nodes = nodes(write());
    for (round, len) in [0, 1, 16, 17, 32, 33, 64, 100, 300, 2000].into_iter().enumerate() {
        let place = Place::whole(round as i64);
        let value = pattern(len, round as u8);
        for is_first in [true, false] {
            let request = (!is_first).then(|| nodes[1].receive(&key(0, 1), place));
            run(&mut nodes);
            let offer = nodes[0].send(&key(0, 1), place, &value);
            let request = request.unwrap_or_else(|| nodes[1].receive(&key(0, 1), place));
            run(&mut nodes);
            assert_eq!(nodes[1].take(request), value, "{len} bytes");
            run(&mut nodes);
            assert_eq!(nodes[0].events(), [RendezvousEvent::Consumed { offer }]);
            nodes.iter().for_each(Node::assert_empty);
        }
    }
    for node in &nodes {
        assert_eq!(node.adapter.rejects(), MessageRejects::default());
    }
}

/// RZ-2: the second value of a key is written without a question; one that has grown is not.
#[test]
fn rz2_a_value_as_long_as_the_last_one_costs_one_message_less() {
    let mut nodes = nodes(write());
    let mut rounds = Vec::new();
    for (step, len) in [(0, 100), (1, 100), (2, 300), (3, 300), (4, 90)] {
        let value = pattern(len, step as u8);
        nodes[0].send(&key(0, 1), Place::whole(step), &value);
        let request = nodes[1].receive(&key(0, 1), Place::whole(step));
        let mut turns = 0;
        while nodes[1].adapter.tensor(request).is_none() {
            turn(&mut nodes);
            turns += 1;
        }
        rounds.push(turns);
        assert_eq!(nodes[1].take(request), value);
        assert_consumed(&mut nodes);
    }
    let [cold, warm, grown, again, shorter] = rounds[..] else { panic!("{rounds:?}") };
    assert!(warm < cold && again < grown && shorter == warm, "{rounds:?}");
}

/// RZ-12: memory that was lent is returned when the source has answered, at any moment of it.
#[test]
fn rz12_a_cancel_returns_what_was_lent_once_nothing_is_written_there() {
    let mut nodes = nodes(write());
    for is_warm in [false, true] {
        for turns in 0..12 {
            let step = Place::whole(turns);
            if turns % 2 == 0 {
                nodes[0].send(&key(0, 1), step, &pattern(200, 1));
            }
            let request = nodes[1].receive(&key(0, 1), step);
            for _ in 0..turns {
                turn(&mut nodes);
            }
            nodes[1].cancel(request);
            let quarantined = nodes[1].adapter.quarantined();
            assert!(quarantined == 0 || !nodes[1].adapter.landings().is_whole());
            run(&mut nodes);
            let events = nodes[1].events();
            let end = if events == ended(request, Received::Value) { 1 } else { 0 };
            assert!(end == 1 || events == ended(request, Received::Cancelled), "{events:?}");
            nodes[1].adapter.release(request).unwrap_or_default();
            run(&mut nodes);
            if end == 0 && turns % 2 == 0 {
                let again = nodes[1].receive(&key(0, 1), step);
                run(&mut nodes);
                assert_eq!(nodes[1].take(again), pattern(200, 1), "warm: {is_warm}, {turns}");
                run(&mut nodes);
            }
            nodes[0].events();
            nodes.iter().for_each(Node::assert_empty);
            let rejects = [0, 1].map(|at| nodes[at].adapter.rejects());
            assert_eq!(rejects, [MessageRejects::default(); 2], "there is one answer, {turns}");
        }
    }
}

/// RZ-12, RZ-15: or once the source is fenced; what was being written stays its own.
#[test]
fn rz12_a_fence_returns_what_was_lent() {
    for turns in 0..8 {
        let setup = setup(write());
        let mut nodes = setup.nodes();
        nodes[0].send(&key(0, 1), STEP, &pattern(200, 1));
        let request = nodes[1].receive(&key(0, 1), STEP);
        for _ in 0..turns {
            turn(&mut nodes);
        }
        nodes[1].fence(0);
        nodes[0].fence(1);
        nodes[0].poll(Instant(0));
        nodes[1].poll(Instant(0));
        let events = nodes[1].events();
        assert_eq!(events.len(), 2, "{turns}: {events:?}");
        if nodes[1].adapter.release(request).is_err() {
            assert!(nodes[1].adapter.landings().is_whole());
        }
        // Unless it was consumed, the value is there for the next incarnation.
        nodes[0].events();
        setup.restart(&mut nodes, 1, &[0]);
        if nodes[0].adapter.used() != [0; 3] {
            let again = nodes[1].receive(&key(0, 1), STEP);
            run(&mut nodes[..2]);
            assert_eq!(nodes[1].take(again), pattern(200, 1), "{turns}");
        }
    }
}

/// RZ-6: a value that is not expected is refused before memory is lent, or after it was written.
#[test]
fn a_value_that_is_not_expected_stays_where_it_was() {
    let mut nodes = nodes(write());
    for step in 0..2 {
        let place = Place::whole(step);
        nodes[0].send(&key(0, 1), place, &pattern(90, 3));
        let expect = Expect { bytes_max: Some(80), ..Expect::any() };
        let Node { fabric, adapter } = &mut nodes[1];
        let how = (expect, LATE);
        let refused = adapter.receive(fabric, Instant(0), (&key(0, 1), place), how).unwrap();
        run(&mut nodes);
        let shape = Shape::new(Dtype::U8, &[90]).unwrap();
        assert_eq!(nodes[1].events(), ended(refused, Received::Mismatch(shape)));
        run(&mut nodes);
        let request = nodes[1].receive(&key(0, 1), place);
        run(&mut nodes);
        assert_eq!(nodes[1].take(request), pattern(90, 3));
        assert_consumed(&mut nodes);
    }
}

/// RZ-7: a step that ends while its value is written ends when that is over.
#[test]
fn a_step_that_is_over_keeps_what_is_written() {
    let mut nodes = nodes(write());
    for turns in 0..8 {
        let place = Place::whole(turns);
        nodes[0].send(&key(0, 1), place, &pattern(200, 4));
        let request = nodes[1].receive(&key(0, 1), place);
        for _ in 0..turns {
            turn(&mut nodes);
        }
        nodes[0].adapter.cleanup(turns);
        run(&mut nodes);
        let events = nodes[1].events();
        let outcomes = [Received::Value, Received::StepOver];
        assert!(outcomes.iter().any(|it| events == ended(request, *it)), "{events:?}");
        nodes[1].adapter.release(request).unwrap_or_default();
        run(&mut nodes);
        nodes[0].events();
        nodes.iter().for_each(Node::assert_empty);
    }
}

/// RZ-13: a source that writes answers a cancel when no write is out.
#[test]
fn rz13_a_cancel_is_answered_once_no_write_is_out() {
    let mut nodes = nodes(write());
    nodes[0].send(&key(0, 1), STEP, &pattern(200, 1));
    let request = nodes[1].receive(&key(0, 1), STEP);
    turn(&mut nodes);
    // It is lent memory and posts its writes; their completions are not polled.
    let poll_alone = |Node { fabric, adapter }: &mut Node<'_>| adapter.poll(fabric, Instant(0));
    poll_alone(&mut nodes[0]);
    nodes[1].cancel(request);
    poll_alone(&mut nodes[0]);
    nodes[1].poll(Instant(0));
    let outcome = Received::Cancelled;
    assert_eq!(nodes[1].events(), [RendezvousEvent::Ended { request, outcome }]);
    assert_eq!(nodes[1].adapter.quarantined(), 200);
    run(&mut nodes);
    assert_eq!(nodes[1].events(), [RendezvousEvent::Returned { request }]);
    let again = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    assert_eq!(nodes[1].take(again), pattern(200, 1));
    assert_consumed(&mut nodes);
}

/// RZ-10: a value that waits for a landing keeps no message back.
#[test]
fn a_value_that_waits_for_a_landing_is_written_once_there_is_room() {
    let mut nodes = nodes(RendezvousSizes { landing_leaves: 2, ..write() });
    let [waits, first] = [1, 0].map(|step| nodes[1].receive(&key(0, 1), Place::whole(step)));
    for (step, len) in [(0, 100), (1, 120)] {
        nodes[0].send(&key(0, 1), Place::whole(step), &pattern(len, 1));
        run(&mut nodes);
    }
    assert_eq!(nodes[1].events(), ended(first, Received::Value));
    run(&mut nodes);
    assert!(matches!(nodes[0].events()[..], [RendezvousEvent::Consumed { .. }]));
    nodes[1].adapter.release(first).unwrap();
    run(&mut nodes);
    assert_eq!(nodes[1].take(waits), pattern(120, 1));
    assert_consumed(&mut nodes);
}

/// RZ-13: what the source sent before the cancel reached it is the answer, and the only one.
#[test]
fn rz13_a_value_that_crosses_its_cancel_answers_it() {
    let mut nodes = nodes(write());
    nodes[0].send(&key(0, 1), STEP, &pattern(100, 1));
    let request = nodes[1].receive(&key(0, 1), STEP);
    turn(&mut nodes);
    // The first poll writes it, the second sends that it is written.
    (0..2).for_each(|_| nodes[0].poll(Instant(0)));
    nodes[1].cancel(request);
    run(&mut nodes);
    assert_eq!(nodes[1].events(), ended(request, Received::Cancelled));
    assert_eq!(nodes[1].adapter.rejects(), MessageRejects::default());
    let again = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    assert_eq!(nodes[1].take(again), pattern(100, 1));
    assert_consumed(&mut nodes);
}

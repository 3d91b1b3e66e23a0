//! Values that no memory of the fabric holds, and that come in parts.

use super::*;

const LEN: u64 = 64;

fn in_parts(path: Path) -> RendezvousSizes {
    let parts = PartSizes { len: LEN as u32, places: 2, slots: PEERS as u16 };
    RendezvousSizes { slots: PEERS as u16, parts, path, ..sizes() }
}

fn offer(node: &mut Node<'_>, len: usize) -> OfferId {
    let shape = Shape::new(Dtype::U8, &[len as u64]).unwrap();
    let Node { fabric, adapter } = node;
    adapter.hand_over(fabric, Instant(0), (&key(0, 1), STEP), (shape, 7)).unwrap()
}

fn begin(node: &mut Node<'_>) -> Option<RequestId> {
    let HandOver { request, .. } = node.adapter.poll_hand_over()?;
    node.adapter.fetch_parts(&mut node.fabric, Instant(0), request).unwrap();
    let again = node.adapter.fetch_parts(&mut node.fabric, Instant(0), request);
    assert_eq!(again, Err(UnknownRequest));
    Some(request)
}

/// Lends every part of `value` that is wanted and has a place; how many have none.
fn lend(node: &mut Node<'_>, value: &[u8]) -> usize {
    let (Node { fabric, adapter }, mut waiting) = (node, 0);
    while let Some(wanted) = adapter.poll_wanted() {
        assert_eq!(wanted.token, 7);
        let part = &value[wanted.offset as usize..][..wanted.bytes as usize];
        let other = adapter.lend_part(fabric, Instant(0), &wanted, &part[1..]);
        assert_eq!(other, Err(OfferError::BadShape));
        match adapter.lend_part(fabric, Instant(0), &wanted, part) {
            Ok(()) => {}
            refused => {
                assert_eq!(refused, Err(OfferError::NoSpace));
                waiting += 1;
            }
        }
    }
    waiting
}

/// Takes every part that has landed.
fn take(node: &mut Node<'_>, into: &mut [u8]) {
    while let Some(part) = node.adapter.poll_part() {
        let bytes = &mut into[part.offset as usize..][..part.bytes as usize];
        node.fabric.memory().copy_out(part.at.region, part.at.offset, bytes);
        node.adapter.release(part.part).unwrap();
        assert_eq!(node.adapter.release(part.part), Err(UnknownRequest), "once");
    }
}

/// RZ-3: any length, by both paths; nothing is left, and the receive has its two events alone.
#[test]
fn rz3_a_value_of_every_length_comes_in_parts() {
    for path in [Path::Read, Path::Write] {
        let mut nodes = nodes(in_parts(path));
        for len in [0, 1, 16, 63, 64, 65, 128, 129, 1000] {
            let value = pattern(len, 3);
            let sent = offer(&mut nodes[0], len);
            let request = nodes[1].receive(&key(0, 1), STEP);
            run(&mut nodes);
            let mut found = vec![0; len];
            assert_eq!(begin(&mut nodes[1]), Some(request));
            for _ in 0..20 {
                run(&mut nodes);
                assert_eq!(lend(&mut nodes[0], &value), 0, "one part of a peer has a place");
                run(&mut nodes);
                take(&mut nodes[1], &mut found);
            }
            assert_eq!((nodes[1].events(), &found), (ended(request, Received::Value), &value));
            nodes[1].adapter.release(request).unwrap();
            run(&mut nodes);
            assert_eq!(nodes[0].events(), [RendezvousEvent::Consumed { offer: sent }]);
            nodes.iter().for_each(Node::assert_empty);
        }
        for node in &nodes {
            assert_eq!(node.adapter.rejects(), MessageRejects::default());
        }
    }
}

/// RZ-3: values that wait take neither the places of parts nor their slots.
#[test]
fn rz3_full_offers_keep_no_part_out() {
    let mut nodes = nodes(RendezvousSizes { offer_leaves: 2, ..in_parts(Path::Read) });
    let value = pattern(200, 1);
    offer(&mut nodes[0], 200);
    nodes[0].send(&key(0, 2), STEP, &pattern(128, 0));
    let Node { fabric, adapter } = &mut nodes[0];
    let shape = Shape::new(Dtype::U8, &[1]).unwrap();
    let full = adapter.send_bytes(fabric, Instant(0), (&key(0, 2), STEP), (shape, b"x"));
    assert_eq!(full, Err(OfferError::NoSpace));
    let others = [2, 3].map(|step| nodes[1].receive(&key(0, 1), Place::whole(step)));
    let request = nodes[1].receive(&key(0, 1), STEP);
    let Node { fabric, adapter } = &mut nodes[1];
    let how = ((&key(0, 1), Place::whole(4)), (Expect::any(), LATE));
    let refused = adapter.receive(fabric, Instant(0), how.0, how.1);
    assert_eq!(refused, Err(ReceiveError::Full));
    nodes[1].cancel(others[0]);
    run(&mut nodes);
    nodes[1].events();
    let mut found = vec![0; 200];
    for _ in 0..9 {
        begin(&mut nodes[1]);
        run(&mut nodes);
        lend(&mut nodes[0], &value);
        run(&mut nodes);
        take(&mut nodes[1], &mut found);
    }
    assert_eq!((nodes[1].events(), found), (ended(request, Received::Value), value));
}

/// RZ-3: one place, and two peers that each want a part: the second waits for it.
#[test]
fn rz3_a_part_waits_for_a_place() {
    let parts = PartSizes { places: 1, ..in_parts(Path::Read).parts };
    let mut nodes = nodes(RendezvousSizes { parts, ..in_parts(Path::Read) });
    let value = pattern(200, 9);
    let shape = Shape::new(Dtype::U8, &[200]).unwrap();
    let mut found = [vec![0; 200], vec![0; 200]];
    let requests = [1, 2].map(|peer: u16| {
        let Node { fabric, adapter } = &mut nodes[0];
        adapter.hand_over(fabric, Instant(0), (&key(0, peer), STEP), (shape, 7)).unwrap();
        nodes[usize::from(peer)].receive(&key(0, peer), STEP)
    });
    run(&mut nodes);
    nodes[1..].iter_mut().for_each(|node| assert!(begin(node).is_some()));
    run(&mut nodes);
    assert_eq!(lend(&mut nodes[0], &value), 1);
    for _ in 0..12 {
        run(&mut nodes);
        nodes[1..].iter_mut().zip(&mut found).for_each(|(node, into)| take(node, into));
        run(&mut nodes);
        lend(&mut nodes[0], &value);
    }
    for ((node, request), found) in nodes[1..].iter_mut().zip(requests).zip(found) {
        assert_eq!((node.events(), &found), (ended(request, Received::Value), &value));
    }
}

/// RZ-12, RZ-13: a receive that ends in the middle takes its parts back, whatever became of each:
/// asked for, waiting, lent, landed, or polled. The value stays.
#[test]
fn rz13_a_receive_that_ends_in_the_middle_leaves_the_value_and_no_part() {
    for path in [Path::Read, Path::Write] {
        for stop in 0..4 {
            let mut nodes = nodes(in_parts(path));
            let value = pattern(200, 5);
            let sent = offer(&mut nodes[0], 200);
            let request = nodes[1].receive(&key(0, 1), STEP);
            run(&mut nodes);
            begin(&mut nodes[1]);
            if stop > 0 {
                run(&mut nodes);
            }
            if stop > 1 {
                lend(&mut nodes[0], &value);
            }
            if stop > 2 {
                run(&mut nodes);
                assert!(nodes[1].adapter.has_part());
            }
            nodes[1].cancel(request);
            run(&mut nodes);
            assert_eq!(nodes[1].events(), ended(request, Received::Cancelled), "{stop}");
            assert!(!nodes[1].adapter.has_part() && nodes[0].adapter.poll_wanted().is_none());
            assert_eq!((nodes[0].adapter.used(), nodes[1].adapter.used()), ([0, 1, 0], [0; 3]));
            assert_eq!(nodes[0].events(), []);
            // It is received from its first byte on.
            let request = nodes[1].receive(&key(0, 1), STEP);
            let mut found = vec![0; 200];
            for _ in 0..9 {
                run(&mut nodes);
                begin(&mut nodes[1]);
                lend(&mut nodes[0], &value);
                run(&mut nodes);
                take(&mut nodes[1], &mut found);
            }
            assert_eq!((nodes[1].events(), found), (ended(request, Received::Value), value));
            nodes[1].adapter.release(request).unwrap();
            run(&mut nodes);
            assert_eq!(nodes[0].events(), [RendezvousEvent::Consumed { offer: sent }]);
            nodes.iter().for_each(Node::assert_empty);
        }
    }
}

/// RZ-5, RZ-15: each end survives the other in the middle of a value.
#[test]
fn rz15_a_fence_in_the_middle_of_a_value_frees_its_parts() {
    for path in [Path::Read, Path::Write] {
        let mut nodes = nodes(in_parts(path));
        offer(&mut nodes[0], 200);
        let request = nodes[1].receive(&key(0, 1), STEP);
        run(&mut nodes);
        begin(&mut nodes[1]);
        run(&mut nodes);
        lend(&mut nodes[0], &pattern(200, 0));
        nodes[0].fence(1);
        nodes[1].fence(0);
        run(&mut nodes);
        assert_eq!(nodes[1].events(), ended(request, Received::PeerGone));
        nodes[1].assert_empty();
        // The value is offered again.
        assert_eq!(nodes[0].adapter.used(), [0, 1, 0]);
        nodes[0].adapter.cleanup(STEP.step);
        nodes[0].assert_empty();
    }
}

/// RZ-7: a step that ends at the source ends the receive as it ended.
#[test]
fn rz7_a_step_that_ends_in_the_middle_of_a_value_ends_it() {
    let mut nodes = nodes(in_parts(Path::Read));
    offer(&mut nodes[0], 200);
    let request = nodes[1].receive(&key(0, 1), STEP);
    run(&mut nodes);
    begin(&mut nodes[1]);
    nodes[0].poll(Instant(0));
    assert_eq!(nodes[0].adapter.used(), [0, 1, 1], "the first part is asked for at once");
    run(&mut nodes);
    nodes[0].adapter.abort(STEP.step);
    run(&mut nodes);
    assert_eq!(nodes[1].events(), ended(request, Received::Aborted));
    nodes.iter().for_each(Node::assert_empty);
}

#[test]
fn sizes_of_parts_are_checked() {
    let parts = in_parts(Path::Read).parts;
    for wrong in [
        PartSizes { len: 0, ..parts },
        PartSizes { len: 60, ..parts },
        PartSizes { len: 64 * 64 + 1, ..parts },
        PartSizes { places: 0, ..parts },
        PartSizes { places: PLACES_MAX + 1, slots: 99, ..parts },
        PartSizes { slots: PEERS as u16 - 1, ..parts },
    ] {
        let refused = RendezvousConfig::new(RendezvousSizes { parts: wrong, ..sizes() });
        assert_eq!(refused, Err(RendezvousConfigError::Parts(wrong)));
    }
}

/// RZ-3: however many parts a peer has room for, two of one value are under way at once.
#[test]
fn rz3_a_value_asks_for_two_parts_at_a_time() {
    let parts = PartSizes { slots: 9, ..in_parts(Path::Read).parts };
    let setup = setup(RendezvousSizes { parts, ..in_parts(Path::Read) });
    let mut fabric = setup.net.endpoint(Peer(0), Incarnation(1));
    let started = (Incarnation(1), 1);
    let mut adapter = Adapter::<PEERS, 12>::new(&fabric, setup.config, setup.regions, started);
    let (own, shape) = (key(0, 0), Shape::new(Dtype::U8, &[1000]).unwrap());
    adapter.hand_over(&mut fabric, Instant(0), (&own, STEP), (shape, 7)).unwrap();
    let how = (Expect::any(), LATE);
    let request = adapter.receive(&mut fabric, Instant(0), (&own, STEP), how).unwrap();
    (0..4).for_each(|_| adapter.poll(&mut fabric, Instant(0)));
    assert!(adapter.poll_hand_over().is_some_and(|it| it.request == request));
    adapter.fetch_parts(&mut fabric, Instant(0), request).unwrap();
    assert_eq!(adapter.used(), [1 + 2, 1, 2]);
}

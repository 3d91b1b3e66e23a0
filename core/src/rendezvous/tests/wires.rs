//! What a peer may say at a wrong moment, or wrongly: it is counted, and nothing changes.

use super::*;

/// Node 0, joined with a peer 1 that says what the test has it say.
struct Odd<'net> {
    node: Node<'net>,
    peer: Loopback<'net, PEERS, WORDS>,
    writer: LaneWriter,
    offers: u8,
}

fn odd(setup: &Setup) -> Odd<'_> {
    let mut node = setup.start(0, 1);
    let mut peer = setup.net.endpoint(Peer(1), Incarnation(1));
    node.admit(1, 1);
    peer.admit(Peer(0), Incarnation(1)).unwrap();
    let (config, at) = (setup.config.lanes().unwrap(), setup.regions.lanes);
    let to = (Peer(0), Incarnation(1));
    let writer = LaneWriter::new(&peer, config, at, Incarnation(1), to);
    Odd { node, peer, writer, offers: setup.regions.offers().0 }
}

impl Odd<'_> {
    /// Says it, and returns what it was dropped for.
    fn say(&mut self, head: Head, behind: &[u8]) -> Option<MessageReject> {
        use MessageReject::*;
        let all = [BadHead, BadAddress, BadSlot, StaleGeneration, NotMine, BadShape, Unexpected];
        let counts = |node: &Node<'_>| all.map(|why| node.adapter.rejects().of(why));
        let before = counts(&self.node);
        let message = [&head.encode()[..], behind].concat();
        self.writer.send(&mut self.peer, 0, &message).unwrap();
        self.node.poll(Instant(0));
        let after = counts(&self.node);
        let at = (0..all.len()).find(|at| after[*at] != before[*at])?;
        Some(all[at])
    }
}

fn request(slot: u16, name: &Key) -> Head {
    let handle = Handle { slot, generation: 1 };
    let name_len = name.name().len() as u16;
    Head { request: handle, name_len, wait_ms: 9, ..Head::new(Kind::TensorRequest, 5, (0, 1)) }
}

#[test]
fn a_request_for_anothers_value_or_of_no_slot_is_dropped() {
    let setup = setup(sizes());
    let mut odd = odd(&setup);
    let (mine, foreign) = (key(0, 1), key(2, 1));
    assert_eq!(odd.say(request(0, &foreign), foreign.name()), Some(MessageReject::NotMine));
    let to_other = key(0, 2);
    assert_eq!(odd.say(request(0, &to_other), to_other.name()), Some(MessageReject::NotMine));
    assert_eq!(odd.say(request(6, &mine), mine.name()), Some(MessageReject::BadSlot));
    let no_key = [b'x'; 14];
    let head = Head { name_len: 14, ..request(0, &mine) };
    assert_eq!(odd.say(head, &no_key), Some(MessageReject::BadHead));
    assert_eq!(odd.say(request(0, &mine), mine.name()), None);
    assert_eq!(odd.node.adapter.used(), [0, 0, 1]);
}

/// RZ-3: a part is lent to the borrower of its value alone. A part that is not lent is refused, and
/// nothing waits.
#[test]
fn rz3_a_part_of_what_was_never_lent_is_refused() {
    let parts = PartSizes { len: 64, places: 2, slots: 3 };
    let setup = setup(RendezvousSizes { slots: 3, parts, ..sizes() });
    let mut odd = odd(&setup);
    let shape = Shape::new(Dtype::U8, &[200]).unwrap();
    let (node, name) = (&mut odd.node, (&key(0, 1), STEP));
    node.adapter.hand_over(&mut node.fabric, Instant(0), name, (shape, 7)).unwrap();
    let offer = |slot, generation| Handle { slot, generation };
    let name = key(0, 1);
    let ask =
        |offer, part, parts| Head { flags: Flags::PART, offer, part, parts, ..request(5, &name) };
    let stored = ask(offer(0, 1), 0, 4);
    for wrong in [ask(offer(0, 2), 0, 4), ask(offer(9, 1), 0, 4), stored] {
        assert_eq!(odd.say(wrong, name.name()), None);
        assert_eq!(odd.node.adapter.used(), [0, 1, 0], "{wrong:?} is refused");
    }
    assert_eq!(odd.say(request(0, &name), name.name()), None);
    for wrong in [ask(offer(0, 1), 0, 3), ask(offer(0, 1), 4, 5)] {
        assert_eq!(odd.say(wrong, name.name()), None);
        assert_eq!(odd.node.adapter.used(), [0, 1, 0], "{wrong:?} is refused");
    }
    // A value that another peer is lent, here the node itself.
    let (node, own) = (&mut odd.node, key(0, 0));
    let value = (shape, 8);
    node.adapter.hand_over(&mut node.fabric, Instant(0), (&own, STEP), value).unwrap();
    node.receive(&own, STEP);
    assert_eq!(odd.say(Head { request: offer(4, 1), ..ask(offer(1, 1), 0, 4) }, name.name()), None);
    assert_eq!(odd.node.adapter.used(), [1, 2, 0], "it is refused");
    assert_eq!(odd.say(stored, name.name()), None);
    assert_eq!(odd.node.adapter.used(), [1, 2, 1]);
}

/// RZ-3: a part is of the value that was granted, and as long as that part is.
#[test]
fn rz3_a_part_of_another_value_or_length_is_dropped() {
    let parts = PartSizes { len: 64, places: 2, slots: 3 };
    let setup = setup(RendezvousSizes { slots: 3, parts, ..sizes() });
    let mut odd = odd(&setup);
    let receive = odd.node.receive(&key(1, 0), STEP);
    odd.node.poll(Instant(0));
    let [shape, other] = [200, 201].map(|len| Shape::new(Dtype::U8, &[len]).unwrap());
    let handle = |slot, generation| Handle { slot, generation };
    let head = Head {
        request: handle(0, 1),
        offer: handle(4, 1),
        shape: Some(shape),
        bytes: 200,
        ..Head::new(Kind::BufferRequest, 5, (0, 1))
    };
    assert_eq!(odd.say(Head { flags: Flags::SAME_HOST, token: 7, ..head }, b""), None);
    let again = odd.say(Head { flags: Flags::SAME_HOST, token: 8, ..head }, b"");
    assert_eq!(again, Some(MessageReject::Unexpected), "it has a value already");
    let Node { fabric, adapter } = &mut odd.node;
    assert_eq!(adapter.poll_hand_over().map(|it| it.request), Some(receive));
    adapter.fetch_parts(fabric, Instant(0), receive).unwrap();
    odd.node.poll(Instant(0));
    let part =
        Head { request: handle(1, 1), region: odd.offers, bytes: 64, part: 0, parts: 4, ..head };
    for wrong in [
        Head { bytes: 63, ..part },
        Head { bytes: 65, ..part },
        Head { shape: Some(other), ..part },
        Head { part: 1, ..part },
        Head { flags: Flags::SAME_HOST, region: 0, token: 7, ..part },
    ] {
        assert_eq!(odd.say(wrong, b""), Some(MessageReject::BadShape), "{wrong:?}");
    }
    assert_eq!(odd.say(part, b""), None);
}

#[test]
fn an_end_of_what_was_never_lent_is_dropped() {
    let setup = setup(sizes());
    let mut odd = odd(&setup);
    odd.node.send(&key(0, 1), STEP, &pattern(100, 0));
    let handle = |slot, generation| Handle { slot, generation };
    let idle = |offer| {
        let request = handle(0, 1);
        Head { request, offer, ..Head::new(Kind::BufferIdle, 5, (0, 1)) }
    };
    assert_eq!(odd.say(idle(handle(9, 1)), b""), Some(MessageReject::BadSlot));
    assert_eq!(odd.say(idle(handle(0, 2)), b""), Some(MessageReject::StaleGeneration));
    assert_eq!(odd.say(idle(handle(0, 1)), b""), Some(MessageReject::Unexpected));
    assert_eq!(odd.node.adapter.used(), [0, 1, 0]);
    // A value that another is lent, here the node itself, by a request of the same number.
    let (node, own) = (&mut odd.node, key(0, 0));
    let shape = Shape::new(Dtype::U8, &[200]).unwrap();
    node.adapter.hand_over(&mut node.fabric, Instant(0), (&own, STEP), (shape, 8)).unwrap();
    node.receive(&own, STEP);
    assert_eq!(odd.say(idle(handle(1, 1)), b""), Some(MessageReject::NotMine));
    assert_eq!(odd.node.adapter.used(), [1, 2, 0]);
}

/// V11 and F-11: whether a value is read only where offers lie, inside.
pub(super) fn an_address_is_checked() -> bool {
    let setup = setup(sizes());
    let mut odd = odd(&setup);
    let offers = odd.offers;
    odd.node.receive(&key(1, 0), STEP);
    odd.node.poll(Instant(0));
    let mut say = |ahead, offset| {
        let handle = Handle { slot: 0, generation: 1 };
        let head = Head {
            request: handle,
            offer: handle,
            shape: Some(Shape::new(Dtype::U8, &[100]).unwrap()),
            bytes: 100,
            region: offers + ahead,
            offset,
            flags: Flags::empty(),
            ..Head::new(Kind::BufferRequest, 5, (0, 1))
        };
        odd.say(head, b"")
    };
    let bad = Some(MessageReject::BadAddress);
    let outside = [(0, 4000), (0, u32::MAX), (9, 0)];
    let is_inside = outside.into_iter().all(|(ahead, offset)| say(ahead, offset) == bad);
    // The landings are a region of the layout, too.
    is_inside && say(1, 0) == bad && say(0, 3900).is_none()
}

#[test]
fn an_address_of_another_purpose_is_dropped() {
    assert!(an_address_is_checked());
}

#[test]
fn an_answer_that_does_not_fit_the_request_is_dropped() {
    let setup = setup(sizes());
    let mut odd = odd(&setup);
    let value = |slot, generation, part| {
        let handle = Handle { slot, generation };
        let head = Head::new(Kind::TensorWrite, 5, part);
        Head { request: handle, offer: handle, flags: Flags::DEAD, ..head }
    };
    assert_eq!(odd.say(value(0, 1, (0, 1)), b""), Some(MessageReject::StaleGeneration));
    odd.node.receive(&key(1, 0), STEP);
    odd.node.receive(&key(2, 0), STEP);
    assert_eq!(odd.say(value(1, 1, (0, 1)), b""), Some(MessageReject::NotMine));
    assert_eq!(odd.say(value(0, 1, (0, 2)), b""), Some(MessageReject::BadShape));
    assert_eq!(odd.say(value(0, 1, (0, 1)), b""), None);
    assert_eq!(odd.say(value(0, 1, (0, 1)), b""), Some(MessageReject::Unexpected));
}

/// RZ-15: what lies in the lane of an incarnation that is fenced is not heard.
#[test]
fn a_message_of_a_fenced_peer_is_not_heard() {
    let setup = setup(sizes());
    let mut odd = odd(&setup);
    let name = key(0, 1);
    let message = [&request(0, &name).encode()[..], name.name()].concat();
    odd.writer.send(&mut odd.peer, 0, &message).unwrap();
    odd.node.fence(1);
    odd.node.poll(Instant(0));
    assert_eq!(odd.node.adapter.used(), [0; 3]);
}

/// RZ-1: memory is lent for the value that asks for it. One that cannot be written is stored again.
#[test]
fn memory_that_is_lent_for_another_request_is_refused() {
    let setup = setup(RendezvousSizes { path: Path::Write, ..sizes() });
    let mut odd = odd(&setup);
    let (name, landings) = (key(0, 1), odd.offers + 1);
    odd.node.send(&name, STEP, &pattern(100, 0));
    assert_eq!(odd.say(request(0, &name), name.name()), None);
    let handle = |generation| Handle { slot: 0, generation };
    let head = Head::new(Kind::BufferResponse, 5, (0, 1));
    let head = Head { request: handle(2), offer: handle(1), region: landings, ..head };
    assert_eq!(odd.say(head, b""), Some(MessageReject::Unexpected));
    odd.writer.send(&mut odd.peer, 0, &Head { request: handle(1), ..head }.encode()).unwrap();
    // The connection is lost, and the adapter does not know yet.
    odd.node.fabric.fence(Peer(1)).unwrap();
    odd.node.poll(Instant(0));
    assert_eq!(odd.node.adapter.rejects().of(MessageReject::Unexpected), 1);
    odd.node.adapter.cleanup(5);
    odd.node.assert_empty();
}

//! The lane over the in-memory fabric: a bounded queue between two incarnations, which no other
//! peer can fill.

use std::boxed::Box;
use std::collections::VecDeque;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::fabric::loopback::{Loopback, Net};
use crate::fabric::{Completion, CompletionFlags, Fabric, Op, Work, WorkId};
use crate::ids::Peer;
use crate::time::Instant;
use crate::wire::slot::{Trailer, seal, used};

const WORDS: usize = 256;
type TestNet = Net<2, WORDS>;

const FIRST: Incarnation = Incarnation(1);

fn config() -> Config {
    Config::new(2, 4, 16).unwrap()
}

fn net() -> (Box<TestNet>, Regions) {
    let mut layout = Layout::new(2);
    let regions = config().add_regions(&mut layout).unwrap();
    (Box::new(Net::new(layout)), regions)
}

struct Pair<'net> {
    regions: Regions,
    fabrics: [Loopback<'net, 2, WORDS>; 2],
    writer: LaneWriter,
    reader: LaneReader,
}

fn pair(net: &TestNet, regions: Regions) -> Pair<'_> {
    let mut fabrics = [net.endpoint(Peer(0), FIRST), net.endpoint(Peer(1), FIRST)];
    let writer = LaneWriter::new(&fabrics[0], config(), regions, FIRST, (Peer(1), FIRST));
    let reader = LaneReader::new(&fabrics[1], config(), regions, FIRST, (Peer(0), FIRST));
    fabrics[0].admit(Peer(1), FIRST).unwrap();
    fabrics[1].admit(Peer(0), FIRST).unwrap();
    Pair { regions, fabrics, writer, reader }
}

impl Pair<'_> {
    fn send(&mut self, payload: &[u8]) -> Result<(), SendError> {
        self.writer.send(&mut self.fabrics[0], 7, payload)
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let message = self.reader.take(&mut self.fabrics[1])?;
        assert_eq!((message.sender, message.kind), (Peer(0), 7));
        Some(message.payload.to_vec())
    }

    /// What a liar with the writer's rights puts at the beginning of a message of `len` bytes in
    /// slot 0.
    fn overwrite_slot(&mut self, len: usize, bytes: &[u8]) {
        let to = config().slot(self.regions.0.of(Peer(0)), 0, 0).start(len);
        let work =
            Work { id: WorkId(0), op: Op::Write { to, bytes }, flags: CompletionFlags::empty() };
        self.fabrics[0].post(Peer(1), work).unwrap();
        self.fabrics[0].poll(Instant(0), &mut [Completion::NONE; 4]);
    }
}

#[test]
fn a_full_lane_refuses_until_credit_comes_back() {
    let (net, regions) = net();
    let mut pair = pair(&net, regions);
    for n in 0..4 {
        pair.send(&[n]).unwrap();
    }
    assert_eq!(pair.send(&[4]), Err(SendError::Full));
    assert_eq!(pair.take(), Some(Vec::from([0])));
    assert_eq!(pair.send(&[4]), Err(SendError::Full), "credit comes every half ring");
    assert_eq!(pair.take(), Some(Vec::from([1])));
    pair.send(&[4]).unwrap();
}

#[test]
fn a_message_longer_than_a_slot_is_refused() {
    let (net, regions) = net();
    let mut pair = pair(&net, regions);
    assert_eq!(pair.send(&[0; 17]), Err(SendError::TooLong));
    pair.send(&[0; 16]).unwrap();
}

#[test]
fn garbage_under_the_right_stamp_is_counted_and_never_delivered() {
    let (net, regions) = net();
    let mut pair = pair(&net, regions);
    pair.send(b"truth").unwrap();
    pair.overwrite_slot(5, &[0xFF; 8]);
    assert_eq!(pair.take(), None);
    assert_eq!(pair.reader.checksum_failures(), 1);
}

#[test]
fn a_message_under_anothers_name_is_counted_and_never_delivered() {
    let (net, regions) = net();
    let mut pair = pair(&net, regions);
    let mut bytes = [0; used(5)];
    Trailer { len: 5, sender: 1, kind: 7, ..Trailer::default() }.write(&mut bytes);
    let slot = config().slot(regions.0.of(Peer(0)), session(FIRST, FIRST), 0);
    seal(&mut bytes, slot.stamp, 1, 0, |bytes| pair.fabrics[0].crc32c(bytes));
    pair.overwrite_slot(5, &bytes);
    assert_eq!((pair.take(), pair.reader.checksum_failures()), (None, 1));
}

#[test]
fn what_an_earlier_pair_left_is_not_news() {
    let (net, regions) = net();
    let mut pair = pair(&net, regions);
    pair.send(b"old").unwrap();
    let second = Incarnation(2);
    pair.fabrics[0] = net.endpoint(Peer(0), second);
    pair.fabrics[0].admit(Peer(1), FIRST).unwrap();
    pair.writer = LaneWriter::new(&pair.fabrics[0], config(), regions, second, (Peer(1), FIRST));
    pair.reader = LaneReader::new(&pair.fabrics[1], config(), regions, FIRST, (Peer(0), second));
    pair.fabrics[1].admit(Peer(0), second).unwrap();
    assert_eq!(pair.take(), None);
    pair.send(b"new").unwrap();
    assert_eq!(pair.take(), Some(b"new".to_vec()));
}

#[test]
fn a_late_write_of_an_earlier_session_is_not_news() {
    let (net, regions) = net();
    let mut pair = pair(&net, regions);
    let second = Incarnation(2);
    pair.reader = LaneReader::new(&pair.fabrics[1], config(), regions, second, (Peer(0), FIRST));
    pair.send(b"to the dead").unwrap();
    assert_eq!(pair.take(), None);
}

proptest! {
    #[test]
    fn a_lane_is_a_bounded_queue(steps in proptest::collection::vec(any::<bool>(), 0..200)) {
        let (net, regions) = net();
        let mut pair = pair(&net, regions);
        let mut model = VecDeque::new();
        let mut next = 0u64;
        for send in steps {
            if send {
                match pair.send(&next.to_le_bytes()) {
                    Ok(()) => {
                        model.push_back(next.to_le_bytes().to_vec());
                        next += 1;
                    }
                    Err(error) => {
                        prop_assert_eq!(error, SendError::Full);
                        prop_assert!(model.len() > 2, "credit comes back every half ring");
                    }
                }
            } else {
                prop_assert_eq!(pair.take(), model.pop_front());
            }
            prop_assert!(model.len() <= 4);
        }
    }
}

#[test]
fn a_pulse_is_overwritten_and_harms_no_message() {
    let (net, regions) = net();
    let mut pair = pair(&net, regions);
    assert_eq!(regions.copy_pulse(&pair.fabrics[1], Peer(0)), [0; PULSE_LEN]);
    for beat in 1..=9 {
        regions.post_pulse(&mut pair.fabrics[0], Peer(1), &[beat; PULSE_LEN]).unwrap();
        pair.send(&[beat]).unwrap();
        assert_eq!(pair.take(), Some([beat].to_vec()));
    }
    assert_eq!(regions.copy_pulse(&pair.fabrics[1], Peer(0)), [9; PULSE_LEN]);
    regions.still_pulse(&pair.fabrics[1], Peer(0));
    assert_eq!(regions.copy_pulse(&pair.fabrics[1], Peer(0)), [0; PULSE_LEN]);
}

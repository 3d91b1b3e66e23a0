//! What members say: each frame is judged by itself, and none is answered at once.

use super::super::mutants::{DELIVERED_AGAIN, NOT_FROZEN};
use super::super::note::{Position, State};
use super::super::outcome::Counters;
use super::super::seats::Members;
use super::super::stream::{Ack, Stream};
use super::Group;
use crate::fabric::Fabric;
use crate::ids::Peer;
use crate::wire::group::{EAGER_MAX, ENTRY_LEN, Entry, FORWARD, Footing, Frame, Head};

/// The longest slot of an entry.
const SLOT_LEN_MAX: usize = ENTRY_LEN + EAGER_MAX as usize;

impl<const PEERS: usize> Group<PEERS> {
    /// Handles a frame of `peer` about this group.
    pub(in super::super) fn handle_frame(
        &mut self,
        fabric: &impl Fabric,
        peer: Peer,
        (kind, head, rest): (u16, Head, &[u8]),
        counters: &mut Counters,
    ) {
        let Some(from) = self.grank(peer) else {
            counters.bad_frames += 1;
            return;
        };
        let frame = Frame::decode(kind, rest);
        if let Some(Frame::Agree(agree)) = frame {
            return self.handle_agree((from, head), agree, counters);
        }
        let is_known = head.root < self.members.count && self.agreed & from.bit() != 0;
        if !is_known || (frame.is_none() && kind != FORWARD) {
            counters.bad_frames += 1;
            return;
        }
        let (members, is_fresh) = (self.members, self.is_fresh);
        let stream = &mut self.streams[usize::from(head.root)];
        // What is said of an epoch that is not counted yet is kept: it is not said again.
        match frame {
            Some(Frame::Hold(held)) => stream.adverts[from.index()] = (head.epoch, held),
            // Entries are numbered from 1.
            Some(Frame::Need { next }) => {
                stream.cursors[from.index()] = Some((head.epoch, next.max(1)));
            }
            Some(Frame::Ack { entries, blocks, epochs }) => {
                let released = Position { entries, blocks };
                stream.acks[from.index()] = Ack { released, epochs };
                if !is_fresh {
                    stream.note_stable(fabric, &members);
                }
            }
            Some(Frame::Report(report)) => {
                stream.reports.handle(from, head.epoch, report);
                // What is an answer itself needs none.
                if report.footing != Footing::Absent || report.epochs != 0 {
                    stream.answer_due |= from.bit();
                }
            }
            Some(Frame::Sync(sync)) if head.root == from.0 => self.barrier.handle_sync(from, sync),
            Some(Frame::Welcome(welcome)) if head.root == from.0 => {
                self.said[from.index()].welcome = Some(welcome);
            }
            Some(Frame::Sync(_) | Frame::Welcome(_)) => counters.bad_frames += 1,
            Some(Frame::Agree(_)) => {}
            None if is_fresh => {}
            None if stream.note.counted != head.epoch => counters.foreign_epochs += 1,
            None => stream.handle_forward(fabric, (rest, &members), counters),
        }
    }
}

impl<const PEERS: usize> Stream<PEERS> {
    /// An entry with its payload, `bytes`: it is held if it is the next.
    fn handle_forward(
        &mut self,
        fabric: &impl Fabric,
        (bytes, members): (&[u8], &Members),
        counters: &mut Counters,
    ) {
        // It is asked for again once the consumer is done with the earlier epoch.
        let is_ended = self.note.state != State::Open || self.closing.is_some();
        if is_ended && !NOT_FROZEN.is_planted() {
            return;
        }
        let mut copy = [0; SLOT_LEN_MAX];
        let Some(slot) = copy.get_mut(..bytes.len().min(self.window.slot_len())) else {
            counters.bad_frames += 1;
            return;
        };
        slot.copy_from_slice(&bytes[..slot.len()]);
        let entry = Entry::open(slot, |bytes| fabric.crc32c(bytes));
        let is_whole = |entry: &Entry| ENTRY_LEN + entry.payload_len() == bytes.len();
        let Some(entry) = entry.filter(is_whole).filter(|it| it.epoch == self.note.epoch) else {
            counters.bad_frames += 1;
            return;
        };
        if entry.seq <= self.note.entries {
            counters.repeated += 1;
            if DELIVERED_AGAIN.is_planted() && self.handed.entries >= entry.seq {
                self.handed.entries = entry.seq - 1;
            }
            return;
        }
        let is_free = entry.seq - self.reusable().entries <= self.window.entries();
        if entry.seq != self.note.entries + 1 || !is_free {
            counters.gaps += 1;
            return;
        }
        self.note_spread(entry.spread);
        self.store_entry(fabric, &entry, slot);
        self.note_mixed(&entry, members);
    }
}

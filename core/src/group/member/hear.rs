//! What members say: each frame is judged by itself, and none is answered at once.

use super::super::closing::{Closing, Report};
use super::super::mutants::{DELIVERED_AGAIN, NOT_FROZEN};
use super::super::note::Position;
use super::super::outcome::Counters;
use super::super::seats::Grank;
use super::super::stream::{Ack, Stream};
use super::Group;
use crate::fabric::Fabric;
use crate::ids::Peer;
use crate::wire::group::{EAGER_MAX, ENTRY_LEN, Entry, FORWARD, Frame, Head};

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
        if let Some(Frame::Agree { list, sizes, heard }) = frame {
            return self.handle_agree(fabric, (from, head), (list, sizes, heard), counters);
        }
        let is_known = head.root < self.members.count && self.agreed & from.bit() != 0;
        if !is_known || (frame.is_none() && kind != FORWARD) {
            counters.bad_frames += 1;
            return;
        }
        let members = self.members;
        let stream = &mut self.streams[usize::from(head.root)];
        stream.adopt(fabric, head.epoch);
        // A root may be lost before this member or the sender knew its epoch.
        let is_report = matches!(frame, Some(Frame::Report { .. }));
        if stream.note.epoch != head.epoch && !(is_report && head.epoch == 0) {
            counters.foreign_epochs += 1;
            return;
        }
        match frame {
            Some(Frame::Hold(held)) => stream.adverts[from.index()] = held,
            // Entries are numbered from 1.
            Some(Frame::Need { next }) => stream.cursors[from.index()] = Some(next.max(1)),
            Some(Frame::Ack { entries, blocks, removed }) => {
                let released = Position { entries, blocks };
                stream.acks[from.index()] = Ack { released, removed };
                stream.note_stable(&members);
            }
            Some(Frame::Report { removed, held }) => {
                let closing = stream.closing.get_or_insert_with(Closing::new);
                closing.handle_report(from, Report { removed, held });
            }
            Some(Frame::Sync(sync)) if head.root == from.0 => self.barrier.handle_sync(from, sync),
            Some(Frame::Sync(_)) => counters.bad_frames += 1,
            Some(Frame::Agree { .. }) => {}
            None => stream.handle_forward(fabric, rest, counters),
        }
    }

    fn handle_agree(
        &mut self,
        fabric: &impl Fabric,
        (from, head): (Grank, Head),
        (list, sizes, heard): (u64, u64, bool),
        counters: &mut Counters,
    ) {
        if (list, sizes) != (self.list, self.config.digest()) || head.root != from.0 {
            counters.disagreements += 1;
            return;
        }
        let stream = &mut self.streams[from.index()];
        stream.adopt(fabric, head.epoch);
        if stream.note.epoch != head.epoch {
            // Its memory is another one: it is no longer the member that the others count.
            counters.foreign_epochs += 1;
            return;
        }
        if self.agreed & from.bit() == 0 {
            self.agreed |= from.bit();
            self.roots_mut().for_each(|stream| stream.handle_agreed(from));
            self.barrier.handle_agreed(from);
            self.note_open();
        }
        if !heard {
            self.agree_due |= from.bit();
        }
    }
}

impl<const PEERS: usize> Stream<PEERS> {
    /// The root's memory began in the incarnation `epoch`, unless another is known.
    pub(super) fn adopt(&mut self, fabric: &impl Fabric, epoch: u32) {
        if self.note.epoch == 0 && epoch != 0 {
            self.note.epoch = epoch;
            self.note.store(fabric, &self.window);
        }
        self.head.epoch = self.note.epoch;
    }

    /// An entry with its payload, `bytes`: it is held if it is the next.
    fn handle_forward(&mut self, fabric: &impl Fabric, bytes: &[u8], counters: &mut Counters) {
        let is_ended = self.note.frozen || self.round().is_some();
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
        self.store_entry(fabric, entry.seq, slot);
    }
}

//! The consumer: messages of each root in order, in place.

use super::super::closing::Ending;
use super::super::mutants::{OVERTAKEN, PASSED_DELIVERED};
use super::super::note::Position;
use super::super::outcome::{Chunk, Delivery, Receipt, UnknownReceipt};
use super::super::seats::Members;
use super::super::stream::Stream;
use super::Group;
use crate::fabric::{At, Fabric};
use crate::ids::Incarnation;
use crate::wire::group::{ENTRY_LEN, Entry, EntryKind};

impl<const PEERS: usize> Group<PEERS> {
    /// The next part of a message of any root, or the end of a root.
    pub(in super::super) fn receive(&mut self, fabric: &impl Fabric) -> Option<Delivery> {
        let (id, members) = (self.id, self.members);
        let roots = self.in_turn().filter(|root| *root != members.me);
        for root in roots {
            let stream = &mut self.streams[root.index()];
            let delivery = stream.next_delivery(fabric, &members).map(|delivery| match delivery {
                Delivery::Chunk(chunk) => {
                    let receipt = Receipt { group: id, ..chunk.receipt };
                    Delivery::Chunk(Chunk { receipt, ..chunk })
                }
                other => other,
            });
            if delivery.is_some() {
                self.turn.pass(root.0, members.count);
                return delivery;
            }
        }
        None
    }

    /// The consumer is done with the chunk of `receipt` and with all before it.
    pub(in super::super) fn release(
        &mut self,
        fabric: &impl Fabric,
        receipt: Receipt,
    ) -> Result<(), UnknownReceipt> {
        let stream = self.roots_mut().nth(receipt.root.index()).ok_or(UnknownReceipt)?;
        let through = receipt.through;
        if through <= stream.note.released || through > stream.handed {
            return Err(UnknownReceipt);
        }
        stream.note.released = if through == stream.last_chunk { stream.handed } else { through };
        stream.note.store(fabric, &stream.window);
        Ok(())
    }
}

impl<const PEERS: usize> Stream<PEERS> {
    fn next_delivery(&mut self, fabric: &impl Fabric, members: &Members) -> Option<Delivery> {
        // The consumer is back: it has what it was handed last.
        self.settle(fabric);
        if let (epoch @ 1.., last) = self.note.lost {
            // Stored with what follows: one that begins again before is handed it once more.
            self.note.lost = (0, 0);
            return Some(Delivery::RootLost { root: self.root, epoch: Incarnation(epoch), last });
        }
        self.skip_values(fabric);
        let seq = self.handed.entries + 1;
        let end = self.closing.as_ref().and_then(|closing| closing.end).map(|end| end.entries);
        if end.is_some_and(|end| seq > end) {
            return self.next_ending(fabric, seq);
        }
        let entry = self.entry(fabric, seq)?;
        match entry.kind {
            EntryKind::Small => {
                self.handed.entries = seq;
                let At { region, offset } = self.window.entry_at(seq);
                let at = At { region, offset: offset + ENTRY_LEN as u32 };
                let len = u32::try_from(entry.len).unwrap_or(0);
                Some(self.chunk(&entry, (0, at, len), true))
            }
            EntryKind::Long if seq == self.note.passed && !PASSED_DELIVERED.is_planted() => {
                self.pass_over(fabric, &entry).then(|| self.next_delivery(fabric, members))?
            }
            EntryKind::Long => self.next_block(fabric, members, &entry),
            // Waits for the all-gather that it belongs to.
            EntryKind::Gather => None,
            // Ends the message before it, which is where it is handed out.
            EntryKind::Abandon => {
                self.handed.entries = seq;
                self.settle(fabric);
                self.next_delivery(fabric, members)
            }
        }
    }

    /// Skips what is held of the message in whose middle this member began; whether all is skipped.
    fn pass_over(&mut self, fabric: &impl Fabric, entry: &Entry) -> bool {
        let end = self.end_of(fabric, entry);
        while self.handed.blocks < end && self.note.blocks.contains(self.handed.blocks) {
            self.handed.blocks += 1;
        }
        let is_over = self.handed.blocks >= end;
        if is_over {
            self.handed.entries = entry.seq;
        }
        if self.handed > self.note.released {
            self.settle(fabric);
        }
        is_over
    }

    fn next_block(
        &mut self,
        fabric: &impl Fabric,
        members: &Members,
        entry: &Entry,
    ) -> Option<Delivery> {
        let block = self.handed.blocks;
        let end = entry.first + self.window.blocks_of(entry.len);
        let written = self.end_of(fabric, entry);
        if block == written && written < end {
            self.handed.entries = entry.seq;
            return Some(Delivery::Abandoned { root: self.root, seq: entry.seq });
        }
        if !self.note.blocks.contains(block) {
            if OVERTAKEN.is_planted() && self.note.entries > entry.seq {
                self.handed = Position { entries: entry.seq, blocks: end };
                return self.next_delivery(fabric, members);
            }
            return None;
        }
        self.handed.blocks = block + 1;
        let is_last = block + 1 == end;
        if is_last {
            self.handed.entries = entry.seq;
        }
        let offset = (block - entry.first) * self.window.block_len();
        let part = (offset, self.window.block_at(block), self.len_of(entry, block));
        Some(self.chunk(entry, part, is_last))
    }

    fn chunk(&mut self, entry: &Entry, part: (u64, At, u32), is_last: bool) -> Delivery {
        let (offset, at, len) = part;
        self.last_chunk = self.handed;
        let receipt = Receipt { group: Default::default(), root: self.root, through: self.handed };
        Delivery::Chunk(Chunk {
            root: self.root,
            seq: entry.seq,
            tag: entry.tag,
            message_len: entry.len,
            offset,
            at,
            len,
            is_last,
            receipt,
        })
    }

    /// Whether a part of message `seq` was handed out.
    fn is_begun(&self, fabric: &impl Fabric, seq: u64) -> bool {
        let entry = self.entry(fabric, seq).filter(|entry| entry.kind == EntryKind::Long);
        entry.is_some_and(|entry| self.handed.blocks > entry.first && seq != self.note.passed)
    }

    /// Whether the consumer of a stream that is closed is done with all but the end of it.
    pub(in super::super) fn is_drained(&self, fabric: &impl Fabric) -> bool {
        let (released, seq) = (self.note.released >= self.last_chunk, self.handed.entries + 1);
        let is_over = self.closing.is_none_or(|closing| {
            let is_at_end = closing.end.is_some_and(|end| self.handed.entries >= end.entries);
            closing.ending != Ending::Nothing || is_at_end && !self.is_begun(fabric, seq)
        });
        released && is_over
    }

    /// Behind the last message of a removed root: an incomplete one that was handed out in part,
    /// then the end.
    fn next_ending(&mut self, fabric: &impl Fabric, seq: u64) -> Option<Delivery> {
        let is_begun = self.is_begun(fabric, seq);
        let (root, epoch) = (self.root, Incarnation(self.note.epoch));
        let closing = self.closing.as_mut().filter(|closing| closing.is_closed)?;
        match closing.ending {
            Ending::Nothing if is_begun => {
                closing.ending = Ending::Abandoned;
                Some(Delivery::Abandoned { root, seq })
            }
            Ending::Nothing | Ending::Abandoned => {
                closing.ending = Ending::End;
                Some(Delivery::RootLost { root, epoch, last: seq - 1 })
            }
            Ending::End => None,
        }
    }

    /// What is no chunk needs no release: it is released with the last chunk before it.
    pub(super) fn settle(&mut self, fabric: &impl Fabric) {
        if self.handed > self.note.released && self.note.released >= self.last_chunk {
            self.note.released = self.handed;
            self.last_chunk = self.handed;
            self.note.store(fabric, &self.window);
        }
    }
}

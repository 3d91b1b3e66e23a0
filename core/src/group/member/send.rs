//! The root: numbers messages, and writes them into its own memory.

use super::super::mutants::UNWRITTEN_COUNTED;
use super::super::outcome::SendError;
use super::super::stream::Stream;
use super::Group;
use crate::fabric::{At, Fabric, Memory};
use crate::wire::group::{EAGER_MAX, ENTRY_LEN, Entry, EntryKind};

impl<const PEERS: usize> Group<PEERS> {
    pub(in super::super) fn check_send(&self) -> Result<(), SendError> {
        let stream = &self.streams[self.members.me.index()];
        if !self.is_open {
            return Err(SendError::NotOpen);
        }
        if stream.draft.is_some() || stream.is_unfinished {
            return Err(SendError::Unfinished);
        }
        if !stream.has_entry() {
            return Err(self.full());
        }
        Ok(())
    }

    fn full(&self) -> SendError {
        let stream = &self.streams[self.members.me.index()];
        SendError::WindowFull { hindmost: stream.hindmost(&self.members) }
    }

    /// Sends `payload` whole, or nothing of it.
    pub(in super::super) fn broadcast(
        &mut self,
        fabric: &mut impl Fabric,
        tag: u64,
        payload: &[u8],
    ) -> Result<u64, SendError> {
        self.check_send()?;
        let (len, eager) = (payload.len() as u64, self.config.sizes().eager);
        if payload.len() <= usize::from(eager) {
            let entry = Entry { len, tag, kind: EntryKind::Small, ..self.blank() };
            return Ok(self.own().write(fabric, entry, payload));
        }
        if self.own().window.blocks_of(len) > self.own().free_blocks() {
            return Err(self.full());
        }
        let seq = self.begin(fabric, tag, len)?;
        for bytes in payload.chunks(self.config.sizes().block_len as usize) {
            let Some((at, _)) = self.own().space(fabric) else { break };
            fabric.memory().copy_in(at.region, at.offset, bytes);
            self.commit(fabric)?;
        }
        Ok(seq)
    }

    /// Begins a message of `len` bytes, whose blocks follow.
    pub(in super::super) fn begin(
        &mut self,
        fabric: &mut impl Fabric,
        tag: u64,
        len: u64,
    ) -> Result<u64, SendError> {
        self.check_send()?;
        let blank = self.blank();
        let stream = self.own();
        let blocks = stream.window.blocks_of(len);
        if blocks == 0 {
            return Ok(stream.write(fabric, Entry { tag, kind: EntryKind::Small, ..blank }, &[]));
        }
        let entry = Entry { len, tag, kind: EntryKind::Long, ..blank };
        stream.draft = Some(stream.note.blocks.base + blocks);
        Ok(stream.write(fabric, entry, &[]))
    }

    /// The next block of the message is written: its readers may read it.
    pub(in super::super) fn commit(&mut self, fabric: &mut impl Fabric) -> Result<(), SendError> {
        let full = self.full();
        let stream = self.own();
        let end = stream.draft.ok_or(SendError::NotBegun)?;
        if stream.free_blocks() == 0 {
            return Err(full);
        }
        let block = stream.note.blocks.base;
        stream.note_block(fabric, block);
        stream.draft = (block + 1 < end).then_some(end);
        Ok(())
    }

    pub(super) fn own(&mut self) -> &mut Stream<PEERS> {
        &mut self.streams[self.members.me.index()]
    }

    /// What all entries have in common.
    pub(super) fn blank(&self) -> Entry {
        let stream = &self.streams[self.members.me.index()];
        Entry {
            seq: stream.note.entries + 1,
            epoch: stream.note.epoch,
            first: stream.note.blocks.base,
            members: self.members.live,
            spread: self.spread,
            ..Entry::default()
        }
    }

    /// Ends the message that an earlier incarnation began: its blocks end where they were written.
    pub(super) fn abandon(&mut self, fabric: &mut impl Fabric) {
        let mut entry = Entry { kind: EntryKind::Abandon, ..self.blank() };
        let stream = self.own();
        if !stream.is_unfinished || !stream.has_entry() {
            return;
        }
        if let Some(begun) = stream.entry(fabric, stream.note.entries)
            && UNWRITTEN_COUNTED.is_planted()
        {
            entry.first = stream.end_of(fabric, &begun);
        }
        stream.write(fabric, entry, &[]);
        stream.is_unfinished = false;
    }
}

impl<const PEERS: usize> Stream<PEERS> {
    /// Writes the next entry.
    pub(super) fn write(&mut self, fabric: &impl Fabric, entry: Entry, payload: &[u8]) -> u64 {
        let mut copy = [0; ENTRY_LEN + EAGER_MAX as usize];
        let used = ENTRY_LEN + payload.len();
        copy[ENTRY_LEN..used].copy_from_slice(payload);
        entry.seal(&mut copy[..used], |bytes| fabric.crc32c(bytes));
        self.note_spread(entry.spread);
        self.store_entry(fabric, &entry, &mut copy[..used]);
        self.handed.entries = entry.seq;
        entry.seq
    }

    /// Where the next block of the message goes, and its bytes; none while the window is full.
    pub(in super::super) fn space(&self, fabric: &impl Fabric) -> Option<(At, u32)> {
        let block = self.note.blocks.base;
        if self.draft.is_none() || self.free_blocks() == 0 {
            return None;
        }
        let entry = self.entry(fabric, self.note.entries)?;
        Some((self.window.block_at(block), self.len_of(&entry, block)))
    }
}

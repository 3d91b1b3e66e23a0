//! What all members do together: barriers and all-gathers (GT-10, GT-11).
//!
//! A value of an all-gather is an entry of its sender's stream, so what is promised of messages
//! holds of values: of a removed member all survivors have the value, or none has. The value counts
//! once all that its root sent before is held; it stays where it lies until the values are taken.

use super::super::calls::Calls;
use super::super::mutants::{NONE_EARLY, VALUE_AHEAD};
use super::super::outcome::{Gathered, SendError};
use super::super::seats::{Grank, Members};
use super::super::stream::Stream;
use super::Group;
use crate::fabric::{At, Fabric};
use crate::wire::group::{ENTRY_LEN, Entry, EntryKind};

/// What is known of a value.
enum Value {
    Awaited,
    /// The entry, whose payload it is.
    Here(Entry),
    /// Its member was removed and has not sent it.
    Lost,
}

impl<const PEERS: usize> Group<PEERS> {
    /// Arrives at the next barrier, if the last was left; the number of the one that is open.
    pub(in super::super) fn arrive(&mut self, fabric: &impl Fabric) -> Result<u64, SendError> {
        if !self.is_open {
            return Err(SendError::NotOpen);
        }
        let calls = &mut self.note.calls;
        if calls.arrived == calls.left {
            calls.arrived += 1;
            self.note.store(fabric);
        }
        self.settle_barrier(fabric);
        Ok(self.note.calls.arrived)
    }

    /// Leaves the barrier that this member has arrived at, if all live members have.
    pub(in super::super) fn leave(&mut self, fabric: &impl Fabric) -> Option<u64> {
        let calls = &mut self.note.calls;
        if calls.arrived == calls.left || self.barrier.released < calls.arrived {
            return None;
        }
        calls.left = calls.arrived;
        self.note.store(fabric);
        Some(self.note.calls.left)
    }

    /// Arrivals may have come, or a member may have been removed that was waited for.
    pub(super) fn settle_barrier(&mut self, fabric: &impl Fabric) {
        let members = self.members;
        self.barrier.settle(self.note.calls.arrived, &members);
        // The others have left barriers without this member, which they had removed.
        if self.barrier.released > self.note.calls.arrived {
            let released = self.barrier.released;
            (self.note.calls.arrived, self.note.calls.left) = (released, released);
            self.note.store(fabric);
        }
    }

    /// Sends `mine` as the value of the next all-gather.
    pub(in super::super) fn all_gather(
        &mut self,
        fabric: &impl Fabric,
        mine: &[u8],
    ) -> Result<u64, SendError> {
        let limit = self.config.sizes().eager;
        if mine.len() > usize::from(limit) {
            return Err(SendError::TooLong { limit });
        }
        if self.note.calls.sent > self.note.calls.taken {
            return Err(SendError::Gathering);
        }
        self.check_send()?;
        let number = self.note.calls.sent + 1;
        let (len, kind) = (mine.len() as u64, EntryKind::Gather);
        let entry = Entry { len, tag: number, kind, ..self.blank() };
        let stream = self.own();
        // Until the values are taken: the others may have released it before.
        stream.kept = Some(stream.write(fabric, entry, mine));
        // Second: an incarnation that ends in between is found out by the entry.
        self.note.calls.sent = number;
        self.note.store(fabric);
        Ok(number)
    }

    /// Continues from the entries, where the note is older than they are.
    pub(super) fn attach_calls(&mut self, fabric: &impl Fabric) {
        let stream = &self.streams[self.members.me.index()];
        let kept = stream.last_value(fabric).filter(|(_, tag)| *tag > self.note.calls.taken);
        self.own().kept = kept.map(|(seq, _)| seq);
        self.note.calls.sent = kept.map_or(self.note.calls.sent, |(_, tag)| tag);
        self.note_taken();
    }

    /// The values of the all-gather that this member has sent its own to, once all are decided.
    pub(in super::super) fn gathered(&self, fabric: &impl Fabric) -> Option<Gathered<PEERS>> {
        let Calls { sent: number, taken, .. } = self.note.calls;
        if number == taken {
            return None;
        }
        let mut values = [None; PEERS];
        for grank in (0..self.members.count).map(Grank) {
            let stream = &self.streams[grank.index()];
            let has_part = self.since(grank).is_none_or(|since| since < number);
            values[grank.index()] = match stream.value(fabric, (number, has_part), &self.members) {
                Value::Awaited => return None,
                Value::Lost => None,
                Value::Here(entry) => {
                    let At { region, offset } = stream.window.entry_at(entry.seq);
                    let at = At { region, offset: offset + ENTRY_LEN as u32 };
                    Some((entry.seq, at, u32::try_from(entry.len).unwrap_or(0)))
                }
            };
        }
        Some(Gathered { number, count: self.members.count, values })
    }

    /// The values were taken: their memory may be used again.
    pub(in super::super) fn end_gather(&mut self, fabric: &impl Fabric) {
        if self.gathered(fabric).is_none() {
            return;
        }
        self.note.calls.taken = self.note.calls.sent;
        // First: a value that is released and not taken could not be gathered again.
        self.note.store(fabric);
        self.own().kept = None;
        self.note_taken();
        // A consumer that only gathers does not receive, and yet its window moves on.
        self.roots_mut().for_each(|stream| stream.skip_values(fabric));
    }

    pub(super) fn note_taken(&mut self) {
        let taken = self.note.calls.taken;
        self.roots_mut().for_each(|stream| stream.taken = taken);
    }
}

impl<const PEERS: usize> Stream<PEERS> {
    /// The value of all-gather `number` of this root, which may have no part in that.
    fn value(
        &self,
        fabric: &impl Fabric,
        (number, has_part): (u64, bool),
        members: &Members,
    ) -> Value {
        let first = self.kept.unwrap_or(self.handed.entries + 1);
        let entries = (first..=self.note.entries).filter_map(|seq| self.entry(fabric, seq));
        let mut values = entries.filter(|entry| entry.kind == EntryKind::Gather);
        let found = values.find(|entry| entry.tag == number);
        // What lacks a block before it may lie behind the end that the survivors agree on.
        let is_held = |entry: &Entry| self.note.blocks.base >= entry.first;
        let is_closed = self.closing.is_some_and(|it| it.is_closed);
        match found {
            Some(entry) if is_held(&entry) || VALUE_AHEAD.is_planted() => Value::Here(entry),
            Some(_) | None if self.is_led(members) && has_part => Value::Awaited,
            Some(_) | None if self.is_led(members) || NONE_EARLY.is_planted() => Value::Lost,
            Some(_) | None if self.is_turned() && is_closed => Value::Lost,
            Some(_) | None => Value::Awaited,
        }
    }

    /// Number and all-gather of the last value of this root that is in the window.
    pub(super) fn last_value(&self, fabric: &impl Fabric) -> Option<(u64, u64)> {
        let first = self.note.entries.saturating_sub(self.window.entries()) + 1;
        let entries = (first..=self.note.entries).rev().filter_map(|seq| self.entry(fabric, seq));
        let values = entries.filter(|entry| entry.kind == EntryKind::Gather);
        // The oldest may be half overwritten by one that an earlier incarnation did not finish.
        let mut values = values.filter(|entry| self.is_whole(fabric, entry));
        values.next().map(|entry| (entry.seq, entry.tag))
    }

    /// The consumer has taken the next entries, if they are values.
    pub(super) fn skip_values(&mut self, fabric: &impl Fabric) {
        let end = self.closing.and_then(|closing| closing.end);
        while let Some(entry) = self.entry(fabric, self.handed.entries + 1)
            && entry.kind == EntryKind::Gather
            && entry.tag <= self.taken
            && end.is_none_or(|end| entry.seq <= end.entries)
        {
            self.handed.entries = entry.seq;
            self.settle(fabric);
        }
    }
}

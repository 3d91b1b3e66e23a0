//! What this member says to the others. Everything is cumulative and due until it is sent, so a
//! full lane costs a repetition and no copy.

use super::super::closing::Report;
use super::super::outcome::Counters;
use super::super::seats::Grank;
use super::super::stream::{Members, Stream};
use super::Group;
use crate::fabric::{Fabric, Memory};
use crate::ids::Peer;
use crate::lane::{LaneWriter, SendError};
use crate::wire::group::{ENTRY_LEN, FORWARD, FRAME_LEN_MAX, Frame, HEAD_LEN, Head};

/// The lane to one member.
struct Speech<'a, F> {
    fabric: &'a mut F,
    lane: &'a mut LaneWriter,
}

impl<F: Fabric> Speech<'_, F> {
    fn say(&mut self, head: Head, frame: Frame) -> Result<(), SendError> {
        let (kind, bytes, len) = frame.encode(head);
        self.lane.send(self.fabric, kind, &bytes[..len])
    }
}

impl<const PEERS: usize> Group<PEERS> {
    /// Sends everything that `peer` must be sent.
    ///
    /// # Errors
    /// [`SendError`]: the rest is still due.
    pub(in super::super) fn say(
        &mut self,
        fabric: &mut impl Fabric,
        (peer, lane): (Peer, &mut LaneWriter),
        counters: &mut Counters,
    ) -> Result<(), SendError> {
        let Some(to) = self.grank(peer) else { return Ok(()) };
        let mut speech = Speech { fabric, lane };
        if self.agree_due & to.bit() != 0 {
            let heard = self.agreed & to.bit() != 0;
            let agree = Frame::Agree { list: self.list, sizes: self.config.digest(), heard };
            speech.say(self.streams[self.members.me.index()].head, agree)?;
            self.agree_due &= !to.bit();
        }
        if self.agreed & to.bit() == 0 {
            return Ok(());
        }
        let members = self.members;
        if let Some(frame) = self.barrier.frame_for(to, self.note.calls.arrived, &members) {
            speech.say(self.streams[members.me.index()].head, frame)?;
            self.barrier.note_said(to, self.note.calls.arrived, &members);
        }
        for root in self.in_turn() {
            let stream = &mut self.streams[root.index()];
            // Before its epoch is known there is nothing to say of a root that is live.
            if stream.head.epoch == 0 && stream.round().is_none() {
                continue;
            }
            stream.say_state(&mut speech, to, &members)?;
            if self.is_open {
                stream.forward(&mut speech, to, counters)?;
            }
        }
        Ok(())
    }
}

impl<const PEERS: usize> Stream<PEERS> {
    fn say_state<F: Fabric>(
        &mut self,
        speech: &mut Speech<'_, F>,
        to: Grank,
        members: &Members,
    ) -> Result<(), SendError> {
        let head = self.head;
        if self.need_due && self.predecessor == Some(to) {
            speech.say(head, Frame::Need { next: self.note.entries + 1 })?;
            self.need_due = false;
        }
        if self.hold_due & to.bit() != 0 {
            speech.say(head, Frame::Hold(self.note.held()))?;
            self.hold_due &= !to.bit();
        }
        if self.parent == Some(to)
            && let Some(ack) = self.ack_due(members)
        {
            let (entries, blocks) = (ack.released.entries, ack.released.blocks);
            speech.say(head, Frame::Ack { entries, blocks, removed: ack.removed })?;
            self.acked = Some(ack);
        }
        if let Some(closing) = &mut self.closing
            && let Some(report) = closing.own(members)
            && closing.report_due & to.bit() != 0
        {
            let Report { removed, held } = report;
            speech.say(head, Frame::Report { removed, held })?;
            closing.report_due &= !to.bit();
        }
        Ok(())
    }

    /// Sends `to` the entries that it does not have, if it is a successor and has said where it
    /// stands.
    fn forward<F: Fabric>(
        &mut self,
        speech: &mut Speech<'_, F>,
        to: Grank,
        counters: &mut Counters,
    ) -> Result<(), SendError> {
        let is_led = self.round().is_none() && self.successors & to.bit() != 0;
        while let Some(next) = self.cursors[to.index()].filter(|_| is_led) {
            let Some(entry) = self.entry(speech.fabric, next) else { break };
            let mut frame = [0; FRAME_LEN_MAX];
            frame[..HEAD_LEN].copy_from_slice(&self.head.encode());
            let used = HEAD_LEN + ENTRY_LEN + entry.payload_len();
            let Some(slot) = frame.get_mut(HEAD_LEN..used) else { break };
            let at = self.window.entry_at(next);
            speech.fabric.memory().copy_out(at.region, at.offset, slot);
            speech.lane.send(speech.fabric, FORWARD, &frame[..used])?;
            self.cursors[to.index()] = Some(next + 1);
            counters.forwards += 1;
        }
        Ok(())
    }
}

//! What this member says to the others. Everything is cumulative and due until it is sent, so a
//! full lane costs a repetition and no copy.

use super::super::mutants::{OLD_CURSOR, UNANSWERED};
use super::super::outcome::Counters;
use super::super::seats::{Grank, Members};
use super::super::stream::Stream;
use super::Group;
use crate::fabric::{Fabric, Memory};
use crate::ids::Peer;
use crate::lane::{LaneWriter, SendError};
use crate::wire::group::{Agree, ENTRY_LEN, FORWARD, FRAME_LEN_MAX, Frame, HEAD_LEN, Head};

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
        let (members, bit) = (self.members, to.bit());
        let own = self.streams[members.me.index()].head;
        if self.agree_due & bit != 0 {
            if self.is_fresh {
                self.pledge(speech.fabric);
            }
            speech.say(own, Frame::Agree(self.agree(to)))?;
            self.agree_due &= !bit;
        }
        if self.agreed & bit == 0 {
            return Ok(());
        }
        self.say_answers(&mut speech, to)?;
        // A fresh member says nothing else, and nothing is said to one that is not counted.
        if self.is_fresh {
            let mut streams = self.roots_mut();
            return streams.try_for_each(|it| it.say_report(&mut speech, to, &members));
        }
        if members.live & bit == 0 {
            return Ok(());
        }
        if self.welcome_due & bit != 0 {
            let welcome = self.welcome(speech.fabric);
            speech.say(own, Frame::Welcome(welcome))?;
            self.welcome_due &= !bit;
        }
        if let Some(frame) = self.barrier.frame_for(to, self.note.calls.arrived, &members) {
            speech.say(own, frame)?;
            self.barrier.note_said(to, self.note.calls.arrived, &members);
        }
        for root in self.in_turn() {
            let stream = &mut self.streams[root.index()];
            stream.say_report(&mut speech, to, &members)?;
            // Nothing of the epoch that is counted is here yet.
            if !stream.is_turned() {
                continue;
            }
            stream.say_state(&mut speech, to, &members)?;
            if self.is_open {
                stream.forward(&mut speech, to, counters)?;
            }
        }
        Ok(())
    }

    fn agree(&self, to: Grank) -> Agree {
        Agree {
            list: self.list,
            sizes: self.config.digest(),
            live: self.members.live,
            epochs: self.members.epochs,
            heard: self.agreed & to.bit() != 0,
            fresh: self.is_fresh,
        }
    }

    /// Answers the reports of `to` about epochs that this member takes no part in.
    fn say_answers<F: Fabric>(
        &mut self,
        speech: &mut Speech<'_, F>,
        to: Grank,
    ) -> Result<(), SendError> {
        for root in (0..self.members.count).map(Grank) {
            let stream = &mut self.streams[root.index()];
            if stream.answer_due & to.bit() == 0 || UNANSWERED.is_planted() {
                continue;
            }
            // One that this member may still count is answered once it does, or never will.
            let Some((epoch, report)) = stream.answer(to) else { continue };
            speech.say(Head { epoch, ..stream.head }, Frame::Report(report))?;
            stream.answer_due &= !to.bit();
        }
        Ok(())
    }
}

impl<const PEERS: usize> Stream<PEERS> {
    fn say_report<F: Fabric>(
        &mut self,
        speech: &mut Speech<'_, F>,
        to: Grank,
        members: &Members,
    ) -> Result<(), SendError> {
        if self.report_due & to.bit() == 0 {
            return Ok(());
        }
        if let Some((epoch, report)) = self.report(members) {
            speech.say(Head { epoch, ..self.head }, Frame::Report(report))?;
            self.report_due &= !to.bit();
        }
        Ok(())
    }

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
            speech.say(head, Frame::Ack { entries, blocks, epochs: ack.epochs })?;
            self.acked = Some(ack);
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
        let is_led = self.closing.is_none() && self.successors & to.bit() != 0;
        let epoch = self.note.epoch;
        // What has left the window was released by all: the successor has it from another since.
        let oldest = self.note.entries.saturating_sub(self.window.entries()) + 1;
        let oldest = if OLD_CURSOR.is_planted() { 0 } else { oldest };
        while let Some((_, next)) = self.cursors[to.index()].filter(|it| is_led && it.0 == epoch) {
            let next = next.max(oldest);
            let Some(entry) = self.entry(speech.fabric, next) else { break };
            let mut frame = [0; FRAME_LEN_MAX];
            frame[..HEAD_LEN].copy_from_slice(&self.head.encode());
            let used = HEAD_LEN + ENTRY_LEN + entry.payload_len();
            let Some(slot) = frame.get_mut(HEAD_LEN..used) else { break };
            let at = self.window.entry_at(next);
            speech.fabric.memory().copy_out(at.region, at.offset, slot);
            speech.lane.send(speech.fabric, FORWARD, &frame[..used])?;
            self.cursors[to.index()] = Some((epoch, next + 1));
            counters.forwards += 1;
        }
        Ok(())
    }
}

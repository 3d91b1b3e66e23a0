//! The voter: judges reads, and delivers messages that have all votes (N-5, N-6).

use super::super::ballot::{Again, Signed};
use super::super::config::Shown;
use super::super::judge::{Reading, judge_landed};
use super::super::mutants::{
    COUNT_LATE, DELIVER_AGAIN, FAILURE_IS_VOTE, READ_BEFORE_EXPOSE, REMOVE_ON_TIMEOUT,
    STALE_OWN_COPY,
};
use super::super::outcome::Message;
use super::super::stream::earlier;
use super::super::window::show;
use super::Neb;
use crate::fabric::{Completion, Fabric};
use crate::ids::Peer;
use crate::time::Instant;
use crate::wire::broadcast::{Form, Header};

/// Reads after which a slot that is torn still is taken for damaged.
const TORN_READS: u8 = 16;

impl<const PEERS: usize, const DEPTH: usize> Neb<PEERS, DEPTH> {
    pub(super) fn handle_vote(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
        (origin, replayer): (Peer, Peer),
        which: (u32, u32),
        completion: &Completion,
    ) {
        let map = self.map;
        let stream = &mut self.streams[origin.index()];
        let delivered = stream.delivered;
        let Some(ballot) = stream.asked(&map, replayer, which) else {
            return;
        };
        let is_present = ballot.handle_end(replayer);
        // Delivered, or of an epoch of its origin that is over: the read only held its place.
        if ballot.seq() <= delivered {
            return;
        }
        if !is_present {
            self.streams[origin.index()].asks = true;
            return;
        }
        let Some(exposed) = &ballot.exposed else { return };
        let reading = match completion.outcome {
            Ok(_) => {
                let copies = (&mut self.own.0, &mut self.theirs.0);
                judge_landed(fabric, &map, (exposed, replayer), copies)
            }
            // Not a vote, and no evidence of a failed member (N-7).
            Err(_) if FAILURE_IS_VOTE.is_planted() => Reading::Nothing,
            Err(_) => Reading::Failed,
        };
        if completion.outcome.is_err() && REMOVE_ON_TIMEOUT.is_planted() {
            return self.drop_member(replayer, self.epoch(replayer));
        }
        let is_signed = map.config.form() == Form::Signed;
        let reading = match reading {
            Reading::Different | Reading::Newer if is_signed && !self.vouches(&self.theirs.0) => {
                Reading::Forged
            }
            reading => reading,
        };
        self.note_reading(fabric, now, (origin, replayer), which, reading);
    }

    /// Whether the origin that the slot names has signed it; that is the origin voted on, as was
    /// checked before.
    fn vouches(&self, _slot: &[u8]) -> bool {
        #[cfg(feature = "signed")]
        let vouched = self.keys.0.as_ref().is_some_and(|keys| keys.vouches(_slot));
        #[cfg(not(feature = "signed"))]
        let vouched = false;
        vouched
    }

    /// Whether the own copy of the message in that slot of `origin`'s ring is signed.
    fn look_at_signature(&mut self, fabric: &impl Fabric, origin: Peer, index: u32) -> Signed {
        let ballot = self.streams[origin.index()].ballot(&self.map, u64::from(index));
        let Some(exposed) = &ballot.exposed else { return Signed::Unchecked };
        if !STALE_OWN_COPY.is_planted() {
            self.own.0.recall(fabric, &self.map, exposed);
        }
        if self.vouches(self.own.0.bytes()) { Signed::Yes } else { Signed::No }
    }

    fn note_reading(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
        (origin, replayer): (Peer, Peer),
        (index, _): (u32, u32),
        reading: Reading,
    ) {
        let (map, retry) = (self.map, self.map.config.retry());
        let stream = &mut self.streams[origin.index()];
        let ballot = stream.ballot_mut(&map, u64::from(index));
        let before = ballot.dispute;
        let read = (ballot.seq(), replayer);
        let stays_torn = reading == Reading::Torn && ballot.attempts >= TORN_READS;
        let again = match map.config.form() {
            Form::Unsigned => ballot.hear(replayer, reading),
            Form::Signed => ballot.hear_signed(replayer, reading),
        };
        let (disputed, mut at) = (ballot.dispute != before, None);
        if again == Again::IfUnsigned {
            let signed = self.look_at_signature(fabric, origin, index);
            self.streams[origin.index()].ballot_mut(&map, u64::from(index)).signed = signed;
        }
        let stream = &mut self.streams[origin.index()];
        let ballot = stream.ballot_mut(&map, u64::from(index));
        let later =
            again == Again::Later || again == Again::IfUnsigned && ballot.signed == Signed::No;
        if later {
            let due = now.after(retry.pause(ballot.attempts));
            ballot.pause(replayer, due);
            at = Some(due);
        }
        stream.again_at = earlier(stream.again_at, at);
        stream.asks |= again == Again::AtOnce;
        self.counters.0.newer += u64::from(reading == Reading::Newer);
        self.counters.0.misplaced += u64::from(reading == Reading::Misplaced);
        stream.note_torn(read, stays_torn);
        if reading == Reading::Unfit {
            self.counters.0.unfit += u64::from(stream.note_damage(read.0));
        }
        if disputed {
            stream.note_conflict();
            self.counters.0.conflicts += 1;
        }
    }

    pub(super) fn is_deliverable(&self, origin: Peer) -> bool {
        let stream = &self.streams[origin.index()];
        let seq = stream.delivered + 1;
        seq < stream.next
            && (origin == self.members.me
                || stream.ballot(&self.map, seq).is_carried(self.members.voters(origin)))
    }

    /// Delivers the next message of `origin`, once: the progress is stored first, so that no later
    /// incarnation delivers it again.
    pub(super) fn deliver(&mut self, fabric: &impl Fabric, origin: Peer) -> Option<Message<'_>> {
        let map = self.map;
        if COUNT_LATE.is_planted() {
            self.members.live = self.members.live.union(self.returned());
        }
        let stream = &mut self.streams[origin.index()];
        let seq = stream.delivered + 1;
        let whole = match &stream.ballot(&map, seq).exposed {
            Some(exposed) if origin != self.members.me => {
                if READ_BEFORE_EXPOSE.is_planted() {
                    exposed.publish(fabric, &map);
                }
                self.own.0.recall_whole(fabric, &map, exposed)
            }
            _ => {
                let place = (map.bcast(origin, seq), map.config.stride() as usize);
                self.own.0.read(fabric, place, map.config.stamp(origin, seq))
            }
        };
        let Some(slot) = whole else {
            self.counters.0.unfit += u64::from(stream.note_damage(seq));
            return None;
        };
        let header = Header::peek(slot).ok()?;
        let payload = slot.get(header.payload())?;
        let removed = self.members.live.count() < u32::from(map.config.peers());
        if !(DELIVER_AGAIN.is_planted() && removed) {
            stream.note_delivered(seq);
            show(fabric, &map, Shown::Delivered(origin), seq);
        }
        self.counters.0.delivered += 1;
        Some(Message { origin, seq, tag: header.tag, payload })
    }
}

//! The messages of one origin at this member: copied, exposed, voted on, delivered in order.
//!
//! ```text
//!   … delivered │ delivered + 1 … next - 1 │ next …
//!               │ exposed, a ballot each   │ looked for in the origin's ring
//! ```

use core::num::NonZeroU64;

use super::aside::Aside;
#[cfg(feature = "signed")]
use super::ballot::Signed;
use super::ballot::{Ballot, Dispute};
use super::map::Map;
use super::work::tag_of;
use crate::ids::Peer;
use crate::time::{Duration, Instant};

/// One origin's messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stream<const DEPTH: usize> {
    /// The last message delivered.
    pub(super) delivered: u64,
    /// The message that is expected next.
    pub(super) next: u64,
    /// The last message before those that are handed out here.
    pub(super) behind: u64,
    ballots: [Ballot; DEPTH],
    /// A ballot has replayers to read.
    pub(super) asks: bool,
    /// The earliest time at which a pausing replayer is read again.
    pub(super) again_at: Option<Instant>,
    pub(super) conflicts: u32,
    /// Conflicts not yet reported to the caller.
    unreported: u32,
    /// While the slot of the next message holds neither that message nor an earlier one: the time
    /// in nanoseconds from which that is damage.
    unfit_until: Aside<Option<NonZeroU64>>,
    /// The message in whose place own memory holds none, once that is counted.
    damaged: Aside<Option<NonZeroU64>>,
    /// A replayer whose copy of the message that is due stays torn.
    torn: Aside<Option<Peer>>,
}

/// What the slot of the next message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The message; it was accepted.
    Message,
    /// The message before it in that slot, or none; or there is no place for it yet.
    Earlier,
    /// Something else: it is still arriving, or garbage.
    Unfit,
}

impl<const DEPTH: usize> Stream<DEPTH> {
    pub(super) fn new(delivered: u64) -> Self {
        Self {
            delivered,
            next: delivered + 1,
            behind: 0,
            ballots: core::array::from_fn(|_| Ballot::default()),
            asks: false,
            again_at: None,
            conflicts: 0,
            unreported: 0,
            unfit_until: Aside(None),
            damaged: Aside(None),
            torn: Aside(None),
        }
    }

    pub(super) fn ballot(&self, map: &Map, seq: u64) -> &Ballot {
        &self.ballots[map.place(seq) as usize]
    }

    pub(super) fn ballot_mut(&mut self, map: &Map, seq: u64) -> &mut Ballot {
        &mut self.ballots[map.place(seq) as usize]
    }

    /// Whether a ballot is free for the next message: the one before in that place is delivered,
    /// and no read of it is under way any more (trap T2).
    pub(super) fn has_place(&self, map: &Map) -> bool {
        self.next - self.delivered <= u64::from(map.config.depth())
            && self.ballot(map, self.next).reading.is_empty()
    }

    /// Whether `seen` is the number of a message that lies in the slot before the next one, or of
    /// none.
    #[inline]
    pub(super) const fn is_earlier(&self, map: &Map, seen: u64) -> bool {
        let lies_here = map.config.index(seen) == map.config.index(self.next);
        seen == 0 || seen < self.next && lies_here
    }

    /// Whether nothing is due at `now` before another message arrives.
    #[inline]
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        let pauses = self.again_at.is_none_or(|at| at > now);
        pauses && !self.asks && self.unfit_until.0.is_none()
    }

    /// What was `found` in the slot of the next message at `now`. Whether that is damage: no
    /// message has come together there for as long as `patience`, and it was not counted.
    pub(super) fn note_found(&mut self, found: Found, now: Instant, patience: Duration) -> bool {
        if found != Found::Unfit {
            if self.unfit_until.0.take().is_some() {
                self.repair(self.next);
            }
            return false;
        }
        let until = NonZeroU64::new(now.after(patience).0);
        let until = *self.unfit_until.0.get_or_insert(until.unwrap_or(NonZeroU64::MIN));
        now.0 >= until.get() && self.note_damage(self.next)
    }

    /// Own memory does not hold message `seq`. Whether it was not counted before.
    pub(super) fn note_damage(&mut self, seq: u64) -> bool {
        let seq = NonZeroU64::new(seq);
        core::mem::replace(&mut self.damaged.0, seq) != seq
    }

    /// Message `seq` is no longer missing.
    fn repair(&mut self, seq: u64) {
        self.damaged.0 = self.damaged.0.filter(|damaged| damaged.get() != seq);
    }

    /// The next message was accepted.
    pub(super) fn advance(&mut self) {
        self.repair(self.next);
        self.unfit_until.0 = None;
        self.next += 1;
    }

    /// Message `seq` was delivered.
    pub(super) fn note_delivered(&mut self, seq: u64) {
        self.delivered = seq;
        self.torn.0 = None;
    }

    /// Records whether what was `read`, a message at a replayer, stays torn.
    pub(super) fn note_torn(&mut self, read: (u64, Peer), stays_torn: bool) {
        let (seq, replayer) = read;
        if seq != self.delivered + 1 {
            return;
        }
        if stays_torn {
            self.torn.0 = Some(replayer);
        } else if self.torn.0 == Some(replayer) {
            self.torn.0 = None;
        }
    }

    /// The replayer whose copy of the message that is due stays torn.
    pub(super) fn torn_replayer(&self) -> Option<Peer> {
        self.torn.0
    }

    /// Whether own memory does not hold a message that is due.
    pub(super) fn is_damaged(&self) -> bool {
        self.damaged.0.is_some_and(|seq| seq.get() > self.delivered)
    }

    /// The messages that are voted on.
    pub(super) fn pending(&self) -> core::ops::Range<u64> {
        self.delivered + 1..self.next
    }

    /// The ballot of the message that `replayer` was asked for under `index` and `generation`;
    /// `None` if no such read is under way.
    pub(super) fn asked(
        &mut self,
        map: &Map,
        replayer: Peer,
        (index, generation): (u32, u32),
    ) -> Option<&mut Ballot> {
        let is_it = |ballot: &&mut Ballot| {
            let seq = ballot.seq();
            let stamp = ballot.exposed.as_ref().map(|exposed| exposed.stamp());
            seq != 0
                && map.config.index(seq) == index
                && stamp.is_some_and(|stamp| tag_of(stamp.generation) == generation)
                && ballot.reading.contains(replayer)
        };
        // All messages of one slot have their ballot in one place, because depth divides W.
        let place = map.place(u64::from(index)) as usize;
        self.ballots.get_mut(place).filter(is_it)
    }

    /// The origin's key is known now: the signatures of own copies are checked again.
    #[cfg(feature = "signed")]
    pub(super) fn look_again(&mut self) {
        for ballot in self.ballots.iter_mut().filter(|ballot| ballot.signed == Signed::No) {
            ballot.signed = Signed::Unchecked;
        }
    }

    /// A ballot of this stream has a conflict.
    pub(super) fn note_conflict(&mut self) {
        self.conflicts = self.conflicts.saturating_add(1);
        self.unreported += 1;
    }

    /// The first conflict not yet reported to the caller: its number and replayer.
    pub(super) fn take_conflict(&mut self, map: &Map) -> Option<(u64, Peer)> {
        if self.unreported == 0 {
            return None;
        }
        for seq in self.pending() {
            let ballot = self.ballot_mut(map, seq);
            if let Dispute::Unreported(replayer) = ballot.dispute {
                ballot.dispute = Dispute::Reported(replayer);
                self.unreported -= 1;
                return Some((seq, replayer));
            }
        }
        None
    }

    /// Goes on after `delivered`, the last message that is not handed out: what was voted on is
    /// dropped. The reads under way keep their places until they end.
    pub(super) fn begin_behind(&mut self, delivered: u64) {
        (self.behind, self.delivered, self.next) = (delivered, delivered, delivered + 1);
        (self.conflicts, self.unreported, self.again_at) = (0, 0, None);
        (self.unfit_until.0, self.damaged.0, self.torn.0) = (None, None, None);
    }

    /// A new epoch of `replayer` is counted.
    pub(super) fn forget(&mut self, replayer: Peer) {
        self.ballots.iter_mut().for_each(|ballot| ballot.forget(replayer));
        self.torn.0 = self.torn.0.filter(|torn| *torn != replayer);
        self.asks = true;
    }

    /// Ends the pauses that are over at `now`.
    pub(super) fn resume(&mut self, map: &Map, now: Instant) {
        if self.again_at.is_none_or(|at| at > now) {
            return;
        }
        self.again_at = None;
        for seq in self.pending() {
            let ballot = self.ballot_mut(map, seq);
            let resumed = ballot.resume(now);
            let later = (!ballot.pausing.is_empty()).then_some(ballot.again_at);
            self.asks |= resumed;
            self.again_at = earlier(self.again_at, later);
        }
    }
}

/// The earlier of two times, where `None` means never.
pub(super) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

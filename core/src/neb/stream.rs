//! The messages of one origin at this member: copied, exposed, voted on, delivered in order.
//!
//! ```text
//!   … delivered │ delivered + 1 … next - 1 │ next …
//!               │ exposed, a ballot each   │ looked for in the origin's ring
//! ```

#[cfg(feature = "signed")]
use super::ballot::Signed;
use super::ballot::{Ballot, Dispute};
use super::map::Map;
use super::work::tag_of;
use crate::ids::Peer;
use crate::time::Instant;

/// One origin's messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stream<const DEPTH: usize> {
    /// The last message delivered.
    pub(super) delivered: u64,
    /// The message that is looked for.
    pub(super) next: u64,
    ballots: [Ballot; DEPTH],
    /// Some ballot has somebody to ask.
    pub(super) asks: bool,
    /// The earliest time at which somebody who pauses is read again.
    pub(super) again_at: Option<Instant>,
    pub(super) conflicts: u32,
    /// Conflicts that the caller has not heard of.
    unreported: u32,
}

impl<const DEPTH: usize> Stream<DEPTH> {
    pub(super) fn new(delivered: u64) -> Self {
        Self {
            delivered,
            next: delivered + 1,
            ballots: core::array::from_fn(|_| Ballot::default()),
            asks: false,
            again_at: None,
            conflicts: 0,
            unreported: 0,
        }
    }

    pub(super) fn ballot(&self, map: &Map, seq: u64) -> &Ballot {
        &self.ballots[map.place(seq) as usize]
    }

    pub(super) fn ballot_mut(&mut self, map: &Map, seq: u64) -> &mut Ballot {
        &mut self.ballots[map.place(seq) as usize]
    }

    /// Whether the next message has a ballot to go to: the one before in that place is delivered
    /// and no read of it is under way any more (trap T2).
    pub(super) fn has_place(&self, map: &Map) -> bool {
        self.next - self.delivered <= u64::from(map.config.depth())
            && self.ballot(map, self.next).reading.is_empty()
    }

    /// The messages that are voted on.
    pub(super) fn pending(&self) -> core::ops::Range<u64> {
        self.delivered + 1..self.next
    }

    /// The ballot of the message whose read by `replayer` is named by `index` and `generation`;
    /// nothing when no such read is under way.
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
        // All messages that lie in one slot have their ballot in one place: depth divides W.
        let place = map.place(u64::from(index)) as usize;
        self.ballots.get_mut(place).filter(is_it)
    }

    /// The origin's key has become known: own copies are looked at again.
    #[cfg(feature = "signed")]
    pub(super) fn look_again(&mut self) {
        for ballot in self.ballots.iter_mut().filter(|ballot| ballot.signed == Signed::No) {
            ballot.signed = Signed::Unchecked;
        }
    }

    /// A ballot of this stream has come to a conflict.
    pub(super) fn note_conflict(&mut self) {
        self.conflicts = self.conflicts.saturating_add(1);
        self.unreported += 1;
    }

    /// The first conflict that the caller has not heard of, as number and replayer.
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

    /// Those who pause and are due are to be asked again.
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

/// The earlier of two times, where nothing means never.
pub(super) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

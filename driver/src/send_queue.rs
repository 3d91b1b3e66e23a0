//! What was posted to one pair and has not ended: exact accounting, and no device in sight.
//!
//! Works are numbered in posting order, and the device ends them in that order. Not every one
//! is signalled: a success speaks for all that came before it, a failure is always reported.
//!
//! ```text
//!        head                                       tail
//!   ──────▼───────────────────────────────────────────▼──────
//!         │ quiet  quiet  LOUD  quiet  part  part LOUD │ free
//!         └────────────── ▲ ─────────────────────▲─────┘
//!                         └── signalled: always ──┘   and every 16th of the others
//! ```
//!
//! - A place is free again only when a completion has passed it, so the device's queue, which is
//!   as long as this one, is never full when this one is not; and the completion queue, which is
//!   as long too, cannot overflow, since each work has one completion at most.
//! - Loud works, reads and atomics are signalled, and of the others at least every 16th. So at
//!   most 15 works at the tail are uncovered; the next signalled work reports them, or a
//!   *marker*, a write of nothing, for which one place is kept.
//! - A work that this end must refuse is a marker that is reported as denied. Were it reported at
//!   once, quiet work before it would seem done that is still on its way (F-2).
//! - A transfer that is longer than a message is cut into *parts*; the first failure of a part
//!   is reported under the name of the last one, which is the work itself.
//!
//! Time comes from polls only: a work's age is counted from the first poll after its post.

use weft_core::fabric::{Failure, WorkId};
use weft_core::time::Instant;

/// Of works that need no signal, every one that comes this often gets one all the same.
const SIGNAL_EVERY: u16 = 16;

/// How a work is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// Always.
    Loud,
    /// When it fails.
    Quiet,
    /// By the loud or quiet work that it is a part of.
    Part,
    /// Never.
    Marker,
    /// Always, as denied: this end knows that the peer would refuse it, and what the device gets in
    /// its place is a marker, so that it ends behind all that was posted before it.
    Denied,
}

/// What a work brings back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// Nothing: a write.
    Nothing,
    /// Bytes of the peer's memory.
    Bytes,
    /// The old value of a word.
    Word,
}

/// Which earlier work has to end before the device may have a work (F-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// Reads and atomics: a write.
    Fetches,
    /// Reads: an atomic.
    Reads,
    /// None: a read, which the device keeps behind all of it, and a write that is apart.
    Nothing,
}

/// Whether the device reports a work's success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Yes,
    No,
}

/// A place in the queue: its number since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(crate) u64);

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: WorkId,
    report: Report,
    fetch: Fetch,
    signal: Signal,
    /// The first poll that saw it.
    seen: Option<Instant>,
}

/// A work that has ended and is to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) id: WorkId,
    pub(crate) place: Place,
    pub(crate) fetch: Fetch,
    pub(crate) seen: Option<Instant>,
    pub(crate) outcome: Result<(), Failure>,
}

/// The outstanding work of one pair.
#[derive(Debug)]
pub(crate) struct SendQueue {
    ring: Box<[Option<Entry>]>,
    head: u64,
    tail: u64,
    /// The place after the last signalled work.
    covered: u64,
    /// The place after the last work in the device's hands that fetches.
    fetching: u64,
    /// The place after the last read in the device's hands.
    reading: u64,
    /// The place after the last work that a poll has seen.
    seen: u64,
    /// The first failure of the parts of a work whose last one has not ended.
    part_failed: Option<Failure>,
}

impl SendQueue {
    pub(crate) fn new(depth: u16) -> Self {
        assert!(depth > SIGNAL_EVERY, "the configuration was checked");
        let ring = vec![None; usize::from(depth)].into_boxed_slice();
        Self {
            ring,
            head: 0,
            tail: 0,
            covered: 0,
            fetching: 0,
            reading: 0,
            seen: 0,
            part_failed: None,
        }
    }

    /// How many works can be pushed. The place of the marker is not among them.
    pub(crate) fn room(&self) -> usize {
        (self.ring.len() - 1).saturating_sub(self.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most the length of the ring")]
    fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    /// Whether the device still has work that what comes next must be behind.
    pub(crate) fn must_wait(&self, behind: Behind) -> bool {
        match behind {
            Behind::Fetches => self.fetching > self.head,
            Behind::Reads => self.reading > self.head,
            Behind::Nothing => false,
        }
    }

    /// The work at `place` is in the device's hands now.
    pub(crate) fn hand_over(&mut self, place: Place) {
        let fetch = self.entry(place.0).map_or(Fetch::Nothing, |entry| entry.fetch);
        if fetch != Fetch::Nothing {
            self.fetching = place.0 + 1;
        }
        if fetch == Fetch::Bytes {
            self.reading = place.0 + 1;
        }
    }

    #[cfg(feature = "verbs")]
    /// Whether the work at `place` is the first that has not ended.
    pub(crate) fn is_next(&self, place: Place) -> bool {
        place.0 == self.head
    }

    #[cfg(feature = "verbs")]
    /// Whether the last work is a part, and so the work that it belongs to is not all posted.
    pub(crate) fn ends_in_part(&self) -> bool {
        let last = (!self.is_empty()).then(|| self.entry(self.tail - 1)).flatten();
        last.is_some_and(|entry| entry.report == Report::Part)
    }

    /// Takes a work in. There must be room.
    pub(crate) fn push(&mut self, id: WorkId, report: Report, fetch: Fetch) -> (Place, Signal) {
        assert!(self.len() < self.ring.len(), "ask for room first");
        let place = self.tail;
        self.tail += 1;
        let uncovered = place - self.covered.max(self.head).min(place);
        let is_due = uncovered + 1 >= u64::from(SIGNAL_EVERY);
        let signal = match (report, fetch) {
            (Report::Loud | Report::Marker | Report::Denied, _)
            | (_, Fetch::Bytes | Fetch::Word) => Signal::Yes,
            (Report::Quiet | Report::Part, Fetch::Nothing) if is_due => Signal::Yes,
            (Report::Quiet | Report::Part, Fetch::Nothing) => Signal::No,
        };
        if signal == Signal::Yes {
            self.covered = self.tail;
        }
        *self.slot(place) = Some(Entry { id, report, fetch, signal, seen: None });
        (Place(place), signal)
    }

    /// Takes the last work back, which was not handed over.
    pub(crate) fn retract(&mut self) {
        assert!(!self.is_empty(), "nothing was pushed");
        self.tail -= 1;
        *self.slot(self.tail) = None;
        let is_signalled =
            |place: &u64| self.entry(*place).is_some_and(|entry| entry.signal == Signal::Yes);
        self.covered = (self.head..self.tail).rev().find(is_signalled).map_or(0, |last| last + 1);
        self.seen = self.seen.min(self.tail);
    }

    /// The device has ended the work at `place`, and by that all works before it. A place that
    /// is not outstanding is a device's mistake and is passed over.
    pub(crate) fn end(&mut self, place: Place, outcome: Result<(), Failure>) -> Option<Ended> {
        if !(self.head..self.tail).contains(&place.0) {
            return None;
        }
        self.head = place.0;
        self.pop(|_| outcome)
    }

    /// Ends the first outstanding work without the device, with the failure that `why` gives for
    /// the poll that saw it. Returns whether there was one, and what to report.
    pub(crate) fn abandon(
        &mut self,
        why: impl FnOnce(Option<Instant>) -> Failure,
    ) -> Option<Option<Ended>> {
        (!self.is_empty()).then(|| self.pop(|entry| Err(why(entry.seen))))
    }

    fn pop(&mut self, outcome: impl FnOnce(&Entry) -> Result<(), Failure>) -> Option<Ended> {
        let place = self.head;
        self.head += 1;
        let entry = self.slot(place).take()?;
        let outcome = outcome(&entry);
        let outcome = match entry.report {
            Report::Marker => return None,
            Report::Part => {
                self.part_failed = self.part_failed.or(outcome.err());
                return None;
            }
            Report::Loud | Report::Quiet => self.part_failed.take().map_or(outcome, Err),
            Report::Denied => outcome.and(Err(Failure::AccessDenied)),
        };
        if entry.report == Report::Quiet && outcome.is_ok() {
            return None;
        }
        let Entry { id, fetch, seen, .. } = entry;
        Some(Ended { id, place: Place(place), fetch, seen, outcome })
    }

    /// A poll at `now` has seen all that was posted.
    pub(crate) fn see(&mut self, now: Instant) {
        for place in self.seen.max(self.head)..self.tail {
            if let Some(entry) = self.slot(place) {
                entry.seen = Some(now);
            }
        }
        self.seen = self.tail;
    }

    /// Since when the device owes a completion: the first poll that saw the first signalled work.
    pub(crate) fn owed_since(&self) -> Option<Instant> {
        let mut entries = (self.head..self.tail).filter_map(|place| self.entry(place));
        entries.find(|entry| entry.signal == Signal::Yes).and_then(|entry| entry.seen)
    }

    /// Since when works wait at the tail that no signalled one follows.
    pub(crate) fn uncovered_since(&self) -> Option<Instant> {
        let first = self.covered.max(self.head);
        (first < self.tail).then(|| self.entry(first)?.seen).flatten()
    }

    fn index(&self, place: u64) -> usize {
        slot_of(Place(place), self.ring.len())
    }

    fn slot(&mut self, place: u64) -> &mut Option<Entry> {
        let index = self.index(place);
        &mut self.ring[index]
    }

    fn entry(&self, place: u64) -> Option<Entry> {
        self.ring[self.index(place)]
    }
}

/// Which of `depth` slots a place has.
#[expect(clippy::cast_possible_truncation, reason = "less than depth, which is a usize")]
pub(crate) fn slot_of(place: Place, depth: usize) -> usize {
    (place.0 % depth as u64) as usize
}

#[cfg(test)]
mod tests;

//! The writer's side: one [`Outbox`] for each owner.
//!
//! Messages are staged, then put together: one fetch-add reserves a ticket for each, one write
//! fills the neighbouring slots (MB-3, MB-8).
//!
//! ```text
//!            flush                 ticket                    written
//!   Idle ───────────▶ Reserving ───────────▶ Holding ──────────────────▶ Idle
//!    ▲ ◀── Full ─────────┘                      └── failed ──▶ Lost ── readmit ──▶ Idle
//!    └─ still full ─── Probing ── room again ───▶ Reserving
//! ```
//!
//! The claim in this endpoint's memory follows the state: it is stored before the step that it
//! announces (MB-7). A refused message stays staged: `flush` tries again, `discard` gives it up.
//! Works by polling alone: `flush` posts, [`Outbox::handle_completion`] continues. Where a fabric
//! answers at once, `flush` runs through to the end, and [`Outbox::poll`] returns the event;
//! [`Outbox::flush_now`] itself returns what it put.

mod stage;

use super::mutants::{
    BATCH_PAST_HALF, CLAIM_AFTER_FETCH_ADD, CLAIM_DROPPED_EARLY, PUT_BEFORE_PAYLOAD,
    REFUSED_WRITE_FORGOTTEN,
};
use super::{Config, OUTBOX_WORK, Regions};
use crate::fabric::{
    Completion, CompletionFlags, Fabric, Failure, Memory, Op, PostError, Posted, Work, WorkId,
};
use crate::ids::{Incarnation, Peer};
use crate::wire::Claim;
use crate::wire::slot::{Sealing, Stamp};

pub use stage::StageError;

use stage::Stage;

/// A count from here on is not a ticket but a damaged answer (MB-7a).
const COUNT_LIMIT: u32 = 1 << 31;

/// The outcome of a flush. Every accepted flush leads to exactly one of these, unless
/// [`Outbox::flush_now`] has returned what it put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PutEvent {
    /// The first `count` staged messages are in the owner's memory; `left` had no slot in this
    /// half and are still staged.
    Put {
        /// Messages put.
        count: u32,
        /// Messages still staged.
        left: u32,
    },
    /// The open half is full. Everything is still staged.
    Full,
    /// The fabric answered the reservation implausibly. Nothing was put and nothing will be;
    /// everything is still staged. The owner skips the reserved tickets.
    TicketUnknown,
    /// The owner was lost. The first `unknown` staged messages may or may not be in its memory,
    /// the others are not. Everything is still staged; nothing is posted before
    /// [`Outbox::readmit`].
    Lost {
        /// Messages that may be in the owner's memory.
        unknown: u32,
        /// The failure that the fabric reported.
        failure: Failure,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Idle,
    /// Adds zero to learn whether there is room again.
    Probing,
    Reserving,
    /// `posted`: the write was accepted; a full queue may have refused it.
    Holding {
        first: Stamp,
        count: u32,
        posted: bool,
    },
    /// The flush has ended, and its event was not returned yet.
    Ended(PutEvent),
    Lost,
}

/// The writer's side of one owner's mailbox.
#[derive(Clone, Debug, Hash)]
pub struct Outbox {
    config: Config,
    regions: Regions,
    owner: Peer,
    state: State,
    /// Sequence number of the first staged message.
    sequence: u32,
    /// The number of staged messages that may be in the owner's memory already.
    unknown: u32,
    /// Counts the reservations, so that consecutive claims differ.
    attempt: u32,
    /// The open half was full, or its count implausible: probe before adding to it again.
    full: bool,
    stage: Stage,
}

impl Outbox {
    /// The outbox of this endpoint, in its `incarnation`, towards `owner`. Stores the claim `Idle`
    /// in `fabric`'s memory, so it must be created before `owner` admits this incarnation.
    #[must_use]
    pub fn new(
        fabric: &impl Fabric,
        config: Config,
        regions: Regions,
        owner: Peer,
        incarnation: Incarnation,
    ) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the low half, as the slots carry it")]
        let from = (fabric.me(), incarnation.0 as u16);
        let stage = Stage::new(&config, from, config.sealing(fabric));
        let outbox = Self {
            config,
            regions,
            owner,
            state: State::Idle,
            sequence: 0,
            unknown: 0,
            attempt: 0,
            full: false,
            stage,
        };
        outbox.claim(fabric, Claim::Idle);
        outbox
    }

    /// How many messages are staged: not yet put, or possibly in the owner's memory.
    #[must_use]
    pub const fn staged(&self) -> u32 {
        self.stage.count()
    }

    /// Whether a flush may start now.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Whether a full queue refused the write of the flush under way: [`Self::poll`] is due.
    #[must_use]
    pub const fn is_unposted(&self) -> bool {
        matches!(self.state, State::Holding { posted: false, .. })
    }

    /// Whether the flush ended while it was posted: [`Self::poll`] returns its event.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }

    /// The payloads of the staged messages, in order.
    pub fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        self.stage.payloads()
    }

    /// Adds a message to the batch.
    ///
    /// # Errors
    /// [`StageError`].
    #[inline(always)]
    pub fn stage(&mut self, kind: u16, payload: &[u8]) -> Result<(), StageError> {
        if self.stage.add_packed(kind, payload) {
            return Ok(());
        }
        if !matches!(self.state, State::Idle | State::Lost) {
            return Err(StageError::Busy);
        }
        self.stage.add(kind, payload)
    }

    /// Forgets what is staged. Does nothing while a flush is under way.
    ///
    /// The sequence numbers of messages that may be in the owner's memory are never used for
    /// others. Flushed again instead, such messages carry the same numbers, so that the owner
    /// recognizes a repeated message.
    pub fn discard(&mut self) {
        if matches!(self.state, State::Idle | State::Lost) {
            // A later message under one of their numbers could overtake an earlier one.
            self.sequence = self.sequence.wrapping_add(self.unknown);
            self.unknown = 0;
            self.stage.clear();
        }
    }

    /// Sets the number of the next message.
    #[cfg(test)]
    pub(super) const fn count_from(&mut self, sequence: u32) {
        self.sequence = sequence;
    }

    /// Starts to put what is staged. Nothing staged, or a flush under way: does nothing.
    ///
    /// # Errors
    /// [`PostError`] of the reservation; everything is still staged and no event will come.
    #[inline]
    pub fn flush(&mut self, fabric: &mut impl Fabric) -> Result<(), PostError> {
        let put = self.flush_now(fabric)?;
        self.keep(put);
        Ok(())
    }

    /// As [`Self::flush`], but may return how many messages were put: in place of the event, for
    /// less. Any other outcome is an event.
    ///
    /// # Errors
    /// As [`Self::flush`].
    #[inline(always)]
    pub fn flush_now(&mut self, fabric: &mut impl Fabric) -> Result<Option<u32>, PostError> {
        self.stage.close();
        match self.state {
            State::Idle if self.staged() > 0 && !self.full => self.reserve(fabric),
            _ => self.flush_late(fabric).map(|()| None),
        }
    }

    /// The other flushes: a probe where the half was full; refused where the owner was lost; else
    /// nothing is staged, or a flush is under way or has ended.
    #[inline(never)]
    fn flush_late(&mut self, fabric: &mut impl Fabric) -> Result<(), PostError> {
        match self.state {
            State::Idle if self.staged() > 0 => {}
            State::Lost => return Err(PostError::Gone),
            _ => return Ok(()),
        }
        self.attempt = self.attempt.wrapping_add(1);
        let put = match self.add(fabric, 0)? {
            Posted::Ended(Ok(word)) => self.handle_probe(fabric, Stamp::from_count(word)),
            Posted::Ended(Err(failure)) => self.lost(0, failure),
            Posted::Pending => {
                self.state = State::Probing;
                None
            }
        };
        self.keep(put);
        Ok(())
    }

    /// Keeps the event of a flush that has put `put` messages, if it has.
    fn keep(&mut self, put: Option<u32>) {
        if let Some(count) = put {
            self.state = State::Ended(PutEvent::Put { count, left: self.staged() });
        }
    }

    /// Posts a write that a full queue refused, or returns the event of a flush that ended while
    /// it was posted. Call it from the poll loop.
    #[inline(always)]
    pub fn poll(&mut self, fabric: &mut impl Fabric) -> Option<PutEvent> {
        let put = match self.state {
            State::Holding { first, count, posted: false } => {
                let config = self.config;
                self.write(fabric, &config, first, count)
            }
            _ => None,
        };
        self.event_of(put)
    }

    /// Takes the event of a flush that has ended; `put` messages were put just now, if any.
    fn event_of(&mut self, put: Option<u32>) -> Option<PutEvent> {
        self.keep(put);
        let State::Ended(event) = self.state else { return None };
        let is_lost = matches!(event, PutEvent::Lost { .. });
        self.state = if is_lost { State::Lost } else { State::Idle };
        Some(event)
    }

    /// Continues the flush that `completion` belongs to; ignores other completions.
    #[inline]
    pub fn handle_completion(
        &mut self,
        fabric: &mut impl Fabric,
        completion: &Completion,
    ) -> Option<PutEvent> {
        if completion.id != self.work_id(matches!(self.state, State::Holding { .. })) {
            return None;
        }
        self.handle_end(fabric, completion.outcome)
    }

    /// The work under way has ended.
    #[inline(never)]
    fn handle_end(
        &mut self,
        fabric: &mut impl Fabric,
        outcome: Result<u64, Failure>,
    ) -> Option<PutEvent> {
        let put = match (self.state, outcome) {
            (State::Reserving, Ok(word)) => self.handle_ticket(fabric, Stamp::from_count(word)),
            (State::Probing, Ok(word)) => self.handle_probe(fabric, Stamp::from_count(word)),
            (State::Holding { count, .. }, Ok(_)) => Some(self.handle_written(fabric, count)),
            // No write was posted for the reservation, so its tickets stay empty. The claim stays
            // as well: an owner that stays alive fences this sender, and then skips them.
            (State::Reserving | State::Probing, Err(failure)) => self.lost(0, failure),
            // The claim stays `Holding`: bytes may arrive until the owner fences this incarnation.
            (State::Holding { count, .. }, Err(failure)) => self.lost(count, failure),
            (State::Idle | State::Ended(_) | State::Lost, _) => return None,
        };
        self.event_of(put)
    }

    /// The owner admitted this incarnation (again): no earlier work is under way any more.
    pub fn readmit(&mut self, fabric: &impl Fabric) {
        self.attempt = self.attempt.wrapping_add(1);
        self.full = false;
        self.claim(fabric, Claim::Idle);
        self.state = State::Idle;
    }

    /// The owner is gone: a flush under way ends as if the fabric had reported it.
    pub fn lose(&mut self) -> Option<PutEvent> {
        let unknown = match self.state {
            State::Idle | State::Lost => {
                self.state = State::Lost;
                return None;
            }
            State::Ended(event) => {
                self.state = State::Lost;
                return Some(event);
            }
            State::Holding { count, posted: true, .. } => count,
            State::Holding { .. } | State::Probing | State::Reserving => 0,
        };
        let put = self.lost(unknown, Failure::Gone);
        self.event_of(put)
    }

    // A flush that ends without a put leaves its event in the state, so that a put, which nearly
    // all are, is returned in registers.

    /// Ends the flush: `unknown` of its messages may have been put, none is known to be.
    #[inline(never)]
    fn lost(&mut self, unknown: u32, failure: Failure) -> Option<u32> {
        // An earlier attempt may have left more of the same messages in doubt.
        self.unknown = self.unknown.max(unknown);
        self.state = State::Ended(PutEvent::Lost { unknown: self.unknown, failure });
        None
    }

    #[inline(always)]
    fn reserve(&mut self, fabric: &mut impl Fabric) -> Result<Option<u32>, PostError> {
        self.attempt = self.attempt.wrapping_add(1);
        if !CLAIM_AFTER_FETCH_ADD.is_planted() {
            self.claim(fabric, Claim::Reserving { sequence: self.attempt });
        }
        match self.add(fabric, u64::from(self.staged())) {
            Ok(Posted::Ended(Ok(word))) => Ok(self.handle_ticket(fabric, Stamp::from_count(word))),
            // Nothing was written; as after a completion that reports it.
            Ok(Posted::Ended(Err(failure))) => Ok(self.lost(0, failure)),
            Ok(Posted::Pending) => {
                self.state = State::Reserving;
                Ok(None)
            }
            Err(error) => {
                self.claim(fabric, Claim::Idle);
                Err(error)
            }
        }
    }

    #[inline(always)]
    fn add(&self, fabric: &mut impl Fabric, add: u64) -> Result<Posted, PostError> {
        let op = Op::FetchAdd { at: self.regions.word(), add };
        let flags = CompletionFlags::empty();
        fabric.post_now(self.owner, Work { id: self.work_id(false), op, flags })
    }

    fn handle_probe(&mut self, fabric: &mut impl Fabric, seen: Stamp) -> Option<u32> {
        self.state = State::Idle;
        if seen.ticket < self.config.slots() {
            self.full = false;
            match self.reserve(fabric) {
                Ok(put) => return put,
                Err(PostError::Gone) => return self.lost(0, Failure::Gone),
                Err(PostError::Full | PostError::Rejected(_)) => {}
            }
        }
        self.state = State::Ended(PutEvent::Full);
        None
    }

    #[inline(always)]
    fn handle_ticket(&mut self, fabric: &mut impl Fabric, first: Stamp) -> Option<u32> {
        let config = self.config;
        if first.ticket >= config.slots() {
            self.handle_full(fabric, first);
            return None;
        }
        let mut count = self.staged();
        if !BATCH_PAST_HALF.is_planted() {
            count = count.min(config.slots() - first.ticket);
        }
        self.claim(fabric, Claim::Holding { first, count });
        self.stage.seal(first, count, self.sequence);
        if config.sealing(fabric) == Sealing::Checksum {
            self.stage.add_checksums(count, |bytes| fabric.crc32c(bytes));
        }
        self.write(fabric, &config, first, count)
    }

    /// The ticket is beyond the half, or none at all.
    #[inline(never)]
    fn handle_full(&mut self, fabric: &impl Fabric, first: Stamp) {
        self.claim(fabric, Claim::Idle);
        self.full = true;
        let is_ticket = first.ticket < COUNT_LIMIT;
        if !is_ticket {
            debug!("implausible ticket {} from peer {}", first.ticket, self.owner.0);
        }
        self.state = State::Ended(if is_ticket { PutEvent::Full } else { PutEvent::TicketUnknown });
    }

    /// Writes the first `count` staged messages to `first` and the tickets behind it.
    // `config` is a copy of `self.config`, which would be loaded again after each atomic access.
    #[inline(always)]
    fn write(
        &mut self,
        fabric: &mut impl Fabric,
        config: &Config,
        first: Stamp,
        count: u32,
    ) -> Option<u32> {
        let (len, bytes) = self.stage.slots(count);
        let to = self.regions.slot(config, first).start(len);
        let (id, op) = (self.work_id(true), Op::Write { to, bytes });
        match fabric.post_now(self.owner, Work { id, op, flags: CompletionFlags::WAKE }) {
            Ok(posted) => {
                if CLAIM_DROPPED_EARLY.is_planted() {
                    self.claim(fabric, Claim::Idle);
                }
                if PUT_BEFORE_PAYLOAD.is_planted() {
                    return Some(self.handle_written(fabric, count));
                }
                match posted {
                    Posted::Ended(Ok(_)) => Some(self.handle_written(fabric, count)),
                    Posted::Ended(Err(failure)) => self.lost(count, failure),
                    Posted::Pending => {
                        self.state = State::Holding { first, count, posted: true };
                        None
                    }
                }
            }
            Err(PostError::Full) => {
                let posted = REFUSED_WRITE_FORGOTTEN.is_planted();
                self.state = State::Holding { first, count, posted };
                None
            }
            // The claim stays, as after a failed reservation.
            Err(PostError::Gone | PostError::Rejected(_)) => self.lost(0, Failure::Gone),
        }
    }

    #[inline(always)]
    fn handle_written(&mut self, fabric: &mut impl Fabric, count: u32) -> u32 {
        self.claim(fabric, Claim::Idle);
        self.state = State::Idle;
        self.sequence = self.sequence.wrapping_add(count);
        if self.unknown > 0 {
            self.unknown = self.unknown.saturating_sub(count);
        }
        self.stage.remove(count);
        count
    }

    /// Sets the claim; it is visible before anything that is posted afterwards.
    // At each place, where the claim is known.
    #[inline(always)]
    fn claim(&self, fabric: &impl Fabric, claim: Claim) {
        let word = claim.to_word();
        if self.config.sealing(fabric) == Sealing::Checksum {
            return self.claim_checked(fabric, word);
        }
        let at = self.regions.claim(self.owner);
        fabric.memory().store(at.region, at.offset, word);
    }

    /// As [`Self::claim`], in a cell with a checksum; of the claim as a word, which a register
    /// holds.
    #[inline(never)]
    fn claim_checked(&self, fabric: &impl Fabric, word: u64) {
        let claim = Claim::from_word(word).unwrap_or_default();
        let at = self.regions.claim(self.owner);
        let cell = claim.encode(|bytes| fabric.crc32c(bytes));
        for (offset, word) in (at.offset..).step_by(8).zip(cell.as_chunks::<8>().0) {
            fabric.memory().store(at.region, offset, u64::from_le_bytes(*word));
        }
    }

    /// The name of the write of the put under way, or of its addition.
    #[inline]
    const fn work_id(&self, is_write: bool) -> WorkId {
        let write = is_write as u64;
        WorkId::new(OUTBOX_WORK, (self.owner.0 as u64) << 40 | write << 32 | self.attempt as u64)
    }
}

impl Stamp {
    /// The reservation word holds the epoch in its high half, the count in its low half (MB-1).
    pub(super) const fn from_count(word: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of the word")]
        Self { epoch: (word >> 32) as u32, ticket: word as u32 }
    }

    /// The reservation word with this epoch and count.
    pub(super) const fn to_count(self) -> u64 {
        (self.epoch as u64) << 32 | self.ticket as u64
    }
}

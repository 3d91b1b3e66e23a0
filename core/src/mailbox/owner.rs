//! The owner's side: what landed is copied, judged, delivered and released.
//!
//! The owner reads landed slots of the open half as they come, in ticket order, and closes a
//! half by compare-swap through its own fabric (F-4) once half of its slots are given out and
//! nothing of the other half is owed any more. So one epoch costs one atomic of the owner, an
//! empty mailbox costs one plain load, and writers meet `Full` only when the owner falls behind
//! by half the slots.
//!
//! A message is handed out by [`Mailbox::take`] and given back by [`Mailbox::release`]. Its slot
//! is used again only after that, and an owner that dies in between leaves it to its successor:
//! delivery is exactly once in one life of the owner, at least once across lives, and
//! [`Receipt`] tells a repeated message.

mod closing;

use core::fmt;

use super::half::{Half, Place};
use super::inquiry::{CLAIM_READ, Inquiry};
use super::mutants::{
    FORGERY_UNNOTICED, GAP_OVERTAKEN, NEVER_QUESTIONED, TICKETS_SKIPPED_UNSEEN, UNNAMED_QUESTIONED,
};
use super::watch::{Expected, Forgery, Watch};
use super::{Config, Regions};
use crate::fabric::{Completion, Fabric, INLINE_LEN, Memory};
use crate::ids::{Peer, PeerSet};
use crate::time::{Duration, Instant};
use crate::wire::slot::{self, HEADER_LEN, Header, SlotError, Stamp};

/// Names a message of this mailbox. The same receipt names another message 2^32 epochs later, and
/// an epoch has at least half as many messages as a half has slots: with 1024 slots that is after
/// 2^41 messages. A message that was taken and not released holds its half, so no receipt comes
/// round while its message is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receipt(Stamp);

impl Receipt {
    /// The receipt as a number: the epoch in the high half, the ticket in the low half.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0.to_count()
    }

    /// The receipt that [`Self::to_bits`] made `bits` from.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(Stamp::from_count(bits))
    }
}

/// A message in the owner's private memory.
#[derive(Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who put it.
    pub sender: Peer,
    /// The low 16 bits of the sender's incarnation.
    pub incarnation: u16,
    /// The sender's own count, rising by one for each message of one incarnation. A message that
    /// is put again after a loss carries the same count and incarnation.
    pub sequence: u32,
    /// As the sender gave it.
    pub kind: u16,
    /// As the sender gave it.
    pub payload: &'a [u8],
    /// To be handed to [`Mailbox::release`].
    pub receipt: Receipt,
}

/// The receipt names no message that is out. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownReceipt;

impl fmt::Display for UnknownReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the receipt names no message that was taken and not released")
    }
}

impl core::error::Error for UnknownReceipt {}

/// What the owner has seen (MB-10), since this life of it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages handed out.
    pub taken: u64,
    /// Tickets given up because no admitted sender could still write them.
    pub skipped: u64,
    /// Inquiries begun.
    pub questioned: u64,
    /// Copies whose stamp was right and whose length or checksum was not: torn, still
    /// arriving, or garbage. Each was looked at again or skipped, never delivered.
    pub checksum_failures: u64,
    /// Well-formed messages under a name that may not write here.
    pub forged: u64,
    /// Times the reservation word showed an epoch that this owner had not seen opened, by damage
    /// or because the fabric failed a swap that took effect, and the half was closed over it.
    pub word_repairs: u64,
    /// Tickets that a member forged: it wrote over the reservation word, or its fabric answered
    /// wrong (MB-14).
    pub forged_tickets: u64,
    /// The last evidence of that.
    pub forgery: Option<Forgery>,
    /// The longest that a ticket was missing before it landed or was skipped.
    pub longest_stall: Duration,
}

impl core::hash::Hash for Counters {
    /// Nothing: what was counted decides nothing, and an explorer that tells states apart by
    /// their hashes is not to tell apart what goes on alike.
    fn hash<H: core::hash::Hasher>(&self, _state: &mut H) {}
}

/// How long after a message that came in its turn the reservation word is left alone. Each look
/// takes the word's cache line away from the writers, who have to fetch it back to add to it.
const LOOK_AFTER: Duration = Duration::from_micros(5);

/// The first ticket that was owed and had not landed.
#[derive(Clone, Copy, Debug, Hash)]
struct Missing {
    stamp: Stamp,
    since: Instant,
    question_at: Instant,
}

/// The copy that is being judged. Between two calls nobody reads it.
#[derive(Clone, Debug)]
struct Scratch([u8; INLINE_LEN]);

impl core::hash::Hash for Scratch {
    /// Nothing: every call copies before it reads.
    fn hash<H: core::hash::Hasher>(&self, _state: &mut H) {}
}

/// The owner's side of its mailbox, for up to `SLOTS` slots and `PEERS` senders.
#[derive(Clone, Debug, Hash)]
pub struct Mailbox<const SLOTS: usize, const PEERS: usize> {
    config: Config,
    regions: Regions,
    /// By parity of the epoch.
    halves: [Half<SLOTS>; 2],
    /// The epoch that gives out tickets.
    open: u32,
    /// A compare-swap is under way, with this expectation.
    closing: Option<u64>,
    admitted: PeerSet,
    expected: [Option<Expected>; PEERS],
    watch: Watch,
    /// All senders that may still write here were named. Before, no ticket is questioned.
    named: bool,
    missing: Option<Missing>,
    /// When a message last came in its turn.
    in_order_at: Instant,
    inquiry: Inquiry<PEERS>,
    /// A sender was fenced: question without waiting.
    question_now: bool,
    scratch: Scratch,
    counters: Counters,
}

impl<const SLOTS: usize, const PEERS: usize> Mailbox<SLOTS, PEERS> {
    /// The owner of the mailbox in `fabric`'s memory, be it fresh and zeroed or left behind by
    /// an owner that died. No sender is admitted yet, and no ticket is questioned before
    /// [`Self::handle_all_named`] (MB-13).
    ///
    /// # Panics
    /// When `config` is larger than `SLOTS` or `PEERS`.
    #[must_use]
    pub fn attach(fabric: &impl Fabric, config: Config, regions: Regions) -> Self {
        assert!(config.slots() as usize <= SLOTS, "the mailbox has more slots than SLOTS");
        assert!(usize::from(config.peers()) <= PEERS, "the mailbox has more peers than PEERS");
        let place = Place { config: &config, regions };
        let at = regions.word();
        let word = Stamp::from_count(fabric.memory().load(at.region, at.offset));
        let open = place.open_epoch(fabric, word.epoch);
        // The count of a word that was damaged says nothing: every slot may be given out.
        let given = if word.epoch == open { word.ticket } else { config.slots() };
        let before = open.wrapping_sub(1);
        let is_fresh = place.is_fresh(fabric);
        let half = |epoch, owed| match is_fresh {
            true => Half::drained(epoch),
            false => Half::recover(fabric, place, epoch, owed),
        };
        let mut halves = [half(before, config.slots()), half(open, given)];
        if open & 1 == 0 {
            halves.reverse();
        }
        Self {
            config,
            regions,
            halves,
            open,
            closing: None,
            admitted: PeerSet::EMPTY,
            expected: [None; PEERS],
            watch: Watch::new(given),
            // Fresh memory is no exception: a sender may have looked at the gate of an owner that
            // began and ended before any ticket was given out, and add to the count now.
            named: false,
            missing: None,
            in_order_at: Instant(0),
            inquiry: Inquiry::new(),
            question_now: false,
            scratch: Scratch([0; INLINE_LEN]),
            counters: Counters::default(),
        }
    }

    /// What was seen so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Tickets given out whose messages were not released: in the slots, in somebody's hands,
    /// or missing.
    #[must_use]
    pub fn owed(&self) -> u32 {
        self.halves.iter().map(Half::outstanding).sum()
    }

    /// `sender` may put from now on.
    pub fn handle_admitted(&mut self, sender: Peer) {
        self.admitted.insert(sender);
        if !self.named {
            // What it posted to the owner before this one may add to the count until now.
            self.doubt();
        }
    }

    /// Every sender that may still write here was named: it is admitted, or `handle_fenced` ends
    /// the wait for it. One that stalls in the middle of its write to the owner before this one is
    /// asked, too, from now on (MB-13).
    pub const fn handle_all_named(&mut self) {
        self.named = true;
    }

    /// `sender` is fenced: nothing it posted or posts changes a byte here (F-9). What it had put
    /// is still delivered; what it had only reserved is skipped.
    pub fn handle_fenced(&mut self, sender: Peer) {
        self.admitted.remove(sender);
        self.inquiry.forget(sender);
        self.question_now = true;
        self.doubt();
    }

    /// Tickets given out so far may have been asked for by one that is gone.
    const fn doubt(&mut self) {
        self.halves[0].is_certain = false;
        self.halves[1].is_certain = false;
    }

    /// The next message, or nothing when none has landed (MB-5, MB-6): never waits.
    #[inline]
    pub fn take(&mut self, fabric: &impl Fabric, now: Instant) -> Option<Message<'_>> {
        let header = if let Some(header) = self.find_next(fabric) {
            self.in_order_at = now;
            header
        } else {
            self.look(fabric, now);
            self.find(fabric, now)?
        };
        let stamp = header.stamp;
        let place = Place { config: &self.config, regions: self.regions };
        let half = &mut self.halves[(stamp.epoch & 1) as usize];
        let (is_returned, is_own) = (half.is_returned(stamp.ticket), half.is_own);
        half.take(fabric, place, stamp.ticket);
        if !is_returned {
            self.follow(&header, is_own);
        }
        self.counters.taken += 1;
        Some(Message {
            sender: Peer(header.sender),
            incarnation: header.incarnation,
            sequence: header.sequence,
            kind: header.kind,
            payload: &self.scratch.0[HEADER_LEN..HEADER_LEN + usize::from(header.len)],
            receipt: Receipt(stamp),
        })
    }

    /// The message of `receipt` has been dealt with; it is not delivered again.
    ///
    /// # Errors
    /// [`UnknownReceipt`].
    #[inline]
    pub fn release(
        &mut self,
        fabric: &impl Fabric,
        receipt: Receipt,
    ) -> Result<(), UnknownReceipt> {
        let Receipt(stamp) = receipt;
        let place = Place { config: &self.config, regions: self.regions };
        let half = &mut self.halves[(stamp.epoch & 1) as usize];
        if !half.is_taken(stamp) {
            return Err(UnknownReceipt);
        }
        half.finish(fabric, place, stamp.ticket);
        Ok(())
    }

    /// The message of `receipt` was taken and not dealt with: it is delivered again, after those
    /// that its sender put later if they have been delivered already.
    ///
    /// # Errors
    /// [`UnknownReceipt`].
    pub fn restore(&mut self, receipt: Receipt) -> Result<(), UnknownReceipt> {
        let Receipt(stamp) = receipt;
        let half = self.half(stamp.epoch);
        if !half.is_taken(stamp) {
            return Err(UnknownReceipt);
        }
        half.restore(stamp.ticket);
        Ok(())
    }

    /// Closes the open half when it is time, and questions missing tickets. Call it from the
    /// poll loop.
    #[inline]
    pub fn poll(&mut self, fabric: &mut impl Fabric, now: Instant) {
        self.look(fabric, now);
        self.close_half(fabric);
        let questions = self.missing.is_some() || self.inquiry.is_active();
        if questions && !NEVER_QUESTIONED.is_planted() {
            self.question(fabric, now);
        }
    }

    /// When [`Self::poll`] wants to be called without a message having come.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let missing = self.missing.filter(|_| self.named);
        missing.map(|missing| missing.question_at)
    }

    /// Goes on with what `completion` belongs to; others are ignored.
    pub fn handle_completion(&mut self, fabric: &mut impl Fabric, completion: &Completion) {
        if completion.id.detail() & CLAIM_READ != 0 {
            self.inquiry.handle_completion(fabric, &self.config, self.regions, completion);
        } else if let (Some(expected), Ok(old)) = (self.closing.take(), completion.outcome) {
            if old == expected {
                self.handle_closed(fabric, Stamp::from_count(old));
            } else {
                self.move_word(fabric, old);
            }
        }
    }

    /// `header` has come: in its sender's sequence, or there is something to note.
    #[inline]
    fn follow(&mut self, header: &Header, is_own: bool) {
        // A missing ticket may be that of the message between.
        let is_own = is_own && self.missing.is_none();
        let expected = &mut self.expected[usize::from(header.sender)];
        let forgery = expected.and_then(|expected| expected.judge(header, is_own));
        *expected = Some(Expected::after(header, is_own));
        if let Some(forgery) = forgery {
            self.note_forgery(forgery, 1);
        }
    }

    fn note_forgery(&mut self, forgery: Forgery, tickets: u32) {
        if FORGERY_UNNOTICED.is_planted() {
            return;
        }
        debug!("forged tickets in epoch {}", self.open);
        self.counters.forged_tickets += u64::from(tickets);
        self.counters.forgery = Some(forgery);
    }

    fn half(&mut self, epoch: u32) -> &mut Half<SLOTS> {
        &mut self.halves[(epoch & 1) as usize]
    }

    /// Learns by a plain load how many tickets were given out (F-4 allows it), unless messages
    /// have just come in order, which says as much. A clock that stands still puts nothing off.
    #[inline]
    fn look(&mut self, fabric: &impl Fabric, now: Instant) {
        if self.in_order_at < now && now < self.in_order_at.after(LOOK_AFTER) {
            return;
        }
        let at = self.regions.word();
        let word = Stamp::from_count(fabric.memory().load(at.region, at.offset));
        let slots = self.config.slots();
        let open = self.open;
        if word.epoch == open {
            let owed = self.half(open).owed();
            self.half(open).owe(word.ticket.min(slots));
            if let Some((forgery, tickets)) = self.watch.see(word, owed, slots) {
                self.note_forgery(forgery, tickets);
            }
        } else if self.closing.is_none() {
            self.look_foreign(word.epoch);
        }
    }

    /// The word shows an epoch that no swap of this owner led to. Every slot may have been given
    /// out, and closing the half puts the word right.
    fn look_foreign(&mut self, shown: u32) {
        let (open, slots) = (self.open, self.config.slots());
        self.half(open).owe(slots);
        self.half(open).is_certain = false;
        // The next epoch is that of a swap that took effect although the fabric failed it.
        if shown != open.wrapping_add(1)
            && let Some(forgery) = self.watch.see_foreign(open, shown)
        {
            self.note_forgery(forgery, 1);
        }
    }

    /// The message of the first ticket that was not delivered, be it known to be given out or
    /// not: a message that has landed proves its ticket. Nothing when that is not enough to see
    /// the whole.
    #[inline]
    fn find_next(&mut self, fabric: &impl Fabric) -> Option<Header> {
        if self.missing.is_some() {
            return None;
        }
        let before = self.open.wrapping_sub(1);
        let previous = &self.halves[(before & 1) as usize];
        let epoch = if previous.epoch() == before && previous.next() < previous.owed() {
            before
        } else {
            self.open
        };
        let half = &self.halves[(epoch & 1) as usize];
        let ticket = half.next();
        if half.epoch() != epoch || ticket >= self.config.slots() || !half.is_open(ticket) {
            return None;
        }
        let header = self.copy_slot(fabric, Stamp { epoch, ticket })?;
        self.half(epoch).owe(ticket + 1);
        Some(header)
    }

    /// Finds the first deliverable message and leaves its copy in `scratch`.
    fn find(&mut self, fabric: &impl Fabric, now: Instant) -> Option<Header> {
        let mut gap = None;
        // Whose message may be missing before the ticket that is looked at.
        let mut held_up = PeerSet::EMPTY;
        for epoch in [self.open.wrapping_sub(1), self.open] {
            let half = &self.halves[(epoch & 1) as usize];
            if half.epoch() != epoch {
                continue;
            }
            for ticket in half.next()..half.owed() {
                if !self.halves[(epoch & 1) as usize].is_open(ticket) {
                    continue;
                }
                let stamp = Stamp { epoch, ticket };
                match self.copy_slot(fabric, stamp) {
                    Some(header)
                        if !held_up.contains(Peer(header.sender))
                            || self.is_next(&header)
                            || self.half(epoch).is_returned(ticket)
                            || GAP_OVERTAKEN.is_planted() =>
                    {
                        self.note_gap(gap, Some(stamp), now);
                        return Some(header);
                    }
                    // It waits for the missing ticket, which may be its sender's.
                    Some(_) => {}
                    None => {
                        gap = gap.or(Some(stamp));
                        held_up = held_up.union(self.suspects(stamp));
                    }
                }
            }
        }
        self.note_gap(gap, None, now);
        None
    }

    /// Whose message a missing ticket may be: its holder's, or anybody's before one is known.
    fn suspects(&self, stamp: Stamp) -> PeerSet {
        let holders = self.inquiry.holders(stamp);
        if holders.is_empty() { PeerSet::first(PeerSet::CAPACITY) } else { holders }
    }

    fn is_next(&self, header: &Header) -> bool {
        self.expected[usize::from(header.sender)].is_some_and(|expected| expected.is(header))
    }

    /// Keeps since when the first missing ticket is missing.
    fn note_gap(&mut self, gap: Option<Stamp>, landed: Option<Stamp>, now: Instant) {
        if let Some(missing) = self.missing
            && gap != Some(missing.stamp)
        {
            if landed == Some(missing.stamp) {
                self.note_stall(missing, now);
            }
            self.missing = None;
        }
        if let (None, Some(stamp)) = (self.missing, gap) {
            let question_at = now.after(self.config.stall_after());
            self.missing = Some(Missing { stamp, since: now, question_at });
        }
    }

    fn note_stall(&mut self, missing: Missing, now: Instant) {
        let stall = now.since(missing.since);
        self.counters.longest_stall = self.counters.longest_stall.max(stall);
    }

    /// Copies a slot into `scratch` once and judges the copy (MB-4).
    #[inline]
    fn copy_slot(&mut self, fabric: &impl Fabric, stamp: Stamp) -> Option<Header> {
        let at = self.regions.slot(&self.config, stamp);
        let capacity = usize::from(self.config.message_len());
        match slot::copy_out(fabric, at, stamp, capacity, &mut self.scratch.0) {
            Ok(header) if header.sender < self.config.peers() => Some(header),
            Ok(_) => {
                self.counters.forged += 1;
                None
            }
            Err(SlotError::Stamp) => None,
            Err(SlotError::Length | SlotError::Checksum) => {
                self.counters.checksum_failures += 1;
                None
            }
        }
    }

    /// Begins an inquiry when it is time, and asks again, once a span, who has not answered.
    fn question(&mut self, fabric: &mut impl Fabric, now: Instant) {
        if !self.named && !UNNAMED_QUESTIONED.is_planted() {
            return;
        }
        let is_due = self.missing.is_some_and(|missing| missing.question_at <= now);
        if self.question_now || is_due {
            self.question_now = false;
            if !self.inquiry.is_active() {
                self.counters.questioned += 1;
                let subjects = [0, 1].map(|half| {
                    let half: &Half<SLOTS> = &self.halves[half];
                    (half.epoch(), half.owed())
                });
                self.inquiry.begin(self.admitted, subjects);
            }
            self.inquiry.ask(fabric, &self.config, self.regions);
            self.put_off(now);
        }
        if self.inquiry.conclude() {
            self.judge(fabric, now);
        }
    }

    /// Who is still missing is asked for again after another span.
    fn put_off(&mut self, now: Instant) {
        let question_at = now.after(self.config.stall_after());
        self.missing = self.missing.map(|missing| Missing { question_at, ..missing });
    }

    /// Skips every ticket that has not landed by now and never will.
    fn judge(&mut self, fabric: &impl Fabric, now: Instant) {
        for epoch in [self.open.wrapping_sub(1), self.open] {
            let half = &self.halves[(epoch & 1) as usize];
            if half.epoch() != epoch {
                continue;
            }
            for ticket in half.next()..half.owed() {
                let stamp = Stamp { epoch, ticket };
                let open = self.halves[(epoch & 1) as usize].is_open(ticket);
                let looked = || TICKETS_SKIPPED_UNSEEN.is_planted();
                if open
                    && self.inquiry.clears(stamp)
                    && (looked() || self.copy_slot(fabric, stamp).is_none())
                {
                    debug!("ticket {} of epoch {} skipped", ticket, epoch);
                    self.counters.skipped += 1;
                    if self.halves[(epoch & 1) as usize].is_certain {
                        self.note_forgery(Forgery::NotAskedFor { ticket: stamp }, 1);
                    }
                    let place = Place { config: &self.config, regions: self.regions };
                    self.halves[(epoch & 1) as usize].skip(fabric, place, ticket);
                    // Its message may be any sender's: a gap after it shows nothing.
                    for expected in self.expected.iter_mut().flatten() {
                        expected.is_certain = false;
                    }
                }
            }
        }
        if let Some(missing) = self.missing {
            self.note_stall(missing, now);
        }
        self.put_off(now);
    }
}

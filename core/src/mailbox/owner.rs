//! The owner's side: messages are copied out of their slots, checked, delivered and released.
//!
//! The owner reads the slots of the open half in ticket order, as messages arrive. It closes a half
//! by compare-swap through its own fabric (F-4) once half of its slots are given out and nothing of
//! the other half is owed any more. So one epoch costs the owner one atomic, an empty mailbox costs
//! plain loads, and writers get `Full` only if the owner falls behind by half the slots.
//!
//! [`Mailbox::take`] delivers a message, and [`Mailbox::release`] frees its slot. If the owner dies
//! in between, its successor delivers the message again: delivery is exactly once within one
//! incarnation of the owner and at least once across incarnations, where [`Receipt`] identifies a
//! repeated message.

mod closing;
mod releasing;
mod taking;

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
use crate::wire::slot::{Stamp, Trailer};

/// Names a message of this mailbox. The same receipt names another message 2^32 epochs later, and
/// an epoch has at least half as many messages as a half has slots: with 1024 slots that is after
/// 2^41 messages. A half is not reused before its taken messages are released, so no two messages
/// that are taken have the same receipt.
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
    /// The sender.
    pub sender: Peer,
    /// The low 16 bits of the sender's incarnation.
    pub incarnation: u16,
    /// The sender's sequence number, one higher for each message of an incarnation. A message that
    /// is put again after a loss has the same number and incarnation.
    pub sequence: u32,
    /// As the sender gave it.
    pub kind: u16,
    /// As the sender gave it.
    pub payload: &'a [u8],
    /// What [`Mailbox::release`] takes.
    pub receipt: Receipt,
}

impl<'a> Message<'a> {
    #[inline(always)]
    const fn new(trailer: &Trailer, payload: &'a [u8]) -> Self {
        let Trailer { sender, incarnation, sequence, kind, stamp, .. } = *trailer;
        let (sender, receipt) = (Peer(sender), Receipt(stamp));
        Self { sender, incarnation, sequence, kind, payload, receipt }
    }
}

/// Messages of neighbouring tickets that were taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    pub(super) first: Stamp,
    pub(super) count: u32,
}

impl Run {
    /// How many messages: one at least.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// The receipts of the messages, in the order in which they were taken.
    pub fn receipts(self) -> impl Iterator<Item = Receipt> {
        let Self { first, count } = self;
        (0..count).map(move |behind| Receipt(Stamp { ticket: first.ticket + behind, ..first }))
    }
}

/// The receipt names no taken message. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownReceipt;

impl fmt::Display for UnknownReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the receipt names no message that was taken and not released")
    }
}

impl core::error::Error for UnknownReceipt {}

/// The owner's counters (MB-10), since its incarnation began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages taken.
    pub taken: u64,
    /// Tickets skipped because no admitted sender could still write them.
    pub skipped: u64,
    /// Inquiries begun.
    pub questioned: u64,
    /// Copies with the expected stamp and a wrong length or checksum: torn, still arriving, or
    /// garbage. Each was read again or skipped, never delivered. Slots that are sealed by their
    /// stamp have no checksum; they count when their length or their run does not fit.
    pub checksum_failures: u64,
    /// Well-formed messages that name a sender without the right to write here.
    pub forged: u64,
    /// Halves that were closed while the reservation word showed another epoch than the open one:
    /// the word was damaged, or the fabric reported a swap as failed that took effect.
    pub word_repairs: u64,
    /// Tickets that a member forged by writing over the reservation word, or that its fabric
    /// answered wrongly (MB-14).
    pub forged_tickets: u64,
    /// The latest evidence of a forged ticket.
    pub forgery: Option<Forgery>,
    /// The longest time between a ticket and its message, or the skip.
    pub longest_stall: Duration,
}

impl core::hash::Hash for Counters {
    /// Hashes nothing: counters affect no later step, and states that differ in nothing else must
    /// be the same state to an explorer that compares hashes.
    fn hash<H: core::hash::Hasher>(&self, _state: &mut H) {}
}

/// How long the reservation word is not read after a message that came in ticket order. Each read
/// takes the word's cache line from the writers, which must fetch it back to add to it.
const LOOK_AFTER: Duration = Duration::from_micros(5);

/// The first owed ticket whose message is missing.
#[derive(Clone, Copy, Debug, Hash)]
struct Missing {
    stamp: Stamp,
    since: Instant,
    question_at: Instant,
}

/// The copy that is checked. Nothing reads it between two calls.
#[derive(Clone, Debug)]
struct Scratch([u8; INLINE_LEN]);

impl core::hash::Hash for Scratch {
    /// Hashes nothing: every call copies before it reads.
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
    /// All senders that may still write here are known. Before, no ticket is questioned.
    named: bool,
    missing: Option<Missing>,
    /// When a message last came in ticket order.
    in_order_at: Instant,
    inquiry: Inquiry<PEERS>,
    /// A sender was fenced: question at once.
    question_now: bool,
    scratch: Scratch,
    counters: Counters,
}

impl<const SLOTS: usize, const PEERS: usize> Mailbox<SLOTS, PEERS> {
    /// The owner of the mailbox in `fabric`'s memory, which is zeroed or was left behind by an
    /// owner that died. No sender is admitted yet, and no ticket is questioned before
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
        // The count of a damaged word means nothing: every slot may be given out.
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

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Tickets given out whose messages were not released: they are in the slots, taken, or
    /// missing.
    #[must_use]
    pub fn owed(&self) -> u32 {
        self.halves.iter().map(Half::outstanding).sum()
    }

    /// `sender` may put from now on.
    pub fn handle_admitted(&mut self, sender: Peer) {
        self.admitted.insert(sender);
        if !self.named {
            // Work that it posted to the previous owner may have added to the count until now.
            self.doubt();
        }
    }

    /// All senders that may still write here are known: each is admitted or fenced (MB-13). From
    /// now on the owner questions tickets, and so asks a sender that stalled in the middle of a
    /// write to the previous owner as well.
    pub const fn handle_all_named(&mut self) {
        self.named = true;
    }

    /// `sender` is fenced: none of its work changes a byte here (F-9). Messages that it put are
    /// still delivered; tickets that it only reserved are skipped.
    pub fn handle_fenced(&mut self, sender: Peer) {
        self.admitted.remove(sender);
        self.inquiry.forget(sender);
        self.question_now = true;
        self.doubt();
    }

    /// A sender that is gone may have reserved tickets that were given out so far.
    const fn doubt(&mut self) {
        self.halves[0].is_certain = false;
        self.halves[1].is_certain = false;
    }

    /// Reads how many tickets were given out, closes the open half when it is time, and questions
    /// missing tickets. Call it from the poll loop.
    #[inline]
    pub fn poll(&mut self, fabric: &mut impl Fabric, now: Instant) {
        self.look(fabric, now);
        self.close_half(fabric);
        let questions = self.missing.is_some() || self.inquiry.is_active();
        if questions && !NEVER_QUESTIONED.is_planted() {
            self.question(fabric, now);
        }
    }

    /// When to call [`Self::poll`] next if no message arrives before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let missing = self.missing.filter(|_| self.named);
        missing.map(|missing| missing.question_at)
    }

    /// Continues the work that `completion` belongs to; ignores other completions.
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

    #[cold]
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

    /// Reads how many tickets were given out, unless messages have just come in ticket order, which
    /// shows the same. A clock that stands still delays no read.
    #[inline]
    pub(super) fn look(&mut self, fabric: &impl Fabric, now: Instant) {
        let since = now.since(self.in_order_at);
        if since == Duration(0) || since >= LOOK_AFTER {
            self.read_count(fabric);
        }
    }

    /// Learns by a plain load how many tickets were given out (F-4 allows it).
    fn read_count(&mut self, fabric: &impl Fabric) {
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

    /// The word shows an epoch that this owner did not open. Every slot may have been given out,
    /// and closing the half repairs the word.
    #[cold]
    fn look_foreign(&mut self, shown: u32) {
        let (open, slots) = (self.open, self.config.slots());
        self.half(open).owe(slots);
        self.half(open).is_certain = false;
        // The next epoch comes from a swap that took effect although its failure was reported.
        if shown != open.wrapping_add(1)
            && let Some(forgery) = self.watch.see_foreign(open, shown)
        {
            self.note_forgery(forgery, 1);
        }
    }

    /// Finds the first deliverable message and leaves its copy in `scratch`.
    #[inline(never)]
    fn find(&mut self, fabric: &impl Fabric, now: Instant) -> Option<Trailer> {
        let mut gap = None;
        // The senders one of whose messages may be missing before this ticket.
        let mut held_up = PeerSet::EMPTY;
        for epoch in [self.open.wrapping_sub(1), self.open] {
            let half = &self.halves[(epoch & 1) as usize];
            if !half.has_undelivered(epoch) {
                continue;
            }
            let mut search = self.search(fabric, Stamp { epoch, ticket: half.next() });
            for ticket in half.next()..half.owed() {
                let stamp = Stamp { epoch, ticket };
                let found = self.pass(fabric, stamp, &mut search);
                if !self.halves[(epoch & 1) as usize].is_open(ticket) {
                    continue;
                }
                match found.and_then(|head| self.copy_message(fabric, stamp, head)) {
                    Some(trailer)
                        if !held_up.contains(Peer(trailer.sender))
                            || self.is_next(&trailer)
                            || self.half(epoch).is_returned(ticket)
                            || GAP_OVERTAKEN.is_planted() =>
                    {
                        self.note_gap(gap, Some(stamp), now);
                        return Some(trailer);
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

    /// The senders that a missing ticket may belong to: its holder, or all while none is known.
    fn suspects(&self, stamp: Stamp) -> PeerSet {
        let holders = self.inquiry.holders(stamp);
        if holders.is_empty() { PeerSet::first(PeerSet::CAPACITY) } else { holders }
    }

    fn is_next(&self, trailer: &Trailer) -> bool {
        self.expected[usize::from(trailer.sender)].is_some_and(|expected| expected.is(trailer))
    }

    /// Records the first missing ticket and since when it is missing.
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

    /// Begins an inquiry when one is due, and repeats the missing reads once per `stall_after`.
    #[inline(never)]
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

    /// The missing ticket is questioned again after another `stall_after`.
    fn put_off(&mut self, now: Instant) {
        let question_at = now.after(self.config.stall_after());
        self.missing = self.missing.map(|missing| Missing { question_at, ..missing });
    }

    /// Skips every ticket whose message has not arrived and never will.
    fn judge(&mut self, fabric: &impl Fabric, now: Instant) {
        for epoch in [self.open.wrapping_sub(1), self.open] {
            let half = &self.halves[(epoch & 1) as usize];
            if !half.has_undelivered(epoch) {
                continue;
            }
            let mut search = self.search(fabric, Stamp { epoch, ticket: half.next() });
            for ticket in half.next()..half.owed() {
                let stamp = Stamp { epoch, ticket };
                let found = self.pass(fabric, stamp, &mut search);
                let open = self.halves[(epoch & 1) as usize].is_open(ticket);
                let looked = || TICKETS_SKIPPED_UNSEEN.is_planted();
                if open
                    && self.inquiry.clears(stamp)
                    && (looked()
                        || found.and_then(|head| self.copy_message(fabric, stamp, head)).is_none())
                {
                    debug!("ticket {} of epoch {} skipped", ticket, epoch);
                    self.counters.skipped += 1;
                    if self.halves[(epoch & 1) as usize].is_certain {
                        self.note_forgery(Forgery::NotAskedFor { ticket: stamp }, 1);
                    }
                    let place = Place { config: &self.config, regions: self.regions };
                    self.halves[(epoch & 1) as usize].skip(fabric, place, ticket);
                    // The ticket may have been any sender's: a gap across it is no evidence.
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

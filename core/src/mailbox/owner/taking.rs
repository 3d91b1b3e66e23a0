//! What is taken: the message of the next ticket by a glance at its slot, others by a search.
//!
//! By far the most messages are the next of their ticket order and of their sender's, in the open
//! half, and whole. For those [`Mailbox::take`] is a short way; whatever speaks against one of
//! these is left to a function that looks closely.

use super::super::half::{Half, Place};
use super::super::mutants::HEAD_NOT_SOUGHT;
use super::super::watch::Expected;
use super::{Counters, Mailbox, Message, Receipt, Run, Scratch};
use crate::fabric::{Fabric, Memory};
use crate::ids::Peer;
use crate::time::Instant;
use crate::wire::slot::{Glance, Seal, Sealing, Slot, SlotError, Stamp, Trailer};

/// A search through the tickets of a half, in their order, where slots are sealed by stamps.
#[derive(Clone, Copy, Default)]
pub(super) struct Search {
    /// The packed write that was passed last, if all of it has arrived: where it begins and ends.
    packed: Option<(u32, u32)>,
}

impl Search {
    /// Goes past the ticket of `slot`, and says where its message is if it has one: `Some(None)`
    /// in that slot, `Some(Some(head))` in the packed write that begins in the slot of `head`.
    /// Wants every ticket in order, also those that were taken.
    fn pass(&mut self, memory: &(impl Memory + ?Sized), slot: &Slot) -> Option<Option<u32>> {
        let ticket = slot.stamp.ticket;
        match slot.seal(memory) {
            Seal::Single => Some(None),
            Seal::Packed(count) => {
                let is_whole = slot.first_of_packed(memory).is_ok();
                self.packed = is_whole.then_some((ticket, ticket + count));
                is_whole.then_some(None)
            }
            Seal::Part | Seal::Absent => {
                let (head, _) = self.packed.filter(|(_, end)| ticket < *end)?;
                Some(Some(head))
            }
        }
    }
}

/// Messages that were handed out from the next ticket on, to be recorded as taken: also when a
/// panic ends their processing.
struct Dealt<'a, F: Fabric, const SLOTS: usize> {
    fabric: &'a F,
    place: Place<'a>,
    half: &'a mut Half<SLOTS>,
    expected: &'a mut Option<Expected>,
    /// The first of them.
    first: Expected,
    counters: &'a mut Counters,
    count: u32,
}

impl<F: Fabric, const SLOTS: usize> Drop for Dealt<'_, F, SLOTS> {
    fn drop(&mut self) {
        let Self { fabric, place, half, expected, first, counters, count } = self;
        if *count > 0 {
            half.take_more(*fabric, *place, *count);
            **expected = Some(Expected { sequence: first.sequence.wrapping_add(*count), ..*first });
            counters.taken += u64::from(*count);
        }
    }
}

/// The next ticket alone does not decide which message is next, or its slot needs a closer look.
struct Unclear;

impl<const SLOTS: usize, const PEERS: usize> Mailbox<SLOTS, PEERS> {
    /// The next message, or `None` if none has arrived (MB-5, MB-6): never waits. That of the next
    /// ticket of the open half needs no [`Self::poll`]; one behind a missing ticket, or in the half
    /// that is opened next, is found after a poll.
    // At each place: there are few, and a message is handed out in registers.
    #[inline(always)]
    pub fn take(&mut self, fabric: &impl Fabric, now: Instant) -> Option<Message<'_>> {
        let trailer = match self.take_plainly(fabric, now) {
            Ok(trailer) => trailer?,
            Err(Unclear) => self.take_closely(fabric, now)?,
        };
        Some(Message::new(&trailer, &self.scratch.0[..usize::from(trailer.len)]))
    }

    /// Takes the next message, and with it what follows in its write if that is in order, `limit`
    /// messages at most, and hands each to `deal`: as [`Self::take`] for each, for less (`weft
    /// bench count`). `None` if no message has arrived, or `limit` is 0. Should `deal` panic, the
    /// messages that it got are taken, and their receipts are all there is to release them by.
    #[inline(always)]
    pub fn take_run(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
        limit: u32,
        mut deal: impl FnMut(&Message<'_>),
    ) -> Option<Run> {
        let behind = limit.checked_sub(1)?;
        // One alone is no run, for which its whole slot would be copied.
        if behind > 0
            && let Some(run) = self.take_packed(fabric, now, limit, &mut deal)
        {
            return Some(run);
        }
        let message = self.take(fabric, now)?;
        let (sender, Receipt(first)) = (message.sender, message.receipt);
        deal(&message);
        Some(Run { first, count: 1 + self.take_rest(fabric, now, (sender, first), behind, deal) })
    }

    /// Takes what is left of the packed write that the next ticket belongs to, `limit` messages at
    /// most: what [`Self::take`] would return one by one, unless a liar's write reaches over the
    /// tickets of others (MB-14). `None` if `take` has to look closely.
    #[inline(always)]
    fn take_packed(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
        limit: u32,
        mut deal: impl FnMut(&Message<'_>),
    ) -> Option<Run> {
        let stamp = self.next_ticket()?;
        let may_miss = self.may_miss(stamp.epoch);
        let Self { config, regions, halves, expected, scratch, counters, open, .. } = self;
        let half = &mut halves[(stamp.epoch & 1) as usize];
        if config.sealing(fabric) == Sealing::Checksum || may_miss || !half.is_undisturbed() {
            return None;
        }
        let head = half.packed_head(stamp.ticket).unwrap_or(stamp.ticket);
        let slot = regions.slot(config, Stamp { ticket: head, ..stamp });
        let first = slot.first_of_packed(fabric.memory()).ok()?;
        let behind = stamp.ticket - head;
        // What was given out of a closed half is known: a message beyond is forged.
        let given = if stamp.epoch == *open { config.slots() } else { half.owed() };
        let end = given.min(head + first.count());
        let limit = limit.min(end.saturating_sub(stamp.ticket));
        let due = Trailer { sequence: first.sequence.wrapping_add(behind), ..first };
        let expected = &mut expected[..usize::from(config.peers())];
        let expected = expected.get_mut(usize::from(first.sender))?;
        let is_forged = expected.is_some_and(|it| it.judge(&due, true).is_some());
        if is_forged || limit == 0 || !half.are_untouched(stamp.ticket + limit) {
            return None;
        }
        (half.seen_end, half.packed_from) = (end, Some(head));
        half.owe(end);
        let place = Place { config, regions: *regions };
        let (incarnation, sequence) = (due.incarnation, due.sequence);
        let next = Expected { incarnation, sequence, is_certain: true };
        let mut dealt = Dealt { fabric, place, half, expected, first: next, counters, count: 0 };
        let behind = behind..behind + limit;
        slot.glance_packed(fabric.memory(), &first, behind, &mut scratch.0, |trailer, payload| {
            dealt.count += 1;
            deal(&Message::new(trailer, payload));
        });
        let count = dealt.count;
        drop(dealt);
        if count == 0 {
            return None;
        }
        self.in_order_at = now;
        Some(Run { first: stamp, count })
    }

    /// Whether a message that comes next in `epoch` may belong behind one that was skipped in the
    /// open half, as in [`Self::follow`].
    fn may_miss(&self, epoch: u32) -> bool {
        epoch != self.open && self.halves[(self.open & 1) as usize].has_skipped_from(0)
    }

    /// Takes what came from `sender` behind `first` in a write of slots of their own that was seen
    /// whole, `limit` messages at most, and returns how many: only what [`Self::take_plainly`]
    /// would take.
    #[inline(always)]
    fn take_rest(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
        (sender, first): (Peer, Stamp),
        limit: u32,
        mut deal: impl FnMut(&Message<'_>),
    ) -> u32 {
        let may_miss = self.may_miss(first.epoch);
        let Self { config, regions, halves, expected, scratch, counters, .. } = self;
        let half = &mut halves[(first.epoch & 1) as usize];
        let (stamp, end) = (Stamp { ticket: first.ticket + 1, ..first }, half.seen_end);
        let limit = limit.min(end.saturating_sub(stamp.ticket));
        let is_plain = !may_miss
            && self.missing.is_none()
            && half.is_undisturbed()
            && half.next() == stamp.ticket
            && limit > 0
            && half.are_untouched(stamp.ticket + limit)
            && config.sealing(fabric) == Sealing::Stamp;
        let expected = &mut expected[sender.index()];
        let Some(next) = expected.filter(|it| is_plain && it.is_certain) else { return 0 };
        let due = Trailer {
            sender: sender.0,
            sequence: next.sequence,
            stamp,
            incarnation: next.incarnation,
            #[expect(clippy::cast_possible_truncation, reason = "it came from a run")]
            run: (end - stamp.ticket) as u16,
            ..Trailer::default()
        };
        let slot = regions.slot(config, stamp);
        let place = Place { config, regions: *regions };
        let mut dealt = Dealt { fabric, place, half, expected, first: next, counters, count: 0 };
        slot.glance_rest(fabric.memory(), &due, limit, &mut scratch.0, |trailer, payload| {
            dealt.count += 1;
            deal(&Message::new(trailer, payload));
        });
        let taken = dealt.count;
        drop(dealt);
        if taken > 0 {
            self.in_order_at = now;
        }
        taken
    }

    /// Takes the message of the next ticket of the open half, if it is the next of its sender's
    /// sequence as well and nothing is in doubt: leaves its copy in `scratch`. `None`: no message
    /// has arrived.
    ///
    /// # Errors
    /// [`Unclear`]: nothing changed, and [`Self::take_closely`] decides.
    #[inline(always)]
    fn take_plainly(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
    ) -> Result<Option<Trailer>, Unclear> {
        let Self { config, regions, halves: [even, odd], open: epoch, .. } = self;
        let (half, other) = if *epoch & 1 == 0 { (even, odd) } else { (odd, even) };
        let ticket = half.next();
        let is_before = other.has_undelivered(epoch.wrapping_sub(1));
        if is_before || self.missing.is_some() || ticket >= config.slots() {
            return Err(Unclear);
        }
        let slot = regions.slot(config, Stamp { epoch: *epoch, ticket });
        let (trailer, last) = match slot.glance(fabric.memory(), config.sealing(fabric)) {
            Glance::Stamped(trailer, last) => (trailer, last),
            Glance::Absent if !half.has_undelivered(*epoch) => return Ok(None),
            Glance::Absent | Glance::Unclear => return Err(Unclear),
        };
        let is_whole = trailer.run == 1 || half.seen_end == ticket + u32::from(trailer.run);
        let expected = self.expected.get_mut(usize::from(trailer.sender));
        let Some(Some(expected)) = expected.filter(|_| is_whole) else { return Err(Unclear) };
        if !half.is_undisturbed() || half.is_returned(ticket) || !expected.is(&trailer) {
            return Err(Unclear);
        }
        debug_assert!(half.epoch() == *epoch && half.is_open(ticket), "it was not delivered");
        half.take_next(fabric, Place { config, regions: *regions });
        half.advance();
        *expected = Expected::after(&trailer, true);
        self.counters.taken += 1;
        self.in_order_at = now;
        // Last: values that live across the call for a long payload would be spilled.
        slot.copy_payload(fabric.memory(), last, trailer.len, &mut self.scratch.0);
        Ok(Some(trailer))
    }

    /// As [`Self::take`], with a close look at the next ticket, and at the others if that has no
    /// message.
    #[inline(never)]
    fn take_closely(&mut self, fabric: &impl Fabric, now: Instant) -> Option<Trailer> {
        if let Some(trailer) = self.copy_next(fabric) {
            let stamp = trailer.stamp;
            self.half(stamp.epoch).owe(stamp.ticket + 1);
            self.in_order_at = now;
            self.deliver(fabric, &trailer);
            return Some(trailer);
        }
        if !self.has_undelivered() {
            return None;
        }
        let trailer = self.find(fabric, now)?;
        self.deliver(fabric, &trailer);
        Some(trailer)
    }

    /// Records that the message which `scratch` holds is taken.
    fn deliver(&mut self, fabric: &impl Fabric, trailer: &Trailer) {
        let stamp = trailer.stamp;
        let place = Place { config: &self.config, regions: self.regions };
        let half = &mut self.halves[(stamp.epoch & 1) as usize];
        let is_returned = half.take(fabric, place, stamp.ticket);
        if !is_returned {
            self.follow(trailer);
        }
        self.counters.taken += 1;
    }

    /// Whether [`Self::take`] would return a message: the last look before the caller sleeps.
    #[inline(never)]
    pub fn has_message(&mut self, fabric: &impl Fabric, now: Instant) -> bool {
        if let Some(Trailer { stamp, .. }) = self.copy_next(fabric) {
            self.half(stamp.epoch).owe(stamp.ticket + 1);
            return true;
        }
        // However lately messages came: the caller is about to sleep.
        self.read_count(fabric);
        self.has_undelivered() && self.find(fabric, now).is_some()
    }

    /// Checks that a message is the next of its sender's sequence, and records it.
    fn follow(&mut self, trailer: &Trailer) {
        let Stamp { epoch, ticket } = trailer.stamp;
        let [half, open] = [epoch, self.open].map(|epoch| &self.halves[(epoch & 1) as usize]);
        // A missing ticket may belong to a message in between.
        let is_own = half.is_own && self.missing.is_none();
        // So may one that was skipped ahead of a later message.
        let may_miss =
            half.has_skipped_from(ticket) || epoch != self.open && open.has_skipped_from(0);
        let expected = &mut self.expected[usize::from(trailer.sender)];
        let forgery = expected.and_then(|expected| expected.judge(trailer, is_own));
        *expected = Some(Expected::after(trailer, is_own && !may_miss));
        if let Some(forgery) = forgery {
            self.note_forgery(forgery, 1);
        }
    }

    /// The first ticket that was not delivered, whether or not it is known to be given out: a
    /// message in its slot proves that it is. `None` if that ticket alone does not decide which
    /// message is next.
    fn next_ticket(&self) -> Option<Stamp> {
        let before = self.open.wrapping_sub(1);
        let is_before = self.halves[(before & 1) as usize].has_undelivered(before);
        let epoch = if is_before { before } else { self.open };
        let half = &self.halves[(epoch & 1) as usize];
        let ticket = half.next();
        if self.missing.is_some() || ticket >= self.config.slots() {
            return None;
        }
        debug_assert!(half.epoch() == epoch && half.is_open(ticket), "it was not delivered");
        Some(Stamp { epoch, ticket })
    }

    /// Whether a ticket is known to be given out whose message was not taken, or is still noted as
    /// missing. Without one there is nothing to find.
    #[inline]
    fn has_undelivered(&self) -> bool {
        let mut epochs = [self.open.wrapping_sub(1), self.open].into_iter();
        self.missing.is_some()
            || epochs.any(|it| self.halves[(it & 1) as usize].has_undelivered(it))
    }

    /// A search from the ticket of `stamp` on, which knows of the packed write that this may belong
    /// to; `None` where none is packed.
    pub(super) fn search(&self, fabric: &impl Fabric, stamp: Stamp) -> Option<Search> {
        if self.config.sealing(fabric) == Sealing::Checksum {
            return None;
        }
        let mut search = Search::default();
        if self.halves[(stamp.epoch & 1) as usize].seen_end == stamp.ticket
            || HEAD_NOT_SOUGHT.is_planted()
        {
            return Some(search);
        }
        let first = stamp.ticket.saturating_sub(self.config.batch() - 1);
        for ticket in (first..stamp.ticket).rev() {
            let slot = self.regions.slot(&self.config, Stamp { ticket, ..stamp });
            // Behind the head of a write, or a message in a slot of its own, no other is sought.
            if search.pass(fabric.memory(), &slot).is_some() {
                break;
            }
        }
        Some(search)
    }

    /// The search goes past the ticket of `stamp`: see [`Search::pass`].
    pub(super) fn pass(
        &self,
        fabric: &impl Fabric,
        stamp: Stamp,
        search: &mut Option<Search>,
    ) -> Option<Option<u32>> {
        let Some(search) = search else { return Some(None) };
        search.pass(fabric.memory(), &self.regions.slot(&self.config, stamp))
    }

    /// Copies the message of the next ticket into `scratch`, if that ticket alone decides which
    /// message is next.
    fn copy_next(&mut self, fabric: &impl Fabric) -> Option<Trailer> {
        let stamp = self.next_ticket()?;
        let head = self.half(stamp.epoch).packed_head(stamp.ticket);
        self.copy_message(fabric, stamp, head)
    }

    /// Copies a message into `scratch` once and checks the copy (MB-4): that in the slot of its
    /// ticket, or else one of the packed write that begins at `head`.
    #[inline(never)]
    pub(super) fn copy_message(
        &mut self,
        fabric: &impl Fabric,
        stamp: Stamp,
        head: Option<u32>,
    ) -> Option<Trailer> {
        let (memory, sealing) = (fabric.memory(), self.config.sealing(fabric));
        let Self { regions, config, scratch: Scratch(scratch), .. } = self;
        let slot = |ticket| regions.slot(config, Stamp { ticket, ..stamp });
        let own = slot(stamp.ticket).copy_out(memory, sealing, scratch, |it| fabric.crc32c(it));
        let (copied, head) = match (own, head) {
            (Err(SlotError::Stamp), Some(head)) => {
                (slot(head).copy_packed(memory, stamp.ticket - head, scratch), Some(head))
            }
            (own, _) => (own, own.ok().filter(Trailer::is_packed).map(|_| stamp.ticket)),
        };
        match copied {
            Ok(trailer) if trailer.sender < self.config.peers() => {
                let is_closed = stamp.epoch != self.open;
                let half = self.half(stamp.epoch);
                (half.seen_end, half.packed_from) = (stamp.ticket + trailer.count(), head);
                if is_closed {
                    // What was given out is known: a message beyond is forged.
                    half.seen_end = half.seen_end.min(half.owed());
                } else if head.is_some() {
                    half.owe(half.seen_end);
                }
                Some(trailer)
            }
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
}

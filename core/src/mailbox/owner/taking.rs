//! What is taken: the message of the next ticket by a glance at its slot, others by a search.
//!
//! By far the most messages are the next of their ticket order and of their sender's, in the open
//! half, and whole. For those [`Mailbox::take`] is a short way without a call; whatever speaks
//! against one of these is for the functions that it leaves.

use super::super::half::Place;
use super::super::watch::Expected;
use super::{Mailbox, Message, Receipt, Run};
use crate::fabric::Fabric;
use crate::ids::Peer;
use crate::time::Instant;
use crate::wire::slot::{Glance, Sealing, SlotError, Stamp, Trailer};

impl<const SLOTS: usize, const PEERS: usize> Mailbox<SLOTS, PEERS> {
    /// The next message, or `None` if none has arrived (MB-5, MB-6): never waits. That of the next
    /// ticket of the open half needs no [`Self::poll`]; one behind a missing ticket, or in the half
    /// that is opened next, is found after a poll.
    // At each place: there are few, and a message is handed out in registers.
    #[inline(always)]
    pub fn take(&mut self, fabric: &impl Fabric, now: Instant) -> Option<Message<'_>> {
        if let Some(stamp) = self.next_ticket() {
            match self.glance(fabric, stamp) {
                Glance::Whole(trailer) => return Some(self.deliver_next(fabric, now, &trailer)),
                Glance::Absent => {}
                Glance::Unclear => return self.take_unclear(fabric, now, stamp),
            }
        }
        if self.has_undelivered() { self.take_other(fabric, now) } else { None }
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
        let message = self.take(fabric, now)?;
        let (sender, Receipt(first)) = (message.sender, message.receipt);
        deal(&message);
        Some(Run { first, count: 1 + self.take_rest(fabric, now, (sender, first), behind, deal) })
    }

    /// Takes what came from `sender` behind `first` in a write that was seen whole, `limit`
    /// messages at most, and returns how many: those that [`Self::follow_plainly`] accepts.
    #[inline(always)]
    fn take_rest(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
        (sender, first): (Peer, Stamp),
        limit: u32,
        mut deal: impl FnMut(&Message<'_>),
    ) -> u32 {
        let Self { config, regions, halves, expected, scratch, counters, .. } = self;
        let half = &mut halves[(first.epoch & 1) as usize];
        let (stamp, end) = (Stamp { ticket: first.ticket + 1, ..first }, half.seen_end);
        let limit = limit.min(end.saturating_sub(stamp.ticket));
        let is_plain = first.epoch == self.open
            && self.missing.is_none()
            && half.is_undisturbed()
            && half.next() == stamp.ticket
            && limit > 0
            && half.are_untouched(stamp.ticket + limit)
            && config.sealing(fabric) == Sealing::Stamp;
        let Some(expected) =
            expected[sender.index()].as_mut().filter(|it| is_plain && it.is_certain)
        else {
            return 0;
        };
        let due = Trailer {
            sender: sender.0,
            sequence: expected.sequence,
            stamp,
            incarnation: expected.incarnation,
            #[expect(clippy::cast_possible_truncation, reason = "it came from a run")]
            run: (end - stamp.ticket) as u16,
            ..Trailer::default()
        };
        let slot = regions.slot(config, stamp);
        slot.glance_rest(fabric.memory(), &due, limit, &mut scratch.0, |trailer, payload| {
            half.take_next();
            counters.taken += 1;
            expected.sequence = trailer.sequence.wrapping_add(1);
            deal(&Message::new(trailer, payload));
        });
        let taken = half.next() - stamp.ticket;
        if taken > 0 {
            self.in_order_at = now;
        }
        taken
    }

    /// As [`Self::take`], where the next ticket needs a closer look.
    #[inline(never)]
    fn take_unclear(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
        stamp: Stamp,
    ) -> Option<Message<'_>> {
        match self.copy_slot(fabric, stamp) {
            Some(trailer) => Some(self.deliver_next(fabric, now, &trailer)),
            None => self.take_other(fabric, now),
        }
    }

    /// As [`Self::take`], where the next ticket has no message.
    #[inline(never)]
    fn take_other(&mut self, fabric: &impl Fabric, now: Instant) -> Option<Message<'_>> {
        let trailer = self.find(fabric, now)?;
        Some(self.deliver(fabric, &trailer))
    }

    /// Hands out the message of the next ticket, which `scratch` holds.
    #[inline(always)]
    fn deliver_next(
        &mut self,
        fabric: &impl Fabric,
        now: Instant,
        trailer: &Trailer,
    ) -> Message<'_> {
        self.half(trailer.stamp.epoch).owe(trailer.stamp.ticket + 1);
        self.in_order_at = now;
        self.deliver(fabric, trailer)
    }

    /// Hands out the message that `scratch` holds.
    #[inline(always)]
    fn deliver(&mut self, fabric: &impl Fabric, trailer: &Trailer) -> Message<'_> {
        let stamp = trailer.stamp;
        let place = Place { config: &self.config, regions: self.regions };
        let half = &mut self.halves[(stamp.epoch & 1) as usize];
        let is_returned = half.take(fabric, place, stamp.ticket);
        if !is_returned && !self.follow_plainly(trailer) {
            self.follow(trailer.sender, trailer.incarnation, trailer.sequence, stamp);
        }
        self.counters.taken += 1;
        Message::new(trailer, &self.scratch.0[..usize::from(trailer.len)])
    }

    /// Whether [`Self::take`] would return a message: the last look before the caller sleeps.
    #[inline(never)]
    pub fn has_message(&mut self, fabric: &impl Fabric, now: Instant) -> bool {
        if let Some(stamp) = self.next_ticket()
            && self.copy_slot(fabric, stamp).is_some()
        {
            self.half(stamp.epoch).owe(stamp.ticket + 1);
            return true;
        }
        // However lately messages came: the caller is about to sleep.
        self.read_count(fabric);
        self.has_undelivered() && self.find(fabric, now).is_some()
    }

    /// Whether `trailer` is the next of its sender's sequence in a half of which nothing is in
    /// doubt, as nearly all are; records it then.
    #[inline(always)]
    fn follow_plainly(&mut self, trailer: &Trailer) -> bool {
        let half = &self.halves[(trailer.stamp.epoch & 1) as usize];
        let Some(expected) = &mut self.expected[usize::from(trailer.sender)] else { return false };
        let is_plain = trailer.stamp.epoch == self.open
            && self.missing.is_none()
            && half.is_undisturbed()
            && expected.is(trailer);
        if is_plain {
            *expected = Expected::after(trailer, true);
        }
        is_plain
    }

    /// Checks that a message is the next of its sender's sequence, and records it.
    // Not the trailer: what a reference is taken of stays in memory.
    #[inline(never)]
    fn follow(&mut self, sender: u16, incarnation: u16, sequence: u32, stamp: Stamp) {
        let trailer = &Trailer { sender, incarnation, sequence, stamp, ..Trailer::default() };
        let Stamp { epoch, ticket } = stamp;
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
    #[inline(always)]
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

    /// Looks at a slot in which a message is expected next.
    #[inline(always)]
    fn glance(&mut self, fabric: &impl Fabric, stamp: Stamp) -> Glance {
        let half = &self.halves[(stamp.epoch & 1) as usize];
        let is_end_seen = |end| half.seen_end == end;
        let (slot, sealing) = (self.regions.slot(&self.config, stamp), self.config.sealing(fabric));
        let senders = self.config.peers();
        slot.glance(fabric.memory(), sealing, senders, is_end_seen, &mut self.scratch.0)
    }

    /// Copies a slot into `scratch` once and checks the copy (MB-4).
    #[inline(never)]
    pub(super) fn copy_slot(&mut self, fabric: &impl Fabric, stamp: Stamp) -> Option<Trailer> {
        let (slot, sealing) = (self.regions.slot(&self.config, stamp), self.config.sealing(fabric));
        match slot.copy_out(fabric.memory(), sealing, &mut self.scratch.0, |it| fabric.crc32c(it)) {
            Ok(trailer) if trailer.sender < self.config.peers() => {
                self.half(stamp.epoch).seen_end = stamp.ticket + u32::from(trailer.run);
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

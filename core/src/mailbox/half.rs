//! One half of the mailbox as its owner sees it, and the journal that outlives the owner.
//!
//! ```text
//! journal of a half:   record: epoch:u32 │ owed:u32 (0 while tickets are given out)
//!                      bitmap: bit t is set when ticket t was released or skipped
//! ```
//!
//! The journal is correct for a successor whenever its owner dies: the record of a new epoch is
//! written first, then its empty bitmap, then the word opens it; the number of owed tickets is
//! written after the word has closed the half, and a bit after its message was released. At worst a
//! successor finds a closed half without that number; it then owes every slot, and questioning
//! clears the tickets that were never given out. The records alone say which half is open, so a
//! damaged word misleads no successor. Zeroed memory is the journal of a mailbox that was never
//! used.

use super::mutants::{
    BITMAP_NOT_CLEARED, JOURNAL_IGNORED, RUN_UNJOURNALLED, SEEN_END_KEPT, STAMPS_NOT_CLEARED,
    TAKE_JOURNALLED, TAKEN_BEHIND_RUN,
};
use super::{Config, Regions, Run};
use crate::fabric::{At, Fabric, Memory};
use crate::wire::slot::{Stamp, cleared};

/// What became of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ticket {
    /// Given out or not yet given out; its message was not delivered.
    Open,
    /// As [`Self::Open`]; its message was taken once and restored.
    Returned,
    /// Its message was handed out and not released.
    Taken,
    /// Its message was released, or it was skipped.
    Done,
}

/// No half is ever closed with nothing owed.
const OWED_OPEN: u32 = 0;

/// In the first epoch of so many, and in the one behind it, all stamps of their half are cleared.
const CLEAR_EVERY: u32 = 1 << 16;

/// The tickets of one epoch.
#[derive(Clone, Debug, Hash)]
pub(super) struct Half<const SLOTS: usize> {
    epoch: u32,
    owed: u32,
    /// All tickets below are taken or done.
    next: u32,
    done: u32,
    /// All skipped tickets are below.
    skipped: u32,
    /// The end of the write whose last slot was seen last, in tickets; zero for none.
    pub(super) seen_end: u32,
    /// The first ticket of that write, if it is packed.
    pub(super) packed_from: Option<u32>,
    /// This owner began the epoch, so no earlier one took of it.
    pub(super) is_own: bool,
    /// The owed tickets were read from the word, not assumed, and no sender was fenced since: an
    /// admitted sender reserved each of them.
    pub(super) is_certain: bool,
    /// The word has shown an epoch that was not open, or may have to an owner before: members may
    /// have put into any slot under it.
    pub(super) has_strays: bool,
    tickets: [Ticket; SLOTS],
}

impl<const SLOTS: usize> Half<SLOTS> {
    /// A half with nothing owed and slots of unknown content.
    pub(super) const fn drained(epoch: u32) -> Self {
        Self {
            epoch,
            owed: 0,
            next: 0,
            done: 0,
            skipped: 0,
            seen_end: 0,
            packed_from: None,
            is_own: true,
            is_certain: true,
            has_strays: false,
            tickets: [Ticket::Open; SLOTS],
        }
    }

    /// Begins `epoch` in memory and in the journal. Nothing of the epoch before may be owed.
    pub(super) fn begin(&mut self, fabric: &impl Fabric, place: Place<'_>, epoch: u32) {
        debug_assert!(self.is_drained(), "a half with owed tickets was begun again");
        let at = place.regions.record(place.config, epoch);
        if Stamp::from_word(fabric.memory().load(at.region, at.offset)).epoch == epoch {
            // An owner before this one began it, and its swap of the word may have taken effect
            // or do so later: members may write.
            *self =
                Self { is_own: false, is_certain: false, has_strays: true, ..Self::drained(epoch) };
        } else {
            // Before the journal names the epoch: a successor that finds it there relies on this.
            self.clear_stamps(fabric, place, epoch);
            self.renew(epoch);
        }
        place.record(fabric, epoch, OWED_OPEN);
        if BITMAP_NOT_CLEARED.is_planted() {
            return;
        }
        for index in 0..place.config.bitmap_words() {
            let at = place.regions.bitmap(place.config, epoch, index);
            fabric.memory().store(at.region, at.offset, 0);
        }
    }

    /// Becomes the half of `epoch`, with nothing owed. Of the tickets only those that were owed are
    /// touched: the others are open, and there may be thousands.
    fn renew(&mut self, epoch: u32) {
        self.tickets[..self.owed as usize].fill(Ticket::Open);
        self.epoch = epoch;
        (self.owed, self.next, self.done, self.skipped) = (0, 0, 0, 0);
        (self.is_own, self.is_certain, self.has_strays) = (true, true, false);
        if !SEEN_END_KEPT.is_planted() {
            (self.seen_end, self.packed_from) = (0, None);
        }
    }

    /// Clears all stamps before `epoch` begins, now and then (MB-11): otherwise a slot that only
    /// bursts reach, or that packed writes leave unused, would hold a message of 2^32 epochs ago
    /// when the epoch wraps. Strays would be found when their epoch comes. The half is drained
    /// and not open, so no peer writes it.
    fn clear_stamps(&self, fabric: &impl Fabric, place: Place<'_>, epoch: u32) {
        let is_due = self.has_strays || epoch % CLEAR_EVERY < 2;
        if is_due && !STAMPS_NOT_CLEARED.is_planted() {
            place.clear_stamps(fabric, epoch);
        }
    }

    /// The half of `epoch` as journalled; `owed` tickets were given out if it is still open.
    pub(super) fn recover(fabric: &impl Fabric, place: Place<'_>, epoch: u32, owed: u32) -> Self {
        let at = place.regions.record(place.config, epoch);
        let record = Stamp::from_word(fabric.memory().load(at.region, at.offset));
        let mut half = Self { has_strays: true, ..Self::drained(epoch) };
        if record.epoch != epoch {
            // The other half was begun for a later epoch, so this one was drained.
            return half;
        }
        half.owed = if record.ticket == OWED_OPEN { owed } else { record.ticket };
        half.owed = half.owed.min(place.config.slots());
        (half.is_own, half.is_certain) = (false, false);
        for ticket in 0..half.owed {
            let at = place.regions.bitmap(place.config, epoch, ticket / 64);
            let journalled = fabric.memory().load(at.region, at.offset) >> (ticket % 64) & 1 == 1;
            if journalled && !JOURNAL_IGNORED.is_planted() {
                half.tickets[ticket as usize] = Ticket::Done;
                half.done += 1;
            }
        }
        half.advance();
        half
    }

    pub(super) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// How many tickets were given out, as far as is known.
    pub(super) const fn owed(&self) -> u32 {
        self.owed
    }

    /// The first ticket that is neither taken nor done.
    pub(super) const fn next(&self) -> u32 {
        self.next
    }

    /// Whether every ticket that was given out is done.
    pub(super) const fn is_drained(&self) -> bool {
        self.done == self.owed
    }

    /// Tickets given out and not done.
    pub(super) const fn outstanding(&self) -> u32 {
        self.owed - self.done
    }

    /// Whether a ticket of `epoch` was given out that is neither taken nor done.
    #[inline]
    pub(super) const fn has_undelivered(&self, epoch: u32) -> bool {
        self.epoch == epoch && self.next < self.owed
    }

    /// Whether this owner began the epoch and skipped no ticket of it.
    #[inline]
    pub(super) const fn is_undisturbed(&self) -> bool {
        self.is_own && self.skipped == 0
    }

    /// The first ticket of the write that was seen last, if that is packed and has a later message
    /// for `ticket`.
    pub(super) fn packed_head(&self, ticket: u32) -> Option<u32> {
        self.packed_from.filter(|head| *head < ticket && ticket < self.seen_end)
    }

    pub(super) fn is_open(&self, ticket: u32) -> bool {
        matches!(self.tickets[ticket as usize], Ticket::Open | Ticket::Returned)
    }

    /// Whether the message of `ticket` was taken and restored.
    pub(super) fn is_returned(&self, ticket: u32) -> bool {
        self.tickets[ticket as usize] == Ticket::Returned
    }

    /// More tickets were given out while the half is open.
    pub(super) fn owe(&mut self, owed: u32) {
        if owed > self.owed {
            self.owed = owed;
        }
    }

    /// The half was closed with `owed` tickets given out.
    pub(super) fn close(&mut self, fabric: &impl Fabric, place: Place<'_>, owed: u32) {
        self.owe(owed);
        place.record(fabric, self.epoch, self.owed);
    }

    /// `ticket` is taken; whether it was before, and was restored.
    #[inline(always)]
    pub(super) fn take(&mut self, fabric: &impl Fabric, place: Place<'_>, ticket: u32) -> bool {
        let before = core::mem::replace(&mut self.tickets[ticket as usize], Ticket::Taken);
        self.advance_over(ticket);
        if TAKE_JOURNALLED.is_planted() {
            self.journal(fabric, place, ticket);
        }
        before == Ticket::Returned
    }

    /// The taken `ticket` is open again.
    pub(super) fn restore(&mut self, ticket: u32) {
        self.tickets[ticket as usize] = Ticket::Returned;
        self.next = self.next.min(ticket);
    }

    /// Whether no ticket from the next one up to and including `end` was ever taken.
    pub(super) fn are_untouched(&self, end: u32) -> bool {
        let end = end as usize + usize::from(!TAKEN_BEHIND_RUN.is_planted());
        let tickets = self.tickets.iter().take(end).skip(self.next as usize);
        tickets.fold(true, |are, ticket| are & (*ticket == Ticket::Open))
    }

    /// The next ticket, which is open, is taken. If one behind it was taken before,
    /// [`Self::advance`] is due.
    #[inline(always)]
    pub(super) fn take_next(&mut self, fabric: &impl Fabric, place: Place<'_>) {
        self.tickets[self.next as usize] = Ticket::Taken;
        if TAKE_JOURNALLED.is_planted() {
            self.journal(fabric, place, self.next);
        }
        self.next += 1;
        self.owe(self.next);
    }

    /// The next `count` tickets, which are open, are taken, as by [`Self::take_next`].
    pub(super) fn take_more(&mut self, fabric: &impl Fabric, place: Place<'_>, count: u32) {
        let end = self.next + count;
        self.tickets[self.next as usize..end as usize].fill(Ticket::Taken);
        for ticket in (self.next..end).filter(|_| TAKE_JOURNALLED.is_planted()) {
            self.journal(fabric, place, ticket);
        }
        self.next = end;
        self.owe(end);
    }

    /// Marks the tickets of `run` as done, if all of them are taken; whether they were.
    #[inline]
    pub(super) fn finish_run(&mut self, fabric: &impl Fabric, place: Place<'_>, run: Run) -> bool {
        let Run { first: Stamp { epoch, ticket }, count } = run;
        let (begin, end) = (ticket, ticket + count);
        let tickets = self.tickets.get_mut(begin as usize..end as usize);
        let Some(tickets) = tickets.filter(|_| epoch == self.epoch) else { return false };
        // No early end: all are taken nearly always, and several are compared at once.
        if !tickets.iter().fold(true, |are, ticket| are & (*ticket == Ticket::Taken)) {
            return false;
        }
        tickets.fill(Ticket::Done);
        self.done += count;
        let words = begin / 64..end.div_ceil(64);
        for index in words.filter(|_| !RUN_UNJOURNALLED.is_planted()) {
            let (from, to) = (begin.max(index * 64) % 64, end.min((index + 1) * 64) - index * 64);
            let bits = u64::MAX >> (64 - to) & u64::MAX << from;
            place.journal(fabric, Bits { epoch, index, bits });
        }
        true
    }

    /// Marks `ticket`, which is taken, as done. After one that is open, call
    /// [`Self::advance_over`].
    #[inline]
    pub(super) fn finish(&mut self, fabric: &impl Fabric, place: Place<'_>, ticket: u32) {
        self.finish_unjournalled(ticket);
        self.journal(fabric, place, ticket);
    }

    /// As [`Self::finish`]; the caller owes the journal.
    #[inline]
    pub(super) fn finish_unjournalled(&mut self, ticket: u32) {
        self.tickets[ticket as usize] = Ticket::Done;
        self.done += 1;
    }

    /// `ticket` has no message and never will.
    pub(super) fn skip(&mut self, fabric: &impl Fabric, place: Place<'_>, ticket: u32) {
        self.skipped = self.skipped.max(ticket + 1);
        self.finish(fabric, place, ticket);
        self.advance_over(ticket);
    }

    /// Whether `ticket` or a later one was skipped.
    pub(super) fn has_skipped_from(&self, ticket: u32) -> bool {
        self.skipped > ticket
    }

    /// Sets the bit of `ticket` in the journal.
    #[inline]
    fn journal(&self, fabric: &impl Fabric, place: Place<'_>, ticket: u32) {
        place.journal(fabric, Bits::of(Stamp { epoch: self.epoch, ticket }));
    }

    /// Whether the message of `stamp` was taken and not released.
    pub(super) fn is_taken(&self, stamp: Stamp) -> bool {
        let ticket = self.tickets.get(stamp.ticket as usize);
        stamp.epoch == self.epoch && ticket == Some(&Ticket::Taken)
    }

    /// `ticket` is taken or done.
    #[inline]
    fn advance_over(&mut self, ticket: u32) {
        // One ahead of `next` waits for those before it.
        if ticket == self.next {
            self.next += 1;
            self.advance();
        }
    }

    /// Goes on to the first ticket that is open.
    #[inline]
    pub(super) fn advance(&mut self) {
        while self.next < self.owed && !self.is_open(self.next) {
            self.next += 1;
        }
    }
}

/// Bits to set in one word of the journal.
#[derive(Clone, Copy)]
pub(super) struct Bits {
    epoch: u32,
    index: u32,
    bits: u64,
}

impl Bits {
    /// The bit of the ticket that `stamp` names.
    pub(super) const fn of(stamp: Stamp) -> Self {
        let Stamp { epoch, ticket } = stamp;
        Self { epoch, index: ticket / 64, bits: 1 << (ticket % 64) }
    }

    /// The bits of both; `None` if they are not in one word.
    pub(super) fn union(self, other: Self) -> Option<Self> {
        let is_same = (self.epoch, self.index) == (other.epoch, other.index);
        is_same.then_some(Self { bits: self.bits | other.bits, ..self })
    }
}

/// Where the journal lies.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) config: &'a Config,
    pub(super) regions: Regions,
}

impl Place<'_> {
    /// The epoch that gives out tickets if the reservation word shows `shown`. The journal
    /// overrules a damaged word; it leaves one question open: whether the word has already moved to
    /// the epoch that was begun last.
    pub(super) fn open_epoch(self, fabric: &impl Fabric, shown: u32) -> u32 {
        let [even, odd] = [0, 1].map(|half| {
            let at = self.regions.record(self.config, half);
            Stamp::from_word(fabric.memory().load(at.region, at.offset))
        });
        let (newest, before) =
            if odd.epoch == even.epoch.wrapping_add(1) { (odd, even) } else { (even, odd) };
        let undecided = before.epoch.wrapping_add(1) == newest.epoch && before.ticket == OWED_OPEN;
        if undecided && shown == before.epoch { shown } else { newest.epoch }
    }

    /// Clears the stamps of all slots of the half that `epoch` uses: they hold no message in any
    /// epoch.
    fn clear_stamps(self, fabric: &impl Fabric, epoch: u32) {
        let (stride, memory) = (self.config.stride(), fabric.memory());
        let At { region, offset } = self.regions.slot(self.config, Stamp { epoch, ticket: 0 }).end;
        let mut at = offset - 8;
        memory.load_ends(region, (offset - stride, stride, self.config.slots()), |[word]| {
            if word != cleared(word) {
                memory.store(region, at, cleared(word));
            }
            at += stride;
            true
        });
    }

    /// Whether no owner ever closed a half and the word never gave out a ticket.
    pub(super) fn is_fresh(self, fabric: &impl Fabric) -> bool {
        let [even, odd] = [0, 1].map(|half| self.regions.record(self.config, half));
        let words = [self.regions.word(), even, odd];
        words.iter().all(|at| fabric.memory().load(at.region, at.offset) == 0)
    }

    /// Sets `bits` in the journal.
    #[inline]
    pub(super) fn journal(self, fabric: &impl Fabric, bits: Bits) {
        let at = self.regions.bitmap(self.config, bits.epoch, bits.index);
        fabric.memory().set_bits(at.region, at.offset, bits.bits);
    }

    fn record(self, fabric: &impl Fabric, epoch: u32, owed: u32) {
        let at = self.regions.record(self.config, epoch);
        let word = Stamp { epoch, ticket: owed }.to_word();
        fabric.memory().store(at.region, at.offset, word);
    }
}

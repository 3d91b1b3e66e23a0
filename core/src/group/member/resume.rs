//! Reads: what is lacking is read from a member that holds it, and a stream whose root was removed
//! is closed.

use super::super::mutants::{EARLIER_COUNTED, HELD_EARLY, NOTED_EARLY, OTHER_PLAN, SECOND_READ};
use super::super::note::{Position, State};
use super::super::outcome::Counters;
use super::super::seats::{Grank, Members, Seats};
use super::super::stream::{READS, Stream, Wanted};
use super::super::work::Errand;
use super::Group;
use crate::fabric::{At, CompletionFlags, Fabric, Memory, Op, Work};
use crate::ids::Peer;
use crate::wire::group::{EAGER_MAX, ENTRY_LEN, Entry, EntryKind, Footing, Held, Report, Spread};

/// Whom this member reaches.
#[derive(Clone, Copy)]
struct Reach<'a> {
    members: Members,
    agreed: u64,
    peers: &'a [Peer],
}

impl<const PEERS: usize> Group<PEERS> {
    pub(super) fn continue_stream(
        &mut self,
        fabric: &mut impl Fabric,
        root: Grank,
        counters: &mut Counters,
    ) {
        let members = self.members;
        let stream = &mut self.streams[root.index()];
        if stream.has_new_readers() {
            stream.arrange(&members);
        }
        if root == members.me {
            // No acknowledgement comes to a root that is alone.
            self.own().note_stable(fabric, &members);
            if self.is_open {
                self.abandon(fabric);
            }
            return;
        }
        let reach = Reach { members: self.members, agreed: self.agreed, peers: &self.peers };
        let stream = &mut self.streams[root.index()];
        stream.turn(fabric, &reach.members);
        stream.settle_closing(&reach.members);
        if !stream.is_led(&reach.members) {
            stream.close(fabric, reach, counters);
        } else if stream.note.state == State::Open {
            stream.read_blocks(fabric, reach, counters);
        }
    }

    /// A read of the stream of `root` has completed.
    pub(in super::super) fn handle_read(
        &mut self,
        fabric: &impl Fabric,
        (root, index): (Grank, usize),
        is_read: bool,
        counters: &mut Counters,
    ) {
        let Some(stream) = self.roots_mut().nth(root.index()) else { return };
        let Some((wanted, _)) = stream.reads.get_mut(index).and_then(Option::take) else { return };
        counters.failed_reads += u64::from(!is_read);
        match wanted {
            Wanted::Block(block) if is_read => stream.note_block(fabric, block),
            Wanted::Entry(seq) if is_read => stream.handle_entry(fabric, seq),
            Wanted::Block(_) | Wanted::Entry(_) => {}
        }
    }
}

impl<const PEERS: usize> Stream<PEERS> {
    /// Posts reads of blocks that are lacking, up to [`READS`] at a time.
    fn read_blocks(&mut self, fabric: &mut impl Fabric, reach: Reach<'_>, counters: &mut Counters) {
        let base = self.note.blocks.base;
        let limit = self.closing.and_then(|closing| closing.end);
        for block in base..base + self.window.blocks() {
            let Some(index) = self.reads.iter().position(Option::is_none) else { return };
            let is_past = limit.is_some_and(|end| block >= end.blocks);
            if is_past || block >= self.reusable().blocks + self.window.blocks() {
                return;
            }
            if self.note.blocks.contains(block) || self.is_reading(block) {
                continue;
            }
            let Some(entry) = self.message_of(fabric, block) else { return };
            let Some(from) = self.source(&entry, block, reach) else { continue };
            let at = self.window.block_at(block);
            let len = self.len_of(&entry, block).next_multiple_of(8);
            if !self.post(fabric, reach, (index, Wanted::Block(block), from), (at, len)) {
                continue;
            }
            counters.reads += 1;
            if HELD_EARLY.is_planted() {
                self.note_block(fabric, block);
            } else if NOTED_EARLY.is_planted() {
                let mut note = self.note;
                note.blocks.insert(block);
                note.store(fabric, &self.window);
                self.note.follow(&note);
            }
        }
    }

    /// One read at a time for each slot: a late one would spoil what a later one brought.
    fn is_reading(&self, block: u64) -> bool {
        let slots = self.window.blocks();
        let is_out = self.reads.iter().flatten().any(|(wanted, _)| match wanted {
            Wanted::Block(other) => other % slots == block % slots,
            Wanted::Entry(_) => false,
        });
        is_out && !SECOND_READ.is_planted()
    }

    /// From whom `block` can be read now: by the plan if this member is in it and it was made for
    /// those that are live, or else from the nearest that holds it.
    fn source(&mut self, entry: &Entry, block: u64, reach: Reach<'_>) -> Option<Grank> {
        let Reach { members, agreed, .. } = reach;
        let epoch = self.note.epoch;
        // Among others the plan's source may announce to those alone who read by the present one.
        let is_same = entry.members == members.live
            || OTHER_PLAN.is_planted() && entry.members & !members.live == 0;
        let is_planned = self.closing.is_none()
            && is_same
            && entry.members & members.me.bit() != 0
            && entry.seq != self.note.passed;
        let planned = match entry.spread {
            _ if !is_planned => None,
            Spread::Flat => Some(self.root),
            Spread::Pipeline => {
                let blocks = self.window.blocks_of(entry.len);
                let seats = (members.count, self.root, members.me);
                let base = self.note.blocks.base;
                Some(self.sources.of((entry, blocks), seats, base, block)?)
            }
            Spread::Pipe | Spread::Binary | Spread::Fibonacci => {
                let seats = Seats::new(members.count, self.root, entry.members);
                let tree = self.window.config.sizes().tree.of_blocks(entry.spread)?;
                seats.at(tree.place(seats.count(), seats.position(members.me)?).from)
            }
        };
        let offers = |grank: &Grank| {
            let is_held = if self.closing.is_some() {
                self.reports.holds_block(epoch, *grank, block)
            } else {
                let (of, Held { entries, blocks }) = self.adverts[grank.index()];
                let is_same = of == epoch || EARLIER_COUNTED.is_planted();
                is_same && entries <= self.note.entries && blocks.contains(block)
            };
            is_held && agreed & grank.bit() != 0
        };
        match planned {
            Some(grank) => Some(grank).filter(offers),
            None => members.after_me().find(offers),
        }
    }

    fn post(
        &mut self,
        fabric: &mut impl Fabric,
        reach: Reach<'_>,
        (index, wanted, from): (usize, Wanted, Grank),
        (at, len): (At, u32),
    ) -> bool {
        let id = Errand { group: self.head.group, root: self.root, index }.id();
        let op = Op::Read { from: at, into: at, len };
        let work = Work { id, op, flags: CompletionFlags::empty() };
        let is_posted = fabric.post(reach.peers[from.index()], work).is_ok();
        if is_posted {
            self.reads[index] = Some((wanted, from));
        }
        is_posted
    }

    /// An entry of a stream that is closed was read out of another member's memory.
    fn handle_entry(&mut self, fabric: &impl Fabric, seq: u64) {
        let mut copy = [0; ENTRY_LEN + EAGER_MAX as usize];
        let at = self.window.entry_at(seq);
        let slot = &mut copy[..self.window.slot_len().min(ENTRY_LEN + EAGER_MAX as usize)];
        fabric.memory().copy_out(at.region, at.offset, slot);
        let entry = Entry::open(slot, |bytes| fabric.crc32c(bytes));
        let entry = entry.filter(|it| (it.seq, it.epoch) == (seq, self.note.epoch));
        if let Some(entry) = entry.filter(|_| seq == self.note.entries + 1) {
            self.note_entry(fabric, &entry);
        }
    }

    /// Continues the round that closes the stream.
    fn close(&mut self, fabric: &mut impl Fabric, reach: Reach<'_>, counters: &mut Counters) {
        let members = &reach.members;
        let is_reading = self.reads != [None; READS];
        let Some(closing) = &mut self.closing else { return };
        if closing.is_closed {
            return;
        }
        if closing.own.is_none() {
            if is_reading {
                return;
            }
            let (held, epochs) = (self.note.held(), members.epochs);
            closing.own = Some(Report { held, epochs, footing: Footing::Frozen });
            self.report_due = members.others();
            self.note.state = State::Frozen;
            self.note.store(fabric, &self.window);
        }
        if !self.find_end(fabric, reach, counters) {
            return;
        }
        self.read_blocks(fabric, reach, counters);
        if let Some(closing) = &mut self.closing
            && let Some(end) = closing.end.filter(|end| self.note.blocks.base >= end.blocks)
        {
            closing.is_closed = true;
            (self.note.state, self.note.end) = (State::Closed, end.entries);
            self.note.store(fabric, &self.window);
            self.report_due = members.others();
        }
    }

    /// The end, once all entries that may lie before it are here; reads the next of those.
    fn find_end(
        &mut self,
        fabric: &mut impl Fabric,
        reach: Reach<'_>,
        counters: &mut Counters,
    ) -> bool {
        let members = &reach.members;
        if self.closing.is_none_or(|closing| closing.end.is_some()) {
            return true;
        }
        let epoch = self.note.epoch;
        let known = self.reports.end(epoch, members);
        if known.is_none() && !self.reports.is_complete(epoch, members) {
            return false;
        }
        let most = known.unwrap_or(self.reports.entries(epoch, members, self.note.entries));
        let next = self.note.entries + 1;
        if next <= most {
            let from = members.after_me().find(|grank| {
                reach.agreed & grank.bit() != 0 && self.reports.holds_entry(epoch, *grank, next)
            });
            let at = self.window.entry_at(next);
            let len = u32::try_from(self.window.slot_len()).unwrap_or(0);
            if let Some(from) = from.filter(|_| self.reads == [None; READS]) {
                let is_posted = self.post(fabric, reach, (0, Wanted::Entry(next), from), (at, len));
                counters.reads += u64::from(is_posted);
            }
            return false;
        }
        let end = self.end_of_stream(fabric, members, (most, known.is_some()));
        if let Some(closing) = &mut self.closing {
            closing.end = Some(end);
        }
        true
    }

    /// The last message all of whose blocks are with someone, and where its blocks end; or message
    /// `most`, if that is known to be the last.
    fn end_of_stream(
        &self,
        fabric: &impl Fabric,
        members: &Members,
        (most, is_last): (u64, bool),
    ) -> Position {
        let epoch = self.note.epoch;
        let mut end = self.note.released;
        for seq in end.entries + 1..=most {
            let Some(entry) = self.entry(fabric, seq) else { break };
            let blocks = match entry.kind {
                EntryKind::Long => self.end_of(fabric, &entry),
                EntryKind::Small | EntryKind::Abandon | EntryKind::Gather => end.blocks,
            };
            let is_held = |block: u64| {
                self.note.blocks.contains(block) || self.reports.has_block(epoch, members, block)
            };
            if !is_last && !(end.blocks..blocks).all(is_held) {
                break;
            }
            end = Position { entries: seq, blocks: blocks.max(end.blocks) };
        }
        end
    }
}

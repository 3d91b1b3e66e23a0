//! One root's stream at one member: what is held, who forwards to whom, which reads are out.

use super::closing::{Closing, Ending, Reports};
use super::config::Window;
use super::mutants::{
    ACKED_BEFORE_RELEASE, CHILD_LEFT_OUT, COUNTED_ALONE, FOREIGN_MINIMUM, NO_MINIMUM_AGAIN,
    NO_NEED, READERS_STAY, REUSED_BEFORE_STABLE, TURNED_EARLY,
};
use super::note::{Note, Position, State};
use super::outcome::Standing;
use super::pipeline::Pipeline;
use super::seats::{Grank, Members, Seats};
use super::sources::Sources;
use crate::fabric::{Fabric, Memory};
use crate::wire::group::{
    Blocks, EAGER_MAX, ENTRY_LEN, Entry, EntryKind, Footing, Head, Held, Report, Spread,
};

/// Reads of one stream that are out at a time.
pub(super) const READS: usize = 4;

/// What a read that is out brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    Block(u64),
    /// Read when a stream is closed; before that, entries are forwarded.
    Entry(u64),
}

/// What the subtree of a member has released, under the members and epochs that it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ack {
    pub(super) released: Position,
    pub(super) epochs: u64,
}

/// The stream of one root.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Stream<const PEERS: usize> {
    /// This member is the root.
    pub(super) is_own: bool,
    pub(super) window: Window,
    pub(super) head: Head,
    pub(super) root: Grank,
    pub(super) note: Note,
    /// Handed out to the consumer, and up to the last chunk of that.
    pub(super) handed: Position,
    pub(super) last_chunk: Position,
    /// From whom entries come, and to whom they go.
    pub(super) predecessor: Option<Grank>,
    pub(super) successors: u64,
    /// The next entry for each successor that has said where it stands in which epoch.
    pub(super) cursors: [Option<(u32, u64)>; PEERS],
    pub(super) need_due: bool,
    /// To whom acknowledgements go, and from whom they come.
    pub(super) parent: Option<Grank>,
    pub(super) below: u64,
    pub(super) acks: [Ack; PEERS],
    /// What the parent was sent; none if it must be sent again.
    pub(super) acked: Option<Ack>,
    /// Who reads from this member, and which of them must be sent what it holds.
    pub(super) readers: u64,
    pub(super) hold_due: u64,
    /// How the messages so far have travelled, and for which of these ways the readers are known.
    pub(super) spreads: u8,
    arranged: u8,
    /// Messages up to this one may have been sent to other members than are live.
    pub(super) mixed: u64,
    /// What the others have announced of which epoch.
    pub(super) adverts: [(u32, Held); PEERS],
    pub(super) reads: [Option<(Wanted, Grank)>; READS],
    pub(super) sources: Sources,
    /// At the root: the blocks of the message that was begun end here.
    pub(super) draft: Option<u64>,
    /// At the root: its value of an all-gather whose values this member has not taken.
    pub(super) kept: Option<u64>,
    /// All-gathers whose values this member has taken.
    pub(super) taken: u64,
    /// At the root: an earlier incarnation began a message and did not finish it.
    pub(super) is_unfinished: bool,
    pub(super) closing: Option<Closing>,
    pub(super) reports: Reports<PEERS>,
    /// The last epoch of the root that a decision has removed.
    pub(super) out: u32,
    /// Who must be sent the own report, and who an answer to theirs.
    pub(super) report_due: u64,
    pub(super) answer_due: u64,
}

impl<const PEERS: usize> Stream<PEERS> {
    /// The stream as `note` has it, which is in memory or will be.
    pub(super) fn new(fabric: &impl Fabric, window: Window, head: Head, note: Note) -> Self {
        let mut stream = Self {
            is_own: false,
            window,
            head: Head { epoch: note.epoch, ..head },
            root: Grank(head.root),
            note,
            handed: note.released,
            last_chunk: note.released,
            predecessor: None,
            successors: 0,
            cursors: [None; PEERS],
            need_due: false,
            parent: None,
            below: 0,
            acks: [Ack::default(); PEERS],
            acked: None,
            readers: 0,
            hold_due: 0,
            spreads: window.config.sizes().spread.bit(),
            arranged: 0,
            mixed: note.entries,
            adverts: [(0, Held::default()); PEERS],
            reads: [None; READS],
            sources: Sources::new(),
            draft: None,
            kept: None,
            taken: 0,
            is_unfinished: false,
            closing: None,
            reports: Reports::new(),
            // Who has frozen a stream knew of the decision.
            out: if note.state == State::Open { 0 } else { note.epoch },
            report_due: 0,
            answer_due: 0,
        };
        if note.state == State::Closed {
            let end = Position { entries: note.end, blocks: note.blocks.base };
            // Of an epoch that this member has no part in, there is nothing to hand out.
            let is_absent = note.epoch == 0;
            let ending = if is_absent { Ending::End } else { Ending::Nothing };
            let closing = Closing::closed(end, ending);
            stream.closing = Some(Closing { is_settled: is_absent, ..closing });
        }
        let oldest = note.entries.saturating_sub(window.entries());
        for seq in oldest + 1..=note.entries {
            let spread = stream.entry(fabric, seq).map_or(0, |entry| entry.spread.bit());
            stream.spreads |= spread;
        }
        stream
    }

    /// This member is the root: it goes on where it was.
    pub(super) fn own(&mut self, fabric: &impl Fabric) {
        self.is_own = true;
        let (note, last) = (self.note, self.entry(fabric, self.note.entries));
        self.is_unfinished = last.is_some_and(|entry| {
            let end = entry.first + self.window.blocks_of(entry.len);
            entry.kind == EntryKind::Long && note.blocks.base < end
        });
        self.handed = self.held();
        self.last_chunk = self.handed;
    }

    /// Whether what is held is of the epoch that is counted.
    pub(super) const fn is_turned(&self) -> bool {
        self.note.epoch == self.note.counted
    }

    /// Computes everything that follows from who is live.
    pub(super) fn arrange(&mut self, members: &Members) {
        let tree = self.window.config.sizes().tree;
        self.arranged = self.spreads;
        let seats = Seats::new(members.count, self.root, members.live);
        let before = self.predecessor;
        (self.predecessor, self.successors, self.parent, self.below) = (None, 0, None, 0);
        (self.readers, self.hold_due) = (0, 0);
        let Some(own) = seats.position(members.me).filter(|_| self.is_led(members)) else {
            return;
        };
        let count = seats.count();
        if own > 0 {
            self.predecessor = seats.at(tree.place(count, own).from);
            self.parent = seats.at((own - 1) / 2);
        }
        let bits = |positions: &mut dyn Iterator<Item = u16>| {
            positions.filter_map(|at| seats.at(at)).fold(0, |set, grank| set | grank.bit())
        };
        let serves = tree.serves(count, own);
        self.successors = bits(&mut tree.parts(serves).map(|part| part.start));
        let left_out = u16::from(CHILD_LEFT_OUT.is_planted());
        self.below = bits(&mut (2 * own + 1..=2 * own + 2 - left_out));
        // Messages that travel in different ways are under way at a time.
        for spread in Spread::ALL.into_iter().filter(|it| self.spreads & it.bit() != 0) {
            let serves = tree.of_blocks(spread).map(|tree| (tree, tree.serves(count, own)));
            self.readers |= match (spread, serves) {
                // The plan may name a member as a source that is not live, or has come back since:
                // any may be asked.
                _ if members.live != members.all() || self.is_mixed() => members.others(),
                (_, Some((tree, range))) => bits(&mut tree.parts(range).map(|part| part.start)),
                (Spread::Pipeline, None) => bits(&mut pipeline_readers(count, own)),
                (_, None) if own == 0 => members.others(),
                (_, None) => 0,
            };
        }
        // The new predecessor does not know where this member stands.
        if self.predecessor != before && !NO_NEED.is_planted() {
            self.need_due = self.predecessor.is_some();
        }
        // The parent counts only what was reported under its own members and epochs.
        if !NO_MINIMUM_AGAIN.is_planted() {
            self.acked = None;
        }
        self.hold_due |= self.readers;
    }

    /// The message `entry` is held, whose blocks may have other readers than those before.
    pub(super) fn note_spread(&mut self, spread: Spread) {
        if !READERS_STAY.is_planted() {
            self.spreads |= spread.bit();
        }
    }

    /// Whether a message came that travels as none before it.
    pub(super) const fn has_new_readers(&self) -> bool {
        self.spreads != self.arranged
    }

    /// Whether its root is live.
    pub(super) const fn is_led(&self, members: &Members) -> bool {
        members.live & self.root.bit() != 0
    }

    /// The connection to `grank` is new: everything cumulative is said again to it.
    pub(super) fn handle_agreed(&mut self, grank: Grank) {
        self.hold_due |= self.readers & grank.bit();
        self.need_due |= self.predecessor == Some(grank);
        if self.parent == Some(grank) {
            self.acked = None;
        }
        self.report_due |= grank.bit();
    }

    /// The connection to `grank` is gone.
    pub(super) const fn forget(&mut self, grank: Grank) {
        let held = Held { entries: 0, blocks: Blocks { base: 0, mask: 0 } };
        self.adverts[grank.index()] = (0, held);
        self.cursors[grank.index()] = None;
        self.acks[grank.index()] = Ack { released: Position { entries: 0, blocks: 0 }, epochs: 0 };
        self.answer_due &= !grank.bit();
    }

    /// Reports again, and to all: the members have changed, or this one has turned.
    pub(super) fn begin_round(&mut self, members: &Members) {
        if self.is_led(members) {
            return;
        }
        if self.is_turned() && self.note.counted > 0 {
            self.closing.get_or_insert_default().begin_round();
        }
        self.report_due = members.others();
    }

    /// What this member reports of the stream of a removed root, once it has completed its reads.
    /// It names the epoch that the report is about.
    pub(super) fn report(&self, members: &Members) -> Option<(u32, Report)> {
        let (counted, epochs) = (self.note.counted, members.epochs);
        let past = (self.out, Report { epochs, footing: Footing::Absent, ..Report::default() });
        if counted == 0 {
            return (self.out > 0).then_some(past);
        }
        if self.is_led(members) {
            return None;
        }
        if !self.is_turned() {
            // It has taken nothing of the epoch that was removed, and takes what others report.
            return Some((counted, Report { epochs, ..Report::default() }));
        }
        let closing = self.closing.as_ref()?;
        if closing.is_settled && self.out > counted && !COUNTED_ALONE.is_planted() {
            return Some(past);
        }
        if closing.is_closed {
            let held = Held { entries: self.note.end, blocks: self.note.blocks };
            return Some((counted, Report { held, epochs, footing: Footing::Closed }));
        }
        closing.own.map(|own| (counted, own))
    }

    /// All others may have closed what is closed here: from then on this member answers for all
    /// epochs that are removed, those that it has never counted included.
    pub(super) fn settle_closing(&mut self, members: &Members) {
        let is_turned = self.is_turned();
        let Some(closing) = self.closing.as_mut().filter(|it| it.is_closed && !it.is_settled)
        else {
            return;
        };
        if is_turned && self.reports.is_settled(self.note.counted, members) {
            closing.is_settled = true;
            self.report_due = members.others();
        }
    }

    /// The answer to the report of `to`, if that is on an epoch that this member takes no part in
    /// any more, or will never take part in: it answers for all of those. An answer names no
    /// members.
    pub(super) fn answer(&self, to: Grank) -> Option<(u32, Report)> {
        let (epoch, counted) = (self.reports.epoch_of(to)?, self.note.counted);
        let is_absent = epoch < counted || epoch > counted && epoch <= self.out;
        let last = if epoch < counted { counted - 1 } else { self.out };
        is_absent.then(|| (last, Report { footing: Footing::Absent, ..Report::default() }))
    }

    /// Goes on to the epoch that is counted, once the consumer is done with the messages of the one
    /// before. It may not have been handed the end: one that takes part in calls alone never is.
    pub(super) fn turn(&mut self, fabric: &impl Fabric, members: &Members) {
        if self.is_turned() || !(self.is_drained(fabric) || TURNED_EARLY.is_planted()) {
            return;
        }
        let is_handed = self.closing.is_none_or(|it| it.ending == Ending::End);
        let lost = if is_handed { self.note.lost } else { (self.note.epoch, self.note.end) };
        self.note = self.note.begin(self.note.counted, Position::default());
        self.note.lost = lost;
        self.begin_at(fabric, Position::default());
        self.need_due = self.predecessor.is_some();
        self.acked = None;
        self.hold_due = self.readers;
        self.begin_round(members);
    }

    /// Begins with `epoch` of the root behind `at`.
    pub(super) fn begin(&mut self, fabric: &impl Fabric, epoch: u32, at: Position) {
        self.note = self.note.begin(epoch, at);
        self.begin_at(fabric, at);
    }

    fn begin_at(&mut self, fabric: &impl Fabric, at: Position) {
        self.note.store(fabric, &self.window);
        self.head.epoch = self.note.epoch;
        (self.handed, self.last_chunk, self.mixed) = (at, at, at.entries);
        self.closing = None;
        self.sources = Sources::new();
    }

    /// Entry `seq`, if it is held. Only this member writes its own memory.
    pub(super) fn entry(&self, fabric: &impl Fabric, seq: u64) -> Option<Entry> {
        let oldest = self.note.entries.saturating_sub(self.window.entries());
        // Older entries are overwritten, and a later one may be half stored.
        if seq <= oldest || seq > self.note.entries {
            return None;
        }
        let (at, mut copy) = (self.window.entry_at(seq), [0; ENTRY_LEN]);
        fabric.memory().copy_out(at.region, at.offset, &mut copy);
        // Under the same number there may be one of an earlier epoch.
        Entry::peek(&copy).filter(|it| it.seq == seq && it.epoch == self.note.epoch)
    }

    /// Whether `entry` and its payload are stored as they were sealed.
    pub(super) fn is_whole(&self, fabric: &impl Fabric, entry: &Entry) -> bool {
        let (at, mut copy) = (self.window.entry_at(entry.seq), [0; ENTRY_LEN + EAGER_MAX as usize]);
        let Some(slot) = copy.get_mut(..self.window.slot_len()) else { return false };
        fabric.memory().copy_out(at.region, at.offset, slot);
        Entry::open(slot, |bytes| fabric.crc32c(bytes)) == Some(*entry)
    }

    /// The message that `block` belongs to, if its entry is held: the latest that begins at or
    /// before it.
    pub(super) fn message_of(&self, fabric: &impl Fabric, block: u64) -> Option<Entry> {
        let seqs = (self.note.released.entries + 1..=self.note.entries).rev();
        let entries = seqs.filter_map(|seq| self.entry(fabric, seq));
        let mut begun = entries.filter(|entry| entry.kind == EntryKind::Long);
        let entry = begun.find(|entry| entry.first <= block)?;
        (block < entry.first + self.window.blocks_of(entry.len)).then_some(entry)
    }

    /// Where the blocks of the long message `entry` end, if it is not the last one that is held:
    /// what follows an unfinished message is its end.
    pub(super) fn end_of(&self, fabric: &impl Fabric, entry: &Entry) -> u64 {
        let next = self.entry(fabric, entry.seq + 1);
        match next.filter(|next| next.kind == EntryKind::Abandon) {
            Some(next) => next.first,
            None => entry.first + self.window.blocks_of(entry.len),
        }
    }

    /// Bytes of `block` of the message `entry`.
    pub(super) fn len_of(&self, entry: &Entry, block: u64) -> u32 {
        let offset = (block - entry.first) * self.window.block_len();
        let len = entry.len.saturating_sub(offset).min(self.window.block_len());
        u32::try_from(len).unwrap_or(0)
    }

    /// Stores `slot`, an entry and its payload, as entry `entry`; its first word last.
    pub(super) fn store_entry(&mut self, fabric: &impl Fabric, entry: &Entry, slot: &mut [u8]) {
        let seq = entry.seq;
        let at = self.window.entry_at(seq);
        fabric.memory().copy_in(at.region, at.offset + 8, &slot[8..]);
        fabric.memory().store(at.region, at.offset, seq);
        self.note_entry(fabric, entry);
    }

    /// `entry` and its payload are in memory.
    pub(super) fn note_entry(&mut self, fabric: &impl Fabric, entry: &Entry) {
        self.note.entries = entry.seq;
        // Its first block lies before what this member began with, which therefore has blocks of it
        // before any was read.
        let is_passed = entry.kind == EntryKind::Long && entry.first < self.note.released.blocks;
        if is_passed && !self.is_own {
            self.note.passed = entry.seq;
        }
        self.note.store(fabric, &self.window);
    }

    /// `block` is held.
    pub(super) fn note_block(&mut self, fabric: &impl Fabric, block: u64) {
        self.note.blocks.insert(block);
        self.note.store(fabric, &self.window);
        self.hold_due |= self.readers;
    }

    /// The acknowledgement that the parent must be sent now, if any: when it moved by a quarter of
    /// a window, or nothing more is on its way to the consumer.
    pub(super) fn ack_due(&self, members: &Members) -> Option<Ack> {
        let ack = Ack { released: self.least(members), epochs: members.epochs };
        // The root frees nothing for a member that has never acknowledged.
        let Some(sent) = self.acked else { return Some(ack) };
        let by_entries = ack.released.entries.saturating_sub(sent.released.entries);
        let by_blocks = ack.released.blocks.saturating_sub(sent.released.blocks);
        let is_far =
            4 * by_entries >= self.window.entries() || 4 * by_blocks >= self.window.blocks();
        let is_idle = self.reads == [None; READS] && self.note.released == self.held();
        (ack.released != sent.released && (is_far || is_idle)).then_some(ack)
    }

    const fn held(&self) -> Position {
        Position { entries: self.note.entries, blocks: self.note.blocks.base }
    }

    /// At the root: released by all.
    pub(super) fn stable(&self) -> Position {
        if self.is_own { self.note.released } else { Position::default() }
    }

    /// Up to where slots may be used again here.
    pub(super) fn reusable(&self) -> Position {
        if self.is_own {
            // One that comes back must begin before a message that is not whole.
            let begun = u64::from(self.draft.is_some() || self.is_unfinished);
            return Position { entries: self.note.entries - begun, ..self.held() };
        }
        if ACKED_BEFORE_RELEASE.is_planted() { self.held() } else { self.note.released }
    }

    /// What this member and those below it have released. One that formed its subtree under
    /// other members or epochs counts as if it had said nothing.
    fn least(&self, members: &Members) -> Position {
        let own = if self.is_turned() { self.reusable() } else { Position::default() };
        (0..members.count).map(Grank).filter(|grank| self.below & grank.bit() != 0).fold(
            own,
            |least, grank| {
                let ack = self.acks[grank.index()];
                let is_same = ack.epochs == members.epochs || FOREIGN_MINIMUM.is_planted();
                least.min(if is_same { ack.released } else { Position::default() })
            },
        )
    }

    /// At the root: what all have released may have grown.
    pub(super) fn note_stable(&mut self, fabric: &impl Fabric, members: &Members) {
        // The tree may have changed since: what all have released is never taken back.
        let stable = self.note.released.max(self.least(members));
        if self.is_own && stable != self.note.released {
            self.note.released = stable;
            // Before a slot is used again: one that comes back begins behind what the note says,
            // and what an incarnation has half overwritten must not lie there.
            self.note.store(fabric, &self.window);
        }
    }

    /// Whether a message whose blocks are not all released was sent to other members than are live.
    const fn is_mixed(&self) -> bool {
        self.mixed > self.note.released.entries
    }

    /// `entry` was sent to other members than are live: its plan does not say who reads from whom.
    pub(super) fn note_mixed(&mut self, entry: &Entry, members: &Members) {
        if entry.members != members.live {
            self.mixed = entry.seq;
            self.readers = members.others();
            self.hold_due = self.readers;
        }
    }

    /// At the root: whether the next entry has a free slot.
    pub(super) fn has_entry(&self) -> bool {
        let kept = self.kept.map_or(self.note.entries, |seq| seq - 1);
        let ahead = self.note.entries - self.stable().entries.min(kept);
        ahead < self.window.entries() || REUSED_BEFORE_STABLE.is_planted()
    }

    /// At the root: blocks that have a free slot.
    pub(super) fn free_blocks(&self) -> u64 {
        let ahead = self.note.blocks.base - self.stable().blocks.min(self.note.blocks.base);
        if REUSED_BEFORE_STABLE.is_planted() {
            return self.window.blocks();
        }
        self.window.blocks() - ahead.min(self.window.blocks())
    }

    /// The hindmost of those that acknowledge to this root.
    pub(super) fn hindmost(&self, members: &Members) -> Option<Grank> {
        let below = (0..members.count).map(Grank).filter(|grank| self.below & grank.bit() != 0);
        below.min_by_key(|grank| self.acks[grank.index()].released)
    }

    pub(super) fn standing(&self, members: &Members) -> Standing {
        let hindmost = self.hindmost(members).filter(|_| members.me == self.root);
        let released = if self.is_own { self.held() } else { self.note.released };
        Standing { held: self.held(), released, stable: self.stable(), hindmost }
    }

    /// Whether everything that was sent was received and released here.
    pub(super) fn is_idle(&self) -> bool {
        let is_settled = self.note.released == self.held() && self.note.blocks.mask == 0;
        is_settled && self.is_turned() && self.reads == [None; READS]
    }
}

/// To whom the member at `own` of `count` sends blocks in any step: targets repeat with the
/// dimensions and turns.
fn pipeline_readers(count: u16, own: u16) -> impl Iterator<Item = u16> {
    let dimensions = u64::from(count.ilog2());
    let plans = [1, 6 * dimensions + 2].map(|blocks| Pipeline::new(count, blocks, own));
    plans.into_iter().flatten().filter_map(|step| step.outgoing).map(|transfer| transfer.with)
}

//! Where a timer is filed: by the highest bit in which its due tick differs from the cursor.
//!
//! ```text
//!  bit    0 … 5     6 … 11    12 … 17   18 … 23   24 … 63
//!  row    level 0   level 1   level 2   level 3   overflow             work
//!  slot   the six bits of the due tick at that    that bit itself      runs, drain, ready
//!         level
//! ```
//!
//! The lists of the first five rows cover ranges of ticks that do not overlap: those of a row
//! follow each other by slot, and every range of a row lies before those of the next. So the
//! earliest is the first set bit of the first row that has one, and it does not change when the
//! cursor moves as long as no list that begins by then is passed over. An overflow list doubles
//! in width from one to the next; a timer comes down at least one bit whenever its list is opened.

/// How many levels have slots of equal width.
pub(super) const LEVELS: usize = 4;
const SLOT_BITS: usize = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const OVERFLOW: usize = LEVELS;
/// The row of the lists that are not filed by time.
pub(super) const WORK: usize = OVERFLOW + 1;
pub(super) const ROWS: usize = WORK + 1;
/// As many runs as a merge sort of every key can have at once.
const RUNS: usize = 32;

/// One of the lists on which timers stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List(u32);

impl List {
    /// What the opened slot holds, before it is looked at.
    pub(super) const DRAIN: Self = Self::at(WORK, RUNS);
    /// The run that due timers are being added to.
    pub(super) const GROWING: Self = Self::at(WORK, RUNS + 1);
    /// The inputs and the output of the merge under way.
    pub(super) const LEFT: Self = Self::at(WORK, RUNS + 2);
    pub(super) const RIGHT: Self = Self::at(WORK, RUNS + 3);
    pub(super) const MERGED: Self = Self::at(WORK, RUNS + 4);
    /// Due timers in the order in which they are reported.
    pub(super) const READY: Self = Self::at(WORK, RUNS + 5);
    /// The highest rank of a sorted run.
    pub(super) const RANK_MAX: u8 = (RUNS - 1) as u8;
    /// The number of lists.
    pub(super) const COUNT: usize = Self::READY.index() + 1;

    pub(super) const fn at(row: usize, slot: usize) -> Self {
        Self((row << SLOT_BITS | slot) as u32)
    }

    /// The list with this number, as returned by [`List::index`].
    pub(super) const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// The sorted run of `rank`.
    pub(super) const fn run(rank: usize) -> Self {
        assert!(rank < RUNS, "ranks end at RANK_MAX");
        Self::at(WORK, rank)
    }

    /// Where a timer due at tick `due` stands while the wheel is at the earlier `cursor`.
    pub(super) const fn of(due: u64, cursor: u64) -> Self {
        assert!(due > cursor, "what is due is not filed");
        let bit = (due ^ cursor).ilog2() as usize;
        let level = bit / SLOT_BITS;
        if level < LEVELS {
            Self::at(level, (due >> (level * SLOT_BITS)) as usize & (SLOTS - 1))
        } else {
            Self::at(OVERFLOW, bit)
        }
    }

    /// The first tick at which a timer of this list can be due.
    pub(super) const fn begin(self, cursor: u64) -> u64 {
        let slot = self.slot();
        if self.row() < LEVELS {
            let shift = self.row() * SLOT_BITS;
            ((cursor >> shift) & !(SLOTS as u64 - 1) | slot as u64) << shift
        } else {
            (cursor >> slot | 1) << slot
        }
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) const fn row(self) -> usize {
        self.index() >> SLOT_BITS
    }

    pub(super) const fn slot(self) -> usize {
        self.index() & (SLOTS - 1)
    }
}

/// Which lists are not empty, a word for each row.
#[derive(Clone, Debug, Hash)]
pub(super) struct Occupancy([u64; ROWS]);

impl Occupancy {
    pub(super) const EMPTY: Self = Self([0; ROWS]);

    pub(super) const fn set(&mut self, list: List) {
        self.0[list.row()] |= 1 << list.slot();
    }

    pub(super) const fn clear(&mut self, list: List) {
        self.0[list.row()] &= !(1 << list.slot());
    }

    pub(super) const fn has(&self, list: List) -> bool {
        self.0[list.row()] & 1 << list.slot() != 0
    }

    /// The first list of timers that wait for their tick.
    pub(super) fn earliest(&self) -> Option<List> {
        let row = self.0[..WORK].iter().position(|slots| *slots != 0)?;
        Some(List::at(row, self.0[row].trailing_zeros() as usize))
    }

    /// Whether an opened slot is not worked off yet.
    pub(super) const fn has_work(&self) -> bool {
        self.0[WORK] & !(1 << List::READY.slot()) != 0
    }

    /// The ranks of the sorted runs, a bit each.
    pub(super) const fn runs(&self) -> u64 {
        self.0[WORK] & ((1 << RUNS) - 1)
    }
}

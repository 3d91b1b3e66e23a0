//! What a member must know of a stream after its component began again (GT-19).
//!
//! ```text
//! byte  0       8      12      16      20       24        32     40     48        56
//!       │ count │ list │ state │ epoch │ crc32c │ entries │ base │ mask │ released
//!      64        68      72       80    88        92     96
//!       │ counted │ fresh │ passed │ end │ pledged │ lost │ lost end
//! ```
//!
//! Two cells are written in turn, the later count is valid: a component that ends while it writes
//! one leaves the other.

use super::config::{NOTE_LEN, Window};
use crate::fabric::{At, Fabric, Memory};
use crate::wire::group::{Blocks, Held};
use crate::wire::{u32_at, u64_at};

const CRC: usize = 20;

/// A place in a stream: so many messages and so many blocks lie before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Whole messages.
    pub entries: u64,
    /// Blocks.
    pub blocks: u64,
}

impl Position {
    /// What both have passed.
    pub(super) fn min(self, other: Self) -> Self {
        let (entries, blocks) = (self.entries.min(other.entries), self.blocks.min(other.blocks));
        Self { entries, blocks }
    }

    /// What one of them has passed.
    pub(super) fn max(self, other: Self) -> Self {
        let (entries, blocks) = (self.entries.max(other.entries), self.blocks.max(other.blocks));
        Self { entries, blocks }
    }
}

/// How far a member is with the end of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum State {
    #[default]
    Open,
    /// What is held was reported: nothing more is taken from the root.
    Frozen,
    /// Its messages up to the end are held.
    Closed,
}

/// What a member holds of a stream, and what its consumer has released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Note {
    count: u64,
    /// Of the members of the group.
    pub(super) list: u32,
    /// The epoch of the root whose messages these are; 0 if the member has taken none of it.
    pub(super) epoch: u32,
    /// The last epoch of the root that the member has counted. It is later than the epoch until the
    /// consumer is done with what the earlier epoch has sent.
    pub(super) counted: u32,
    /// Of the own stream: the member has come back, and takes nothing yet.
    pub(super) fresh: bool,
    /// At a fresh member: the last epoch of the root that it has said it counts, so that the root
    /// may have begun with it; 0 if there is none.
    pub(super) pledged: u32,
    pub(super) state: State,
    /// Messages held without a gap.
    pub(super) entries: u64,
    /// Blocks held.
    pub(super) blocks: Blocks,
    /// Released by the consumer; at the root, by all members.
    pub(super) released: Position,
    /// The message in whose middle the member began, which is not handed out; 0 if there is none.
    pub(super) passed: u64,
    /// The last message, once the stream is closed.
    pub(super) end: u64,
    /// An earlier epoch whose end the consumer was not handed yet, and its last message; epoch 0 if
    /// there is none.
    pub(super) lost: (u32, u64),
}

impl Note {
    /// The last note that was stored for a group with this list; one without an epoch if there is
    /// none.
    pub(super) fn attach(fabric: &impl Fabric, window: &Window, list: u32) -> Self {
        let cell = last_cell(fabric, [0, 1].map(|turn| window.note_at(turn)));
        let last = cell.map(|cell| Self::of(&cell));
        let count = last.map_or(0, |note| note.count);
        let empty = Self { list, count, ..Self::default() };
        last.filter(|note| note.list == list).unwrap_or(empty)
    }

    fn of(cell: &[u8; NOTE_LEN]) -> Self {
        Self {
            count: u64_at(cell, 0),
            list: u32_at(cell, 8),
            state: match u32_at(cell, 12) {
                0 => State::Open,
                1 => State::Frozen,
                _ => State::Closed,
            },
            epoch: u32_at(cell, 16),
            counted: u32_at(cell, 64),
            fresh: u32_at(cell, 68) != 0,
            pledged: u32_at(cell, 88),
            lost: (u32_at(cell, 92), u64_at(cell, 96)),
            entries: u64_at(cell, 24),
            blocks: Blocks { base: u64_at(cell, 32), mask: u64_at(cell, 40) },
            released: Position { entries: u64_at(cell, 48), blocks: u64_at(cell, 56) },
            passed: u64_at(cell, 72),
            end: u64_at(cell, 80),
        }
    }

    /// The note of a stream of which nothing is held, stored in the place of this one.
    pub(super) const fn begin(&self, epoch: u32, at: Position) -> Self {
        Self {
            count: self.count,
            list: self.list,
            epoch,
            counted: epoch,
            fresh: false,
            pledged: 0,
            lost: (0, 0),
            state: State::Open,
            entries: at.entries,
            blocks: Blocks { base: at.blocks, mask: 0 },
            released: at,
            passed: 0,
            end: 0,
        }
    }

    /// The note of a stream of which a fresh member holds nothing yet.
    pub(super) const fn begin_pledged(&self) -> Self {
        let mut begun = self.begin(0, Position { entries: 0, blocks: 0 });
        begun.pledged = self.pledged;
        begun
    }

    /// What is held.
    pub(super) const fn held(&self) -> Held {
        Held { entries: self.entries, blocks: self.blocks }
    }

    /// `other` was stored in the place of this one.
    pub(super) const fn follow(&mut self, other: &Self) {
        self.count = other.count;
    }

    /// Stores the note over the one before the last.
    pub(super) fn store(&mut self, fabric: &impl Fabric, window: &Window) {
        self.count += 1;
        let mut cell = [0; NOTE_LEN];
        let words = [
            (0, self.count),
            (8, u64::from(self.list) | (self.state as u64) << 32),
            (16, u64::from(self.epoch)),
            (24, self.entries),
            (32, self.blocks.base),
            (40, self.blocks.mask),
            (48, self.released.entries),
            (56, self.released.blocks),
            (64, u64::from(self.counted) | u64::from(self.fresh) << 32),
            (72, self.passed),
            (80, self.end),
            (88, u64::from(self.pledged) | u64::from(self.lost.0) << 32),
            (96, self.lost.1),
        ];
        for (at, word) in words {
            cell[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        store_cell(fabric, window.note_at(self.count), cell);
    }
}

/// Stores `cell`, in which the place of the checksum is zero.
pub(super) fn store_cell(fabric: &impl Fabric, at: At, mut cell: [u8; NOTE_LEN]) {
    let crc = fabric.crc32c(&cell);
    cell[CRC..CRC + 4].copy_from_slice(&crc.to_le_bytes());
    fabric.memory().copy_in(at.region, at.offset, &cell);
}

/// Of two cells that were stored in turn, the later one; its checksum is zero.
pub(super) fn last_cell(fabric: &impl Fabric, places: [At; 2]) -> Option<[u8; NOTE_LEN]> {
    let whole = places.into_iter().filter_map(|at| {
        let mut cell = [0; NOTE_LEN];
        fabric.memory().copy_out(at.region, at.offset, &mut cell);
        let crc = u32_at(&cell, CRC);
        cell[CRC..CRC + 4].fill(0);
        // Zeroed memory is no note: counts begin at 1.
        (u64_at(&cell, 0) > 0 && fabric.crc32c(&cell) == crc).then_some(cell)
    });
    whole.max_by_key(|cell| u64_at(cell, 0))
}

//! What a member must know of a stream after its component began again (GT-19).
//!
//! ```text
//! byte  0       8      12       16      20       24        32     40     48        56
//!       │ count │ list │ frozen │ epoch │ crc32c │ entries │ base │ mask │ released
//! ```
//!
//! Two cells are written in turn, the later count is valid: a component that ends while it writes
//! one leaves the other.

use super::config::Window;
use crate::fabric::{At, Fabric, Memory};
use crate::wire::group::{Blocks, Held};
use crate::wire::{u32_at, u64_at};

/// Length of a note in bytes.
pub(super) const NOTE_LEN: usize = 64;

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

/// What a member holds of a stream, and what its consumer has released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Note {
    count: u64,
    /// Of the members of the group.
    pub(super) list: u32,
    /// The incarnation in which the root's memory began; 0 until it is known.
    pub(super) epoch: u32,
    /// What is held was reported: nothing more is taken from the root.
    pub(super) frozen: bool,
    /// Messages held without a gap.
    pub(super) entries: u64,
    /// Blocks held.
    pub(super) blocks: Blocks,
    /// Released by the consumer.
    pub(super) released: Position,
}

impl Note {
    /// The last note that was stored for a group with this list; an empty one if there is none.
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
            frozen: u32_at(cell, 12) != 0,
            epoch: u32_at(cell, 16),
            entries: u64_at(cell, 24),
            blocks: Blocks { base: u64_at(cell, 32), mask: u64_at(cell, 40) },
            released: Position { entries: u64_at(cell, 48), blocks: u64_at(cell, 56) },
        }
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
            (8, u64::from(self.list) | u64::from(self.frozen) << 32),
            (16, u64::from(self.epoch)),
            (24, self.entries),
            (32, self.blocks.base),
            (40, self.blocks.mask),
            (48, self.released.entries),
            (56, self.released.blocks),
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

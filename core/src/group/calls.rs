//! What a member must know of its barriers and all-gathers after its component began again.
//!
//! ```text
//! byte  0       8      12  20       24        32     40     48      56
//!       │ count │ list │ 0 │ crc32c │ arrived │ left │ sent │ taken │ since
//! ```
//!
//! It lies behind the notes of the streams, in two cells that are written in turn as those are.

use super::config::NOTE_LEN;
use super::note::{last_cell, store_cell};
use crate::fabric::{At, Fabric};
use crate::wire::{u32_at, u64_at};

/// How many barriers and all-gathers a member has entered and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Calls {
    /// Barriers that it has arrived at.
    pub arrived: u64,
    /// Barriers that it has left.
    pub left: u64,
    /// All-gathers that it has sent its value to.
    pub sent: u64,
    /// All-gathers whose values it has taken.
    pub taken: u64,
}

/// The calls of one group, as they are stored.
#[derive(Clone, Debug, Hash)]
pub(super) struct CallNote {
    /// Odd counts lie in the second.
    cells: [At; 2],
    list: u32,
    count: u64,
    pub(super) calls: Calls,
    /// The last all-gather before this member came back: it has no part in that.
    pub(super) since: u64,
}

impl CallNote {
    /// What was stored last for a group with this list; nothing if there is none.
    pub(super) fn attach(fabric: &impl Fabric, cells: [At; 2], list: u32) -> Self {
        let empty = Self { cells, list, count: 0, calls: Calls::default(), since: 0 };
        let Some(cell) = last_cell(fabric, cells) else { return empty };
        let count = u64_at(&cell, 0);
        if u32_at(&cell, 8) != list {
            return Self { count, ..empty };
        }
        let [arrived, left, sent, taken] = [24, 32, 40, 48].map(|at| u64_at(&cell, at));
        let calls = Calls { arrived, left, sent, taken };
        Self { count, calls, since: u64_at(&cell, 56), ..empty }
    }

    /// Begins with the barriers that were released and the all-gathers that were begun before.
    pub(super) fn begin(&mut self, fabric: &impl Fabric, released: u64, gathers: u64) {
        self.calls = Calls { arrived: released, left: released, sent: gathers, taken: gathers };
        self.since = gathers;
        self.store(fabric);
    }

    pub(super) fn store(&mut self, fabric: &impl Fabric) {
        self.count += 1;
        let Calls { arrived, left, sent, taken } = self.calls;
        let mut cell = [0; NOTE_LEN];
        let words = [
            (0, self.count),
            (8, u64::from(self.list)),
            (24, arrived),
            (32, left),
            (40, sent),
            (48, taken),
            (56, self.since),
        ];
        for (at, word) in words {
            cell[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        store_cell(fabric, self.cells[usize::from(self.count & 1 == 1)], cell);
    }
}

//! The sizes of all groups of a cluster, and where everything lies.
//!
//! ```text
//!  hold, read by all:   group 0: │ root 0: W entry slots, K blocks │ root 1 … │   group 1 …
//!  notes, own:          group 0: │ root 0: two notes │ root 1 … │ … │ calls of each group
//!  lanes:               one from each peer, shared by all groups
//! ```
//!
//! Entry s of a root lies in slot s mod W and its block k in slot k mod K, at the same offset in
//! every member: a member that has received can serve.

use core::fmt;

use super::tree::Tree;
use crate::checksum::fnv1a;
use crate::fabric::{Access, At, Layout, LayoutError, Region, RegionSpec};
use crate::ids::PeerSet;
use crate::lane;
use crate::wire::group::{EAGER_MAX, ENTRY_LEN, FRAME_LEN_MAX, Spread};

/// The largest number of groups.
pub const GROUPS_MAX: u8 = 8;
/// The largest number of entries of a window.
pub const ENTRIES_MAX: u32 = 1024;
/// The largest number of blocks of a window.
pub const BLOCKS_MAX: u32 = 64;
/// The longest block in bytes.
pub const BLOCK_LEN_MAX: u32 = 1 << 22;
/// Length in bytes of the note of a stream, and of that of the calls.
pub(super) const NOTE_LEN: usize = 104;

/// The parameters of all groups. All members of a cluster have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// Endpoints of the cluster: 2 to 64.
    pub peers: u16,
    /// Groups that have a place: 1 to [`GROUPS_MAX`].
    pub groups: u8,
    /// W, the messages that a root may be ahead: a power of two from 2 to [`ENTRIES_MAX`].
    pub entries: u32,
    /// K, the blocks that a root may be ahead: a power of two from 2 to [`BLOCKS_MAX`].
    pub blocks: u32,
    /// Bytes of a block: a power of two from 8 to [`BLOCK_LEN_MAX`].
    pub block_len: u32,
    /// The longest message in bytes that travels with its entry: up to [`EAGER_MAX`].
    pub eager: u16,
    /// Slots of a lane: a power of two from 2 to [`lane::SLOTS_MAX`].
    pub lane_slots: u32,
    /// Along which trees entries travel.
    pub tree: Tree,
    /// How the blocks of long messages travel.
    pub spread: Spread,
}

/// Checked [`Sizes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config(Sizes);

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Peers must be 2 to [`PeerSet::CAPACITY`].
    Peers(u16),
    /// Groups must be 1 to [`GROUPS_MAX`].
    Groups(u8),
    /// Entries must be a power of two from 2 to [`ENTRIES_MAX`].
    Entries(u32),
    /// Blocks must be a power of two from 2 to [`BLOCKS_MAX`].
    Blocks(u32),
    /// A block must be a power of two of bytes from 8 to [`BLOCK_LEN_MAX`].
    BlockLen(u32),
    /// An entry carries up to [`EAGER_MAX`] bytes.
    Eager(u16),
    /// Each cost must be from 1 to [`Costs::MAX`](super::Costs::MAX), the delay at most the
    /// arrival.
    Costs,
    /// The lanes are refused.
    Lanes(lane::ConfigError),
    /// The hold must be shorter than 4 GiB.
    TooLarge,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peers(n) => write!(f, "{n} peers; groups join 2 to {}", PeerSet::CAPACITY),
            Self::Groups(n) => write!(f, "{n} groups; want 1 to {GROUPS_MAX}"),
            Self::Entries(n) => {
                write!(f, "{n} entries; want a power of two from 2 to {ENTRIES_MAX}")
            }
            Self::Blocks(n) => write!(f, "{n} blocks; want a power of two from 2 to {BLOCKS_MAX}"),
            Self::BlockLen(n) => {
                write!(f, "blocks of {n} bytes; want a power of two from 8 to {BLOCK_LEN_MAX}")
            }
            Self::Eager(n) => write!(f, "{n} bytes with an entry; want at most {EAGER_MAX}"),
            Self::Costs => f.write_str("a cost is zero, too large, or a delay after its arrival"),
            Self::Lanes(error) => error.fmt(f),
            Self::TooLarge => f.write_str("the windows of all groups need 4 GiB or more"),
        }
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// Checks `sizes`.
    ///
    /// # Errors
    /// [`ConfigError`] names the value and its limit.
    pub fn new(sizes: Sizes) -> Result<Self, ConfigError> {
        let is_window =
            |count: u32, max: u32| count.is_power_of_two() && (2..=max).contains(&count);
        if sizes.peers < 2 || usize::from(sizes.peers) > PeerSet::CAPACITY {
            return Err(ConfigError::Peers(sizes.peers));
        }
        if sizes.groups == 0 || sizes.groups > GROUPS_MAX {
            return Err(ConfigError::Groups(sizes.groups));
        }
        if !is_window(sizes.entries, ENTRIES_MAX) {
            return Err(ConfigError::Entries(sizes.entries));
        }
        if !is_window(sizes.blocks, BLOCKS_MAX) {
            return Err(ConfigError::Blocks(sizes.blocks));
        }
        if sizes.block_len < 8 || !is_window(sizes.block_len, BLOCK_LEN_MAX) {
            return Err(ConfigError::BlockLen(sizes.block_len));
        }
        if sizes.eager > EAGER_MAX {
            return Err(ConfigError::Eager(sizes.eager));
        }
        if !sizes.tree.costs.is_valid() {
            return Err(ConfigError::Costs);
        }
        let config = Self(sizes);
        config.lanes().map_err(ConfigError::Lanes)?;
        if config.hold_len() > u64::from(u32::MAX) {
            return Err(ConfigError::TooLarge);
        }
        Ok(config)
    }

    /// The sizes.
    #[must_use]
    pub const fn sizes(&self) -> Sizes {
        self.0
    }

    pub(super) fn lanes(&self) -> Result<lane::Config, lane::ConfigError> {
        #[expect(clippy::cast_possible_truncation, reason = "less than a lane's slot")]
        let frame = FRAME_LEN_MAX as u16 - EAGER_MAX + self.0.eager;
        lane::Config::new(self.0.peers, self.0.lane_slots, frame)
    }

    const fn slot_len(&self) -> u32 {
        (ENTRY_LEN as u32 + self.0.eager as u32).next_multiple_of(64)
    }

    const fn window_len(&self) -> u64 {
        self.0.entries as u64 * self.slot_len() as u64
            + self.0.blocks as u64 * self.0.block_len as u64
    }

    const fn windows(&self) -> u32 {
        self.0.groups as u32 * self.0.peers as u32
    }

    const fn hold_len(&self) -> u64 {
        self.windows() as u64 * self.window_len()
    }

    /// Adds the groups' two regions and their lanes to `layout`.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn add_regions(&self, layout: &mut Layout) -> Result<Regions, LayoutError> {
        // Checked by Config::new.
        let lanes = self.lanes().map_err(|_| LayoutError::BadLength(u32::MAX))?;
        let len = u32::try_from(self.hold_len()).map_err(|_| LayoutError::BadLength(u32::MAX))?;
        let all = PeerSet::first(usize::from(self.0.peers));
        let hold = layout.add(RegionSpec { len, access: Access::REMOTE_READ, peers: all })?;
        let notes = layout.add(RegionSpec {
            // Two cells for each window, and two for the calls of each group.
            len: (self.windows() + u32::from(self.0.groups)) * 2 * NOTE_LEN as u32,
            access: Access::empty(),
            peers: PeerSet::EMPTY,
        })?;
        Ok(Regions { hold, notes, lanes: lanes.add_regions(layout)? })
    }

    /// Where the calls of `group` are stored: in two cells behind all notes.
    pub(super) fn calls_at(&self, regions: Regions, group: u16) -> [At; 2] {
        let first = (self.windows() + u32::from(group)) * 2;
        [first, first + 1].map(|cell| At { region: regions.notes, offset: cell * NOTE_LEN as u32 })
    }

    /// A number that differs, all but certainly, when two sizes do.
    pub(super) fn digest(&self) -> u64 {
        let sizes = &self.0;
        let tree = sizes.tree;
        let costs = [tree.costs.gap, tree.costs.delay, tree.costs.arrival];
        let words = [
            u64::from(sizes.peers),
            u64::from(sizes.groups),
            u64::from(sizes.entries),
            u64::from(sizes.blocks),
            u64::from(sizes.block_len),
            u64::from(sizes.eager),
            u64::from(sizes.lane_slots),
            tree.class as u64,
            sizes.spread as u64,
        ];
        fnv1a(words.into_iter().chain(costs.map(u64::from)))
    }
}

/// The regions of the groups in the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Regions {
    hold: Region,
    notes: Region,
    pub(super) lanes: lane::Regions,
}

impl Regions {
    /// Where messages lie: entries and blocks of all roots of all groups.
    #[must_use]
    pub const fn hold(&self) -> Region {
        self.hold
    }
}

/// The window of one root in one group: computes every address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Window {
    pub(super) config: Config,
    hold: Region,
    notes: Region,
    index: u32,
}

impl Window {
    pub(super) const fn new(config: Config, regions: Regions, group: u16, root: u16) -> Self {
        let index = group as u32 * config.0.peers as u32 + root as u32;
        Self { config, hold: regions.hold, notes: regions.notes, index }
    }

    pub(super) const fn entries(&self) -> u64 {
        self.config.0.entries as u64
    }

    pub(super) const fn blocks(&self) -> u64 {
        self.config.0.blocks as u64
    }

    pub(super) const fn block_len(&self) -> u64 {
        self.config.0.block_len as u64
    }

    pub(super) const fn slot_len(&self) -> usize {
        self.config.slot_len() as usize
    }

    /// Blocks of a message of `len` bytes.
    pub(super) const fn blocks_of(&self, len: u64) -> u64 {
        len.div_ceil(self.block_len())
    }

    /// Where entry `seq` lies.
    pub(super) fn entry_at(&self, seq: u64) -> At {
        self.at(seq % self.entries() * u64::from(self.config.slot_len()))
    }

    /// Where block `block` lies.
    pub(super) fn block_at(&self, block: u64) -> At {
        let entries = self.entries() * u64::from(self.config.slot_len());
        self.at(entries + block % self.blocks() * self.block_len())
    }

    fn at(&self, offset: u64) -> At {
        let start = u64::from(self.index) * self.config.window_len();
        #[expect(clippy::cast_possible_truncation, reason = "the hold is shorter than 4 GiB")]
        let offset = (start + offset) as u32;
        At { region: self.hold, offset }
    }

    /// Where the note number `count` lies: in one of two cells.
    pub(super) fn note_at(&self, count: u64) -> At {
        let cell = self.index * 2 + u32::from(count & 1 == 1);
        At { region: self.notes, offset: cell * NOTE_LEN as u32 }
    }
}

//! The sizes of a mailbox, the relations between them, and where it lies in memory.
//!
//! ```text
//! word    8 bytes                        remote atomics by all, nothing else in the region (MB-2)
//! slots   2 halves × slots × stride      remote writes by all
//! claims  one cell of 64 bytes per owner remote reads by all, written by the sender itself
//! local   journal of both halves, then one landing cell per peer      no remote access
//! ```

use core::fmt;

use crate::fabric::{
    Access, At, Fabric, INLINE_LEN, Layout, LayoutError, Placement, Region, RegionSpec,
};
use crate::ids::{Peer, PeerSet};
use crate::time::Duration;
use crate::wire::CELL_LEN;
use crate::wire::slot::{Sealing, Slot, Stamp, TRAILER_LEN, used};

/// The longest message, in bytes: message and trailer fit into one inline write.
pub const MESSAGE_LEN_MAX: u16 = 4000;

/// The largest number of slots of a half.
pub const SLOTS_MAX: u32 = 1 << 16;

const CLAIM_STRIDE: u32 = 64;

const _: () = assert!(used(MESSAGE_LEN_MAX as usize) <= INLINE_LEN);

/// The sizes of a mailbox. All members of a cluster have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    peers: u16,
    slots: u32,
    message_len: u16,
    stall_after: Duration,
    always_checksum: bool,
    // Computed once: each message needs them.
    stride: u32,
    /// Bytes of the journal of a half: its record and its bitmap.
    journal_len: u16,
}

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Peers must be 1 to [`PeerSet::CAPACITY`].
    Peers(u16),
    /// Slots must be a multiple of 64, at most [`SLOTS_MAX`], or a power of two below 64 and
    /// at least 2.
    Slots(u32),
    /// A message must be 1 to [`MESSAGE_LEN_MAX`] bytes.
    MessageLen(u16),
    /// Both halves together must stay below 4 GiB.
    TooLarge,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peers(n) => write!(f, "{n} peers; a mailbox has 1 to {}", PeerSet::CAPACITY),
            Self::Slots(n) => {
                write!(
                    f,
                    "{n} slots; want a power of two from 2, or a multiple of 64, to {SLOTS_MAX}"
                )
            }
            Self::MessageLen(n) => write!(f, "messages of {n} bytes; want 1 to {MESSAGE_LEN_MAX}"),
            Self::TooLarge => f.write_str("the slots of both halves need 4 GiB or more"),
        }
    }
}

impl core::error::Error for ConfigError {}

/// The regions of a mailbox in the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Regions {
    pub(super) word: Region,
    pub(super) slots: Region,
    pub(super) claims: Region,
    pub(super) local: Region,
}

impl Config {
    /// A mailbox with `slots` slots in each half, for messages of up to `message_len` bytes from
    /// `peers` peers, that questions a ticket which has not landed after `stall_after`.
    ///
    /// # Errors
    /// [`ConfigError`] names the value and its limit.
    pub const fn new(
        peers: u16,
        slots: u32,
        message_len: u16,
        stall_after: Duration,
    ) -> Result<Self, ConfigError> {
        if peers == 0 || peers as usize > PeerSet::CAPACITY {
            return Err(ConfigError::Peers(peers));
        }
        let regular = slots.is_power_of_two() || slots.is_multiple_of(64);
        if slots < 2 || slots > SLOTS_MAX || !regular {
            return Err(ConfigError::Slots(slots));
        }
        if message_len == 0 || message_len > MESSAGE_LEN_MAX {
            return Err(ConfigError::MessageLen(message_len));
        }
        let used = TRAILER_LEN as u32 + message_len as u32;
        let stride = if used <= 32 { 32 } else { used.next_multiple_of(64) };
        if (stride as u64) * (slots as u64) * 2 > u32::MAX as u64 {
            return Err(ConfigError::TooLarge);
        }
        #[expect(clippy::cast_possible_truncation, reason = "`SLOTS_MAX` bits and a word")]
        let journal_len = 8 + slots.div_ceil(64) as u16 * 8;
        let always_checksum = false;
        Ok(Self { peers, slots, message_len, stall_after, always_checksum, stride, journal_len })
    }

    /// The same with checksums over every fabric. Without this, a fabric that places whole words
    /// (F-14) carries none.
    #[must_use]
    pub const fn with_checksums(self) -> Self {
        Self { always_checksum: true, ..self }
    }

    /// How slots and claims are sealed over `fabric`.
    #[inline]
    pub(super) fn sealing(&self, fabric: &impl Fabric) -> Sealing {
        match fabric.placement() {
            Placement::WholeWords if !self.always_checksum => Sealing::Stamp,
            Placement::WholeWords | Placement::Bytes => Sealing::Checksum,
        }
    }

    /// How many peers may put.
    #[must_use]
    pub const fn peers(&self) -> u16 {
        self.peers
    }

    /// Slots in each of the two halves.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// The longest message in bytes.
    #[must_use]
    pub const fn message_len(&self) -> u16 {
        self.message_len
    }

    /// How long a ticket may be missing before it is questioned (MB-7).
    #[must_use]
    pub const fn stall_after(&self) -> Duration {
        self.stall_after
    }

    /// Bytes from one slot to the next. Small slots share a cache line evenly, others begin one.
    #[must_use]
    pub const fn stride(&self) -> u32 {
        self.stride
    }

    /// How many messages one write can carry.
    #[must_use]
    pub const fn batch(&self) -> u32 {
        INLINE_LEN as u32 / self.stride()
    }

    /// Adds the mailbox's regions to `layout`.
    ///
    /// # Errors
    /// [`LayoutError::TooManyRegions`].
    pub fn add_regions(&self, layout: &mut Layout) -> Result<Regions, LayoutError> {
        let all = PeerSet::first(usize::from(self.peers));
        let mut add = |len, access, peers| layout.add(RegionSpec { len, access, peers });
        Ok(Regions {
            word: add(8, Access::REMOTE_ATOMIC, all)?,
            slots: add(2 * self.slots * self.stride(), Access::REMOTE_WRITE, all)?,
            claims: add(u32::from(self.peers) * CLAIM_STRIDE, Access::REMOTE_READ, all)?,
            local: add(self.landing_start() + self.cells_len(), Access::empty(), PeerSet::EMPTY)?,
        })
    }

    /// Words of the bitmap of one half.
    pub(super) const fn bitmap_words(&self) -> u32 {
        (self.journal_len as u32 - 8) / 8
    }

    const fn landing_start(&self) -> u32 {
        2 * self.journal_len as u32
    }

    const fn cells_len(&self) -> u32 {
        self.peers as u32 * CELL_LEN as u32
    }
}

impl Regions {
    /// The reservation word.
    pub(super) const fn word(self) -> At {
        At { region: self.word, offset: 0 }
    }

    /// The slot that `stamp` uses.
    #[inline(always)]
    pub(super) const fn slot(self, config: &Config, stamp: Stamp) -> Slot {
        let index = (stamp.epoch & 1) * config.slots + stamp.ticket;
        let stride = config.stride();
        Slot {
            end: At { region: self.slots, offset: (index + 1) * stride },
            stamp,
            capacity: config.message_len,
            stride,
            slots: config.slots,
        }
    }

    /// The claim of a sender towards `owner`, in the sender.
    pub(super) const fn claim(self, owner: Peer) -> At {
        At { region: self.claims, offset: owner.0 as u32 * CLAIM_STRIDE }
    }

    /// Where the owner reads the claim of `sender` into.
    pub(super) const fn landing(self, config: &Config, sender: Peer) -> At {
        let offset = config.landing_start() + sender.0 as u32 * CELL_LEN as u32;
        At { region: self.local, offset }
    }

    /// The journal record of the half that `epoch` uses.
    pub(super) const fn record(self, config: &Config, epoch: u32) -> At {
        At { region: self.local, offset: (epoch & 1) * config.journal_len as u32 }
    }

    /// Word `index` of the journal bitmap of the half that `epoch` uses.
    pub(super) const fn bitmap(self, config: &Config, epoch: u32, index: u32) -> At {
        let record = self.record(config, epoch);
        At { region: self.local, offset: record.offset + 8 + index * 8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Duration = Duration::from_millis(1);

    #[test]
    fn a_value_outside_its_limit_is_named() {
        let config = |peers, slots, len| Config::new(peers, slots, len, STALL);
        assert_eq!(config(0, 64, 8), Err(ConfigError::Peers(0)));
        assert_eq!(config(65, 64, 8), Err(ConfigError::Peers(65)));
        assert_eq!(config(2, 1, 8), Err(ConfigError::Slots(1)));
        assert_eq!(config(2, 100, 8), Err(ConfigError::Slots(100)));
        assert_eq!(config(2, 64, 0), Err(ConfigError::MessageLen(0)));
        assert_eq!(config(2, 64, 4001), Err(ConfigError::MessageLen(4001)));
        assert!(config(64, 2, 4000).is_ok());
    }

    #[test]
    fn no_two_parts_of_the_local_region_overlap() {
        let config = Config::new(3, 128, 8, STALL).unwrap();
        let mut layout = Layout::new(3);
        let regions = config.add_regions(&mut layout).unwrap();
        let offsets = [
            regions.record(&config, 0).offset,
            regions.bitmap(&config, 0, 0).offset,
            regions.bitmap(&config, 0, 1).offset,
            regions.record(&config, 1).offset,
            regions.bitmap(&config, 1, 0).offset,
            regions.bitmap(&config, 1, 1).offset,
            regions.landing(&config, Peer(0)).offset,
            regions.landing(&config, Peer(2)).offset,
        ];
        assert_eq!(offsets, [0, 8, 16, 24, 32, 40, 48, 80]);
        assert_eq!(layout.spec(regions.local).unwrap().len, 96);
    }

    #[test]
    fn the_reservation_word_is_alone_in_reach_of_atomics() {
        let config = Config::new(3, 64, 8, STALL).unwrap();
        let mut layout = Layout::new(3);
        config.add_regions(&mut layout).unwrap();
        let atomic = layout.regions().iter().filter(|r| r.access.contains(Access::REMOTE_ATOMIC));
        assert_eq!(atomic.map(|r| (r.len, r.access)).next(), Some((8, Access::REMOTE_ATOMIC)));
    }
}

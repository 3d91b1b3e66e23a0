//! The sizes of a rendezvous, and where everything lies.
//!
//! ```text
//!  offers:     │ leaf │ leaf │ … │ part │ …  values of this node, in pieces, and parts of them;
//!              read by all, or by none
//!  landings:   │ leaf │ leaf │ … │ place of request 0 │ place of request 1 │ …
//!              written by none, or by all: each what it was lent
//!  lanes:      one from each peer
//! ```
//!
//! A value that comes within its message lands in its request's own place, so that it never waits
//! for the pool.

use core::fmt;

use super::pool::LEAVES_MAX;
use crate::fabric::{Access, At, Layout, LayoutError, Region, RegionSpec};
use crate::ids::PeerSet;
use crate::lane;
use crate::wire::rendezvous::{HEAD_LEN, INLINE_LEN_MAX};

/// The most slots of each kind.
pub const SLOTS_MAX: u16 = 1024;
/// The most places for parts.
pub const PLACES_MAX: u8 = 64;
/// The longest piece that one read fetches, in bytes.
pub const PIECE_LEN_MAX: u32 = 1 << 20;
/// Bytes of a request's own place: the longest inline value, in whole cache lines.
const PLACE_LEN: u32 = INLINE_LEN_MAX.next_multiple_of(64) as u32;

/// Whether a value is checked before it is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Digest {
    /// It is not.
    #[default]
    Off,
    /// By CRC-32C, which the source makes when the value is sent.
    Crc32c,
}

/// How a value travels that fits into no message (RZ-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Path {
    /// Its destination reads it where its source keeps it.
    #[default]
    Read,
    /// Its source writes it where its destination lends memory.
    Write,
}

/// How a value travels that no memory of the fabric holds (RZ-3): its destination asks for one part
/// after the other, each a rendezvous of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PartSizes {
    /// Bytes of a part, the last of a value excepted: a multiple of 8, up to the pool of landings.
    pub len: u32,
    /// Parts that a source lends at once, to all peers: up to [`PLACES_MAX`]. They have places of
    /// their own behind the pool of offers, so that no value that waits keeps a part out.
    pub places: u8,
    /// Requests, offers and waiters that parts have, each, beside those of whole values: from
    /// `peers` on, so that each peer has its share; or 0, for no parts.
    pub slots: u16,
}

impl PartSizes {
    /// No value travels in parts.
    pub const NONE: Self = Self { len: 0, places: 0, slots: 0 };

    /// How many parts a value of `bytes` has; none if they are too many, or values have no parts.
    pub(super) fn count(self, bytes: u64) -> Option<u32> {
        let len = u64::from(self.len);
        let count = bytes.checked_next_multiple_of(len)?.checked_div(len)?;
        u32::try_from(count).ok()
    }

    /// Where `part` of a value of `bytes` begins, and how many bytes it has.
    pub(super) fn range(self, bytes: u64, part: u32) -> (u64, u64) {
        let begin = u64::from(part) * u64::from(self.len);
        (begin, bytes.saturating_sub(begin).min(u64::from(self.len)))
    }
}

/// The parameters of a rendezvous. All members of a cluster have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RendezvousSizes {
    /// Endpoints of the cluster: 1 to 64.
    pub peers: u16,
    /// Requests, offers and waiters of whole values, each: from `peers` on; with those of parts at
    /// most [`SLOTS_MAX`].
    pub slots: u16,
    /// Values in parts.
    pub parts: PartSizes,
    /// Bytes of a leaf of both pools: a power of two from 64 on.
    pub leaf_len: u32,
    /// Leaves of the pool of offers: 1 to [`LEAVES_MAX`].
    pub offer_leaves: u32,
    /// Leaves of the pool of landings: 1 to [`LEAVES_MAX`].
    pub landing_leaves: u32,
    /// The longest value in bytes that comes within its message: up to [`INLINE_LEN_MAX`].
    pub inline: u16,
    /// Bytes that one read fetches: 1 to [`PIECE_LEN_MAX`].
    pub piece_len: u32,
    /// Whether values are checked.
    pub digest: Digest,
    /// How values travel that fit into no message.
    pub path: Path,
    /// Slots of a lane: a power of two from 2 to [`lane::SLOTS_MAX`].
    pub lane_slots: u32,
}

/// Checked [`RendezvousSizes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RendezvousConfig(RendezvousSizes);

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RendezvousConfigError {
    /// Slots must be from the number of peers to [`SLOTS_MAX`].
    Slots(u16),
    /// Parts must have places, a slot for each place and for each peer, and a multiple of 8 bytes,
    /// no more than the landings; offers and places must be shorter than 4 GiB.
    Parts(PartSizes),
    /// A leaf must be a power of two of bytes from 64 on.
    LeafLen(u32),
    /// A pool must have 1 to [`LEAVES_MAX`] leaves and be shorter than 4 GiB.
    Leaves(u32),
    /// A message carries up to [`INLINE_LEN_MAX`] bytes.
    Inline(u16),
    /// A piece must be 1 to [`PIECE_LEN_MAX`] bytes.
    PieceLen(u32),
    /// The lanes are refused.
    Lanes(lane::ConfigError),
}

impl fmt::Display for RendezvousConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots(n) => write!(f, "{n} slots; want one for each peer, at most {SLOTS_MAX}"),
            Self::Parts(PartSizes { len, places, slots }) => write!(
                f,
                "parts of {len} bytes, {places} places and {slots} slots; want 1 to {PLACES_MAX} \
                 places, a slot for each and for each peer, a multiple of 8 bytes, no more than \
                 the landings, and less than 4 GiB for offers and places"
            ),
            Self::LeafLen(n) => write!(f, "leaves of {n} bytes; want a power of two from 64 on"),
            Self::Leaves(n) => {
                write!(f, "{n} leaves; want 1 to {LEAVES_MAX}, and less than 4 GiB in all")
            }
            Self::Inline(n) => write!(f, "{n} bytes in a message; want at most {INLINE_LEN_MAX}"),
            Self::PieceLen(n) => write!(f, "pieces of {n} bytes; want 1 to {PIECE_LEN_MAX}"),
            Self::Lanes(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RendezvousConfigError {}

impl RendezvousConfig {
    /// Checks `sizes`.
    ///
    /// # Errors
    /// [`RendezvousConfigError`] names the value and its limit.
    pub fn new(sizes: RendezvousSizes) -> Result<Self, RendezvousConfigError> {
        let config = Self(sizes);
        config.lanes().map_err(RendezvousConfigError::Lanes)?;
        let slots = u32::from(sizes.slots) + u32::from(sizes.parts.slots);
        if sizes.slots < sizes.peers || slots > u32::from(SLOTS_MAX) {
            return Err(RendezvousConfigError::Slots(sizes.slots));
        }
        if sizes.leaf_len < 64 || !sizes.leaf_len.is_power_of_two() {
            return Err(RendezvousConfigError::LeafLen(sizes.leaf_len));
        }
        for leaves in [sizes.offer_leaves, sizes.landing_leaves] {
            let places = u64::from(slots) * u64::from(PLACE_LEN);
            let len = u64::from(leaves) * u64::from(sizes.leaf_len) + places;
            if !(1..=LEAVES_MAX).contains(&leaves) || len > u64::from(u32::MAX) {
                return Err(RendezvousConfigError::Leaves(leaves));
            }
        }
        let PartSizes { len, places, slots } = sizes.parts;
        let offers = u64::from(sizes.offer_leaves) * u64::from(sizes.leaf_len)
            + u64::from(places) * u64::from(len);
        let is_part = (1..=sizes.landing_leaves * sizes.leaf_len).contains(&len)
            && len.is_multiple_of(8)
            && (1..=PLACES_MAX).contains(&places)
            && slots >= sizes.peers.max(places.into())
            && offers <= u64::from(u32::MAX);
        if sizes.parts != PartSizes::NONE && !is_part {
            return Err(RendezvousConfigError::Parts(sizes.parts));
        }
        if usize::from(sizes.inline) > INLINE_LEN_MAX {
            return Err(RendezvousConfigError::Inline(sizes.inline));
        }
        if !(1..=PIECE_LEN_MAX).contains(&sizes.piece_len) {
            return Err(RendezvousConfigError::PieceLen(sizes.piece_len));
        }
        Ok(config)
    }

    /// The sizes.
    #[must_use]
    pub const fn sizes(&self) -> RendezvousSizes {
        self.0
    }

    /// Slots of whole values and of parts.
    pub(super) const fn slots(&self) -> u16 {
        self.0.slots + self.0.parts.slots
    }

    /// Waiters for parts that a peer may have, and requests for parts that a peer is sent.
    pub(super) const fn parts_of_peer(&self) -> u16 {
        self.0.parts.slots / self.0.peers
    }

    pub(super) fn lanes(&self) -> Result<lane::Config, lane::ConfigError> {
        let message = (HEAD_LEN + INLINE_LEN_MAX) as u16;
        lane::Config::new(self.0.peers, self.0.lane_slots, message)
    }

    /// Adds the two regions and the lanes to `layout`.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn add_regions(&self, layout: &mut Layout) -> Result<RendezvousRegions, LayoutError> {
        let sizes = &self.0;
        // Checked by RendezvousConfig::new.
        let lanes = self.lanes().map_err(|_| LayoutError::BadLength(u32::MAX))?;
        let own = (Access::empty(), PeerSet::EMPTY);
        let all = PeerSet::first(usize::from(sizes.peers));
        let (offered, landed) = match sizes.path {
            Path::Read => ((Access::REMOTE_READ, all), own),
            Path::Write => (own, (Access::REMOTE_WRITE, all)),
        };
        let region = |len, (access, peers)| RegionSpec { len, access, peers };
        let places = u32::from(self.slots()) * PLACE_LEN;
        let parts = u32::from(sizes.parts.places) * sizes.parts.len;
        let offers = layout.add(region(sizes.offer_leaves * sizes.leaf_len + parts, offered))?;
        let landings = sizes.landing_leaves * sizes.leaf_len + places;
        let landings = layout.add(region(landings, landed))?;
        Ok(RendezvousRegions { offers, landings, lanes: lanes.add_regions(layout)? })
    }

    /// The place of the request in `slot`, behind the pool of landings.
    pub(super) const fn place(&self, regions: RendezvousRegions, slot: u16) -> At {
        let pool = self.0.landing_leaves * self.0.leaf_len;
        At { region: regions.landings, offset: pool + slot as u32 * PLACE_LEN }
    }
}

/// The regions of a rendezvous in the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RendezvousRegions {
    pub(super) offers: Region,
    pub(super) landings: Region,
    pub(super) lanes: lane::Regions,
}

impl RendezvousRegions {
    /// Where values lie that this node sends.
    #[must_use]
    pub const fn offers(&self) -> Region {
        self.offers
    }

    /// Where values lie that this node receives.
    #[must_use]
    pub const fn landings(&self) -> Region {
        self.landings
    }
}

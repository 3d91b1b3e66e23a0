//! Which regions there are: computed from configuration, the same at every endpoint.
//!
//! A region is a run of 8-byte words with one right for one set of peers. The machines add
//! their regions in a fixed order; the order is the numbering, so equal configurations give
//! equal layouts, and [`Layout::digest`] lets two endpoints see that theirs are.

use core::fmt;

use bitflags::bitflags;
use heapless::Vec;

use crate::ids::{Peer, PeerSet};

/// The largest number of regions of a layout.
pub const REGIONS_MAX: usize = 160;

bitflags! {
    /// What remote peers may do to a region. The owner may always load and store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Access: u8 {
        /// Plain one-sided reads.
        const REMOTE_READ = 1;
        /// Plain one-sided writes.
        const REMOTE_WRITE = 2;
        /// Fetch-add and compare-swap.
        const REMOTE_ATOMIC = 4;
    }
}

/// The number of a region in its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(pub u8);

/// One region: how long, and who may do what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionSpec {
    /// Length in bytes, a multiple of 8.
    pub len: u32,
    /// The rights of the peers named in `peers`.
    pub access: Access,
    /// The peers that `access` applies to; no other peer may touch the region remotely.
    pub peers: PeerSet,
}

/// The regions of an endpoint, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    peers: u16,
    regions: Vec<RegionSpec, REGIONS_MAX>,
}

/// Why a region cannot be added. The layout is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// [`REGIONS_MAX`] regions are there already.
    TooManyRegions,
    /// The length is zero or not a multiple of 8.
    BadLength(u32),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyRegions => write!(f, "a layout holds at most {REGIONS_MAX} regions"),
            Self::BadLength(len) => write!(f, "a region of {len} bytes: want a multiple of 8"),
        }
    }
}

impl core::error::Error for LayoutError {}

impl Layout {
    /// No regions yet, for `peers` endpoints.
    ///
    /// # Panics
    /// When `peers` is larger than [`PeerSet::CAPACITY`].
    #[must_use]
    pub const fn new(peers: u16) -> Self {
        assert!(peers as usize <= PeerSet::CAPACITY, "a fabric holds at most 64 peers");
        Self { peers, regions: Vec::new() }
    }

    /// Adds a region after those that are there, and names it.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn add(&mut self, spec: RegionSpec) -> Result<Region, LayoutError> {
        if spec.len == 0 || !spec.len.is_multiple_of(8) {
            return Err(LayoutError::BadLength(spec.len));
        }
        let number = u8::try_from(self.regions.len()).map_err(|_| LayoutError::TooManyRegions)?;
        self.regions.push(spec).map_err(|_| LayoutError::TooManyRegions)?;
        Ok(Region(number))
    }

    /// How many endpoints the fabric has.
    #[must_use]
    pub const fn peers(&self) -> u16 {
        self.peers
    }

    /// The regions in order.
    #[must_use]
    pub fn regions(&self) -> &[RegionSpec] {
        &self.regions
    }

    /// What `region` is, when there is such a region.
    #[must_use]
    pub fn spec(&self, region: Region) -> Option<RegionSpec> {
        self.regions.get(usize::from(region.0)).copied()
    }

    /// Where `region` begins when the regions lie behind one another, in bytes.
    #[must_use]
    pub fn offset(&self, region: Region) -> u64 {
        let before = self.regions.iter().take(usize::from(region.0));
        before.map(|spec| u64::from(spec.len)).sum()
    }

    /// The bytes of all regions together.
    #[must_use]
    pub fn total_len(&self) -> u64 {
        self.regions.iter().map(|spec| u64::from(spec.len)).sum()
    }

    /// Whether `who` holds all of `wanted` on `region`.
    #[must_use]
    pub fn allows(&self, region: Region, who: Peer, wanted: Access) -> bool {
        self.spec(region)
            .is_some_and(|spec| spec.access.contains(wanted) && spec.peers.contains(who))
    }

    /// A number that differs, all but certainly, when two layouts do (64-bit FNV-1a).
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut absorb = |value: u64| {
            for byte in value.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        absorb(u64::from(self.peers));
        for spec in &self.regions {
            absorb(u64::from(spec.len));
            absorb(u64::from(spec.access.bits()));
            absorb(spec.peers.bits());
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(len: u32) -> RegionSpec {
        RegionSpec { len, access: Access::REMOTE_READ, peers: PeerSet::first(2) }
    }

    #[test]
    fn regions_are_numbered_and_laid_out_in_order() {
        let mut layout = Layout::new(3);
        let first = layout.add(spec(64)).unwrap();
        let second = layout.add(spec(8)).unwrap();
        assert_eq!((first, second), (Region(0), Region(1)));
        assert_eq!((layout.offset(second), layout.total_len()), (64, 72));
        assert!(layout.allows(first, Peer(1), Access::REMOTE_READ));
        assert!(!layout.allows(first, Peer(2), Access::REMOTE_READ));
        assert!(!layout.allows(first, Peer(1), Access::REMOTE_WRITE));
        assert!(!layout.allows(Region(2), Peer(1), Access::REMOTE_READ));
    }

    #[test]
    fn a_region_that_is_no_run_of_words_is_refused() {
        let mut layout = Layout::new(1);
        assert_eq!(layout.add(spec(12)), Err(LayoutError::BadLength(12)));
        assert_eq!(layout.add(spec(0)), Err(LayoutError::BadLength(0)));
        assert!(layout.regions().is_empty());
    }

    #[test]
    fn one_region_too_many_is_refused() {
        let mut layout = Layout::new(1);
        for _ in 0..REGIONS_MAX {
            layout.add(spec(8)).unwrap();
        }
        assert_eq!(layout.add(spec(8)), Err(LayoutError::TooManyRegions));
    }

    #[test]
    fn every_field_reaches_the_digest() {
        let digest = |peers, spec| {
            let mut layout = Layout::new(peers);
            layout.add(spec).unwrap();
            layout.digest()
        };
        let base = digest(2, spec(64));
        assert_ne!(base, digest(3, spec(64)));
        assert_ne!(base, digest(2, spec(72)));
        assert_ne!(base, digest(2, RegionSpec { access: Access::REMOTE_WRITE, ..spec(64) }));
        assert_ne!(base, digest(2, RegionSpec { peers: PeerSet::first(1), ..spec(64) }));
    }
}

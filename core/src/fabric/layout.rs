//! Which regions there are: computed from configuration, the same at every endpoint.
//!
//! A region is a run of 8-byte words with one right for one set of peers. The machines add
//! their regions in a fixed order; the order is the numbering, so equal configurations give
//! equal layouts, and [`Layout::digest`] lets two endpoints see that theirs are.
//!
//! What one peer alone may write is one region, and each machine has a part of it:
//!
//! ```text
//!  writable by peer 0 alone   │ lane │ ring of broadcasts │ lane of groups │ …
//!  writable by peer 1 alone   │ lane │ ring of broadcasts │ lane of groups │ …
//! ```

use core::fmt;

use bitflags::bitflags;
use heapless::Vec;

use super::At;
use crate::checksum::fnv1a;
use crate::ids::{Peer, PeerSet};
use crate::mutant::Mutant;

/// The largest number of regions of a layout: one for each peer that writes, and those of machines.
pub const REGIONS_MAX: usize = 96;

const _: () = assert!(PeerSet::CAPACITY < REGIONS_MAX && REGIONS_MAX <= u8::MAX as usize);

/// Parts of inbound regions begin with one.
const CACHE_LINE: u32 = 64;

/// The broadcast's trap T5: each peer may write all inbound regions.
pub(crate) const FOREIGN_WRITER: Mutant = Mutant::new("neb", "T5-foreign-writer", "integrity");

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

impl RegionSpec {
    /// Whether `who` holds all of `wanted` on the region.
    #[inline]
    #[must_use]
    pub const fn allows(&self, who: Peer, wanted: Access) -> bool {
        self.access.contains(wanted) && self.peers.contains(who)
    }
}

/// A machine's part of each region that one peer alone may write: where that of peer 0 begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inbound(At);

impl Inbound {
    /// Where the part begins that `writer` may write.
    #[inline]
    #[must_use]
    pub const fn of(self, writer: Peer) -> At {
        #[expect(clippy::cast_possible_truncation, reason = "fewer peers than regions")]
        At { region: Region(self.0.region.0 + writer.0 as u8), offset: self.0.offset }
    }
}

/// The regions of an endpoint, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    peers: u16,
    /// The region that peer 0 alone may write, if there are such regions.
    inbound: Option<Region>,
    /// The digest of the lengths of their parts.
    parts: u64,
    regions: Vec<RegionSpec, REGIONS_MAX>,
}

/// Why a region cannot be added. The layout is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// [`REGIONS_MAX`] regions are there already.
    TooManyRegions,
    /// The length is zero or not a multiple of 8, or an inbound region reaches 4 GiB with it.
    BadLength(u32),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyRegions => write!(f, "a layout holds at most {REGIONS_MAX} regions"),
            Self::BadLength(len) => write!(f, "{len} bytes: want a multiple of 8, less than 4 GiB"),
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
        Self { peers, inbound: None, parts: 0, regions: Vec::new() }
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

    /// Adds `len` bytes, rounded up to cache lines, to each inbound region: there is one for each
    /// peer, and that peer alone may write it. The first call adds the regions themselves.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn add_inbound(&mut self, len: u32) -> Result<Inbound, LayoutError> {
        let next = u8::try_from(self.regions.len()).map_err(|_| LayoutError::TooManyRegions)?;
        let region = self.inbound.unwrap_or(Region(next));
        let offset = self.spec(region).map_or(0, |spec| spec.len);
        let rounded = len.checked_next_multiple_of(CACHE_LINE).filter(|_| len != 0);
        let end = rounded.and_then(|len| offset.checked_add(len));
        let end = end.ok_or(LayoutError::BadLength(len))?;
        let (first, count) = (usize::from(region.0), usize::from(self.peers));
        let spec = RegionSpec { len: 0, access: Access::REMOTE_WRITE, peers: PeerSet::EMPTY };
        let regions = self.regions.len().max(first + count);
        self.regions.resize(regions, spec).map_err(|_| LayoutError::TooManyRegions)?;
        for (spec, writer) in self.regions[first..first + count].iter_mut().zip(0..) {
            let only = PeerSet::only(Peer(writer));
            spec.peers = if FOREIGN_WRITER.is_planted() { PeerSet::first(count) } else { only };
            spec.len = end;
        }
        (self.inbound, self.parts) = (Some(region), fnv1a([self.parts, len.into()]));
        Ok(Inbound(At { region, offset }))
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
        self.spec(region).is_some_and(|spec| spec.allows(who, wanted))
    }

    /// A number that differs, all but certainly, when two layouts do (64-bit FNV-1a).
    #[must_use]
    pub fn digest(&self) -> u64 {
        let regions = self.regions.iter().flat_map(|spec| {
            [u64::from(spec.len), u64::from(spec.access.bits()), spec.peers.bits()]
        });
        fnv1a([self.parts, u64::from(self.peers)].into_iter().chain(regions))
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
        assert_eq!(layout.add_inbound(0), Err(LayoutError::BadLength(0)));
        assert_eq!(layout, Layout::new(1));
        layout.add_inbound(64).unwrap();
        let (full, most) = (layout.clone(), u32::MAX - 63);
        assert_eq!(layout.add_inbound(most), Err(LayoutError::BadLength(most)));
        assert_eq!(layout, full);
    }

    #[test]
    fn one_region_too_many_is_refused() {
        let mut layout = Layout::new(1);
        for _ in 0..REGIONS_MAX {
            layout.add(spec(8)).unwrap();
        }
        let full = layout.clone();
        assert_eq!(layout.add(spec(8)), Err(LayoutError::TooManyRegions));
        assert_eq!(layout.add_inbound(8), Err(LayoutError::TooManyRegions));
        assert_eq!(layout, full);
    }

    #[test]
    fn parts_of_inbound_regions_lie_apart_and_belong_to_one_writer() {
        let mut layout = Layout::new(3);
        layout.add(spec(8)).unwrap();
        let parts = [72, 8].map(|len| layout.add_inbound(len).unwrap());
        assert_eq!(layout.add(spec(8)), Ok(Region(4)));
        for (writer, who) in (0..9).map(|n| (Peer(n / 3), Peer(n % 3))) {
            let region = Region(1 + writer.0 as u8);
            assert_eq!(parts.map(|it| it.of(writer)), [0, 128].map(|offset| At { region, offset }));
            assert_eq!(layout.spec(region).unwrap().len, 192);
            assert_eq!(layout.allows(region, who, Access::REMOTE_WRITE), who == writer);
            assert!(!layout.allows(region, who, Access::REMOTE_READ));
        }
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
        let parted = |lens: [u32; 2]| {
            let mut layout = Layout::new(2);
            lens.iter().for_each(|len| layout.add_inbound(*len).map(drop).unwrap());
            layout.digest()
        };
        assert_ne!(parted([64, 128]), parted([128, 64]));
    }
}

//! The memory of one node: a segment for each region, a bell, and the gates.
//!
//! ```text
//!   gates   one word for each peer: the incarnation that may post here, 0 for none.
//!           Written by the node alone, read by every peer before it posts.
//!   bell    rung by peers that post to a sleeping node
//!   region  one segment each, so that the rights of a region are the rights of its pages
//! ```
//!
//! The holder of the [`NodeMemory`] keeps the memory alive: on one host that is the node's
//! supervisor, so the memory outlives the component that uses it, and a new component finds
//! what the old one left. A peer is handed the descriptors that its rights call for and no
//! other; [`Grant`] is that handful in its order on the socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

use weft_core::fabric::{Access, Layout, Region, RegionSpec, WordMemory, Words};
use weft_core::ids::{Incarnation, Peer};

use super::{Bell, Mapping, ReadOnlyMapping, Segment, SegmentError, bulk};

/// The segments of one node.
#[derive(Debug)]
pub struct NodeMemory {
    gates: Segment,
    bell: Segment,
    regions: Vec<Segment>,
}

/// Descriptors of a node's memory, in the order: gates, bell, regions.
#[derive(Debug)]
pub struct Grant(pub Vec<OwnedFd>);

impl Grant {
    /// The descriptors as a socket takes them.
    #[must_use]
    pub fn borrow(&self) -> Vec<BorrowedFd<'_>> {
        self.0.iter().map(AsFd::as_fd).collect()
    }

    /// The bell, for another mapping of it.
    ///
    /// # Panics
    /// When the handful is not one that was mapped: it has no bell.
    #[must_use]
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.0[1].as_fd()
    }

    /// Another handful of the same.
    ///
    /// # Errors
    /// [`SegmentError::Os`], when descriptors have run out.
    pub fn try_clone(&self) -> Result<Self, SegmentError> {
        self.0.iter().map(|fd| duplicate(fd.as_fd())).collect::<Result<_, _>>().map(Self)
    }
}

const fn gates_len(layout: &Layout) -> usize {
    layout.peers() as usize * 8
}

/// What `access` lets a peer do to the pages.
const fn is_written(access: Access) -> bool {
    access.intersects(Access::REMOTE_WRITE.union(Access::REMOTE_ATOMIC))
}

impl NodeMemory {
    /// Zeroed memory for `layout`; `name` shows in /proc/PID/maps.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn create(name: &str, layout: &Layout) -> Result<Self, SegmentError> {
        let regions = layout.regions().iter().enumerate();
        let regions = regions
            .map(|(number, spec)| Segment::create(&format!("{name}-r{number}"), spec.len as usize));
        Ok(Self {
            gates: Segment::create(&format!("{name}-gates"), gates_len(layout))?,
            bell: Bell::segment(&format!("{name}-bell"))?,
            regions: regions.collect::<Result<_, _>>()?,
        })
    }

    /// Everything, for the node's own component.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn grant_owner(&self) -> Result<Grant, SegmentError> {
        let segments = [&self.gates, &self.bell].into_iter().chain(&self.regions);
        segments
            .map(|segment| duplicate(segment.writable_fd()))
            .collect::<Result<_, _>>()
            .map(Grant)
    }

    /// One region, for reading.
    ///
    /// # Errors
    /// [`SegmentError`].
    ///
    /// # Panics
    /// If the layout has no such region: a bug of the caller.
    pub fn read_only(&self, region: Region) -> Result<OwnedFd, SegmentError> {
        self.regions[usize::from(region.0)].read_only_fd()
    }

    /// What `peer` has a right to.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn grant(&self, layout: &Layout, peer: Peer) -> Result<Grant, SegmentError> {
        let mut fds = vec![self.gates.read_only_fd()?, duplicate(self.bell.writable_fd())?];
        for (segment, spec) in self.regions.iter().zip(layout.regions()) {
            if !spec.peers.contains(peer) || spec.access.is_empty() {
                continue;
            }
            fds.push(if is_written(spec.access) {
                duplicate(segment.writable_fd())?
            } else {
                segment.read_only_fd()?
            });
        }
        Ok(Grant(fds))
    }
}

fn duplicate(fd: BorrowedFd<'_>) -> Result<OwnedFd, SegmentError> {
    fd.try_clone_to_owned().map_err(|error| SegmentError::Os {
        call: "dup",
        errno: rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::MFILE),
    })
}

/// One more than the highest number of a region: each number has a place in a table of so many,
/// and its words are found without a check.
const PLACES: usize = 1 + u8::MAX as usize;

/// A node's own memory, mapped by its component.
#[derive(Debug)]
pub struct OwnMemory {
    gates: Mapping,
    bell: Bell,
    /// A region that the layout does not have has no words.
    regions: Box<[Mapping; PLACES]>,
}

impl OwnMemory {
    /// Maps what [`NodeMemory::grant_owner`] handed out.
    ///
    /// # Errors
    /// [`SegmentError`], also when the number of descriptors is not the layout's.
    pub fn map(layout: &Layout, grant: &Grant) -> Result<Self, SegmentError> {
        let expected = layout.regions().len() + 2;
        let [gates, bell, regions @ ..] = grant.0.as_slice() else {
            return Err(SegmentError::Count { expected, found: grant.0.len() });
        };
        if regions.len() != layout.regions().len() {
            return Err(SegmentError::Count { expected, found: grant.0.len() });
        }
        let mut places = Box::new([const { Mapping::NONE }; PLACES]);
        for ((place, fd), spec) in places.iter_mut().zip(regions).zip(layout.regions()) {
            *place = Mapping::writable(fd.as_fd(), spec.len as usize)?;
        }
        let gates = Mapping::writable(gates.as_fd(), gates_len(layout))?;
        Ok(Self { gates, bell: Bell::open(bell.as_fd())?, regions: places })
    }

    /// The bell that peers ring.
    #[must_use]
    pub const fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Lets `incarnation` of `peer` post here, and no other incarnation of it.
    pub(super) fn set_gate(&self, peer: Peer, incarnation: Incarnation) {
        // SYNC: words-publish. Who sees the gate open sees what was reset before.
        self.gates.words()[peer.index()].store(u64::from(incarnation.0), Ordering::SeqCst);
    }
}

impl WordMemory for OwnMemory {
    #[inline(always)]
    fn words(&self, region: Region) -> Words<'_> {
        Words(self.regions[usize::from(region.0)].words())
    }

    #[inline]
    fn copy_out_long(&self, words: Words<'_>, into: &mut [u8]) -> bool {
        bulk::copy_out(into, words.0)
    }

    #[inline]
    fn copy_in_long(&self, words: Words<'_>, bytes: &[u8]) -> bool {
        bulk::copy_in(words.0, bytes)
    }
}

/// The same segments, for a device to reach.
#[cfg(feature = "verbs")]
impl weft_driver::HostMemory for OwnMemory {
    fn words(&self, region: Region) -> &[std::sync::atomic::AtomicU64] {
        self.regions[usize::from(region.0)].words()
    }
}

/// A region of a peer, mapped with the right that this endpoint has.
#[derive(Debug)]
pub(super) enum RemoteRegion {
    /// With this right.
    Writable(Mapping, Access),
    ReadOnly(ReadOnlyMapping),
    /// Not mapped: no right.
    Barred,
}

/// A peer's memory, mapped with the rights of this endpoint.
#[derive(Debug)]
pub struct RemoteMemory {
    gates: ReadOnlyMapping,
    bell: Bell,
    /// A region that the layout does not have is barred.
    regions: Box<[RemoteRegion; PLACES]>,
}

impl RemoteMemory {
    /// Maps what [`NodeMemory::grant`] handed to `me`.
    ///
    /// # Errors
    /// [`SegmentError`], also when the number of descriptors is not the layout's.
    pub fn map(layout: &Layout, me: Peer, grant: &Grant) -> Result<Self, SegmentError> {
        let granted = |spec: &&RegionSpec| spec.peers.contains(me) && !spec.access.is_empty();
        let expected = layout.regions().iter().filter(granted).count() + 2;
        let found = grant.0.len();
        let [gates, bell, rest @ ..] = grant.0.as_slice() else {
            return Err(SegmentError::Count { expected, found });
        };
        if found != expected {
            return Err(SegmentError::Count { expected, found });
        }
        let mut fds = rest.iter();
        let mut regions = Box::new([const { RemoteRegion::Barred }; PLACES]);
        for (place, spec) in regions.iter_mut().zip(layout.regions()) {
            let len = spec.len as usize;
            let Some(fd) = granted(&spec).then(|| fds.next()).flatten() else { continue };
            *place = match is_written(spec.access) {
                true => RemoteRegion::Writable(Mapping::writable(fd.as_fd(), len)?, spec.access),
                false => RemoteRegion::ReadOnly(ReadOnlyMapping::new(fd.as_fd(), len)?),
            };
        }
        let gates = ReadOnlyMapping::new(gates.as_fd(), gates_len(layout))?;
        Ok(Self { gates, bell: Bell::open(bell.as_fd())?, regions })
    }

    /// The incarnation of `me` that the node admits.
    #[inline]
    pub(super) fn gate(&self, me: Peer) -> u64 {
        let admitted = self.gates.load(me.index());
        // SYNC: words-publish. The counterpart of the store in `set_gate`.
        fence(Ordering::Acquire);
        admitted
    }

    pub(super) const fn bell(&self) -> &Bell {
        &self.bell
    }

    #[inline(always)]
    pub(super) fn region(&self, region: Region) -> &RemoteRegion {
        &self.regions[usize::from(region.0)]
    }

    /// The words of a region that there is, if `needs` is granted there.
    #[inline(always)]
    pub(super) fn granted(&self, region: Region, needs: Access) -> Option<Words<'_>> {
        match self.region(region) {
            RemoteRegion::Writable(mapping, access) if access.contains(needs) => {
                Some(Words(mapping.words()))
            }
            RemoteRegion::Writable(..) | RemoteRegion::ReadOnly(_) | RemoteRegion::Barred => None,
        }
    }
}

impl RemoteRegion {
    /// Copies out, when it may be read.
    pub(super) fn copy_out(&self, offset: usize, into: &mut [u8]) -> bool {
        match self {
            Self::Writable(mapping, _) => Words(mapping.words()).copy_out(offset, into),
            Self::ReadOnly(mapping) => {
                mapping.copy_out(offset, into);
                // SYNC: words-publish. Follows relaxed loads, as in `Words::copy_out`.
                fence(Ordering::Acquire);
            }
            Self::Barred => return false,
        }
        true
    }
}

//! Expose, then read: the order on which the protocol's safety rests (N-3, N-4).
//!
//! An [`Exposed`] means that the whole copy of a message is in the replay region and visible to
//! every later read of any member. Only [`Exposed::seal`] and [`Exposed::find`] create one, both
//! end with the barrier, and only an `Exposed` can post the reads. So no code can read before the
//! barrier.

use crate::sync::{Ordering, fence};

use super::map::Map;
use super::mutants::{READ_BEFORE_EXPOSE, UNFENCED_EXPOSURE};
use super::work::Errand;
use crate::fabric::{CompletionFlags, Fabric, Memory, Op, PostError, Work};
use crate::ids::Peer;
use crate::wire::broadcast::{HEADER_LEN, Header, Stamp};

/// How much of a slot to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The length of the own copy (N-11).
    Used,
    /// The whole slot: the other copy may be longer.
    Whole,
}

/// A message in the replay region, visible to all members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Exposed {
    stamp: Stamp,
    used: u32,
}

impl Exposed {
    /// Exposes `copy`, a checked private copy of `used` bytes, in the place of the message with the
    /// stamp `due`; bytes up to the next word are zeroed. The place is the one where the message
    /// was expected, not one that its header names (N-12).
    pub(super) fn seal(
        fabric: &impl Fabric,
        map: &Map,
        (due, used): (Stamp, usize),
        copy: &mut [u8],
    ) -> Self {
        let padded = used.next_multiple_of(8);
        copy[used..padded].fill(0);
        let at = map.replay(due.origin, due.seq);
        // Body, then stamp: until the stamp changes, readers see an older slot.
        fabric.memory().copy_in(at.region, at.offset + 8, &copy[8..padded]);
        #[expect(clippy::cast_possible_truncation, reason = "at most a slot")]
        let exposed = Self { stamp: due, used: used as u32 };
        if !READ_BEFORE_EXPOSE.is_planted() {
            exposed.publish(fabric, map);
        }
        exposed
    }

    /// The message with `stamp`, if an earlier incarnation of this member exposed it.
    pub(super) fn find(
        fabric: &impl Fabric,
        map: &Map,
        stamp: Stamp,
        scratch: &mut [u8],
    ) -> Option<Self> {
        let at = map.replay(stamp.origin, stamp.seq);
        if fabric.memory().load(at.region, at.offset) != stamp.seq {
            return None;
        }
        let slot = &mut scratch[..map.config.stride() as usize];
        fabric.memory().copy_out(at.region, at.offset, slot);
        let header = Header::open(slot, |bytes| fabric.crc32c(bytes)).ok()?;
        if header.stamp != stamp {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most a slot")]
        let exposed = Self { stamp, used: header.used() as u32 };
        exposed.publish(fabric, map);
        Some(exposed)
    }

    /// Stores the stamp, ordered before all work that is posted afterwards.
    ///
    /// SYNC: neb-expose. Of two members that store here and then read each other, at least one must
    /// see the other's store; release and acquire do not guarantee that, `SeqCst` does.
    pub(super) fn publish(&self, fabric: &impl Fabric, map: &Map) {
        let at = map.replay(self.stamp.origin, self.stamp.seq);
        fabric.memory().store(at.region, at.offset, self.stamp.seq);
        if !UNFENCED_EXPOSURE.is_planted() {
            fence(Ordering::SeqCst);
        }
    }

    /// Posts a read of what `replayer` exposes in the same slot.
    pub(super) fn post_read(
        &self,
        fabric: &mut impl Fabric,
        map: &Map,
        replayer: Peer,
        extent: Extent,
    ) -> Result<(), PostError> {
        let Stamp { origin, seq, .. } = self.stamp;
        let len = match extent {
            Extent::Used => self.used.next_multiple_of(8),
            Extent::Whole => map.config.stride(),
        };
        let (from, into) = (map.replay(origin, seq), map.landing(origin, seq, replayer));
        let id = Errand::vote(replayer, self.stamp, map.config.index(seq)).id();
        let op = Op::Read { from, into, len };
        fabric.post(replayer, Work { id, op, flags: CompletionFlags::empty() })
    }

    /// Copies the message out of the replay region, which no other member can write, and returns
    /// it.
    pub(super) fn copy_out<'a>(
        &self,
        fabric: &impl Fabric,
        map: &Map,
        into: &'a mut [u8],
    ) -> &'a [u8] {
        let Stamp { origin, seq, .. } = self.stamp;
        let at = if super::mutants::TRUST_ORIGIN_BUFFER.is_planted() {
            map.bcast(origin, seq)
        } else {
            map.replay(origin, seq)
        };
        let used = &mut into[..self.used()];
        fabric.memory().copy_out(at.region, at.offset, used);
        // The stamp is known; in memory it is stored last.
        used[..8].copy_from_slice(&seq.to_le_bytes());
        used
    }

    /// Bytes of the slot, header and signature included.
    pub(super) fn used(&self) -> usize {
        (self.used as usize).max(HEADER_LEN)
    }

    pub(super) const fn stamp(&self) -> Stamp {
        self.stamp
    }

    pub(super) const fn seq(&self) -> u64 {
        self.stamp.seq
    }

    #[cfg(test)]
    pub(super) fn for_test(seq: u64) -> Self {
        Self { stamp: Stamp { seq, ..Stamp::default() }, used: 40 }
    }
}

//! A fabric with a cut in it: what is posted to a peer beyond the cut is refused.
//!
//! A post beyond the cut is refused as to a peer that is gone (F-6), so no work is ever open across
//! it. Cut at one end, a pair is partitioned one way; cut at both ends, both ways. What a peer
//! beyond the cut posts still arrives: memory cannot refuse one-sided work by itself, fencing can.

use weft_core::fabric::{Completion, Fabric, FenceError, PostError, Posted, Work};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::Instant;

/// `F`, except for the peers beyond the cut.
#[derive(Debug)]
pub(in crate::node) struct CutFabric<F> {
    whole: F,
    cut: PeerSet,
}

impl<F> CutFabric<F> {
    /// `whole`, with no peer beyond the cut.
    #[must_use]
    pub(in crate::node) const fn new(whole: F) -> Self {
        Self { whole, cut: PeerSet::EMPTY }
    }

    /// Moves the cut.
    pub(in crate::node) const fn set_cut(&mut self, cut: PeerSet) {
        self.cut = cut;
    }

    /// The fabric without its cut.
    pub(in crate::node) const fn whole(&mut self) -> &mut F {
        &mut self.whole
    }
}

impl<F: Fabric> Fabric for CutFabric<F> {
    type Memory = F::Memory;

    weft_core::delegate_fabric!(self => self.whole);

    #[inline(always)]
    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        if self.cut.contains(peer) {
            return Err(PostError::Gone);
        }
        self.whole.post(peer, work)
    }

    #[inline(always)]
    fn post_now(&mut self, peer: Peer, work: Work<'_>) -> Result<Posted, PostError> {
        if self.cut.contains(peer) {
            return Err(PostError::Gone);
        }
        self.whole.post_now(peer, work)
    }

    #[inline]
    fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        self.whole.poll(now, done)
    }

    #[inline]
    fn memory(&self) -> &Self::Memory {
        self.whole.memory()
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        self.whole.fence(peer)
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        self.whole.admit(peer, incarnation)
    }

    #[inline]
    fn crc32c(&self, bytes: &[u8]) -> u32 {
        self.whole.crc32c(bytes)
    }
}

#[cfg(test)]
mod tests {
    use weft_core::fabric::loopback::Net;
    use weft_core::fabric::{Access, At, CompletionFlags, Memory, Op, Region, RegionSpec, WorkId};

    use super::*;

    #[test]
    fn what_is_posted_beyond_the_cut_goes_nowhere() {
        let mut layout = weft_core::fabric::Layout::new(3);
        let peers = PeerSet::first(3);
        layout.add(RegionSpec { len: 8, access: Access::REMOTE_WRITE, peers }).unwrap();
        let net = Net::<3, 64>::new(layout);
        let first = Incarnation(1);
        let mut fabric = CutFabric::new(net.endpoint(Peer(0), first));
        let mut others = [1, 2].map(|peer| net.endpoint(Peer(peer), first));
        for (peer, other) in (1..).map(Peer).zip(&mut others) {
            fabric.admit(peer, first).unwrap();
            other.admit(Peer(0), first).unwrap();
        }
        let write = |fabric: &mut CutFabric<_>, peer, byte| {
            let op = Op::Write { to: At { region: Region(0), offset: 0 }, bytes: &[byte; 8] };
            let (id, flags) = (WorkId::new(1, 0), CompletionFlags::QUIET);
            fabric.post(Peer(peer), Work { id, op, flags })
        };
        fabric.set_cut(PeerSet::only(Peer(1)));
        assert_eq!(write(&mut fabric, 1, 1), Err(PostError::Gone));
        assert_eq!(write(&mut fabric, 2, 1), Ok(()));
        assert_eq!(others.each_ref().map(|other| other.memory().load(Region(0), 0) & 1), [0, 1]);
        fabric.set_cut(PeerSet::EMPTY);
        assert_eq!(write(&mut fabric, 1, 1), Ok(()));
        assert_eq!(others[0].memory().load(Region(0), 0) & 1, 1);
    }
}

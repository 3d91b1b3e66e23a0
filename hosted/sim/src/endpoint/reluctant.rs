//! A fabric whose fences fail before they succeed.

use weft_core::fabric::{Completion, Fabric, FenceError, PostError, Posted, Work};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::Instant;

use crate::fabric::SimFabric;
use crate::memory::SimMemory;
use crate::world::World;

/// A simulated fabric that owns its world; between two turns, a blank one.
#[derive(Clone, Debug)]
pub(crate) struct Reluctant {
    inner: SimFabric<World>,
    /// Fences that fail before one succeeds.
    refusals: u64,
}

impl Reluctant {
    pub(super) fn new(inner: SimFabric<World>) -> Self {
        Self { inner, refusals: 0 }
    }

    pub(crate) fn world(&mut self) -> &mut World {
        self.inner.world()
    }

    /// The next `count` fences fail.
    pub(super) const fn refuse(&mut self, count: u64) {
        self.refusals = count;
    }
}

impl Fabric for Reluctant {
    type Memory = SimMemory;

    weft_core::delegate_fabric!(self => self.inner);

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        self.inner.post(peer, work)
    }

    fn post_now(&mut self, peer: Peer, work: Work<'_>) -> Result<Posted, PostError> {
        self.inner.post_now(peer, work)
    }

    fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        self.inner.poll(now, done)
    }

    fn memory(&self) -> &SimMemory {
        self.inner.memory()
    }

    /// What the peer posts takes effect until a fence succeeds.
    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(FenceError::StillReaching);
        }
        self.inner.fence(peer)
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        self.inner.admit(peer, incarnation)
    }
}

//! One peer's view of the world, as its machines see it.

use std::borrow::BorrowMut;

use weft_core::fabric::{
    Completion, Fabric, FenceError, Layout, Placement, PostError, Posted, Work,
};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::Instant;

use super::memory::SimMemory;
use super::world::World;

/// The fabric of one simulated peer: the world, borrowed for a step or owned for a test.
#[derive(Clone, Debug)]
pub struct SimFabric<W> {
    world: W,
    me: Peer,
}

impl<W: BorrowMut<World>> SimFabric<W> {
    /// The fabric of `me` in `world`.
    pub const fn new(world: W, me: Peer) -> Self {
        Self { world, me }
    }

    /// The whole world.
    pub fn world(&mut self) -> &mut World {
        self.world.borrow_mut()
    }

    /// From now on this is the fabric of `me`.
    pub const fn turn_to(&mut self, me: Peer) {
        self.me = me;
    }

    /// Sends a message through the message port: lost, repeated, late or overtaken, never
    /// altered.
    pub fn send(&mut self, to: Peer, bytes: &[u8]) {
        let me = self.me;
        self.world().send_datagram(me, to, bytes);
    }

    /// The next message of the message port, and who sent it.
    pub fn receive(&mut self) -> Option<(Peer, Vec<u8>)> {
        let me = self.me;
        self.world().receive_datagram(me)
    }
}

impl<W: BorrowMut<World>> Fabric for SimFabric<W> {
    type Memory = SimMemory;

    fn me(&self) -> Peer {
        self.me
    }

    fn layout(&self) -> &Layout {
        self.world.borrow().layout()
    }

    fn placement(&self) -> Placement {
        self.world.borrow().promises.placement
    }

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        let me = self.me;
        self.world().post(me, peer, &work)
    }

    fn post_now(&mut self, peer: Peer, work: Work<'_>) -> Result<Posted, PostError> {
        let me = self.me;
        self.world().post_now(me, peer, &work)
    }

    fn poll(&mut self, _now: Instant, done: &mut [Completion]) -> usize {
        let me = self.me;
        self.world().poll(me, done)
    }

    fn memory(&self) -> &SimMemory {
        self.world.borrow().memory(self.me)
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        let me = self.me;
        self.world().fence(me, peer)
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        let me = self.me;
        self.world().admit(me, peer, incarnation)
    }

    fn crc32c(&self, bytes: &[u8]) -> u32 {
        crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
    }
}

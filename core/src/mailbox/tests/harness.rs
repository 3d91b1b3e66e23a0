//! A cluster of one owner and its writers over memory that outlives all of them.

use std::boxed::Box;
use std::vec::Vec;

use super::owner::Owner;
use super::stepped::Stepped;
use super::writer::Writer;
use super::{OWNER, PEERS, STALL, TestNet};
use crate::fabric::{Layout, Memory, Placement};
use crate::ids::{Incarnation, Peer};
use crate::mailbox::{Config, PutEvent, Regions};

pub(super) const FIRST: Incarnation = Incarnation(1);

/// What survives every process: memory, and the sizes agreed on.
pub(super) struct World {
    pub(super) net: Box<TestNet>,
    pub(super) config: Config,
    pub(super) regions: Regions,
    /// How bytes appear.
    pub(super) placement: Placement,
}

impl World {
    /// For a test that does not look at it, which it outlives.
    pub(super) fn leaked(self) -> &'static Self {
        Box::leak(Box::new(self))
    }
}

/// Fresh memory for halves of `slots` slots, where bytes appear in any order.
pub(super) fn world(slots: u32) -> World {
    world_with(slots, Placement::Bytes)
}

pub(super) const PLACEMENTS: [Placement; 2] = [Placement::Bytes, Placement::WholeWords];

/// As [`world`], once for each placement.
pub(super) fn both_worlds(slots: u32) -> [World; 2] {
    PLACEMENTS.map(|placement| world_with(slots, placement))
}

pub(super) fn world_with(slots: u32, placement: Placement) -> World {
    let config = Config::new(PEERS as u16, slots, 40, STALL).unwrap();
    let mut layout = Layout::new(PEERS as u16);
    let regions = config.add_regions(&mut layout).unwrap();
    World { net: Box::new(TestNet::new(layout)), config, regions, placement }
}

pub(super) struct Cluster<'net> {
    world: &'net World,
    pub(super) owner: Owner<'net>,
    writers: Vec<Writer<'net>>,
    /// The fabrics of incarnations that ended, with their unfinished work.
    pub(super) ghosts: Vec<Stepped<'net>>,
}

impl<'net> Cluster<'net> {
    /// All members in their first incarnation, all admitted.
    pub(super) fn new(world: &'net World) -> Self {
        let mut cluster = Self {
            world,
            owner: Owner::attach(world, FIRST),
            writers: Vec::new(),
            ghosts: Vec::new(),
        };
        // No process had this memory before.
        cluster.owner.mailbox.handle_all_named();
        for peer in (1..PEERS as u16).map(Peer) {
            let mut writer = Writer::new(world, peer, FIRST);
            cluster.owner.admit(peer, FIRST);
            writer.admit_owner(FIRST);
            cluster.writers.push(writer);
        }
        cluster
    }

    pub(super) fn writer(&mut self, peer: Peer) -> &mut Writer<'net> {
        &mut self.writers[peer.index() - 1]
    }

    /// Bytes of a slot.
    pub(super) fn stride(&self) -> usize {
        self.world.config.stride() as usize
    }

    /// What the reservation word holds.
    pub(super) fn count(&self) -> u64 {
        let at = self.world.regions.word();
        self.owner.fabric.load(at.region, at.offset)
    }

    /// The process of `peer` ends; it is not fenced yet.
    pub(super) fn crash(&mut self, peer: Peer) {
        self.world.net.lose(peer);
    }

    /// The owner fences the dead incarnation of `peer`, and the next one begins.
    pub(super) fn revive(&mut self, peer: Peer) {
        let incarnation = self.writer(peer).incarnation.next();
        let mut writer = Writer::new(self.world, peer, incarnation);
        self.owner.fence(peer);
        self.owner.admit(peer, incarnation);
        writer.admit_owner(self.owner.incarnation);
        let mut dead = core::mem::replace(self.writer(peer), writer);
        dead.fabric.linger();
        self.ghosts.push(dead.fabric);
    }

    /// The owner dies and a successor attaches to its memory. Returns the outcome of the puts that
    /// members of `alive` had under way; the others are not admitted.
    pub(super) fn succeed_owner(&mut self, alive: &[Peer]) -> Vec<(Peer, PutEvent)> {
        use crate::fabric::Fabric;
        let now = self.owner.now;
        let incarnation = self.owner.incarnation.next();
        self.owner = Owner::attach(self.world, incarnation);
        self.owner.now = now;
        let mut events = Vec::new();
        for peer in alive {
            let writer = &mut self.writers[peer.index() - 1];
            writer.fabric.fence(OWNER).unwrap();
            events.extend(writer.outbox.lose().map(|event| (*peer, event)));
            writer.admit_owner(incarnation);
            self.owner.admit(*peer, writer.incarnation);
        }
        self.owner.mailbox.handle_all_named();
        events
    }
}

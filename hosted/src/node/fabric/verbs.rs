//! The driver's fabric over a node's own segments, and which end of a pair may send first.
//!
//! ```text
//!   the higher rank                    the lower rank
//!   offer ─────────────────────────▶   accept, offer, admit: it can be reached, and sends nothing
//!   accept, admit   ◀───────────────── its offer: it can be reached
//!   its first write ── memory ──────▶  heard: from now on it may send, too
//! ```
//!
//! Work for a peer that is not ready to receive is lost after a quarter of a second, and the pair
//! with it. So the end that is ready first holds its work back, by reporting a full queue, until
//! the other end has written to it.

use std::sync::Arc;

use weft_core::fabric::{Completion, Fabric, FenceError, Layout, PostError, Work};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::Instant;
use weft_driver::{Device, DeviceChoice, EndError, RemoteEnd, VerbsFabric};

use super::VerbsError;
use crate::bootstrap::PairEnd;
use crate::cluster::Verbs;
use crate::shm::OwnMemory;

/// A node's endpoint over verbs.
#[derive(Debug)]
pub struct VerbsPort {
    fabric: VerbsFabric<OwnMemory>,
    /// Peers that were admitted and are not known to be ready.
    unheard: PeerSet,
}

fn open_device(name: Option<&str>) -> Result<Device, VerbsError> {
    let choice = DeviceChoice { name: name.map(str::to_owned), ..DeviceChoice::default() };
    Ok(Device::open(&choice)?)
}

impl VerbsPort {
    /// The endpoint `me` over its own memory, on its device of `verbs` or on the first one.
    ///
    /// # Errors
    /// [`VerbsError`].
    pub fn open(
        me: Peer,
        layout: &Layout,
        verbs: &Verbs,
        own: OwnMemory,
    ) -> Result<Self, VerbsError> {
        let device = open_device(verbs.device(me.0))?;
        let own = Arc::new(own);
        let fabric = VerbsFabric::new(me, layout.clone(), device, verbs.config(), own)?;
        Ok(Self { fabric, unheard: PeerSet::EMPTY })
    }

    /// Checks that `device`, or the first one, can be used.
    ///
    /// # Errors
    /// [`VerbsError`].
    pub fn check_device(device: Option<&str>) -> Result<(), VerbsError> {
        open_device(device).map(drop)
    }

    /// Makes the own end of the pair with that incarnation of `peer`.
    pub(in crate::node) fn offer(
        &mut self,
        peer: Peer,
        incarnation: Incarnation,
    ) -> Result<PairEnd, VerbsError> {
        let bytes = self.fabric.prepare(peer, incarnation)?.to_bytes();
        let found = bytes.len();
        Ok(PairEnd::new(bytes).ok_or(EndError::Length { found })?)
    }

    /// Takes the end that `peer` has made; `admit` then admits the peer.
    pub(in crate::node) fn accept(&mut self, peer: Peer, end: &PairEnd) -> Result<(), VerbsError> {
        Ok(self.fabric.connect(peer, RemoteEnd::from_bytes(end.as_bytes())?)?)
    }

    /// Holds work for `peer` back until it has written to this node.
    pub(in crate::node) fn await_word(&mut self, peer: Peer) {
        self.unheard.insert(peer);
    }

    /// The peers that cannot be reached any more, until fenced; this node itself may be among them.
    pub(in crate::node) fn lost(&self) -> PeerSet {
        self.fabric.lost()
    }

    pub(in crate::node) fn note_heard(&mut self, peer: Peer) {
        self.unheard.remove(peer);
    }
}

impl Fabric for VerbsPort {
    type Memory = OwnMemory;

    weft_core::delegate_fabric!(self => self.fabric);

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        if self.unheard.contains(peer) {
            work.op.check(self.fabric.layout(), peer).map_err(PostError::Rejected)?;
            return Err(PostError::Full);
        }
        self.fabric.post(peer, work)
    }

    fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        self.fabric.poll(now, done)
    }

    fn memory(&self) -> &OwnMemory {
        self.fabric.memory()
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        self.unheard.remove(peer);
        self.fabric.fence(peer)
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        self.fabric.admit(peer, incarnation)
    }
}

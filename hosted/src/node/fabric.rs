//! The fabric that carries a node's messages: shared memory or verbs, chosen by the cluster file.
//!
//! ```text
//!   NodeFabric ─┬ Shm    ShmFabric: peers' segments mapped by descriptor
//!               └ Verbs  VerbsPort: the driver's fabric over the same segments, registered
//! ```
//!
//! Either way the node's own memory is the supervisor's segments, so that it outlives a component.
//! In a build without the feature `verbs` the second kind cannot be made; its error says how to
//! build it.

mod error;

#[cfg(not(feature = "verbs"))]
mod absent;
#[cfg(feature = "verbs")]
mod verbs;

#[cfg(not(feature = "verbs"))]
pub use absent::VerbsPort;
#[cfg(feature = "verbs")]
pub use verbs::VerbsPort;

pub use error::VerbsError;

use weft_core::endpoint::Plan;
use weft_core::fabric::{
    Completion, Fabric, FenceError, Layout, Placement, PostError, Posted, Work,
};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::Instant;

use super::NodeError;
use crate::cluster::{Cluster, FabricKind};
use crate::shm::{NodeMemory, OwnMemory, ShmFabric};

/// The fabric of a hosted node.
#[derive(Debug)]
pub enum NodeFabric {
    /// Over memory that the processes of one host share.
    Shm(Box<ShmFabric>),
    /// Over RDMA devices.
    Verbs(Box<VerbsPort>),
}

impl NodeFabric {
    /// The fabric of node `me` of `cluster` in its incarnation `incarnation`, over its own memory.
    ///
    /// # Errors
    /// [`VerbsError`].
    pub fn open(
        cluster: &Cluster,
        me: Peer,
        incarnation: Incarnation,
        layout: &Layout,
        own: OwnMemory,
    ) -> Result<Self, VerbsError> {
        match cluster.fabric {
            FabricKind::Shm => {
                let mut fabric = ShmFabric::new(me, incarnation, layout.clone(), own, cluster.wait);
                // The thread that reads the link waits for the ends of processes.
                fabric.watch_on_demand();
                Ok(Self::Shm(Box::new(fabric)))
            }
            FabricKind::Verbs => {
                let port = VerbsPort::open(me, layout, &cluster.verbs, own)?;
                Ok(Self::Verbs(Box::new(port)))
            }
        }
    }

    /// Records that `peer` has written to this node's memory: it can be reached.
    pub(super) fn note_heard(&mut self, peer: Peer) {
        match self {
            Self::Shm(_) => {}
            Self::Verbs(port) => port.note_heard(peer),
        }
    }
}

/// Makes the fabric that the node's component will make, with a pair for every peer, and drops it
/// again: what the machine refuses is found before anything runs.
pub(super) fn rehearse(
    cluster: &Cluster,
    rank: u16,
    plan: &Plan,
    memory: &NodeMemory,
) -> Result<(), NodeError> {
    if cluster.fabric == FabricKind::Shm {
        return Ok(());
    }
    let own = OwnMemory::map(plan.layout(), &memory.grant_owner()?)?;
    let mut port = VerbsPort::open(Peer(rank), plan.layout(), &cluster.verbs, own)?;
    for peer in (0..plan.layout().peers()).filter(|peer| *peer != rank) {
        port.offer(Peer(peer), Incarnation(1))?;
    }
    Ok(())
}

impl Fabric for NodeFabric {
    type Memory = OwnMemory;

    fn me(&self) -> Peer {
        match self {
            Self::Shm(fabric) => fabric.me(),
            Self::Verbs(port) => port.me(),
        }
    }

    fn layout(&self) -> &Layout {
        match self {
            Self::Shm(fabric) => fabric.layout(),
            Self::Verbs(port) => port.layout(),
        }
    }

    #[inline]
    fn placement(&self) -> Placement {
        match self {
            Self::Shm(fabric) => fabric.placement(),
            Self::Verbs(port) => port.placement(),
        }
    }

    #[inline]
    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        match self {
            Self::Shm(fabric) => fabric.post(peer, work),
            Self::Verbs(port) => port.post(peer, work),
        }
    }

    #[inline]
    fn post_now(&mut self, peer: Peer, work: Work<'_>) -> Result<Posted, PostError> {
        match self {
            Self::Shm(fabric) => fabric.post_now(peer, work),
            Self::Verbs(port) => port.post_now(peer, work),
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        match self {
            Self::Shm(fabric) => fabric.poll(now, done),
            Self::Verbs(port) => port.poll(now, done),
        }
    }

    #[inline]
    fn memory(&self) -> &OwnMemory {
        match self {
            Self::Shm(fabric) => fabric.memory(),
            Self::Verbs(port) => port.memory(),
        }
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        match self {
            Self::Shm(fabric) => fabric.fence(peer),
            Self::Verbs(port) => port.fence(peer),
        }
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        match self {
            Self::Shm(fabric) => fabric.admit(peer, incarnation),
            Self::Verbs(port) => port.admit(peer, incarnation),
        }
    }

    #[inline]
    fn crc32c(&self, bytes: &[u8]) -> u32 {
        crate::shm::crc32c(bytes)
    }
}

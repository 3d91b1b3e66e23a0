//! Two endpoints over shared memory, each in its own memory, as supervisors keep it.

use weft::process::Pidfd;
use weft::shm::{NodeMemory, OwnMemory, RemoteMemory, ShmFabric, Wait};
use weft_core::endpoint::{Endpoint, Plan};
use weft_core::fabric::Fabric;
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::Duration;
use weft_core::{lane, mailbox};

pub(crate) type Member = Endpoint<ShmFabric, 16, 2>;

pub(crate) const A: Peer = Peer(0);
pub(crate) const B: Peer = Peer(1);
pub(crate) const FIRST: Incarnation = Incarnation(1);
pub(crate) const SECOND: Incarnation = Incarnation(2);

/// The memory of two nodes.
pub(crate) struct Pair {
    pub(crate) plan: Plan,
    memories: [NodeMemory; 2],
}

impl Pair {
    pub(crate) fn new() -> Self {
        let sizes = mailbox::Config::new(2, 16, 64, Duration::from_millis(1)).expect("sizes");
        let lanes = lane::Config::new(2, 8, 64).expect("sizes");
        let plan = Plan::new(sizes, lanes).expect("a layout");
        let memory = |name| NodeMemory::create(name, plan.layout()).expect("memory");
        let memories = [memory("weft-test-a"), memory("weft-test-b")];
        Self { plan, memories }
    }

    pub(crate) fn memory(&self, peer: Peer) -> &NodeMemory {
        &self.memories[peer.index()]
    }

    /// An incarnation of `peer`, over its memory.
    pub(crate) fn member(&self, peer: Peer, incarnation: Incarnation) -> Member {
        self.member_over(self.fabric(peer, incarnation), incarnation)
    }

    /// The fabric of an incarnation of `peer`, connected with no other.
    pub(crate) fn fabric(&self, peer: Peer, incarnation: Incarnation) -> ShmFabric {
        let layout = self.plan.layout();
        let grant = self.memory(peer).grant_owner().expect("descriptors");
        let own = OwnMemory::map(layout, &grant).expect("its own memory");
        ShmFabric::new(peer, incarnation, layout.clone(), own, Wait::Yield)
    }

    pub(crate) fn member_over<F: Fabric>(
        &self,
        fabric: F,
        incarnation: Incarnation,
    ) -> Endpoint<F, 16, 2> {
        let mut endpoint = Endpoint::new(fabric, &self.plan, incarnation);
        if incarnation == FIRST {
            // No process had this memory before.
            endpoint.handle_all_named();
        }
        endpoint
    }

    /// Connects `member` with the incarnation of `peer` that posts from `process`.
    pub(crate) fn admit(
        &self,
        member: &mut Member,
        peer: Peer,
        incarnation: Incarnation,
        process: Option<Pidfd>,
    ) {
        let memory = self.remote(peer, member.me());
        member.fabric().connect(peer, memory, process);
        member.admit(peer, incarnation).expect("it is connected");
    }

    /// The memory of `peer` as `me` reaches it.
    pub(crate) fn remote(&self, peer: Peer, me: Peer) -> RemoteMemory {
        let layout = self.plan.layout();
        let grant = self.memory(peer).grant(layout, me).expect("descriptors");
        RemoteMemory::map(layout, me, &grant).expect("a peer's memory")
    }
}

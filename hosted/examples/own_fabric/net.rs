//! What the endpoints of this fabric share: the memory of each, and who has admitted whom. With
//! RDMA this is the registered memory of each host, and its queue pairs.

use std::cell::Cell;

use weft::core::fabric::{Failure, Layout, Op};
use weft::core::ids::{Incarnation, Peer};

use crate::memory::{Regions, carry_out};

pub(crate) const PEERS: usize = 3;

/// What an endpoint has decided about a peer.
#[derive(Clone, Copy, Default)]
pub(crate) struct Link {
    pub(crate) is_open: bool,
    pub(crate) admitted: Incarnation,
    pub(crate) fenced: Incarnation,
}

pub(crate) struct Net {
    pub(crate) layout: Layout,
    memory: [Regions; PEERS],
    /// The incarnation of each endpoint, zero for one that has ended.
    running: [Cell<Incarnation>; PEERS],
    links: [[Cell<Link>; PEERS]; PEERS],
}

impl Net {
    pub(crate) fn new(layout: &Layout) -> Self {
        let (running, links) = Default::default();
        let memory = [(); PEERS].map(|()| Regions::new(layout));
        Self { layout: layout.clone(), memory, running, links }
    }

    /// Starts an incarnation of `me`, which has admitted no peer.
    pub(crate) fn start(&self, me: Peer, incarnation: Incarnation) {
        self.links[me.index()].iter().for_each(|link| link.set(Link::default()));
        self.running[me.index()].set(incarnation);
        self.link(me, me).set(Link { is_open: true, admitted: incarnation, ..Link::default() });
    }

    /// Ends the incarnation of `peer`; its memory stays.
    pub(crate) fn lose(&self, peer: Peer) {
        self.running[peer.index()].set(Incarnation(0));
    }

    pub(crate) fn memory(&self, of: Peer) -> &Regions {
        &self.memory[of.index()]
    }

    pub(crate) fn link(&self, from: Peer, to: Peer) -> &Cell<Link> {
        &self.links[from.index()][to.index()]
    }

    /// Carries out `op` if the incarnation of `to` that `from` has admitted runs, admits this one
    /// of `from`, and grants the right.
    pub(crate) fn attempt(
        &self,
        from: Peer,
        incarnation: Incarnation,
        to: Peer,
        op: &Op<'_>,
    ) -> Result<u64, Failure> {
        let (mine, theirs) = (self.link(from, to), self.link(to, from).get());
        let is_running = mine.get().admitted == self.running[to.index()].get();
        if !is_running || !theirs.is_open || theirs.admitted != incarnation {
            // F-6: until it is admitted again.
            mine.set(Link { is_open: false, ..mine.get() });
            return Err(Failure::Gone);
        }
        let is_granted = self.layout.allows(op.target().0.region, from, op.needs());
        let done = is_granted.then(|| carry_out(self.memory(from), self.memory(to), op));
        done.ok_or(Failure::AccessDenied)
    }
}

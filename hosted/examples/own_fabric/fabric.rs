//! The port: work takes effect inside `post`, and its completion waits in a queue.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use weft::core::fabric::{
    Completion, CompletionFlags, Fabric, FenceError, Layout, Placement, PostError, Work,
};
use weft::core::ids::{Incarnation, Peer};
use weft::core::time::Instant;

use crate::memory::Regions;
use crate::net::{Link, Net, PEERS};

/// Completions that an endpoint holds before `post` returns `Full`.
const DEPTH: usize = 64;

/// One incarnation of an endpoint.
pub(crate) struct Local {
    pub(crate) net: Rc<Net>,
    pub(crate) me: Peer,
    pub(crate) incarnation: Incarnation,
    pub(crate) done: VecDeque<Completion>,
}

impl Local {
    fn link(&self, peer: Peer) -> Result<&Cell<Link>, FenceError> {
        let is_known = peer.index() < PEERS && peer != self.me;
        is_known.then(|| self.net.link(self.me, peer)).ok_or(FenceError::UnknownPeer)
    }
}

impl Fabric for Local {
    type Memory = Regions;
    fn me(&self) -> Peer {
        self.me
    }
    fn layout(&self) -> &Layout {
        &self.net.layout
    }

    // Nothing looks while a write is under way.
    fn placement(&self) -> Placement {
        Placement::WholeWords
    }

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        work.op.check(&self.net.layout, peer).map_err(PostError::Rejected)?;
        if !self.net.link(self.me, peer).get().is_open {
            return Err(PostError::Gone);
        } else if self.done.len() == DEPTH {
            return Err(PostError::Full);
        }
        let outcome = self.net.attempt(self.me, self.incarnation, peer, &work.op);
        if outcome.is_err() || !work.flags.contains(CompletionFlags::QUIET) {
            self.done.push_back(Completion { id: work.id, peer, outcome });
        }
        Ok(())
    }

    fn poll(&mut self, _now: Instant, done: &mut [Completion]) -> usize {
        let count = done.len().min(self.done.len());
        done.iter_mut().zip(self.done.drain(..count)).for_each(|(place, it)| *place = it);
        count
    }
    fn memory(&self) -> &Regions {
        self.net.memory(self.me)
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        self.link(peer)?.update(|it| Link { is_open: false, fenced: it.admitted, ..it });
        Ok(())
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        let link = self.link(peer)?;
        let Link { admitted, fenced, .. } = link.get();
        if incarnation <= fenced || incarnation < admitted {
            return Err(FenceError::NotReady);
        }
        link.set(Link { is_open: true, admitted: incarnation, fenced });
        Ok(())
    }
}

//! The component and its peers: admitting incarnations, fencing them.
//!
//! Over shared memory an incarnation is admitted as soon as its memory is mapped. Over verbs two
//! ends of a pair must be made and exchanged first; the higher rank begins
//! (`node/fabric/verbs.rs`).

use std::os::fd::OwnedFd;

use weft_core::decision::RemoveError;
use weft_core::fabric::FenceError;
use weft_core::ids::{Incarnation, Peer};
use weft_core::neb::EpochError;

use super::Component;
use super::events::Verdict;
use crate::bootstrap::PairEnd;
use crate::node::NodeError;
use crate::node::fabric::{NodeFabric, VerbsError};
use crate::node::link::FromComponent;
use crate::process::Pidfd;
use crate::shm::{Grant, RemoteMemory, SegmentError};

/// An incarnation to connect: its number, its boot, and what its memory is mapped by.
pub(super) type Connection = ((Incarnation, Incarnation), Vec<OwnedFd>);

/// Why a peer is not admitted: its fault or the machine's, and no reason for this component to end.
#[derive(Debug)]
enum PairError {
    Map(SegmentError),
    Verbs(VerbsError),
    Admit(FenceError),
    Remove(RemoveError),
    Count(EpochError),
}

impl std::fmt::Display for PairError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Map(error) => error.fmt(f),
            Self::Verbs(error) => error.fmt(f),
            Self::Admit(error) => error.fmt(f),
            Self::Remove(error) => error.fmt(f),
            Self::Count(error) => error.fmt(f),
        }
    }
}

impl Component {
    /// Fences the former incarnation of `peer` and admits the next, or begins to.
    pub(super) fn connect(
        &mut self,
        peer: Peer,
        (incarnation, boot): (Incarnation, Incarnation),
        fds: Vec<OwnedFd>,
    ) -> Result<(), NodeError> {
        if !self.boots.admits(peer, boot) {
            tracing::debug!(peer = peer.0, boot = boot.0, "of a boot that was removed meanwhile");
            return Ok(());
        }
        if !self.try_fence(peer) {
            self.behind_fence.insert(peer, ((incarnation, boot), fds));
            return Ok(());
        }
        // Not sooner: a removal of the boot before, which may still write here, must fence it.
        self.boots.handle_admitted(peer, boot);
        if let Err(error) = self.remove_returned(peer) {
            return self.report(peer, Err(PairError::Remove(error)));
        }
        if let Err(error) = self.count_returned(peer) {
            return self.report(peer, Err(PairError::Count(error)));
        }
        let begun = match self.endpoint.fabric().whole() {
            NodeFabric::Shm(_) => {
                self.note_named(peer);
                self.map(peer, incarnation, fds)?
            }
            NodeFabric::Verbs(_) => {
                self.expected[peer.index()] = Some(incarnation);
                if self.endpoint.me() > peer { self.offer(peer, incarnation)? } else { Ok(()) }
            }
        };
        self.report(peer, begun)
    }

    /// Handles the end of a pair that `peer` has made in that incarnation.
    pub(super) fn handle_offer(
        &mut self,
        peer: Peer,
        incarnation: Incarnation,
        end: &PairEnd,
    ) -> Result<(), NodeError> {
        // For another incarnation, or repeated: its sender gets no reply.
        if self.expected.get(peer.index()) != Some(&Some(incarnation)) {
            return Ok(());
        }
        self.expected[peer.index()] = None;
        let admitted = if self.endpoint.me() > peer {
            self.admit_offered(peer, incarnation, end)
        } else {
            self.answer_offer(peer, incarnation, end)?
        };
        self.report(peer, admitted)
    }

    /// Fences `peer`: its incarnation has ended.
    pub(super) fn fence(&mut self, peer: Peer) {
        self.behind_fence.remove(&peer);
        self.try_fence(peer);
    }

    /// A fence that had failed holds: what waited for it goes on.
    pub(super) fn handle_fence_held(&mut self, peer: Peer) -> Result<(), NodeError> {
        // Not the next incarnation, which may have been admitted since.
        if !self.endpoint.admitted().contains(peer) {
            self.note_fenced(peer);
        }
        match self.behind_fence.remove(&peer) {
            Some((numbers, fds)) => self.connect(peer, numbers, fds),
            None => Ok(()),
        }
    }

    /// Reports every pair that was lost since the last call, once for each incarnation. Over shared
    /// memory a peer is lost with its process, and its supervisor reports it. Over verbs a pair may
    /// be lost while both incarnations go on, and with no work in it that would show the loss.
    pub(super) fn note_losses(&mut self) -> Result<(), NodeError> {
        let NodeFabric::Verbs(port) = self.endpoint.fabric().whole() else { return Ok(()) };
        let lost = port.lost();
        if lost.contains(self.endpoint.me()) {
            // Without the loopback pair the own mailbox stops, and it cannot be made again.
            return Err(NodeError::OwnPair);
        }
        let reported = std::mem::replace(&mut self.told_lost, lost);
        for peer in lost.iter().filter(|peer| !reported.contains(*peer)) {
            if let Some(incarnation) = self.membership.incarnation_of(peer) {
                self.tell(&FromComponent::Lost { peer: peer.0, incarnation: incarnation.0 })?;
            }
        }
        Ok(())
    }

    /// Fences what was admitted of `peer`; whether that holds. If not, the endpoint tries again.
    fn try_fence(&mut self, peer: Peer) -> bool {
        self.membership.handle_fenced(peer);
        if let Some(expected) = self.expected.get_mut(peer.index()) {
            *expected = None;
        }
        let fenced = self.endpoint.fence(peer);
        match fenced {
            Ok(()) => self.note_fenced(peer),
            Err(error) => {
                tracing::error!(peer = peer.0, %error, "not fenced; its tickets are waited for");
                self.note_named(peer);
            }
        }
        fenced.is_ok()
    }

    fn note_fenced(&mut self, peer: Peer) {
        self.events.handle_fenced(peer, Verdict::Ended);
        self.note_settled(peer);
    }

    fn report(&mut self, peer: Peer, done: Result<(), PairError>) -> Result<(), NodeError> {
        let Err(error) = done else { return Ok(()) };
        let error = error.to_string();
        self.tell(&FromComponent::Unreachable { peer: peer.0, error })
    }

    fn map(
        &mut self,
        peer: Peer,
        incarnation: Incarnation,
        mut fds: Vec<OwnedFd>,
    ) -> Result<Result<(), PairError>, NodeError> {
        let process = fds.pop().ok_or(NodeError::Link("a peer without a process"))?;
        let process = Pidfd::from_fd(process)?;
        let memory = RemoteMemory::map(self.plan.layout(), self.endpoint.me(), &Grant(fds));
        let memory = match memory {
            Ok(memory) => memory,
            Err(error) => return Ok(Err(PairError::Map(error))),
        };
        if let NodeFabric::Shm(fabric) = self.endpoint.fabric().whole() {
            fabric.connect(peer, memory, Some(process));
        }
        Ok(self.admit(peer, incarnation))
    }

    /// Makes the own end of the pair and sends it.
    fn offer(
        &mut self,
        peer: Peer,
        incarnation: Incarnation,
    ) -> Result<Result<(), PairError>, NodeError> {
        let NodeFabric::Verbs(port) = self.endpoint.fabric().whole() else { return Ok(Ok(())) };
        let end = match port.offer(peer, incarnation) {
            Ok(end) => end,
            Err(error) => return Ok(Err(PairError::Verbs(error))),
        };
        self.tell(&FromComponent::Offer { peer: peer.0, incarnation: incarnation.0, end })?;
        Ok(Ok(()))
    }

    /// Admits a peer that has answered the own offer: it is ready.
    fn admit_offered(
        &mut self,
        peer: Peer,
        incarnation: Incarnation,
        end: &PairEnd,
    ) -> Result<(), PairError> {
        if let NodeFabric::Verbs(port) = self.endpoint.fabric().whole() {
            port.accept(peer, end).map_err(PairError::Verbs)?;
        }
        self.admit(peer, incarnation)
    }

    /// Admits a peer that has made an offer, and only then answers: so the peer finds this end
    /// ready.
    fn answer_offer(
        &mut self,
        peer: Peer,
        incarnation: Incarnation,
        end: &PairEnd,
    ) -> Result<Result<(), PairError>, NodeError> {
        let NodeFabric::Verbs(port) = self.endpoint.fabric().whole() else { return Ok(Ok(())) };
        let made = port.offer(peer, incarnation).and_then(|mine| {
            port.accept(peer, end)?;
            port.await_word(peer);
            Ok(mine)
        });
        let mine = match made {
            Ok(mine) => mine,
            Err(error) => return Ok(Err(PairError::Verbs(error))),
        };
        if let Err(error) = self.admit(peer, incarnation) {
            return Ok(Err(error));
        }
        self.tell(&FromComponent::Offer { peer: peer.0, incarnation: incarnation.0, end: mine })?;
        Ok(Ok(()))
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), PairError> {
        self.endpoint.admit(peer, incarnation).map_err(PairError::Admit)?;
        self.membership.handle_admitted(peer, incarnation);
        self.note_settled(peer);
        Ok(())
    }
}

//! What the program of a member does itself, straight on the endpoint: put, take, broadcast,
//! deliver (M-4).
//!
//! Nothing here waits, allocates or makes a system call. What is taken lies in the endpoint, so it
//! is lent until the next call.

use weft_core::dirnet::{Role, View, ViewNumber};
use weft_core::ids::{Incarnation, Peer, PeerSet, Rank};
use weft_core::mailbox::{self, Receipt, UnknownReceipt};
use weft_core::neb;
use weft_core::time::Instant;

use super::{Component, Event};
use crate::clock::now_ns;
use crate::cluster::Cluster;
use crate::node::PEERS;
use crate::node::casts::has_room;
use crate::node::own_puts::PutError;
use crate::shm::TwoSlots;

/// The tag of what programs broadcast: no transfer of a client has it.
const PROGRAM_TAG: u64 = u64::from_le_bytes(*b"program\0");

/// Why a broadcast was not accepted. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BroadcastError {
    /// Some member has not taken what was broadcast before: poll, then try again.
    #[error("the window is full: a member has not delivered what was broadcast before")]
    WindowFull,
    /// The message is longer than a slot.
    #[error("the message is longer than {limit} bytes")]
    TooLong {
        /// The length of a slot: `neb.message_len`.
        limit: usize,
    },
    /// This node was removed or restarted, and takes no part in broadcasts any more.
    #[error("this node was removed or restarted, and takes no part in broadcasts any more")]
    Left,
}

impl Component {
    pub(crate) fn rank(&self) -> Rank {
        Rank(self.identity.me.0)
    }

    pub(crate) const fn incarnation(&self) -> Incarnation {
        self.identity.incarnation
    }

    pub(crate) const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Whether it stands in for a program that has finished.
    pub(crate) const fn has_finished(&self) -> bool {
        self.identity.finished
    }

    /// Whether its supervisor has ordered it to end.
    pub(crate) const fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Whether this boot of its node is over.
    pub(crate) const fn is_excluded(&self) -> bool {
        self.events.is_excluded()
    }

    /// Whether the DIR net has admitted it.
    pub(crate) fn is_admitted(&self) -> bool {
        let role = self.dirnet.as_ref().map(super::ComponentDirNet::role);
        matches!(role, Some(Role::Manager | Role::Backup))
    }

    /// The view that this member shows; none before the first.
    pub(crate) fn view(&self) -> Option<&View<PEERS>> {
        let view = self.dirnet.as_ref().map(super::ComponentDirNet::view)?;
        (view.number() != ViewNumber::default()).then_some(view)
    }

    /// Whether that view may be out of date.
    pub(crate) fn is_view_stale(&self) -> bool {
        self.dirnet.as_ref().is_none_or(|dirnet| dirnet.is_view_stale(now_ns()))
    }

    /// The manager, once it is known.
    pub(crate) fn manager(&self) -> Option<Rank> {
        let term = self.dirnet.as_ref().map(super::ComponentDirNet::term)?;
        (term.epoch > 0).then_some(term.claimant)
    }

    /// The members that this one exchanges messages with, itself included.
    pub(crate) fn members(&self) -> PeerSet {
        self.endpoint.admitted()
    }

    /// The next event that the program has not drained.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.next().or_else(|| self.tensor_event())
    }

    /// The program's record, where the cluster file has room for one.
    pub(crate) const fn state(&mut self) -> Option<&mut TwoSlots> {
        self.state.as_mut()
    }

    #[inline]
    pub(crate) fn put(&mut self, to: Rank, payload: &[u8]) -> Result<(), PutError> {
        if usize::from(to.0) >= self.cluster.nodes {
            return Err(PutError::NoSuchRank);
        }
        if self.events.has_finished(Peer(to.0)) {
            return Err(PutError::Finished);
        }
        self.own_puts.stage(&mut self.endpoint, Peer(to.0), payload, self.passed_ns)
    }

    pub(crate) fn unput(&mut self, to: Rank) -> usize {
        self.own_puts.unput(&mut self.endpoint, Peer(to.0))
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<mailbox::Message<'_>> {
        self.endpoint.take(Instant(self.passed_ns))
    }

    #[inline]
    pub(crate) fn take_run(
        &mut self,
        limit: u32,
        deal: impl FnMut(&mailbox::Message<'_>),
    ) -> Option<mailbox::Run> {
        self.endpoint.take_run(Instant(self.passed_ns), limit, deal)
    }

    #[inline]
    pub(crate) fn release(&mut self, receipt: Receipt) -> Result<(), UnknownReceipt> {
        self.endpoint.release(receipt)
    }

    pub(crate) fn release_all(
        &mut self,
        receipts: impl IntoIterator<Item = Receipt>,
    ) -> Result<(), UnknownReceipt> {
        self.endpoint.release_all(receipts)
    }

    pub(crate) fn broadcast(&mut self, payload: &[u8]) -> Result<u64, BroadcastError> {
        if !self.takes_part() {
            return Err(BroadcastError::Left);
        }
        let me = self.endpoint.me();
        let Some((broadcast, fabric)) = self.endpoint.broadcast() else {
            return Err(BroadcastError::Left);
        };
        let (sizes, _) = broadcast.layout();
        let standing = broadcast.standing(me).unwrap_or_default();
        if !has_room(standing, sizes.slots()) {
            return Err(BroadcastError::WindowFull);
        }
        let seq =
            broadcast.broadcast(fabric, PROGRAM_TAG, payload).map_err(|error| match error {
                neb::BroadcastError::WindowFull => BroadcastError::WindowFull,
                neb::BroadcastError::TooLong => {
                    BroadcastError::TooLong { limit: usize::from(sizes.message_len()) }
                }
            })?;
        self.casts.followed().note_staged(seq, self.passed_ns);
        // It is delivered at its origin once it is staged.
        while broadcast.take_from(fabric, me).is_some() {}
        Ok(seq)
    }

    /// Sends now what was refused to `peer` while only one side had admitted the other, or while
    /// the connection was cut.
    pub(super) fn broadcast_again(&mut self, peer: Peer) {
        if let Some((broadcast, _)) = self.endpoint.broadcast() {
            broadcast.handle_admitted(peer);
        }
    }

    /// The next broadcast of any other member.
    pub(crate) fn deliver(&mut self) -> Option<neb::Message<'_>> {
        let origin = self.deliverable()?;
        self.deliver_turn = origin.0 + 1;
        let (broadcast, fabric) = self.endpoint.broadcast()?;
        broadcast.take_from(fabric, origin)
    }

    /// A broadcast that was delivered here before, or broadcast from here, while its ring has it.
    pub(crate) fn delivered(&mut self, origin: Rank, seq: u64) -> Option<neb::Message<'_>> {
        let (broadcast, fabric) = self.endpoint.broadcast()?;
        broadcast.delivered(fabric, Peer(origin.0), seq)
    }

    /// The origin whose message is delivered next: each in turn.
    fn deliverable(&mut self) -> Option<Peer> {
        let (me, turn) = (self.endpoint.me(), self.deliver_turn);
        let (broadcast, _) = self.endpoint.broadcast()?;
        let peers = broadcast.layout().0.peers();
        let origins = (0..peers).map(|n| Peer((turn + n) % peers));
        origins.into_iter().find(|origin| *origin != me && broadcast.has_message(*origin))
    }

    /// Whether the program has anything to drain, take or deliver.
    pub(crate) fn is_due(&mut self) -> bool {
        // Before, it waits in `join`; without a program, clients take what arrives.
        let drains = self.identity.owned && self.is_admitted();
        drains
            && (!self.events.is_empty()
                || self.has_tensor_event()
                || self.endpoint.has_message(Instant(self.passed_ns))
                || self.deliverable().is_some()
                || self.own_tasks.is_due()
                || self.is_group_due())
    }
}

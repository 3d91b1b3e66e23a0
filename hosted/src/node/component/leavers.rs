//! Which nodes have left the broadcasts (N-7), and in which epochs nodes take part (N-14).
//!
//! ```text
//!   the DIR net's decision: node down, isolated ─▶ fence ─▶ it holds ─┐
//!   a later boot of the node is admitted ─▶ the earlier one is fenced ┴─▶ removed
//! ```
//!
//! Each boot of a node is an epoch of its own in the broadcasts and in its groups. Once it is over,
//! by decision of the manager or because its memory is gone, what it promised there may be broken,
//! and no member waits for it. The next boot takes part from where all members count it; until then
//! it is out, as a removed one is (`left_broadcasts`).
//!
//! With `membership = "fixed"` no node is removed, and all members are waited for. A later boot
//! below the same supervisor goes on with what the memory holds; below another one it knows of no
//! promise, takes no part, and is waited for. A host that has lost its note of the incarnations
//! counts them from 1 again, so their numbers cannot distinguish the two cases: peers identify a
//! memory by its name, and report to a node that it has another one.
//!
//! Whom a component counts is in its memory. One that is started again waits for all members at
//! first, which is slow and sound; the removed ones follow from the DIR net's database, or from the
//! boot that a peer comes back with.

use weft_core::decision::{Decision, RemoveError};
use weft_core::endpoint::Plan;
use weft_core::fabric::Fabric;
use weft_core::ids::{Incarnation, Peer};
use weft_core::neb;
use weft_core::neb::EpochError;

use super::{Component, Identity};
use crate::cluster::Membership;
use crate::node::abort_markers::AbortMarker;
use crate::node::control::{Fault, OriginStatus, Want};

/// The boot that takes part in broadcasts of a fixed membership.
const FIRST: Incarnation = Incarnation(1);

/// Whether a component with this identity takes part in broadcasts.
fn takes_part(membership: Membership, identity: &Identity) -> bool {
    membership == Membership::Decided || identity.memory_since <= FIRST
}

/// The epoch in the broadcasts of a node in that boot.
fn epoch(membership: Membership, boot: Incarnation) -> Incarnation {
    match membership {
        Membership::Decided => boot,
        Membership::Fixed => FIRST,
    }
}

/// Makes the memory of the broadcasts that of the present boot, before the endpoint is made.
///
/// # Errors
/// [`EpochError`]: this boot cannot take part.
pub(super) fn begin_epoch(
    fabric: &impl Fabric,
    plan: &Plan,
    membership: Membership,
    identity: &Identity,
) -> Result<(), EpochError> {
    let Some((sizes, at)) = plan.broadcast() else { return Ok(()) };
    neb::begin_epoch(fabric, sizes, at, epoch(membership, identity.component.boot))
}

impl Component {
    /// Counts the present boot of `peer` in the broadcasts, before its incarnation is admitted.
    pub(super) fn count_returned(&mut self, peer: Peer) -> Result<(), EpochError> {
        let boot = self.boots.admitted(peer);
        let epoch = epoch(self.cluster.neb.membership, boot);
        let Some((broadcast, fabric)) = self.endpoint.broadcast() else { return Ok(()) };
        let before = broadcast.epoch(peer);
        broadcast.handle_epoch(&*fabric, peer, epoch)?;
        if broadcast.epoch(peer) != before {
            tracing::info!(peer = peer.0, boot = boot.0, "counted in the broadcasts");
            // Its key is agreed on for that boot.
            self.keys.forget(peer);
        }
        Ok(())
    }

    /// Removes the earlier boot of `peer`, which is fenced, before the next incarnation is
    /// admitted.
    pub(super) fn remove_returned(&mut self, peer: Peer) -> Result<(), RemoveError> {
        let boot = self.boots.admitted(peer);
        if boot <= FIRST {
            return Ok(());
        }
        let term = self.dirnet.as_ref().map(super::ComponentDirNet::term).unwrap_or_default();
        let last = Incarnation(boot.0 - 1);
        self.endpoint.remove(Decision { term, removed: peer, last })
    }

    /// Whether this node takes part in broadcasts.
    pub(super) fn takes_part(&self) -> bool {
        takes_part(self.cluster.neb.membership, &self.identity)
    }

    /// Queues the abort marker of a client that has left; at a node that takes no part it is void.
    pub(super) fn execute(&mut self, number: u64, marker: AbortMarker) {
        if self.takes_part() {
            self.casts.execute(number, marker);
        } else {
            self.casts.void(number);
        }
    }

    /// Whether `what` is about broadcasts, and this node has left them.
    pub(super) fn has_left(&self, what: &Want) -> bool {
        let is_asked = matches!(
            what,
            Want::Broadcast { .. } | Want::Deliver { .. } | Want::Inject(Fault::Equivocate)
        );
        is_asked && !self.takes_part()
    }

    /// This node's state for every origin; nothing once it takes no part.
    pub(super) fn broadcasts(&mut self) -> Vec<OriginStatus> {
        if self.takes_part() { self.deliveries.status(&mut self.endpoint) } else { Vec::new() }
    }

    /// The nodes that have left the broadcasts and were not counted again, as far as this one
    /// knows; this one until all others count it.
    pub(super) fn leavers(&mut self) -> Vec<u16> {
        let me = self.endpoint.me();
        let takes_part = self.takes_part();
        let Some((broadcast, _)) = self.endpoint.broadcast() else { return Vec::new() };
        let live = broadcast.live();
        let is_out = !takes_part || !broadcast.is_open();
        let has_left = |peer: &Peer| !live.contains(*peer) || *peer == me && is_out;
        let peers = (0..broadcast.layout().0.peers()).map(Peer);
        peers.filter(has_left).map(|peer| peer.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use weft_core::dirnet::ComponentIncarnation;

    use super::*;

    #[test]
    fn every_boot_takes_part_and_where_all_are_waited_for_the_first_memory_does() {
        let identity = |boot, memory_since| Identity {
            me: Peer(0),
            incarnation: Incarnation(boot),
            component: ComponentIncarnation { boot: Incarnation(boot), generation: 0 },
            memory_since: Incarnation(memory_since),
            removed: Incarnation(0),
            tasks: 0,
            owned: false,
            finished: false,
        };
        let both =
            |identity| [Membership::Decided, Membership::Fixed].map(|it| takes_part(it, &identity));
        assert_eq!(both(identity(1, 1)), [true, true]);
        assert_eq!(both(identity(5, 1)), [true, true], "removed, below the same supervisor");
        assert_eq!(both(identity(5, 5)), [true, false], "below another one");
    }
}

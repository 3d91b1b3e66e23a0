//! The boots of each peer that are removed here: an admission decided before the removal is stale.
//!
//! ```text
//!   component                                  supervisor
//!   fence, Removed {peer, boot} ─────────────▶ admits no incarnation of that boot any more
//!          ◀── Connect {peer, boot} ─────────  decided before: refused here
//!          ◀── Acknowledged {peer, boot} ────  decided since: of a later boot
//!   FENCED to the manager
//! ```
//!
//! The link is ordered, so that after the acknowledgement no admission of a removed boot is under
//! way. What the manager does next, such as a reset, relies on that.

use weft_core::ids::{Incarnation, Peer, Rank};

use super::Component;
use crate::node::NodeError;

/// The last removed boot of each peer.
#[derive(Debug)]
pub(super) struct Removals {
    up_to: Vec<Incarnation>,
}

impl Removals {
    pub(super) fn new(nodes: usize) -> Self {
        Self { up_to: vec![Incarnation(0); nodes] }
    }

    /// Records that the boots of `peer` up to `boot` are fenced by decision.
    pub(super) fn handle_fenced(&mut self, peer: Peer, boot: Incarnation) {
        if let Some(up_to) = self.up_to.get_mut(peer.index()) {
            *up_to = boot.max(*up_to);
        }
    }

    /// Whether an incarnation that belongs to this boot of `peer` may be admitted.
    pub(super) fn admits(&self, peer: Peer, boot: Incarnation) -> bool {
        self.up_to.get(peer.index()).is_some_and(|up_to| boot > *up_to)
    }
}

impl Component {
    /// Records that the supervisor knows of the removal of `node` up to `boot`.
    pub(super) fn acknowledge(
        &mut self,
        now_ns: u64,
        node: Rank,
        boot: Incarnation,
    ) -> Result<(), NodeError> {
        self.with_dirnet(|dirnet, ground| dirnet.handle_acknowledged(now_ns, node, boot, ground))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The supervisor sent the admission before it received the removal.
    #[test]
    fn an_admission_that_was_under_way_when_its_boot_was_removed_is_refused() {
        let mut removals = Removals::new(2);
        let (one, other) = (Peer(0), Peer(1));
        assert!(removals.admits(one, Incarnation(3)));
        removals.handle_fenced(one, Incarnation(3));
        removals.handle_fenced(one, Incarnation(2));
        assert!(!removals.admits(one, Incarnation(3)), "the same boot");
        assert!(removals.admits(one, Incarnation(4)) && removals.admits(other, Incarnation(3)));
        assert!(!removals.admits(Peer(2), Incarnation(9)), "no such rank");
    }
}

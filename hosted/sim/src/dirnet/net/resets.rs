//! Resets: what a supervisor makes of its component's order, and what a manager must have done
//! before it gives one.

use weft_core::ids::{Incarnation, Rank};

use super::launcher::LaunchReport;
use super::{Net, NetNode};

impl Net {
    /// The supervisor of `by` passes the order on to the launcher, or to an operator.
    pub(super) fn order_reset(&mut self, by: u16, node: Rank, boot: Incarnation) {
        self.note(|| format!("{by} resets {node} in incarnation {boot}"));
        let it = self.node(node.0);
        it.reset_up_to = boot.max(it.reset_up_to);
        self.ledger.evidence.handle_reset(node, boot);
        self.report(by, LaunchReport::Reset(node, boot));
    }

    /// Checks that every live member that the manager knows in its current incarnation has fenced
    /// that boot.
    pub(super) fn check_fences(&mut self, by: u16, node: Rank, boot: Incarnation) {
        let manager = self.nodes[usize::from(by)].component.as_ref();
        let Some(manager) = manager else { return };
        let missing = self.nodes.iter().zip(0..).find(|&(it, at)| {
            let standing = manager.database().standing(Rank(at));
            let is_member =
                at != node.0 && standing.is_up() && standing.incarnation.boot.0 == it.boot;
            let has_fenced = it.has_fenced(node.0, boot);
            it.component.is_some() && is_member && !has_fenced
        });
        if let Some((_, at)) = missing {
            self.ledger.broken("fence", format!("{node} is reset and {at} has not fenced it"));
        }
    }
}

impl NetNode {
    /// The end of its supervisor's stall, if it is stalled.
    pub(super) fn stopped_until(&self, now: u64) -> Option<u64> {
        self.supervisor_stalls.map(|(_, until)| until).filter(|until| now < *until)
    }
}

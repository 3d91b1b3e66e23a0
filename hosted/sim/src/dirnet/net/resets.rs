//! Resets, and the supervisors that carry them out.

use weft_core::dirnet::{Fenced, Term};
use weft_core::ids::{Incarnation, Peer, Rank};

use super::{Flight, Net, Node};

impl Net {
    /// `at` learns that boot `boot` of `by` has fenced it, in `term`. Its boot ends, unless it has
    /// fenced that boot of `by` with precedence.
    pub(super) fn refuse(&mut self, at: u16, (by, boot): (u16, u32), term: Term) {
        let it = self.node(at);
        let (own, removed) = (Incarnation(it.boot), it.fenced.get(&by).copied());
        let Some(component) = &it.component else { return };
        let ours = removed
            .filter(|up_to| boot <= *up_to)
            .map(|up_to| Fenced { up_to: Incarnation(up_to), decided: Some(component.term()) });
        let theirs = Fenced { up_to: own, decided: Some(term) };
        if !ours.is_some_and(|ours| ours.outranks(Peer(at), theirs, Peer(by))) {
            it.removed = own;
            self.exclude(at);
        }
    }

    /// The boot of `node` is over: its peers have removed it.
    pub(super) fn exclude(&mut self, node: u16) {
        self.ledger.handle_excluded(Rank(node));
        let (now, incarnation) = (self.now, self.node(node).boot);
        let stopped = self.node(node).stopped_until(now).unwrap_or(now);
        self.crash(node);
        self.post_at(stopped + 300 * self.setting.unit, Flight::Boot { node, incarnation });
    }

    pub(super) fn reset(&mut self, by: u16, node: Rank, boot: Incarnation) {
        self.note(|| format!("{by} resets {node} in incarnation {boot}"));
        self.check_fences(by, node, boot);
        let incarnation = self.node(node.0).boot;
        let now = self.now;
        let is_ordered = self.node(by).stopped_until(now).is_none();
        if is_ordered && self.setting.resets_work && incarnation == boot.0 {
            self.crash(node.0);
            self.post_at(
                self.now + self.setting.reboot,
                Flight::Boot { node: node.0, incarnation },
            );
        }
    }

    /// Checks that every live member that the manager knows in its current incarnation has fenced
    /// that boot.
    fn check_fences(&mut self, by: u16, node: Rank, boot: Incarnation) {
        let manager = self.nodes[usize::from(by)].component.as_ref();
        let Some(manager) = manager else { return };
        let missing = self.nodes.iter().zip(0..).find(|(it, at)| {
            let standing = manager.database().standing(Rank(*at));
            let is_member =
                *at != node.0 && standing.is_up() && standing.incarnation.boot.0 == it.boot;
            let has_fenced = it.fenced.get(&node.0).is_some_and(|up_to| boot.0 <= *up_to);
            it.component.is_some() && is_member && !has_fenced
        });
        if let Some((_, at)) = missing {
            self.ledger.broken("fence", format!("{node} is reset and {at} has not fenced it"));
        }
    }
}

impl Node {
    /// The end of its supervisor's stall, if it is stalled.
    pub(super) fn stopped_until(&self, now: u64) -> Option<u64> {
        self.supervisor_stalls.map(|(_, until)| until).filter(|until| now < *until)
    }
}

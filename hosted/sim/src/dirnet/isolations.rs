//! Isolations and releases, checked against what managers have decided (X-11).
//!
//! ```text
//!  known at a node: isolated with number 3     ─▶ isolated there, whatever else it hears, …
//!  and later: released up to 3, by any manager ─▶ … until this: free again
//! ```
//!
//! What a node knows it has saved, so it knows it after a restart, too, unless its newest snapshot
//! was damaged. A node that any other knows to be isolated, and that no manager has released, is
//! held: at rest no node takes it for a member.

use weft_core::dirnet::{Members, Role};
use weft_core::ids::{Incarnation, Rank};

use super::net::Machine;

/// The isolations that nodes know, and the releases that managers have decided.
#[derive(Debug)]
pub(super) struct Isolations {
    /// For each node, the number of the last isolation of each node that it knows; zero for none.
    known: Vec<Vec<Incarnation>>,
    /// For each node, the number up to which its isolations are over.
    released: Vec<Incarnation>,
}

impl Isolations {
    pub(super) fn new(nodes: usize) -> Self {
        let never = vec![Incarnation(0); nodes];
        Self { known: vec![never.clone(); nodes], released: never }
    }

    /// A manager has released `node` from its isolations up to `up_to`.
    pub(super) fn handle_released(&mut self, node: Rank, up_to: Incarnation) {
        let released = &mut self.released[usize::from(node.0)];
        *released = up_to.max(*released);
    }

    /// The newest snapshot of `node` was damaged when its component started.
    pub(super) fn handle_memory_lost(&mut self, node: Rank) {
        self.known[usize::from(node.0)].fill(Incarnation(0));
    }

    /// What is wrong with the isolations that `component` knows, if anything.
    pub(super) fn judge(&mut self, component: &Machine) -> Option<String> {
        let me = component.me();
        let known = &mut self.known[usize::from(me.0)];
        for ((node, known), released) in (0..).map(Rank).zip(known).zip(&self.released) {
            let standing = component.database().standing(node);
            if *released < standing.released() {
                let up_to = standing.released();
                return Some(format!("node {me} holds {node} released up to {up_to}; it is not"));
            }
            *known = standing.isolation().unwrap_or_default().max(*known);
            let level = standing.level;
            if standing.isolation().is_none() && standing.released() < *known {
                return Some(format!("{node} is isolated since {known}, and {level:?} at {me}"));
            }
            let is_member = matches!(component.role(), Role::Manager | Role::Backup);
            if node == me && is_member && standing.isolation().is_some() {
                return Some(format!("node {me} knows that it is isolated, and takes part"));
            }
        }
        None
    }

    /// The nodes that are isolated as far as any node knows.
    pub(super) fn held(&self) -> Members {
        let last = |node: usize| self.known.iter().map(|known| known[node]).max();
        let is_held = |node: &Rank| {
            let node = usize::from(node.0);
            last(node).is_some_and(|last| self.released[node] < last)
        };
        (0..self.released.len() as u16).map(Rank).filter(is_held).collect()
    }
}

//! What components report of fences and isolations, and what their supervisors make of it, checked
//! by its definition.

use weft_core::dirnet::{Component, Fenced};
use weft_core::ids::{Incarnation, Rank};

use super::{Net, NetNode};
use crate::dirnet::admission::{Up, is_stale};

impl Net {
    /// Reports what the component of `node` knows of isolations and releases.
    pub(super) fn report_standings(&mut self, node: u16) {
        let it = self.node(node);
        let (Some(process), Some(component)) = (&mut it.process, &it.component) else { return };
        let mut messages = Vec::new();
        for (rank, known) in (0..).map(Rank).zip(&mut process.standings) {
            let standing = component.database().standing(rank);
            let before = std::mem::replace(known, standing);
            messages.extend(Up::of_standing(rank, before, standing));
        }
        messages.into_iter().for_each(|message| self.up(node, message));
    }

    /// The component of `at` has fenced boots of `node` by decision.
    pub(super) fn note_fenced(&mut self, at: u16, node: Rank, boot: Incarnation) {
        let it = self.node(at);
        let term = it.component.as_ref().map(Component::term);
        // A component that hangs, or has ended, fences none.
        let (Some(process), Some(term)) = (&mut it.process, term) else { return };
        process.connections.remove(node.0, boot);
        it.component.iter_mut().for_each(|it| it.handle_carried_out(node, boot));
        self.up(at, Up::Removed(node.0, boot, term));
        self.drain(at);
    }

    /// No incarnation is refused for a lost session that the own component has not connected.
    pub(super) fn check_refusal(&mut self, node: u16, peer: u16, fenced: Fenced) {
        let starts = self.node(node).process.as_ref().is_some_and(|it| it.ready_at.is_none());
        if starts && fenced.decided.is_none() {
            let what = format!("{node}, which starts, refuses {peer} up to {}", fenced.up_to);
            self.ledger.broken("admission", what);
        }
    }

    /// What a supervisor knows only moves forward. As a boot ends, or the next one begins, removals
    /// are forgotten, and no isolation.
    pub(super) fn check_standings(&mut self, node: u16, has_ended: bool) {
        let Some(it) = &mut self.node(node).supervisor else { return };
        let mut stale = None;
        for (rank, known) in (0..).map(Rank).zip(&mut it.standings) {
            let standing = it.decider.standing(rank);
            let before = std::mem::replace(known, standing);
            if is_stale(before, standing, has_ended) {
                stale = Some(rank);
            }
        }
        if let Some(of) = stale {
            self.ledger.broken("standing", format!("{node} forgets what it knew of {of}"));
        }
    }
}

impl NetNode {
    /// Whether its component has fenced this boot of `peer`, or the one before it had when their
    /// supervisor acknowledged it.
    pub(super) fn has_fenced(&self, peer: u16, boot: Incarnation) -> bool {
        self.process.as_ref().is_some_and(|it| it.connections.has_removed(peer, boot))
            || self.supervisor.as_ref().is_some_and(|it| it.heard.has_acknowledged(peer, boot))
    }
}

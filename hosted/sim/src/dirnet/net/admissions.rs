//! What components report of fences and isolations, and what their supervisors make of it, checked
//! by its definition.

use std::collections::BTreeMap;

use weft_core::dirnet::{Announcement, Component, Fenced, Standing};
use weft_core::ids::{Incarnation, Rank};

use super::supervisors::Up;
use super::{Net, Node};

impl Net {
    /// Reports what the component of `node` knows of isolations and releases.
    pub(super) fn report_standings(&mut self, node: u16) {
        let it = self.node(node);
        let (Some(process), Some(component)) = (&mut it.process, &it.component) else { return };
        let mut messages = Vec::new();
        for (rank, known) in (0..).map(Rank).zip(&mut process.standings) {
            let standing = component.database().standing(rank);
            let before = std::mem::replace(known, standing);
            if let Some(boot) =
                standing.isolation().filter(|_| before.isolation() != standing.isolation())
            {
                messages.push(Up::Isolated(rank, boot));
            }
            if before.released() < standing.released() {
                messages.push(Up::Released(rank, standing.released()));
            }
        }
        messages.into_iter().for_each(|message| self.up(node, message));
    }

    /// The component of `at` has fenced boots of `node` by decision.
    pub(super) fn note_fenced(&mut self, at: u16, node: Rank, boot: Incarnation) {
        let it = self.node(at);
        let term = it.component.as_ref().map(Component::term);
        // A component that hangs, or has ended, fences none.
        let (Some(process), Some(term)) = (&mut it.process, term) else { return };
        process.connected.retain(|peer, it| *peer != node.0 || boot < it.boot);
        let last = process.removals.entry(node.0).or_default();
        *last = boot.max(*last);
        it.component.iter_mut().for_each(|it| it.handle_carried_out(node, boot));
        self.up(at, Up::Removed(node.0, boot, term));
        self.drain(at);
    }

    /// No incarnation is admitted whose removal was acknowledged, or whose node is isolated.
    pub(super) fn check_admission(&mut self, node: u16, peer: u16, announced: Announcement) {
        let Some(it) = &self.node(node).supervisor else { return };
        let of = |list: &BTreeMap<u16, Incarnation>| list.get(&peer).copied().unwrap_or_default();
        let is_removed = announced.boot <= of(&it.acknowledged);
        // A later boot may run on until it ends or contradicts.
        let is_isolated = of(&it.isolated) > of(&it.released) && announced.boot <= of(&it.isolated);
        let is_past = announced.boot < of(&it.released);
        if is_removed || is_isolated || is_past {
            let why = match (is_removed, is_isolated) {
                (true, _) => "removed",
                (_, true) => "isolated",
                _ => "before the released one",
            };
            let what = format!("{node} admits boot {} of {peer}, which is {why}", announced.boot);
            self.ledger.broken("admission", what);
        }
    }

    /// No incarnation is refused for a lost session that the own component has not connected.
    pub(super) fn check_refusal(&mut self, node: u16, peer: u16, fenced: Fenced) {
        let starts = self.node(node).process.as_ref().is_some_and(|it| it.ready_at.is_none());
        if starts && fenced.decided.is_none() {
            let what = format!("{node}, which starts, refuses {peer} up to {}", fenced.up_to);
            self.ledger.broken("admission", what);
        }
    }

    /// The supervisor of `node` begins a boot without the removals of the boot before, but forgets
    /// no isolation.
    pub(super) fn forget_removals(&mut self, node: u16) {
        let Some(it) = &mut self.node(node).supervisor else { return };
        it.acknowledged.clear();
        let mut forgotten = None;
        for (rank, known) in (0..).map(Rank).zip(&mut it.standings) {
            let standing = it.decider.standing(rank);
            let before = std::mem::replace(known, standing);
            let isolation = |it: Standing| (it.isolation(), it.released());
            if isolation(before) != isolation(standing) {
                forgotten = Some(rank);
            }
        }
        if let Some(of) = forgotten {
            self.ledger.broken("standing", format!("{node} forgets the isolations of {of}"));
        }
    }

    /// What a supervisor knows only moves forward.
    pub(super) fn check_standings(&mut self, node: u16) {
        let Some(it) = &mut self.node(node).supervisor else { return };
        let mut stale = None;
        for (rank, known) in (0..).map(Rank).zip(&mut it.standings) {
            let standing = it.decider.standing(rank);
            let before = std::mem::replace(known, standing);
            if standing.is_before(before) {
                stale = Some(rank);
            }
        }
        if let Some(of) = stale {
            self.ledger.broken("standing", format!("{node} forgets what it knew of {of}"));
        }
    }
}

impl Node {
    /// Whether its component has fenced this boot of `peer`, or the one before it had when their
    /// supervisor acknowledged it.
    pub(super) fn has_fenced(&self, peer: u16, boot: Incarnation) -> bool {
        let ends = |boots: &BTreeMap<u16, Incarnation>| {
            boots.get(&peer).is_some_and(|up_to| boot <= *up_to)
        };
        self.process.as_ref().is_some_and(|it| ends(&it.removals))
            || self.supervisor.as_ref().is_some_and(|it| ends(&it.acknowledged))
    }
}

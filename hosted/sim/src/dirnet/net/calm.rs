//! Recovery of a run: what makes it well again, and when it is.

use weft_core::dirnet::{Component, Role};
use weft_core::ids::Rank;
use weft_core::time::Instant;

use super::{Flight, LOOK_MS, Net};

/// How long one term must last where links stay cut: longer than it takes to lose a manager and to
/// pass over every candidate.
const STEADY_MS: u64 = 5_000;

impl Net {
    /// The periodic actions of transports and operators: a fenced incarnation learns of it, a node
    /// without a reset is started, an isolated one is released.
    pub(super) fn look_after(&mut self) {
        self.post_at(self.now + LOOK_MS * self.setting.unit, Flight::Look);
        for at in 0..self.nodes.len() as u16 {
            self.knock(at);
            self.report_stopped(at);
        }
        let is_time = self.now > self.setting.calm_from.saturating_add(1_000 * self.setting.unit);
        for node in 0..self.nodes.len() as u16 {
            let it = self.node(node);
            let is_dead = it.task.is_none();
            let life = it.boot;
            let is_old = (it.born + 5_000 * self.setting.unit) < self.now;
            if is_dead && is_time && is_old && !self.is_booting(node) {
                self.post_at(self.now + self.setting.unit, Flight::Boot { node, life });
            }
        }
        if is_time {
            self.release_forgotten();
        }
    }

    /// A component reports its supervisor if that has stalled for as long as a clone may take.
    fn report_stopped(&mut self, node: u16) {
        let (now, clone) = (self.now, self.setting.timing.clone.0);
        let it = self.node(node);
        let is_hung =
            it.supervisor_stalls.is_some_and(|(since, until)| since + clone <= now && now < until);
        if is_hung
            && it.component_stalls <= now
            && let Some(component) = &mut it.component
        {
            component.handle_supervisor_hung(Instant(now));
            self.drain(node);
        }
    }

    fn is_booting(&self, node: u16) -> bool {
        self.flights
            .values()
            .any(|flight| matches!(flight, Flight::Boot { node: n, .. } if *n == node))
    }

    fn knock(&mut self, at: u16) {
        let (life, soon) = (self.node(at).boot, self.now + self.setting.unit);
        for by in 0..self.nodes.len() as u16 {
            let is_cut = self.is_cut(at, by) || self.is_cut(by, at);
            let other = self.node(by);
            let is_fenced = other.fenced.get(&at).is_some_and(|up_to| life <= *up_to);
            let (boot, term) = (other.boot, other.component.as_ref().map(Component::term));
            if let Some(term) = term.filter(|_| is_fenced && !is_cut) {
                self.post_at(soon, Flight::Refused { at, by, boot, life, term });
            }
        }
    }

    /// All is well but for the isolated nodes: operators release them.
    pub(super) fn release_last(&mut self) {
        (self.well, self.waits_since) = (None, self.now);
        (0..self.nodes.len() as u16).for_each(|node| self.release(node));
    }

    /// Operators repeat a release that all nodes have forgotten. Where links stay cut they wait for
    /// nothing: without an isolated node the others may not reach each other. Nor do they where too
    /// few are left to decide anything.
    fn release_forgotten(&mut self) {
        let held = self.ledger.isolations.held();
        let left = self.nodes.len() - held.count() as usize;
        let waits = self.severed.is_empty() && left >= usize::from(self.setting.min_alive);
        for node in 0..self.nodes.len() as u16 {
            if !held.contains(Rank(node)) || !waits {
                self.release(node);
            }
        }
    }

    /// Whether all is well, and stays so where that is in doubt: links that stay cut could make
    /// managers of both their ends in turn, again and again.
    pub(super) fn stays_well(&mut self, is_well: bool) -> bool {
        let term = self.components().map(Component::term).max().filter(|_| is_well);
        let Some(term) = term else {
            self.well = None;
            return false;
        };
        let since = self.well.filter(|(_, before)| *before == term).map_or(self.now, |it| it.0);
        self.well = Some((since, term));
        self.severed.is_empty() || since + STEADY_MS * self.setting.unit < self.now
    }

    /// What is not well, if anything.
    pub(in crate::dirnet) fn missing(&self) -> Option<String> {
        let held = self.ledger.isolations.held();
        let mut components = Vec::new();
        for (it, node) in self.nodes.iter().zip(0..) {
            match &it.component {
                Some(_) if held.contains(Rank(node)) => {}
                Some(component) => components.push(component),
                None => return Some(format!("node {node} has no component")),
            }
        }
        let managers = components.iter().filter(|c| c.role() == Role::Manager).count();
        if managers != 1 {
            return Some(format!("{managers} managers"));
        }
        let manager = components.iter().find(|c| c.role() == Role::Manager)?;
        for component in &components {
            let me = component.me();
            if component.term() != manager.term() {
                return Some(format!("node {me} is in term {}", component.term()));
            }
            // A node that does not hear the manager learns of it only through others.
            if !self.meet(me, manager.me()) {
                continue;
            }
            if component.database().digest() != manager.database().digest() {
                return Some(format!("node {me} has another database"));
            }
            let removed = components.iter().find(|c| {
                let standing = component.database().standing(c.me());
                !standing.is_up() || standing.life != c.life()
            });
            let is_held = |node| component.database().standing(node).isolation().is_some();
            if let Some(node) = held.iter().find(|node| !is_held(*node)) {
                return Some(format!("node {me} does not know that {node} is isolated"));
            }
            if let Some(removed) = removed {
                return Some(format!("node {} is no member at {me}", removed.me()));
            }
        }
        None
    }
}

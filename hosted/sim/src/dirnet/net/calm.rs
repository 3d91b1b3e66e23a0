//! Recovery of a run: what makes it well again, and when it is.

use weft_core::dirnet::{Component, Level, Role};
use weft_core::ids::{Incarnation, Rank};
use weft_core::time::Instant;

use super::{LOOK_MS, Machine, Net, NetFlight, NetNode};
use crate::dirnet::graphs::reaches_all;

/// All nodes are members again within this time after the last fault.
const CALM_MS_MAX: u64 = 90_000;
/// A node that a manager holds removed is reset within this time after the last fault and the last
/// start or end of a node: all that the manager reaches have fenced it by then, or have been
/// removed as well.
const RESET_MS_MAX: u64 = 30_000;
/// An operator starts a dead node by hand after this time, although a manager holds it removed and
/// has not reset it: as a launcher does, since a member that no order reaches never fences (G-14).
const BY_HAND_MS: u64 = 45_000;
const EVENTS_MAX: u64 = 3_000_000;
/// The most events before that. A run has tens of thousands; messages that are answered without end
/// may let no time pass.
const STORM_EVENTS_MAX: u64 = 1_000_000;
/// How long one term must last where links stay cut: longer than it takes to lose a manager and to
/// pass over every candidate.
const STEADY_MS: u64 = 5_000;
/// How long a cluster at rest sends no frame before its run ends.
const QUIET_MS: u64 = 1_000;

impl Net {
    /// Whether the run is over: all is well and at rest, or it is too late for that.
    pub(super) fn is_over(&mut self) -> bool {
        let missing = self.missing();
        if self.stays_well(missing.is_none()) {
            if !self.ledger.isolations.held().is_empty() {
                self.release_last();
            } else if self.is_quiet() {
                return true;
            }
        }
        let since = self.waits_since.max(self.setting.calm_from);
        let is_late = self.now > since + CALM_MS_MAX * self.setting.unit;
        match missing {
            None if is_late => {
                self.ledger.broken("budget", "all is well, and frames are still sent".into());
            }
            Some(what) if is_late || self.events > EVENTS_MAX => {
                self.ledger.broken("progress", what);
            }
            None | Some(_) => {}
        }
        self.ledger.violation.is_some()
    }

    /// Checks that messages are not answered without end while there are faults.
    pub(super) fn check_events(&mut self) {
        if self.events > STORM_EVENTS_MAX {
            self.ledger.broken("budget", "frames are answered without end".into());
        }
    }

    /// The periodic actions of transports and operators: a fenced incarnation learns of it, a node
    /// without a reset is started, an isolated one is released.
    pub(super) fn look_after(&mut self) {
        self.post_at(self.now + LOOK_MS * self.setting.unit, NetFlight::Look);
        for at in 0..self.nodes.len() as u16 {
            self.meet_all(at);
            self.report_stopped(at);
        }
        let is_time = self.now > self.setting.calm_from.saturating_add(1_000 * self.setting.unit);
        for node in 0..self.nodes.len() as u16 {
            let it = &self.nodes[usize::from(node)];
            let is_old = it.died + self.setting.noticed_after() < self.now;
            if it.supervisor.is_none() && is_time && is_old {
                let since = it.died.max(self.setting.calm_from);
                let is_overdue = since + BY_HAND_MS * self.setting.unit < self.now;
                self.check_noticed(node);
                let waits = self.waits_for_reset(node) && !is_overdue;
                // The launcher does this by itself.
                if self.launcher.is_none() && !waits {
                    self.start_node(node);
                }
            }
        }
        if is_time {
            self.release_forgotten();
        }
    }

    /// Checks that a manager which hears others doubts a node that has been gone for long, or waits
    /// for its next incarnation.
    fn check_noticed(&mut self, node: u16) {
        let (boot, now) = (self.nodes[usize::from(node)].boot, self.now);
        let long_ago = now.saturating_sub(self.setting.noticed_after());
        let is_unnoticed = |it: &NetNode| {
            let Some(component) = &it.component else { return false };
            let standing = component.database().standing(Rank(node));
            let is_up = standing.is_up() && standing.incarnation.boot.0 == boot;
            let stalls = it.component_stalls.is_some_and(|(_, until)| until >= long_ago);
            let runs = !stalls && !it.has_dead_timers;
            component.role() == Role::Manager
                && self.ledger.manages_since(component.me(), Rank(node), long_ago)
                && runs
                && component.is_heard(Instant(now))
                && !component.suspects(Rank(node))
                && !component.expects(Rank(node))
                && is_up
        };
        if let Some(at) = self.nodes.iter().position(is_unnoticed) {
            let what =
                format!("node {node} has been gone for long, and manager {at} waits for nothing");
            self.ledger.broken("detection", what);
        }
    }

    /// Checks that a manager whose transport has just lost a member suspects it at once.
    pub(super) fn check_doubts(&mut self, at: u16, node: Rank) {
        let Some(component) = &self.nodes[usize::from(at)].component else { return };
        let is_member = component.database().standing(node).is_up() && !component.expects(node);
        let is_due = component.poll_timeout().is_some_and(|due| due.0 <= self.now);
        let doubts = component.suspects(node) || is_due;
        if component.role() == Role::Manager && is_member && !doubts {
            let what = format!("manager {at} has lost node {node}, and waits for its silence");
            self.ledger.broken("detection", what);
        }
    }

    /// Whether a manager holds this dead node removed and has not ordered its reset since: then
    /// no operator starts it. Checks that this does not last where links let fences arrive.
    fn waits_for_reset(&mut self, node: u16) -> bool {
        let it = &self.nodes[usize::from(node)];
        let boot = Incarnation(it.boot);
        let holds = |it: &NetNode| {
            let Some(component) = &it.component else { return false };
            let standing = component.database().standing(Rank(node));
            let is_removed = standing.level == Level::Down && standing.incarnation.boot == boot;
            component.role() == Role::Manager && is_removed
        };
        let manager = self.nodes.iter().position(holds).filter(|_| it.reset_up_to < boot);
        let changes = self.nodes.iter().map(|it| it.began.max(it.died));
        let since = changes.fold(self.setting.calm_from, u64::max);
        let is_late = since + RESET_MS_MAX * self.setting.unit < self.now;
        if let Some(at) = manager.filter(|at| is_late && self.reaches_all(*at as u16)) {
            let what = format!("manager {at} holds node {node} removed, and does not reset it");
            self.ledger.broken("reset", what);
        }
        manager.is_some()
    }

    /// Whether orders of `at` can reach every other component, and answers come back.
    fn reaches_all(&self, at: u16) -> bool {
        let runs = |node: &u16| self.nodes[usize::from(*node)].component.is_some();
        let all = Vec::from_iter((0..self.nodes.len() as u16).filter(runs));
        let is_severed = |from, to| self.severed.contains(&(from, to));
        reaches_all(at, &all, is_severed) && reaches_all(at, &all, |from, to| is_severed(to, from))
    }

    /// A component reports its supervisor if that has stalled for as long as a clone may take.
    fn report_stopped(&mut self, node: u16) {
        let (now, clone) = (self.now, self.setting.timing.clone.0);
        let it = self.node(node);
        let is_hung =
            it.supervisor_stalls.is_some_and(|(since, until)| since + clone <= now && now < until);
        if is_hung
            && it.component_stalls_until(now).is_none()
            && let Some(component) = &mut it.component
        {
            component.handle_supervisor_hung(Instant(now));
            self.drain(node);
        }
    }

    /// Whether no frame has been sent lately. Where links stay cut, witnesses are asked again and
    /// again.
    pub(super) fn is_quiet(&self) -> bool {
        !self.severed.is_empty() || self.last_frame + QUIET_MS * self.setting.unit < self.now
    }

    /// All is well but for the isolated nodes: operators release them.
    pub(super) fn release_last(&mut self) {
        (self.well, self.waits_since) = (None, self.now);
        (0..self.nodes.len() as u16).for_each(|node| self.release(node));
    }

    /// Operators repeat a release that all nodes have forgotten. Where links stay cut they wait for
    /// nothing: without an isolated node the others may not reach each other. Nor do they where too
    /// few are left to decide anything, or a manager reports that too few hear it.
    fn release_forgotten(&mut self) {
        let held = self.ledger.isolations.held();
        let left = self.nodes.len() - held.count() as usize;
        let is_unheard =
            |it: &Machine| it.role() == Role::Manager && !it.is_heard(Instant(self.now));
        let is_enough = left >= usize::from(self.setting.min_alive);
        let waits = self.severed.is_empty() && is_enough && !self.components().any(is_unheard);
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
                _ if held.contains(Rank(node)) => {}
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
            let (mine, its) = (component.database(), manager.database());
            let mut nodes = (0..self.nodes.len() as u16).map(Rank);
            let differs = nodes.any(|node| mine.record(node) != its.record(node));
            if differs || mine.digest() != its.digest() {
                return Some(format!("node {me} has another database"));
            }
            if component.view() != manager.view() {
                return Some(format!("node {me} shows another view than the manager"));
            }
            let removed = components.iter().find(|c| {
                let standing = component.database().standing(c.me());
                !standing.is_up() || standing.incarnation != c.incarnation()
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

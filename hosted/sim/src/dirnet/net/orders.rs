//! An operator's orders: the manager isolates and releases nodes, and hands over.

use weft_core::dirnet::{Change, Level, Reject, Role};
use weft_core::ids::Rank;
use weft_core::recovery::Verb;
use weft_core::script::order_node;
use weft_core::time::Instant;
use weft_core::vote::VoteMessage;

use super::{Machine, Net};
use crate::draws::Draws;
use crate::protocol::Violation;

impl Net {
    /// An operator has `node` isolated. Of several managers, the next one from `by` takes the
    /// order.
    pub(in crate::dirnet) fn isolate(&mut self, by: u16, node: u16) {
        let node = Rank(node);
        let Some(manager) = self.manager_from(by) else { return };
        let isolated = self.order(manager, |it, now| it.isolate(now, node));
        let manager = self.nodes[usize::from(manager)].component.as_ref();
        // It may have crashed between two outputs.
        let is_held = manager.is_none_or(|it| it.database().standing(node).isolation().is_some());
        if isolated == Ok(()) && !is_held {
            self.ledger.broken("isolation", format!("{node} is not isolated after the order"));
        }
    }

    /// An operator has `node` released by each manager that holds it isolated.
    pub(in crate::dirnet) fn release(&mut self, node: u16) {
        let node = Rank(node);
        for at in 0..self.nodes.len() as u16 {
            let manager = self.nodes[usize::from(at)].component.as_ref();
            let is_held =
                manager.is_some_and(|it| it.database().standing(node).level == Level::Isolated);
            if !is_held || !self.takes_orders(at) {
                continue;
            }
            // The release is a fact from the order on.
            let since = manager.and_then(|it| it.database().standing(node).isolation());
            self.ledger.isolations.handle_released(node, since.unwrap_or_default());
            if self.order(at, |it, now| it.release(now, node)) != Ok(()) {
                self.ledger.broken("isolation", format!("{at} does not release {node}"));
            }
        }
    }

    /// An operator has `node` made the manager, by the next manager from `by`; if that does not
    /// hear it, nothing changes.
    pub(in crate::dirnet) fn hand_over(&mut self, by: u16, node: u16) {
        let Some(manager) = self.manager_from(by) else { return };
        let before = self.nodes[usize::from(manager)].component.as_ref().map(Machine::term);
        let ordered = self.order(manager, |it, now| it.hand_over(now, Rank(node)));
        let after = self.nodes[usize::from(manager)].component.as_ref().map(Machine::term);
        self.note(|| format!("node {manager} hands over to {node}: {ordered:?}"));
        // It may have crashed between two outputs.
        if after.is_some() && after != before {
            self.ledger.broken("handover", format!("node {manager} has left its term by itself"));
        }
    }

    /// The first node from `by` that manages and takes orders.
    fn manager_from(&self, by: u16) -> Option<u16> {
        let count = self.nodes.len() as u16;
        (0..count).map(|step| (by + step) % count).find(|at| self.takes_orders(*at))
    }

    fn takes_orders(&self, at: u16) -> bool {
        let it = &self.nodes[usize::from(at)];
        let is_manager = it.component.as_ref().is_some_and(|it| it.role() == Role::Manager);
        is_manager
            && it.component_stalls_until(self.now).is_none()
            && it.stopped_until(self.now).is_none()
    }

    /// An input to the component of `at`, and what follows from it.
    pub(in crate::dirnet) fn order(
        &mut self,
        at: u16,
        order: impl FnOnce(&mut Machine, Instant) -> Result<(), Reject>,
    ) -> Result<(), Reject> {
        let now = Instant(self.now);
        let component = self.node(at).component.as_mut();
        let done = component.map_or(Err(Reject::NotManager), |component| order(component, now));
        self.drain(at);
        done
    }
}

/// What a script lab asks of the network.
impl Net {
    /// Nodes that can act as managers now, in ascending order.
    pub(in crate::dirnet) fn acting(&self) -> impl Iterator<Item = &Machine> {
        let acts = |at: &u16| self.takes_orders(*at);
        let nodes = (0..self.nodes.len() as u16).filter(acts);
        nodes.filter_map(|at| self.nodes[usize::from(at)].component.as_ref())
    }

    /// The boot of `node` that runs; none while it is down.
    pub(in crate::dirnet) fn boot_of(&self, node: u16) -> Option<u32> {
        let it = self.nodes.get(usize::from(node))?;
        it.task.as_ref().map(|_| it.boot)
    }

    /// The component of `node`, while one runs and does not stall.
    pub(in crate::dirnet) fn component_of(&self, node: u16) -> Option<&Machine> {
        let it = self.nodes.get(usize::from(node))?;
        let acts =
            it.component_stalls_until(self.now).is_none() && it.stopped_until(self.now).is_none();
        it.component.as_ref().filter(|_| acts)
    }

    /// The component of `node` sends a message of a vote.
    pub(in crate::dirnet) fn send_vote(&mut self, node: u16, to: u16, message: VoteMessage) {
        let sent = self.order(node, |it, now| {
            it.send_vote(now, Rank(to), message);
            Ok(())
        });
        debug_assert!(sent.is_ok(), "its component has just acted");
    }

    /// The node's supervisor reports a change of a task.
    pub(in crate::dirnet) fn change(&mut self, node: u16, change: Change) -> Result<(), Reject> {
        self.order(node, |it, now| it.handle_change(now, change))
    }

    /// A script orders `verb` of `node`, at the manager `by`; returns whether it is carried out.
    pub(in crate::dirnet) fn order_node(&mut self, by: u16, node: u16, verb: Verb) -> bool {
        match verb {
            Verb::Stop | Verb::Isolate => self.isolate(by, node),
            Verb::Start | Verb::Release => self.release(node),
            Verb::Restart => {
                return self.order(by, |it, now| order_node(it, Rank(node), verb, now)).is_ok();
            }
        }
        true
    }

    /// From now on, so many of a thousand messages are lost, and repeated.
    pub(in crate::dirnet) fn grow_rough(&mut self, lost: u64, repeated: u64) {
        (self.setting.lost, self.setting.repeated) = (lost, repeated);
    }

    /// From now on nothing is lost or repeated.
    pub(in crate::dirnet) fn calm_down(&mut self) {
        self.setting.calm_from = self.now;
    }

    /// The promise of the DIR net that was broken, if any.
    pub(in crate::dirnet) fn broken(&self) -> Option<&Violation> {
        self.ledger.violation.as_ref()
    }

    /// Whether a message on a way of the lab's own is lost.
    pub(in crate::dirnet) fn loses(&self, draws: &mut Draws) -> bool {
        self.now <= self.setting.calm_from && draws.chance(self.setting.lost, 1_000)
    }
}

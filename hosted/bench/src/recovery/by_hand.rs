//! What the measured script says, as a programmer would write it in Rust.

use weft_core::recovery::{Entity, Kind, Order, TaskFact, TaskState, Verb};

use super::facts::{Facts, NODES_USED, TASKS};
use super::script::TOGETHER;

/// The orders on `picture`.
pub(super) fn decide(picture: &Facts, orders: &mut Vec<Order>) {
    orders.clear();
    let mut decision = HandDecision { picture, orders, ordered: [false; TASKS] };
    for (task, fact) in (0..).zip(&picture.tasks) {
        decision.task(task, fact);
    }
    for number in 0..NODES_USED {
        decision.group(number);
        decision.node(number);
    }
    decision.all();
}

struct HandDecision<'f> {
    picture: &'f Facts,
    orders: &'f mut Vec<Order>,
    /// The first order of a task stands.
    ordered: [bool; TASKS],
}

impl HandDecision<'_> {
    fn task(&mut self, task: u8, fact: &TaskFact) {
        let node_number = usize::from(task) / TOGETHER;
        let node = &self.picture.nodes[node_number];
        let other = task ^ 1;
        let is_other_running = self.picture.tasks[usize::from(other)].state == TaskState::Running;
        match (fact.is_faulty(), fact.alpha < 3 << 8, fact.errors > 6) {
            (true, true, _) => self.order(task, Verb::Restart),
            (true, false, true) => {
                self.order(task, Verb::Isolate);
                self.warn(other, task);
            }
            (true, false, false) => self.order(task, Verb::Stop),
            (false, ..) => {}
        }
        if fact.state == TaskState::Killed && is_other_running && !node.is_isolated {
            self.order(task, Verb::Start);
        }
        if fact.errors > 4 && fact.error_kind == 7 && fact.alpha >= 5 << 7 {
            self.order(task, Verb::Isolate);
        }
        match (fact.phase, is_other_running) {
            (2, false) | (3, true) => self.orders.push(Order::Send { to: task, value: 1 }),
            _ => {}
        }
        if fact.has_fired && (node.is_member || usize::from(self.picture.manager) == node_number) {
            self.orders.push(Order::Clear { task, mark: fact.errors });
        }
        if fact.starts > 0 && fact.error_kind == 9 && fact.errors > 0 {
            self.warn(other, other);
        }
    }

    fn group(&mut self, number: usize) {
        let members = self.tasks_of(number);
        let is_present =
            |fact: &TaskFact| matches!(fact.state, TaskState::Running | TaskState::Waiting);
        if members.iter().any(TaskFact::is_faulty) && !members.iter().all(is_present) {
            self.warn_all(number);
        }
    }

    fn node(&mut self, number: usize) {
        let (node, tasks) = (&self.picture.nodes[number], self.tasks_of(number));
        let errors: u32 = tasks.iter().map(|fact| fact.errors).sum();
        let is_failing = node.is_member && errors > 12;
        if node.is_member && node.has_rebooted && tasks.iter().any(TaskFact::is_faulty) {
            self.warn_all(number);
        }
        if is_failing && usize::from(self.picture.manager) != number {
            self.orders.push(Order::Node { node: number as u8, verb: Verb::Restart });
        }
    }

    fn all(&mut self) {
        if self.picture.nodes[..NODES_USED].iter().any(|node| node.is_removed) {
            self.warn(0, 0);
        }
        for (task, fact) in (0..).zip(&self.picture.tasks) {
            if fact.state == TaskState::Isolated {
                self.order(task, Verb::Release);
            }
        }
    }

    fn tasks_of(&self, number: usize) -> &[TaskFact] {
        &self.picture.tasks[number * TOGETHER..][..TOGETHER]
    }

    fn order(&mut self, task: u8, verb: Verb) {
        let is_first = !std::mem::replace(&mut self.ordered[usize::from(task)], true);
        if is_first {
            let mark = self.picture.tasks[usize::from(task)].errors;
            self.orders.push(Order::Task { task, verb, mark });
        }
    }

    fn warn(&mut self, to: u8, about: u8) {
        let about = Entity { kind: Kind::Task, id: about };
        self.orders.push(Order::Notice { to, error: 0, about });
    }

    fn warn_all(&mut self, number: usize) {
        let first = (number * TOGETHER) as u8;
        (first..first + TOGETHER as u8).for_each(|task| self.warn(task, task));
    }
}

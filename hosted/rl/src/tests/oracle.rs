//! The meaning of a script, directly from its syntax tree: what the interpreter is compared with.
//!
//! Scripts here have numbers and no names, so nothing is resolved. It shares with the interpreter
//! only the facts and the orders.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::recovery::{
    Comparison, Entity, FactName, Kind, Order, Picture, Status, TaskFact, TaskState, Verb,
};

use crate::tree::{Action, Aim, At, EntityName, Guard, Number, Section, Sum};

pub(crate) type Facts = Picture<3, 8>;

/// What a script of the tests declares: tasks by node, groups, thresholds.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) nodes: u8,
    pub(crate) tasks: BTreeMap<u8, u8>,
    pub(crate) groups: BTreeMap<u8, Vec<u8>>,
    pub(crate) thresholds: BTreeMap<u8, u16>,
}

/// What an atom kept: kind, what satisfies, and what was asked.
#[derive(Clone, Debug)]
struct KeptSet {
    kind: Kind,
    ids: BTreeSet<u8>,
    scope: BTreeSet<u8>,
}

pub(crate) struct Oracle<'w> {
    pub(crate) world: &'w World,
    pub(crate) facts: &'w Facts,
    pub(crate) variables: [i32; 26],
    pub(crate) orders: Vec<Order>,
    ordered: BTreeSet<(Kind, u8)>,
    answered: BTreeSet<u8>,
}

/// The section ends here: an overflow, or a division by zero.
struct Fault;

impl<'w> Oracle<'w> {
    pub(crate) fn new(world: &'w World, facts: &'w Facts) -> Self {
        let (orders, ordered) = (Vec::new(), BTreeSet::new());
        Self { world, facts, variables: [0; 26], orders, ordered, answered: BTreeSet::new() }
    }

    /// All sections in order, then DEFAULT.
    pub(crate) fn run(mut self, sections: &[Section]) -> (Vec<Order>, [i32; 26]) {
        for section in sections {
            let _ended_early = self.section(section);
        }
        for task in self.world.tasks.keys().filter(|task| !self.answered.contains(task)) {
            let fact = self.fact(*task);
            if fact.is_faulty() {
                self.orders.push(Order::Builtin { task: *task, mark: fact.errors });
            }
        }
        (self.orders, self.variables)
    }

    fn fact(&self, task: u8) -> &'w TaskFact {
        &self.facts.tasks[usize::from(task)]
    }

    fn section(&mut self, section: &Section) -> Result<(), Fault> {
        let mut kept = Vec::new();
        for arm in &section.arms {
            let holds = match &arm.guard {
                Some(guard) => self.guard(&guard.it, &mut kept)?,
                None => true,
            };
            if holds {
                return arm.actions.iter().try_for_each(|action| self.action(&action.it, &kept));
            }
        }
        Ok(())
    }

    /// All atoms are looked at: nothing is short-circuited.
    fn guard(&self, guard: &Guard, kept: &mut Vec<KeptSet>) -> Result<bool, Fault> {
        Ok(match guard {
            Guard::Atom(status, At { it: EntityName { kind, number }, .. }) => {
                let id = number.as_ref().map(value);
                let set = self.kept(*status, *kind, id);
                let holds = match id {
                    Some(id) => self.has(*status, *kind, id),
                    None => !set.ids.is_empty(),
                };
                kept.push(set);
                holds
            }
            Guard::Compare(comparison, left, right) => {
                let is_alpha = |sum: &Sum| matches!(sum, Sum::Fact(FactName::Alpha, _));
                // An alpha-count is in 256ths, a decimal, too; all other numbers are whole.
                let parts = |sum: &Sum| {
                    let whole = !is_alpha(sum) && !matches!(sum, Sum::Decimal(_));
                    self.sum(sum)?.checked_mul(if whole { 256 } else { 1 }).ok_or(Fault)
                };
                let (left, right) = match is_alpha(left) || is_alpha(right) {
                    true => (parts(left)?, parts(right)?),
                    false => (self.sum(left)?, self.sum(right)?),
                };
                match comparison {
                    Comparison::Equal => left == right,
                    Comparison::NotEqual => left != right,
                    Comparison::Less => left < right,
                    Comparison::AtMost => left <= right,
                    Comparison::Greater => left > right,
                    Comparison::AtLeast => left >= right,
                }
            }
            Guard::IsManager(node) => {
                node.it.number.as_ref().map(value) == Some(self.facts.manager)
            }
            Guard::Not(inner) => !self.guard(inner, kept)?,
            Guard::And(left, right) => {
                let (left, right) = (self.guard(left, kept)?, self.guard(right, kept)?);
                left && right
            }
            Guard::Or(left, right) => {
                let (left, right) = (self.guard(left, kept)?, self.guard(right, kept)?);
                left || right
            }
        })
    }

    fn all(&self, kind: Kind) -> BTreeSet<u8> {
        match kind {
            Kind::Task => self.world.tasks.keys().copied().collect(),
            Kind::Group => self.world.groups.keys().copied().collect(),
            Kind::Node => (0..self.world.nodes).collect(),
        }
    }

    fn kept(&self, status: Status, kind: Kind, id: Option<u8>) -> KeptSet {
        let (kind, scope) = match (kind, id) {
            (Kind::Group, Some(id)) => {
                (Kind::Task, self.world.groups[&id].iter().copied().collect())
            }
            (kind, Some(id)) => (kind, BTreeSet::from([id])),
            (kind, None) => (kind, self.all(kind)),
        };
        let ids = scope.iter().copied().filter(|id| self.has(status, kind, *id)).collect();
        KeptSet { kind, ids, scope }
    }

    fn has(&self, status: Status, kind: Kind, id: u8) -> bool {
        match kind {
            Kind::Task => self.task_has(status, id),
            Kind::Group => {
                let members = &self.world.groups[&id];
                let mut count = members.iter().filter(|task| self.task_has(status, **task));
                match status {
                    Status::Transient => {
                        let faulty = members.iter().filter(|task| self.fact(**task).is_faulty());
                        let transient = count.count();
                        transient > 0 && transient == faulty.count()
                    }
                    Status::Faulty | Status::Started | Status::Restarted | Status::Fired => {
                        count.next().is_some()
                    }
                    _ => count.count() == members.len(),
                }
            }
            Kind::Node => {
                let fact = &self.facts.nodes[usize::from(id)];
                match status {
                    Status::Faulty => {
                        self.tasks_of(id).iter().any(|task| self.fact(*task).is_faulty())
                    }
                    Status::Running | Status::Present => fact.is_member,
                    Status::Killed => fact.is_removed,
                    Status::Isolated => fact.is_isolated,
                    _ => fact.is_member && fact.has_rebooted,
                }
            }
        }
    }

    fn task_has(&self, status: Status, task: u8) -> bool {
        let fact = self.fact(task);
        match status {
            Status::Faulty => fact.errors > fact.answered,
            Status::Running => fact.state == TaskState::Running,
            Status::Waiting => fact.state == TaskState::Waiting,
            Status::Killed => fact.state == TaskState::Killed,
            Status::Isolated => fact.state == TaskState::Isolated,
            Status::Finished => fact.state == TaskState::Finished,
            Status::Present => [TaskState::Running, TaskState::Waiting].contains(&fact.state),
            Status::Started => fact.starts != 0,
            Status::Restarted => fact.restarts != 0,
            Status::Fired => fact.has_fired,
            Status::Transient => {
                let threshold = self.world.thresholds.get(&task);
                fact.is_faulty() && threshold.is_some_and(|threshold| fact.alpha < *threshold)
            }
            Status::Rebooted => false,
        }
    }

    fn tasks_of(&self, node: u8) -> Vec<u8> {
        let tasks = self.world.tasks.iter().filter(|(_, at)| **at == node);
        tasks.map(|(task, _)| *task).collect()
    }

    fn sum(&self, sum: &Sum) -> Result<i32, Fault> {
        match sum {
            Sum::Number(number) => Ok(i32::from(value(&number.it))),
            Sum::Decimal(parts) => i32::try_from(parts.it).map_err(|_| Fault),
            Sum::Variable(variable) => Ok(self.variables[usize::from(variable.it)]),
            Sum::Neg(inner, _) => self.sum(inner)?.checked_neg().ok_or(Fault),
            Sum::Both(operator, left, right, _) => {
                let (left, right) = (self.sum(left)?, self.sum(right)?);
                let result = match operator {
                    '+' => left.checked_add(right),
                    '-' => left.checked_sub(right),
                    '*' => left.checked_mul(right),
                    _ => left.checked_div(right),
                };
                result.ok_or(Fault)
            }
            Sum::Fact(name, At { it: EntityName { kind, number }, .. }) => {
                let tasks = self.tasks(*kind, [number.as_ref().map_or(0, value)].into());
                let facts = tasks.iter().map(|task| self.fact(*task));
                Ok(match name {
                    FactName::ErrorCount => facts.map(|fact| fact.errors as i32).sum(),
                    FactName::ErrorKind => {
                        let last =
                            facts.filter(|fact| fact.errors > 0).max_by_key(|it| it.error_at);
                        last.map_or(0, |fact| i32::from(fact.error_kind))
                    }
                    FactName::Alpha => facts.map(|fact| i32::from(fact.alpha)).sum(),
                    _ => facts.map(|fact| fact.phase).sum(),
                })
            }
        }
    }

    fn tasks(&self, kind: Kind, ids: BTreeSet<u8>) -> BTreeSet<u8> {
        match kind {
            Kind::Task => ids,
            Kind::Group => ids.iter().flat_map(|id| self.world.groups[id].clone()).collect(),
            Kind::Node => ids.iter().flat_map(|id| self.tasks_of(*id)).collect(),
        }
    }

    fn aim(&self, aim: &At<Aim>, kept: &[KeptSet]) -> (Kind, BTreeSet<u8>) {
        let set = |number: &Option<u32>| {
            let number = number.map_or(kept.len(), |number| number as usize);
            kept[number - 1].clone()
        };
        match &aim.it {
            Aim::One(EntityName { kind, number }) => {
                (*kind, number.as_ref().map(value).into_iter().collect())
            }
            Aim::Set(number) => (set(number).kind, set(number).ids),
            Aim::Rest(number) => {
                let KeptSet { kind, ids, scope } = set(number);
                (kind, scope.difference(&ids).copied().collect())
            }
            Aim::Groups(number) => {
                let ids = set(number).ids;
                let holds = |members: &[u8]| members.iter().any(|task| ids.contains(task));
                let groups = self.world.groups.iter().filter(|(_, members)| holds(members));
                (Kind::Group, groups.map(|(group, _)| *group).collect())
            }
            Aim::Nodes(number) => {
                let KeptSet { kind, ids, .. } = set(number);
                let tasks = self.tasks(kind, ids);
                (Kind::Node, tasks.iter().map(|task| self.world.tasks[task]).collect())
            }
        }
    }

    fn action(&mut self, action: &Action, kept: &[KeptSet]) -> Result<(), Fault> {
        match action {
            Action::Change { verb, aim, warn } => self.change(*verb, aim, warn.as_ref(), kept),
            Action::Let { variable, value } => {
                self.variables[usize::from(*variable)] = self.sum(value)?;
            }
            Action::Send { value, aim } => {
                let value = self.sum(value)?;
                let (kind, ids) = self.aim(aim, kept);
                let sent = self.tasks(kind, ids).into_iter().map(|to| Order::Send { to, value });
                self.orders.extend(sent);
            }
            Action::Clear(aim) => {
                for task in self.aim(aim, kept).1 {
                    self.orders.push(Order::Clear { task, mark: self.fact(task).errors });
                    self.answered.insert(task);
                }
            }
            Action::Purge { count, aim } => {
                let count = count.as_ref().map(|count| self.sum(count)).transpose()?;
                let count = count.map_or(u32::MAX, |count| u32::try_from(count).unwrap_or(0));
                let (kind, ids) = self.aim(aim, kept);
                for task in self.tasks(kind, ids) {
                    let fact = self.fact(task);
                    let open = fact.errors.saturating_sub(fact.answered).min(count);
                    if open > 0 {
                        let mark = fact.answered + open;
                        self.orders.push(Order::Answer { task, mark });
                        if mark == fact.errors {
                            self.answered.insert(task);
                        }
                    }
                }
            }
            // A fault in a nested section ends the one around it as well.
            Action::Section(section) => return self.section(section),
            Action::Warn(_)
            | Action::WarnOf { .. }
            | Action::Log { .. }
            | Action::Call { .. }
            | Action::Pause { .. } => {}
        }
        Ok(())
    }

    fn change(&mut self, verb: Verb, aim: &At<Aim>, warn: Option<&At<Aim>>, kept: &[KeptSet]) {
        let (kind, ids) = self.aim(aim, kept);
        let about = ids.first().map(|id| Entity { kind, id: *id });
        if kind == Kind::Node {
            let verb = if verb == Verb::Stop { Verb::Isolate } else { verb };
            for node in ids {
                if node != self.facts.manager && self.ordered.insert((Kind::Node, node)) {
                    self.orders.push(Order::Node { node, verb });
                    for task in self.tasks_of(node) {
                        let mark = self.fact(task).errors;
                        let ends = matches!(verb, Verb::Restart | Verb::Isolate);
                        if self.answered.insert(task) && ends && self.fact(task).is_faulty() {
                            self.orders.push(Order::Answer { task, mark });
                        }
                    }
                }
            }
        } else {
            for task in self.tasks(kind, ids) {
                if self.ordered.insert((Kind::Task, task)) {
                    let mark = self.fact(task).errors;
                    self.orders.push(Order::Task { task, verb, mark });
                    self.answered.insert(task);
                }
            }
        }
        if let Some((warn, about)) = warn.zip(about) {
            let (kind, ids) = self.aim(warn, kept);
            let notices = self.tasks(kind, ids).into_iter();
            self.orders.extend(notices.map(|to| Order::Notice { to, error: 0, about }));
        }
    }
}

fn value(number: &Number) -> u8 {
    match number {
        Number::Written(number) => u8::try_from(*number).expect("the tests draw small numbers"),
        Number::Named(name) => panic!("the tests draw no names, as {name}"),
    }
}

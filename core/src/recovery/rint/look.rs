//! What a guard sees of the picture, and what a target names of it.

use super::Rint;
use crate::recovery::mutants::{REST_IS_THE_SET, REST_OF_EVERYTHING};
use crate::recovery::verify::kept_kind;
use crate::recovery::{
    Entity, Fact, FactName, IdSet, Kind, Program, Status, Subject, Target, TaskState,
};

impl<const NODES: usize, const TASKS: usize> Rint<NODES, TASKS> {
    /// Whether `entity` has `status`.
    pub(super) fn holds(&self, program: &Program<'_>, status: Status, entity: Entity) -> bool {
        let Entity { kind, id } = entity;
        match kind {
            Kind::Task => self.task_has(program, status, id),
            Kind::Node => self.node_has(program, status, id),
            Kind::Group => {
                let members = program.members(id);
                let has = |task: u8| self.task_has(program, status, task);
                let is_faulty = |task: &u8| self.has_errors(*task);
                match status {
                    // What is not faulty says nothing about the faults of the group.
                    Status::Transient => {
                        let mut faulty = members.iter().filter(is_faulty).peekable();
                        faulty.peek().is_some() && faulty.all(has)
                    }
                    _ if status.needs_one() => members.iter().any(has),
                    _ => members.iter().all(has),
                }
            }
        }
    }

    fn has_errors(&self, task: u8) -> bool {
        self.picture.tasks[usize::from(task)].is_faulty()
    }

    fn task_has(&self, program: &Program<'_>, status: Status, task: u8) -> bool {
        let fact = &self.picture.tasks[usize::from(task)];
        match status {
            Status::Faulty => fact.is_faulty(),
            Status::Running => fact.state == TaskState::Running,
            Status::Waiting => fact.state == TaskState::Waiting,
            Status::Killed => fact.state == TaskState::Killed,
            Status::Isolated => fact.state == TaskState::Isolated,
            Status::Finished => fact.state == TaskState::Finished,
            Status::Present => matches!(fact.state, TaskState::Running | TaskState::Waiting),
            Status::Started => fact.starts > 0,
            Status::Restarted => fact.restarts > 0,
            Status::Transient => {
                let rule = program.alpha_of(task);
                fact.is_faulty() && rule.is_some_and(|rule| fact.alpha < rule.threshold)
            }
            Status::Fired => fact.has_fired,
            Status::Rebooted => false,
        }
    }

    fn node_has(&self, program: &Program<'_>, status: Status, node: u8) -> bool {
        let fact = &self.picture.nodes[usize::from(node)];
        match status {
            Status::Faulty => program.tasks_of(node).iter().any(|task| self.has_errors(task)),
            Status::Running | Status::Present => fact.is_member,
            Status::Killed => fact.is_removed,
            Status::Isolated => fact.is_isolated,
            Status::Rebooted => fact.is_member && fact.has_rebooted,
            Status::Waiting
            | Status::Finished
            | Status::Started
            | Status::Restarted
            | Status::Transient
            | Status::Fired => false,
        }
    }

    /// Whether an entity of `kind` has `status`.
    pub(super) fn some_holds(&self, program: &Program<'_>, status: Status, kind: Kind) -> bool {
        everything(program, kind).iter().any(|id| self.holds(program, status, Entity { kind, id }))
    }

    /// What of the scope of an atom satisfies it: of a group, those of its tasks that do.
    pub(super) fn satisfying(&self, program: &Program<'_>, status: Status, of: Subject) -> IdSet {
        let kind = kept_kind(of);
        let has = |id: &u8| self.holds(program, status, Entity { kind, id: *id });
        self.scope(program, of).iter().filter(has).collect()
    }

    /// What an atom looks at.
    fn scope(&self, program: &Program<'_>, of: Subject) -> IdSet {
        match of {
            Subject::One(Entity { kind: Kind::Group, id }) => program.members(id),
            Subject::One(Entity { id, .. }) => [id].into_iter().collect(),
            Subject::Any(kind) => everything(program, kind),
        }
    }

    /// The entities that `target` names, and their kind.
    pub(super) fn aim(&self, program: &Program<'_>, target: Target) -> (Kind, IdSet) {
        let kept = |set: u8| self.sets.get(usize::from(set)).unwrap_or(&super::NOTHING_KEPT);
        match target {
            Target::One(Entity { kind, id }) => (kind, [id].into_iter().collect()),
            Target::Set(set) => (kept_kind(kept(set).of), kept(set).ids),
            Target::Rest(set) if REST_IS_THE_SET.is_planted() => {
                (kept_kind(kept(set).of), kept(set).ids)
            }
            Target::Rest(set) => {
                let kind = kept_kind(kept(set).of);
                let scope = if REST_OF_EVERYTHING.is_planted() {
                    everything(program, kind)
                } else {
                    self.scope(program, kept(set).of)
                };
                (kind, scope.without(&kept(set).ids))
            }
            Target::Groups(set) => {
                let meets = |group: &u8| program.members(*group).meets(&kept(set).ids);
                (Kind::Group, program.groups().iter().filter(meets).collect())
            }
            Target::Nodes(set) => {
                let tasks = super::act::tasks_in(program, kept_kind(kept(set).of), &kept(set).ids);
                let node = |task: u8| program.place_of(task).map(|(node, _)| node);
                (Kind::Node, tasks.iter().filter_map(node).collect())
            }
        }
    }

    /// The number that `fact` is; none if it is out of the program's reach.
    pub(super) fn look_up(&self, program: &Program<'_>, fact: Fact) -> Option<i32> {
        let Fact { name, of: Entity { kind, id } } = fact;
        let tasks = || super::act::tasks_in(program, kind, &[id].into_iter().collect());
        let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        let task = || self.picture.tasks.get(usize::from(id));
        Some(match name {
            FactName::ErrorCount => {
                let counts =
                    tasks().iter().map(|task| self.picture.tasks[usize::from(task)].errors);
                number(counts.fold(0, u32::saturating_add))
            }
            FactName::ErrorKind => {
                let facts = tasks().iter().map(|task| &self.picture.tasks[usize::from(task)]);
                let last = facts.filter(|fact| fact.errors > 0).max_by_key(|fact| fact.error_at);
                last.map_or(0, |fact| i32::from(fact.error_kind))
            }
            FactName::Alpha => i32::from(task()?.alpha),
            FactName::Phase => task()?.phase,
            FactName::Variable => *self.variables.get(usize::from(id))?,
            FactName::IsManager => i32::from(self.picture.manager == id),
        })
    }
}

/// All that a program knows of a kind.
fn everything(program: &Program<'_>, kind: Kind) -> IdSet {
    match kind {
        Kind::Task => *program.tasks(),
        Kind::Group => *program.groups(),
        Kind::Node => IdSet::first(usize::from(program.code().header().nodes)),
    }
}

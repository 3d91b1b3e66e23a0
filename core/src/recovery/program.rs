//! An image that the verifier has accepted, with its declarations as tables.

use heapless::Vec;

use super::limits::{GROUPS_MAX, NODES_MAX, TASKS_MAX, VERSIONS_MAX};
use super::{Algorithm, AlphaRule, Fallback, IdSet, Instruction, Rcode, Role, TimeoutName};
use crate::time::Duration;

/// Values of the DIR net's timing that a script sets, in µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timeouts([Option<u32>; TimeoutName::ALL.len()]);

impl Timeouts {
    /// The value of `name`, if the script sets it.
    #[must_use]
    pub const fn us(&self, name: TimeoutName) -> Option<u32> {
        self.0[name as usize]
    }

    /// Sets the value of `name` and returns the one before.
    pub const fn set(&mut self, name: TimeoutName, us: u32) -> Option<u32> {
        self.0[name as usize].replace(us)
    }
}

/// What a script declares of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DeclaredTask {
    pub(super) node: u8,
    pub(super) index: u8,
    pub(super) name: u16,
    pub(super) alpha: Option<AlphaRule>,
}

/// The heartbeats that a task owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Watchdog {
    /// The task.
    pub task: u8,
    /// Within what a beat must follow the last.
    pub every: Duration,
}

/// An N-version task: who votes, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VotingRule {
    /// Its number.
    pub number: u8,
    /// How the ballots become one outcome.
    pub algorithm: Algorithm,
    /// Numbers within this of each other agree.
    pub within: Option<u32>,
    /// The task that gets a notice of an outcome.
    pub on_success: Option<u8>,
    /// The task that gets a notice where there is none.
    pub on_error: Option<u8>,
    /// The tasks, and how long a round waits for each; version 1 first.
    pub versions: Vec<(u8, Duration), VERSIONS_MAX>,
}

/// A verified script. It borrows the image and keeps its declarations as tables.
#[derive(Clone, Debug)]
pub struct Program<'a> {
    pub(super) code: Rcode<'a>,
    pub(super) tasks: [Option<DeclaredTask>; TASKS_MAX],
    pub(super) declared: IdSet,
    pub(super) groups: [IdSet; GROUPS_MAX],
    pub(super) group_ids: IdSet,
    pub(super) roles: [Option<Role>; NODES_MAX],
    pub(super) fallback: Fallback,
    pub(super) timeouts: Timeouts,
    /// The index of the first word behind CODE.
    pub(super) entry: u16,
}

impl<'a> Program<'a> {
    pub(super) const fn new(code: Rcode<'a>) -> Self {
        Self {
            code,
            tasks: [None; TASKS_MAX],
            declared: IdSet::EMPTY,
            groups: [IdSet::EMPTY; GROUPS_MAX],
            group_ids: IdSet::EMPTY,
            roles: [None; NODES_MAX],
            fallback: Fallback::Builtin,
            timeouts: Timeouts([None; TimeoutName::ALL.len()]),
            entry: 0,
        }
    }

    /// The image.
    #[must_use]
    pub const fn code(&self) -> &Rcode<'a> {
        &self.code
    }

    /// The instruction at `index`, if there is one.
    #[inline]
    #[must_use]
    pub fn instruction(&self, index: u16) -> Option<Instruction> {
        // The verifier has decoded every word, and has seen that it is the form of its meaning.
        Instruction::decode_known(self.code.word(index)?)
    }

    /// The role of `node`.
    #[must_use]
    pub fn role(&self, node: u8) -> Option<Role> {
        self.roles.get(usize::from(node)).copied().flatten()
    }

    /// What answers an error that no section answered.
    #[must_use]
    pub const fn fallback(&self) -> Fallback {
        self.fallback
    }

    /// The values of the timing that the script sets.
    #[must_use]
    pub const fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// The tasks that are declared.
    #[must_use]
    pub const fn tasks(&self) -> &IdSet {
        &self.declared
    }

    /// The node of `task`, and which of the node's tasks it is, if it is declared.
    #[must_use]
    pub fn place_of(&self, task: u8) -> Option<(u8, u8)> {
        self.tasks[usize::from(task)].map(|declared| (declared.node, declared.index))
    }

    /// The name of `task`, if it is declared.
    #[must_use]
    pub fn name_of(&self, task: u8) -> Option<&'a str> {
        self.code.text(self.tasks[usize::from(task)]?.name)
    }

    /// The alpha-count of `task`, if it is declared.
    #[must_use]
    pub fn alpha_of(&self, task: u8) -> Option<AlphaRule> {
        self.tasks[usize::from(task)]?.alpha
    }

    /// The tasks of `group`; none if it is not declared.
    #[must_use]
    pub fn members(&self, group: u8) -> IdSet {
        self.groups.get(usize::from(group)).copied().unwrap_or_default()
    }

    /// The groups that are declared.
    #[must_use]
    pub const fn groups(&self) -> &IdSet {
        &self.group_ids
    }

    /// The declared tasks of `node`.
    #[must_use]
    pub fn tasks_of(&self, node: u8) -> IdSet {
        let is_there = |task: &u8| self.place_of(*task).is_some_and(|(at, _)| at == node);
        self.declared.iter().filter(is_there).collect()
    }

    /// N-version task `number`, if it is declared.
    #[must_use]
    pub fn voting(&self, number: u8) -> Option<VotingRule> {
        if self.code.header().nversions == 0 {
            return None;
        }
        let (mut algorithm, mut within, mut on_success, mut on_error) = (None, None, None, None);
        let mut versions = Vec::new();
        for declared in (0..self.entry).filter_map(|index| self.instruction(index)) {
            match declared {
                Instruction::Voting { number: of, algorithm: it } if of == number => {
                    algorithm = Some(it);
                }
                Instruction::Within { number: of, distance } if of == number => {
                    within = Some(distance);
                }
                Instruction::OnSuccess { number: of, task } if of == number => {
                    on_success = Some(task);
                }
                Instruction::OnError { number: of, task } if of == number => on_error = Some(task),
                Instruction::Version { number: of, task, us } if of == number => {
                    let version = (task, Duration::from_micros(u64::from(us)));
                    // The verifier admits no more than there is room for.
                    let _ = versions.push(version);
                }
                _ => {}
            }
        }
        let algorithm = algorithm?;
        Some(VotingRule { number, algorithm, within, on_success, on_error, versions })
    }

    /// The N-version task of which `task` is a version, and the number of the version.
    #[must_use]
    pub fn version_of(&self, task: u8) -> Option<(VotingRule, u8)> {
        let number = (0..self.entry).find_map(|index| match self.instruction(index)? {
            Instruction::Version { number, task: it, .. } if it == task => Some(number),
            _ => None,
        })?;
        let rule = self.voting(number)?;
        let at = rule.versions.iter().position(|(it, _)| *it == task)?;
        Some((rule, u8::try_from(at + 1).ok()?))
    }

    /// The watchdogs, in the order of the script.
    pub fn watchdogs(&self) -> impl Iterator<Item = Watchdog> {
        (0..self.entry).filter_map(|index| match self.instruction(index)? {
            Instruction::Watchdog { task, us, .. } => {
                Some(Watchdog { task, every: Duration::from_micros(u64::from(us)) })
            }
            _ => None,
        })
    }
}

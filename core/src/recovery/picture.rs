//! The facts that guards look at: a copy of the replicated database at one moment (RL-2).

use crate::time::Instant;

/// The state of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// It has not been started, or waits to be started again.
    #[default]
    Waiting,
    /// It runs.
    Running,
    /// It was stopped.
    Killed,
    /// It is isolated.
    Isolated,
    /// It has ended by itself, with success.
    Finished,
}

/// What is known of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaskFact {
    /// Its state.
    pub state: TaskState,
    /// How many errors it has had.
    pub errors: u32,
    /// How many of them were answered (RL-3).
    pub answered: u32,
    /// The kind of the last one.
    pub error_kind: u16,
    /// When the last one occurred, by any clock that is the same for all tasks of the picture.
    pub error_at: Instant,
    /// Its alpha-count at the moment of the picture, in 256ths.
    pub alpha: u16,
    /// The phase that it reported.
    pub phase: i32,
    /// How often it was started.
    pub starts: u32,
    /// How often it was started again since it was cleared.
    pub restarts: u32,
    /// Whether its watchdog fired and no order has answered that.
    pub has_fired: bool,
}

impl TaskFact {
    /// Whether it has unanswered errors.
    #[must_use]
    pub const fn is_faulty(&self) -> bool {
        self.errors > self.answered
    }
}

/// What is known of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeFact {
    /// Whether it is a member.
    pub is_member: bool,
    /// Whether it was removed.
    pub is_removed: bool,
    /// Whether it stands isolated.
    pub is_isolated: bool,
    /// Whether it is a member in a later boot than its first.
    pub has_rebooted: bool,
}

/// The database at one moment, by the numbers of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Picture<const NODES: usize, const TASKS: usize> {
    /// The node that manages.
    pub manager: u8,
    /// By node.
    pub nodes: [NodeFact; NODES],
    /// By number of the task.
    pub tasks: [TaskFact; TASKS],
}

impl<const NODES: usize, const TASKS: usize> Default for Picture<NODES, TASKS> {
    fn default() -> Self {
        Self {
            manager: 0,
            nodes: [NodeFact::default(); NODES],
            tasks: [TaskFact::default(); TASKS],
        }
    }
}

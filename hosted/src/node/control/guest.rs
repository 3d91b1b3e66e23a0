//! Tasks that a process outside the node runs (`weft guard`): its reports, and the node's orders.

use serde::{Deserialize, Serialize};

use super::{TaskFault, TaskState};

/// A report of a process that guards a task. The node answers with the next [`GuestOrder`], or
/// with [`GuestOrder::Wait`] if there is none in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestReport {
    /// It guards the task from now on, until its connection ends.
    Begin {
        /// The mark in the environment of what the task starts
        /// ([`Remains`](crate::process::Remains)).
        mark: String,
        /// As `restart.max` of a task.
        restart_max: usize,
        /// As `restart.within_s` of a task.
        restart_within_s: u64,
        /// As `beat_ms` of a task.
        beat_ms: Option<u64>,
    },
    /// The program has started.
    Started {
        /// Its process.
        pid: i32,
    },
    /// The program has ended, or cannot be started.
    Ended {
        /// The fault; none for status 0.
        fault: Option<TaskFault>,
    },
    /// The program has ended because the process that guards it was asked to end.
    Stopped,
    /// Nothing has changed.
    Waiting,
}

/// An order to the process that guards a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestOrder {
    /// Start the program.
    Start,
    /// Kill the program.
    Kill,
    /// End: the program is not started again, and the node has forgotten the task.
    Over {
        /// The last state of the task.
        state: TaskState,
    },
    /// No order came in time: report again.
    Wait,
}

//! The tasks under a node's guard: their state, their errors, and the orders about them.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

/// An order about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskOrder {
    /// Start it, unless it runs.
    Start,
    /// Kill it and do not start it again; one that is isolated or has finished stays so.
    Stop,
    /// Kill it and start it.
    Restart,
    /// Kill it as faulty; only an order starts it again.
    Isolate,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Its process runs.
    Running,
    /// It has no process, and is about to be started: for the first time, as soon as its node knows
    /// its earlier status; again after a pause; or when the process before has ended.
    Waiting,
    /// It was stopped by order.
    Killed,
    /// It failed too often, or was isolated by order.
    Isolated,
    /// It cannot be started, or is being killed because it sent no beat.
    Faulty,
    /// Its process has ended with status 0.
    Finished,
}

impl TaskState {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Running, Self::Waiting, Self::Killed, Self::Isolated, Self::Faulty, Self::Finished];

    /// The name for people and scripts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Killed => "killed",
            Self::Isolated => "isolated",
            Self::Faulty => "faulty",
            Self::Finished => "finished",
        }
    }
}

/// The effect of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEffect {
    /// It is done.
    Done,
    /// Nothing: the task was in that state already, or has ended in another way, which stands.
    Already {
        /// Its state.
        state: TaskState,
    },
}

/// The effect of a reported error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportEffect {
    /// The error was reported to the manager, which has the task restarted. It counts as a restart.
    Restart {
        /// How often the task was started again before.
        restarts: u64,
        /// How many more the task's restart intensity allows now.
        left: usize,
    },
    /// It was one more than the task's restart intensity allows: the task is isolated.
    Isolated,
    /// It was reported to the manager, whose recovery script decides.
    ToScript,
    /// Only a record: the task has no process that could be started again, or it is being ended.
    Noted,
}

/// A task as its node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: TaskState,
    /// Its process, when it has one.
    pub pid: Option<i32>,
    /// How often it was started again after it had failed.
    pub restarts: u64,
    /// How many errors it has met.
    pub errors: u64,
    /// How many of them the database never receives: no component took them while more than 64
    /// errors of the node's tasks waited for one.
    pub unrecorded: u64,
    /// The last of them, oldest first.
    pub last_errors: Vec<TaskError>,
}

/// An error of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskError {
    /// The error.
    pub fault: TaskFault,
    /// How long ago, in milliseconds.
    pub ago_ms: u64,
}

/// A fault of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskFault {
    /// It ended with a status that is not 0.
    Exited {
        /// The status.
        status: i32,
    },
    /// A signal ended it.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// Its program cannot be started.
    NotStarted {
        /// The system's error.
        why: String,
    },
    /// It sent no beat in time.
    Silent,
    /// As a version of an N-version task, it voted otherwise than the outcome of the round.
    Outvoted {
        /// The number of the version.
        version: u8,
        /// The round.
        round: u32,
    },
    /// As a version of an N-version task, it did not vote in time.
    NoVote {
        /// The number of the version.
        version: u8,
        /// The round.
        round: u32,
    },
    /// The task reported it.
    Reported {
        /// The number that was reported.
        error: u16,
    },
}

impl TaskFault {
    /// The fault of a process that ended so; none for status 0.
    #[must_use]
    pub fn of(status: ExitStatus) -> Option<Self> {
        match (status.code(), status.signal()) {
            (Some(0), _) => None,
            (Some(status), _) => Some(Self::Exited { status }),
            (None, signal) => Some(Self::Signalled { signal: signal.unwrap_or_default() }),
        }
    }
}

impl TaskFault {
    /// The number of the fault in the database: a task's own up to 0xF7FF, as far as it keeps to
    /// that range.
    pub(in crate::node) fn kind(&self) -> u16 {
        let low = |number: i32| u16::from(number.to_le_bytes()[0]);
        match self {
            Self::Reported { error } => *error,
            Self::Exited { status } => 0xFF00 | low(*status),
            Self::Signalled { signal } => 0xFE00 | low(*signal),
            Self::NotStarted { .. } => 0xFD00,
            Self::Silent => weft_core::script::SILENT,
            Self::Outvoted { version, .. } => 0xFB00 | u16::from(*version),
            Self::NoVote { version, .. } => 0xFB80 | u16::from(*version),
        }
    }
}

impl std::fmt::Display for TaskFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited { status } => write!(f, "ended with status {status}"),
            Self::Signalled { signal } => write!(f, "ended by signal {signal}"),
            Self::NotStarted { why } => write!(f, "not started: {why}"),
            Self::Silent => f.write_str("did not beat in time"),
            Self::Outvoted { version, round } => {
                write!(f, "was outvoted in round {round} (version {version})")
            }
            Self::NoVote { version, round } => {
                write!(f, "did not vote in time in round {round} (version {version})")
            }
            Self::Reported { error } => write!(f, "reported error {error}"),
        }
    }
}

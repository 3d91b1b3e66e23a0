//! `[[task]]`: a user's program that nodes keep under guard.
//!
//! Every node that a task names runs one copy of it. What is checked here is the definition alone;
//! whether the program exists is found when it is started, on the node where it is to run.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use super::limit::{Limit, LimitError};
use super::{Cluster, Restart, key};
use crate::explain::{Code, Explain};

/// A user's program under guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// `name`: names the task on every node; no two tasks have the same.
    pub name: TaskName,
    /// `program`: a path, or a name that is looked up in `PATH`.
    pub program: String,
    /// `args`: the program's arguments.
    pub args: Vec<String>,
    /// `nodes`: the ranks that run it; every node when it is not given.
    pub nodes: Option<Vec<u16>>,
    /// `restart`: how often it is started again after it has failed; at the next failure it is
    /// isolated.
    pub restart: Restart,
    /// `beat_ms`: within how many milliseconds it must say that it makes progress, 10 to
    /// 3 600 000, and so few that all restarts and a quarter more fit into their window; nothing is
    /// asked of it when it is not given.
    pub beat_ms: Option<u64>,
}

impl Task {
    /// The largest number of arguments.
    pub const ARGS_MAX: usize = 64;

    /// A task of every node that is restarted thrice within ten seconds.
    #[must_use]
    pub fn new(name: TaskName, program: String) -> Self {
        let restart = Restart { max: 3, within_s: 10 };
        Self { name, program, args: Vec::new(), nodes: None, restart, beat_ms: None }
    }

    /// What the documentation shows.
    pub(super) fn example() -> Self {
        let name = TaskName("worker".to_owned());
        let restart = Restart { max: 3, within_s: 30 };
        let (args, nodes) = (vec!["60".to_owned()], Some(vec![0, 2]));
        Self { name, program: "sleep".to_owned(), args, nodes, restart, beat_ms: Some(5000) }
    }

    /// Whether node `rank` runs it.
    #[must_use]
    pub fn runs_on(&self, rank: u16) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&rank))
    }

    /// Whether this task may follow the tasks `earlier` in a cluster of so many nodes.
    pub(super) fn check(&self, earlier: &[Self], nodes: usize) -> Result<(), LimitError> {
        key::TASKS.limit.admit(key::TASKS.path, earlier.len() as u64 + 1)?;
        if earlier.iter().any(|task| task.name == self.name) {
            return Err(Limit::Once.refuse(key::TASK_NAME, format!("{:?}", self.name.as_str())));
        }
        key::TASK_PROGRAM.limit.admit_text(key::TASK_PROGRAM.path, &self.program)?;
        for arg in &self.args {
            key::TASK_ARG.limit.admit_text(key::TASK_ARG.path, arg)?;
        }
        let numbers = [
            (key::TASK_ARGS, self.args.len() as u64),
            (key::TASK_RESTART_MAX, self.restart.max as u64),
            (key::TASK_RESTART_WITHIN_S, self.restart.within_s),
        ];
        let beat = self.beat_ms.map(|beat_ms| (key::TASK_BEAT_MS, beat_ms));
        numbers
            .into_iter()
            .chain(beat)
            .try_for_each(|(key, value)| key.limit.admit(key.path, value))?;
        self.check_silence()?;
        self.check_nodes(nodes)
    }

    /// Whether it is a legal task of any node.
    ///
    /// # Errors
    /// [`LimitError`].
    pub fn check_alone(&self) -> Result<(), LimitError> {
        self.check(&[], 1)
    }

    /// Between the first failure that counts and the one that is too many, a task that never beats
    /// is silent once for every restart; pauses take up to a quarter of the window besides.
    fn check_silence(&self) -> Result<(), LimitError> {
        let Restart { max, within_s } = self.restart;
        let (Some(beat_ms), Some(restarts)) = (self.beat_ms, NonZeroU64::new(max as u64)) else {
            return Ok(());
        };
        let restarts = restarts.get();
        let limit = Limit::Silence {
            max_ms: (3_000 * within_s - 1) / (4 * restarts),
            restarts,
            within_s,
            within_s_min: 4 * restarts * beat_ms / 3_000 + 1,
        };
        limit.admit(key::TASK_BEAT_MS.path, beat_ms)
    }

    fn check_nodes(&self, nodes: usize) -> Result<(), LimitError> {
        let ranks = self.nodes.as_deref().unwrap_or_default();
        let limit = Limit::Range { min: 0, max: nodes.saturating_sub(1) as u64 };
        for (index, rank) in ranks.iter().enumerate() {
            limit.admit(key::TASK_NODES, u64::from(*rank))?;
            if ranks[..index].contains(rank) {
                return Err(Limit::Once.refuse(key::TASK_NODES, rank.to_string()));
            }
        }
        Ok(())
    }
}

/// 1 to 32 characters of `a-z 0-9 _ -`, the first a letter or a digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskName(String);

impl TaskName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TaskName {
    type Err = TaskNameError;

    /// The alphabet of a cluster's name: a task's name is a word of commands, too.
    fn from_str(text: &str) -> Result<Self, TaskNameError> {
        match text.parse::<super::ClusterName>() {
            Ok(name) => Ok(Self(name.to_string())),
            Err(_) => Err(TaskNameError { name: text.chars().take(48).collect() }),
        }
    }
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no task's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no task's name")]
pub struct TaskNameError {
    /// The beginning of the text.
    pub name: String,
}

impl Explain for TaskNameError {
    fn code(&self) -> Code {
        Code::ClusterFile
    }

    fn cure(&self) -> String {
        format!(
            "use 1 to {} characters of a-z, 0-9, '_' and '-', starting with a letter or a digit",
            super::ClusterName::LEN_MAX
        )
    }
}

impl Cluster {
    /// The largest number of tasks.
    pub const TASKS_MAX: usize = 16;

    /// Whether every task may follow those before it.
    pub(super) fn check_tasks(&self) -> Result<(), LimitError> {
        let mut numbered = self.tasks.iter().enumerate();
        numbered.try_for_each(|(index, task)| task.check(&self.tasks[..index], self.nodes))
    }
}

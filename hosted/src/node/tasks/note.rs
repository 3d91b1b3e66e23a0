//! The standing of a node's tasks, noted for the node's next boot.
//!
//! What was isolated or stopped stays so under another supervisor, what has finished is not run
//! again, and errors and restarts go on being counted; what ran is started. The note is JSON,
//! replaced as a whole, and before an order is answered. It is part of the cluster's directory: a
//! cluster that is started again from nothing does not know it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use weft_core::script::TaskStatus;

use crate::node::control::{TaskFault, TaskState};
use crate::node::link::OrderNumber;
use crate::sealed;

/// What the next boot does with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TaskStanding {
    /// It should run.
    Free,
    /// It was stopped by order.
    Stopped,
    /// It has failed too often, or was isolated by order.
    Isolated,
    /// It has ended with status 0.
    Finished,
}

impl TaskStanding {
    /// The standing for a status of the database: [`TaskState`] as a number.
    pub(super) const fn of_status(status: u8) -> Self {
        let status = status & !(TaskStatus::STARTED | TaskStatus::RESTARTED);
        const STOPPED: u8 = TaskState::Killed as u8;
        const ISOLATED: u8 = TaskState::Isolated as u8;
        const FINISHED: u8 = TaskState::Finished as u8;
        match status {
            STOPPED => Self::Stopped,
            ISOLATED => Self::Isolated,
            FINISHED => Self::Finished,
            _ => Self::Free,
        }
    }
}

/// The history of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Past {
    pub(super) standing: TaskStanding,
    pub(super) errors: u64,
    pub(super) restarts: u64,
    pub(super) unrecorded: u64,
    /// The last errors and their times, by the clock of the host, oldest first.
    pub(super) last: Vec<(u64, TaskFault)>,
    /// Of a task that a recovery script declares: how many errors are answered, and the orders that
    /// were judged and obeyed last.
    #[serde(default)]
    pub(super) answered: Option<(u32, OrderNumber, OrderNumber)>,
}

/// The history of all of them, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::node) struct Note {
    /// The node was isolated, and its tasks with it.
    pub(super) held: bool,
    pub(super) tasks: BTreeMap<String, Past>,
}

impl Note {
    /// The note at `path`; none if there is no file.
    pub(in crate::node) fn load(path: &Path) -> io::Result<Option<Self>> {
        let json = sealed::load(path)?;
        Ok(json.map(|json| serde_json::from_slice(&json)).transpose()?)
    }

    /// Replaces the note at `path`.
    pub(in crate::node) fn save(&self, path: &Path) -> io::Result<()> {
        sealed::save(path, &serde_json::to_vec(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn note() -> Note {
        let last = vec![(7, TaskFault::Silent), (9, TaskFault::Reported { error: 3 })];
        let judged = OrderNumber { epoch: 3, claimant: 1, evaluation: 9, index: 2 };
        let answered = Some((4, judged, OrderNumber::default()));
        let (errors, restarts, unrecorded) = (5, 2, 1);
        let past = |standing| Past {
            standing,
            errors,
            restarts,
            unrecorded,
            last: last.clone(),
            answered,
        };
        let standings = [
            TaskStanding::Free,
            TaskStanding::Isolated,
            TaskStanding::Stopped,
            TaskStanding::Finished,
        ];
        let named = |(at, standing)| (format!("task-{at}"), past(standing));
        Note { held: true, tasks: standings.into_iter().enumerate().map(named).collect() }
    }

    #[test]
    fn a_note_comes_back_as_it_was_last() {
        let scratch = Scratch::new();
        let path = scratch.path().join("node-0.tasks");
        assert_eq!(Note::load(&path).unwrap(), None);
        Note::default().save(&path).unwrap();
        note().save(&path).unwrap();
        assert_eq!(Note::load(&path).unwrap(), Some(note()));
    }
}

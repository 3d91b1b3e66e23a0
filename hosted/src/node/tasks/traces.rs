//! The processes of a node's tasks, noted where the node's next boot finds them.
//!
//! A supervisor that is killed cannot end what its tasks have started. So the next one of the rank
//! does, before it starts its own; so does the launcher as soon as it sees the end, and the program
//! that removes the cluster's directory. The note is written before the first process starts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{TASK_PATIENCE, TaskGuard};
use crate::cluster::TaskName;
use crate::process::{ProcessError, Remains, StillRuns};

/// How long processes of an earlier boot may take to end once they are killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The note of this boot.
#[derive(Debug)]
pub(super) struct Traces {
    remains: Remains,
    path: PathBuf,
}

impl Traces {
    /// Ends what an earlier boot has left, and begins the note of this one at the same path.
    pub(super) fn begin(
        path: PathBuf,
        control: &Path,
    ) -> Result<(Self, Result<(), StillRuns>), ProcessError> {
        let ended = Remains::end_left(&path, control, PATIENCE);
        let ended = ended.map(|count| {
            if count > 0 {
                tracing::warn!(count, "processes of an earlier incarnation's tasks are ended");
            }
        });
        let remains = Remains::draw()?;
        if ended.is_ok() {
            remains.save(&path).map_err(ProcessError::Spawn)?;
        }
        Ok((Self { remains, path }, ended))
    }

    /// Ends what the tasks of this boot have left, in whatever process group it is by now.
    pub(super) fn end(&self) {
        if let Err(error) = self.remains.end(PATIENCE) {
            tracing::error!(%error, "a process of a task is left");
        }
    }

    /// Ends what the task of this name has left, in whatever process group or session it is by now.
    pub(super) fn end_task(&self, name: &TaskName) {
        match self.remains.end_task(name.as_str(), TASK_PATIENCE) {
            Ok(0) => {}
            Ok(count) => tracing::info!(task = %name, count, "what a task has left is ended"),
            Err(StillRuns { process }) => {
                tracing::error!(task = %name, process, "what a task has left does not end");
            }
        }
    }

    /// The mark that every process must have in its environment.
    pub(super) fn mark(&self) -> &str {
        self.remains.mark()
    }

    /// Notes the processes that run now.
    pub(super) fn note<'a>(&mut self, guards: impl Iterator<Item = &'a TaskGuard>) {
        self.remains.note_groups(guards.map(TaskGuard::leader));
        if let Err(error) = self.remains.save(&self.path) {
            tracing::error!(%error, "which processes the tasks are cannot be noted");
        }
    }
}

//! Which processes the tasks of a node are, noted where its next life finds them.
//!
//! A supervisor that is killed cannot end what its tasks have started. So the next one of the rank
//! does, before it starts its own; so does the launcher as soon as it sees the end, and whoever
//! clears the cluster's directory away. The note is there before the first process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Guard;
use crate::cluster::TaskName;
use crate::process::{ProcessError, Remains, StillRuns};

/// How long what an earlier life has left may take to end once it is killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long what one task has left may take to end once it is killed, while its node waits.
const TASK_PATIENCE: Duration = Duration::from_millis(500);

/// The note of this life.
#[derive(Debug)]
pub(super) struct Traces {
    remains: Remains,
    path: PathBuf,
}

impl Traces {
    /// Ends what an earlier life has left, and begins the note of this one at the same path.
    pub(super) fn begin(
        path: PathBuf,
        control: &Path,
    ) -> Result<(Self, Result<(), StillRuns>), ProcessError> {
        let ended = Remains::end_left(&path, control, PATIENCE);
        let ended = ended.map(|count| {
            if count > 0 {
                tracing::warn!(count, "processes of an earlier life's tasks are ended");
            }
        });
        let remains = Remains::draw()?;
        if ended.is_ok() {
            remains.save(&path).map_err(ProcessError::Spawn)?;
        }
        Ok((Self { remains, path }, ended))
    }

    /// Ends what the tasks of this life have left, in whatever group it is by now.
    pub(super) fn end(&self) {
        if let Err(error) = self.remains.end(PATIENCE) {
            tracing::error!(%error, "a process of a task is left");
        }
    }

    /// Ends what the task of this name has left, in whatever group or session it is by now.
    pub(super) fn end_task(&self, name: &TaskName) {
        match self.remains.end_task(name.as_str(), TASK_PATIENCE) {
            Ok(0) => {}
            Ok(count) => tracing::info!(task = %name, count, "what a task has left is ended"),
            Err(StillRuns { process }) => {
                tracing::error!(task = %name, process, "what a task has left does not end");
            }
        }
    }

    /// What every process is to have in its environment.
    pub(super) fn mark(&self) -> &str {
        self.remains.mark()
    }

    /// These processes run now.
    pub(super) fn note<'a>(&mut self, guards: impl Iterator<Item = &'a Guard>) {
        self.remains.note_groups(guards.map(Guard::leader));
        if let Err(error) = self.remains.save(&self.path) {
            tracing::error!(%error, "which processes the tasks are cannot be noted");
        }
    }
}

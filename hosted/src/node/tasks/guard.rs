//! The process of one task: started, watched, and killed with all that it has started.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use super::{Run, Sink, Surroundings};
use crate::cluster::Task;
use crate::node::control::TaskFault;
use crate::process::{Liveness, Pid, ProcessError, Remains, Spawn, Spawned, start_thread};

/// The variable that holds the task's name.
pub const VARIABLE_TASK: &str = Remains::VARIABLE_TASK;
/// The variable that holds the cluster's name.
pub const VARIABLE_CLUSTER: &str = "WEFT_CLUSTER";
/// The variable that holds the node's rank.
pub const VARIABLE_NODE: &str = "WEFT_NODE";
/// The variable that holds the path of the node's control socket.
pub const VARIABLE_CONTROL: &str = Remains::VARIABLE_CONTROL;

/// How long a task may take to end after SIGTERM.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// A task's process.
pub(super) struct Guard {
    spawned: Spawned,
}

impl Guard {
    /// Starts the program of `task`; its end is reported to `sink` as that of `run`. What it writes
    /// goes to the node's standard error, so that the node's own output stays readable.
    pub(super) fn start(
        task: &Task,
        (surroundings, mark): (&Surroundings, &str),
        run: Run,
        sink: &Sink,
    ) -> Result<Self, ProcessError> {
        let output = std::io::stderr().as_fd().try_clone_to_owned().map_err(ProcessError::Spawn)?;
        let spawned = Spawn::program(&task.program)
            .args(&task.args)
            .env(VARIABLE_TASK, task.name.as_str())
            .env(VARIABLE_CLUSTER, &surroundings.cluster)
            .env(VARIABLE_NODE, surroundings.rank.to_string())
            .env(VARIABLE_CONTROL, &surroundings.control)
            .env(Remains::VARIABLE, mark)
            .stdin(Stdio::null())
            .stdout(Stdio::from(output))
            .start()?;
        let guard = Self { spawned };
        let watched = guard.spawned.pidfd.try_clone().and_then(|process| {
            let sink = Sink::clone(sink);
            start_thread("weft-task", move || {
                while !matches!(process.wait_dead(Duration::MAX), Ok(Liveness::Dead)) {}
                sink(run);
            })
        });
        if let Err(error) = watched {
            guard.kill();
            drop(guard.end());
            return Err(error);
        }
        Ok(guard)
    }

    /// Its process number.
    pub(super) fn pid(&self) -> i32 {
        self.spawned.child.id().cast_signed()
    }

    /// The leader of its process group.
    pub(super) fn leader(&self) -> Pid {
        Pid::from_child(&self.spawned.child)
    }

    /// Kills the process and all that it has started; its end is reported.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Sends SIGTERM to the process and all that it has started.
    pub(super) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits for the process to end until a deadline, kills what is left of its group, and returns
    /// how it ended; none for status 0.
    pub(super) fn end(mut self) -> Option<TaskFault> {
        // The group is killed in either case.
        let _ = self.spawned.pidfd.wait_dead(END_TIMEOUT);
        self.kill();
        match self.spawned.child.wait() {
            Ok(status) => TaskFault::of(status),
            Err(error) => Some(TaskFault::NotStarted { why: error.to_string() }),
        }
    }

    /// The leader has not been reaped, so the group's number is not in use by another.
    fn signal(&self, signal: Signal) {
        if let Err(error) = self.spawned.signal_group(signal) {
            tracing::debug!(%error, "a task's group takes no signal");
        }
    }
}

/// Why `program` was not started, as a text that names it.
pub(in crate::node) fn not_started(program: &str, error: &ProcessError) -> String {
    let ProcessError::Spawn(error) = error else { return error.to_string() };
    match error.kind() {
        ErrorKind::PermissionDenied if Path::new(program).is_dir() => {
            format!("{program} is a directory")
        }
        ErrorKind::PermissionDenied => format!("{program} is not executable: {error}"),
        ErrorKind::NotFound if Path::new(program).exists() => {
            format!("{program} names an interpreter that is not there: {error}")
        }
        ErrorKind::NotFound if !program.contains('/') => {
            format!("{program} is not in PATH: {error}")
        }
        _ => format!("{program}: {error}"),
    }
}

//! The process of one task: started, watched, and killed with all that it has started.

use std::io::{self, BufRead, BufReader, ErrorKind, PipeReader, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use super::{Sink, TaskEnvironment, TaskRun};
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

/// The longest line of a task's output, in bytes; a longer one is broken.
const LINE_MAX: u64 = 64 << 10;

/// A task's process.
pub(super) struct TaskGuard {
    spawned: Spawned,
}

impl TaskGuard {
    /// Starts the program of `task`; its end is reported to `sink` as that of `run`. What it writes
    /// goes to the node's standard error, each line with node and task in front.
    pub(super) fn start(
        task: &Task,
        (surroundings, mark): (&TaskEnvironment, &str),
        run: TaskRun,
        sink: &Sink,
    ) -> Result<Self, ProcessError> {
        let (output, to_output) = io::pipe().map_err(ProcessError::Spawn)?;
        let errors = to_output.try_clone().map_err(ProcessError::Spawn)?;
        let head = format!("[{} {}] ", surroundings.rank, task.name);
        let spawned = Spawn::program(&task.program)
            .args(&task.args)
            .env(VARIABLE_TASK, task.name.as_str())
            .env(VARIABLE_CLUSTER, &surroundings.cluster)
            .env(VARIABLE_NODE, surroundings.rank.to_string())
            .env(VARIABLE_CONTROL, &surroundings.control)
            .env(Remains::VARIABLE, mark)
            .stdin(Stdio::null())
            .stdout(Stdio::from(to_output))
            .stderr(Stdio::from(errors))
            .start()?;
        let guard = Self { spawned };
        let copied = start_thread("weft-output", move || copy_lines(output, &head));
        let watched = guard.spawned.pidfd.try_clone().and_then(|process| {
            let sink = Sink::clone(sink);
            start_thread("weft-task", move || {
                while !matches!(process.wait_dead(Duration::MAX), Ok(Liveness::Dead)) {}
                sink(run);
            })
        });
        if let Err(error) = watched.and(copied) {
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

/// Writes each line of a task to the node's standard error, with `head` in front, until the task
/// and all that it has started have closed their ends. A task waits while no one reads what it
/// writes.
fn copy_lines(output: PipeReader, head: &str) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = head.as_bytes().to_vec();
        let read = output.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
        match read {
            Ok(0) => return,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        // Whole lines, so that those of other tasks are not in between. No reader ends nothing.
        let _ = io::stderr().write_all(&line);
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

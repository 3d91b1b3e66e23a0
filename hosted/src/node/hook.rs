//! Commands for events (M-12, M-13): one at a time, each with a time limit.
//!
//! ```text
//!   events ─▶ [ WAITING_MAX ] ─▶ thread ─▶ command ─▶ report, for each event
//!                                  ▲         ├ environment: WEFT_EVENT, WEFT_VIEW, …
//!                                stop        └ standard input: the event as JSON
//! ```
//!
//! The caller never waits for a command: an event that finds the queue full comes back. A command
//! that takes too long is killed with its process group. The thread that starts the commands runs
//! as long as the queue, so that the kernel ends them with this process. `weft watch --exec`,
//! `[hooks]` and `[recovery.calls]` share this queue.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use super::WatchEvent;
use super::tasks::not_started;
use crate::clock::Deadline;
use crate::process::{Liveness, ProcessError, Spawn, Spawned, start_thread};
use crate::readiness::await_any;

/// The most events that wait for their command.
pub const WAITING_MAX: usize = 64;
/// How long a killed command may take to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the command for an event did not run, or had no success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HookFailure {
    /// As many events as may wait do so already.
    #[error("not run: {WAITING_MAX} events wait already")]
    Full,
    /// It could not be started.
    #[error("not started: {why}")]
    NotStarted {
        /// The reason, with the program's name.
        why: String,
    },
    /// It ended with a status other than 0.
    #[error("ended with status {status}")]
    Exited {
        /// The status.
        status: i32,
    },
    /// A signal ended it.
    #[error("ended by signal {signal}")]
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// It was killed with its process group.
    #[error("killed: it took longer than {} s", .limit.as_secs_f64())]
    TimedOut {
        /// How long it might take.
        limit: Duration,
    },
    /// It was killed because the queue has stopped.
    #[error("killed: its node has ended")]
    Stopped,
}

/// What a command runs for.
pub trait CommandJob: Clone + Send + 'static {
    /// What it finds in its environment.
    fn environment(&self) -> Vec<(&'static str, String)>;

    /// What it finds on its standard input: shorter than a pipe.
    fn input(&self) -> Vec<u8>;
}

impl CommandJob for WatchEvent {
    fn environment(&self) -> Vec<(&'static str, String)> {
        let optional = |value: &Option<String>| value.clone().unwrap_or_default();
        vec![
            ("WEFT_EVENT", self.event.as_str().to_owned()),
            ("WEFT_VIEW", self.view.to_string()),
            ("WEFT_TERM", self.term.clone()),
            ("WEFT_RANK", optional(&self.rank.map(|rank| rank.to_string()))),
            ("WEFT_INCARNATION", optional(&self.incarnation)),
            ("WEFT_VERDICT", optional(&self.verdict)),
            ("WEFT_TASK_NAME", optional(&self.task)),
        ]
    }

    fn input(&self) -> Vec<u8> {
        // An event is texts and numbers, which JSON can always say.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// A program, its arguments, and what it runs for.
#[derive(Debug)]
struct DueCommand<J> {
    command: Vec<String>,
    job: J,
}

/// The commands for events that run one after the other.
pub type HookQueue = CommandQueue<WatchEvent>;

/// The commands that run one after the other.
#[derive(Debug)]
pub struct CommandQueue<J> {
    due: SyncSender<DueCommand<J>>,
    thread: JoinHandle<()>,
    /// The end of a pipe whose other end hangs up when this one is closed.
    stop: OwnedFd,
}

impl<J: CommandJob> CommandQueue<J> {
    /// A queue of at most `waiting_max` commands, which may run for up to `limit` each, in a thread
    /// of this `name`. `report` is called there for each job whose command has ended.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn start(
        name: &'static str,
        limit: Duration,
        waiting_max: usize,
        mut report: impl FnMut(&J, Result<(), HookFailure>) + Send + 'static,
    ) -> Result<Self, ProcessError> {
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC).map_err(ProcessError::os("pipe"))?;
        let (due, waiting) = sync_channel(waiting_max);
        let thread = start_thread(name, move || {
            serve(&waiting, limit, stopped.as_fd(), &mut report);
        })?;
        Ok(Self { due, thread, stop })
    }

    /// Queues `command`, a program and its arguments, for `job`.
    ///
    /// # Errors
    /// [`HookFailure::Full`]; the job is not queued.
    pub fn offer(&self, command: &[String], job: &J) -> Result<(), HookFailure> {
        let due = DueCommand { command: command.to_vec(), job: job.clone() };
        self.due.try_send(due).map_err(|_| HookFailure::Full)
    }

    /// Waits until the commands for all events have ended.
    pub fn end(self) {
        let Self { due, thread, stop } = self;
        drop(due);
        join(thread);
        drop(stop);
    }

    /// Kills the command that runs, and runs no other.
    pub fn stop(self) {
        let Self { due, thread, stop } = self;
        drop((due, stop));
        join(thread);
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("the thread of the hooks has panicked");
    }
}

fn serve<J: CommandJob>(
    waiting: &Receiver<DueCommand<J>>,
    limit: Duration,
    stopped: BorrowedFd<'_>,
    report: &mut impl FnMut(&J, Result<(), HookFailure>),
) {
    for due in waiting {
        let result = run(&due, limit, stopped);
        if result == Err(HookFailure::Stopped) {
            return;
        }
        report(&due.job, result);
    }
}

/// Runs the command of `due` to its end.
fn run(
    due: &DueCommand<impl CommandJob>,
    limit: Duration,
    stopped: BorrowedFd<'_>,
) -> Result<(), HookFailure> {
    let deadline = Deadline::after(limit);
    if has_stopped(stopped) {
        return Err(HookFailure::Stopped);
    }
    let mut spawned = start(due)?;
    let failure = match await_end(&spawned, stopped, deadline) {
        CommandWait::Ended => None,
        CommandWait::Late => Some(HookFailure::TimedOut { limit }),
        CommandWait::Stopped => Some(HookFailure::Stopped),
    };
    let Some(failure) = failure else { return reap(spawned) };
    // It fails only for a group that has ended, which this one has not: its leader is not reaped.
    let _ = spawned.signal_group(Signal::KILL);
    // What does not die is in the kernel's hands, and is not waited for.
    if matches!(spawned.pidfd.wait_dead(KILL_TIMEOUT), Ok(Liveness::Dead)) {
        let _ = spawned.child.wait();
    }
    Err(failure)
}

/// Starts the command. What it prints goes to standard error: standard output is the caller's.
fn start(due: &DueCommand<impl CommandJob>) -> Result<Spawned, HookFailure> {
    let DueCommand { command, job } = due;
    let (program, args) = command.split_first().ok_or_else(|| {
        let why = "the command is empty".to_owned();
        HookFailure::NotStarted { why }
    })?;
    let failed =
        |error: &ProcessError| HookFailure::NotStarted { why: not_started(program, error) };
    let failed_io = |error| failed(&ProcessError::Spawn(error));
    let output = std::io::stderr().as_fd().try_clone_to_owned().map_err(failed_io)?;
    let mut spawn = Spawn::program(program).args(args);
    for (name, value) in job.environment() {
        spawn = spawn.env(name, value);
    }
    let mut spawned = spawn
        .stdin(Stdio::piped())
        .stdout(Stdio::from(output))
        .start()
        .map_err(|error| failed(&error))?;
    // It is shorter than a pipe, so this does not wait; a command may leave it unread.
    if let Some(mut stdin) = spawned.child.stdin.take() {
        let _ = stdin.write_all(&job.input());
    }
    Ok(spawned)
}

enum CommandWait {
    Ended,
    Late,
    Stopped,
}

fn await_end(spawned: &Spawned, stopped: BorrowedFd<'_>, deadline: Deadline) -> CommandWait {
    loop {
        let mut fds = [
            PollFd::new(&spawned.pidfd, PollFlags::IN),
            PollFd::from_borrowed_fd(stopped, PollFlags::empty()),
        ];
        if let Err(errno) = await_any(&mut fds, deadline.remaining()) {
            tracing::error!(%errno, "the end of a hook's command cannot be waited for");
            return CommandWait::Late;
        }
        match fds.each_ref().map(|fd| !fd.revents().is_empty()) {
            [true, _] => return CommandWait::Ended,
            [false, true] => return CommandWait::Stopped,
            [false, false] if deadline.has_passed() => return CommandWait::Late,
            [false, false] => {}
        }
    }
}

fn has_stopped(stopped: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(stopped, PollFlags::empty())];
    await_any(&mut fds, Duration::ZERO).is_err() || !fds[0].revents().is_empty()
}

fn reap(mut spawned: Spawned) -> Result<(), HookFailure> {
    let failed = |error: std::io::Error| HookFailure::NotStarted { why: error.to_string() };
    let status: ExitStatus = spawned.child.wait().map_err(failed)?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(status), _) => Err(HookFailure::Exited { status }),
        (None, signal) => Err(HookFailure::Signalled { signal: signal.unwrap_or_default() }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};

    use super::*;
    use crate::cluster::Kind;
    use crate::scratch::Scratch;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn event(view: u64) -> WatchEvent {
        WatchEvent {
            event: Kind::Removed,
            view,
            term: "2.0".to_owned(),
            rank: Some(1),
            incarnation: Some("4/0".to_owned()),
            verdict: Some("node down".to_owned()),
            evidence: Vec::new(),
            fenced: true,
            at: 0,
            members: Vec::new(),
            task: None,
            by: 0,
            missed: 0,
        }
    }

    fn shell(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
    }

    type Ends = Receiver<(u64, Result<(), HookFailure>)>;

    fn queue(limit: Duration) -> (HookQueue, Ends) {
        let (sender, ends) = channel();
        let report = move |event: &WatchEvent, result| drop(sender.send((event.view, result)));
        (HookQueue::start("hooks", limit, WAITING_MAX, report).expect("a thread"), ends)
    }

    #[test]
    fn m13_a_command_finds_the_event_in_its_environment_and_on_its_input() {
        let scratch = Scratch::new();
        let path = scratch.path().join("log");
        let (queue, ends) = queue(PATIENCE);
        let vars = "$WEFT_EVENT $WEFT_VIEW $WEFT_TERM $WEFT_RANK $WEFT_INCARNATION $WEFT_VERDICT";
        let script = format!("echo \"{vars} $(cat)\" > {}", path.display());
        queue.offer(&shell(&script), &event(7)).expect("there is room");
        queue.end();
        assert_eq!(ends.try_iter().collect::<Vec<_>>(), [(7, Ok(()))]);
        let text = std::fs::read_to_string(path).expect("it has run");
        let json = text.strip_prefix("removed 7 2.0 1 4/0 node down ").expect("the environment");
        let json: serde_json::Value = serde_json::from_str(json).expect("an object");
        assert_eq!((&json["event"], &json["fenced"]), (&"removed".into(), &true.into()));
    }

    #[test]
    fn m13_each_failure_is_reported_and_the_next_command_runs() {
        let (queue, ends) = queue(PATIENCE);
        let missing = vec!["/no/such/program".to_owned()];
        for (view, command) in
            (0..).zip([shell("exit 3"), shell("kill -9 $$"), missing, shell("exit 0")])
        {
            queue.offer(&command, &event(view)).expect("there is room");
        }
        queue.end();
        let why = "/no/such/program: No such file or directory (os error 2)".to_owned();
        let expected = [
            (0, Err(HookFailure::Exited { status: 3 })),
            (1, Err(HookFailure::Signalled { signal: 9 })),
            (2, Err(HookFailure::NotStarted { why })),
            (3, Ok(())),
        ];
        assert_eq!(ends.try_iter().collect::<Vec<_>>(), expected);
    }

    /// The command's own child holds the lock: it is free once all of the group have ended.
    #[test]
    fn m13_a_command_that_hangs_is_killed_with_its_group() {
        let limit = Duration::from_millis(300);
        let (queue, ends) = queue(limit);
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let number = std::os::fd::AsRawFd::as_raw_fd(&write);
        let path = format!("/proc/{}/fd/{number}", std::process::id());
        let script = format!("exec 5> {path}; sleep 1000 & sleep 1000");
        queue.offer(&shell(&script), &event(0)).expect("there is room");
        let end = ends.recv_timeout(PATIENCE).expect("it is killed");
        assert_eq!(end, (0, Err(HookFailure::TimedOut { limit })));
        drop(write);
        let mut fds = [PollFd::new(&read, PollFlags::empty())];
        await_any(&mut fds, PATIENCE).expect("a pipe");
        assert!(fds[0].revents().contains(PollFlags::HUP), "a child of the command runs");
        queue.end();
    }

    #[test]
    fn m13_an_event_that_finds_the_queue_full_comes_back_and_a_stop_ends_what_runs() {
        let scratch = Scratch::new();
        let started = scratch.path().join("started");
        let (queue, ends) = queue(PATIENCE);
        let script = format!("mkfifo {0} 2> /dev/null; echo > {0}; sleep 1000", started.display());
        queue.offer(&shell(&script), &event(0)).expect("there is room");
        while !started.exists() {
            std::thread::yield_now();
        }
        // Returns once the command writes to it.
        std::fs::read(&started).expect("the command has started");
        for view in 1..=WAITING_MAX as u64 {
            queue.offer(&shell("true"), &event(view)).expect("there is room");
        }
        assert_eq!(queue.offer(&shell("true"), &event(65)), Err(HookFailure::Full));
        queue.stop();
        assert_eq!(ends.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
    }
}

//! `weft guard`: any program as a task of a node, without a place in the cluster file.
//!
//! ```text
//!   terminal ──signals──▶ weft guard ──start, kill──▶ PROGRAM ──weft report --beat──┐
//!                             └── started, ended ──▶ node ◀────────────────────────┘
//! ```
//!
//! The node decides, as for its own tasks; this process starts the program, passes signals on and
//! reports. The kernel kills the program with this process; when the node is gone, the program is
//! ended, since its end would go unnoticed.

use std::io::{IsTerminal, Read, Write, stderr, stdin};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::output::Output;
use super::run::number;
use weft::client::{ClientError, Guest};
use weft::cluster::{Restart, Task, TaskName};
use weft::explain::Code;
use weft::node::control::{GuestOrder, GuestReport, TaskFault, TaskState};
use weft::process::{Remains, Signal, Spawn, Spawned, find_program, start_thread};
use weft::readiness::await_any;
use weft::task::{VARIABLE_CLUSTER, VARIABLE_CONTROL, VARIABLE_NODE, VARIABLE_TASK};

/// How long the program may take to end after SIGTERM, when the node is gone.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// How long what the program has left may take to end once it is killed.
const REMAINS_TIMEOUT: Duration = Duration::from_secs(5);
/// The signals that are passed on.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Arguments of `weft guard`.
#[derive(Debug, Args)]
pub(super) struct GuardArguments {
    /// The task's name, for `weft watch`, `weft status`, `weft task` and `weft report`; `--name` is
    /// the cluster's, as everywhere.
    #[arg(long, value_name = "TASK")]
    task: String,

    /// The node that watches it, on this host.
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    node: u16,

    /// How often the program is started again after it has failed.
    #[arg(long, value_name = "N", default_value_t = 3)]
    restart_max: usize,

    /// Within how many seconds; one failure more, and it is not started again.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    restart_within_s: u64,

    /// Kill the program as hung, and start it again, if it does not run `weft report --beat` at
    /// least every so many milliseconds.
    #[arg(long, value_name = "MS")]
    beat_ms: Option<u64>,

    #[command(flatten)]
    cluster: ClusterChoice,

    /// The program and its arguments. It has the standard streams of this command, and its exit
    /// status becomes that of this command. A terminal as input is the exception: the program reads
    /// the end of a file, since a background process group that reads its terminal is stopped; pipe
    /// or redirect what it must read. Signals are passed on; after SIGINT, SIGQUIT or SIGTERM it is
    /// not started again.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// The program, and what is known of it.
struct Guarded {
    guest: Guest,
    program: PathBuf,
    args: Vec<String>,
    environment: Vec<(&'static str, String)>,
    remains: Remains,
    child: Option<Spawned>,
    /// The signals that were passed on to the present process.
    passed_on: Vec<i32>,
    starts: u64,
    last: Option<ExitStatus>,
    /// Why the program could not be started.
    why: Option<String>,
}

pub(super) fn run(arguments: &GuardArguments, output: Output) -> Result<ExitCode, Failure> {
    let GuardArguments { task, node, .. } = arguments;
    let definition = arguments.definition()?;
    let program = find_program(&definition.program).map_err(Failure::new)?;
    let running = arguments.cluster.find()?;
    // Before the first process: none may miss one.
    let mut signals = listen()?;
    let control = running.dir.node_socket(usize::from(*node)).map_err(Failure::new)?;
    let client = running.connect(*node)?;
    let remains = Remains::draw().map_err(Failure::new)?;
    let guest = Guest::begin(client, &definition, remains.mark()).map_err(Failure::new)?;
    let name = running.cluster.name.as_str();
    let environment = vec![
        (VARIABLE_TASK, task.clone()),
        (VARIABLE_CLUSTER, name.to_owned()),
        (VARIABLE_NODE, node.to_string()),
        (VARIABLE_CONTROL, control.to_string_lossy().into_owned()),
        (Remains::VARIABLE, remains.mark().to_owned()),
    ];
    let args = arguments.program[1..].to_vec();
    let (child, passed_on) = (None, Vec::new());
    let (starts, last, why) = (0, None, None);
    let mut guarded =
        Guarded { guest, program, args, environment, remains, child, passed_on, starts, last, why };
    match guarded.serve(&mut signals) {
        Ok(state) => finish(arguments, guarded, state, output),
        Err(failure) => {
            guarded.end(END_TIMEOUT);
            Err(match failure {
                Lost::Node(error @ ClientError::Unreachable { .. }) => {
                    let cause = format!(
                        "node {node} of cluster {name}, which watched {task}, is gone, and {task} \
                         was ended: {error}"
                    );
                    let cure = format!(
                        "run `weft status --name {name}` to see which nodes run, and guard it \
                         again, at another node with `--node RANK`"
                    );
                    Failure::of(Code::NodeUnreachable, cause, cure)
                }
                Lost::Node(error) => Failure::new(error),
                Lost::Here(failure) => failure,
            })
        }
    }
}

/// Why the program cannot be guarded any more.
enum Lost {
    Node(ClientError),
    Here(Failure),
}

impl From<ClientError> for Lost {
    fn from(error: ClientError) -> Self {
        Self::Node(error)
    }
}

impl GuardArguments {
    /// The task as the cluster file would define it.
    fn definition(&self) -> Result<Task, Failure> {
        let name: TaskName = self.task.parse().map_err(|error| usage("--task", &error))?;
        let restart = Restart { max: self.restart_max, within_s: self.restart_within_s };
        let program = self.program[0].clone();
        let task = Task { restart, beat_ms: self.beat_ms, ..Task::new(name, program) };
        task.check_alone().map_err(|error| usage("as a task", &error))?;
        Ok(task)
    }
}

fn usage(what: &str, error: &(impl weft::explain::Explain + 'static)) -> Failure {
    Failure::of(Code::Usage, format!("{what}: {error}"), error.cure())
}

/// Each signal that is passed on, as a byte.
fn listen() -> Result<UnixStream, Failure> {
    let failed = |error: std::io::Error| {
        let cause = format!("signals cannot be listened for: {error}");
        Failure::of(Code::Internal, cause, "see what the machine lacks with `weft doctor`")
    };
    let (reader, mut writer) = UnixStream::pair().map_err(failed)?;
    reader.set_nonblocking(true).map_err(failed)?;
    let mut signals = Signals::new(PASSED_ON).map_err(failed)?;
    start_thread("weft-signals", move || {
        for signal in signals.forever() {
            if writer.write_all(&signal.to_le_bytes()[..1]).is_err() {
                return;
            }
        }
    })
    .map_err(Failure::new)?;
    Ok(reader)
}

impl Guarded {
    /// Runs the program as the node orders, until that is over.
    fn serve(&mut self, signals: &mut UnixStream) -> Result<TaskState, Lost> {
        self.start()?;
        loop {
            self.wait(signals)?;
            self.pass_on(signals)?;
            if self.has_ended()? {
                self.report_end()?;
            }
            match self.guest.poll_order()? {
                Some(GuestOrder::Start) if self.child.is_none() => self.start()?,
                Some(GuestOrder::Kill) => self.signal(Signal::KILL),
                Some(GuestOrder::Over { state }) => return Ok(state),
                Some(GuestOrder::Start | GuestOrder::Wait) | None => {}
            }
        }
    }

    /// Waits for a signal, for the node, or for the end of the program.
    fn wait(&self, signals: &UnixStream) -> Result<(), Lost> {
        let child = self.child.as_ref().map(|child| child.pidfd.as_fd());
        let fds = [self.guest.as_fd(), signals.as_fd()].into_iter().chain(child);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        await_any(&mut fds, self.guest.wait_max()).map_err(|errno| {
            let cure = "see what the machine lacks with `weft doctor`";
            Lost::Here(Failure::of(Code::Internal, format!("poll: {errno}"), cure))
        })
    }

    fn has_ended(&self) -> Result<bool, Lost> {
        let child = self.child.as_ref().map_or(Ok(false), |child| child.pidfd.is_dead());
        child.map_err(|error| Lost::Here(Failure::new(error)))
    }

    fn start(&mut self) -> Result<(), Lost> {
        let mut spawn = Spawn::program(&self.program).args(&self.args);
        for (key, value) in &self.environment {
            spawn = spawn.env(key, value);
        }
        // It is in a process group of its own, which a read from the terminal would stop.
        if stdin().is_terminal() {
            spawn = spawn.stdin(Stdio::null());
        }
        let report = match spawn.start() {
            Ok(child) => {
                let pid = child.child.id().cast_signed();
                self.child = Some(child);
                self.passed_on.clear();
                self.starts += 1;
                GuestReport::Started { pid }
            }
            Err(error) => {
                let why = format!("{}: {error}", self.program.display());
                self.why = Some(why.clone());
                GuestReport::Ended { fault: Some(TaskFault::NotStarted { why }) }
            }
        };
        Ok(self.guest.report(report)?)
    }

    /// Passes signals on; one that would end this process between two starts ends the task.
    fn pass_on(&mut self, signals: &mut UnixStream) -> Result<(), Lost> {
        let mut bytes = [0; PASSED_ON.len()];
        let Ok(count) = signals.read(&mut bytes) else { return Ok(()) };
        for number in bytes[..count].iter().map(|byte| i32::from(*byte)) {
            match Signal::from_named_raw(number) {
                Some(signal) if self.child.is_some() => {
                    self.signal(signal);
                    if !self.passed_on.contains(&number) {
                        self.passed_on.push(number);
                    }
                }
                Some(_) if ![SIGUSR1, SIGUSR2].contains(&number) => {
                    self.guest.report(GuestReport::Stopped)?;
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// Signals the program and what it has started in its process group.
    fn signal(&self, signal: Signal) {
        // One that has ended takes no signal.
        let _ = self.child.as_ref().map(|child| child.signal_group(signal));
    }

    fn report_end(&mut self) -> Result<(), Lost> {
        self.end(Duration::ZERO);
        let asked = |signal: &i32| [SIGINT, SIGQUIT, SIGTERM].contains(signal);
        // A program may survive SIGHUP, and fail by itself much later.
        let by_signal = self.last.and_then(|status| status.signal());
        let is_stopped = self.passed_on.iter().any(|it| asked(it) || by_signal == Some(*it));
        let report = match is_stopped {
            true => GuestReport::Stopped,
            false => GuestReport::Ended { fault: self.last.and_then(TaskFault::of) },
        };
        Ok(self.guest.report(report)?)
    }

    /// Gives the program `patience` to end after SIGTERM, kills it, and ends what it has left.
    fn end(&mut self, patience: Duration) {
        // With no patience it has ended by itself.
        if patience > Duration::ZERO {
            self.signal(Signal::TERM);
        }
        let Some(mut child) = self.child.take() else { return };
        let _ = child.pidfd.wait_dead(patience);
        // Before it is reaped: until then the group's number is its own.
        let _ = child.signal_group(Signal::KILL);
        self.last = child.child.wait().ok();
        if let Err(error) = self.remains.end(REMAINS_TIMEOUT) {
            tracing::error!(%error, "what the program has left does not end");
        }
    }
}

/// Reports how it ended; the exit status is the program's.
fn finish(
    arguments: &GuardArguments,
    guarded: Guarded,
    state: TaskState,
    output: Output,
) -> Result<ExitCode, Failure> {
    let GuardArguments { task, node, .. } = arguments;
    if let (TaskState::Faulty, Some(why)) = (state, guarded.why) {
        let cure = "give the path of an executable file whose interpreter is there";
        return Err(Failure::of(Code::InputMissing, format!("not started: {why}"), cure));
    }
    if state == TaskState::Isolated && !output.is_json() {
        // Standard output is the program's. If standard error is closed, the status still says it.
        let _ = writeln!(
            stderr(),
            "weft: task {task} of node {node} is isolated and not started again\n      \
             `--restart-max` and `--restart-within-s` say how often a program is"
        );
    }
    let status = match state {
        TaskState::Finished => 0,
        _ => guarded.last.map_or(1, number),
    };
    let object = json!({
        "ok": status == 0, "task": task, "node": node, "state": state.as_str(),
        "status": status, "restarts": guarded.starts.saturating_sub(1),
    });
    output.finish(&object, "");
    Ok(ExitCode::from(status))
}

//! `weft run`: a program as every member of a cluster on this machine.
//!
//! ```text
//!   weft run -n 4 -- ./app
//!     start the nodes ─▶ each starts ./app ─▶ all have exited with status 0 ─▶ end the nodes
//!                                    │   └── another end: its node starts the next incarnation
//!                                    └── too often: end the nodes, with the worst status
//! ```

mod lines;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::cluster_choice::NewCluster;
use super::failure::{Failure, lacking};
use super::output::Output;
use super::up::{Wake, listen_for_signals};
use crate::doctor;
use lines::OutputLines;
use weft::cluster::{Cluster, Program};
use weft::explain::{Code, times};
use weft::launch::{LaunchError, Launched, Notice};
use weft::process::{find_program, how_ended};

/// How often it looks for a signal.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Arguments of `weft run`.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    #[command(flatten)]
    cluster: NewCluster,

    /// Write the output of each member to DIR/RANK.out and DIR/RANK.err, instead of here with the
    /// rank in front of each line.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Keep a record of up to so many bytes for each member, as `component.state`: "1 MiB".
    #[arg(long, value_name = "LENGTH")]
    state: Option<String>,

    /// Leave the cluster running when all programs have finished, until Ctrl-C or `weft down`.
    #[arg(long)]
    keep: bool,

    /// The program and its arguments; without it, that of the file's `[component]`.
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// What is known of a member's program.
#[derive(Clone, Copy, Debug, Default)]
struct ProgramState {
    /// Its last exit status, as a shell numbers it.
    status: Option<u8>,
    /// How often it was started: each start has the next incarnation's number.
    incarnations: u32,
    /// How often in a row it has failed as before without joining, and no line has said so.
    unsaid: u64,
    /// Whether its last incarnation had joined.
    joined: bool,
}

impl ProgramState {
    /// Notes that an incarnation has ended, and what there is to say. A program that cannot even
    /// join fails alike each time: that is said once, and how often in the end.
    fn note(&mut self, incarnation: u32, joined: bool, status: ExitStatus) -> Vec<String> {
        let before = self.status.replace(number(status));
        self.incarnations = incarnation;
        let joined_before = std::mem::replace(&mut self.joined, joined);
        if !joined && !joined_before && before == self.status && !status.success() {
            self.unsaid += 1;
            return Vec::new();
        }
        let mut lines: Vec<_> = self.say_rest().into_iter().collect();
        if !status.success() {
            let unjoined = if joined { "" } else { " before it joined" };
            lines.push(format!("its program {}{unjoined}", how_ended(status)));
        }
        lines
    }

    /// How often more it has failed, if no line has said so.
    fn say_rest(&mut self) -> Option<String> {
        let unsaid = std::mem::take(&mut self.unsaid);
        (unsaid > 0).then(|| format!("its program failed the same way {} more", times(unsaid)))
    }
}

/// Why the nodes are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndReason {
    Finished,
    GivenUp { rank: u16 },
    Signal,
    Displaced,
    Node { rank: u16, status: ExitStatus },
}

pub(super) fn run(arguments: RunArguments, output: Output) -> Result<ExitCode, Failure> {
    let (output_dir, keep) = (arguments.output.clone(), arguments.keep);
    let cluster = choose(arguments, output)?;
    doctor::lack(&cluster).map_or(Ok(()), |lack| Err(lacking(lack)))?;
    let (sender, wakes) = sync_channel(1);
    // Before the first process: an impatient Ctrl-C must end the cluster in order, too.
    listen_for_signals(sender)?;
    let (lines, outputs) = match output_dir {
        None => OutputLines::new(cluster.nodes).map(|(lines, outputs)| (Some(lines), outputs)),
        Some(dir) => files(&dir, cluster.nodes).map(|outputs| (None, outputs)),
    }?;
    let launched = Launched::start_with_output(&cluster, outputs).map_err(Failure::new)?;
    let lines = lines.map(OutputLines::start).transpose()?;
    let mut members = vec![ProgramState::default(); cluster.nodes];
    let over = watch(&launched, &wakes, &mut members, keep, output);
    for (rank, member) in members.iter_mut().enumerate() {
        if let Some(line) = member.say_rest() {
            output.say(&format!("node {rank}: {line}"));
        }
    }
    count_running(&launched, &mut members);
    let displaced = (over == EndReason::Displaced).then(|| launched.displaced());
    launched.stop().map_err(Failure::new)?;
    drop(lines);
    if let EndReason::Node { rank, status } = over {
        return Err(Failure::new(LaunchError::Ended { rank, status }));
    }
    displaced.map_or(Ok(()), |error| Err(Failure::new(error)))?;
    finish(&members, over, output)
}

/// Counts the incarnations of programs that still run.
fn count_running(launched: &Launched, members: &mut [ProgramState]) {
    let unfinished = (0..).zip(members).filter(|(_, member)| member.status != Some(0));
    for (rank, member) in unfinished {
        // A node that does not answer has no program that runs.
        let client = launched.connect(rank, LOOK_EVERY);
        let Ok(status) = client.and_then(|mut client| client.status_within(LOOK_EVERY)) else {
            continue;
        };
        member.incarnations = member.incarnations.max(status.incarnation);
    }
}

/// The result, and the worst status.
fn finish(members: &[ProgramState], over: EndReason, output: Output) -> Result<ExitCode, Failure> {
    let rows = members.iter().enumerate().map(|(rank, member)| {
        let ProgramState { status, incarnations, .. } = member;
        json!({ "rank": rank, "status": status, "incarnations": incarnations })
    });
    let ok = over == EndReason::Finished;
    let object = json!({ "ok": ok, "members": rows.collect::<Vec<_>>() });
    output.finish(&object, "");
    match over {
        EndReason::Signal => {
            let cause = "ended by a signal before all programs had finished";
            Err(Failure::of(Code::Interrupted, cause, "run it again"))
        }
        EndReason::GivenUp { rank } => {
            let worst = members.iter().filter_map(|member| member.status).max();
            let worst = worst.filter(|status| *status > 0).unwrap_or(1);
            output.say(&format!(
                "the program of node {rank} failed too often, and all were ended; `restart` in the \
                 cluster file says how often it is started again"
            ));
            Ok(ExitCode::from(worst))
        }
        EndReason::Finished | EndReason::Displaced | EndReason::Node { .. } => {
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Waits until every program has finished, or the run is over for another reason.
fn watch(
    launched: &Launched,
    wakes: &Receiver<Wake>,
    members: &mut [ProgramState],
    keep: bool,
    output: Output,
) -> EndReason {
    while wakes.try_recv().is_err() {
        if !keep && members.iter().all(|member| member.status == Some(0)) {
            return EndReason::Finished;
        }
        match launched.next_notice(LOOK_EVERY) {
            Ok(Notice::Exited { rank, incarnation, joined, status }) => {
                let Some(member) = members.get_mut(usize::from(rank)) else { continue };
                for line in member.note(incarnation, joined, status) {
                    output.say(&format!("node {rank}: {line}"));
                }
            }
            Ok(Notice::GivenUp { rank }) => return EndReason::GivenUp { rank },
            Ok(Notice::Displaced) => return EndReason::Displaced,
            // By `weft down`.
            Ok(Notice::Ended { status, .. }) if status.success() => break,
            // One that was killed is started again; one that ends by itself cannot run.
            Ok(Notice::Ended { rank, status }) if status.code().is_some() => {
                return EndReason::Node { rank, status };
            }
            Ok(
                Notice::Ended { .. }
                | Notice::Reset { .. }
                | Notice::Restarted { .. }
                | Notice::Isolated { .. }
                | Notice::Released { .. }
                | Notice::TaskIsolated { .. },
            )
            | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if members.iter().all(|member| member.status == Some(0)) {
        EndReason::Finished
    } else {
        EndReason::Signal
    }
}

/// The status of a program as shells number it.
pub(super) fn number(status: ExitStatus) -> u8 {
    let signal = || status.signal().map(|signal| 128 + signal);
    let number = status.code().or_else(signal).unwrap_or(1);
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// The cluster of the file and the flags, with the program.
fn choose(arguments: RunArguments, output: Output) -> Result<Cluster, Failure> {
    let mut cluster = arguments.cluster.read("run", output)?;
    choose_program(&mut cluster, arguments.program)?;
    let Some(component) = &mut cluster.component else {
        let cause = "no program is given";
        let cure = "run `weft run -n 4 -- PROGRAM ARGS…`, or set `component.program` in the \
                    cluster file";
        return Err(Failure::of(Code::Usage, cause, cure));
    };
    if let Some(text) = &arguments.state {
        component.set_state(text).map_err(|error| {
            let cause = format!("--state {text:?}: {error}");
            Failure::of(Code::Usage, cause, "give a length such as `--state 64KiB`")
        })?;
    }
    arguments.cluster.check(cluster)
}

/// Puts the program of the command line, if there is one, in the place of the file's, and finds it.
pub(super) fn choose_program(cluster: &mut Cluster, words: Vec<String>) -> Result<(), Failure> {
    let mut words = words.into_iter();
    if let Some(program) = words.next() {
        // The file's variables and state hold for any program.
        let kept = cluster.component.take().unwrap_or_default();
        cluster.component = Some(Program { program, args: words.collect(), ..kept });
    }
    let Some(component) = &mut cluster.component else { return Ok(()) };
    if component.program.is_empty() {
        let cause = "[component] of the cluster file names no program, nor does the command line";
        let cure = "run `weft run FILE -- PROGRAM ARGS…`, or set `component.program`";
        return Err(Failure::of(Code::Usage, cause, cure));
    }
    component.program = find(&component.program)?;
    Ok(())
}

/// The program as an absolute path: nodes look for it from where this command was started.
fn find(program: &str) -> Result<String, Failure> {
    let path = find_program(program).map_err(Failure::new)?;
    path.into_os_string().into_string().map_err(|_| {
        let cause = format!("the program {program} has a path that is not UTF-8");
        Failure::of(Code::InputMissing, cause, "give it another path")
    })
}

/// The files for the output of each member.
fn files(dir: &Path, nodes: usize) -> Result<Vec<[OwnedFd; 2]>, Failure> {
    let unwritable = |path: &Path, error: std::io::Error| {
        let cause = format!("{} cannot be written: {error}", path.display());
        Failure::of(Code::Output, cause, "choose another `--output`, or make room there")
    };
    std::fs::create_dir_all(dir).map_err(|error| unwritable(dir, error))?;
    let file = |rank: usize, end: &str| {
        let path = dir.join(format!("{rank}.{end}"));
        File::create(&path).map(OwnedFd::from).map_err(|error| unwritable(&path, error))
    };
    (0..nodes).map(|rank| Ok([file(rank, "out")?, file(rank, "err")?])).collect()
}

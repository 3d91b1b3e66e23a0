//! `weft up`: a cluster on this machine.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::cluster_choice::NewCluster;
use super::failure::{Failure, lacking};
use super::output::Output;
use super::run::choose_program;
use crate::doctor;
use crate::notify::{self, Watchdog};
use weft::clock::Deadline;
use weft::cluster::{Cluster, FabricKind, Task};
use weft::explain::{Code, times};
use weft::launch::{LaunchError, Launched, Notice};
use weft::process::{how_ended, start_thread};

/// How long the nodes may take to come together.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a start is asked whether it shall still go on.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Arguments of `weft up`.
#[derive(Debug, Args)]
pub(super) struct UpArguments {
    #[command(flatten)]
    cluster: NewCluster,

    /// Print a cluster file with every key, its meaning, limit and default, and start nothing.
    #[arg(long, conflicts_with_all = ["cluster", "nodes", "name", "signed"])]
    template: bool,
}

/// A signal has come.
pub(super) struct Wake;

/// How a start went.
#[derive(PartialEq, Eq)]
enum StartOutcome {
    Running,
    CalledOff,
}

pub(super) fn run(arguments: &UpArguments, output: Output) -> Result<(), Failure> {
    if arguments.template {
        let template = Cluster::template();
        output.finish(&json!({ "template": template }), &template);
        return Ok(());
    }
    let mut cluster = arguments.cluster.read("up", output)?;
    // Before the first process: a node would look for it again and again.
    choose_program(&mut cluster, Vec::new())?;
    let cluster = arguments.cluster.check(cluster)?;
    doctor::lack(&cluster).map_or(Ok(()), |lack| Err(lacking(lack)))?;
    let (sender, wakes) = sync_channel(1);
    // Before the first process: an impatient Ctrl-C must end the cluster in order, too.
    listen_for_signals(sender)?;
    let mut launched = Launched::start(&cluster).map_err(Failure::new)?;
    let (name, nodes) = (cluster.name.as_str(), cluster.nodes);
    if await_running(&mut launched, &wakes)? == StartOutcome::Running {
        if cluster.fabric == FabricKind::Verbs {
            output.say(&format!("over verbs, {}", cluster.verbs.detection()));
        }
        let dirnet = &cluster.dirnet;
        for risk in [dirnet.partition_risk(nodes), dirnet.succession_risk(nodes)] {
            risk.inspect(|risk| output.say(risk));
        }
        output.say(&format!(
            "cluster {name}: {nodes} nodes run; `weft status --name {name}` shows them, \
             `weft down --name {name}` or Ctrl-C ends them"
        ));
        notify::ready(&format!("{nodes} nodes of cluster {name} run"));
        if watch(&launched, &wakes, output) == WatchEnd::Displaced {
            let error = launched.displaced();
            launched.stop().map_err(Failure::new)?;
            return Err(Failure::new(error));
        }
    }
    notify::stopping();
    launched.stop().map_err(Failure::new)?;
    let object = json!({ "ok": true, "name": name, "nodes": nodes });
    output.finish(&object, &format!("cluster {name}: ended\n"));
    Ok(())
}

/// What is known of a node's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessState {
    Lives,
    /// And will be started again.
    Died,
    /// In order, and for good.
    Left,
}

/// Why watching the nodes has ended.
#[derive(PartialEq, Eq)]
enum WatchEnd {
    Ended,
    Displaced,
}

/// Waits until all nodes have joined, or a signal or an order ends the cluster.
fn await_running(launched: &mut Launched, wakes: &Receiver<Wake>) -> Result<StartOutcome, Failure> {
    let deadline = Deadline::after(START_TIMEOUT);
    while wakes.try_recv().is_err() {
        match launched.await_running(LOOK_EVERY.min(deadline.remaining())) {
            Ok(()) => return Ok(StartOutcome::Running),
            // By `weft down`, or by a Ctrl-C that this process will hear of in a moment.
            Err(LaunchError::Ended { status, .. }) if ended_by_order(status) => break,
            Err(LaunchError::Client(_)) if !deadline.has_passed() => {}
            Err(error) => return Err(Failure::new(error)),
        }
    }
    Ok(StartOutcome::CalledOff)
}

/// Whether a node has ended in order, or was ended by SIGTERM before it handled signals.
fn ended_by_order(status: ExitStatus) -> bool {
    status.success() || status.signal() == Some(SIGTERM)
}

pub(super) fn listen_for_signals(sender: SyncSender<Wake>) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| {
        let cause = format!("signals cannot be listened for: {error}");
        Failure::of(Code::Internal, cause, "see what the machine lacks with `weft doctor`")
    })?;
    start_thread("weft-signals", move || {
        for _ in signals.forever() {
            if sender.send(Wake).is_err() {
                return;
            }
        }
    })
    .map_err(Failure::new)?;
    Ok(())
}

/// A task that has failed too often is the operator's.
fn say_isolated(cluster: &Cluster, rank: u16, task: usize, output: Output) {
    let Some(Task { name, restart, .. }) = cluster.tasks.get(task) else { return };
    output.say(&format!(
        "task {name} of node {rank} is isolated: it failed more than {} within {} s; \
         `weft status` shows how, `weft task start {name} --node {rank}` starts it again",
        times(restart.max as u64),
        restart.within_s
    ));
}

/// Reports what happens to the nodes until a signal comes or all have ended in order.
fn watch(launched: &Launched, wakes: &Receiver<Wake>, output: Output) -> WatchEnd {
    let mut nodes = vec![ProcessState::Lives; launched.cluster().nodes];
    let mut watchdog = Watchdog::of_unit();
    while nodes.iter().any(|node| *node != ProcessState::Left) && wakes.try_recv().is_err() {
        watchdog.quiet();
        let (rank, now, what) = match launched.next_notice(LOOK_EVERY) {
            Ok(Notice::Ended { rank, status }) if status.success() => {
                (rank, ProcessState::Left, "has ended".to_owned())
            }
            Ok(Notice::Ended { rank, status }) => (rank, ProcessState::Died, how_ended(status)),
            Ok(Notice::Reset { rank, by, .. }) => (
                rank,
                ProcessState::Lives,
                format!("was reset, as node {by} says, and is started again"),
            ),
            Ok(Notice::Restarted { rank }) => {
                let what = "is started again by the launcher: no manager has reset it";
                (rank, ProcessState::Lives, what.to_owned())
            }
            Ok(Notice::Isolated { rank }) => {
                output.say(&format!(
                    "node {rank} is isolated; `weft status --why {rank}` shows the reason, \
                     `weft release {rank}` admits it again"
                ));
                continue;
            }
            Ok(Notice::Released { rank }) => {
                output.say(&format!("node {rank} is released: its next incarnation is admitted"));
                continue;
            }
            Ok(Notice::TaskIsolated { rank, task }) => {
                say_isolated(launched.cluster(), rank, task, output);
                continue;
            }
            Ok(Notice::Exited { rank, incarnation, status, .. }) => {
                let ended = how_ended(status);
                output
                    .say(&format!("node {rank}: its program, incarnation {incarnation}, {ended}"));
                continue;
            }
            Ok(Notice::GivenUp { rank }) => {
                output.say(&format!(
                    "node {rank}: its component failed too often; `weft status --why {rank}` shows \
                     why"
                ));
                continue;
            }
            Err(RecvTimeoutError::Timeout) => continue,
            Ok(Notice::Displaced) => return WatchEnd::Displaced,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        nodes[usize::from(rank)] = now;
        let live = nodes.iter().filter(|node| **node == ProcessState::Lives).count();
        output.say(&format!("node {rank} {what}; {live} live"));
    }
    WatchEnd::Ended
}

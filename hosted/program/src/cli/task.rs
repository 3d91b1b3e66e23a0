//! `weft task`: start, stop, restart or isolate a task of a node.
//!
//! A task that runs ends before it is started again, so what came of that is seen later.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::output::Output;
use weft::client::{Client, ClientError};
use weft::clock::Deadline;
use weft::explain::Code;
use weft::node::control::{Refused, TaskEffect, TaskFault, TaskOrder, TaskState, TaskStatus};

/// How long a process that was killed may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// How often is looked for the next one.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Arguments of `weft task`.
#[derive(Debug, Args)]
pub(super) struct TaskArguments {
    #[command(subcommand)]
    order: TaskCommand,
}

#[derive(Debug, Subcommand)]
enum TaskCommand {
    /// Start it, unless it runs.
    Start(Which),
    /// Kill it and leave it; one that is isolated or has finished stays that.
    Stop(Which),
    /// Kill it and start it.
    Restart(Which),
    /// Kill it for being faulty; nothing but an order starts it again.
    Isolate(Which),
}

#[derive(Debug, Args)]
struct Which {
    /// The task's name.
    task: String,

    /// The node that guards it.
    #[arg(long, value_name = "RANK")]
    node: u16,

    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &TaskArguments, output: Output) -> Result<(), Failure> {
    let (which, order, done) = match &arguments.order {
        TaskCommand::Start(which) => (which, TaskOrder::Start, "started"),
        TaskCommand::Stop(which) => (which, TaskOrder::Stop, "stopped"),
        TaskCommand::Restart(which) => (which, TaskOrder::Restart, "restarted"),
        TaskCommand::Isolate(which) => (which, TaskOrder::Isolate, "isolated"),
    };
    let mut client = which.cluster.find()?.connect(which.node)?;
    let Which { task, node, .. } = which;
    let before = status_of(&mut client, task).map_err(Failure::new)?;
    let effect = client.order(task, order).map_err(Failure::new)?;
    if let (TaskOrder::Start | TaskOrder::Restart, TaskEffect::Done, Some(before)) =
        (order, effect, before)
    {
        await_start(&mut client, &before)?;
    }
    let (found, outcome) = match effect {
        TaskEffect::Done => (None, done.to_owned()),
        TaskEffect::Already { state: state @ (TaskState::Isolated | TaskState::Finished) } => {
            (Some(state), format!("already {}", state.as_str()))
        }
        TaskEffect::Already { state } => (Some(state), format!("already {done}")),
    };
    let object = json!({
        "ok": true, "task": task, "node": node, "order": done,
        "changed": found.is_none(), "state": found.map(TaskState::as_str),
    });
    output.finish(&object, &format!("task {task} of node {node}: {outcome}\n"));
    Ok(())
}

fn status_of(client: &mut Client, task: &str) -> Result<Option<TaskStatus>, ClientError> {
    Ok(client.status()?.tasks.into_iter().find(|it| it.name == task))
}

/// Waits until the task, which was so `before`, has been started, whatever became of it then.
fn await_start(client: &mut Client, before: &TaskStatus) -> Result<(), Failure> {
    let deadline = Deadline::after(END_TIMEOUT);
    let (name, rank) = (&before.name, client.rank());
    loop {
        let now = status_of(client, name).map_err(Failure::new)?;
        let Some(now) = now.filter(|now| is_waited_for(before, now)) else { return Ok(()) };
        if let Some(why) = not_started(&now) {
            let reason = Refused::NotStarted { name: name.clone(), why: why.to_owned() };
            return Err(Failure::new(ClientError::Refused { rank, reason }));
        }
        if deadline.has_passed() {
            let s = END_TIMEOUT.as_secs();
            let cause = format!(
                "task {name} of node {rank} was killed and has not ended within {s} s; it is \
                 started once it has"
            );
            return Err(Failure::of(Code::Timeout, cause, "look again with `weft status`"));
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
}

/// Whether nothing shows yet that it was started, or that a later order replaced this one.
fn is_waited_for(before: &TaskStatus, now: &TaskStatus) -> bool {
    match now.state {
        TaskState::Running => now.pid == before.pid,
        TaskState::Waiting => now.restarts == before.restarts,
        TaskState::Faulty => true,
        TaskState::Killed | TaskState::Isolated | TaskState::Finished => false,
    }
}

/// Why it could not be started, if that is the last that is known of it.
fn not_started(now: &TaskStatus) -> Option<&str> {
    match now.last_errors.last().map(|last| &last.fault) {
        Some(TaskFault::NotStarted { why }) if now.pid.is_none() => Some(why),
        _ => None,
    }
}

//! `weft task`: start, stop, restart or isolate a task of a node.

use clap::{Args, Subcommand};
use serde_json::json;

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::output::Output;
use crate::node::control::{TaskEffect, TaskOrder, TaskState};

/// Arguments of `weft task`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, Subcommand)]
enum Order {
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

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let (which, order, done) = match &arguments.order {
        Order::Start(which) => (which, TaskOrder::Start, "started"),
        Order::Stop(which) => (which, TaskOrder::Stop, "stopped"),
        Order::Restart(which) => (which, TaskOrder::Restart, "restarted"),
        Order::Isolate(which) => (which, TaskOrder::Isolate, "isolated"),
    };
    let mut client = which.cluster.find()?.connect(which.node)?;
    let effect = client.order(&which.task, order).map_err(Failure::new)?;
    let Which { task, node, .. } = which;
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

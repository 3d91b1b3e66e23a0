//! `weft report`: an error of a task, or its progress, told to its node.
//!
//! Below a node's guard the task, the node and the cluster are known from the environment;
//! elsewhere they are named.

use clap::{ArgGroup, Args};
use serde_json::json;

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::output::Output;
use crate::task::{self, TaskCallError, VARIABLE_TASK};

/// Arguments of `weft report`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["error", "beat"])))]
pub(super) struct Arguments {
    /// The task's name; a task itself need not say it.
    #[arg(long, requires = "node", value_name = "NAME")]
    task: Option<String>,

    /// The node that guards it; a task itself need not say it.
    #[arg(long, requires = "task", value_name = "RANK")]
    node: Option<u16>,

    /// The error that it has met, a number from 0 to 65535 whose meaning is the task's.
    #[arg(long, value_name = "E")]
    error: Option<u16>,

    /// It makes progress.
    #[arg(long)]
    beat: bool,

    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let task = match (&arguments.task, arguments.node) {
        (Some(task), Some(node)) => {
            let mut client = arguments.cluster.find()?.connect(node)?;
            let told = match arguments.error {
                Some(error) => client.report(task, error),
                None => client.beat(task),
            };
            told.map_err(Failure::new)?;
            task.clone()
        }
        _ => {
            let told = arguments.error.map_or_else(task::beat, task::report);
            told.map_err(Failure::new)?;
            let unknown = |_| TaskCallError::NotGuarded { variable: VARIABLE_TASK };
            std::env::var(VARIABLE_TASK).map_err(unknown).map_err(Failure::new)?
        }
    };
    let text = match arguments.error {
        Some(error) => format!("task {task}: error {error} reported\n"),
        None => format!("task {task}: progress reported\n"),
    };
    output.finish(&json!({ "ok": true, "task": task, "error": arguments.error }), &text);
    Ok(())
}

//! `weft vote`: the vote of a task that is a version of an N-version task.
//!
//! Below a node's guard the task, the node and the cluster are known from the environment;
//! elsewhere they are named.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use serde_json::json;

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::output::Output;
use weft::explain::Code;
use weft::task::{self, TaskCallError, VARIABLE_TASK, Vote};

/// The longest file that is voted for: it is read at once.
const FILE_MAX: usize = 64 << 20;

/// Arguments of `weft vote`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["number", "file"])))]
pub(super) struct VoteArguments {
    /// The task's name; a task itself need not say it.
    #[arg(long, requires = "node", value_name = "NAME")]
    task: Option<String>,

    /// The node that guards it; a task itself need not say it.
    #[arg(long, requires = "task", value_name = "RANK")]
    node: Option<u16>,

    /// The round, from 1: all versions number what they compute alike.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    round: u32,

    /// Vote for this number.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    number: Option<i64>,

    /// Vote for the content of this file, up to 64 MiB: it agrees only with the same bytes.
    #[arg(long, value_name = "F")]
    file: Option<PathBuf>,

    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &VoteArguments, output: Output) -> Result<(), Failure> {
    let vote = vote_of(arguments)?;
    let round = arguments.round;
    let task = match (&arguments.task, arguments.node) {
        (Some(task), Some(node)) => {
            let mut client = arguments.cluster.find()?.connect(node)?;
            client.vote(task, round, vote).map_err(Failure::new)?;
            task.clone()
        }
        _ => {
            task::vote(round, vote).map_err(Failure::new)?;
            let unknown = |_| TaskCallError::NotGuarded { variable: VARIABLE_TASK };
            std::env::var(VARIABLE_TASK).map_err(unknown).map_err(Failure::new)?
        }
    };
    let object = json!({ "ok": true, "task": task, "round": round, "vote": vote });
    output.finish(&object, &format!("task {task}: voted {vote} in round {round}\n"));
    Ok(())
}

fn vote_of(arguments: &VoteArguments) -> Result<Vote, Failure> {
    let Some(file) = &arguments.file else {
        return Ok(Vote::Number(arguments.number.unwrap_or_default()));
    };
    let bytes = super::rl::read(file, FILE_MAX)?;
    if bytes.len() > FILE_MAX {
        let cause = format!("{} is longer than {} MiB", file.display(), FILE_MAX >> 20);
        let cure = "write its SHA-256 to a file, and vote for that";
        return Err(Failure::of(Code::InputUnreadable, cause, cure));
    }
    Ok(Vote::of_bytes(&bytes))
}

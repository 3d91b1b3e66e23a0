//! `weft report`: reports an error or the progress of a task to its node.
//!
//! Below a node's guard the task, the node and the cluster are known from the environment;
//! elsewhere they are named. A task's own error ends it as soon as the manager has heard of it, so
//! only a report from elsewhere waits to see what becomes of the task.

use std::time::Duration;

use clap::{ArgGroup, Args};
use serde_json::json;

use super::cluster_choice::{ClusterChoice, seconds};
use super::failure::Failure;
use super::output::Output;
use weft::client::Client;
use weft::clock::Deadline;
use weft::explain;
use weft::node::control::{ReportEffect, TaskState, TaskStatus};
use weft::task::{self, TaskCallError, VARIABLE_TASK};

/// How often is looked for what has become of a task.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Arguments of `weft report`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["error", "beat", "phase"])))]
pub(super) struct ReportArguments {
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

    /// It is in this phase, a number from 0 to 255 whose meaning is the task's.
    #[arg(long, value_name = "N")]
    phase: Option<u8>,

    /// How long to wait, in seconds, for the manager to have a task that is named started again.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", allow_negative_numbers = true)]
    wait: f64,

    #[command(flatten)]
    cluster: ClusterChoice,
}

/// What has become of the task.
enum Became {
    Restarted {
        left: usize,
    },
    Isolated,
    /// Nothing was to be done about it.
    Noted,
    /// The cluster's recovery script decides.
    ToScript,
    /// No manager has had it started again so far.
    ToBeRestarted {
        left: usize,
    },
}

pub(super) fn run(arguments: &ReportArguments, output: Output) -> Result<(), Failure> {
    let wait = seconds("--wait", arguments.wait)?;
    let (Some(task), Some(node)) = (&arguments.task, arguments.node) else {
        return report_own(arguments, output);
    };
    let mut client = arguments.cluster.find()?.connect(node)?;
    if let Some(phase) = arguments.phase {
        client.phase(task, phase).map_err(Failure::new)?;
        finish_phase(task, phase, output);
        return Ok(());
    }
    let Some(error) = arguments.error else {
        client.beat(task).map_err(Failure::new)?;
        finish_beat(task, output);
        return Ok(());
    };
    let became = match client.report(task, error).map_err(Failure::new)? {
        ReportEffect::Isolated => Became::Isolated,
        ReportEffect::Noted => Became::Noted,
        ReportEffect::ToScript => Became::ToScript,
        ReportEffect::Restart { restarts, left } => {
            await_restart(&mut client, task, (restarts, left), Deadline::after(wait))?
        }
    };
    let (word, text) = became.texts();
    let object = json!({ "ok": true, "task": task, "error": error, "outcome": word });
    output.finish(&object, &format!("task {task}: error {error} reported; {text}\n"));
    Ok(())
}

/// By a task itself, which may not live to hear more.
fn report_own(arguments: &ReportArguments, output: Output) -> Result<(), Failure> {
    let error = arguments.error;
    let sent = match arguments.phase {
        Some(phase) => task::phase(phase),
        None => error.map_or_else(task::beat, task::report),
    };
    sent.map_err(Failure::new)?;
    let unknown = |_| TaskCallError::NotGuarded { variable: VARIABLE_TASK };
    let task = std::env::var(VARIABLE_TASK).map_err(unknown).map_err(Failure::new)?;
    if let Some(phase) = arguments.phase {
        finish_phase(&task, phase, output);
        return Ok(());
    }
    match error {
        Some(error) => {
            let object = json!({ "ok": true, "task": task, "error": error });
            output.finish(&object, &format!("task {task}: error {error} reported\n"));
        }
        None => finish_beat(&task, output),
    }
    Ok(())
}

fn finish_phase(task: &str, phase: u8, output: Output) {
    let object = json!({ "ok": true, "task": task, "phase": phase });
    output.finish(&object, &format!("task {task}: phase {phase} reported\n"));
}

fn finish_beat(task: &str, output: Output) {
    let object = json!({ "ok": true, "task": task, "error": null });
    output.finish(&object, &format!("task {task}: progress reported\n"));
}

/// Waits until the task, which was started again `restarts` times before, is so once more.
fn await_restart(
    client: &mut Client,
    task: &str,
    (restarts, left): (u64, usize),
    deadline: Deadline,
) -> Result<Became, Failure> {
    loop {
        let status = client.status().map_err(Failure::new)?;
        match status.tasks.iter().find(|it| it.name == task) {
            Some(TaskStatus { state: TaskState::Isolated, .. }) => return Ok(Became::Isolated),
            Some(it) if it.restarts > restarts => return Ok(Became::Restarted { left }),
            _ if deadline.has_passed() => return Ok(Became::ToBeRestarted { left }),
            _ => std::thread::park_timeout(LOOK_EVERY),
        }
    }
}

impl Became {
    /// For scripts and for people.
    fn texts(&self) -> (&'static str, String) {
        let then = |left: &usize| match left {
            0 => "one more failure soon isolates it".to_owned(),
            left => format!("it may be so {} more for now", explain::times(*left as u64)),
        };
        match self {
            Self::Restarted { left } => {
                ("restarted", format!("it was started again, and {}", then(left)))
            }
            Self::Isolated => ("isolated", "it has failed too often and is isolated".to_owned()),
            Self::Noted => (
                "noted",
                "it is counted, and nothing else is done: the task does not run, or is ending"
                    .to_owned(),
            ),
            Self::ToScript => {
                let text = "the recovery script decides; `weft status --why` shows what it ordered";
                ("to_script", text.to_owned())
            }
            Self::ToBeRestarted { left } => {
                let text = "no manager has had it started again yet, which counts all the same";
                ("undecided", format!("{text}: {}", then(left)))
            }
        }
    }
}

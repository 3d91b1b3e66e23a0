//! `weft watch`: the events of a running cluster, for those who are no member of it.

mod exec;

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::cluster_choice::{ClusterChoice, seconds};
use super::failure::Failure;
use super::output::Output;
use exec::Exec;
use weft::client::{ClientError, Kind, WatchEvent};
use weft::clock::Deadline;
use weft::explain::Code;

/// How long no node may answer before the cluster counts as ended.
const GONE_AFTER: Duration = Duration::from_secs(5);
#[derive(Debug, Args)]
pub(super) struct WatchArguments {
    #[command(flatten)]
    cluster: ClusterChoice,

    /// Only events of these kinds.
    #[arg(long, value_delimiter = ',', value_name = "KIND,…",
          value_parser = PossibleValuesParser::new(Kind::ALL.map(Kind::as_str)))]
    only: Vec<String>,

    /// Run this program for each event, one at a time: the event is in WEFT_EVENT, WEFT_VIEW,
    /// WEFT_TERM, WEFT_RANK, WEFT_INCARNATION, WEFT_VERDICT and WEFT_TASK_NAME, and as JSON on its
    /// input. Up to 64 events wait; what it prints goes to standard error.
    #[arg(long, value_name = "PROGRAM")]
    exec: Option<std::path::PathBuf>,

    /// Kill the program of --exec, with its process group, after so many seconds.
    #[arg(
        long,
        requires = "exec",
        default_value_t = 30.0,
        value_name = "SECONDS",
        allow_negative_numbers = true
    )]
    exec_timeout: f64,

    /// End after so many seconds; without it, when the cluster does.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    seconds: Option<f64>,
}

/// Prints events until the cluster ends, or for as long as it was asked to.
pub(super) fn run(arguments: &WatchArguments, output: Output) -> Result<(), Failure> {
    let limit = arguments.seconds.map(|it| seconds("--seconds", it)).transpose()?;
    let deadline = Deadline::after(limit.unwrap_or(Duration::MAX));
    let timeout = seconds("--exec-timeout", arguments.exec_timeout)?;
    let exec = arguments.exec.as_deref().map(|path| Exec::start(path, timeout));
    let mut exec = exec.transpose()?;
    let mut watcher = arguments.cluster.watch()?;
    while !deadline.has_passed() {
        let event = match watcher.next(deadline.remaining().min(GONE_AFTER)) {
            Ok(Some(event)) => event,
            Ok(None) => continue,
            Err(error) if watcher.view().members.is_empty() => return Err(Failure::new(error)),
            Err(error @ ClientError::Replaced { .. }) => return Err(Failure::new(error)),
            // It ends by order, which leaves nothing, or its nodes are started again.
            Err(_) => match arguments.cluster.check() {
                Ok(()) => continue,
                Err(failure) if failure.code() == Code::ClusterNotRunning => break,
                Err(failure) => return Err(failure),
            },
        };
        if arguments.selects(event.event) {
            output.finish(&event, &line(&event));
            output.check()?;
            exec.iter_mut().for_each(|exec| exec.offer(&event));
        }
    }
    exec.map_or(Ok(()), Exec::end)
}

impl WatchArguments {
    fn selects(&self, kind: Kind) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == kind.as_str())
    }
}

/// The event for people.
fn line(event: &WatchEvent) -> String {
    let WatchEvent { view, term, evidence, .. } = event;
    let who = match (event.rank, event.incarnation.as_deref()) {
        (Some(rank), Some(incarnation)) => format!(" node {rank} ({incarnation})"),
        (Some(rank), None) if event.task.is_some() => {
            format!(" {} of node {rank}", event.task.as_deref().unwrap_or_default())
        }
        (Some(rank), None) => format!(" node {rank}"),
        (None, _) => String::new(),
    };
    let what = match event.event {
        Kind::View => {
            let ranks: Vec<_> = event.members.iter().map(|it| it.rank.to_string()).collect();
            format!(": members {}", ranks.join(", "))
        }
        Kind::Missed => format!(": {} notes", event.missed),
        _ => event.verdict.as_ref().map_or(String::new(), |it| format!(": {it}")),
    };
    let why =
        if evidence.is_empty() { String::new() } else { format!(" ({})", evidence.join("; ")) };
    let name = event.event;
    format!("view {view:#x}, term {term}: {name}{who}{what}{why}\n")
}

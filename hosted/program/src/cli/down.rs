//! `weft down`: end a running cluster, through its launcher, or else each node by itself.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::cluster_choice::{ClusterChoice, Running};
use super::failure::Failure;
use super::output::Output;
use weft::client::{Client, ClientError};
use weft::clock::Deadline;
use weft::explain::Code;
use weft::launch::call_off;
use weft::runtime_dir::ClusterDir;

/// How long the nodes may take to acknowledge, and their processes to exit.
const END_TIMEOUT: Duration = Duration::from_secs(20);
/// How often to check whether they have.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Arguments of `weft down`.
#[derive(Debug, Args)]
pub(super) struct DownArguments {
    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &DownArguments, output: Output) -> Result<(), Failure> {
    let running = match arguments.cluster.find() {
        Err(failure) if failure.code() == Code::ClusterDead => {
            let dir = arguments.cluster.clear()?;
            say(&dir, 0, "it was dead; its files were removed", output);
            return Ok(());
        }
        found => found?,
    };
    let deadline = Deadline::after(END_TIMEOUT);
    // A launcher starts nodes again, and ends all that it has started.
    let called_off = call_off(&running.dir, END_TIMEOUT).map_err(|error| {
        let cause = format!("the launcher of the cluster does not answer: {error}");
        Failure::of(Code::Timeout, cause, "end `weft up` with Ctrl-C, or kill it, and try again")
    })?;
    let mut stopped = BTreeSet::new();
    loop {
        if called_off.is_none() {
            // Repeated: in a cluster that is starting, some nodes do not listen yet.
            let rest = running.ranks().filter(|rank| !stopped.contains(rank));
            for rank in rest.collect::<Vec<_>>() {
                if stop(&running, rank)? {
                    stopped.insert(rank);
                }
            }
        }
        if running.dir.left_by_others().is_some() {
            break;
        }
        if deadline.has_passed() {
            let cause = format!("{} is still there", running.dir.path().display());
            let cure = "run `weft status` to see which nodes still run";
            return Err(Failure::of(Code::Timeout, cause, cure));
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
    let stopped = called_off.unwrap_or(stopped.len());
    say(&running.dir, stopped, &format!("{stopped} nodes ended"), output);
    Ok(())
}

/// Says that the cluster has ended, and which files that are not Weft's keep its directory.
fn say(dir: &ClusterDir, stopped: usize, what: &str, output: Output) {
    let (name, left) = (dir.name(), dir.left_by_others().unwrap_or_default());
    let object = json!({ "ok": true, "name": name.as_str(), "stopped": stopped, "left": left });
    let mut said = format!("cluster {name}: {what}\n");
    if !left.is_empty() {
        let (path, left) = (dir.path().display(), left.join(", "));
        said += &format!("{path} holds files that are not Weft's: {left}; ");
        said += "no cluster of this name can start until they are moved away\n";
    }
    output.finish(&object, &said);
}

/// Whether the node was running.
fn stop(running: &Running, rank: u16) -> Result<bool, Failure> {
    let client = Client::connect(&running.dir, &running.cluster, rank, Duration::ZERO);
    match client.and_then(|mut client| client.stop()) {
        Ok(()) => Ok(true),
        Err(ClientError::Unreachable { .. }) => Ok(false),
        Err(error) => Err(Failure::new(error)),
    }
}

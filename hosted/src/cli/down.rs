//! `weft down`: end a running cluster.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::output::Output;
use crate::client::ClientError;
use crate::clock::Deadline;
use crate::explain::Code;

/// How long the processes may take to end after the last node has said yes.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of `weft down`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let running = arguments.cluster.find()?;
    let mut stopped = 0;
    for rank in running.ranks() {
        // A node that does not answer is dead already.
        let Ok(mut client) = running.connect(rank) else { continue };
        match client.stop() {
            Ok(()) | Err(ClientError::Unreachable { .. }) => stopped += 1,
            Err(error) => return Err(Failure::new(error)),
        }
    }
    let deadline = Deadline::after(END_TIMEOUT);
    while running.dir.path().exists() {
        if deadline.has_passed() {
            let cause = format!("{} is still there", running.dir.path().display());
            return Err(Failure::of(Code::Timeout, cause, "see what holds it with `weft status`"));
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let name = running.cluster.name.as_str();
    let object = json!({ "ok": true, "name": name, "stopped": stopped });
    output.finish(&object, &format!("cluster {name}: {stopped} nodes ended\n"));
    Ok(())
}

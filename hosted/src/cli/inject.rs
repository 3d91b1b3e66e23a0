//! `weft inject`: break something in a running cluster.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::output::Output;

/// Arguments of `weft inject`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    fault: Fault,
}

#[derive(Debug, Subcommand)]
enum Fault {
    /// Kill a node's component process with SIGKILL; its supervisor starts the next one.
    Kill(Kill),
}

#[derive(Debug, Args)]
struct Kill {
    /// The node's rank.
    node: u16,

    #[command(flatten)]
    cluster: ClusterChoice,

    /// Wait so many seconds until the node runs again; 0 does not wait.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    wait: f64,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let Fault::Kill(kill) = &arguments.fault;
    let wait = super::cluster_choice::seconds("--wait", kill.wait)?;
    let running = kill.cluster.find()?;
    let mut client = running.connect(kill.node)?;
    let node = kill.node;
    let status = client.status().map_err(Failure::new)?;
    let before = status.incarnation;
    let joined = status.peers.iter().filter(|peer| peer.incarnation.is_some()).count();
    client.kill().map_err(Failure::new)?;
    if wait == Duration::ZERO {
        let object = json!({ "ok": true, "node": node, "killed": before });
        output.finish(&object, &format!("node {node}: component of incarnation {before} killed\n"));
        return Ok(());
    }
    let after = client.await_joined(before + 1, joined, wait).map_err(Failure::new)?;
    let recovery_us = after.last_recovery_us;
    let object = json!({
        "ok": true,
        "node": node,
        "killed": before,
        "incarnation": after.incarnation,
        "recovery_us": recovery_us,
    });
    let text = format!(
        "node {node}: component of incarnation {before} killed; incarnation {} runs after {} ms\n",
        after.incarnation,
        recovery_us.unwrap_or_default() / 1_000,
    );
    output.finish(&object, &text);
    Ok(())
}

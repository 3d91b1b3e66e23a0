//! `weft check`: whether a cluster file is one, without starting anything.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::output::Output;
use super::rl;
use weft::cluster::Cluster;

/// Arguments of `weft check`.
#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// The cluster file.
    file: PathBuf,
}

pub(super) fn run(arguments: &CheckArguments, output: Output) -> Result<(), Failure> {
    let mut cluster = Cluster::load(&arguments.file).map_err(Failure::new)?;
    rl::install(&mut cluster, Some(&arguments.file), output)?;
    cluster.check_programs().map_err(Failure::new)?;
    let file = arguments.file.display().to_string();
    let text = format!(
        "{file}: cluster {} of {} nodes over {}; every value is within its limit, and this \
         host has every program\n",
        cluster.name, cluster.nodes, cluster.fabric
    );
    let name = cluster.name.as_str();
    output.finish(&json!({ "ok": true, "name": name, "nodes": cluster.nodes }), &text);
    Ok(())
}

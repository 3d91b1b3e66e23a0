//! `weft doctor`: what this machine can do.

use std::path::PathBuf;

use clap::Args;

use super::failure::Failure;
use super::node::beside;
use super::output::Output;
use crate::doctor;
use weft::bootstrap::Key;
use weft::cluster::Cluster;
use weft::explain::Code;

/// Arguments of `weft doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    /// Examine the machine for the cluster of this file, instead of the default one.
    cluster: Option<PathBuf>,
}

pub(super) fn run(arguments: &DoctorArguments, output: Output) -> Result<(), Failure> {
    let report = match &arguments.cluster {
        None => doctor::examine(),
        Some(path) => {
            let cluster = Cluster::load(path).map_err(Failure::new)?;
            if let Some(key) = &cluster.network.key {
                Key::load(&beside(path, key)).map_err(Failure::new)?;
            }
            doctor::examine_for(&cluster)
        }
    };
    output.finish(&report, &report.to_string());
    if report.ok() {
        return Ok(());
    }
    let cause = "something that Weft needs is missing on this machine";
    Err(Failure::of(Code::Permission, cause, "mend what the report calls missing"))
}

//! `weft conform`: what a fabric really does.

use clap::Args;

use super::fabric_choice::explained;
use super::failure::Failure;
use super::output::Output;
use crate::conform::{ConformError, ConformSubject, examine, steps};
use weft::cluster::FabricKind;
use weft::explain::Code;

/// How many there are in the suite.
const ENDPOINTS: usize = 3;

/// Arguments of `weft conform`.
#[derive(Debug, Args)]
pub(super) struct ConformArguments {
    /// What is examined: shm, which is the default, or verbs.
    #[arg(long, value_name = "FABRIC")]
    fabric: Option<String>,

    /// The RDMA devices of the three endpoints, at most one for each, taken in turn: rxe0, or
    /// rxe1,rxe2 for packets that cross a wire; with it the fabric is verbs. Without it the first
    /// device.
    #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
    device: Vec<String>,

    /// How often each case of the suite is tried. Each probe posts for N tenths of a second, and
    /// sees the more the longer it does.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
}

fn failed(error: ConformError) -> Failure {
    let cause = error.to_string();
    match error {
        ConformError::Verbs(error) => explained(error),
        ConformError::Vanished { .. } => {
            let cure = "see `rdma link`, `ip link` and the kernel's log for why, and begin again";
            Failure::of(Code::Rdma, cause, cure)
        }
        ConformError::Host(_) | ConformError::Thread(_) => {
            Failure::of(Code::Limit, cause, "raise the limit that it names, and begin again")
        }
    }
}

pub(super) fn run(arguments: &ConformArguments, output: Output) -> Result<(), Failure> {
    let fabric = arguments.fabric.as_deref().map(str::parse).transpose().map_err(Failure::new)?;
    let devices = &arguments.device;
    let subject = match fabric {
        Some(FabricKind::Shm) if !devices.is_empty() => {
            let cause = "shm uses no device, and --device names one";
            return Err(Failure::of(Code::Usage, cause, "leave --fabric or --device out"));
        }
        _ if devices.len() > ENDPOINTS => {
            let cause = format!("{} devices are named for {ENDPOINTS} endpoints", devices.len());
            return Err(Failure::of(Code::Usage, cause, "name at most one for each"));
        }
        None if devices.is_empty() => ConformSubject::Shm,
        Some(FabricKind::Shm) => ConformSubject::Shm,
        None | Some(FabricKind::Verbs) => ConformSubject::Verbs(devices.clone()),
    };
    let bar = output.progress(steps(arguments.rounds), "rules");
    let report = examine(&subject, arguments.rounds, |_| bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(failed)?;
    output.finish(&report, &report.to_string());
    if report.ok {
        return Ok(());
    }
    let broken = report.rules.iter().filter(|rule| !rule.held).map(|rule| rule.rule);
    let cause = format!("the fabric breaks {}", broken.collect::<Vec<_>>().join(", "));
    let cure = "do not run clusters over it; what was seen stands beside each rule";
    Err(Failure::of(Code::Verification, cause, cure))
}

//! `weft bench detect`: how soon the DIR net notices, and how seldom it is wrong.

use clap::Args;

use super::between;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::cluster::Profile;
use weft_bench::detect::{self, DetectFault, DetectPlan};

/// Ten million heartbeats for the goals: --heartbeats 10000000.
#[derive(Debug, Args)]
pub(super) struct DetectBenchArguments {
    /// Faults of each kind in virtual time.
    #[arg(long, default_value_t = 200, value_name = "COUNT", value_parser = between(1, 100_000))]
    runs: u32,

    /// Heartbeats of each accuracy run.
    #[arg(long, default_value_t = 200_000, value_name = "COUNT")]
    heartbeats: u64,

    /// Faults of each kind at real processes over shared memory; 0 for none.
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = between(0, 1_000))]
    rounds: u32,

    /// Only faults of this kind; may be repeated.
    #[arg(long, value_name = "FAULT")]
    fault: Vec<DetectFault>,

    /// Only this profile; may be repeated.
    #[arg(long, value_name = "PROFILE")]
    profile: Vec<Profile>,
}

pub(super) fn run(arguments: &DetectBenchArguments, output: Output) -> Result<(), Failure> {
    let DetectBenchArguments { runs, heartbeats, rounds, fault, profile } = arguments;
    let all = || DetectFault::ALL.map(|(fault, _)| fault).to_vec();
    let faults = if fault.is_empty() { all() } else { fault.clone() };
    let profiles = if profile.is_empty() { Profile::ALL.to_vec() } else { profile.clone() };
    let plan =
        DetectPlan { runs: *runs, heartbeats: *heartbeats, rounds: *rounds, faults, profiles };
    let bar = output.progress(detect::parts(&plan), "measuring");
    let report = detect::run(&plan, || bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(Failure::new)?;
    output.finish(&report, &report.to_string());
    Ok(())
}

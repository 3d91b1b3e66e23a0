//! `weft bench recovery`: what it costs to recover by a script.

use clap::Args;

use super::between;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft_bench::recovery::{self, RecoveryPlan};

/// Arguments of `weft bench recovery`.
#[derive(Debug, Args)]
pub(super) struct RecoveryArguments {
    /// How often the rivals take turns.
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = between(1, 1000))]
    rounds: u32,

    /// How many tasks are restarted by each in a round; 0 for none.
    #[arg(long, default_value_t = 20, value_name = "COUNT", value_parser = between(0, 1000))]
    restarts: u32,
}

pub(super) fn run(arguments: &RecoveryArguments, output: Output) -> Result<(), Failure> {
    let RecoveryArguments { rounds, restarts } = *arguments;
    let plan = RecoveryPlan { rounds, restarts };
    let bar = output.progress(recovery::parts(&plan), "measuring");
    let report = recovery::run(&plan, || bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(Failure::new)?;
    output.finish(&report, &report.to_string());
    Ok(())
}

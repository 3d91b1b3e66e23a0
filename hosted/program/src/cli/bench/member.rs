//! `weft bench member`: what a program that is a member costs.

use std::time::Duration;

use clap::Args;

use super::between;
use crate::cli::cluster_choice::seconds;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::explain::Code;
use weft_bench::member::{self, MemberPlan, MemberScript};

/// Arguments of `weft bench member`.
#[derive(Debug, Args)]
pub(super) struct MemberArguments {
    /// How often the mailbox and the programs take turns.
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = between(1, 1000))]
    rounds: u32,

    /// How long each part of a round is measured, in seconds.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", allow_negative_numbers = true)]
    seconds: f64,

    /// How many nodes are killed, and how many isolated, to time what follows from the verdict.
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = between(0, 1000))]
    faults: u32,
}

/// Arguments of the program that is measured.
#[derive(Debug, Args)]
pub(super) struct MeasuredProgram {
    script: String,
    millis: u64,
}

pub(super) fn run(arguments: &MemberArguments, output: Output) -> Result<(), Failure> {
    let per_round = seconds("--seconds", arguments.seconds)?;
    if per_round < Duration::from_millis(50) {
        let cause = format!("--seconds is {}, too short to sample", per_round.as_secs_f64());
        return Err(Failure::of(Code::Usage, cause, "give 0.05 seconds or more"));
    }
    let plan = MemberPlan { rounds: arguments.rounds, per_round, faults: arguments.faults };
    let bar = output.progress(u64::from(plan.rounds + plan.faults), "measuring");
    let report = member::run(&plan, || bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(Failure::new)?;
    output.finish(&report, &report.to_string());
    Ok(())
}

pub(super) fn run_program(arguments: &MeasuredProgram) -> Result<(), Failure> {
    let script = MemberScript::ALL.into_iter().find(|it| it.as_str() == arguments.script);
    let Some(script) = script else {
        let cause = format!("no such part: {}", arguments.script);
        return Err(Failure::of(Code::Usage, cause, "run `weft bench member`"));
    };
    member::run_program(script, Duration::from_millis(arguments.millis)).map_err(Failure::new)
}

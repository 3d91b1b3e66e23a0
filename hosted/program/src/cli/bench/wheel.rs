//! `weft bench wheel`: what timers cost.

use clap::Args;

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::explain::Code;
use weft_bench::wheel::{self, SIZES, WheelPlan};

/// Counts of instructions, which no noise can move, come from the same command below valgrind:
/// valgrind --tool=callgrind weft bench wheel --timers 10000 --turns 3.
#[derive(Debug, Args)]
pub(super) struct WheelBenchArguments {
    /// Only so many timers, up to 1000000; may be repeated.
    #[arg(long, value_name = "COUNT")]
    timers: Vec<usize>,

    /// How many turns each rival has.
    #[arg(long, default_value_t = 25, value_name = "COUNT")]
    turns: u32,
}

pub(super) fn run(arguments: &WheelBenchArguments, output: Output) -> Result<(), Failure> {
    let most = SIZES[SIZES.len() - 1];
    if let Some(timers) = arguments.timers.iter().find(|timers| !(1..=most).contains(*timers)) {
        let cause = format!("--timers is {timers}, which no wheel of the benchmark has");
        return Err(Failure::of(Code::Usage, cause, format!("give 1 to {most}")));
    }
    if arguments.turns == 0 {
        return Err(Failure::of(Code::Usage, "--turns is 0", "give 1 or more"));
    }
    let sizes = if arguments.timers.is_empty() { SIZES.to_vec() } else { arguments.timers.clone() };
    let bar = output.progress(sizes.len() as u64, "measuring");
    let report = wheel::run(&WheelPlan { sizes, turns: arguments.turns }, |_| bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(Failure::new)?;
    output.finish(&report, &report.to_string());
    Ok(())
}

//! `weft bench group`: what a broadcast along a tree costs.

use clap::Args;

use super::{between, length};
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft_bench::group::{self, BYTES, GroupPlan, MEMBERS};

/// Arguments of `weft bench group`.
#[derive(Debug, Args)]
pub(super) struct GroupBenchArguments {
    /// Only among so many members, 2 to 16; several with commas.
    #[arg(long, value_name = "COUNT", value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(2..=16))]
    members: Vec<u16>,

    /// Only messages of so many bytes, 8 to 1G, with K, M or G for units of 1024; several with
    /// commas.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = length)]
    bytes: Vec<usize>,

    /// How often the rivals take turns.
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = between(1, 1000))]
    rounds: u32,

    /// Each member as a process of its own, as those of an MPI are, instead of a thread.
    #[arg(long)]
    processes: bool,

    /// Measure how long a send keeps a member busy and how long a message travels, and print which
    /// trees follow for entries: what to set group.topology and group.latency to.
    #[arg(long, conflicts_with = "bytes")]
    model: bool,
}

pub(super) fn run(arguments: &GroupBenchArguments, output: Output) -> Result<(), Failure> {
    let GroupBenchArguments { members, bytes, rounds, processes, model } = arguments;
    if *model {
        return run_model(members.iter().copied().max(), *rounds, *processes, output);
    }
    let members = if members.is_empty() { MEMBERS.to_vec() } else { members.clone() };
    let bytes = if bytes.is_empty() { BYTES.to_vec() } else { bytes.clone() };
    let bar = output.progress(members.len() as u64 * u64::from(*rounds), "measuring");
    let are_processes = *processes;
    let plan = GroupPlan { members, bytes, rounds: *rounds, are_processes };
    let report = group::run(&plan, || bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(Failure::new)?;
    output.finish(&report, &report.to_string());
    Ok(())
}

fn run_model(
    members: Option<u16>,
    rounds: u32,
    are_processes: bool,
    output: Output,
) -> Result<(), Failure> {
    let members = members.or(MEMBERS.into_iter().max()).unwrap_or(2);
    let bar = output.progress(u64::from(rounds), "measuring");
    let report = group::run_model(members, rounds, are_processes, || bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(Failure::new)?;
    output.finish(&report, &report.to_string());
    Ok(())
}

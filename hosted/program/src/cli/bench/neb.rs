//! `weft bench neb`: what a non-equivocating broadcast costs.

use clap::Args;

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::explain::Code;
use weft_bench::neb::{self, BYTES, MEMBERS, NebPlan};

/// Arguments of `weft bench neb`.
#[derive(Debug, Args)]
pub(super) struct NebBenchArguments {
    /// Only among so many members, 2 to 16; may be repeated.
    #[arg(long, value_name = "COUNT")]
    members: Vec<u16>,

    /// Only messages of so many bytes, 8 or 16 to 4096; may be repeated.
    #[arg(long, value_name = "BYTES")]
    bytes: Vec<usize>,

    /// How many messages of each kind; 100 or more, of which one in a hundred is slower than p99.
    #[arg(long, default_value_t = 2000, value_name = "COUNT")]
    messages: u64,
}

pub(super) fn run(arguments: &NebBenchArguments, output: Output) -> Result<(), Failure> {
    let NebBenchArguments { members, bytes, messages } = arguments;
    if let Some(members) = members.iter().find(|members| !(2..=16).contains(*members)) {
        let cause = format!("--members is {members}");
        return Err(Failure::of(Code::Usage, cause, "give 2 to 16"));
    }
    if let Some(bytes) = bytes.iter().find(|bytes| **bytes != 8 && !(16..=4096).contains(*bytes)) {
        let cause = format!("--bytes is {bytes}");
        return Err(Failure::of(Code::Usage, cause, "give 8, or 16 to 4096"));
    }
    if !(100..=1_000_000).contains(messages) {
        let cause = format!("--messages is {messages}");
        return Err(Failure::of(Code::Usage, cause, "give 100 to 1000000: fewer have no p99"));
    }
    let or_all =
        |chosen: &[u16]| if chosen.is_empty() { MEMBERS.to_vec() } else { chosen.to_vec() };
    let members = or_all(members);
    let bytes = if bytes.is_empty() { BYTES.to_vec() } else { bytes.clone() };
    let bar = output.progress((members.len() * bytes.len()) as u64, "measuring");
    let report = neb::run(&NebPlan { members, bytes, messages: *messages }, || bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(Failure::new)?;
    output.finish(&report, &report.to_string());
    Ok(())
}

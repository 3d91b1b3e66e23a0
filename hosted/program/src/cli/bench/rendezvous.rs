//! `weft bench rendezvous`: what a tensor costs by each path.

use clap::Args;

use super::{between, length};
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft_bench::rendezvous::{self, BYTES, TensorPlan};

/// Arguments of `weft bench rendezvous`.
#[derive(Debug, Args)]
pub(super) struct RendezvousArguments {
    /// Only values of so many bytes, 4096 to 1G, with K, M or G for units of 1024; several with
    /// commas. Up to 1M they are read at once, up to 64M in parts; all are handed over.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = tensor_length)]
    bytes: Vec<usize>,

    /// How often the rivals take turns.
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = between(1, 1000))]
    rounds: u32,
}

fn tensor_length(word: &str) -> Result<usize, String> {
    let length = length(word).ok().filter(|length| *length >= 4096 && length.is_multiple_of(64));
    length.ok_or_else(|| "give 4K to 1G in multiples of 64, as in 4096, 4K or 64M".to_owned())
}

pub(super) fn run(arguments: &RendezvousArguments, output: Output) -> Result<(), Failure> {
    let RendezvousArguments { bytes, rounds } = arguments;
    let bytes = if bytes.is_empty() { BYTES.to_vec() } else { bytes.clone() };
    let bar = output.progress(u64::from(*rounds), "measuring");
    let report = rendezvous::run(&TensorPlan { bytes, rounds: *rounds }, || bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(Failure::new)?;
    output.finish(&report, &report.to_string());
    Ok(())
}

//! bench
use super::failure::Failure;
use super::output::Output;
use clap::Args;
/// Arguments of `weft bench`.
#[derive(Debug, Args)]
pub(super) struct Arguments {}
pub(super) fn run(_: &Arguments, _: Output) -> Result<(), Failure> {
    Ok(())
}

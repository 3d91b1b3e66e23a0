//! `weft demo`: the demonstration, with its progress and its summary.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::fabric_choice::FabricChoice;
use super::failure::Failure;
use super::output::Output;
use crate::demo::{self, Input};
use crate::explain::Code;

/// Arguments of `weft demo`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Text files to stream, instead of files of Weft's own repository.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    input: Vec<PathBuf>,

    #[command(flatten)]
    fabric: FabricChoice,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let input = if arguments.input.is_empty() {
        Input::own()
    } else {
        Input::read(&arguments.input).map_err(Failure::new)?
    };
    let mut cluster = demo::cluster();
    arguments.fabric.apply_to_all(&mut cluster)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&interrupted));
        registered.map_err(|error| {
            let cause = format!("signals cannot be listened for: {error}");
            Failure::of(Code::Internal, cause, "see what the machine lacks with `weft doctor`")
        })?;
    }
    let bar = output.progress(0, "messages");
    let summary = demo::run(&cluster, &input, &interrupted, |arrived, all| {
        bar.set_length(all);
        bar.set_position(arrived);
    });
    bar.finish_and_clear();
    let summary = summary.map_err(Failure::new)?;
    output.finish(&summary, &summary.to_string());
    if summary.ok {
        return Ok(());
    }
    let failed = summary.steps.iter().find(|step| !step.ok);
    let name = failed.map_or("a step", |step| step.name);
    let cause = format!("the demo's own check failed at {name:?}");
    Err(Failure::of(Code::Verification, cause, "this is a bug in Weft: report the summary above"))
}

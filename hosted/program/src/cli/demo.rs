//! `weft demo`: the demonstration, with its progress and its summary.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::draft::Draft;
use super::fabric_choice::FabricChoice;
use super::failure::{Failure, lacking};
use super::output::Output;
use super::rl;
use crate::demo::{self, Demonstration, TextInput};
use crate::doctor;
use weft::cluster::FabricKind;
use weft::explain::Code;

/// Arguments of `weft demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// Text files to stream, instead of files of Weft's own repository.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    input: Vec<PathBuf>,

    /// Draw the timeline into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    #[command(flatten)]
    fabric: FabricChoice,
}

pub(super) fn run(arguments: &DemoArguments, output: Output) -> Result<(), Failure> {
    let input = if arguments.input.is_empty() {
        TextInput::own()
    } else {
        TextInput::read(&arguments.input).map_err(Failure::new)?
    };
    // A file that cannot be written is refused before anything is started.
    let draft = arguments.svg.as_deref().map(Draft::begin).transpose()?;
    let mut cluster = demo::cluster();
    arguments.fabric.apply_to_all(&mut cluster)?;
    if cluster.fabric == FabricKind::Verbs {
        // Without the tree broadcast: no test shows groups over devices.
        cluster.group.count = 0;
    }
    cluster.recovery.image = Some(rl::image_of(&cluster, demo::SCRIPT)?);
    doctor::lack(&cluster).map_or(Ok(()), |lack| Err(lacking(lack)))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&interrupted));
        registered.map_err(|error| {
            let cause = format!("signals cannot be listened for: {error}");
            Failure::of(Code::Internal, cause, "see what the machine lacks with `weft doctor`")
        })?;
    }
    output.say(
        "Four nodes stream lines of text to each other while tasks, components and a whole node \
         are killed or hung; each comes back, and no message may be lost, repeated or altered.",
    );
    let bar = output.progress(demo::STRIKES, "strikes survived");
    let shown = demo::run(&cluster, &input, &interrupted, |survived, arrived| {
        bar.set_position(survived);
        bar.set_message(format!("strikes survived, {arrived} messages"));
    });
    bar.finish_and_clear();
    let Demonstration { summary, svg } = shown.map_err(Failure::new)?;
    if let Some(mut draft) = draft {
        draft.write(svg.as_bytes())?;
        draft.finish()?;
    }
    output.finish(&summary, &summary.to_string());
    if summary.ok {
        return Ok(());
    }
    let failed = summary.steps.iter().find(|step| !step.ok);
    let name = failed.map_or("a step", |step| step.name);
    let cause = format!("the demo's own check failed at {name:?}");
    Err(Failure::of(Code::Verification, cause, "this is a bug in Weft: report the summary above"))
}

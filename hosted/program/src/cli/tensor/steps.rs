//! `weft tensors`: what the nodes keep, and the ends of steps.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::cluster_choice::{ClusterChoice, Running, seconds};
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::explain::{self, Explain as _};
use weft::node::control::{KeptTensor, TensorList};

/// Arguments of `weft tensors`.
#[derive(Debug, Args)]
pub(crate) struct TensorsArguments {
    #[command(subcommand)]
    what: TensorsCommand,
}

#[derive(Debug, Subcommand)]
enum TensorsCommand {
    /// Show the tensors that each node keeps, and what they wait for.
    Ls(TensorsLsArguments),
    /// Drop the tensors of a step, and end its receives as aborted. Nothing is sent or received in
    /// that step any more.
    Abort(StepEndArguments),
    /// Drop the tensors of a step, and end its receives as cleaned up. Nothing is sent or received
    /// in that step any more.
    Cleanup(StepEndArguments),
}

/// Arguments of `weft tensors ls`.
#[derive(Debug, Args)]
struct TensorsLsArguments {
    #[command(flatten)]
    cluster: ClusterChoice,
}

/// Arguments of the ends of steps.
#[derive(Debug, Args)]
struct StepEndArguments {
    /// The step.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    step: i64,

    /// Only at this node; otherwise at all.
    #[arg(long, value_name = "RANK")]
    node: Option<u16>,

    /// Give up after this many seconds.
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: f64,

    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(crate) fn run(arguments: &TensorsArguments, output: Output) -> Result<(), Failure> {
    match &arguments.what {
        TensorsCommand::Ls(arguments) => list(arguments, output),
        TensorsCommand::Abort(arguments) => end(arguments, true, output),
        TensorsCommand::Cleanup(arguments) => end(arguments, false, output),
    }
}

fn list(arguments: &TensorsLsArguments, output: Output) -> Result<(), Failure> {
    let running = arguments.cluster.find()?;
    let (mut nodes, mut text) = (Vec::new(), String::new());
    for rank in running.ranks() {
        let listed = running.connect_now(rank).and_then(|mut client| client.tensors());
        match listed {
            Ok(list) => {
                text.push_str(&lines(rank, &list));
                nodes.push(json!({ "node": rank, "tensors": list }));
            }
            // The others are shown nevertheless.
            Err(error) => {
                text.push_str(&format!("node {rank}: {error}\n"));
                let error = json!({ "code": error.code(), "cause": error.to_string() });
                nodes.push(json!({ "node": rank, "error": error }));
            }
        }
    }
    output.finish(&json!({ "ok": true, "nodes": nodes }), &text);
    Ok(())
}

fn lines(rank: u16, list: &TensorList) -> String {
    let TensorList { bytes, limit, receives, waiting, kept } = list;
    let count = kept.len();
    let mut text = format!(
        "node {rank}: tensors: {count}, {bytes} of {limit} bytes; receives that wait: {receives}"
    );
    if *waiting > 0 {
        text.push_str(&format!("; without room: {waiting}"));
    }
    text.push('\n');
    kept.iter().for_each(|kept| text.push_str(&line(kept)));
    text
}

fn line(kept: &KeptTensor) -> String {
    let KeptTensor { number, key, shape, bytes, state } = kept;
    let shape = match shape {
        Some(shape) => format!("{} {:?}", shape.dtype, shape.dims),
        None => "dead".to_owned(),
    };
    let (from, to, step, edge, words) = (key.from, key.to, key.step, &key.edge, state.words());
    format!("  {number:>4}  {from} to {to}  step {step}  {edge:?}  {shape}  {bytes}  {words}\n")
}

fn end(arguments: &StepEndArguments, is_aborted: bool, output: Output) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    let running = arguments.cluster.find()?;
    let nodes = arguments.node.map_or_else(|| all(&running), |node| vec![node]);
    let mut clients = Vec::new();
    for node in &nodes {
        clients.push(running.connect(*node)?);
    }
    for client in &mut clients {
        client.end_step(arguments.step, is_aborted, timeout).map_err(Failure::new)?;
    }
    let (step, how) = (arguments.step, if is_aborted { "aborted" } else { "cleaned up" });
    let object = json!({ "ok": true, "step": step, "nodes": nodes, "aborted": is_aborted });
    output.finish(&object, &format!("step {step} is {how} at {}\n", explain::nodes(&nodes)));
    Ok(())
}

fn all(running: &Running) -> Vec<u16> {
    running.ranks().collect()
}

//! One run of a tool: server and client, from their start to their end.

use super::super::error::VerbsBenchError;
use super::super::pins::Pins;
use super::{Reading, RivalError, read};
use crate::tool::{PairError, ToolProcess, free_port, last_line};
use weft::process::Spawn;

/// How many runs in a row may have a clock astray: a host where a stall meets each of as many
/// measures nothing.
const RUNS_MAX: u32 = 8;

/// The run's parameters.
#[derive(Clone, Debug)]
pub(in super::super) struct Tool {
    pub(in super::super) name: &'static str,
    pub(in super::super) device: String,
    pub(in super::super) port: u8,
    pub(in super::super) bytes: u32,
    pub(in super::super) iterations: u32,
    /// The titles of the columns that are wanted: the best figure and the typical one.
    pub(in super::super) columns: [&'static str; 2],
}

/// What a tool has measured.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Measured {
    /// The figures of its columns.
    pub(in super::super) figures: [f64; 2],
    /// Its runs before, whose clock was astray.
    pub(in super::super) astray: u32,
}

/// Runs the tool until a run has measured its own clock; returns the figures of that run.
pub(in super::super) fn measure(tool: &Tool, pins: &Pins) -> Result<Measured, VerbsBenchError> {
    for astray in 0..RUNS_MAX {
        let table = run(tool, pins)?;
        match read(&table, tool.columns) {
            Reading::Figures(figures) => return Ok(Measured { figures, astray }),
            Reading::Astray => {}
            Reading::Without(column) => {
                return Err(RivalError::Unreadable { tool: tool.name, column }.into());
            }
            Reading::NoTable => {
                return Err(failed(tool, PairError::Failed(last_line(&table))));
            }
        }
    }
    Err(RivalError::Astray { tool: tool.name, runs: RUNS_MAX }.into())
}

/// Runs the tool once; returns all that its client has said.
fn run(tool: &Tool, pins: &Pins) -> Result<String, VerbsBenchError> {
    let failed = |error| failed(tool, error);
    let port = free_port().map_err(failed)?;
    let server = pins.at_follower(|| start(tool, port, None))?.map_err(failed)?;
    let _server = server.await_listening(port).map_err(failed)?;
    let client = start(tool, port, Some("127.0.0.1")).map_err(failed)?;
    client.finish().map_err(failed)
}

fn start(tool: &Tool, port: u16, server: Option<&str>) -> Result<ToolProcess, PairError> {
    let [port, iterations, bytes] = [u32::from(port), tool.iterations, tool.bytes];
    let spawn = Spawn::program(tool.name)
        .args(["--ib-dev", &tool.device, "--ib-port", &tool.port.to_string()])
        .args(["--port", &port.to_string(), "--iters", &iterations.to_string()])
        .args(["--size", &bytes.to_string(), "-F"])
        .args(server);
    ToolProcess::start(spawn)
}

fn failed(tool: &Tool, error: PairError) -> VerbsBenchError {
    match error {
        PairError::Missing => RivalError::Missing { tool: tool.name }.into(),
        PairError::Failed(words) => RivalError::Failed { tool: tool.name, words }.into(),
        PairError::Process(error) => error.into(),
    }
}

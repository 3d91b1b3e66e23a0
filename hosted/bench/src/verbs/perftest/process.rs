//! One run of a tool: server and client, from their start to their end.

use std::fs;
use std::io::{self, Read};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use super::super::error::VerbsBenchError;
use super::super::pins::Pins;
use super::{Reading, RivalError, read};
use weft::clock::Deadline;
use weft::process::{Liveness, ProcessError, Spawn, Spawned};

/// How long a server may take to listen, and a run to end: far above any stall of a host.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a server is looked at until it listens.
const LOOK: Duration = Duration::from_millis(2);
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

/// Killed and reaped when dropped.
struct PerftestProcess(Spawned);

impl Drop for PerftestProcess {
    fn drop(&mut self) {
        // One that is dead takes no harm.
        let _ = self.0.pidfd.kill();
        let _ = self.0.child.wait();
    }
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
            Reading::NoTable => return Err(failed(tool, &table)),
        }
    }
    Err(RivalError::Astray { tool: tool.name, runs: RUNS_MAX }.into())
}

/// Runs the tool once; returns all that its client has said.
fn run(tool: &Tool, pins: &Pins) -> Result<String, VerbsBenchError> {
    let port = free_port().map_err(|error| failed(tool, &error.to_string()))?;
    let server = pins.at_follower(|| start(tool, port, None))??;
    let deadline = Deadline::after(PATIENCE);
    while !is_listening(port) {
        if server.0.pidfd.wait_dead(LOOK)? == Liveness::Dead || deadline.has_passed() {
            return Err(failed(tool, &words(server)));
        }
    }
    let client = start(tool, port, Some("127.0.0.1"))?;
    if client.0.pidfd.wait_dead(PATIENCE)? != Liveness::Dead {
        return Err(failed(tool, "it does not end"));
    }
    Ok(words(client))
}

fn start(tool: &Tool, port: u16, server: Option<&str>) -> Result<PerftestProcess, VerbsBenchError> {
    let [port, iterations, bytes] = [u32::from(port), tool.iterations, tool.bytes];
    let spawn = Spawn::program(tool.name)
        .args(["--ib-dev", &tool.device, "--ib-port", &tool.port.to_string()])
        .args(["--port", &port.to_string(), "--iters", &iterations.to_string()])
        .args(["--size", &bytes.to_string(), "-F"])
        .args(server);
    let spawn = spawn.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    match spawn.start() {
        Ok(spawned) => Ok(PerftestProcess(spawned)),
        Err(ProcessError::Spawn(error)) if error.kind() == io::ErrorKind::NotFound => {
            Err(RivalError::Missing { tool: tool.name }.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// All that it has said, once it has ended; its end is brought about if need be.
fn words(mut run: PerftestProcess) -> String {
    // One that is dead takes no harm.
    let _ = run.0.pidfd.kill();
    let mut words = String::new();
    let child = &mut run.0.child;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // Bytes that are no text are no table either.
    let _ = stdout.map(|mut stream| stream.read_to_string(&mut words));
    let _ = stderr.map(|mut stream| stream.read_to_string(&mut words));
    words
}

/// The tool's last line that says anything.
fn failed(tool: &Tool, words: &str) -> VerbsBenchError {
    let says = |line: &&str| line.contains(|datagram: char| datagram.is_alphanumeric());
    let last = words.lines().rev().map(str::trim).find(says);
    let words = last.unwrap_or("it said nothing").to_owned();
    RivalError::Failed { tool: tool.name, words }.into()
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Whether a process of this host listens at `port`.
fn is_listening(port: u16) -> bool {
    const LISTEN: &str = "0A";
    let wanted = format!(":{port:04X}");
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
        let text = fs::read_to_string(table).unwrap_or_default();
        text.lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, state) = (words.next(), words.nth(1));
            local.is_some_and(|local| local.ends_with(&wanted)) && state == Some(LISTEN)
        })
    })
}

//! Programs as members, beside the mailbox that they are made of (M-3, M-14).
//!
//! ```text
//!   each round    mailbox ─▶ two programs: polled hop, rate, save; spawned hop, rate
//!   each fault    four programs: one node is killed ─▶ event, watcher; one is isolated ─▶ mask
//! ```
//!
//! | what | measures |
//! |---|---|
//! | `hop_polled`, `hop_spawned` | half a round trip of 8 bytes, program to program |
//! | `rate_polled`, `rate_spawned` | messages of 8 bytes that were put, taken and released |
//! | `take_save_release` | the same with a record saved for each |
//! | `verdict_to_event`, `_watch` | from the manager's decision that a node is gone |
//! | `verdict_to_mask` | from its decision to isolate one: no end of a process is seen before |
//! | `join` | from the launch of a cluster until four programs have joined |
//!
//! The mailbox is measured in each round as `weft bench mailbox` does, and the ratio of a row is
//! the median of the rounds' ratios. Every number is checked where it is taken.

mod program;
mod report;
mod strikes;

use std::io::{BufRead, BufReader, PipeReader};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::Cell;
use crate::error::BenchError;
use crate::figure::{Figure, Samples};
use crate::host::{self, CpuStall, STALL_WATCH_NS};
use crate::report::Row;
use weft::clock::{Deadline, now_ns};
use weft::cluster::{self, Cluster, ClusterName, Mailbox};
use weft::launch::Launched;
use weft::process::start_thread;
use weft::shm::Wait;

use program::ProgramLine;
pub use program::{MemberScript, run as run_program};
pub use report::{MemberReport, MemberRow, MemberWhat};

/// How long any step may take on a busy host.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lines of programs that wait to be read.
const LINES: usize = 64;
/// The message that is measured.
const BYTES: usize = 8;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct MemberPlan {
    /// How often the mailbox and the programs take turns.
    pub rounds: u32,
    /// How long each of them, in a round.
    pub per_round: Duration,
    /// How many nodes are killed, and how many isolated.
    pub faults: u32,
}

/// Measures; `on_part` is called after each round and each fault.
///
/// # Errors
/// [`BenchError`]; its processes are gone then.
pub fn run(plan: &MemberPlan, mut on_part: impl FnMut()) -> Result<MemberReport, BenchError> {
    let (mut rounds, mut stall) = (Vec::new(), CpuStall::default());
    for _ in 0..plan.rounds {
        rounds.push(round(plan.per_round)?);
        stall.watch(STALL_WATCH_NS);
        on_part();
    }
    let spans = strikes::run(plan.faults, &mut on_part)?;
    Ok(MemberReport::new(report::rows(&rounds, &spans), host::describe(&stall)))
}

/// What a round has found.
struct MemberRound {
    /// Of the mailbox: a hop, and what a message takes.
    mailbox: Option<[f64; 2]>,
    found: Vec<ProgramFigure>,
}

/// What the programs have found, and what one of it took over its part of the round.
struct ProgramFigure {
    what: MemberWhat,
    figure: Figure,
    each_ns: f64,
}

/// The one pair of message and writer that both measure.
const CELL: Cell = Cell { bytes: BYTES, writers: 1 };

fn round(span: Duration) -> Result<MemberRound, BenchError> {
    let mailbox =
        crate::run(&crate::MailboxPlan { cells: vec![CELL], per_cell: span, ucx: None }, |_| ())?;
    let row = |what| mailbox.rows.iter().find(|row| row.what == what);
    // Of hops the median of all, of messages what one takes over whole turns: as of the programs.
    let mailbox = row(crate::RowKind::Latency)
        .map(|row| row.p50_ns)
        .zip(row(crate::RowKind::Rate).map(Row::each_ns));
    let mailbox = mailbox.map(|(hop, rate)| [hop, rate]);
    // As the benchmark of the mailbox waits, or the two would not be comparable.
    let wait = CELL.wait(host::processors());
    let mut programs = Programs::start(2, wait, MemberScript::Exchange, span)?;
    let mut found = Vec::new();
    while found.len() < MemberWhat::EXCHANGED.len() {
        if let (_, ProgramLine::Measured { what, figure, each_ns }) = programs.next()? {
            found.push(ProgramFigure { what, figure, each_ns });
        }
    }
    programs.stop()?;
    Ok(MemberRound { mailbox, found })
}

/// A cluster of this program, as `script`, and what it prints.
struct Programs {
    launched: Launched,
    began_ns: u64,
    lines: Receiver<(u16, String)>,
}

impl Programs {
    fn start(
        nodes: usize,
        wait: Wait,
        script: MemberScript,
        span: Duration,
    ) -> Result<Self, BenchError> {
        let name = format!("bench-{}-member", std::process::id());
        let program = std::env::current_exe().map_err(BenchError::Thread)?;
        let words = ["bench", "member-program", script.as_str()].map(str::to_owned);
        let args = words.into_iter().chain([span.as_millis().to_string()]).collect();
        let program = program.to_string_lossy().into_owned();
        let component =
            Some(cluster::Program { program, args, state: 64, ..cluster::Program::default() });
        let mailbox = Mailbox { message_len: BYTES, ..Mailbox::default() };
        let name = name.parse::<ClusterName>().unwrap_or_default();
        let cluster = Cluster { name, nodes, wait, mailbox, component, ..Cluster::default() };
        let (sender, lines) = sync_channel(LINES);
        let mut outputs = Vec::new();
        for rank in 0..u16::try_from(nodes).unwrap_or(u16::MAX) {
            let (reader, writer) = std::io::pipe().map_err(BenchError::Thread)?;
            let errors = std::io::stderr().as_fd().try_clone_to_owned();
            let errors = errors.map_err(BenchError::Thread)?;
            outputs.push([writer.into(), errors]);
            let sender = sender.clone();
            start_thread("weft-bench-read", move || {
                read(reader, |line| sender.send((rank, line)).is_ok());
            })?;
        }
        let began_ns = now_ns();
        let launched = Launched::start_with_output(&cluster, outputs);
        Ok(Self { launched: launched.map_err(BenchError::Launch)?, began_ns, lines })
    }

    /// The next line, and the rank of the program that has printed it.
    fn next(&mut self) -> Result<(u16, ProgramLine), BenchError> {
        let deadline = Deadline::after(PATIENCE);
        match self.lines.recv_timeout(deadline.remaining()) {
            Ok((rank, line)) => match serde_json::from_str(&line) {
                Ok(ProgramLine::Failed { cause }) => Err(BenchError::Program { rank, cause }),
                Ok(line) => Ok((rank, line)),
                Err(_) => Err(BenchError::Program { rank, cause: line }),
            },
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                Err(BenchError::Stuck { patience: PATIENCE })
            }
        }
    }

    fn stop(self) -> Result<(), BenchError> {
        self.launched.stop().map_err(BenchError::Directory)
    }
}

fn read(pipe: PipeReader, mut on_line: impl FnMut(String) -> bool) {
    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
        if !on_line(line) {
            return;
        }
    }
}

/// Spans of one kind.
#[derive(Debug, Default)]
struct VerdictSpans {
    event: Samples,
    watch: Samples,
    mask: Samples,
    join: Samples,
}

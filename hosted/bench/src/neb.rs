//! The broadcast: from the call at the origin to the delivery at the last member, beside one hop
//! of the mailbox in the same run.
//!
//! ```text
//!   member 0        broadcast ──▶ │ until all have delivered │   put ──▶ │ until it is taken │
//!   members 1…n-1   poll, take_from(0), take; publish number and time of each
//! ```
//!
//! Every member is a thread with an endpoint over memory of its own, mapped by the others as
//! another process would. Latency is measured with one message under way, hops in between, so
//! that noise hits both alike; the rate in batches, with as many under way as the window takes.
//! Operations are counted by the machines themselves. Every payload is checked for its number.
//!
//! What this does not measure: several hosts, and members that lie.

mod member;
mod report;

use std::sync::atomic::Ordering;
use std::thread;

pub use report::{NebReport, NebRow};

use self::member::{Board, NebMember, SHOW_EVERY};
use super::error::BenchError;
use super::figure::Samples;
use super::host::{self, CpuStall, STALL_WATCH_NS};
use super::report::MeasuredHost;
use weft::cluster::{self, Cluster};
use weft::shm::{NodeMemory, Wait};

/// Numbers of members, unless others are asked for.
pub const MEMBERS: [u16; 5] = [3, 4, 5, 6, 7];
/// Lengths of messages, unless others are asked for.
pub const BYTES: [usize; 4] = [8, 64, 512, 4096];
/// The longest message of the mailbox, which stands in for longer ones.
pub(super) const HOP_LEN_MAX: usize = 4000;
/// Messages that are staged and sent together where the rate is measured.
pub const BATCH: u64 = 16;

/// What to measure.
#[derive(Clone, Debug)]
pub struct NebPlan {
    /// Numbers of members, 2 to 16 each.
    pub members: Vec<u16>,
    /// Lengths of messages, 8 to 4096 bytes each.
    pub bytes: Vec<usize>,
    /// Messages of each cell, once one at a time and once as many as go.
    pub messages: u64,
}

/// What was counted of one cell.
#[derive(Debug, Default)]
struct NebCell {
    latency: Samples,
    hop: Samples,
    rate_ns: u64,
    /// Writes and reads, progress reads, completions, of all members: one at a time, then many.
    counts: [Counts; 2],
}

/// Operations of all members together.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    operations: u64,
    progress_reads: u64,
    completions: u64,
}

impl Counts {
    fn since(self, before: Self) -> Self {
        Self {
            operations: self.operations - before.operations,
            progress_reads: self.progress_reads - before.progress_reads,
            completions: self.completions - before.completions,
        }
    }
}

/// Measures; `on_cell` is called for every cell that is done.
///
/// # Errors
/// [`BenchError`].
pub fn run(plan: &NebPlan, mut on_cell: impl FnMut()) -> Result<NebReport, BenchError> {
    let mut stall = CpuStall::default();
    let messages = plan.messages.next_multiple_of(SHOW_EVERY);
    let mut rows = Vec::new();
    for members in &plan.members {
        for bytes in &plan.bytes {
            let cell = measure(*members, *bytes, messages)?;
            let row = NebRow::new(*members, *bytes, messages, &cell);
            rows.push(row.ok_or(BenchError::OutOfStep("a cell without samples"))?);
            stall.watch(STALL_WATCH_NS);
            on_cell();
        }
    }
    Ok(NebReport::new(rows, host::describe(&stall)))
}

fn plan_of(
    members: u16,
    bytes: usize,
    wait: Wait,
) -> Result<weft_core::endpoint::Plan, BenchError> {
    let mailbox =
        cluster::Mailbox { message_len: bytes.min(HOP_LEN_MAX), ..cluster::Mailbox::default() };
    let neb = cluster::Neb { message_len: bytes.max(64), ..cluster::Neb::default() };
    let nodes = usize::from(members);
    let cluster = Cluster { nodes, wait, mailbox, neb, ..Cluster::default() };
    weft::node::plan(&cluster).map_err(|error| BenchError::Plan(error.to_string()))
}

fn measure(members: u16, bytes: usize, messages: u64) -> Result<NebCell, BenchError> {
    let wait = if usize::from(members) <= host::processors() { Wait::Spin } else { Wait::Yield };
    let plan = plan_of(members, bytes, wait)?;
    let memory = (0..members).map(|me| NodeMemory::create(&format!("weft-{me}"), plan.layout()));
    let memory = memory.collect::<Result<Vec<_>, _>>()?;
    let board = Board::new(members);
    let mut all = Vec::new();
    for me in 0..members {
        all.push(NebMember::new(me, &plan, &memory, wait)?);
    }
    for member in &mut all {
        member.begin(members);
    }
    thread::scope(|scope| {
        let mut members = all.into_iter();
        let mut origin = members.next().ok_or(BenchError::OutOfStep("no member to broadcast"))?;
        let others: Vec<_> = members
            .map(|mut member| {
                let board = &board;
                scope.spawn(move || {
                    let served = member.serve(board);
                    // Releases the threads that wait for this member.
                    board.over.store(true, Ordering::Relaxed);
                    served
                })
            })
            .collect();
        let measured = origin.measure(&board, bytes, messages);
        board.over.store(true, Ordering::Relaxed);
        for other in others {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        measured
    })
}

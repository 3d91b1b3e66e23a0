//! Tensors by name: what each path costs, beside what the machine itself costs.
//!
//! ```text
//!   each round    copy ─▶ two members as threads: hop, inline, read, parts ─▶ write, cancel
//!                 ─▶ digest
//!                 posted: one member ─▶ two nodes and their clients: handover
//! ```
//!
//! | what | measures | its limit |
//! |---|---|---|
//! | `inline` | a value that comes in its message, from its send to the event of its end | two hops |
//! | `read` | the same of a value that is read, used where it lands | one copy |
//! | `write` | the same of one that its source writes: WARM, after the first | one copy |
//! | `digest` | the same with a digest made before, and checked | `read` |
//! | `parts` | a value in 16 parts of one key, all sent before | one copy |
//! | `cancel` | from a cancel while the source is lent memory to the return of it | two hops |
//! | `posted` | one receive that is begun, until there are 1024 | 150 ns |
//! | `handover` | from a client's send at one node to its receipt by a client of the other | the shortest |
//!
//! A *copy* is of bytes that another processor has written last; a *hop* is half a round trip of 8
//! bytes, mailbox to mailbox, by the same two members. The request waits at the source, except for
//! `parts`. Rivals take turns within a round, and a ratio is the median of the rounds' ratios. The
//! number of a value stands in its first bytes and is checked.
//!
//! What this does not measure: several hosts, and several receivers of one source.

mod handover;
mod member;
mod report;

use std::thread;

pub use report::{TensorReport, TensorRow, TensorWhat};
use weft_core::rendezvous::{Digest, Path};

use self::member::{MeetingBoard, MeetingMember, OTHER_ENDED, Work};
use super::error::BenchError;
use super::figure::Samples;
use super::group::copy;
use super::host::{self, CpuStall, STALL_WATCH_NS};
use super::run::Course;

/// Lengths of values, unless others are asked for.
pub const BYTES: [usize; 5] = [4 << 10, 64 << 10, MEGABYTE, 64 << 20, 1 << 30];
/// The length of a value that comes in its message.
const INLINE: usize = weft_core::wire::rendezvous::INLINE_LEN_MAX;
const MEGABYTE: usize = 1 << 20;
/// The longest value that is read in parts: both pools hold it.
const PARTS_MAX: usize = 64 << 20;
const PARTS: u32 = 16;
/// Bytes of one row and length in one round.
const BUDGET: usize = 32 << 20;
/// Room to make a table of a thousand slots, which passes over the stack.
const STACK_LEN: usize = 64 << 20;
/// What a posted request may cost.
const POSTED_NS: f64 = 150.0;

/// What to measure.
#[derive(Clone, Debug)]
pub struct TensorPlan {
    /// Lengths of values, more than 872 bytes each: up to 1 MiB they are read at once, up to 64 MiB
    /// in parts; all are handed over.
    pub bytes: Vec<usize>,
    /// How often the rivals take turns.
    pub rounds: u32,
}

/// How often a value of `bytes` is sent in one turn.
fn values(bytes: usize) -> usize {
    (BUDGET / bytes).clamp(3, 200)
}

/// What was measured of one length.
#[derive(Debug, Default)]
struct TensorCell {
    bytes: usize,
    copy: Course,
    read: Course,
    write: Course,
    digest: Course,
    parts: Course,
    cancel: Course,
    handover: Course,
}

/// What was measured of all.
#[derive(Debug, Default)]
struct TensorCells {
    hop: Course,
    two_hops: Course,
    inline: Course,
    posted: Course,
    posted_limit: Course,
    each: Vec<TensorCell>,
}

/// Measures; `on_turn` is called for every round.
///
/// # Errors
/// [`BenchError`]; its processes are gone then.
pub fn run(plan: &TensorPlan, mut on_turn: impl FnMut()) -> Result<TensorReport, BenchError> {
    let cell = |bytes: &usize| TensorCell { bytes: *bytes, ..TensorCell::default() };
    let each = plan.bytes.iter().map(cell).collect();
    let (mut cells, mut stall) =
        (TensorCells { each, ..TensorCells::default() }, CpuStall::default());
    for _ in 0..plan.rounds {
        for cell in cells.each.iter_mut().filter(|cell| cell.bytes <= PARTS_MAX) {
            cell.copy.add(copy::measure(cell.bytes, values(cell.bytes))?);
        }
        for form in
            [(Path::Read, Digest::Off), (Path::Write, Digest::Off), (Path::Read, Digest::Crc32c)]
        {
            meet(form, &mut cells)?;
        }
        cells.posted.add(posted()?);
        let mut limit = Samples::default();
        limit.push_value(POSTED_NS);
        cells.posted_limit.add(limit);
        handover::turn(&mut cells.each)?;
        stall.watch(STALL_WATCH_NS);
        on_turn();
    }
    Ok(TensorReport::new(report::rows(&cells), host::describe(&stall)))
}

/// What a posted request costs, on a stack with room for a table that passes over it.
fn posted() -> Result<Samples, BenchError> {
    let measuring = thread::Builder::new().stack_size(STACK_LEN).spawn(member::posted);
    let measured = measuring.map_err(BenchError::Thread)?.join();
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Both members, once through all that they do in this form.
fn meet(form: (Path, Digest), cells: &mut TensorCells) -> Result<(), BenchError> {
    let lengths = cells.each.iter().map(|cell| cell.bytes).filter(|bytes| *bytes <= PARTS_MAX);
    let work = match form {
        (Path::Read, Digest::Off) => Work::all(lengths),
        (Path::Read, Digest::Crc32c) => Work::each(TensorWhat::Digest, lengths),
        (Path::Write, _) => Work::written(lengths),
    };
    let longest = work.iter().map(|work| work.bytes).max().unwrap_or(INLINE);
    let (mut source, mut destination) = MeetingMember::pair(longest, form)?;
    let board = MeetingBoard::default();
    let is_alone = host::processors() > 1;
    let measured = thread::scope(|scope| {
        let (board, work) = (&board, &work[..]);
        let sending = scope.spawn(move || {
            if is_alone {
                host::take_processor(0);
            }
            board.guard(source.serve(board, work))
        });
        let receiving = scope.spawn(move || {
            if is_alone {
                host::take_processor(1);
            }
            board.guard(destination.measure(board, work))
        });
        let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let got = receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A member that fails ends the other one: its own reason is the one that counts.
        match sent {
            Err(BenchError::OutOfStep(OTHER_ENDED)) if got.is_err() => got,
            sent => sent.and(got),
        }
    })?;
    for (work, samples) in work.iter().zip(measured) {
        cells.add(work, samples);
    }
    Ok(())
}

impl TensorCells {
    fn add(&mut self, work: &Work, mut samples: Samples) {
        let cell = self.each.iter_mut().find(|cell| cell.bytes == work.bytes);
        match (work.what, cell) {
            (TensorWhat::Inline, _) => self.inline.add(samples),
            (TensorWhat::Hop, _) => {
                let mut two = Samples::default();
                samples.median().into_iter().for_each(|hop| two.push_value(2.0 * hop));
                self.two_hops.add(two);
                self.hop.add(samples);
            }
            (TensorWhat::Read, Some(cell)) => cell.read.add(samples),
            (TensorWhat::Write, Some(cell)) => cell.write.add(samples),
            (TensorWhat::Digest, Some(cell)) => cell.digest.add(samples),
            (TensorWhat::Parts, Some(cell)) => cell.parts.add(samples),
            (TensorWhat::Cancel, Some(cell)) => cell.cancel.add(samples),
            (TensorWhat::Posted | TensorWhat::Handover, _) | (_, None) => {}
        }
    }
}

//! From cells to a report: rounds in which rivals take turns.

use std::fs;
use std::thread;
use std::time::Duration;

use super::cell::Cell;
use super::crew::Crew;
use super::error::BenchError;
use super::figure::Samples;
use super::host::{self, Stall};
use super::owner;
use super::phase::Phase;
use super::report::{Host, Report, Row, What};

/// How often rivals take turns within a cell.
const ROUNDS: u32 = 5;
/// What is measured in a round besides the stall, which gets as long as one of them.
const TURNS: u32 = 4;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In this order.
    pub cells: Vec<Cell>,
    /// How long each of them.
    pub per_cell: Duration,
}

/// Measures; `on_cell` is told of every cell that is done.
///
/// # Errors
/// [`BenchError`]; its processes are gone then.
pub fn run(plan: &Plan, mut on_cell: impl FnMut(Cell)) -> Result<Report, BenchError> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut stall = Stall::default();
    let mut rows = Vec::new();
    for cell in &plan.cells {
        rows.extend(measure(*cell, plan.per_cell, processors, &mut stall)?);
        on_cell(*cell);
    }
    let host = Host {
        processors,
        load: load(),
        longest_stall_us: stall.longest_ns as f64 / 1e3,
        stalled_percent: stall.lost() * 100.0,
    };
    Ok(Report::new(rows, host))
}

fn measure(
    cell: Cell,
    span: Duration,
    processors: usize,
    stall: &mut Stall,
) -> Result<Vec<Row>, BenchError> {
    let mut crew = Crew::start(cell, cell.wait(processors))?;
    let slots = cell.plan()?.mailbox().slots() as usize;
    let turn = span / (ROUNDS * (TURNS + 1));
    let turn_ns = u64::try_from(turn.as_nanos()).unwrap_or(u64::MAX);
    let [mut exchange, mut latency, mut copy, mut rate] = [(); 4].map(|()| Samples::default());
    let mut intakes = Samples::default();
    for _ in 0..ROUNDS {
        crew.run(Phase::Exchange, turn, |seat, lines| {
            lines.measure(cell.writers, turn_ns, &mut seat.vigil, &mut exchange)
        })?;
        crew.run(Phase::Latency, turn, |seat, _| {
            owner::latency(seat, cell, turn_ns, &mut latency)
        })?;
        host::copy(cell.bytes, slots, turn_ns, &mut copy);
        crew.run(Phase::Rate, turn, |seat, _| {
            let intake = owner::rate(seat, cell, turn_ns, &mut rate)?;
            intakes.push(intake.span_ns, intake.taken);
            Ok(())
        })?;
        stall.watch(turn_ns);
    }
    let none = BenchError::OutOfStep("too short a time for a single sample");
    let figures = [exchange, latency, copy, rate, intakes].map(Samples::figure);
    let [Some(exchange), Some(latency), Some(copy), Some(rate), Some(intakes)] = figures else {
        return Err(none);
    };
    Ok(vec![
        Row::new(What::Exchange, cell, exchange, exchange.p50_ns, exchange.p50_ns),
        Row::new(What::Latency, cell, latency, latency.p50_ns, exchange.p50_ns),
        Row::new(What::Memcpy, cell, copy, copy.p50_ns, copy.p50_ns),
        // Windows fall into times of putting and times of taking; a round has both.
        Row::new(What::Rate, cell, rate, intakes.p50_ns, copy.p50_ns),
    ])
}

/// Processes that wanted to run in the last minute.
fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

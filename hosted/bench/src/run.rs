//! From cells to a report: rounds in which rivals take turns.

use std::time::Duration;

use super::cell::Cell;
use super::crew::Crew;
use super::error::BenchError;
use super::figure::{Figure, Samples};
use super::host::{self, CpuStall};
use super::owner;
use super::phase::Phase;
use super::report::{MailboxReport, RivalRound, RivalRow, Row, RowKind};
use super::ucx::{Ucx, UcxTest};

/// How often rivals take turns within a cell.
const ROUNDS: u32 = 9;
/// Turns of a round: four rivals and the host's stall.
const TURNS: u32 = 5;

/// The same where an aim is about ten of them.
const RIVAL_ROUNDS: u32 = 10;
/// What of UCX is measured.
const UCX: [(RowKind, UcxTest); 2] =
    [(RowKind::UcxAm, UcxTest::ActiveMessage), (RowKind::UcxTag, UcxTest::Tag)];

/// What to measure.
#[derive(Clone, Debug)]
pub struct MailboxPlan {
    /// In this order.
    pub cells: Vec<Cell>,
    /// How long each of them.
    pub per_cell: Duration,
    /// The rival of cells with one writer.
    pub ucx: Option<Ucx>,
}

/// Measures; `on_cell` is called for every cell that is done.
///
/// # Errors
/// [`BenchError`]; its processes are gone then.
pub fn run(plan: &MailboxPlan, mut on_cell: impl FnMut(Cell)) -> Result<MailboxReport, BenchError> {
    let processors = host::processors();
    let mut stall = CpuStall::default();
    let (mut rows, mut rivals) = (Vec::new(), Vec::new());
    for cell in &plan.cells {
        let ucx = plan.ucx.as_ref().filter(|_| cell.writers == 1);
        let measured = measure(*cell, plan.per_cell, processors, &mut stall, ucx)?;
        rows.extend(measured.0);
        rivals.extend(measured.1);
        on_cell(*cell);
    }
    Ok(MailboxReport::new(rows, rivals, host::describe(&stall)))
}

fn measure(
    cell: Cell,
    span: Duration,
    processors: usize,
    stall: &mut CpuStall,
    ucx: Option<&Ucx>,
) -> Result<(Vec<Row>, Vec<RivalRow>), BenchError> {
    let mut crew = Crew::start(cell, cell.wait(processors))?;
    let slots = cell.plan()?.mailbox().slots() as usize;
    let turn = span / (ROUNDS * TURNS);
    let turn_ns = u64::try_from(turn.as_nanos()).unwrap_or(u64::MAX);
    let [mut exchange, mut latency, mut copy, mut rate] = [(); 4].map(|()| Course::default());
    let mut ucx = ucx.map(|ucx| (ucx, UCX.map(|_| Course::default())));
    for _ in 0..if ucx.is_some() { RIVAL_ROUNDS } else { ROUNDS } {
        let mut samples = Samples::default();
        crew.run(Phase::Exchange, turn, |seat, lines| {
            lines.measure(cell.writers, turn_ns, &mut seat.vigil, &mut samples)
        })?;
        exchange.add(samples);
        let mut samples = Samples::default();
        crew.run(Phase::Latency, turn, |seat, _| {
            owner::latency(seat, cell, turn_ns, &mut samples)
        })?;
        latency.add(samples);
        if let Some((ucx, courses)) = &mut ucx {
            for ((_, test), course) in UCX.into_iter().zip(courses) {
                let mut samples = Samples::default();
                samples.push_value(ucx.one_way_ns(test, cell.bytes)?);
                course.add(samples);
            }
        }
        let mut samples = Samples::default();
        host::copy(cell.bytes, slots, turn_ns, &mut samples);
        copy.add(samples);
        crew.run(Phase::Rate, turn, |seat, _| {
            let mut samples = Samples::default();
            let intake = owner::rate(seat, cell, turn_ns, &mut samples)?;
            // Windows fall into times of putting and times of taking; a round has both.
            rate.add_with(samples, intake.span_ns as f64 / intake.taken as f64);
            Ok(())
        })?;
        stall.watch(turn_ns);
    }
    let mut rivals = Vec::new();
    let mut others = Vec::new();
    for ((what, _), course) in ucx.iter().flat_map(|(_, courses)| UCX.into_iter().zip(courses)) {
        others.push(course.row(what, cell, &exchange));
        let rounds = exchange.each_ns.iter().zip(&latency.each_ns).zip(&course.each_ns);
        let rounds = rounds.map(|((line, weft), rival)| RivalRound::new([*line, *weft, *rival]));
        let (rounds, ratio) = (rounds.collect(), latency.ratio(course));
        rivals.extend(ratio.map(|ratio| RivalRow { what, bytes: cell.bytes, ratio, rounds }));
    }
    let rows = [
        exchange.row(RowKind::Exchange, cell, &exchange),
        latency.row(RowKind::Latency, cell, &exchange),
        copy.row(RowKind::Memcpy, cell, &copy),
        rate.row(RowKind::Rate, cell, &copy),
    ];
    let none = BenchError::OutOfStep("a round without a sample");
    let rows = rows.into_iter().chain(others).collect::<Option<_>>().ok_or(none)?;
    Ok((rows, rivals))
}

/// One rival over all rounds.
#[derive(Debug, Default)]
pub(super) struct Course {
    samples: Samples,
    /// What one of it took in each round, so that rivals are compared within rounds: a host that
    /// changes its mind between rounds changes no ratio.
    each_ns: Vec<f64>,
}

impl Course {
    pub(super) fn add(&mut self, mut round: Samples) {
        if let Some(median) = round.median() {
            self.add_with(round, median);
        }
    }

    fn add_with(&mut self, round: Samples, each_ns: f64) {
        self.samples.extend(round);
        self.each_ns.push(each_ns);
    }

    pub(super) fn figure(&self) -> Option<Figure> {
        self.samples.figure()
    }

    /// What one of it took in the last round.
    pub(super) fn last(&self) -> Option<f64> {
        self.each_ns.last().copied()
    }

    /// How many times longer than `limit`: the median of the ratios of all rounds.
    pub(super) fn ratio(&self, limit: &Self) -> Option<f64> {
        let mut ratios = Samples::default();
        for (each_ns, limit_ns) in self.each_ns.iter().zip(&limit.each_ns) {
            ratios.push_value(each_ns / limit_ns);
        }
        ratios.median()
    }

    fn row(&self, what: RowKind, cell: Cell, limit: &Self) -> Option<Row> {
        let mut each = Samples::default();
        self.each_ns.iter().for_each(|each_ns| each.push_value(*each_ns));
        Some(Row::new(what, cell, self.figure()?, each.median()?, self.ratio(limit)?))
    }
}

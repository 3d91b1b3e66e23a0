//! What groups have shown, for people and for scripts.

use std::fmt;

use serde::Serialize;
use weft_core::group::{Pipeline, Transfer};

use super::{GroupCell, MEGABYTE};
use crate::report::MeasuredHost;
use crate::run::Course;
use crate::verdict::{self, AimVerdict};

/// What a row is of; the table in [`group`](super) says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupWhat {
    /// Used where it lies.
    InPlace,
    /// Copied into a buffer of each member.
    CopiedOut,
    /// `MPI_Bcast`.
    Mpi,
    /// One copy between two processors.
    Copy,
    /// Steps of the schedule over RDMA.
    Steps,
    /// From a removal in the middle of a message to its last delivery.
    Resume,
}

impl GroupWhat {
    const fn name(self) -> &'static str {
        match self {
            Self::InPlace => "in_place",
            Self::CopiedOut => "copied_out",
            Self::Mpi => "mpi",
            Self::Copy => "copy",
            Self::Steps => "steps",
            Self::Resume => "resume",
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupRow {
    /// What was measured.
    pub what: GroupWhat,
    /// Length of a message.
    pub bytes: usize,
    /// Members, the root included.
    pub members: u16,
    /// Samples; of `steps`, the steps that were counted.
    pub iterations: usize,
    /// The median; none of `steps`, which have no time.
    pub p50_ns: Option<f64>,
    /// 99 % took no longer.
    pub p99_ns: Option<f64>,
    /// How many times longer than its limit: the median of all rounds.
    pub ratio_to_limit: Option<f64>,
    /// How many times longer than `MPI_Bcast`: the median of all rounds. None without an MPI.
    pub ratio_to_rival: Option<f64>,
}

/// The rows of one length among so many members.
pub(super) fn rows(members: u16, cell: &GroupCell) -> Vec<GroupRow> {
    let timed = [
        (GroupWhat::InPlace, &cell.in_place, &cell.copies),
        (GroupWhat::CopiedOut, &cell.copied_out, &cell.copies),
        (GroupWhat::Mpi, &cell.mpi, &cell.copies),
        (GroupWhat::Copy, &cell.copy, &cell.copy),
        (GroupWhat::Resume, &cell.resume, &cell.rest),
    ];
    let timed = timed.into_iter().filter_map(|(what, course, limit)| {
        let rival = matches!(what, GroupWhat::InPlace | GroupWhat::CopiedOut);
        row(what, members, cell, course, limit, rival.then_some(&cell.mpi))
    });
    timed.chain(steps(members, cell)).collect()
}

fn row(
    what: GroupWhat,
    members: u16,
    cell: &GroupCell,
    course: &Course,
    limit: &Course,
    rival: Option<&Course>,
) -> Option<GroupRow> {
    let figure = course.figure()?;
    Some(GroupRow {
        what,
        bytes: cell.bytes,
        members,
        iterations: figure.count,
        p50_ns: Some(figure.p50_ns),
        p99_ns: Some(figure.p99_ns),
        ratio_to_limit: course.ratio(limit),
        ratio_to_rival: rival.and_then(|rival| course.ratio(rival)),
    })
}

/// Follows the schedule of all members in lockstep until each has every block.
fn steps(members: u16, cell: &GroupCell) -> Option<GroupRow> {
    let blocks = cell.bytes.div_ceil(cell.block_len) as u64;
    let mut plans: Vec<_> = (0..members).map(|me| Pipeline::new(members, blocks, me)).collect();
    let mut held = vec![vec![false; usize::try_from(blocks).ok()?]; usize::from(members)];
    held[0].fill(true);
    let mut count = 0;
    while !held.iter().flatten().all(|held| *held) {
        // A schedule that ends before all have all is no schedule.
        let steps = plans.iter_mut().map(Iterator::next).collect::<Option<Vec<_>>>()?;
        for (own, step) in held.iter_mut().zip(steps) {
            if let Some(Transfer { block, .. }) = step.incoming {
                *own.get_mut(usize::try_from(block).ok()?)? = true;
            }
        }
        count += 1;
    }
    let bound = blocks + u64::from(members.next_power_of_two().ilog2()) - 1;
    Some(GroupRow {
        what: GroupWhat::Steps,
        bytes: cell.bytes,
        members,
        iterations: count,
        p50_ns: None,
        p99_ns: None,
        ratio_to_limit: Some(count as f64 / bound as f64),
        ratio_to_rival: None,
    })
}

/// All that was measured. `Display` is the form for a terminal, `Serialize` the one for scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReport {
    /// By members and bytes.
    pub rows: Vec<GroupRow>,
    /// Whether each member was a process of its own; else a thread.
    pub are_processes: bool,
    /// Who the rival was, or why there is none and what to do.
    pub rival: String,
    /// The machine.
    pub host: MeasuredHost,
    /// What became of the aims.
    pub verdicts: Vec<AimVerdict>,
}

impl GroupReport {
    pub(super) fn new(rows: Vec<GroupRow>, rival: String, host: MeasuredHost) -> Self {
        let of = |what: GroupWhat| rows.iter().filter(move |row| row.what == what);
        let to_rival = |row: &&GroupRow| row.ratio_to_rival;
        let to_limit = |row: &&GroupRow| row.ratio_to_limit;
        let long = |row: &&GroupRow| row.bytes == MEGABYTE;
        let four = |row: &&GroupRow| row.members == 4;
        let (in_place, copied_out) = (GroupWhat::InPlace, GroupWhat::CopiedOut);
        let verdicts = vec![
            judge("in place 2 x as fast as MPI_Bcast", 0.5, of(in_place).filter(four), to_rival),
            judge(
                "copied out 1.7 x as fast as MPI_Bcast",
                1.0 / 1.7,
                of(copied_out).filter(four),
                to_rival,
            ),
            judge(
                "1 MiB to one member within 1.25 x one copy",
                1.25,
                of(in_place).filter(long).filter(|row| row.members == 2),
                to_limit,
            ),
            judge("steps as few as can be", 1.0, of(GroupWhat::Steps), to_limit),
            judge("resumed within 2 x the rest", 2.0, of(GroupWhat::Resume), to_limit),
            verdict::noise(&host),
        ];
        Self { rows, are_processes: false, rival, host, verdicts }
    }
}

/// Judges the row that is worst.
fn judge<'r>(
    aim: &str,
    most: f64,
    rows: impl Iterator<Item = &'r GroupRow>,
    ratio: impl Fn(&&'r GroupRow) -> Option<f64>,
) -> AimVerdict {
    let aim = aim.to_owned();
    let ratios = rows.filter_map(|row| Some((ratio(&row)?, row)));
    let worst = ratios.max_by(|(a, _), (b, _)| a.total_cmp(b));
    let Some((worst, row)) = worst else { return AimVerdict::unmeasured(aim) };
    let GroupRow { bytes, members, .. } = row;
    let found = format!("at most {worst:.2} x: {bytes} bytes, {members} members");
    AimVerdict { aim, reached: Some(worst <= most), found }
}

impl fmt::Display for GroupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>9} {:>8} {:11} {:>11} {:>15} {:>10} {:>8} {:>8}",
            "#bytes",
            "#members",
            "what",
            "#iterations",
            "t_typical[usec]",
            "99%[usec]",
            "to_limit",
            "to_rival"
        )?;
        for row in &self.rows {
            let or_none = |value: Option<f64>, digits: usize| {
                value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
            };
            let us = |ns: Option<f64>| or_none(ns.map(|ns| ns / 1e3), 2);
            writeln!(
                f,
                "{:9} {:8} {:11} {:11} {:>15} {:>10} {:>8} {:>8}",
                row.bytes,
                row.members,
                row.what.name(),
                row.iterations,
                us(row.p50_ns),
                us(row.p99_ns),
                or_none(row.ratio_to_limit, 2),
                or_none(row.ratio_to_rival, 2),
            )?;
        }
        let members = if self.are_processes { "processes" } else { "threads" };
        writeln!(f, "\nmembers: {members}\nrival: {}\n", self.rival)?;
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}

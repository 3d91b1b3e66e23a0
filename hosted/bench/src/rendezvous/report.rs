//! What tensors have shown, for people and for scripts.

use std::fmt;

use serde::Serialize;

use super::{INLINE, MEGABYTE, TensorCells};
use crate::report::MeasuredHost;
use crate::run::Course;
use crate::verdict::{self, AimVerdict};

/// What a row is of; the table in [`rendezvous`](super) says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorWhat {
    /// One hop of the mailbox.
    Hop,
    /// In its message.
    Inline,
    /// Read by its receiver.
    Read,
    /// Written by its source.
    Write,
    /// Read, and checked.
    Digest,
    /// Read in parts.
    Parts,
    /// From a cancel to the return of the memory.
    Cancel,
    /// A receive that is begun.
    Posted,
    /// Handed over, client to client.
    Handover,
}

impl TensorWhat {
    const fn name(self) -> &'static str {
        match self {
            Self::Hop => "hop",
            Self::Inline => "inline",
            Self::Read => "read",
            Self::Write => "write",
            Self::Digest => "digest",
            Self::Parts => "parts",
            Self::Cancel => "cancel",
            Self::Posted => "posted",
            Self::Handover => "handover",
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TensorRow {
    /// What was measured.
    pub what: TensorWhat,
    /// Length of a value; of `posted`, of none.
    pub bytes: usize,
    /// Samples.
    pub iterations: usize,
    /// The median.
    pub p50_ns: f64,
    /// 99 % took no longer.
    pub p99_ns: f64,
    /// How many times longer than its limit: the median of all rounds.
    pub ratio_to_limit: Option<f64>,
}

pub(super) fn rows(cells: &TensorCells) -> Vec<TensorRow> {
    let shortest = cells.each.iter().min_by_key(|cell| cell.bytes);
    let flat = shortest.map(|cell| &cell.handover);
    let alone = [
        row(TensorWhat::Hop, 8, &cells.hop, Some(&cells.hop)),
        row(TensorWhat::Inline, INLINE, &cells.inline, Some(&cells.two_hops)),
        row(TensorWhat::Posted, 0, &cells.posted, Some(&cells.posted_limit)),
    ];
    let each = cells.each.iter().flat_map(|cell| {
        [
            row(TensorWhat::Read, cell.bytes, &cell.read, Some(&cell.copy)),
            row(TensorWhat::Write, cell.bytes, &cell.write, Some(&cell.copy)),
            row(TensorWhat::Digest, cell.bytes, &cell.digest, Some(&cell.read)),
            row(TensorWhat::Parts, cell.bytes, &cell.parts, Some(&cell.copy)),
            row(TensorWhat::Cancel, cell.bytes, &cell.cancel, Some(&cells.two_hops)),
            row(TensorWhat::Handover, cell.bytes, &cell.handover, flat),
        ]
    });
    alone.into_iter().chain(each).flatten().collect()
}

fn row(
    what: TensorWhat,
    bytes: usize,
    course: &Course,
    limit: Option<&Course>,
) -> Option<TensorRow> {
    let figure = course.figure()?;
    Some(TensorRow {
        what,
        bytes,
        iterations: figure.count,
        p50_ns: figure.p50_ns,
        p99_ns: figure.p99_ns,
        ratio_to_limit: limit.and_then(|limit| course.ratio(limit)),
    })
}

/// All that was measured. `Display` is the form for a terminal, `Serialize` the one for scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TensorReport {
    /// By what and bytes.
    pub rows: Vec<TensorRow>,
    /// The machine.
    pub host: MeasuredHost,
    /// What became of the aims.
    pub verdicts: Vec<AimVerdict>,
}

impl TensorReport {
    pub(super) fn new(rows: Vec<TensorRow>, host: MeasuredHost) -> Self {
        let of = |what: TensorWhat| rows.iter().filter(move |row| row.what == what);
        let read = |bytes: usize| of(TensorWhat::Read).filter(move |row| row.bytes == bytes);
        let verdicts = vec![
            judge("872 bytes in their message within 1.3 x two hops", 1.3, of(TensorWhat::Inline)),
            judge("64 KiB read within 1.3 x one copy", 1.3, read(64 << 10)),
            judge("1 MiB read within 1.15 x one copy", 1.15, read(MEGABYTE)),
            judge("parts at 80 % of the rate of a copy", 1.25, of(TensorWhat::Parts)),
            judge("hand-over flat within 2 x", 2.0, of(TensorWhat::Handover)),
            judge_time("hand-over within 60 us", 60e3, of(TensorWhat::Handover)),
            judge("a posted request within 150 ns", 1.0, of(TensorWhat::Posted)),
            judge("a digest of 1 MiB within 1.1 x none", 1.1, {
                of(TensorWhat::Digest).filter(|row| row.bytes == MEGABYTE)
            }),
            verdict::noise(&host),
        ];
        Self { rows, host, verdicts }
    }
}

/// Judges the row that is worst.
fn judge<'r>(aim: &str, most: f64, rows: impl Iterator<Item = &'r TensorRow>) -> AimVerdict {
    let aim = aim.to_owned();
    let ratios = rows.filter_map(|row| Some((row.ratio_to_limit?, row.bytes)));
    let worst = ratios.max_by(|(a, _), (b, _)| a.total_cmp(b));
    let Some((worst, bytes)) = worst else { return AimVerdict::unmeasured(aim) };
    let found = format!("at most {worst:.2} x: {bytes} bytes");
    AimVerdict { aim, reached: Some(worst <= most), found }
}

fn judge_time<'r>(aim: &str, most: f64, rows: impl Iterator<Item = &'r TensorRow>) -> AimVerdict {
    let aim = aim.to_owned();
    let worst = rows.max_by(|a, b| a.p50_ns.total_cmp(&b.p50_ns));
    let Some(worst) = worst else { return AimVerdict::unmeasured(aim) };
    let found = format!("at most {:.1} us: {} bytes", worst.p50_ns / 1e3, worst.bytes);
    AimVerdict { aim, reached: Some(worst.p50_ns <= most), found }
}

impl fmt::Display for TensorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>10} {:9} {:>11} {:>15} {:>10} {:>8}",
            "#bytes", "what", "#iterations", "t_typical[usec]", "99%[usec]", "to_limit"
        )?;
        for row in &self.rows {
            let ratio = row.ratio_to_limit.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            writeln!(
                f,
                "{:10} {:9} {:11} {:15.2} {:10.2} {ratio:>8}",
                row.bytes,
                row.what.name(),
                row.iterations,
                row.p50_ns / 1e3,
                row.p99_ns / 1e3,
            )?;
        }
        writeln!(f)?;
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}

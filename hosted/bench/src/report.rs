//! What was measured, for people and for scripts.

use serde::{Serialize, Serializer};

use super::cell::Cell;
use super::figure::Figure;
use super::verdict::{self, AimVerdict};

/// What a row is of; the table in [`bench`](super) says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// The bare exchange of a cache line.
    Exchange,
    /// A message, one way.
    Latency,
    /// A copy within one process.
    Memcpy,
    /// Messages taken.
    Rate,
    /// An active message of UCX, one way.
    UcxAm,
    /// A tagged message of UCX, one way.
    UcxTag,
}

/// A message beside a rival's, over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RivalRow {
    /// What of the rival.
    pub what: RowKind,
    /// Length of a message.
    pub bytes: usize,
    /// How many times longer a message takes than the rival's: the median of all rounds.
    #[serde(serialize_with = "hundredths")]
    pub ratio: f64,
    /// Each round.
    pub rounds: Vec<RivalRound>,
}

/// One round, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RivalRound {
    /// Whether the bare line shows that the two processes share a cache: a host has two modes.
    pub near: bool,
    /// The bare exchange of a cache line.
    #[serde(serialize_with = "tenths")]
    pub line_ns: f64,
    /// A message of Weft, one way.
    #[serde(serialize_with = "tenths")]
    pub weft_ns: f64,
    /// A message of the rival, one way.
    #[serde(serialize_with = "tenths")]
    pub rival_ns: f64,
}

impl RivalRound {
    /// A bare line takes less than this between processors that share a cache, and twice as much
    /// and more between others.
    const NEAR_NS: f64 = 120.0;

    pub(super) fn new([line_ns, weft_ns, rival_ns]: [f64; 3]) -> Self {
        Self { near: line_ns < Self::NEAR_NS, line_ns, weft_ns, rival_ns }
    }

    pub(super) fn ratio(&self) -> f64 {
        self.weft_ns / self.rival_ns
    }

    /// Whether the rival ran in the mode of the line, which Weft shares its processes with. Between
    /// near and far a message takes four times as long or more.
    pub(super) fn is_paired(&self) -> bool {
        (self.line_ns / 2.0..self.line_ns * 3.0).contains(&self.rival_ns)
    }
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was measured.
    pub what: RowKind,
    /// Length of a message.
    pub bytes: usize,
    /// Processes that put.
    pub writers: u16,
    /// Samples.
    pub iterations: usize,
    /// The shortest sample.
    #[serde(serialize_with = "tenths")]
    pub min_ns: f64,
    /// The longest sample.
    #[serde(serialize_with = "tenths")]
    pub max_ns: f64,
    /// The median.
    #[serde(serialize_with = "tenths")]
    pub p50_ns: f64,
    /// 99 of 100 are not longer.
    #[serde(serialize_with = "tenths")]
    pub p99_ns: f64,
    /// 999 of 1000 are not longer.
    #[serde(serialize_with = "tenths")]
    pub p999_ns: f64,
    /// How many of it a second, by the median of all rounds.
    #[serde(serialize_with = "tenths")]
    pub per_second: f64,
    /// How many times longer than its limit, the exchange or the copy: the median of the ratios
    /// of all rounds.
    #[serde(serialize_with = "hundredths")]
    pub ratio_to_limit: f64,
}

/// The machine while it was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredHost {
    /// How many processes can run at the same time.
    pub processors: usize,
    /// Processes that wanted to run in the last minute, the benchmark's own among them.
    pub load: Option<f64>,
    /// The longest that a process which only reads the clock did not run.
    #[serde(serialize_with = "tenths")]
    pub longest_stall_us: f64,
    /// The share of time that it did not run.
    #[serde(serialize_with = "hundredths")]
    pub stalled_percent: f64,
}

/// All that was measured. `Display` is the form for a terminal, `Serialize` the one for scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MailboxReport {
    /// The rows, cell by cell.
    pub rows: Vec<Row>,
    /// Messages beside those of rivals, where they were asked for.
    pub rivals: Vec<RivalRow>,
    /// The machine.
    pub host: MeasuredHost,
    /// What became of the aims.
    pub verdicts: Vec<AimVerdict>,
}

impl Row {
    /// The row of `figure`, one of which takes `each_ns`, `ratio` times as long as its limit.
    pub(super) fn new(what: RowKind, cell: Cell, figure: Figure, each_ns: f64, ratio: f64) -> Self {
        Self {
            what,
            bytes: cell.bytes,
            writers: cell.writers,
            iterations: figure.count,
            min_ns: figure.min_ns,
            max_ns: figure.max_ns,
            p50_ns: figure.p50_ns,
            p99_ns: figure.p99_ns,
            p999_ns: figure.p999_ns,
            per_second: 1e9 / each_ns,
            ratio_to_limit: ratio,
        }
    }

    /// What one of it took, by the median of all rounds.
    pub(super) fn each_ns(&self) -> f64 {
        1e9 / self.per_second
    }
}

impl MailboxReport {
    pub(super) fn new(rows: Vec<Row>, rivals: Vec<RivalRow>, host: MeasuredHost) -> Self {
        let verdicts = verdict::judge(&rows, &rivals, &host);
        Self { rows, rivals, host, verdicts }
    }
}

pub(super) fn tenths<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 10.0).round() / 10.0)
}

pub(super) fn hundredths<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 100.0).round() / 100.0)
}

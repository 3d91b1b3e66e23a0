//! What the broadcast has shown, for people and for scripts.

use std::fmt;

use serde::Serialize;

use super::{BATCH, HOP_LEN_MAX, MeasuredHost, NebCell};
use crate::report::{hundredths, tenths};
use crate::verdict::{self, AimVerdict};

/// From the call to the last delivery at most so many times as long as one hop of the mailbox.
const LATENCY_RATIO: f64 = 5.0;

/// Messages of one length among so many members.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NebRow {
    /// Members, the origin included.
    pub members: u16,
    /// Length of a message.
    pub bytes: usize,
    /// Messages of each kind.
    pub messages: u64,
    /// From the call at the origin to the delivery at the last member: the median.
    #[serde(serialize_with = "tenths")]
    pub p50_ns: f64,
    /// 99 % took no longer.
    #[serde(serialize_with = "tenths")]
    pub p99_ns: f64,
    /// 99.9 % took no longer.
    #[serde(serialize_with = "tenths")]
    pub p999_ns: f64,
    /// One hop of the mailbox, of as many bytes as it takes, in between: the median.
    #[serde(serialize_with = "tenths")]
    pub hop_p50_ns: f64,
    /// Bytes of that hop.
    pub hop_bytes: usize,
    /// How many hops long the median is.
    #[serde(serialize_with = "hundredths")]
    pub ratio_to_hop: f64,
    /// Messages that were staged and sent together for the rate.
    pub batch: u64,
    /// Messages a second that all have delivered, with as many under way as the window takes.
    #[serde(serialize_with = "tenths")]
    pub per_second: f64,
    /// Writes and reads of replays a message, of all members, one message under way.
    #[serde(serialize_with = "hundredths")]
    pub operations: f64,
    /// The same with many under way: a write carries a batch.
    #[serde(serialize_with = "hundredths")]
    pub operations_batched: f64,
    /// Reads of progress a message, one under way.
    #[serde(serialize_with = "hundredths")]
    pub progress_reads: f64,
    /// Completions a message, one under way.
    #[serde(serialize_with = "hundredths")]
    pub completions: f64,
}

impl NebRow {
    pub(super) fn new(members: u16, bytes: usize, messages: u64, cell: &NebCell) -> Option<Self> {
        let (latency, hop) = (cell.latency.figure()?, cell.hop.figure()?);
        let each = |count: u64| count as f64 / messages as f64;
        let [single, many] = cell.counts;
        Some(Self {
            members,
            bytes,
            messages,
            p50_ns: latency.p50_ns,
            p99_ns: latency.p99_ns,
            p999_ns: latency.p999_ns,
            hop_p50_ns: hop.p50_ns,
            hop_bytes: bytes.min(HOP_LEN_MAX),
            ratio_to_hop: latency.p50_ns / hop.p50_ns,
            batch: BATCH,
            per_second: messages as f64 * 1e9 / cell.rate_ns.max(1) as f64,
            operations: each(single.operations),
            operations_batched: each(many.operations),
            progress_reads: each(single.progress_reads),
            completions: each(single.completions),
        })
    }

    /// (n-1)² operations a message.
    const fn operations_max(&self) -> f64 {
        let others = (self.members - 1) as f64;
        others * others
    }
}

/// All that was measured. `Display` is the form for a terminal, `Serialize` the one for scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NebReport {
    /// By members and bytes.
    pub rows: Vec<NebRow>,
    /// The machine.
    pub host: MeasuredHost,
    /// What became of the aims.
    pub verdicts: Vec<AimVerdict>,
}

impl NebReport {
    pub(super) fn new(rows: Vec<NebRow>, host: MeasuredHost) -> Self {
        let verdicts = vec![latency(&rows), operations(&rows), verdict::noise(&host)];
        Self { rows, host, verdicts }
    }
}

fn latency(rows: &[NebRow]) -> AimVerdict {
    let aim = format!("all have delivered within {LATENCY_RATIO} x one hop of the mailbox");
    let slowest = rows.iter().max_by(|a, b| a.ratio_to_hop.total_cmp(&b.ratio_to_hop));
    let Some(row) = slowest else { return AimVerdict::unmeasured(aim) };
    let found = format!(
        "at most {:.2} x: {} members, {} bytes, {:.0} ns where a hop takes {:.0} ns",
        row.ratio_to_hop, row.members, row.bytes, row.p50_ns, row.hop_p50_ns
    );
    AimVerdict { aim, reached: Some(row.ratio_to_hop <= LATENCY_RATIO), found }
}

fn operations(rows: &[NebRow]) -> AimVerdict {
    let aim = "(n-1)² operations a message".to_owned();
    let excess = |row: &NebRow| row.operations / row.operations_max();
    let worst = rows.iter().max_by(|a, b| excess(a).total_cmp(&excess(b)));
    let Some(row) = worst else { return AimVerdict::unmeasured(aim) };
    let found = format!(
        "{:.2} of {} at most, among {} members; {:.2} reads of progress beside them",
        row.operations,
        row.operations_max(),
        row.members,
        row.progress_reads
    );
    AimVerdict { aim, reached: Some(row.operations <= row.operations_max()), found }
}

impl fmt::Display for NebReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "#members #bytes t_typical[usec] 99%[usec] 99.9%[usec] hop[usec]  ratio \
             MsgRate[Kpps] ops/msg batched completions"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{:8} {:6} {:15.2} {:9.2} {:11.2} {:9.2} {:6.2} {:13.1} {:7.2} {:7.2} {:11.2}",
                row.members,
                row.bytes,
                row.p50_ns / 1e3,
                row.p99_ns / 1e3,
                row.p999_ns / 1e3,
                row.hop_p50_ns / 1e3,
                row.ratio_to_hop,
                row.per_second / 1e3,
                row.operations,
                row.operations_batched,
                row.completions,
            )?;
        }
        writeln!(f)?;
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}

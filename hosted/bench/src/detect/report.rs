//! What was found, for people and for scripts.

use std::fmt;

use serde::Serialize;

use super::fault::{DetectFault, Target};
use crate::verdict::AimVerdict;

/// Where a fault was struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultGround {
    /// The machines in virtual time.
    Simulated,
    /// Processes over shared memory.
    Shm,
}

impl fmt::Display for FaultGround {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Simulated => "simulated",
            Self::Shm => "shm",
        })
    }
}

/// Percentiles of a time, in microseconds after the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Half of them took no longer.
    pub p50_us: u64,
    /// 99 of 100 took no longer.
    pub p99_us: u64,
    /// The longest.
    pub max_us: u64,
}

impl Percentiles {
    /// Of times in nanoseconds; none of none.
    pub(super) fn of(all_ns: impl Iterator<Item = u64>) -> Option<Self> {
        let mut all: Vec<u64> = all_ns.map(|ns| ns.div_ceil(1_000)).collect();
        all.sort_unstable();
        let at = |percent: usize| {
            let rank = (all.len() * percent).div_ceil(100).max(1);
            all.get(rank - 1).copied()
        };
        Some(Self { p50_us: at(50)?, p99_us: at(99)?, max_us: *all.last()? })
    }
}

/// Faults of one kind, at one target, under one profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DetectionRow {
    /// Where.
    pub ground: FaultGround,
    /// The timing profile.
    pub profile: &'static str,
    /// What was struck.
    pub fault: DetectFault,
    /// Whom it struck.
    pub target: Target,
    /// How often.
    pub runs: usize,
    /// Until the first sign; `None` if there was none.
    pub suspicion: Option<Percentiles>,
    /// Until the first verdict; of a fault that must remove no node, until the decision about it.
    pub verdict: Option<Percentiles>,
    /// Until another manager reigned; none where none had to.
    pub takeover: Option<Percentiles>,
    /// Until the next incarnation was a member; of a fault that must remove no node, until all
    /// nodes agreed again.
    pub admission: Option<Percentiles>,
    /// How many led to a verdict.
    pub judged: usize,
    /// How many came back.
    pub admitted: usize,
    /// In how many the first decision was the right one, of component or node among others, and
    /// no node was removed that was not struck.
    pub right: usize,
}

/// A cluster of processes without faults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rest {
    /// The timing profile.
    pub profile: &'static str,
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Whether its nodes agreed on a manager before they were watched.
    pub came_together: bool,
    /// How long they were watched, in milliseconds.
    pub watched_ms: u64,
    /// Verdicts meanwhile that a component or node is down; all are false.
    pub false_verdicts: usize,
    /// Whether processes keep the profile here; if not, no fault was struck.
    pub is_kept: bool,
}

impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { profile, nodes, watched_ms, false_verdicts, .. } = self;
        let kept = if self.is_kept { "kept" } else { "not kept, so no fault is struck" };
        let apart = if self.came_together { "" } else { ", no manager agreed on" };
        let seconds = *watched_ms as f64 / 1e3;
        write!(f, "{profile:4} {nodes} processes at rest for {seconds} s: ")?;
        write!(f, "{false_verdicts} false verdicts{apart}; {kept}")
    }
}

/// What is sent, of one profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DetectTraffic {
    /// The timing profile.
    pub profile: &'static str,
    /// Nodes of the cluster.
    pub nodes: u16,
    /// Heartbeats in a period in which nothing happens, each by its receivers.
    pub frames_per_period: Option<f64>,
    /// Frames from the crash of a backup's node to the order to reset it, at most.
    pub frames_max: u64,
}

/// What makes it hard to distinguish live nodes from dead ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// A tenth of all messages is lost, at most as many heartbeats in a row as are borne.
    FewLosses,
    /// A tenth of all messages is lost.
    Losses,
    /// That, and every few periods one node stands still for 160 ms.
    Stalls,
    /// That, and it stands still for 1 to 20 of its periods.
    LongStalls,
}

impl Trouble {
    pub(super) const ALL: [Self; 4] =
        [Self::FewLosses, Self::Losses, Self::Stalls, Self::LongStalls];
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FewLosses => "few losses",
            Self::Losses => "losses",
            Self::Stalls => "stalls",
            Self::LongStalls => "long stalls",
        })
    }
}

/// How often a node that lives was taken for dead.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Accuracy {
    /// Whose judgement: `weft` or `foca`.
    pub detector: &'static str,
    /// What made it hard.
    pub trouble: Trouble,
    /// Heartbeats, or probes.
    pub heartbeats: u64,
    /// Hours that the nodes lived together.
    pub node_hours: f64,
    /// Verdicts on nodes that were neither dead nor standing still.
    pub false_verdicts: u64,
    /// In 10^6 heartbeats.
    pub per_million: f64,
    /// In an hour of a node.
    pub per_node_hour: f64,
}

impl Accuracy {
    pub(super) fn new(
        detector: &'static str,
        trouble: Trouble,
        heartbeats: u64,
        node_ns: u64,
        false_verdicts: u64,
    ) -> Self {
        let node_hours = node_ns as f64 / 3.6e12;
        Self {
            detector,
            trouble,
            heartbeats,
            node_hours,
            false_verdicts,
            per_million: false_verdicts as f64 * 1e6 / heartbeats.max(1) as f64,
            per_node_hour: false_verdicts as f64 / node_hours.max(f64::MIN_POSITIVE),
        }
    }
}

/// All that was measured. `Display` is the form for a terminal, `Serialize` the one for scripts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DetectReport {
    /// By ground, profile, fault and target.
    pub detections: Vec<DetectionRow>,
    /// By profile, of real processes.
    pub rest: Vec<Rest>,
    /// By profile.
    pub traffic: Vec<DetectTraffic>,
    /// By trouble and detector.
    pub accuracy: Vec<Accuracy>,
    /// Whether the detector of another crate was there: the feature `rivals` of this build.
    pub with_rivals: bool,
    /// What became of the goals.
    pub verdicts: Vec<AimVerdict>,
}

/// Milliseconds: the median and the 99th percentile.
struct MillisCell(Option<Percentiles>);

impl fmt::Display for MillisCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |us: u64| us as f64 / 1e3;
        f.pad(&match self.0 {
            None => "-".to_owned(),
            Some(span) => format!("{:.2}/{:.2}", millis(span.p50_us), millis(span.p99_us)),
        })
    }
}

impl fmt::Display for DetectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:9} {:4} {:16} {:7} {:>17} {:>17} {:>17} {:>17} right  (p50/p99, ms)",
            "#ground", "", "fault", "at", "suspicion", "verdict", "takeover", "admission"
        )?;
        for row in &self.detections {
            writeln!(
                f,
                "{:9} {:4} {:16} {:7} {:>17} {:>17} {:>17} {:>17} {}/{}",
                row.ground,
                row.profile,
                row.fault,
                row.target,
                MillisCell(row.suspicion),
                MillisCell(row.verdict),
                MillisCell(row.takeover),
                MillisCell(row.admission),
                row.right,
                row.runs,
            )?;
        }
        self.rest.iter().try_for_each(|rest| writeln!(f, "shm       {rest}"))?;
        writeln!(f, "\n{:12} {:8} {:>10} {:>9} false", "#trouble", "detector", "beats", "hours")?;
        for row in &self.accuracy {
            writeln!(
                f,
                "{:12} {:8} {:10} {:9.1} {}: {:.2} in 10^6, {:.4} an hour",
                row.trouble,
                row.detector,
                row.heartbeats,
                row.node_hours,
                row.false_verdicts,
                row.per_million,
                row.per_node_hour,
            )?;
        }
        writeln!(f)?;
        if !self.with_rivals {
            writeln!(f, "Without foca, which is not in this build: build with --features rivals.")?;
        }
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let span = Percentiles::of((1..=200).rev().map(|us| us * 1_000));
        assert_eq!(span, Some(Percentiles { p50_us: 100, p99_us: 198, max_us: 200 }));
        assert_eq!(
            Percentiles::of([1].into_iter()),
            Some(Percentiles { p50_us: 1, p99_us: 1, max_us: 1 })
        );
        assert_eq!(Percentiles::of(std::iter::empty()), None);
    }
}

//! What was measured over RDMA, for people and for scripts.

use std::fmt;

use serde::Serialize;

use super::subject::{VerbsOp, VerbsSubject};

/// One row: ours beside its rival's. Latencies in microseconds, bandwidths in MiB a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerbsRow {
    /// The operation.
    pub what: VerbsOp,
    /// Its length in bytes.
    pub bytes: u32,
    /// The rival's name.
    pub rival: &'static str,
    /// Our best figure of all rounds.
    pub ours_best: f64,
    /// Our typical figure: the median of all rounds' medians.
    pub ours: f64,
    /// The rival's best figure.
    pub rival_best: f64,
    /// Its typical figure: the median of what it called typical.
    pub rivals: f64,
    /// The median of all rounds' ratios of typical figures, ours to the rival's.
    pub ratio: f64,
    /// The ratio of the best figures.
    pub ratio_of_best: f64,
    /// The most, or for a bandwidth the least, that the ratio should be.
    pub aim: f64,
    /// Whether it is.
    pub reached: bool,
    /// The same operations without the protocol, where that was measured.
    pub bare: Option<BareBroadcast>,
}

/// What a broadcast cannot do without, among the same members: a write to each other one, and
/// its read by each of them once it has seen that.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BareBroadcast {
    /// The best figure of all rounds.
    pub best: f64,
    /// The typical figure: the median of all rounds' medians.
    pub typical: f64,
    /// The median of all rounds' ratios of typical figures, ours to this.
    pub ratio: f64,
}

/// How long it took to take rights back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fence {
    /// The way.
    pub way: &'static str,
    /// Bytes that the peer had a right to.
    pub bytes: u32,
    /// How often.
    pub rounds: usize,
    /// Granting, the median, in microseconds.
    pub grant: f64,
    /// Taking back, the shortest, in microseconds.
    pub revoke_best: f64,
    /// Taking back, the median, in microseconds.
    pub revoke: f64,
}

/// All that was measured. `Display` is the form for a terminal, `Serialize` the one for scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerbsReport {
    /// The device.
    pub device: String,
    /// How many processors the two processes had.
    pub processors: usize,
    /// How often rivals took turns.
    pub rounds: u32,
    /// The longest that a process which only reads the clock did not run, in microseconds.
    pub longest_stall_us: f64,
    /// How many runs of rivals were repeated, since their own clocks were astray.
    pub astray: u32,
    /// The rows.
    pub rows: Vec<VerbsRow>,
    /// The ways to take rights back.
    pub fences: Vec<Fence>,
    /// Whether every row has reached its aim.
    pub reached: bool,
}

/// Of one subject in one round: the best figure and the typical one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    pub(super) best: f64,
    pub(super) typical: f64,
}

impl BareBroadcast {
    /// From the rounds of both; nothing without rounds.
    pub(super) fn new(ours: &[Round], bare: &[Round]) -> Option<Self> {
        let ratios = ours.iter().zip(bare).map(|(ours, bare)| ours.typical / bare.typical);
        Some(Self {
            best: thousandths(bare.iter().map(|round| round.best).reduce(f64::min)?),
            typical: thousandths(median(bare.iter().map(|round| round.typical))?),
            ratio: thousandths(median(ratios)?),
        })
    }
}

impl VerbsRow {
    /// The row of `subject` from the rounds of both; nothing without rounds.
    pub(super) fn new(subject: VerbsSubject, ours: &[Round], rivals: &[Round]) -> Option<Self> {
        let is_rate = subject.what.is_rate();
        let best = |rounds: &[Round]| {
            let figures = rounds.iter().map(|round| round.best);
            figures.reduce(if is_rate { f64::max } else { f64::min })
        };
        let typical = |rounds: &[Round]| median(rounds.iter().map(|round| round.typical));
        let ratios = ours.iter().zip(rivals).map(|(ours, rival)| ours.typical / rival.typical);
        let (ours_best, rival_best) = (best(ours)?, best(rivals)?);
        let ratio = median(ratios)?;
        let (aim, reached) = subject.aim(ratio);
        Some(Self {
            what: subject.what,
            bytes: subject.bytes,
            rival: subject.rival(),
            ours_best: thousandths(ours_best),
            ours: thousandths(typical(ours)?),
            rival_best: thousandths(rival_best),
            rivals: thousandths(typical(rivals)?),
            ratio: thousandths(ratio),
            ratio_of_best: thousandths(ours_best / rival_best),
            aim,
            reached,
            bare: None,
        })
    }
}

/// The lower median.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// As much as is worth showing.
pub(super) fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl fmt::Display for VerbsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, processors, rounds, longest_stall_us, astray, .. } = self;
        writeln!(
            f,
            "device {device}, {processors} processors, {rounds} rounds; \
             the host's longest stall was {longest_stall_us:.0} us"
        )?;
        if *astray > 0 {
            writeln!(
                f,
                "rivals' runs that were repeated, their own clocks being astray: {astray}"
            )?;
        }
        writeln!(f)?;
        f.write_str("operation   #bytes     best  typical  ")?;
        f.write_str("rival             best  typical  ratio  of best  aim\n")?;
        for row in &self.rows {
            let (sign, verdict) =
                (if row.what.is_rate() { ">=" } else { "<=" }, verdict(row.reached));
            let VerbsRow { what, bytes, ours_best, ours, rival, rival_best, rivals, .. } = row;
            let VerbsRow { ratio, ratio_of_best, aim, .. } = row;
            write!(f, "{what:10} {bytes:7} {ours_best:8.2} {ours:8.2}  ")?;
            write!(f, "{rival:13} {rival_best:8.2} {rivals:8.2} {ratio:6.3} ")?;
            writeln!(f, "{ratio_of_best:8.3}  {sign} {aim:.2} {verdict}")?;
            if let Some(BareBroadcast { best, typical, ratio }) = row.bare {
                let name = "same, bare";
                writeln!(f, "{:38}{name:13} {best:8.2} {typical:8.2} {ratio:6.3}", "")?;
            }
        }
        f.write_str("latencies in us, one way or there and back as perftest has them; ")?;
        f.write_str("bandwidths in MiB/s\n\n")?;
        writeln!(f, "taking rights back     #bytes  #rounds  grant[us]  best[us]  typical[us]")?;
        for fence in &self.fences {
            let Fence { way, bytes, rounds, grant, revoke_best, revoke } = fence;
            writeln!(
                f,
                "{way:20} {bytes:8} {rounds:8} {grant:10.1} {revoke_best:9.1} {revoke:12.1}"
            )?;
        }
        writeln!(f, "\n{}", self.summary())
    }
}

impl VerbsReport {
    /// What became of the aims, in one line.
    fn summary(&self) -> String {
        let missed: Vec<_> = self.rows.iter().filter(|row| !row.reached).collect();
        let count = self.rows.len() - missed.len();
        let mut text = format!("aims: {count} of {} reached", self.rows.len());
        for (index, row) in missed.iter().enumerate() {
            let lead = if index == 0 { "; missed by" } else { "," };
            let VerbsRow { what, bytes, ratio, aim, .. } = row;
            text += &format!("{lead} {what} of {bytes} bytes ({ratio:.3}, aim {aim:.2})");
        }
        text
    }
}

const fn verdict(reached: bool) -> &'static str {
    if reached { "yes" } else { "NO" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(figures: &[(f64, f64)]) -> Vec<Round> {
        figures.iter().map(|&(best, typical)| Round { best, typical }).collect()
    }

    #[test]
    fn rivals_are_compared_within_a_round() {
        let subject = VerbsSubject { what: VerbsOp::Write, bytes: 8 };
        let ours = rounds(&[(9.0, 10.0), (90.0, 100.0), (8.0, 12.0)]);
        let rivals = rounds(&[(7.0, 10.0), (80.0, 100.0), (8.0, 10.0)]);
        let row = VerbsRow::new(subject, &ours, &rivals).unwrap();
        assert_eq!((row.ours_best, row.ours, row.rival_best, row.rivals), (8.0, 12.0, 7.0, 10.0));
        assert_eq!((row.ratio, row.ratio_of_best, row.reached), (1.0, 1.143, true));
        assert_eq!(VerbsRow::new(subject, &[], &[]), None);
    }

    #[test]
    fn more_bandwidth_is_better_and_more_latency_is_not() {
        let row = |what, ours| {
            let subject = VerbsSubject { what, bytes: 4096 };
            VerbsRow::new(subject, &rounds(&[(ours, ours)]), &rounds(&[(100.0, 100.0)]))
                .unwrap()
                .reached
        };
        assert!(row(VerbsOp::Bandwidth, 90.0) && !row(VerbsOp::Bandwidth, 89.0));
        assert!(row(VerbsOp::Tree, 70.0) && !row(VerbsOp::Tree, 69.0));
        assert!(row(VerbsOp::TensorRead, 85.0) && !row(VerbsOp::TensorWrite, 84.0));
        assert!(row(VerbsOp::Read, 115.0) && !row(VerbsOp::Read, 116.0));
        assert!(row(VerbsOp::Mailbox, 120.0) && !row(VerbsOp::Mailbox, 121.0));
        assert!(row(VerbsOp::Broadcast, 130.0) && !row(VerbsOp::Broadcast, 131.0));
    }

    #[test]
    fn a_broadcast_is_compared_with_its_own_operations_too() {
        let subject = VerbsSubject { what: VerbsOp::Broadcast, bytes: 8 };
        let (ours, bare) = (rounds(&[(30.0, 40.0)]), rounds(&[(16.0, 20.0)]));
        let row = VerbsRow::new(subject, &ours, &rounds(&[(9.0, 10.0)])).unwrap();
        let row = VerbsRow { bare: BareBroadcast::new(&ours, &bare), ..row };
        assert_eq!((row.ratio, row.reached), (4.0, false));
        assert_eq!(row.bare, Some(BareBroadcast { best: 16.0, typical: 20.0, ratio: 2.0 }));
        assert_eq!(BareBroadcast::new(&ours, &[]), None);
    }

    #[test]
    fn the_table_names_every_row_and_its_verdict() {
        let rows = VerbsSubject::ALL.iter().filter_map(|subject| {
            VerbsRow::new(*subject, &rounds(&[(1.0, 3.0)]), &rounds(&[(1.0, 1.0)]))
        });
        let fence = Fence {
            way: "deregister",
            bytes: 64,
            rounds: 3,
            grant: 1.0,
            revoke_best: 2.0,
            revoke: 3.0,
        };
        let report = VerbsReport {
            device: "rxe0".to_owned(),
            processors: 2,
            rounds: 1,
            longest_stall_us: 4.0,
            astray: 2,
            rows: rows.collect(),
            fences: vec![fence],
            reached: false,
        };
        let text = report.to_string();
        for subject in VerbsSubject::ALL {
            assert!(text.contains(subject.rival()), "{text}");
        }
        assert!(text.contains(" NO") && text.contains(" yes") && text.contains("deregister"));
        assert!(text.contains("clocks being astray: 2"), "{text}");
        let (line, rest) = text.trim_end().rsplit_once('\n').map(|(a, b)| (b, a)).unwrap();
        assert!(line.starts_with("aims: ") && line.contains("; missed by "), "{rest}");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["rows"].as_array().map(Vec::len), Some(VerbsSubject::ALL.len()));
        assert_eq!(json["rows"][0]["what"], "write");
    }
}

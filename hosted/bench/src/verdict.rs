//! What became of an aim; and the aims of the mailbox.
//!
//! Aims are for an idle machine of two processors. A run on a busy one is judged all the same,
//! and says how busy it was.

use std::fmt;

use serde::Serialize;

use super::report::{MeasuredHost, RivalRow, Row, RowKind};

/// One way at most so many times as long as the bare exchange.
const LATENCY_RATIO: f64 = 1.2;
/// One way at most so many times as long as an active message of UCX.
const RIVAL_RATIO: f64 = 1.25;
/// At least so many messages a second from two writers.
const RATE: f64 = 20e6;
/// Beyond this share of stolen time the host is called noisy.
const NOISY_PERCENT: f64 = 2.0;

/// What became of an aim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AimVerdict {
    /// The aim.
    pub aim: String,
    /// Whether it was reached; nothing when it was not measured.
    pub reached: Option<bool>,
    /// What was found.
    pub found: String,
}

impl AimVerdict {
    pub(super) fn unmeasured(aim: String) -> Self {
        Self { aim, reached: None, found: "not among the cells of this run".to_owned() }
    }
}

impl fmt::Display for AimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { aim, reached, found } = self;
        let reached = match reached {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "?",
        };
        write!(f, "{reached:4} {aim}: {found}")
    }
}

pub(super) fn judge(rows: &[Row], rivals: &[RivalRow], host: &MeasuredHost) -> Vec<AimVerdict> {
    let mut verdicts = vec![latency(rows), rate(rows, host), instructions(), noise(host)];
    let active = rivals.iter().find(|row| row.what == RowKind::UcxAm && row.bytes == 8);
    verdicts.extend(active.map(rival));
    verdicts
}

fn rival(row: &RivalRow) -> AimVerdict {
    let paired: Vec<_> = row.rounds.iter().filter(|round| round.is_paired()).collect();
    let within = paired.iter().filter(|round| round.ratio() <= RIVAL_RATIO).count();
    let mixed = row.rounds.len() - paired.len();
    let mut found = format!("in {within} of {}; {:.2} x by the median", paired.len(), row.ratio);
    if mixed > 0 {
        found += &format!(" of all; in {mixed} more the rival ran in the host's other mode");
    }
    AimVerdict {
        aim: format!("8 bytes within {RIVAL_RATIO} x UCX's active message in 9 of 10 rounds"),
        // Most rounds have to count.
        reached: (paired.len() > mixed).then_some(10 * within >= 9 * paired.len()),
        found,
    }
}

fn find(rows: &[Row], what: RowKind, writers: u16) -> Option<&Row> {
    rows.iter().find(|row| row.what == what && row.bytes == 8 && row.writers == writers)
}

fn latency(rows: &[Row]) -> AimVerdict {
    let aim = format!("8 bytes one way within {LATENCY_RATIO} x the bare exchange");
    let (exchange, latency) = (find(rows, RowKind::Exchange, 1), find(rows, RowKind::Latency, 1));
    let Some((exchange, latency)) = exchange.zip(latency) else {
        return AimVerdict::unmeasured(aim);
    };
    let ratio = latency.ratio_to_limit;
    let found = format!(
        "{ratio:.2} x: {:.0} ns where a bare line takes {:.0} ns",
        latency.p50_ns, exchange.p50_ns
    );
    AimVerdict { aim, reached: Some(ratio <= LATENCY_RATIO), found }
}

fn rate(rows: &[Row], host: &MeasuredHost) -> AimVerdict {
    let aim = format!("{:.0} million messages a second from two writers", RATE / 1e6);
    let Some(row) = find(rows, RowKind::Rate, 2) else { return AimVerdict::unmeasured(aim) };
    let mut found = format!("{:.1} million of 8 bytes", row.per_second / 1e6);
    if host.processors < 3 {
        found += &format!("; 3 processes take turns on {} processors", host.processors);
    }
    AimVerdict { aim, reached: Some(row.per_second >= RATE), found }
}

fn instructions() -> AimVerdict {
    let found = "counted by `weft bench count`, not here".to_owned();
    AimVerdict { aim: "60 instructions a message, put and taken".to_owned(), reached: None, found }
}

pub(super) fn noise(host: &MeasuredHost) -> AimVerdict {
    let found = format!(
        "other processes used {:.1} % of a CPU; the longest stall was {:.0} us",
        host.stalled_percent, host.longest_stall_us
    );
    let quiet = host.stalled_percent < NOISY_PERCENT;
    AimVerdict {
        aim: "no other load on the host, else figures are unreliable".to_owned(),
        reached: Some(quiet),
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;
    use crate::figure::Figure;
    use crate::report::RivalRound;

    const HOST: MeasuredHost =
        MeasuredHost { processors: 2, load: None, longest_stall_us: 40.0, stalled_percent: 0.5 };

    fn row(what: RowKind, writers: u16, each_ns: f64, limit_ns: f64) -> Row {
        let [count, ns] = [1.0, each_ns];
        let figure = Figure {
            count: count as usize,
            min_ns: ns,
            max_ns: ns,
            p50_ns: ns,
            p99_ns: ns,
            p999_ns: ns,
        };
        Row::new(what, Cell { bytes: 8, writers }, figure, each_ns, each_ns / limit_ns)
    }

    fn reached(latency_ns: f64, rate_ns: f64) -> [Option<bool>; 4] {
        let rows = [
            row(RowKind::Exchange, 1, 100.0, 100.0),
            row(RowKind::Latency, 1, latency_ns, 100.0),
            row(RowKind::Rate, 2, rate_ns, 2.0),
        ];
        let verdicts = judge(&rows, &[], &HOST);
        std::array::from_fn(|index| verdicts[index].reached)
    }

    #[test]
    fn aims_are_reached_at_their_limits_and_missed_beyond() {
        assert_eq!(reached(120.0, 50.0), [Some(true), Some(true), None, Some(true)]);
        assert_eq!(reached(121.0, 51.0), [Some(false), Some(false), None, Some(true)]);
    }

    #[test]
    fn a_rival_is_matched_in_nine_of_ten_rounds_or_not_at_all() {
        for (slow, reached) in [(1, true), (2, false)] {
            let round = |at| RivalRound::new([60.0, if at < slow { 126.0 } else { 125.0 }, 100.0]);
            assert_eq!(beside_rival((0..10).map(round).collect()), Some(reached));
        }
    }

    fn beside_rival(rounds: Vec<RivalRound>) -> Option<bool> {
        let row = RivalRow { what: RowKind::UcxAm, bytes: 8, ratio: 1.25, rounds };
        judge(&[], &[row], &HOST).last().and_then(|verdict| verdict.reached)
    }

    #[test]
    fn a_round_whose_rival_ran_in_the_other_mode_is_left_out_unless_most_are_such() {
        let [near, mixed, far, slow, late] = [
            [50.0, 70.0, 60.0],
            [50.0, 70.0, 250.0],
            [250.0, 280.0, 60.0],
            [50.0, 90.0, 60.0],
            [50.0, 280.0, 60.0],
        ]
        .map(RivalRound::new);
        for (round, reached) in [(near, true), (slow, false), (late, false)] {
            assert_eq!(beside_rival(vec![round, round, round, mixed, far]), Some(reached));
        }
        assert_eq!(beside_rival(vec![near, near, mixed, far]), None);
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        let verdicts = judge(&[], &[], &MeasuredHost { stalled_percent: 30.0, ..HOST });
        let reached: Vec<_> = verdicts.iter().map(|verdict| verdict.reached).collect();
        assert_eq!(reached, [None, None, None, Some(false)]);
    }
}

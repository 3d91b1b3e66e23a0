//! What programs as members have shown, for people and for scripts.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{MemberRound, VerdictSpans};
use crate::figure::{Figure, Samples};
use crate::report::{MeasuredHost, tenths};
use crate::verdict::{self, AimVerdict};

/// What a row is of; the table in [`member`](super) says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberWhat {
    /// One way between programs that poll.
    HopPolled,
    /// One way between programs whose loops have threads of their own.
    HopSpawned,
    /// Messages between programs that poll.
    RatePolled,
    /// Messages between programs whose loops have threads of their own.
    RateSpawned,
    /// Messages that were taken, saved in a record and released.
    TakeSaveRelease,
    /// From the decision to the event at another member.
    VerdictToEvent,
    /// From the decision to the event at a watcher.
    VerdictToWatch,
    /// From the decision to isolate a node to the mask that another one shows.
    VerdictToMask,
    /// From the launch until four programs have joined.
    Join,
}

impl MemberWhat {
    /// Those that two programs exchange.
    pub(super) const EXCHANGED: [Self; 5] = [
        Self::HopPolled,
        Self::HopSpawned,
        Self::RatePolled,
        Self::RateSpawned,
        Self::TakeSaveRelease,
    ];

    const fn is_hop(self) -> bool {
        matches!(self, Self::HopPolled | Self::HopSpawned)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::HopPolled => "hop_polled",
            Self::HopSpawned => "hop_spawned",
            Self::RatePolled => "rate_polled",
            Self::RateSpawned => "rate_spawned",
            Self::TakeSaveRelease => "take_save_release",
            Self::VerdictToEvent => "verdict_to_event",
            Self::VerdictToWatch => "verdict_to_watch",
            Self::VerdictToMask => "verdict_to_mask",
            Self::Join => "join",
        }
    }
}

/// One row of the table: the round with the median.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemberRow {
    /// What was measured.
    pub what: MemberWhat,
    /// Samples.
    pub iterations: usize,
    /// The shortest.
    #[serde(serialize_with = "tenths")]
    pub min_ns: f64,
    /// The longest.
    #[serde(serialize_with = "tenths")]
    pub max_ns: f64,
    /// The median.
    #[serde(serialize_with = "tenths")]
    pub p50_ns: f64,
    /// 99 of 100 are not longer.
    #[serde(serialize_with = "tenths")]
    pub p99_ns: f64,
    /// How many of it a second, by the median.
    #[serde(serialize_with = "tenths")]
    pub per_second: f64,
    /// What the mailbox alone takes for it: the median of all rounds. None for what it does not do.
    pub mailbox_ns: Option<f64>,
    /// A hop by that of the mailbox, a rate by that of the mailbox: the median of all rounds.
    pub ratio_to_mailbox: Option<f64>,
}

impl MemberRow {
    fn new(what: MemberWhat, figure: Figure) -> Self {
        Self {
            what,
            iterations: figure.count,
            min_ns: figure.min_ns,
            max_ns: figure.max_ns,
            p50_ns: figure.p50_ns,
            p99_ns: figure.p99_ns,
            per_second: 1e9 / figure.p50_ns,
            mailbox_ns: None,
            ratio_to_mailbox: None,
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut samples = Samples::default();
    values.for_each(|value| samples.push_value(value));
    samples.median()
}

pub(super) fn rows(rounds: &[MemberRound], spans: &VerdictSpans) -> Vec<MemberRow> {
    let mut rows: Vec<_> =
        MemberWhat::EXCHANGED.into_iter().filter_map(|it| of(it, rounds)).collect();
    let timed = [
        (MemberWhat::VerdictToEvent, &spans.event),
        (MemberWhat::VerdictToWatch, &spans.watch),
        (MemberWhat::VerdictToMask, &spans.mask),
        (MemberWhat::Join, &spans.join),
    ];
    let timed = timed.into_iter().filter_map(|(what, it)| Some(MemberRow::new(what, it.figure()?)));
    rows.extend(timed);
    rows
}

fn of(what: MemberWhat, rounds: &[MemberRound]) -> Option<MemberRow> {
    let is_hop = what.is_hop();
    let found = |round: &MemberRound| {
        let found = round.found.iter().find(|it| it.what == what)?;
        let mailbox = round.mailbox.map(|[hop, rate]| if is_hop { hop } else { rate });
        Some((mailbox, found.each_ns, found.figure))
    };
    let mut all: Vec<_> = rounds.iter().filter_map(found).collect();
    all.sort_by(|(_, a, _), (_, b, _)| a.total_cmp(b));
    // The lower one of two.
    let (_, each_ns, figure) = *all.get(all.len().saturating_sub(1) / 2)?;
    let mailbox = all.iter().filter_map(|(mailbox, ..)| *mailbox);
    let ratios = all.iter().filter_map(|(mailbox, each_ns, _)| {
        mailbox.map(|mailbox| if is_hop { each_ns / mailbox } else { mailbox / each_ns })
    });
    let (mailbox_ns, ratio_to_mailbox) = (median(mailbox), median(ratios));
    let per_second = 1e9 / each_ns;
    Some(MemberRow { mailbox_ns, ratio_to_mailbox, per_second, ..MemberRow::new(what, figure) })
}

/// All that was measured. `Display` is the form for a terminal, `Serialize` the one for scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemberReport {
    /// The rows.
    pub rows: Vec<MemberRow>,
    /// The machine.
    pub host: MeasuredHost,
    /// What became of the aims.
    pub verdicts: Vec<AimVerdict>,
}

impl MemberReport {
    pub(super) fn new(rows: Vec<MemberRow>, host: MeasuredHost) -> Self {
        let find = |what| rows.iter().find(|row| row.what == what);
        let judge = |what: MemberWhat, aim: &str, reached: &dyn Fn(&MemberRow) -> bool| {
            let aim = format!("{}: {aim}", what.name());
            let Some(row) = find(what) else { return AimVerdict::unmeasured(aim) };
            let ratio = row.ratio_to_mailbox.map(|ratio| format!(", {ratio:.2} x the mailbox"));
            let found = match what {
                MemberWhat::RatePolled | MemberWhat::RateSpawned => {
                    format!("{:.1} million a second", row.per_second / 1e6)
                }
                _ => format!("{:.2} us", row.p50_ns / 1e3),
            };
            let found = found + &ratio.unwrap_or_default();
            AimVerdict { aim, reached: Some(reached(row)), found }
        };
        let ratio = |row: &MemberRow| row.ratio_to_mailbox.unwrap_or(f64::NAN);
        let above = |row: &MemberRow| row.p50_ns - row.mailbox_ns.unwrap_or(f64::NAN);
        let verdicts = vec![
            judge(MemberWhat::HopPolled, "at most 1.05 x that of the mailbox", &|it| {
                ratio(it) <= 1.05
            }),
            judge(MemberWhat::RatePolled, "at least 0.95 x that of the mailbox", &|it| {
                ratio(it) >= 0.95
            }),
            judge(MemberWhat::HopSpawned, "1 us above that of the mailbox", &|it| above(it) <= 1e3),
            judge(MemberWhat::RateSpawned, "5 million a second", &|it| it.per_second >= 5e6),
            judge(MemberWhat::VerdictToEvent, "within 100 us", &|it| it.p50_ns <= 1e5),
            judge(MemberWhat::VerdictToWatch, "within 300 us", &|it| it.p50_ns <= 3e5),
            judge(MemberWhat::VerdictToMask, "within 100 us", &|it| it.p50_ns <= 1e5),
            verdict::noise(&host),
        ];
        Self { rows, host, verdicts }
    }
}

impl fmt::Display for MemberReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:17} {:>11} {:>10} {:>15} {:>12} {:>10} {:>13} {:>6}",
            "#what",
            "#iterations",
            "min[usec]",
            "t_typical[usec]",
            "99%[usec]",
            "max[usec]",
            "MsgRate[Mpps]",
            "ratio"
        )?;
        for row in &self.rows {
            let us = |ns: f64| ns / 1e3;
            write!(
                f,
                "{:17} {:11} {:10.3} {:15.3} {:12.3} {:10.1} {:13.4}",
                row.what.name(),
                row.iterations,
                us(row.min_ns),
                us(row.p50_ns),
                us(row.p99_ns),
                us(row.max_ns),
                row.per_second / 1e6
            )?;
            match row.ratio_to_mailbox {
                Some(ratio) => writeln!(f, " {ratio:6.2}")?,
                None => writeln!(f, " {:>6}", "-")?,
            }
        }
        writeln!(f)?;
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}

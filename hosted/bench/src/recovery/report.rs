//! What recovery scripts have shown, for people and for scripts.

use std::fmt;

use serde::Serialize;

use weft_core::recovery::Rint;

use super::RecoveryCourses;
use super::facts::{NODES, TASKS};
use crate::report::{MeasuredHost, tenths};
use crate::run::Course;
use crate::verdict::{self, AimVerdict};

/// An evaluation of 1,000 words takes at most so long, and so many times as long as its rival.
const EVALUATE_NS: f64 = 20e3;
const EVALUATE_RATIO: f64 = 15.0;
const EVALUATE_WORDS: usize = 1_000;
/// What 3,000 words may take to verify, and 1,000 lines to translate.
const VERIFY_NS: f64 = 100e3;
const VERIFY_WORDS: usize = 3_000;
const TRANSLATE_NS: f64 = 20e6;
const TRANSLATE_LINES: usize = 1_000;
/// A restart by script by a built-in one, at most.
const RESTART_RATIO: f64 = 1.1;
/// The most bytes of an interpreter with its facts.
const RINT_LEN: usize = 24 << 10;

/// What a row is of; the table in [`recovery`](super) says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryWhat {
    /// One evaluation.
    Evaluate,
    /// The same decision by a function in Rust.
    ByHand,
    /// An image, verified.
    Verify,
    /// A script, translated.
    Translate,
    /// An error that a script answers.
    RestartByScript,
    /// An error that the built-in strategy answers.
    RestartBuiltIn,
}

impl RecoveryWhat {
    const fn name(self) -> &'static str {
        match self {
            Self::Evaluate => "evaluate",
            Self::ByHand => "by_hand",
            Self::Verify => "verify",
            Self::Translate => "translate",
            Self::RestartByScript => "restart_by_script",
            Self::RestartBuiltIn => "restart_built_in",
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecoveryRow {
    /// What was measured.
    pub what: RecoveryWhat,
    /// The words that an evaluation runs at least, or that an image has; the lines of a script; of
    /// a restart and of the function none.
    pub size: Option<usize>,
    /// Samples.
    pub iterations: usize,
    /// The shortest.
    #[serde(serialize_with = "tenths")]
    pub min_ns: f64,
    /// The median.
    #[serde(serialize_with = "tenths")]
    pub p50_ns: f64,
    /// 99 % took no longer.
    #[serde(serialize_with = "tenths")]
    pub p99_ns: f64,
    /// How many times longer than its rival: the median of all rounds. None without one.
    pub ratio_to_rival: Option<f64>,
}

pub(super) fn rows(courses: &RecoveryCourses) -> Vec<RecoveryRow> {
    let (words, lines) = (usize::from(courses.words), courses.lines);
    let steps = usize::from(courses.steps);
    let (by_hand, built_in) = (&courses.by_hand, &courses.restart_built_in);
    let rows = [
        row(RecoveryWhat::Evaluate, Some(steps), &courses.evaluate, Some(by_hand)),
        row(RecoveryWhat::ByHand, None, by_hand, Some(by_hand)),
        row(RecoveryWhat::Verify, Some(words), &courses.verify, None),
        row(RecoveryWhat::Translate, Some(lines), &courses.translate, None),
        row(RecoveryWhat::RestartByScript, None, &courses.restart_by_script, Some(built_in)),
        row(RecoveryWhat::RestartBuiltIn, None, built_in, Some(built_in)),
    ];
    rows.into_iter().flatten().collect()
}

fn row(
    what: RecoveryWhat,
    size: Option<usize>,
    course: &Course,
    rival: Option<&Course>,
) -> Option<RecoveryRow> {
    let figure = course.figure()?;
    Some(RecoveryRow {
        what,
        size,
        iterations: figure.count,
        min_ns: figure.min_ns,
        p50_ns: figure.p50_ns,
        p99_ns: figure.p99_ns,
        ratio_to_rival: rival.and_then(|rival| course.ratio(rival)),
    })
}

/// All that was measured. `Display` is the form for a terminal, `Serialize` the one for scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecoveryReport {
    /// The rows.
    pub rows: Vec<RecoveryRow>,
    /// The bytes of an interpreter for 64 nodes and 16 tasks, with its facts.
    pub rint_len: usize,
    /// The machine.
    pub host: MeasuredHost,
    /// What became of the aims.
    pub verdicts: Vec<AimVerdict>,
}

impl RecoveryReport {
    pub(super) fn new(rows: Vec<RecoveryRow>, host: MeasuredHost) -> Self {
        let rint_len = size_of::<Rint<NODES, TASKS>>();
        let mut verdicts = judge(&rows);
        verdicts.push(AimVerdict {
            aim: format!("an interpreter of {} KiB at most with its facts", RINT_LEN >> 10),
            reached: Some(rint_len <= RINT_LEN),
            found: format!("{rint_len} bytes for {NODES} nodes and {TASKS} tasks"),
        });
        verdicts.push(verdict::noise(&host));
        Self { rows, rint_len, host, verdicts }
    }
}

fn judge(rows: &[RecoveryRow]) -> Vec<AimVerdict> {
    let find = |what| rows.iter().find(|row| row.what == what);
    let within = |what, limit_ns: f64, least: usize, aim: &str| {
        let sized = find(what).and_then(|row| Some((row, row.size?)));
        let Some((row, size)) = sized else { return AimVerdict::unmeasured(aim.to_owned()) };
        let reached = row.p50_ns <= limit_ns && size >= least;
        let found = format!("{:.1} us for {size}", row.p50_ns / 1e3);
        AimVerdict { aim: aim.to_owned(), reached: Some(reached), found }
    };
    let ratio = |what, most: f64, aim: &str| {
        let ratio = find(what).and_then(|row| row.ratio_to_rival);
        let Some(ratio) = ratio else { return AimVerdict::unmeasured(aim.to_owned()) };
        let found = format!("{ratio:.2} x");
        AimVerdict { aim: aim.to_owned(), reached: Some(ratio <= most), found }
    };
    let (evaluate, script) = (RecoveryWhat::Evaluate, RecoveryWhat::RestartByScript);
    vec![
        within(evaluate, EVALUATE_NS, EVALUATE_WORDS, "1000 words evaluated within 20 us"),
        ratio(evaluate, EVALUATE_RATIO, "an evaluation within 15 x the same in Rust"),
        within(RecoveryWhat::Verify, VERIFY_NS, VERIFY_WORDS, "3000 words verified within 100 us"),
        within(
            RecoveryWhat::Translate,
            TRANSLATE_NS,
            TRANSLATE_LINES,
            "1000 lines translated within 20 ms",
        ),
        ratio(script, RESTART_RATIO, "a restart by script within 1.1 x a built-in one"),
    ]
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:18} {:>6} {:>11} {:>10} {:>15} {:>10} {:>6}",
            "#what", "size", "#iterations", "min[usec]", "t_typical[usec]", "99%[usec]", "ratio"
        )?;
        for row in &self.rows {
            let size = row.size.map_or("-".to_owned(), |size| size.to_string());
            let ratio = row.ratio_to_rival.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            writeln!(
                f,
                "{:18} {size:>6} {:11} {:10.2} {:15.2} {:10.2} {ratio:>6}",
                row.what.name(),
                row.iterations,
                row.min_ns / 1e3,
                row.p50_ns / 1e3,
                row.p99_ns / 1e3,
            )?;
        }
        writeln!(f)?;
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(what: RecoveryWhat, size: usize, ns: f64, ratio: f64) -> RecoveryRow {
        let (size, ratio_to_rival) = (Some(size), Some(ratio));
        RecoveryRow {
            what,
            size,
            iterations: 1,
            min_ns: ns,
            p50_ns: ns,
            p99_ns: ns,
            ratio_to_rival,
        }
    }

    fn reached(rows: &[RecoveryRow]) -> Vec<Option<bool>> {
        judge(rows).iter().map(|verdict| verdict.reached).collect()
    }

    #[test]
    fn aims_are_reached_at_their_limits_and_missed_beyond() {
        let rows = |over: f64| {
            [
                row(RecoveryWhat::Evaluate, 1_000, EVALUATE_NS + over, EVALUATE_RATIO + over),
                row(RecoveryWhat::Verify, 3_000, VERIFY_NS + over, 1.0),
                row(RecoveryWhat::Translate, 1_000, TRANSLATE_NS + over, 1.0),
                row(RecoveryWhat::RestartByScript, 0, 1.0, RESTART_RATIO + over),
            ]
        };
        assert_eq!(reached(&rows(0.0)), [Some(true); 5]);
        assert_eq!(reached(&rows(0.1)), [Some(false); 5]);
    }

    #[test]
    fn a_shorter_script_reaches_no_aim_and_what_was_not_measured_is_not_judged() {
        let rows = [row(RecoveryWhat::Verify, 2_999, 1.0, 1.0)];
        assert_eq!(reached(&rows), [None, None, Some(false), None, None]);
    }
}

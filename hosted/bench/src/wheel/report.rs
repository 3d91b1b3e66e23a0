//! What the contenders have shown, for people and for scripts.

use std::fmt;

use serde::Serialize;

use crate::report::{MeasuredHost, hundredths, tenths};
use crate::verdict::AimVerdict;

/// What is done with a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerAction {
    /// It is started.
    Start,
    /// It is stopped.
    Stop,
    /// It is started again soon after it was stopped, as the deadline of the next request is.
    Restart,
    /// It gets its full delay again.
    Renew,
    /// Time passes, and nothing is due.
    Advance,
}

impl TimerAction {
    pub(super) const ALL: [Self; 5] =
        [Self::Start, Self::Stop, Self::Restart, Self::Renew, Self::Advance];
}

impl fmt::Display for TimerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Renew => "renew",
            Self::Advance => "advance",
        })
    }
}

/// Who keeps the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKeeper {
    /// The wheel of this crate.
    Weft,
    /// `tokio_util::time::DelayQueue`.
    DelayQueue,
    /// The cancellable wheel of `hierarchical_hash_wheel_timer`.
    HashWheel,
    /// `BTreeMap` by deadline and number.
    SortedMap,
}

impl fmt::Display for TimerKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Weft => "weft",
            Self::DelayQueue => "DelayQueue",
            Self::HashWheel => "hash wheel",
            Self::SortedMap => "BTreeMap",
        })
    }
}

/// One action of one keeper, with so many timers running.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WheelRow {
    /// How many timers run.
    pub timers: usize,
    /// What was done.
    pub action: TimerAction,
    /// By whom.
    pub keeper: TimerKeeper,
    /// The median of all turns, in nanoseconds a call.
    #[serde(serialize_with = "tenths")]
    pub p50_ns: f64,
    /// The shortest turn.
    #[serde(serialize_with = "tenths")]
    pub min_ns: f64,
    /// How many times as long as ours: the median of the ratios within turns.
    #[serde(serialize_with = "hundredths")]
    pub ratio_to_weft: f64,
    /// Allocations a call; none when they are not counted.
    pub allocations: Option<f64>,
}

/// All that was measured. `Display` is the form for a terminal, `Serialize` the one for scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WheelReport {
    /// By number of timers, action and keeper.
    pub rows: Vec<WheelRow>,
    /// Whether the keepers of other crates were there: the feature `rivals` of this build.
    pub with_rivals: bool,
    /// The machine.
    pub host: MeasuredHost,
    /// What became of the aims.
    pub verdicts: Vec<AimVerdict>,
}

impl fmt::Display for WheelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  #timers action  keeper      t_typical[nsec] t_min[nsec]  ratio allocations"
        )?;
        for row in &self.rows {
            let allocations =
                row.allocations.map_or("?".to_owned(), |allocations| format!("{allocations:.2}"));
            writeln!(
                f,
                "{:9} {:7} {:11} {:15.1} {:11.1} {:6.2} {:>11}",
                row.timers,
                row.action,
                row.keeper,
                row.p50_ns,
                row.min_ns,
                row.ratio_to_weft,
                allocations,
            )?;
        }
        writeln!(f)?;
        if !self.with_rivals {
            let cure = "build with --features rivals";
            writeln!(f, "Without DelayQueue and hash wheel, which are not in this build: {cure}.")?;
        }
        self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))
    }
}

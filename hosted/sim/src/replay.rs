//! A failing seed made as small as it gets, and the command that runs it again.

use std::fmt;

use super::fault::Keep;
use super::run::{RunOutcome, RunPlan};
use super::seeds::Failed;
use super::shrink::{Shrunk, shrink};
use super::subject::Subject;
use super::trace::Trace;

/// A run that broke a promise, with no more faults and orders than that takes. `Display` is the
/// command that replays it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    protocol: &'static str,
    seed: u64,
    least: Shrunk,
}

impl Replay {
    /// The least of `failed` that breaks the same promise, as far as `runs_max` runs find it.
    #[must_use]
    pub fn of(subject: &Subject, failed: &Failed, runs_max: u32) -> Self {
        let (seed, outcome) = (failed.seed, &failed.outcome);
        let broken = checker(outcome);
        let from = Shrunk { faults: outcome.faults.clone(), orders: outcome.orders };
        let least = shrink(from, runs_max, |less| {
            checker(&(subject.run)(&plan_of(seed, less, Trace::off()))) == broken
        });
        Self { protocol: subject.name, seed, least }
    }

    /// What is left of the run.
    #[must_use]
    pub const fn least(&self) -> &Shrunk {
        &self.least
    }

    /// The run, written down.
    #[must_use]
    pub fn plan(&self) -> RunPlan {
        plan_of(self.seed, &self.least, Trace::on())
    }
}

fn plan_of(seed: u64, least: &Shrunk, trace: Trace) -> RunPlan {
    RunPlan { seed, keep: Keep::Only(least.faults.clone()), orders_max: least.orders, trace }
}

fn checker(outcome: &RunOutcome) -> Option<&'static str> {
    outcome.violation.as_ref().map(|broken| broken.checker)
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, seed, least: Shrunk { faults, orders } } = self;
        write!(f, "weft sim --protocol {protocol} --seed {seed} --orders {orders} --faults ")?;
        let Some((first, rest)) = faults.split_first() else { return f.write_str("none") };
        write!(f, "{first}")?;
        rest.iter().try_for_each(|fault| write!(f, ",{fault}"))
    }
}

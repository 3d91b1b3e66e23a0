//! Detection: how soon the DIR net notices what is broken, and how seldom what is not.
//!
//! ```text
//!   fault ──▶ suspicion ──▶ verdict ──▶ takeover ──▶ admission     each timed from the fault
//!                                       (the manager's)
//! ```
//!
//! | part | where | what |
//! |---|---|---|
//! | `detections` | virtual time, or `shm`: real processes | each fault, struck at manager and backup |
//! | `rest` | `shm` | processes without faults: whether this host lets them keep a profile |
//! | `traffic` | virtual time | frames in a quiet period, frames that a verdict takes |
//! | `accuracy` | virtual time | verdicts on nodes that live, beside the crate `foca` |
//!
//! A fault comes at any time within a period; messages take 1 ns to δ, which the profile takes for
//! normal. All nodes live in the accuracy runs, so every verdict there is false, except one on the
//! very node that stands still. Rivals have the same links, losses and stalls, and as many
//! heartbeats; each keeps its own periods, so that its figures are given by heartbeats and by
//! hours of a node.
//!
//! A fault that must remove no node is timed up to the decision that it leads to, in the column of
//! verdicts: the node is kept, or finds that too few hear it, or is succeeded as manager. Its links
//! are healed then, and the cluster is whole again at what is the admission of the others.
//!
//! What this does not measure: several faults at once, but for a cut link and a death;
//! `weft sim --protocol dirnet` judges those.

mod accuracy;
mod aims;
mod fault;
mod moments;
pub(crate) mod processes;
mod report;
#[cfg(feature = "rivals")]
mod rival;
mod simulated;
mod strike;

pub use fault::{DetectFault, Target, UnknownFault};
pub use report::{
    Accuracy, DetectReport, DetectTraffic, DetectionRow, FaultGround, Percentiles, Rest, Trouble,
};

use super::error::BenchError;
use weft::cluster::Profile;

/// What to measure.
#[derive(Clone, Debug)]
pub struct DetectPlan {
    /// Faults of each kind, target and profile in virtual time.
    pub runs: u32,
    /// Heartbeats of each accuracy run.
    pub heartbeats: u64,
    /// Faults of each kind, target and profile that are struck at real processes.
    pub rounds: u32,
    /// The kinds of faults.
    pub faults: Vec<DetectFault>,
    /// The profiles.
    pub profiles: Vec<Profile>,
}

impl DetectPlan {
    /// The faults at each of their targets at real processes.
    fn struck(&self) -> impl Iterator<Item = (DetectFault, Target)> {
        let at_each =
            |fault: DetectFault| fault.targets().iter().map(move |target| (fault, *target));
        self.faults.iter().copied().flat_map(at_each)
    }

    /// Those that virtual time has, too.
    fn simulated(&self) -> impl Iterator<Item = (DetectFault, Target)> {
        self.struck().filter(|(fault, _)| fault.is_simulated())
    }
}

/// Measures; `on_part` is called for every part that is done, [`parts`] of them.
///
/// # Errors
/// [`BenchError`].
pub fn run(plan: &DetectPlan, mut on_part: impl FnMut()) -> Result<DetectReport, BenchError> {
    let mut report = DetectReport::default();
    for profile in plan.profiles.iter().copied() {
        for (fault, target) in plan.simulated() {
            report.detections.extend(simulated::detect(profile, fault, target, plan.runs));
            on_part();
        }
        report.traffic.push(simulated::traffic(profile, plan.runs));
        on_part();
    }
    for trouble in Trouble::ALL {
        report.accuracy.push(accuracy::ours(trouble, plan.heartbeats));
        on_part();
        #[cfg(feature = "rivals")]
        report.accuracy.push(rival::foca(trouble, plan.heartbeats));
        on_part();
    }
    if plan.rounds > 0 {
        for profile in plan.profiles.iter().copied() {
            let (rest, detections) = processes::detect(profile, plan, &mut on_part)?;
            report.rest.push(rest);
            report.detections.extend(detections);
        }
    }
    report.with_rivals = cfg!(feature = "rivals");
    report.verdicts = aims::judge(&report);
    Ok(report)
}

/// How many parts a run of `plan` has.
#[must_use]
pub fn parts(plan: &DetectPlan) -> u64 {
    let struck = if plan.rounds > 0 { plan.struck().count() + 1 } else { 0 };
    let each = plan.simulated().count() + 1 + struck;
    (plan.profiles.len() * each + 2 * Trouble::ALL.len()) as u64
}

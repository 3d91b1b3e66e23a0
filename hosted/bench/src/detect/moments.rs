//! When what followed from a fault, and the percentiles of many.

use super::fault::{DetectFault, Target};
use super::report::{DetectionRow, FaultGround, Percentiles};
use weft::cluster::Profile;

/// One fault: when what followed, in nanoseconds after it; nothing for what did not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    /// The first sign: a suspicion, or the alarm of the node's own I'm-Alive Task.
    pub(super) suspicion: Option<u64>,
    /// The first verdict.
    pub(super) verdict: Option<u64>,
    /// Another manager reigns.
    pub(super) takeover: Option<u64>,
    /// The node's next incarnation is a member.
    pub(super) admission: Option<u64>,
    /// The first verdict is the right one, and no other node was removed.
    pub(super) is_right: bool,
}

/// All faults of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaultSeries {
    pub(super) ground: FaultGround,
    pub(super) profile: Profile,
    pub(super) fault: DetectFault,
    pub(super) target: Target,
}

impl FaultSeries {
    pub(super) fn sum_up(self, all: &[Moments]) -> DetectionRow {
        let span = |pick: fn(&Moments) -> Option<u64>| Percentiles::of(all.iter().filter_map(pick));
        DetectionRow {
            ground: self.ground,
            profile: self.profile.as_str(),
            fault: self.fault,
            target: self.target,
            runs: all.len(),
            suspicion: span(|it| it.suspicion),
            verdict: span(|it| it.verdict),
            takeover: span(|it| it.takeover),
            admission: span(|it| it.admission),
            judged: all.iter().filter(|it| it.verdict.is_some()).count(),
            admitted: all.iter().filter(|it| it.admission.is_some()).count(),
            right: all.iter().filter(|it| it.is_right).count(),
        }
    }
}

//! Planted bugs judged: how many seeds until each is caught, and by which promise.

use weft_core::mutant::{Mutant, plant};

use super::seeds::run_seeds;
use super::subject::Subject;

/// What became of one planted bug.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The bug.
    pub mutant: Mutant,
    /// Seeds that were run: up to the first that caught it, or all.
    pub seeds: u64,
    /// Which promise it was caught breaking, and what happened; nothing when it was not caught.
    pub caught: Option<(&'static str, String)>,
}

/// Plants each bug of `subject` in turn and runs seeds until one fails, at most `seeds_max`.
/// `on_verdict` is called after each.
///
/// The planted bug is one for the whole process: nothing else may be simulated meanwhile.
pub fn judge(subject: &Subject, seeds_max: u64, on_verdict: impl Fn(&Verdict)) -> Vec<Verdict> {
    let all = subject.mutants.iter().copied().flatten();
    let verdicts = all.map(|mutant| {
        plant(Some(mutant));
        let tally = run_seeds(subject, (0, seeds_max), 1, || {});
        plant(None);
        let first = tally.failed.first();
        let violation = first.and_then(|failed| failed.outcome.violation.as_ref());
        let verdict = Verdict {
            mutant: *mutant,
            seeds: first.map_or(tally.seeds, |failed| failed.seed + 1),
            caught: violation.map(|violation| (violation.checker, violation.what.clone())),
        };
        on_verdict(&verdict);
        verdict
    });
    verdicts.collect()
}

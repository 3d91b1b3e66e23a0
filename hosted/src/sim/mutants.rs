//! Planted bugs judged: how many seeds until each is caught, and by which promise.
//!
//! ```text
//!   plant ─▶ seeds until one fails ─▶ made smaller ─▶ replayed twice, with the same trace
//!       └──▶ the explorer, where its small configuration can show the bug
//! ```

use weft_core::mutant::{Mutant, plant};

use super::explore::Bounds;
use super::replay::Replay;
use super::seeds::{Failed, run_seeds};
use super::subject::Subject;

/// Runs spent on making a failing one smaller.
const SHRINKING_RUNS_MAX: u32 = 150;

const fn within(steps: Option<u32>, births: u32) -> Bounds {
    Bounds { steps, crashes: 1, births, faults: 0, waits: Some(0), states_max: 200_000 }
}

/// Which planted bugs a small configuration can show, and within which bounds: the explorer has
/// to find them, too.
const EXPLORED: &[(Bounds, &[&str])] = &[
    (
        within(Some(3), 1),
        &[
            "mailbox/put-reported-before-the-payload-landed",
            "mailbox/claim-stored-after-the-fetch-add",
            "mailbox/claim-dropped-before-the-write-completed",
            "mailbox/half-reused-before-it-is-drained",
            "mailbox/skip-without-fence",
            "mailbox/reserving-claim-not-read-again",
            "mailbox/skipped-without-a-last-look",
            "mailbox/missing-ticket-never-questioned",
            "wire/checksum-skipped",
        ],
    ),
    (
        within(None, 0),
        &[
            "mailbox/journalled-when-taken",
            "mailbox/journal-ignored-by-the-successor",
            "neb/U3-read-before-expose",
            "neb/U6-remove-on-timeout",
            "neb/N6-forget-conflict",
            "neb/N7-failure-is-vote",
        ],
    ),
];

/// What became of one planted bug.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Protocol and name of the bug.
    pub name: String,
    /// The promise that it was planted to break.
    pub breaks: &'static str,
    /// Seeds that were run: up to the first that caught it, or all.
    pub seeds: u64,
    /// How it was caught, if it was.
    pub caught: Option<Caught>,
    /// What the explorer made of it, if it was asked.
    pub explored: Option<Explored>,
}

impl Verdict {
    /// Whether everybody who has to has noticed it, in a way that can be shown again.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let replays = self.caught.as_ref().is_some_and(|caught| caught.replays);
        replays && self.explored.is_none_or(|explored| explored.found)
    }
}

/// How a seed caught a planted bug.
#[derive(Clone, Debug)]
pub struct Caught {
    /// Which promise was broken.
    pub checker: &'static str,
    /// What happened.
    pub what: String,
    /// Faults of the failing run, and those that its replay needs.
    pub faults: (usize, usize),
    /// Whether the replay breaks the same promise, twice by the same trace.
    pub replays: bool,
}

/// How far the explorer came.
#[derive(Clone, Copy, Debug)]
pub struct Explored {
    /// States that it had seen.
    pub states: u64,
    /// Whether it then met a broken promise.
    pub found: bool,
}

/// Plants each bug of `subject` in turn and runs seeds until one fails, at most `seeds_max`.
/// `on_verdict` is called after each.
///
/// The planted bug is one for the whole process: nothing else may be simulated meanwhile.
///
/// # Panics
/// When the list of what the explorer has to find names a bug that there is not.
pub fn judge(subject: &Subject, seeds_max: u64, on_verdict: impl Fn(&Verdict)) -> Vec<Verdict> {
    let all = || subject.mutants.iter().copied().flatten();
    for name in EXPLORED.iter().flat_map(|(_, names)| *names) {
        let elsewhere = !all().any(|mutant| name.starts_with(&format!("{}/", mutant.protocol)));
        assert!(elsewhere || all().any(|mutant| name_of(mutant) == *name), "{name} is no bug");
    }
    let verdicts = all().map(|mutant| {
        plant(Some(mutant));
        let verdict = judge_planted(subject, mutant, seeds_max);
        plant(None);
        on_verdict(&verdict);
        verdict
    });
    verdicts.collect()
}

fn name_of(mutant: &Mutant) -> String {
    format!("{}/{}", mutant.protocol, mutant.name)
}

fn judge_planted(subject: &Subject, mutant: &Mutant, seeds_max: u64) -> Verdict {
    let tally = run_seeds(subject, (0, seeds_max), 1, || {});
    let (name, first) = (name_of(mutant), tally.failed.first());
    let listed = EXPLORED.iter().find(|(_, names)| names.contains(&name.as_str()));
    Verdict {
        breaks: mutant.breaks,
        seeds: first.map_or(tally.seeds, |failed| failed.seed + 1),
        caught: first.and_then(|failed| show_again(subject, failed)),
        explored: listed.and_then(|(bounds, _)| explore(subject, bounds)),
        name,
    }
}

/// Makes the failing run smaller, and runs what is left twice.
fn show_again(subject: &Subject, failed: &Failed) -> Option<Caught> {
    let broken = failed.outcome.violation.clone()?;
    let replay = Replay::of(subject, failed, SHRINKING_RUNS_MAX);
    let [one, other] = [(); 2].map(|()| (subject.run)(&replay.plan()));
    let same_promise = one.violation.is_some_and(|again| again.checker == broken.checker);
    Some(Caught {
        checker: broken.checker,
        what: broken.what,
        faults: (failed.outcome.faults.len(), replay.least().faults.len()),
        replays: same_promise && !one.trace.is_empty() && one.trace == other.trace,
    })
}

fn explore(subject: &Subject, bounds: &Bounds) -> Option<Explored> {
    let explored = (subject.explore)(bounds, &|_| ());
    let states = explored.iter().map(|(_, found)| found.states).sum();
    let found = explored.iter().any(|(_, found)| found.violation.is_some());
    (!explored.is_empty()).then_some(Explored { states, found })
}

//! Planted bugs judged: how many seeds until each is caught, by which checker, and whether the
//! explorer finds it.
//!
//! ```text
//!   plant ─▶ seeds until one breaks the promise that is expected
//!       │        └─▶ made smaller ─▶ replayed twice, with the same trace
//!       └──▶ the explorer, within the bounds that ci/test gives it
//!   both ──▶ held against what is expected of that bug: which checker, and whether it is found
//! ```
//!
//! A bug that the explorer must find is looked for within [`Subject::bounds`], which end at the
//! first broken promise. Of the configurations that miss a bug, only so many states are walked as
//! [`judge`] is given, since no walk of theirs ends early: with `ci/mutants --full` all of them.

use std::collections::BTreeSet;

use weft_core::mutant::{Mutant, plant};

use super::explore::{Bounds, Exploration, walk_twice};
use super::neb::Broadcasts;
use super::protocol::{Small, Violation};
use super::replay::Replay;
use super::seeds::{Failed, run_seeds};
use super::subject::{Expected, Explorer, Subject};

/// Runs spent on making a failing one smaller.
const SHRINKING_RUNS_MAX: u32 = 60;
/// Seeds that break another promise than is expected, after which no more are run.
const OTHERS_MAX: usize = 400;
/// States of each configuration that the explorer walks first, and how many times more after each
/// round that shows nothing.
const FIRST_STATES: u64 = 2_000;
const FURTHER: u64 = 10;

/// What became of one planted bug.
#[derive(Clone, Debug)]
pub struct MutantVerdict {
    /// Protocol and name of the bug.
    pub name: String,
    /// The promise that it was planted to break.
    pub breaks: &'static str,
    /// Who must notice it.
    pub expected: &'static Expected,
    /// Seeds that were run: up to the first that caught it, or all.
    pub seeds: u64,
    /// Other promises that seeds broke before that.
    pub others: BTreeSet<&'static str>,
    /// How it was caught by one of the expected checkers, if it was.
    pub caught: Option<Caught>,
    /// What the explorer made of it.
    pub explored: Explored,
}

impl MutantVerdict {
    /// Whether the checker of the broken promise has noticed it, in a way that can be shown again,
    /// and the explorer has made of it what is expected.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let replays = self.caught.as_ref().is_some_and(|caught| caught.replays);
        (replays || self.expected.seedless.is_some()) && self.is_explored_as_expected()
    }

    /// Whether the explorer found it where it must, by the right checker, and nowhere else.
    #[must_use]
    pub fn is_explored_as_expected(&self) -> bool {
        match (self.explored.found, self.expected.explorer) {
            (Some(checker), Explorer::Finds(checkers)) => checkers.contains(&checker),
            (found, Explorer::Misses(_)) => found.is_none(),
            (_, Explorer::Unasked) => true,
            (None, Explorer::Finds(_)) => false,
        }
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
    /// Whether there was nothing left to see.
    pub finished: bool,
    /// The checker of the broken promise that it met, if it met one.
    pub found: Option<&'static str>,
}

/// Plants each bug of `subject` in turn and runs seeds until one fails, at most `seeds_max`, and
/// the explorer; where that must miss it, at most `states_max` states of each configuration.
/// `on_verdict` is called after each.
///
/// The planted bug is one for the whole process: nothing else may be simulated meanwhile.
///
/// # Panics
/// When nothing is expected of a bug.
pub fn judge(
    subject: &Subject,
    (seeds_max, states_max): (u64, u64),
    on_verdict: impl Fn(&MutantVerdict),
) -> Vec<MutantVerdict> {
    let verdicts = subject.mutants.iter().copied().flatten().map(|mutant| {
        plant(Some(mutant));
        let verdict = judge_planted(subject, mutant, (seeds_max, states_max));
        plant(None);
        on_verdict(&verdict);
        verdict
    });
    verdicts.collect()
}

/// What the explorer makes of `small`, and what it makes of it in every order of reads, those that
/// it leaves out included.
pub fn explore_reads(small: &Small<Broadcasts>, bounds: &Bounds) -> [Exploration; 2] {
    walk_twice(small, bounds)
}

fn judge_planted(
    subject: &Subject,
    mutant: &Mutant,
    (seeds_max, states_max): (u64, u64),
) -> MutantVerdict {
    let expected = subject.expected.iter().find(|expected| expected.is_about(mutant));
    let expected = expected.expect("something is expected of each planted bug");
    let mut bounds = subject.bounds();
    if matches!(expected.explorer, Explorer::Misses(_)) {
        bounds.states_max = bounds.states_max.min(states_max);
    }
    let mut others = BTreeSet::new();
    let seeds_max = if expected.seedless.is_some() { 0 } else { seeds_max };
    let first = first_caught(subject, expected, seeds_max, &mut others);
    MutantVerdict {
        name: format!("{}/{}", mutant.protocol, mutant.name),
        breaks: mutant.breaks,
        expected,
        seeds: first.as_ref().map_or(seeds_max, |(failed, _)| failed.seed + 1),
        others,
        caught: first.map(|(failed, broken)| show_again(subject, &failed, broken)),
        explored: explore(subject, expected.explorer, &bounds),
    }
}

/// The first seed that breaks the promise of one of the expected checkers; `others` are broken
/// before it.
fn first_caught(
    subject: &Subject,
    expected: &Expected,
    seeds_max: u64,
    others: &mut BTreeSet<&'static str>,
) -> Option<(Failed, Violation)> {
    // The seed that has shown it before, alone; what it breaks else is met again below.
    let is_expected = |broken: &Violation| expected.checkers.contains(&broken.checker);
    let known = run_seeds(subject, (expected.seed, seeds_max.min(1)), 1, || {});
    if let Some(failed) = known.failed.into_iter().next()
        && let Some(broken) = failed.outcome.violation.clone().filter(is_expected)
    {
        return Some((failed, broken));
    }
    let mut begin = 0;
    for _ in 0..OTHERS_MAX {
        let tally = run_seeds(subject, (begin, seeds_max - begin), 1, || {});
        let failed = tally.failed.into_iter().next()?;
        let broken = failed.outcome.violation.clone()?;
        if is_expected(&broken) {
            return Some((failed, broken));
        }
        others.insert(broken.checker);
        begin = failed.seed + 1;
    }
    None
}

/// Makes the failing run smaller, and runs what is left twice.
fn show_again(subject: &Subject, failed: &Failed, broken: Violation) -> Caught {
    let replay = Replay::of(subject, failed, SHRINKING_RUNS_MAX);
    let [one, other] = [(); 2].map(|()| (subject.run)(&replay.plan()));
    let same_promise = one.violation.is_some_and(|again| again.checker == broken.checker);
    Caught {
        checker: broken.checker,
        what: broken.what,
        faults: (failed.outcome.faults.len(), replay.least().faults.len()),
        replays: same_promise && !one.trace.is_empty() && one.trace == other.trace,
    }
}

/// Walks the first states of every configuration, then more of each, until one of the expected
/// checkers notices or the bounds are reached: a bug that a late configuration shows soon does not
/// wait for whole walks of those before it.
fn explore(subject: &Subject, expected: Explorer, bounds: &Bounds) -> Explored {
    if expected == Explorer::Unasked {
        return Explored { states: 0, finished: false, found: None };
    }
    let is_expected = |found| matches!(expected, Explorer::Finds(all) if all.contains(&found));
    // Where nothing is to be noticed, nothing is to be noticed soon.
    let is_missed = matches!(expected, Explorer::Misses(_));
    let first = if is_missed { bounds.states_max } else { FIRST_STATES };
    let mut states_max = first.min(bounds.states_max);
    loop {
        let explored = walk(subject, &Bounds { states_max, ..*bounds });
        let is_noticed = explored.found.is_some_and(is_expected);
        let is_done = explored.found.is_none() && explored.finished;
        if is_noticed || is_done || states_max == bounds.states_max {
            return explored;
        }
        states_max = (states_max * FURTHER).min(bounds.states_max);
    }
}

fn walk(subject: &Subject, bounds: &Bounds) -> Explored {
    let explored = (subject.explore)(bounds, &|_| ());
    let mut broken = explored.iter().filter_map(|(_, found)| found.violation.as_ref());
    Explored {
        states: explored.iter().map(|(_, found)| found.states).sum(),
        finished: explored.iter().all(|(_, found)| found.finished),
        found: broken.next().map(|(violation, _)| violation.checker),
    }
}

//! Which protocols can be simulated: one line each.

use weft_core::mutant::Mutant;
use weft_core::{endpoint, group, lane, mailbox, neb, rendezvous, wire};

use super::dirnet;
use super::endpoint::{self as endpoints, Endpoints};
use super::explore::{Bounds, Findings, Unexplored, explore};
use super::group::{self as groupings, Groupings};
use super::mailbox::{self as mailboxes, Mailboxes};
use super::member::{self as members, Members};
use super::neb::{self as broadcasts, Broadcasts};
use super::protocol::Protocol;
use super::rendezvous::{self as meetings, Meetings};
use super::run::{RunOutcome, RunPlan, run};

/// States of one configuration after which the explorer gives up, unless options say otherwise:
/// what a machine of some gigabytes remembers.
const STATES_MAX: u64 = 30_000_000;

/// What the tests must make of one planted bug.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Protocol and name of the bug, with a slash between them.
    pub name: &'static str,
    /// The checkers of the promise that it breaks: one of them has to notice it. What a seed shows
    /// that breaks another promise does not count.
    pub checkers: &'static [&'static str],
    /// What the explorer makes of it.
    pub explorer: Explorer,
    /// Why no seed shows it, where the explorer or a scenario alone does.
    pub seedless: Option<&'static str>,
    /// The seed that is tried first: one that has shown it.
    pub seed: u64,
}

/// What the explorer must make of a planted bug, within the bounds that `ci/test` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explorer {
    /// It finds a path, and one of these checkers notices.
    Finds(&'static [&'static str]),
    /// It finds none: no path within the bounds does what is given here.
    Misses(&'static str),
    /// It is not asked: the walk that would tell takes too long for one bug of many.
    Unasked,
}

/// [`Expected::found`], for a table of many rows.
pub(super) const fn found(name: &'static str, checkers: &'static [&'static str]) -> Expected {
    Expected::found(name, checkers)
}

/// [`Expected::missed`], for a table of many rows.
pub(super) const fn missed(
    name: &'static str,
    checkers: &'static [&'static str],
    why: &'static str,
) -> Expected {
    Expected::missed(name, checkers, why)
}

impl Expected {
    /// Seeds and explorer notice `name`, by one of `checkers`.
    pub(super) const fn found(name: &'static str, checkers: &'static [&'static str]) -> Self {
        Self { name, checkers, explorer: Explorer::Finds(checkers), seedless: None, seed: 0 }
    }

    /// Seeds notice `name`, by one of `checkers`; the explorer does not, for its bounds leave out
    /// `why`.
    pub(super) const fn missed(
        name: &'static str,
        checkers: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self { name, checkers, explorer: Explorer::Misses(why), seedless: None, seed: 0 }
    }

    /// The explorer notices `name`, by one of `checkers`; no seed does, for a run leaves out `why`.
    pub(super) const fn explored(
        name: &'static str,
        checkers: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self { seedless: Some(why), ..Self::found(name, checkers) }
    }

    /// Run `seed` notices `name`, by one of `checkers`.
    pub(super) const fn seen(
        name: &'static str,
        seed: u64,
        checkers: &'static [&'static str],
    ) -> Self {
        Self { name, checkers, explorer: Explorer::Unasked, seedless: None, seed }
    }

    /// A scenario beside the machine notices `name`; no seed does, for `why`.
    pub(super) const fn scripted(name: &'static str, why: &'static str) -> Self {
        Self { seedless: Some(why), ..Self::seen(name, 0, &[]) }
    }

    /// Run `seed` has shown it, and is tried first.
    pub(super) const fn by_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Whether it is about `mutant`.
    #[must_use]
    pub fn is_about(&self, mutant: &Mutant) -> bool {
        self.name.split_once('/') == Some((mutant.protocol, mutant.name))
    }
}

/// A protocol under the simulator, by name.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// What `--protocol` calls it.
    pub name: &'static str,
    /// Runs one seed.
    pub run: fn(&RunPlan) -> RunOutcome,
    /// Explores its small configurations, by name; nothing where there are none.
    pub explore: fn(&Bounds, &(dyn Fn(u64) + Sync)) -> Findings,
    /// What its explorer is not given, and why.
    pub unexplored: fn() -> Vec<Unexplored>,
    /// Crashes that its explorer tries unless options say otherwise.
    pub crashes: u32,
    /// Its planted bugs.
    pub mutants: &'static [&'static [Mutant]],
    /// What is expected of the tests about each of those.
    pub expected: &'static [Expected],
}

impl Subject {
    /// The protocol `P`, with its planted bugs and what is expected of the tests about each; none
    /// of either for a protocol that is not of `weft_core`.
    #[must_use]
    pub const fn of<P: Protocol>(
        mutants: &'static [&'static [Mutant]],
        expected: &'static [Expected],
    ) -> Self {
        Self {
            name: P::NAME,
            run: run::<P>,
            explore: explore::<P>,
            unexplored: P::unexplored,
            crashes: 1,
            mutants,
            expected,
        }
    }

    /// What its explorer tries unless options say otherwise, in `ci/test`, too.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        Bounds {
            steps: None,
            crashes: self.crashes,
            starts: None,
            faults: None,
            waits: None,
            states_max: STATES_MAX,
        }
    }

    /// The protocol of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SUBJECTS.iter().find(|subject| subject.name == name)
    }
}

/// All protocols that can be simulated.
pub const SUBJECTS: &[Subject] = &[
    Subject::of::<Mailboxes>(
        &[mailbox::MUTANTS, lane::MUTANTS, wire::MUTANTS],
        mailboxes::EXPECTED,
    ),
    Subject::of::<Broadcasts>(
        &[neb::mutants::MUTANTS, neb::mutants::SIGNED_MUTANTS, neb::mutants::EPOCH_MUTANTS],
        broadcasts::EXPECTED,
    ),
    Subject::of::<Groupings>(&[group::MUTANTS], groupings::EXPECTED),
    Subject::of::<Meetings>(&[rendezvous::MUTANTS], meetings::EXPECTED),
    Subject::of::<Endpoints>(&[endpoint::MUTANTS], endpoints::EXPECTED),
    Subject::of::<Members>(&[endpoint::MEMBER_MUTANTS], members::EXPECTED),
    // Each of its planted bugs has a scenario, too: ci/mutants dirnet.
    Subject {
        name: dirnet::NAME,
        run: dirnet::run,
        explore: dirnet::explore,
        unexplored: dirnet::left_out,
        crashes: 2,
        mutants: &[weft_core::dirnet::MUTANTS],
        expected: dirnet::EXPECTED,
    },
    Subject {
        name: dirnet::SCRIPTS,
        run: dirnet::run_scripts,
        explore: dirnet::explore_scripts,
        unexplored: Vec::new,
        crashes: 1,
        mutants: &[weft_core::recovery::MUTANTS],
        expected: dirnet::SCRIPTS_EXPECTED,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_planted_bug_says_who_notices_it() {
        for subject in SUBJECTS {
            let mutants = || subject.mutants.iter().copied().flatten();
            for mutant in mutants() {
                let about = subject.expected.iter().filter(|expected| expected.is_about(mutant));
                assert_eq!(about.count(), 1, "{}/{}", mutant.protocol, mutant.name);
            }
            for expected in subject.expected {
                assert!(mutants().any(|mutant| expected.is_about(mutant)), "{}", expected.name);
                let is_noticed = !expected.checkers.is_empty() || expected.seedless.is_some();
                assert!(is_noticed, "{}", expected.name);
            }
        }
    }
}

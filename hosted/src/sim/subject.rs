//! Which protocols can be simulated: one line each.

use weft_core::mutant::Mutant;
use weft_core::{lane, mailbox, neb, wire};

use super::dirnet;
use super::explore::{Bounds, Findings, Unexplored, explore};
use super::mailbox::Mailboxes;
use super::neb::Broadcasts;
use super::protocol::Protocol;
use super::run::{Outcome, Plan, run};

/// A protocol under the simulator, by name.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// What `--protocol` calls it.
    pub name: &'static str,
    /// Runs one seed.
    pub run: fn(&Plan) -> Outcome,
    /// Explores its small configurations, by name; nothing where there are none.
    pub explore: fn(&Bounds, &(dyn Fn(u64) + Sync)) -> Findings,
    /// What its explorer is not given, and why.
    pub unexplored: fn() -> Vec<Unexplored>,
    /// Crashes that its explorer tries unless it is told otherwise.
    pub crashes: u32,
    /// And mishaps of the fabric.
    pub mishaps: u32,
    /// Its planted bugs.
    pub mutants: &'static [&'static [Mutant]],
}

impl Subject {
    pub(super) const fn of<P: Protocol>(mutants: &'static [&'static [Mutant]]) -> Self {
        let (crashes, mishaps) = (1, 0);
        Self {
            name: P::NAME,
            run: run::<P>,
            explore: explore::<P>,
            unexplored: P::unexplored,
            crashes,
            mishaps,
            mutants,
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
    Subject::of::<Mailboxes>(&[mailbox::MUTANTS, lane::MUTANTS, wire::MUTANTS]),
    Subject::of::<Broadcasts>(&[neb::mutants::MUTANTS, neb::mutants::SIGNED_MUTANTS]),
    // Its planted bugs are judged by its scenarios: ci/mutants dirnet.
    Subject {
        name: dirnet::NAME,
        run: dirnet::run,
        explore: dirnet::explore,
        unexplored: Vec::new,
        crashes: 2,
        mishaps: 1,
        mutants: &[],
    },
];

//! The guards of the lane that a test build can leave out ([`crate::mutant`]).

use crate::mutant::Mutant;

const fn mutant(name: &'static str, breaks: &'static str) -> Mutant {
    Mutant::new("lane", name, breaks)
}

pub(super) const CREDIT_EARLY: Mutant =
    mutant("credit-returned-before-the-take", "what was sent is heard");
pub(super) const CREDIT_FORGOTTEN: Mutant =
    mutant("refused-credit-not-posted-again", "a lane that is read has room again");
pub(super) const FULL_IGNORED: Mutant = mutant("sent-into-a-full-ring", "what was sent is heard");
pub(super) const REFUSAL_COUNTED: Mutant = mutant("refused-send-counted", "what was sent is heard");
pub(super) const SESSION_IGNORED: Mutant =
    mutant("incarnations-not-distinguished", "what an earlier pair left is not news");

/// All of them.
pub const MUTANTS: &[Mutant] =
    &[CREDIT_EARLY, CREDIT_FORGOTTEN, FULL_IGNORED, REFUSAL_COUNTED, SESSION_IGNORED];

//! The guards of the endpoint that a test build can leave out ([`crate::mutant`]).

use crate::mutant::Mutant;

pub(super) const FENCE_ERROR_IGNORED: Mutant =
    Mutant::new("endpoint", "fence-error-ignored", "a live sender's ticket is never skipped");

/// All of them.
pub const MUTANTS: &[Mutant] = &[FENCE_ERROR_IGNORED];

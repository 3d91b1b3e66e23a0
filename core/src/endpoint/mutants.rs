//! The guards of the endpoint that a test build can leave out ([`crate::mutant`]).

use crate::mutant::Mutant;

pub(super) const FENCE_ERROR_IGNORED: Mutant =
    Mutant::new("endpoint", "fence-error-ignored", "a live sender's ticket is never skipped");

pub(super) const REMOVAL_FORGOTTEN: Mutant =
    Mutant::new("member", "removal-forgotten", "a removed boot is admitted no more");

pub(super) const FAILED_FENCE_CONFIRMED: Mutant =
    Mutant::new("member", "failed-fence-confirmed", "no node is reset before it is fenced");

pub(super) const FAILED_FENCE_LEFT: Mutant =
    Mutant::new("member", "failed-fence-left", "a fence that failed is tried again");

/// Those of an endpoint.
pub const MUTANTS: &[Mutant] = &[FENCE_ERROR_IGNORED];

/// Those of a member of the DIR net.
pub const MEMBER_MUTANTS: &[Mutant] =
    &[REMOVAL_FORGOTTEN, FAILED_FENCE_CONFIRMED, FAILED_FENCE_LEFT];

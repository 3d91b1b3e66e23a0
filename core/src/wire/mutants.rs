//! The guards of slots and cells that a test build can leave out ([`crate::mutant`]).

use crate::mutant::Mutant;

const fn mutant(name: &'static str, breaks: &'static str) -> Mutant {
    Mutant::new("wire", name, breaks)
}

pub(super) const CHECKSUM_SKIPPED: Mutant =
    mutant("checksum-skipped", "nothing altered is delivered");
pub(super) const STAMP_IGNORED: Mutant = mutant("stamp-ignored", "nothing is delivered twice");
pub(super) const RUN_IGNORED: Mutant =
    mutant("end-of-the-write-not-awaited", "nothing altered is delivered");
pub(super) const CHECK_BEFORE_COPY: Mutant =
    mutant("checked-before-it-is-copied", "no lie makes an owner panic");
pub(super) const TORN_CELL_BELIEVED: Mutant =
    mutant("torn-cell-believed", "a live sender's ticket is never skipped");

/// All of them.
pub const MUTANTS: &[Mutant] =
    &[CHECKSUM_SKIPPED, STAMP_IGNORED, RUN_IGNORED, CHECK_BEFORE_COPY, TORN_CELL_BELIEVED];

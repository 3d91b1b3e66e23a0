//! Guards that a test build can leave out: the planted bugs of `SPEC.md`.

use crate::mutant::Mutant;

const fn rendezvous(name: &'static str, breaks: &'static str) -> Mutant {
    Mutant::new("rendezvous", name, breaks)
}

/// V1: writes begin only after a BUFFER_IDLE (G-1).
pub(super) const PUMPED_BY_IDLE: Mutant = rendezvous("V1-pumped-by-idle", "validity");
/// V2: a value that has grown is written to the memory that was lent for the former (G-2).
pub(super) const WARM_TOO_SMALL: Mutant = rendezvous("V2-warm-too-small", "quiet");
/// V4: TENSOR_WRITE is sent with the data, not after its completion.
pub(super) const SAID_WITH_DATA: Mutant = rendezvous("V4-said-with-data", "typed");
/// V6: memory that its source may write is returned without an answer or a fence.
pub(super) const RETURNED_UNANSWERED: Mutant = rendezvous("V6-returned-unanswered", "quiet");
/// V5: the memory of a receive is returned when it ends, although its reads are out.
pub(super) const RETURNED_EARLY: Mutant = rendezvous("V5-returned-early", "quiet");
/// V7: an offer's memory is free when a receiver is found for it.
pub(super) const FREED_ON_MATCH: Mutant = rendezvous("V7-freed-on-match", "quiet");
/// V8: an offer's memory is free when its receiver is suspected.
pub(super) const FREED_ON_SUSPICION: Mutant = rendezvous("V8-freed-on-suspicion", "quiet");
/// V9: the generation of a slot is not compared.
pub(super) const GENERATION_IGNORED: Mutant = rendezvous("V9-generation-ignored", "match");
/// V10: a waiter stays when its requester has given up.
pub(super) const WAITER_STAYS: Mutant = rendezvous("V10-waiter-stays", "bound");
/// V11: an address is accepted wherever it lies in the layout.
pub(super) const ADDRESS_OF_LAYOUT: Mutant = rendezvous("V11-address-of-layout", "quiet");
/// V14: what comes for a step that is over makes it again.
pub(super) const STEP_REVIVED: Mutant = rendezvous("V14-step-revived", "bound");
/// V15: a value that its receiver refused is consumed.
pub(super) const REFUSED_CONSUMED: Mutant = rendezvous("V15-refused-consumed", "validity");
/// V16: a dead value takes a landing, which it does not give back.
pub(super) const DEAD_KEEPS_LANDING: Mutant = rendezvous("V16-dead-keeps-landing", "bound");
/// V17: the digest of what was read is compared with itself.
pub(super) const DIGEST_OF_ITSELF: Mutant = rendezvous("V17-digest-of-itself", "typed");

/// V18: a part is stored when its receive has ended, and no receive asks for it again.
pub(super) const PART_STORED: Mutant = rendezvous("V18-part-stored", "bound");
/// V19: a value is there as soon as its last part is, although an earlier one is not.
pub(super) const LAST_PART_ENDS: Mutant = rendezvous("V19-last-part-ends", "match");

/// Those that runs of correct members show.
pub const MUTANTS: &[Mutant] = &[
    PUMPED_BY_IDLE,
    WARM_TOO_SMALL,
    SAID_WITH_DATA,
    RETURNED_UNANSWERED,
    RETURNED_EARLY,
    FREED_ON_MATCH,
    GENERATION_IGNORED,
    WAITER_STAYS,
    STEP_REVIVED,
    REFUSED_CONSUMED,
    DEAD_KEEPS_LANDING,
    PART_STORED,
    LAST_PART_ENDS,
];

/// Those that need damaged memory, a damaged message, or a lost pair at one moment: scenarios
/// beside the machine show them.
pub const SCENARIO_MUTANTS: &[Mutant] = &[
    FREED_ON_SUSPICION,
    ADDRESS_OF_LAYOUT,
    crate::wire::rendezvous::PRODUCT_UNCHECKED,
    DIGEST_OF_ITSELF,
];

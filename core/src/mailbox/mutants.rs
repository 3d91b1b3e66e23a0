//! The guards of the mailbox that a test build can leave out ([`crate::mutant`]).

use crate::mutant::Mutant;

const fn mutant(name: &'static str, breaks: &'static str) -> Mutant {
    Mutant::new("mailbox", name, breaks)
}

pub(super) const PUT_BEFORE_PAYLOAD: Mutant =
    mutant("put-reported-before-the-payload-landed", "what was put is delivered");
pub(super) const CLAIM_AFTER_FETCH_ADD: Mutant =
    mutant("claim-stored-after-the-fetch-add", "a live sender's ticket is never skipped");
pub(super) const CLAIM_DROPPED_EARLY: Mutant =
    mutant("claim-dropped-before-the-write-completed", "a live sender's ticket is never skipped");
pub(super) const BATCH_PAST_HALF: Mutant =
    mutant("batch-written-past-the-half", "a writer writes its own slots alone");
pub(super) const REFUSED_WRITE_FORGOTTEN: Mutant =
    mutant("refused-write-not-posted-again", "every flush ends");
pub(super) const HALF_REUSED_EARLY: Mutant =
    mutant("half-reused-before-it-is-drained", "what was put is delivered");
pub(super) const SKIP_WITHOUT_FENCE: Mutant =
    mutant("skip-without-fence", "a live sender's ticket is never skipped");
pub(super) const RESERVING_BELIEVED: Mutant =
    mutant("reserving-claim-not-read-again", "a live sender's ticket is never skipped");
pub(super) const FENCED_WAITED_FOR: Mutant =
    mutant("fenced-holder-still-waited-for", "no owner is stuck");
pub(super) const GAP_OVERTAKEN: Mutant =
    mutant("gap-overtaken-by-its-own-sender", "messages of one sender arrive in its order");
pub(super) const TAKE_JOURNALLED: Mutant =
    mutant("journalled-when-taken", "what was not released is delivered to the next incarnation");
pub(super) const BITMAP_NOT_CLEARED: Mutant =
    mutant("journal-of-a-new-epoch-not-cleared", "what was put is delivered");
pub(super) const JOURNAL_IGNORED: Mutant =
    mutant("journal-ignored-by-the-successor", "what was released is not delivered again");
pub(super) const STAMPS_NOT_CLEARED: Mutant =
    mutant("old-stamps-not-cleared", "nothing is delivered twice");
pub(super) const FORGERY_UNNOTICED: Mutant =
    mutant("forged-count-unnoticed", "a liar's harm is counted");
pub(super) const INCARNATION_IGNORED: Mutant =
    mutant("incarnation-not-compared", "a new incarnation's messages are not the last one's");
pub(super) const TICKETS_SKIPPED_UNSEEN: Mutant =
    mutant("skipped-without-a-last-look", "what was put is delivered");
pub(super) const NEVER_QUESTIONED: Mutant =
    mutant("missing-ticket-never-questioned", "no owner is stuck");
pub(super) const UNNAMED_QUESTIONED: Mutant = mutant(
    "questioned-before-all-are-named",
    "a ticket of a sender that stalls across a restart of the owner is never skipped",
);
pub(super) const SEEN_END_KEPT: Mutant =
    mutant("end-of-an-earlier-write-believed", "a message is whole when it is delivered");
pub(super) const TAKEN_BEHIND_RUN: Mutant =
    mutant("taken-ticket-behind-a-run-unnoticed", "nothing is delivered twice");
pub(super) const RUN_UNJOURNALLED: Mutant =
    mutant("run-released-without-its-journal", "what was released is not delivered again");
pub(super) const HEAD_NOT_SOUGHT: Mutant =
    mutant("head-of-a-packed-write-not-sought", "what was put is delivered");

/// All of them.
pub const MUTANTS: &[Mutant] = &[
    PUT_BEFORE_PAYLOAD,
    CLAIM_AFTER_FETCH_ADD,
    CLAIM_DROPPED_EARLY,
    BATCH_PAST_HALF,
    REFUSED_WRITE_FORGOTTEN,
    HALF_REUSED_EARLY,
    SKIP_WITHOUT_FENCE,
    RESERVING_BELIEVED,
    FENCED_WAITED_FOR,
    GAP_OVERTAKEN,
    TAKE_JOURNALLED,
    BITMAP_NOT_CLEARED,
    JOURNAL_IGNORED,
    STAMPS_NOT_CLEARED,
    FORGERY_UNNOTICED,
    INCARNATION_IGNORED,
    TICKETS_SKIPPED_UNSEEN,
    NEVER_QUESTIONED,
    UNNAMED_QUESTIONED,
    SEEN_END_KEPT,
    TAKEN_BEHIND_RUN,
    RUN_UNJOURNALLED,
    HEAD_NOT_SOUGHT,
];

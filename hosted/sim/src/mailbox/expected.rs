//! The checker that detects each planted bug of mailbox, lanes and slots, and whether the explorer
//! finds it.

use crate::subject::{Expected, found, missed};

/// A row for a bug that no seed shows.
const fn explored(
    name: &'static str,
    checkers: &'static [&'static str],
    why: &'static str,
) -> Expected {
    Expected::explored(name, checkers, why)
}

const LIAR: &str = "a liar";

/// One row for each.
pub(crate) const EXPECTED: &[Expected] = &[
    found("mailbox/put-reported-before-the-payload-landed", &["loss"]),
    found("mailbox/claim-stored-after-the-fetch-add", &["loss"]),
    found("mailbox/claim-dropped-before-the-write-completed", &["loss"]),
    found("mailbox/batch-written-past-the-half", &["loss"]),
    found("mailbox/refused-write-not-posted-again", &["progress"]),
    found("mailbox/half-reused-before-it-is-drained", &["panic"]),
    found("mailbox/skip-without-fence", &["loss"]),
    found("mailbox/reserving-claim-not-read-again", &["loss"]),
    found("mailbox/fenced-holder-still-waited-for", &["progress"]),
    found("mailbox/gap-overtaken-by-its-own-sender", &["order"]),
    found("mailbox/journalled-when-taken", &["loss"]),
    found("mailbox/journal-of-a-new-epoch-not-cleared", &["loss"]),
    found("mailbox/journal-ignored-by-the-successor", &["once"]),
    found("mailbox/skipped-without-a-last-look", &["loss"]),
    found("mailbox/missing-ticket-never-questioned", &["progress"]),
    found("mailbox/old-stamps-not-cleared", &["integrity", "once"]),
    missed("mailbox/forged-count-unnoticed", &["unseen"], LIAR),
    found("mailbox/incarnation-not-compared", &["order"]),
    explored(
        "mailbox/questioned-before-all-are-named",
        &["loss"],
        "a writer that stalls inside a post",
    ),
    missed(
        "mailbox/end-of-an-earlier-write-believed",
        &["integrity"],
        "batches that end with the same ticket of two epochs",
    ),
    missed(
        "mailbox/taken-ticket-behind-a-run-unnoticed",
        &["once", "panic"],
        "a batch beside a message that overtakes it",
    ),
    missed("mailbox/run-released-without-its-journal", &["once"], "a release of several"),
    // A ticket is skipped whose message is there: it is lost, and its sender asked for it.
    found("mailbox/head-of-a-packed-write-not-sought", &["loss", "false alarm"]),
    // An overwritten message is lost.
    found("lane/credit-returned-before-the-take", &["loss", "progress"]),
    missed(
        "lane/refused-credit-not-posted-again",
        &["progress"],
        "a refused credit that no later one makes up for",
    ),
    found("lane/sent-into-a-full-ring", &["loss"]),
    // A message that was never sent is missing, and the next one waits.
    found("lane/refused-send-counted", &["loss", "progress"]),
    found("lane/incarnations-not-distinguished", &["loss", "progress"]),
    found("wire/checksum-skipped", &["integrity"]),
    found("wire/stamp-ignored", &["once", "false alarm"]),
    found("wire/end-of-the-write-not-awaited", &["integrity"]),
    missed("wire/checked-before-it-is-copied", &["panic"], LIAR),
    missed("wire/torn-cell-believed", &["loss"], "a cell that is read while it is torn")
        .by_seed(15_002),
];

//! Which checker notices each planted bug of mailbox, lanes and slots, and what the explorer makes
//! of it.

use crate::sim::subject::Expected;

const fn found(name: &'static str, checkers: &'static [&'static str]) -> Expected {
    Expected::found(name, checkers)
}

const fn missed(
    name: &'static str,
    checkers: &'static [&'static str],
    why: &'static str,
) -> Expected {
    Expected::missed(name, checkers, why)
}

const LANES: &str = "a lane: only mailboxes are explored";
const BIRTH: &str = "a later incarnation of the owner";

/// One row for each.
pub(in crate::sim) const EXPECTED: &[Expected] = &[
    missed("mailbox/put-reported-before-the-payload-landed", &["loss"], BIRTH),
    missed("mailbox/claim-stored-after-the-fetch-add", &["loss"], BIRTH),
    missed("mailbox/claim-dropped-before-the-write-completed", &["loss"], BIRTH),
    missed("mailbox/batch-written-past-the-half", &["loss"], "a batch: each order is one put"),
    missed("mailbox/refused-write-not-posted-again", &["progress"], "a full send queue"),
    found("mailbox/half-reused-before-it-is-drained", &["panic"]),
    missed("mailbox/skip-without-fence", &["loss"], BIRTH),
    missed("mailbox/reserving-claim-not-read-again", &["loss"], BIRTH),
    missed("mailbox/fenced-holder-still-waited-for", &["progress"], BIRTH),
    missed("mailbox/gap-overtaken-by-its-own-sender", &["order"], BIRTH),
    found("mailbox/journalled-when-taken", &["loss"]),
    missed("mailbox/journal-of-a-new-epoch-not-cleared", &["loss"], BIRTH),
    found("mailbox/journal-ignored-by-the-successor", &["once"]),
    found("mailbox/skipped-without-a-last-look", &["loss"]),
    found("mailbox/missing-ticket-never-questioned", &["progress"]),
    missed("mailbox/stamps-of-unused-tickets-not-cleared", &["integrity", "once"], "old epochs"),
    missed("mailbox/forged-count-unnoticed", &["unseen"], "a liar"),
    missed("mailbox/incarnation-not-compared", &["order"], BIRTH),
    missed("lane/credit-returned-before-the-take", &["loss"], LANES),
    missed("lane/refused-credit-not-posted-again", &["progress"], LANES),
    missed("lane/sent-into-a-full-ring", &["loss"], LANES),
    missed("lane/refused-send-counted", &["loss"], LANES),
    missed("lane/incarnations-not-distinguished", &["loss", "progress"], LANES),
    found("wire/checksum-skipped", &["integrity"]),
    found("wire/stamp-ignored", &["once", "false alarm"]),
    missed("wire/checked-before-it-is-copied", &["panic"], "a liar"),
    missed("wire/torn-cell-believed", &["loss"], "a torn write"),
];

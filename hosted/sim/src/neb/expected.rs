//! The checker that detects each planted bug of the broadcast, and whether the explorer finds it.

use crate::subject::{Expected, found};

/// A row for a bug that seeds find too rarely: only the explorer shows it.
const fn explored(name: &'static str, checkers: &'static [&'static str]) -> Expected {
    Expected::explored(name, checkers, "faults at once that fewer than one run in 2,000 draws")
}

/// One row for each.
pub(crate) const EXPECTED: &[Expected] = &[
    found("neb/U3-read-before-expose", &["agreement"]),
    // With a wrong count a slot is delivered too soon, or never.
    explored("neb/U5-count-votes", &["agreement", "validity"]),
    found("neb/U6-remove-on-timeout", &["agreement"]),
    explored("neb/U8-subtract-origin-twice", &["agreement"]),
    found("neb/T1-trust-origin-buffer", &["agreement"]),
    found("neb/T2-shared-landing", &["agreement"]),
    Expected::missed(
        "neb/T3-skip-checksum",
        &["integrity"],
        "a write whose last word lands before the rest",
    ),
    found("neb/T4-deliver-again", &["once"]),
    found("neb/T5-foreign-writer", &["integrity"]),
    found("neb/N6-forget-conflict", &["agreement"]),
    found("neb/N7-failure-is-vote", &["agreement"]),
    found("neb/N1-overrun-window", &["validity"]),
    found("neb/S3-unsigned-silence", &["agreement"]),
    explored("neb/S4-unsigned-denial", &["agreement"]),
    found("neb/S6-unbound-signature", &["blame"]),
    Expected::missed(
        "neb/S7-stale-own-copy",
        &["agreement"],
        "an own copy that is replaced between two looks at those of others",
    ),
    found("neb/S8-any-origin", &["blame"]),
    found("neb/S9-any-pass", &["blame"]),
    found("neb/S10-any-number", &["validity"]),
    Expected::scripted(
        "neb/L3-old-votes",
        "a signed face behind an unsigned one that a removed epoch has counted",
    ),
    found("neb/L1-old-numbers", &["integrity", "once", "validity"]),
    // Of three members, one that returned needs the vote of the only other correct one.
    Expected::missed("neb/L2-count-late", &["agreement"], "a return to more than two others")
        .by_seed(3_084),
    Expected::missed("neb/L4-forget-counted", &["agreement"], "two members that start again")
        .by_seed(8_501),
    Expected::missed(
        "neb/L5-deliver-uncounted",
        &["agreement"],
        "a return to more than two others",
    )
    .by_seed(1_779),
    Expected::scripted("neb/L6-unnamed", "two epochs that begin before either is counted"),
    // The present epoch is removed with the earlier one: it delivers alone, or nothing.
    Expected::missed(
        "neb/L7-any-epoch",
        &["agreement", "validity"],
        "a fenced pair that is not mended by the next incarnation of its member",
    ),
];

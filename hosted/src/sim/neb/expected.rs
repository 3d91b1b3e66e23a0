//! Which checker notices each planted bug of the broadcast, and what the explorer makes of it.

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

const REMOVAL: &str = "a removal: membership is fixed";
const WRAP: &str = "a slot that is used twice: no ring wraps";
const TORN: &str = "a torn read";

/// One row for each.
pub(in crate::sim) const EXPECTED: &[Expected] = &[
    found("neb/U3-read-before-expose", &["agreement"]),
    missed("neb/U5-count-votes", &["agreement"], REMOVAL),
    found("neb/U6-remove-on-timeout", &["agreement"]),
    missed("neb/U8-subtract-origin-twice", &["agreement"], REMOVAL),
    missed("neb/T1-trust-origin-buffer", &["agreement"], REMOVAL),
    missed("neb/T2-shared-landing", &["agreement"], REMOVAL),
    missed("neb/T3-skip-checksum", &["integrity"], TORN),
    missed("neb/T4-deliver-again", &["once"], REMOVAL),
    missed("neb/T5-foreign-writer", &["integrity"], "a write into another origin's ring"),
    found("neb/N6-forget-conflict", &["agreement"]),
    found("neb/N7-failure-is-vote", &["agreement"]),
    missed("neb/N1-overrun-window", &["validity"], WRAP),
    missed("neb/S3-unsigned-silence", &["agreement"], REMOVAL),
    missed("neb/S4-unsigned-denial", &["agreement"], REMOVAL),
    missed("neb/S6-unbound-signature", &["validity"], REMOVAL),
    missed("neb/S7-stale-own-copy", &["agreement"], REMOVAL),
];

//! Which checker notices each planted bug of the broadcast, and what the explorer makes of it.

use crate::sim::subject::Expected;

const fn found(name: &'static str, checkers: &'static [&'static str]) -> Expected {
    Expected::found(name, checkers)
}

/// One row for each.
pub(in crate::sim) const EXPECTED: &[Expected] = &[
    found("neb/U3-read-before-expose", &["agreement"]),
    found("neb/U5-count-votes", &["agreement"]),
    found("neb/U6-remove-on-timeout", &["agreement"]),
    found("neb/U8-subtract-origin-twice", &["agreement"]),
    found("neb/T1-trust-origin-buffer", &["agreement"]),
    found("neb/T2-shared-landing", &["agreement"]),
    found("neb/T3-skip-checksum", &["integrity"]),
    found("neb/T4-deliver-again", &["once"]),
    found("neb/T5-foreign-writer", &["integrity"]),
    found("neb/N6-forget-conflict", &["agreement"]),
    found("neb/N7-failure-is-vote", &["agreement"]),
    found("neb/N1-overrun-window", &["validity"]),
    found("neb/S3-unsigned-silence", &["agreement"]),
    found("neb/S4-unsigned-denial", &["agreement"]),
    found("neb/S6-unbound-signature", &["blame"]),
    found("neb/S7-stale-own-copy", &["agreement"]),
    found("neb/S8-any-origin", &["blame"]),
    found("neb/S9-any-pass", &["blame"]),
    found("neb/S10-any-number", &["validity"]),
];

//! The checker that detects each planted bug of groups, and whether the explorer finds it.

use crate::subject::Expected;

const fn seeds(name: &'static str, checkers: &'static [&'static str]) -> Expected {
    Expected::missed(name, checkers, "more than one message, or members than two")
}

/// One row for each.
pub(crate) const EXPECTED: &[Expected] = &[
    seeds("group/G1-held-early", &["window"]),
    seeds("group/G2-reused-before-stable", &["window", "integrity", "liveness"]),
    seeds("group/G3-acked-before-release", &["integrity", "window", "liveness"]),
    seeds("group/G4-second-read", &["window"]),
    seeds("group/G5-child-left-out", &["window", "integrity", "liveness"]),
    seeds("group/G6-foreign-minimum", &["window", "integrity", "liveness"]),
    seeds("group/G7-mixed-round", &["verdict", "agreement"]),
    seeds("group/G8-not-frozen", &["verdict", "agreement"]),
    seeds("group/G9-end-is-minimum", &["agreement", "verdict"]),
    seeds("group/G10-overtaken", &["order"]),
    seeds("group/G11-no-need", &["liveness"]),
    seeds("group/G12-no-minimum-again", &["liveness"]),
    seeds("group/G14-delivered-again", &["once"]),
    seeds("group/G15-groot-ignored", &["liveness", "window", "integrity"]),
    seeds("group/G16-noted-early", &["window"]),
    seeds("group/G17-overlapping-halves", &["once"]),
    seeds("group/G18-unwritten-counted", &["liveness"]),
    seeds("group/G20-turn-by-block", &["steps"]),
];

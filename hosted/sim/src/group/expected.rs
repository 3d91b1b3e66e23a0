//! The checker that detects each planted bug of groups, and whether the explorer finds it.

use crate::subject::{Expected, Explorer, found, missed};

/// A row for a bug that leaves a small configuration unfinished, where a longer run breaks the
/// promise itself.
const fn unfinished(name: &'static str, checkers: &'static [&'static str]) -> Expected {
    Expected { explorer: Explorer::Finds(&["liveness"]), ..Expected::found(name, checkers) }
}

/// One row for each. What arrives in the wrong slot breaks `window` in a long message and
/// `integrity` in a small one.
pub(crate) const EXPECTED: &[Expected] = &[
    found("group/G1-held-early", &["window"]),
    found("group/G2-reused-before-stable", &["window", "integrity"]),
    missed(
        "group/G3-acked-before-release",
        &["integrity", "window"],
        "a consumer that keeps what was delivered",
    ),
    missed("group/G4-second-read", &["window"], "reads that are handled late").by_seed(2_183),
    unfinished("group/G5-child-left-out", &["window", "integrity"]),
    missed("group/G6-foreign-minimum", &["window", "integrity"], "a full window at a removal")
        .by_seed(1_167),
    missed("group/G7-mixed-round", &["verdict", "agreement"], "two removals").by_seed(8_470),
    found("group/G9-end-is-minimum", &["agreement", "verdict"]),
    unfinished("group/G10-overtaken", &["order"]),
    found("group/G11-no-need", &["liveness"]),
    found("group/G12-no-minimum-again", &["liveness"]),
    missed("group/G14-delivered-again", &["once"], "a peer that is admitted again"),
    found("group/G15-groot-ignored", &["liveness"]),
    found("group/G16-noted-early", &["window"]),
    unfinished("group/G17-overlapping-halves", &["once"]),
    found("group/G18-unwritten-counted", &["liveness"]),
    missed("group/G20-turn-by-block", &["steps"], "the plans of larger groups"),
    found("group/G21-arrivals-ignored", &["barrier"]),
    missed("group/G22-foreign-arrival", &["barrier"], "a tree of three levels at a removal"),
    missed("group/G23-no-sync-again", &["liveness"], "a parent that is admitted again"),
    missed("group/G24-value-ahead", &["gather"], "a value behind a message that is lost")
        .by_seed(2_195),
    missed("group/G25-none-early", &["gather"], "two survivors of an all-gather"),
    missed("group/G26-readers-stay", &["liveness"], "messages that travel in different ways"),
    missed("group/G28-starts-at-end", &["liveness"], "a window in use at a return"),
    missed("group/G30-unanswered", &["liveness"], "a round that a return begins again"),
    missed("group/G31-unsettled-counted", &["liveness"], "a member that begins again meanwhile")
        .by_seed(4_492),
    missed("group/G32-turned-early", &["agreement"], "a consumer that keeps what was delivered"),
    missed("group/G33-passed-delivered", &["order"], "a long message at a return"),
    missed("group/G34-counted-alone", &["liveness"], "two that come back"),
    missed("group/G36-other-plan", &["liveness"], "a long message at a return").by_seed(2_364),
];

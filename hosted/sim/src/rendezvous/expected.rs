//! The checker that detects each planted bug of rendezvous, and whether the explorer finds it.

use crate::subject::{Expected, found, missed};

/// One row for each. Memory that is used too early shows in what is delivered out of it.
pub(crate) const EXPECTED: &[Expected] = &[
    found("rendezvous/V1-pumped-by-idle", &["validity", "liveness"]),
    missed("rendezvous/V2-warm-too-small", &["quiet", "match", "typed"], "a value that has grown"),
    found("rendezvous/V4-said-with-data", &["match", "typed", "quiet"]),
    found("rendezvous/V6-returned-unanswered", &["quiet", "match", "once", "validity"]),
    missed("rendezvous/V5-returned-early", &["quiet", "match"], "a cancel while reads are out"),
    found("rendezvous/V7-freed-on-match", &["quiet", "match"]),
    missed(
        "rendezvous/V9-generation-ignored",
        &["match", "once", "validity"],
        "a cancel after the answer",
    ),
    found("rendezvous/V10-waiter-stays", &["bound", "liveness"]),
    missed("rendezvous/V14-step-revived", &["bound"], "a step that ends"),
    missed("rendezvous/V15-refused-consumed", &["validity"], "a value that is refused"),
    missed("rendezvous/V16-dead-keeps-landing", &["bound"], "a dead value"),
];

//! The checker that detects each planted bug of rendezvous, and whether the explorer finds it.

use crate::subject::{Expected, found, missed};

/// One row for each. Memory that is used too early shows in what is delivered out of it.
pub(crate) const EXPECTED: &[Expected] = &[
    Expected::explored(
        "rendezvous/V1-pumped-by-idle",
        &["validity"],
        "receives that must be met: there any message may come too late",
    ),
    missed("rendezvous/V2-warm-too-small", &["quiet", "match", "typed"], "a value that has grown")
        .by_seed(32_198),
    missed(
        "rendezvous/V4-said-with-data",
        &["match", "typed", "quiet"],
        "a write that ends after a message that was sent behind it",
    ),
    found("rendezvous/V6-returned-unanswered", &["quiet", "match", "once", "validity"])
        .by_seed(3_429),
    found("rendezvous/V5-returned-early", &["quiet", "match"]).by_seed(3_429),
    found("rendezvous/V7-freed-on-match", &["quiet", "match"]),
    found("rendezvous/V9-generation-ignored", &["match", "once", "validity"]),
    found("rendezvous/V10-waiter-stays", &["bound", "liveness"]),
    missed("rendezvous/V14-step-revived", &["bound"], "a step that ends"),
    found("rendezvous/V15-refused-consumed", &["validity"]),
    missed("rendezvous/V16-dead-keeps-landing", &["bound"], "a dead value"),
    found("rendezvous/V18-part-stored", &["bound"]),
    found("rendezvous/V19-last-part-ends", &["match"]),
];

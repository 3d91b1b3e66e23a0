//! The checker that detects each planted bug of rendezvous, and whether the explorer finds it.

use crate::subject::Expected;

const fn missed(
    name: &'static str,
    checkers: &'static [&'static str],
    why: &'static str,
) -> Expected {
    Expected::missed(name, checkers, why)
}

/// One row for each. Memory that is used too early shows in what is delivered out of it.
pub(crate) const EXPECTED: &[Expected] = &[
    missed("rendezvous/V5-returned-early", &["quiet", "match"], "a cancel"),
    missed("rendezvous/V7-freed-on-match", &["quiet", "match"], "a second value"),
    missed("rendezvous/V9-generation-ignored", &["match", "once", "validity"], "a cancel"),
    missed("rendezvous/V10-waiter-stays", &["bound", "liveness"], "a deadline"),
    missed("rendezvous/V14-step-revived", &["bound"], "a step that ends"),
    missed("rendezvous/V15-refused-consumed", &["validity"], "a value that is refused"),
    missed("rendezvous/V16-dead-keeps-landing", &["bound"], "a dead value"),
];

//! What the seeds, the explorer and the scenarios must make of each planted bug of scripts.

use crate::subject::{Expected, found, missed};

const VERIFIER: &str = "an image that the verifier refuses; a test by hand has one";
const VOTES: &str = "one outcome all the same, which versions that were late have no part in";
const NEWS: &str = "seconds without news, after which the manager has answered all the same";
const LANGUAGE: &str = "what drawn scripts leave out; the differential test of the translator";

/// Another test beside the machine or the translator shows it: `ci/mutants recovery`.
const fn scripted(name: &'static str, why: &'static str) -> Expected {
    Expected::scripted(name, why)
}

pub(crate) const EXPECTED: &[Expected] = &[
    scripted("recovery/branch-not-taken", LANGUAGE),
    scripted("recovery/operands-swapped", LANGUAGE),
    scripted("recovery/rest-is-the-set", LANGUAGE),
    scripted("recovery/rest-of-everything", LANGUAGE),
    Expected::seen("recovery/picture-is-live", 0, &["frozen"]),
    scripted("recovery/stale-set-accepted", VERIFIER),
    scripted("recovery/backward-jump-accepted", VERIFIER),
    scripted("recovery/join-depth-unchecked", VERIFIER),
    found("recovery/orders-are-repeated", &["obeyed-once"]),
    found("recovery/marks-are-ignored", &["obeyed-once"]),
    Expected::explored("recovery/orders-go-once", &["answered"], NEWS),
    Expected::explored("recovery/first-picture-is-old", &["answered"], NEWS),
    found("recovery/backups-evaluate", &["term"]),
    missed("recovery/restarts-are-uncounted", &["intensity"], "six restarts"),
    missed("recovery/replicas-count-alpha", &["alpha"], "rules of alpha-counts"),
    scripted("recovery/default-for-answered", LANGUAGE),
    found("recovery/loaded-before-all-hold-it", &["one-script"]),
    Expected::explored("recovery/numbers-begin-again", &["answered"], NEWS),
    scripted("recovery/first-votes-decide", VOTES),
    Expected::seen("recovery/outcomes-unasked", 0, &["vote"]),
    scripted("recovery/pause-outlives-term", LANGUAGE),
    scripted("recovery/div-by-zero-is-true", LANGUAGE),
];

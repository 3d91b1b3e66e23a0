//! The bodies of the fuzz targets, as functions from bytes to a panic or none.
//!
//! ```text
//!   fuzz_targets/NAME.rs          libFuzzer, for as long as one likes
//!                        ├──▶ NAME::run(bytes)
//!   hosted/tests/corpora.rs       every committed input of corpus/NAME, in the ordinary tests
//! ```
//!
//! | target | bytes are |
//! |---|---|
//! | `wire_slot` `wire_cell` | what a peer left in memory |
//! | `endpoint_ops` | operations of two endpoints and a liar |
//! | `wheel_ops` | operations of a wheel, beside a sorted map |
//! | `neb_proof` | what somebody says is a proof of equivocation |
//! | `bootstrap_words` | what a stranger says before it is known |
//! | `control_request` | what a client says on a control socket |
//! | `cluster_file` | what an operator wrote |

pub mod bootstrap_words;
pub mod cluster_file;
pub mod control_request;
pub mod endpoint_ops;
pub mod neb_proof;
pub mod wheel_ops;
pub mod wire_cell;
pub mod wire_slot;

/// A target by the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("bootstrap_words", bootstrap_words::run),
    ("cluster_file", cluster_file::run),
    ("control_request", control_request::run),
    ("endpoint_ops", endpoint_ops::run),
    ("neb_proof", neb_proof::run),
    ("wheel_ops", wheel_ops::run),
    ("wire_cell", wire_cell::run),
    ("wire_slot", wire_slot::run),
];

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
//! | `wire_slot` `wire_cell` `wire_broadcast` | what a peer left in memory |
//! | `endpoint_ops` | operations of two endpoints and a liar |
//! | `dirnet_ops` | what others say to a component and an I'm-Alive Task |
//! | `dirnet_snapshot` | what a node finds of its saved database |
//! | `wheel_ops` | operations of a wheel, beside a sorted map |
//! | `neb_proof` | what somebody says is a proof of equivocation |
//! | `bootstrap_words` | what a stranger says before it is known |
//! | `network_words` | what comes over a connection between hosts |
//! | `control_request` | what a client says on a control socket, or a node |
//! | `cluster_file` | what an operator wrote |

pub mod bootstrap_words;
pub mod cluster_file;
pub mod control_request;
pub mod dirnet_ops;
pub mod dirnet_snapshot;
pub mod endpoint_ops;
pub mod neb_proof;
pub mod network_words;
pub mod wheel_ops;
pub mod wire_broadcast;
pub mod wire_cell;
pub mod wire_slot;

/// A target by the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("bootstrap_words", bootstrap_words::run),
    ("cluster_file", cluster_file::run),
    ("control_request", control_request::run),
    ("dirnet_ops", dirnet_ops::run),
    ("dirnet_snapshot", dirnet_snapshot::run),
    ("endpoint_ops", endpoint_ops::run),
    ("neb_proof", neb_proof::run),
    ("network_words", network_words::run),
    ("wheel_ops", wheel_ops::run),
    ("wire_broadcast", wire_broadcast::run),
    ("wire_cell", wire_cell::run),
    ("wire_slot", wire_slot::run),
];

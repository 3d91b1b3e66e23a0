//! Whether broadcasts wait for a node that the cluster has removed.

use serde::{Deserialize, Serialize};

use crate::words::words;

/// The membership of the non-equivocating broadcast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Membership {
    /// A node that the DIR net removes, or that restarts, no longer takes part.
    #[default]
    Decided,
    /// No node is ever removed: broadcasts wait for silent nodes.
    Fixed,
}

words!(
    Membership,
    "neb.membership",
    "set neb.membership to \"decided\" to go on without removed nodes, or to \"fixed\" to wait \
     for them",
    Decided = "decided",
    Fixed = "fixed",
);

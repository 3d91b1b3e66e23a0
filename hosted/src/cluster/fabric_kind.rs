//! What carries the messages between the nodes of a cluster.

use serde::{Deserialize, Serialize};

use crate::words::words;

/// What carries messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FabricKind {
    /// Memory that the processes of one host share.
    #[default]
    Shm,
    /// RDMA: queue pairs between devices, of one host or of several.
    Verbs,
}

words!(
    FabricKind,
    "fabric",
    "set fabric to \"shm\" on one host, or to \"verbs\" where there is RDMA",
    Shm = "shm",
    Verbs = "verbs",
);

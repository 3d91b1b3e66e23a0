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
    "\"shm\" or \"verbs\"",
    "set fabric to \"shm\" on one host, or to \"verbs\" where there is RDMA",
    Shm = "shm",
    Verbs = "verbs",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_others_are_refused() {
        for kind in FabricKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        let error = "tcp".parse::<FabricKind>().expect_err("no fabric");
        assert_eq!(error.to_string(), "fabric is \"tcp\", but must be \"shm\" or \"verbs\"");
    }
}

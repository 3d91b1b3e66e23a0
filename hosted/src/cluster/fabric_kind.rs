//! What carries the messages between the nodes of a cluster.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::explain::{Code, Explain};

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

impl FabricKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Shm, Self::Verbs];

    /// The word for it in files and on command lines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Verbs => "verbs",
        }
    }
}

impl fmt::Display for FabricKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for FabricKind {
    type Err = FabricKindError;

    fn from_str(text: &str) -> Result<Self, FabricKindError> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| FabricKindError { found: text.chars().take(FOUND_MAX).collect() })
    }
}

const FOUND_MAX: usize = 48;

/// A word that names no fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fabric is {found:?}, but must be \"shm\" or \"verbs\"")]
pub struct FabricKindError {
    /// The word.
    pub found: String,
}

impl Explain for FabricKindError {
    fn code(&self) -> Code {
        Code::ClusterFile
    }

    fn cure(&self) -> String {
        "set fabric to \"shm\" on one host, or to \"verbs\" where there is RDMA".to_owned()
    }
}

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

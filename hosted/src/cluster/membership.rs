//! Whether broadcasts wait for a node that the cluster has removed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::explain::{Code, Explain};

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

impl Membership {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Decided, Self::Fixed];

    /// The word for it in files and for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Fixed => "fixed",
        }
    }
}

impl fmt::Display for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Membership {
    type Err = MembershipError;

    fn from_str(text: &str) -> Result<Self, MembershipError> {
        let found = Self::ALL.into_iter().find(|word| word.as_str() == text);
        found.ok_or_else(|| MembershipError { found: text.chars().take(FOUND_MAX).collect() })
    }
}

const FOUND_MAX: usize = 48;

/// A word that names no membership.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neb.membership is {found:?}, but must be \"decided\" or \"fixed\"")]
pub struct MembershipError {
    /// The word.
    pub found: String,
}

impl Explain for MembershipError {
    fn code(&self) -> Code {
        Code::ClusterFile
    }

    fn cure(&self) -> String {
        "set neb.membership to \"decided\" to go on without removed nodes, or to \"fixed\" to \
         wait for them"
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_others_are_refused() {
        for membership in Membership::ALL {
            assert_eq!(membership.as_str().parse(), Ok(membership));
        }
        let error = "any".parse::<Membership>().expect_err("no membership");
        let text = "neb.membership is \"any\", but must be \"decided\" or \"fixed\"";
        assert_eq!(error.to_string(), text);
    }
}

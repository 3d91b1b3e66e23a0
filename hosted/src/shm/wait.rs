//! What an endpoint does while it has nothing to do.
//!
//! | strategy | costs                          | answers            | fits                        |
//! |----------|--------------------------------|--------------------|-----------------------------|
//! | spin     | a whole processor              | soonest            | one processor per endpoint  |
//! | yield    | a processor nobody else wants  | when scheduled     | few processors, busy peers  |
//! | futex    | a fence per message for peers  | after a wake-up    | everything else             |
//!
//! Only `futex` ever sleeps, so only its peers need to ring ([`Wait::needs_bell`]).

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A wait strategy, in files and on command lines by its lower-case name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Looks again and again.
    Spin,
    /// Looks again after everybody else has had a turn.
    Yield,
    /// Looks for a while, then sleeps until the bell rings.
    Futex,
}

impl Wait {
    /// All strategies, in the order of their readiness.
    pub const ALL: [Self; 3] = [Self::Spin, Self::Yield, Self::Futex];

    /// Whether an endpoint with this strategy can sleep, so that its peers must ring.
    #[must_use]
    pub fn needs_bell(self) -> bool {
        match self {
            Self::Spin | Self::Yield => false,
            Self::Futex => true,
        }
    }

    /// The name in files and on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Yield => "yield",
            Self::Futex => "futex",
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Wait {
    type Err = ParseWaitError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|wait| wait.name() == name);
        found.ok_or(ParseWaitError)
    }
}

/// The name is not that of a wait strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseWaitError;

impl fmt::Display for ParseWaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a wait strategy is one of spin, yield, futex")
    }
}

impl Error for ParseWaitError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_round_in_text_and_in_json() {
        for wait in Wait::ALL {
            assert_eq!(wait.to_string().parse(), Ok(wait));
            let json = serde_json::to_string(&wait).unwrap();
            assert_eq!(json, format!("\"{wait}\""));
            assert_eq!(serde_json::from_str::<Wait>(&json).unwrap(), wait);
        }
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["", "Spin", "busy", "futex "] {
            assert_eq!(name.parse::<Wait>(), Err(ParseWaitError));
        }
        assert!(serde_json::from_str::<Wait>("\"SPIN\"").is_err());
    }
}

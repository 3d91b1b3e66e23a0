//! What an endpoint does while it has nothing to do.
//!
//! | strategy | costs                          | answers            | fits                        |
//! |----------|--------------------------------|--------------------|-----------------------------|
//! | spin     | a whole processor              | soonest            | one processor per endpoint  |
//! | yield    | a processor without other load | when scheduled     | few processors, busy peers  |
//! | futex    | a fence per message for peers  | after a wake-up    | everything else             |
//!
//! Only `futex` ever sleeps, so only its peers need to ring ([`Wait::needs_bell`]).

use std::fmt;
use std::str::FromStr;

use crate::explain::{Code, Explain};

/// A wait strategy, in files and on command lines by its lower-case name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Looks again and again.
    Spin,
    /// Looks again after all other runnable threads have had a turn.
    Yield,
    /// Looks for a while, then sleeps until the bell rings.
    #[default]
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
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Yield => "yield",
            Self::Futex => "futex",
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Wait {
    type Err = WaitError;

    fn from_str(text: &str) -> Result<Self, WaitError> {
        let found = Self::ALL.into_iter().find(|wait| wait.as_str() == text);
        found.ok_or_else(|| WaitError { found: text.chars().take(FOUND_MAX).collect() })
    }
}

const FOUND_MAX: usize = 48;

/// A word that is no wait strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wait is {found:?}, but must be \"spin\", \"yield\" or \"futex\"")]
pub struct WaitError {
    /// The beginning of the word.
    pub found: String,
}

impl Explain for WaitError {
    fn code(&self) -> Code {
        Code::ClusterFile
    }

    fn cure(&self) -> String {
        "set wait to \"futex\", or ask `weft doctor` what fits this machine".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for wait in Wait::ALL {
            assert_eq!(wait.as_str().parse(), Ok(wait));
        }
    }

    #[test]
    fn another_word_is_refused_with_the_choices() {
        let error = "sleep".parse::<Wait>().expect_err("sleep");
        assert_eq!(
            error.to_string(),
            "wait is \"sleep\", but must be \"spin\", \"yield\" or \"futex\""
        );
    }
}

//! What a node does while there is nothing to do.
//!
//! The choice trades latency for processor time; which one fits a machine is what
//! `weft doctor` advises. How each one waits is the business of the fabric, not of this file.
//! All strategies keep the same promises; only the time until a message is seen differs.

use std::fmt;
use std::str::FromStr;

use crate::explain::{Code, Explain};

/// The wait strategy of every node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WaitStrategy {
    /// Poll without pause: the lowest latency, one processor per poller.
    Spin,
    /// Poll and give the processor to others in between.
    Yield,
    /// Poll for a moment, then sleep until a writer wakes the sleeper.
    #[default]
    Futex,
}

impl WaitStrategy {
    /// Every strategy.
    pub const ALL: [Self; 3] = [Self::Spin, Self::Yield, Self::Futex];

    /// The word in the cluster file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Yield => "yield",
            Self::Futex => "futex",
        }
    }
}

impl fmt::Display for WaitStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for WaitStrategy {
    type Err = WaitStrategyError;

    fn from_str(text: &str) -> Result<Self, WaitStrategyError> {
        Self::ALL
            .into_iter()
            .find(|strategy| strategy.as_str() == text)
            .ok_or_else(|| WaitStrategyError {
                found: text.chars().take(FOUND_MAX).collect(),
            })
    }
}

const FOUND_MAX: usize = 48;

/// A word that is no wait strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitStrategyError {
    /// The beginning of the word.
    pub found: String,
}

impl fmt::Display for WaitStrategyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "wait is {:?}, but must be \"spin\", \"yield\" or \"futex\"",
            self.found
        )
    }
}

impl std::error::Error for WaitStrategyError {}

impl Explain for WaitStrategyError {
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
        for strategy in WaitStrategy::ALL {
            assert_eq!(strategy.as_str().parse(), Ok(strategy));
        }
    }

    #[test]
    fn another_word_is_refused_with_the_choices() {
        let error = "sleep".parse::<WaitStrategy>().expect_err("sleep");
        assert_eq!(
            error.to_string(),
            "wait is \"sleep\", but must be \"spin\", \"yield\" or \"futex\""
        );
    }
}

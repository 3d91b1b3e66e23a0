//! The name of a cluster, checked once on construction.
//!
//! A name becomes a directory below the runtime directory and part of a socket's path, hence
//! the narrow alphabet and length: no separators, no dots, nothing a shell would expand.
//! It starts with a letter or a digit so that it is never taken for an option.

use std::fmt;
use std::str::FromStr;

use crate::explain::{Code, Explain};

/// 1 to 32 characters of `a-z 0-9 _ -`, the first a letter or a digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterName(String);

impl ClusterName {
    /// The longest legal name in bytes, which are also its characters.
    pub const LEN_MAX: usize = 32;

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ClusterName {
    type Err = ClusterNameError;

    fn from_str(text: &str) -> Result<Self, ClusterNameError> {
        let Some(first) = text.chars().next() else {
            return Err(ClusterNameError::Empty);
        };
        if let Some(found) = text.chars().find(|&c| !is_legal(c)) {
            return Err(ClusterNameError::Character { name: shortened(text), found });
        }
        if !first.is_ascii_alphanumeric() {
            return Err(ClusterNameError::Start { name: shortened(text), found: first });
        }
        if text.len() > Self::LEN_MAX {
            return Err(ClusterNameError::TooLong { name: shortened(text), len: text.len() });
        }
        Ok(Self(text.to_owned()))
    }
}

/// The name of a cluster without a given name.
impl Default for ClusterName {
    fn default() -> Self {
        Self("weft".to_owned())
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is not a cluster name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterNameError {
    /// No characters.
    #[error("the cluster name is empty")]
    Empty,
    /// More than [`ClusterName::LEN_MAX`] characters.
    #[error(
        "the cluster name {name:?} has {len} characters, but the limit is {}",
        ClusterName::LEN_MAX
    )]
    TooLong {
        /// The name's beginning.
        name: String,
        /// The name's whole length.
        len: usize,
    },
    /// A character outside the alphabet.
    #[error("the cluster name {name:?} contains {found:?}")]
    Character {
        /// The name's beginning.
        name: String,
        /// The first such character.
        found: char,
    },
    /// The first character is neither a letter nor a digit.
    #[error("the cluster name {name:?} starts with {found:?}")]
    Start {
        /// The name's beginning.
        name: String,
        /// The first character.
        found: char,
    },
}

impl Explain for ClusterNameError {
    fn code(&self) -> Code {
        Code::ClusterName
    }

    fn cure(&self) -> String {
        format!(
            "use 1 to {} characters of a-z, 0-9, '_' and '-', starting with a letter or a digit",
            ClusterName::LEN_MAX
        )
    }
}

fn is_legal(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-'
}

/// Enough of a refused name to recognise it; the whole of it may be a pasted file.
fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 48;
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_names_pass_unchanged() {
        for text in ["t", "0", "weft-4", "a_b-c", &"x".repeat(32)] {
            assert_eq!(text.parse::<ClusterName>().expect(text).as_str(), text);
        }
    }

    #[test]
    fn illegal_names_say_what_is_wrong() {
        for (text, cause) in [
            ("", "the cluster name is empty"),
            ("a/b", "the cluster name \"a/b\" contains '/'"),
            ("..", "the cluster name \"..\" contains '.'"),
            ("Weft", "the cluster name \"Weft\" contains 'W'"),
            ("-rf", "the cluster name \"-rf\" starts with '-'"),
            ("é", "the cluster name \"é\" contains 'é'"),
            (
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "the cluster name \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" has 33 characters, \
                 but the limit is 32",
            ),
        ] {
            let error = text.parse::<ClusterName>().expect_err(text);
            assert_eq!(error.to_string(), cause);
            assert_eq!(error.code(), Code::ClusterName);
        }
    }

    #[test]
    fn a_pasted_file_is_not_repeated() {
        let error = "a.".repeat(10_000).parse::<ClusterName>().expect_err("dots");
        assert!(error.to_string().len() < 200);
    }
}

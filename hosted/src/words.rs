//! Words of the cluster file that must be one of a few.
//!
//! [`words!`] makes `ALL`, `as_str`, `Display` and `FromStr` of a type from one table, and
//! [`WordError`] refuses any other word, with the key that it was given for.

use crate::explain::{Code, Explain};

/// A word that its key does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {found:?}, but must be {}", listed(.choices))]
pub struct WordError {
    /// The key.
    pub key: &'static str,
    /// The beginning of the word.
    pub found: String,
    /// The words that the key takes.
    pub choices: &'static [&'static str],
    /// What to set instead.
    pub cure: &'static str,
}

impl Explain for WordError {
    fn code(&self) -> Code {
        Code::ClusterFile
    }

    fn cure(&self) -> String {
        self.cure.to_owned()
    }
}

/// `"a", "b" or "c"`.
fn listed(choices: &[&str]) -> String {
    let quoted: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

/// The table of a type: its key, what to set instead, and each variant's word.
macro_rules! words {
    (
        $type:ident, $key:expr, $cure:literal,
        $($variant:ident = $word:literal),+ $(,)?
    ) => {
        impl $type {
            /// All of them.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word in files and on command lines.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::words::WordError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => {
                        // The whole of it may be a pasted file.
                        let found = text.chars().take(48).collect();
                        let (key, choices, cure) = ($key, &[$($word),+], $cure);
                        Err($crate::words::WordError { key, found, choices, cure })
                    }
                }
            }
        }
    };
}

pub(crate) use words;

//! Whether what nodes broadcast carries signatures.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::explain::{Code, Explain};

/// The form of the non-equivocating broadcast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// No signatures: one node that lies can hold up what others broadcast.
    #[default]
    Unsigned,
    /// Every message carries its origin's signature: once its key is agreed on, a node that lies
    /// keeps no message from being delivered, and an origin that sends different messages is proven
    /// to have done so.
    Signed,
}

impl Form {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Unsigned, Self::Signed];

    /// The word for it in files and for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned",
            Self::Signed => "signed",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Form {
    type Err = FormError;

    fn from_str(text: &str) -> Result<Self, FormError> {
        let found = Self::ALL.into_iter().find(|form| form.as_str() == text);
        found.ok_or_else(|| FormError { found: text.chars().take(FOUND_MAX).collect() })
    }
}

const FOUND_MAX: usize = 48;

/// A word that names no form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neb.form is {found:?}, but must be \"unsigned\" or \"signed\"")]
pub struct FormError {
    /// The word.
    pub found: String,
}

impl Explain for FormError {
    fn code(&self) -> Code {
        Code::ClusterFile
    }

    fn cure(&self) -> String {
        "set neb.form to \"signed\" to have broadcasts signed, else to \"unsigned\"".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_others_are_refused() {
        for form in Form::ALL {
            assert_eq!(form.as_str().parse(), Ok(form));
        }
        let error = "yes".parse::<Form>().expect_err("no form");
        let text = "neb.form is \"yes\", but must be \"unsigned\" or \"signed\"";
        assert_eq!(error.to_string(), text);
    }
}

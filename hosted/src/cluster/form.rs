//! Whether what nodes broadcast carries signatures.

use serde::{Deserialize, Serialize};

use crate::words::words;

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

words!(
    Form,
    "neb.form",
    "set neb.form to \"signed\" to have broadcasts signed, else to \"unsigned\"",
    Unsigned = "unsigned",
    Signed = "signed",
);

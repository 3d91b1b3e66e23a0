//! Whether messages carry checksums where the fabric does not need them.

use serde::{Deserialize, Serialize};

use crate::words::words;

/// The checksums of mailbox messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checksum {
    /// Where the fabric may place the bytes of a message in any order: over verbs.
    #[default]
    Auto,
    /// Over shared memory, too.
    Always,
}

words!(
    Checksum,
    "mailbox.checksum",
    "set mailbox.checksum to \"always\" to have messages in shared memory checked as well, else \
     to \"auto\"",
    Auto = "auto",
    Always = "always",
);

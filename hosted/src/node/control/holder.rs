//! Clients that hold messages of a mailbox.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A client that took messages from its node's mailbox and has not released them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderStatus {
    /// The node's number for it.
    pub client: u64,
    /// The process that connected, as the kernel attests it.
    pub process: Option<i32>,
    /// The program that this process runs.
    pub program: Option<String>,
    /// How many messages it holds.
    pub messages: usize,
    /// For how long it has held the first of them, in milliseconds.
    pub held_ms: u64,
}

impl HolderStatus {
    /// The most holders that a status names.
    pub(crate) const COUNT_MAX: usize = 16;

    /// The process, for people.
    #[must_use]
    pub fn who(&self) -> String {
        match (self.process, &self.program) {
            (Some(process), Some(program)) => format!("process {process} ({program})"),
            (Some(process), None) => format!("process {process}"),
            (None, _) => format!("client {}, of an unknown process,", self.client),
        }
    }
}

impl fmt::Display for HolderStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, held_ms, .. } = self;
        let (s, tenths) = (held_ms / 1_000, held_ms % 1_000 / 100);
        let plural = if *messages == 1 { "" } else { "s" };
        write!(f, "{} holds {messages} message{plural}, the first for {s}.{tenths} s", self.who())
    }
}

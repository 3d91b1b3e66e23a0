//! What becomes of a put.

use serde::{Deserialize, Serialize};

/// How many messages a put has put, and why it stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutOutcome {
    /// Messages put.
    pub put: usize,
    /// Messages after those, which may or may not have been put.
    pub unknown: usize,
    /// How often the mailbox was found full and the put was tried again.
    pub full: u64,
    /// Why not all were put.
    pub stopped: Option<Stopped>,
}

/// Why a put stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stopped {
    /// The mailbox stayed full past the deadline. Its node's status names the clients that hold
    /// messages of it.
    Full,
    /// The owner could not be reached past the deadline, or was lost during the write.
    Unreachable,
    /// A message is longer than a slot.
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// Some were put, and the node did not answer, or refused, the rest of what the client had
    /// split: ask it for the reason.
    Interrupted,
}

//! The hooks that a node has run as the manager's.

use serde::{Deserialize, Serialize};

/// How many hooks a node has run, since its supervisor started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookStatus {
    /// Commands that have ended, and events without one for want of room.
    pub run: u64,
    /// Commands that were not started, failed, or were killed.
    pub failed: u64,
    /// Events that found 64 others waiting.
    pub missed: u64,
    /// The last event without success, and the reason.
    pub last_failure: Option<String>,
}

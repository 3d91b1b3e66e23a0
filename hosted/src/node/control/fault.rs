//! The faults that can be injected into a component.

use serde::{Deserialize, Serialize};

/// A fault that can be injected into a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// It makes no progress any more, but its process stays.
    Hang,
    /// It makes no progress for a while.
    Stall {
        /// For how many milliseconds.
        ms: u64,
    },
    /// Its timers stop, so that it sends no heartbeat; it still answers.
    Silence,
    /// It is cut off from these peers.
    Partition {
        /// Their ranks.
        from: Vec<u16>,
    },
    /// It is connected to these peers again.
    Mend {
        /// Their ranks.
        with: Vec<u16>,
    },
    /// It broadcasts one message that is altered for every second peer.
    Equivocate,
    /// All faults end.
    Heal,
}

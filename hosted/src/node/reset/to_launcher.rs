//! Messages from a node to its launcher.

use serde::{Deserialize, Serialize};

/// From a node's supervisor to its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ToLauncher {
    /// This node has started; its first incarnation is `boot`.
    Began {
        /// The first incarnation of this supervisor.
        boot: u32,
    },
    /// Its component takes part in the DIR net: the manager may have met it.
    Entered,
    /// By decision of the manager, boot `boot` of node `rank` is over: kill it and start the next.
    Reset {
        /// The node.
        rank: u16,
        /// Its boot.
        boot: u32,
    },
    /// By decision of a manager the boots of node `rank` up to `boot` are over; it resets the node
    /// once all members have fenced it.
    Removed {
        /// Which node.
        rank: u16,
        /// Which boot.
        boot: u32,
    },
    /// By decision node `rank` is isolated since `boot`: no later boot takes part.
    Isolated {
        /// The node.
        rank: u16,
        /// Its last boot.
        boot: u32,
    },
    /// By decision boots of node `rank` after `boot` may take part again.
    Released {
        /// The node.
        rank: u16,
        /// Its last boot that may not.
        boot: u32,
    },
    /// The program of this node has ended.
    Exited {
        /// In which incarnation.
        incarnation: u32,
        /// Whether it had joined.
        joined: bool,
        /// Its status, as wait(2) has it.
        status: i32,
    },
    /// Components of this node have failed too often.
    GivenUp,
    /// This node has isolated a task for its failures.
    TaskIsolated {
        /// Its place in the cluster file.
        task: usize,
    },
}

//! What a node says to the one who launched it.

use serde::{Deserialize, Serialize};

/// From a node's supervisor to its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ToLauncher {
    /// This node has begun the life whose first incarnation is `boot`.
    Began {
        /// The first incarnation of this supervisor.
        boot: u32,
    },
    /// Its component takes part in the DIR net: the manager may have met it.
    Entered,
    /// By decision of the manager, the life `boot` of node `rank` is over: end it and begin the
    /// next.
    Reset {
        /// Which node.
        rank: u16,
        /// Which life of it.
        boot: u32,
    },
    /// By decision no life of node `rank` takes part any more, since `boot`.
    Isolated {
        /// Which node.
        rank: u16,
        /// Its last life.
        boot: u32,
    },
    /// By decision lives of node `rank` after `boot` may take part again.
    Released {
        /// Which node.
        rank: u16,
        /// Its last life that may not.
        boot: u32,
    },
    /// This node has isolated a task for its failures.
    TaskIsolated {
        /// Its place in the cluster file.
        task: usize,
    },
}

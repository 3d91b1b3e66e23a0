//! What is struck, and at whom.

use std::fmt;

use serde::Serialize;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The component's process ends, which its supervisor sees.
    Kill,
    /// The component makes no progress any more.
    Hang,
    /// The component's timers stop; it still answers.
    Silence,
    /// The supervisor is gone, and all below it.
    Node,
    /// The node is cut off from all others, for twice the time of a verdict.
    Partition,
}

impl Fault {
    /// Every fault at each of its targets.
    pub(super) fn all() -> impl Iterator<Item = (Self, Target)> {
        let faults = [Self::Kill, Self::Hang, Self::Silence, Self::Node, Self::Partition];
        faults.into_iter().flat_map(|fault| Target::ALL.map(|target| (fault, target)))
    }

    /// Whether the node's own supervisor is there, and reached: the fault is the component's.
    pub(super) const fn is_of_component(self) -> bool {
        matches!(self, Self::Kill | Self::Hang | Self::Silence)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kill => "kill",
            Self::Hang => "hang",
            Self::Silence => "silence",
            Self::Node => "node",
            Self::Partition => "partition",
        })
    }
}

/// Whom it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The manager.
    Manager,
    /// A backup.
    Backup,
}

impl Target {
    pub(super) const ALL: [Self; 2] = [Self::Manager, Self::Backup];
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Manager => "manager",
            Self::Backup => "backup",
        })
    }
}

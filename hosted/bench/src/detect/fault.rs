//! What is struck, and at whom.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DetectFault {
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
    /// The node's links to two others are cut both ways, to the manager among them.
    CutPair,
    /// The same links, but only from the node.
    CutPairOneWay,
    /// The node hears no other, but is heard.
    Deaf,
    /// The supervisor stops; its component continues.
    HungSupervisor,
    /// The component's process ends, and no further one can be started.
    FailedStarts,
    /// An operator has the node isolated, and released once it is.
    Isolation,
    /// As `Kill`, while the link between the node and the manager is cut.
    KillUnderCut,
    /// As `Node`, while the link between the node and the manager is cut.
    NodeUnderCut,
}

/// The decision that a fault leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The component is down.
    Component,
    /// The node is down.
    Node,
    /// The node is isolated.
    Isolated,
    /// The node is kept: a link is the suspect.
    Kept,
    /// The node finds that too few hear it, and claims no term.
    Unheard,
    /// The node is succeeded as manager.
    Succeeded,
}

impl Decision {
    /// Whether it removes the node.
    pub(super) const fn removes(self) -> bool {
        matches!(self, Self::Component | Self::Node | Self::Isolated)
    }
}

impl DetectFault {
    /// Every kind, with its name in reports and on command lines, in the order of the variants.
    pub const ALL: [(Self, &str); 13] = [
        (Self::Kill, "kill"),
        (Self::Hang, "hang"),
        (Self::Silence, "silence"),
        (Self::Node, "node"),
        (Self::Partition, "partition"),
        (Self::CutPair, "cut_pair"),
        (Self::CutPairOneWay, "cut_pair_one_way"),
        (Self::Deaf, "deaf"),
        (Self::HungSupervisor, "hung_supervisor"),
        (Self::FailedStarts, "failed_starts"),
        (Self::Isolation, "isolation"),
        (Self::KillUnderCut, "kill_under_cut"),
        (Self::NodeUnderCut, "node_under_cut"),
    ];

    /// Where it is struck at real processes. A manager does not isolate itself, and no link is
    /// between the manager and itself.
    pub(super) const fn targets(self) -> &'static [Target] {
        match self {
            Self::Isolation | Self::KillUnderCut | Self::NodeUnderCut => &[Target::Backup],
            _ => &Target::ALL,
        }
    }

    /// Whether virtual time has it, too. What follows from the others is proven there by the swarm
    /// (`weft sim --protocol dirnet`); how long it takes is the processes' part.
    pub(super) const fn is_simulated(self) -> bool {
        matches!(self, Self::Kill | Self::Hang | Self::Silence | Self::Node | Self::Partition)
    }

    /// The decision that is right.
    pub(super) const fn expects(self, target: Target) -> Decision {
        match self {
            Self::Kill | Self::Hang | Self::Silence | Self::KillUnderCut => Decision::Component,
            Self::Isolation => Decision::Isolated,
            Self::CutPair | Self::CutPairOneWay | Self::Deaf => match (self, target) {
                (_, Target::Manager) => Decision::Succeeded,
                (Self::Deaf, Target::Backup) => Decision::Unheard,
                (_, Target::Backup) => Decision::Kept,
            },
            _ => Decision::Node,
        }
    }
}

impl fmt::Display for DetectFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Self::ALL[*self as usize].1)
    }
}

/// A fault that is not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such fault; there are: {}", DetectFault::ALL.map(|(_, name)| name).join(", "))]
pub struct UnknownFault;

impl FromStr for DetectFault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let named = Self::ALL.into_iter().find(|(_, name)| *name == text);
        named.map(|(fault, _)| fault).ok_or(UnknownFault)
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

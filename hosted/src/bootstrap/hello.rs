//! The first message between two nodes, and the reasons for which it is refused.

use serde::{Deserialize, Serialize};

use super::network::DirectoryFault;
use crate::cluster::FabricKind;
use crate::explain::{Code, Explain};

/// The version of everything that two nodes exchange, memory layout included.
pub const VERSION: u32 = 14;

/// A node's identity and its configuration, as far as both sides must agree on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`] of the sender.
    pub version: u32,
    /// The cluster's name.
    pub cluster: String,
    /// The instance of the cluster: the number drawn when it started. 0 where nodes share no
    /// directory and cannot know it, and in older versions, which are refused for their version.
    #[serde(default)]
    pub instance: u64,
    /// The digest of its memory layout, and of how that is understood.
    pub layout: u64,
    /// The digest of its DIR net configuration. Older versions do not send it, and are refused for
    /// their version.
    #[serde(default)]
    pub dirnet: u64,
    /// The digest of its recovery script; 0 for none.
    #[serde(default)]
    pub script: u64,
    /// The fabric that carries its messages.
    pub fabric: FabricKind,
    /// The sender's rank.
    pub rank: u16,
}

/// Why two nodes do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// They speak different versions.
    #[error("a node speaks version {theirs}, this one {ours}")]
    Version {
        /// Of the node that refuses.
        ours: u32,
        /// Of the other.
        theirs: u32,
    },
    /// They belong to different clusters.
    #[error("a node of cluster {theirs:?} came to cluster {ours:?}")]
    Cluster {
        /// Of the node that refuses.
        ours: String,
        /// Of the other.
        theirs: String,
    },
    /// They belong to different clusters of one name.
    #[error(
        "a node of another cluster of this name came: instance {theirs:016x} there, {ours:016x} \
         here"
    )]
    Instance {
        /// Of the node that refuses.
        ours: u64,
        /// Of the other.
        theirs: u64,
    },
    /// Their cluster files give different memory layouts, or lengths of messages in one.
    #[error("memory layouts differ: {theirs:016x} there, {ours:016x} here")]
    Layout {
        /// Of the node that refuses.
        ours: u64,
        /// Of the other.
        theirs: u64,
    },
    /// Their cluster files differ in the DIR net: timing, parts, `min_alive`, `reset`.
    #[error("timing or parts in the DIR net differ: {theirs:016x} there, {ours:016x} here")]
    DirNet {
        /// Of the node that refuses.
        ours: u64,
        /// Of the other.
        theirs: u64,
    },
    /// Their recovery scripts differ, or only one of them has one.
    #[error("recovery scripts differ: {theirs:016x} there, {ours:016x} here")]
    Script {
        /// Of the node that refuses; 0 for none.
        ours: u64,
        /// Of the other.
        theirs: u64,
    },
    /// Their messages are carried by different fabrics.
    #[error("a node over {theirs} came to a cluster over {ours}")]
    Fabric {
        /// Of the node that refuses.
        ours: FabricKind,
        /// Of the other.
        theirs: FabricKind,
    },
    /// The rank is not one of the cluster's, or the refusing node's own.
    #[error("rank {rank} is taken or not one of the cluster's")]
    Rank {
        /// As claimed.
        rank: u16,
    },
    /// A call for one node has reached another.
    #[error("a call for node {meant} has reached node {found}")]
    Addressee {
        /// The rank that was called.
        meant: u16,
        /// The rank that was reached.
        found: u16,
    },
    /// The other runs as another user.
    #[error("a process of another user came to the cluster")]
    User,
    /// The other does not have this node's key.
    #[error("the keys of two nodes differ")]
    Key,
    /// The greeting was heard before, or was not made now.
    #[error("a greeting was replayed or is too old")]
    Replayed,
    /// The other exceeded a deadline.
    #[error("the other side took too long")]
    Stalled,
    /// The other is not a node, or is one of an incompatible build.
    #[error("the other side does not speak Weft's protocol")]
    NotWeft,
    /// The directory of addresses cannot be used; no other node is refused by it.
    #[error("{0}")]
    Directory(DirectoryFault),
}

impl Hello {
    /// Checks whether `theirs` may take part, in a cluster of so many `nodes`.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, theirs: &Self, nodes: u16) -> Result<(), Refusal> {
        if theirs.version != self.version {
            return Err(Refusal::Version { ours: self.version, theirs: theirs.version });
        }
        if theirs.cluster != self.cluster {
            let (ours, theirs) = (self.cluster.clone(), theirs.cluster.clone());
            return Err(Refusal::Cluster { ours, theirs });
        }
        if theirs.instance != self.instance {
            return Err(Refusal::Instance { ours: self.instance, theirs: theirs.instance });
        }
        if theirs.layout != self.layout {
            return Err(Refusal::Layout { ours: self.layout, theirs: theirs.layout });
        }
        if theirs.dirnet != self.dirnet {
            return Err(Refusal::DirNet { ours: self.dirnet, theirs: theirs.dirnet });
        }
        if theirs.script != self.script {
            return Err(Refusal::Script { ours: self.script, theirs: theirs.script });
        }
        if theirs.fabric != self.fabric {
            return Err(Refusal::Fabric { ours: self.fabric, theirs: theirs.fabric });
        }
        if theirs.rank >= nodes || theirs.rank == self.rank {
            return Err(Refusal::Rank { rank: theirs.rank });
        }
        Ok(())
    }
}

impl Explain for Refusal {
    fn code(&self) -> Code {
        match self {
            Self::Version { .. }
            | Self::Layout { .. }
            | Self::DirNet { .. }
            | Self::Cluster { .. }
            | Self::Instance { .. }
            | Self::Script { .. }
            | Self::Fabric { .. }
            | Self::Addressee { .. }
            | Self::NotWeft => Code::Protocol,
            Self::Rank { .. } => Code::NodeOutOfRange,
            Self::User | Self::Key | Self::Replayed => Code::Permission,
            Self::Stalled => Code::Timeout,
            Self::Directory(fault) => fault.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Version { .. } => "run the same build of weft for every node",
            Self::Cluster { .. } => "start the node with the file of the cluster it belongs to",
            Self::Instance { .. } => {
                "end the node that was left over when its cluster's directory was removed"
            }
            Self::Layout { .. } => "start every node with the same cluster file",
            Self::DirNet { .. } => "start every node with the same [dirnet] in its cluster file",
            Self::Script { .. } => "start every node with the same recovery.script",
            Self::Fabric { .. } => "start every node with the same `--fabric`",
            Self::Rank { .. } => "start each rank below `nodes` exactly once",
            Self::Addressee { .. } => {
                "give each node its own address, in network.addresses in the order of ranks, and \
                 see that nothing forwards the port of one node to another"
            }
            Self::User => "run all nodes of a cluster as one user",
            Self::Key => {
                "give every node the same key file; one with --insecure meets only others like it"
            }
            Self::Replayed => {
                "if this goes on, recorded traffic is being replayed: find out which host calls"
            }
            Self::Stalled => "check that the host is up and that no firewall drops its packets",
            Self::Directory(fault) => return fault.cure(),
            Self::NotWeft => "check that the address and the port are those of a weft node",
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(rank: u16) -> Hello {
        Hello {
            version: VERSION,
            cluster: "weft".to_owned(),
            instance: 3,
            layout: 7,
            dirnet: 5,
            script: 8,
            fabric: FabricKind::Shm,
            rank,
        }
    }

    #[test]
    fn equals_with_another_rank_belong_together() {
        assert_eq!(hello(0).check(&hello(3), 4), Ok(()));
    }

    #[test]
    fn each_difference_is_refused_by_its_name() {
        let ours = hello(0);
        let refused = |theirs: Hello| ours.check(&theirs, 4).unwrap_err();
        let version = refused(Hello { version: VERSION + 1, ..hello(1) });
        assert_eq!(version, Refusal::Version { ours: VERSION, theirs: VERSION + 1 });
        let other = refused(Hello { cluster: "loom".to_owned(), ..hello(1) });
        assert!(matches!(other, Refusal::Cluster { .. }));
        let instance = refused(Hello { instance: 4, ..hello(1) });
        assert_eq!(instance, Refusal::Instance { ours: 3, theirs: 4 });
        let layout = refused(Hello { layout: 8, ..hello(1) });
        assert_eq!(layout, Refusal::Layout { ours: 7, theirs: 8 });
        let dirnet = refused(Hello { dirnet: 6, ..hello(1) });
        assert_eq!(dirnet, Refusal::DirNet { ours: 5, theirs: 6 });
        let script = refused(Hello { script: 0, ..hello(1) });
        assert_eq!(script, Refusal::Script { ours: 8, theirs: 0 });
        let fabric = refused(Hello { fabric: FabricKind::Verbs, ..hello(1) });
        let (ours, theirs) = (FabricKind::Shm, FabricKind::Verbs);
        assert_eq!(fabric, Refusal::Fabric { ours, theirs });
        assert_eq!(refused(hello(4)), Refusal::Rank { rank: 4 });
        assert_eq!(refused(hello(0)), Refusal::Rank { rank: 0 });
    }
}

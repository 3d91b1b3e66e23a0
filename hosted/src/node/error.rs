//! Why a node ends, or does not start.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use weft_core::neb::EpochError;
use weft_core::recovery::Rejected;

use super::fabric::VerbsError;
use super::kept::path_of;
use crate::bootstrap::{LocalError, NetworkError};
use crate::explain::{Code, Explain};
use crate::packet::PacketError;
use crate::process::{ProcessError, how_ended};
use crate::runtime_dir::RuntimeDirError;
use crate::shm::{BellError, SegmentError};

/// Why a node ends, or does not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum NodeError {
    /// The cluster has no such rank.
    OutOfRange {
        /// The requested rank.
        rank: u16,
        /// How many nodes there are.
        nodes: usize,
    },
    /// Another process runs this node of the cluster.
    RankTaken {
        /// The node.
        rank: u16,
    },
    /// No memory layout follows from the cluster file.
    Plan(String),
    /// The boot has no numbers for its broadcasts.
    Epoch(EpochError),
    /// The node's memory could not be made or mapped.
    Memory(SegmentError),
    /// A sleeping loop could not be woken, or could not sleep.
    Bell(BellError),
    /// The control socket or the link failed.
    Packet(PacketError),
    /// The node cannot be met by its peers.
    Bootstrap(LocalError),
    /// The node cannot be met over the network.
    Network(NetworkError),
    /// Shared memory was chosen for nodes on several hosts.
    NotShared,
    /// Verbs cannot be used.
    Verbs(VerbsError),
    /// The device no longer reaches this node itself.
    OwnPair,
    /// A process could not be started or watched.
    Process(ProcessError),
    /// The cluster's directory cannot be used.
    Directory(RuntimeDirError),
    /// The note of the last incarnation cannot be read or written.
    Incarnation {
        /// Its path.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The note of the last term, or the saved database, cannot be read or written.
    Kept {
        /// Its path.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The database was saved by another version of Weft.
    Format {
        /// Its path.
        path: PathBuf,
    },
    /// The recovery script's image is refused.
    Image(Rejected),
    /// The cluster file names a recovery script, and holds no image of it.
    NotTranslated {
        /// The script.
        script: PathBuf,
    },
    /// The key to sign broadcasts with could not be made.
    Signing(io::Error),
    /// Signals could not be subscribed to.
    Signals(io::Error),
    /// The program of the node has failed too often, and the node ends with it.
    Program {
        /// The program.
        program: String,
        /// How its last incarnation ended.
        last: Option<ExitStatus>,
    },
    /// The other end of the link broke its protocol.
    Link(&'static str),
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { rank, nodes } => {
                write!(f, "there is no node {rank}: the cluster has nodes 0 to {}", nodes - 1)
            }
            Self::RankTaken { rank } => write!(f, "node {rank} of the cluster runs already"),
            Self::Plan(reason) => write!(f, "no memory layout: {reason}"),
            Self::Epoch(error) => error.fmt(f),
            Self::Memory(error) => write!(f, "memory of the node: {error}"),
            Self::Bell(error) => write!(f, "waiting: {error}"),
            Self::Packet(error) => write!(f, "socket of the node: {error}"),
            Self::Bootstrap(error) => write!(f, "meeting the peers: {error}"),
            Self::Network(error) => error.fmt(f),
            Self::NotShared => f.write_str("nodes on several hosts share no memory"),
            Self::OwnPair => f.write_str("the device does not reach this node itself any more"),
            Self::Verbs(error) => error.fmt(f),
            Self::Process(error) => write!(f, "component process: {error}"),
            Self::Directory(error) => error.fmt(f),
            Self::Incarnation { path, error } => {
                write!(f, "the note of the last incarnation, {}: {error}", path.display())
            }
            Self::Kept { path, error } => {
                write!(f, "the notes of earlier incarnations, {}: {error}", path.display())
            }
            Self::Format { path } => {
                write!(f, "another version of Weft saved the database {}", path.display())
            }
            Self::Image(rejected) => write!(f, "recovery.image: {rejected}"),
            Self::NotTranslated { script } => {
                write!(f, "the recovery script {} is not translated", script.display())
            }
            Self::Signing(error) => write!(f, "the key to sign broadcasts with: {error}"),
            Self::Signals(error) => write!(f, "listening for signals: {error}"),
            Self::Program { program, last: Some(status) } => {
                write!(f, "the program {program} failed too often: it last {}", how_ended(*status))
            }
            Self::Program { program, last: None } => {
                write!(f, "the program {program} could not be started")
            }
            Self::Link(what) => write!(f, "supervisor and component disagree: {what}"),
        }
    }
}

impl std::error::Error for NodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::OutOfRange { .. }
            | Self::RankTaken { .. }
            | Self::Plan(_)
            | Self::Epoch(_)
            | Self::Link(_)
            | Self::NotShared
            | Self::OwnPair
            | Self::Program { .. }
            | Self::NotTranslated { .. }
            | Self::Format { .. } => None,
            Self::Image(rejected) => Some(rejected),
            Self::Memory(error) => Some(error),
            Self::Bell(error) => Some(error),
            Self::Packet(error) => Some(error),
            Self::Bootstrap(error) => Some(error),
            Self::Network(error) => Some(error),
            Self::Verbs(error) => Some(error),
            Self::Process(error) => Some(error),
            Self::Directory(error) => Some(error),
            Self::Incarnation { error, .. }
            | Self::Kept { error, .. }
            | Self::Signing(error)
            | Self::Signals(error) => Some(error),
        }
    }
}

impl Explain for NodeError {
    fn code(&self) -> Code {
        match self {
            Self::OutOfRange { .. } | Self::RankTaken { .. } => Code::NodeOutOfRange,
            Self::Plan(_) | Self::NotTranslated { .. } => Code::ClusterFile,
            Self::Epoch(_) => Code::Standing,
            Self::Image(_) => Code::Image,
            Self::Memory(SegmentError::Count { .. } | SegmentError::WrongSize { .. }) => {
                Code::Protocol
            }
            Self::Memory(_) => Code::Memory,
            Self::Network(error) => error.code(),
            Self::NotShared => Code::ClusterFile,
            Self::OwnPair => Code::Rdma,
            Self::Verbs(error) => error.code(),
            Self::Directory(error) => error.code(),
            Self::Incarnation { .. }
            | Self::Kept { .. }
            | Self::Format { .. }
            | Self::Bootstrap(_) => Code::RuntimeDir,
            Self::Bell(_) | Self::Packet(_) | Self::Process(_) | Self::Signals(_) => Code::Internal,
            Self::Signing(_) => Code::Memory,
            Self::Program { .. } => Code::ComponentLost,
            Self::Link(_) => Code::Protocol,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::OutOfRange { nodes, .. } => format!("use a rank from 0 to {}", nodes - 1),
            Self::RankTaken { .. } => "start each rank below `nodes` exactly once".to_owned(),
            Self::Epoch(_) => "end the cluster with `weft down`, and start another one".to_owned(),
            Self::Plan(_) => "make the sizes in the cluster file smaller".to_owned(),
            Self::Image(_) => {
                "take recovery.image out of the cluster file: `weft up` and `weft node` translate \
                 recovery.script"
                    .to_owned()
            }
            Self::NotTranslated { .. } => {
                "start the cluster with `weft up`, or its nodes with `weft node`".to_owned()
            }
            Self::Memory(SegmentError::Count { .. } | SegmentError::WrongSize { .. }) => {
                "build the program against the release of weft that runs the cluster: this one \
                 lays memory out in another way"
                    .to_owned()
            }
            Self::Memory(_) => {
                "free memory, or lower `nodes`, `mailbox.slots` or `mailbox.message_len`; \
                 `weft doctor` shows the limits"
                    .to_owned()
            }
            Self::Directory(error) => error.cure(),
            Self::Network(error) => error.cure(),
            Self::NotShared => "add `--fabric verbs`, or leave network.addresses empty".to_owned(),
            Self::OwnPair => {
                "see that the device's port is up; the next incarnation tries again".to_owned()
            }
            Self::Verbs(error) => error.cure(),
            // A forgotten term could be claimed again.
            Self::Kept { error, .. } if error.kind() == ErrorKind::InvalidData => {
                "end the cluster and start it again, so that all nodes forget all terms together; \
                 until then the others go on without this one"
                    .to_owned()
            }
            Self::Incarnation { path, error } | Self::Kept { path, error } => {
                mend(path, error.kind())
            }
            Self::Format { path } => format!(
                "run the version that saved it; or move {} away, and isolate again the nodes that \
                 were isolated",
                path.display()
            ),
            Self::Bootstrap(_) => {
                "see that the cluster's directory is writable, and that no other process runs \
                 this rank"
                    .to_owned()
            }
            Self::Process(error) => error.cure(),
            Self::Bell(_) | Self::Packet(_) | Self::Signals(_) => {
                "`weft doctor` shows which kernel feature is missing".to_owned()
            }
            Self::Signing(_) => {
                "see that there is memory left, and that /proc is mounted".to_owned()
            }
            Self::Program { .. } => {
                "see its output above; `restart` in the cluster file says how often it is started \
                 again"
                    .to_owned()
            }
            Self::Link(_) => "run one build of weft".to_owned(),
        }
    }
}

/// How to repair a file that cannot be read or written.
fn mend(path: &Path, kind: ErrorKind) -> String {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("make room where {} lies; the node tries again", path.display())
        }
        ErrorKind::FileTooLarge => {
            "raise the limit on the size of files: `ulimit -f unlimited`".to_owned()
        }
        ErrorKind::InvalidInput => {
            format!("remove {}, which is not what a node has made", path.display())
        }
        _ => format!(
            "make {} a file that this user can read and write; the node tries again",
            path.display()
        ),
    }
}

impl NodeError {
    /// The error for `file`, a note of earlier incarnations that cannot be read or written.
    pub(super) fn kept(file: &File, error: io::Error) -> Self {
        Self::Kept { path: path_of(file), error }
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident),* $(,)?) => {$(
        impl From<$source> for NodeError {
            fn from(error: $source) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from! {
    EpochError => Epoch,
    SegmentError => Memory,
    BellError => Bell,
    PacketError => Packet,
    LocalError => Bootstrap,
    NetworkError => Network,
    VerbsError => Verbs,
    ProcessError => Process,
    RuntimeDirError => Directory,
}

//! Why a client did not get what it asked for.

use std::fmt;

use crate::cluster::ClusterError;
use crate::explain::{Code, Explain};
use crate::node::control::Refused;
use crate::packet::PacketError;
use crate::runtime_dir::{FindError, RuntimeDirError};

/// Why a client did not get what it asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no such cluster, or it is dead.
    Find(FindError),
    /// The directory of running clusters.
    Directory(RuntimeDirError),
    /// The running cluster's copy of its file.
    Cluster(ClusterError),
    /// The cluster has no such node.
    OutOfRange {
        /// As asked.
        rank: u16,
        /// How many there are.
        nodes: usize,
    },
    /// The node's supervisor does not answer.
    Unreachable {
        /// Which node.
        rank: u16,
        /// What the socket said.
        source: PacketError,
    },
    /// The node answered no.
    Refused {
        /// Which node.
        rank: u16,
        /// Why.
        reason: Refused,
    },
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Find(error) => error.fmt(f),
            Self::Directory(error) => error.fmt(f),
            Self::Cluster(error) => error.fmt(f),
            Self::OutOfRange { rank, nodes } => {
                write!(f, "there is no node {rank}: the cluster has nodes 0 to {}", nodes - 1)
            }
            Self::Unreachable { rank, source: PacketError::TimedOut { .. } } => {
                write!(f, "node {rank} did not answer in time; what was asked may still be done")
            }
            Self::Unreachable { rank, source } => write!(f, "node {rank}: {source}"),
            Self::Refused { rank, reason } => match reason {
                Refused::ComponentLost => {
                    write!(f, "the component of node {rank} ended while it worked on this")
                }
                Refused::NoComponent => write!(f, "node {rank} has no component at the moment"),
                Refused::GivenUp => {
                    write!(f, "the component of node {rank} failed too often and was given up")
                }
                Refused::Busy => write!(f, "node {rank} has too many clients or requests"),
                Refused::TimedOut => write!(f, "node {rank} was not ready in time"),
                Refused::OutOfRange { rank, nodes } => {
                    write!(f, "there is no node {rank}: the cluster has nodes 0 to {}", nodes - 1)
                }
                Refused::NoTask { name, tasks } => {
                    write!(f, "node {rank} has no task {name:?}")?;
                    match &tasks[..] {
                        [] => f.write_str(", nor any other"),
                        tasks => write!(f, ": its tasks are {}", tasks.join(", ")),
                    }
                }
                Refused::NotStarted { name, why } => {
                    write!(f, "task {name} of node {rank} cannot be started: {why}")
                }
                Refused::NotRunning { name, state } => {
                    write!(f, "task {name} of node {rank} does not run: it is {}", state.as_str())
                }
                Refused::NotManager => write!(f, "node {rank} is not the manager"),
                Refused::Unfit { node } => {
                    write!(f, "node {rank} cannot do that with node {node}, as it stands")
                }
                Refused::Isolated => write!(f, "node {rank} is isolated"),
                Refused::LeftBroadcasts => {
                    write!(
                        f,
                        "node {rank} was removed or began anew, and takes no part in broadcasts"
                    )
                }
                Refused::OtherReceiver { origin, process } => write!(
                    f,
                    "process {process} receives what node {origin} broadcasts at node {rank}"
                ),
                Refused::OtherSender => {
                    write!(f, "another client is in the midst of what it broadcasts at node {rank}")
                }
                Refused::WindowFull => write!(
                    f,
                    "the window of node {rank} is full: some node has not taken what it broadcast \
                     before"
                ),
                Refused::TooFew { reached } => write!(
                    f,
                    "of those who take part in broadcasts, node {rank} reaches {reached}: nobody \
                     can be told another story"
                ),
                Refused::Forgotten { origin, seq } => {
                    write!(f, "message {seq} of node {origin} is gone at node {rank}")
                }
                Refused::Malformed(what) => write!(f, "node {rank}: {what}"),
            },
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Find(error) => Some(error),
            Self::Directory(error) => Some(error),
            Self::Cluster(error) => Some(error),
            Self::Unreachable { source, .. } => Some(source),
            Self::OutOfRange { .. } | Self::Refused { .. } => None,
        }
    }
}

impl Explain for ClientError {
    fn code(&self) -> Code {
        match self {
            Self::Find(error) => error.code(),
            Self::Directory(error) => error.code(),
            Self::Cluster(error) => error.code(),
            Self::OutOfRange { .. } => Code::NodeOutOfRange,
            Self::Unreachable { source: PacketError::TimedOut { .. }, .. } => Code::Timeout,
            Self::Unreachable { source: PacketError::TooLong { .. }, .. } => Code::MessageTooLong,
            Self::Unreachable { .. } => Code::NodeUnreachable,
            Self::Refused { reason, .. } => match reason {
                Refused::ComponentLost | Refused::NoComponent | Refused::GivenUp => {
                    Code::ComponentLost
                }
                Refused::Busy | Refused::OtherReceiver { .. } => Code::Busy,
                Refused::TimedOut | Refused::OtherSender => Code::Timeout,
                Refused::WindowFull => Code::WindowFull,
                Refused::TooFew { .. } => Code::NodeUnreachable,
                Refused::Forgotten { .. } => Code::ComponentLost,
                Refused::OutOfRange { .. } => Code::NodeOutOfRange,
                Refused::NoTask { .. } => Code::TaskUnknown,
                Refused::NotStarted { .. } | Refused::NotRunning { .. } => Code::TaskNotRunning,
                Refused::NotManager | Refused::Unfit { .. } | Refused::LeftBroadcasts => {
                    Code::Standing
                }
                Refused::Isolated => Code::Isolated,
                Refused::Malformed(_) => Code::Protocol,
            },
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Find(error) => error.cure(),
            Self::Directory(error) => error.cure(),
            Self::Cluster(error) => error.cure(),
            Self::OutOfRange { nodes, .. } => format!("use a rank from 0 to {}", nodes - 1),
            Self::Unreachable { source: PacketError::TooLong { .. }, .. } => {
                "send fewer or shorter messages in one request".to_owned()
            }
            Self::Unreachable { .. } => "see which nodes live with `weft status`".to_owned(),
            Self::Refused { rank, reason } => match reason {
                Refused::ComponentLost => {
                    "look at what arrived, then try again: the next component is being started"
                        .to_owned()
                }
                Refused::NoComponent => {
                    format!("wait until `weft status` shows one, or see why not: `--why {rank}`")
                }
                Refused::GivenUp => {
                    format!(
                        "see why with `weft status --why {rank}` and mend that: after \
                         `restart.within_s` it is tried again, unless `restart.max` is 0"
                    )
                }
                Refused::Busy => "wait for some of them to end, and try again".to_owned(),
                Refused::TimedOut => "see what is missing with `weft status`".to_owned(),
                Refused::OutOfRange { nodes, .. } => {
                    format!("use a rank from 0 to {}", nodes - 1)
                }
                Refused::NoTask { .. } => {
                    "`weft status` lists the tasks of every node; the cluster file names them"
                        .to_owned()
                }
                Refused::NotStarted { name, .. } => format!(
                    "mend the program, then `weft task start {name} --node {rank}`; another one \
                     takes another cluster file"
                ),
                Refused::NotRunning { name, .. } => {
                    format!("start it with `weft task start {name} --node {rank}`")
                }
                Refused::NotManager | Refused::Unfit { .. } => {
                    "see with `weft status` who is the manager and who is isolated".to_owned()
                }
                Refused::Isolated => format!(
                    "see why with `weft status --why {rank}`, and let it come back with `weft \
                     release {rank}`"
                ),
                Refused::LeftBroadcasts => {
                    "broadcast at another node, put and get at this one, or start the cluster anew"
                        .to_owned()
                }
                Refused::OtherReceiver { .. } => {
                    "wait until it has ended, end it, or receive from another node, with `--origin \
                     RANK`"
                        .to_owned()
                }
                Refused::OtherSender => {
                    "wait until it has ended, or end it; `--timeout` says how long to wait for it"
                        .to_owned()
                }
                Refused::WindowFull => format!(
                    "receive at every other node, with `weft bcast --neb --receive --origin {rank} \
                     --node RANK`"
                ),
                Refused::TooFew { .. } => {
                    "see with `weft status` who runs and who has left the broadcasts; it takes two \
                     others"
                        .to_owned()
                }
                Refused::Forgotten { .. } => "let it be broadcast again".to_owned(),
                Refused::Malformed(_) => "run one build of weft".to_owned(),
            },
        }
    }
}

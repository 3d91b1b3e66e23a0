//! Why a client's request failed.

use std::fmt;

use super::tensor;
use crate::cluster::{ClusterError, ClusterName};
use crate::explain::{Code, Explain, nodes};
use crate::node::control::{GroupRefused, Refused};
use crate::packet::PacketError;
use crate::runtime_dir::{FindError, RuntimeDirError};
use crate::shm::SegmentError;

/// Why a client's request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no such cluster, or it is dead.
    #[error("{0}")]
    Find(#[source] FindError),
    /// The directory of running clusters cannot be used.
    #[error("{0}")]
    Directory(#[source] RuntimeDirError),
    /// The running cluster's copy of its file cannot be read.
    #[error("{0}")]
    Cluster(#[source] ClusterError),
    /// The cluster that was watched has ended, and another one of its name runs.
    #[error("the cluster {name} has ended, and another one of its name runs")]
    Replaced {
        /// Their name.
        name: ClusterName,
    },
    /// The cluster has no such node.
    #[error("there is no node {rank}: the cluster has nodes 0 to {}", .nodes - 1)]
    OutOfRange {
        /// The requested rank.
        rank: u16,
        /// The number of nodes.
        nodes: usize,
    },
    /// The node's supervisor does not answer.
    #[error(fmt = fmt_unreachable)]
    Unreachable {
        /// The node.
        rank: u16,
        /// The socket's error.
        source: PacketError,
    },
    /// A [`Pipeline`](super::Pipeline) has as many requests under way as there is room for.
    #[error("{under_way} requests to node {rank} are under way, and there is room for no more")]
    Full {
        /// The node.
        rank: u16,
        /// How many are under way.
        under_way: usize,
    },
    /// Memory for a message cannot be made, or that of the node cannot be mapped.
    #[error("memory for messages: {0}")]
    Memory(#[source] SegmentError),
    /// The node refused the request.
    #[error(fmt = fmt_refused)]
    Refused {
        /// The node.
        rank: u16,
        /// The reason.
        reason: Refused,
    },
}

fn fmt_unreachable(rank: &u16, source: &PacketError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match source {
        PacketError::TimedOut { .. } => {
            write!(f, "node {rank} did not answer in time; what was asked may still be done")
        }
        source => write!(f, "node {rank}: {source}"),
    }
}

fn fmt_refused(rank: &u16, reason: &Refused, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match reason {
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
        Refused::TaskNameInUse { name } => {
            write!(f, "node {rank}, or its cluster file, already has a task {name}")
        }
        Refused::GuestsFull { max } => {
            write!(f, "node {rank} already watches {max} programs of `weft guard`")
        }
        Refused::NotStarted { name, why } => {
            write!(f, "task {name} of node {rank} cannot be started: {why}")
        }
        Refused::NotRunning { name, state } => {
            write!(f, "task {name} of node {rank} does not run: it is {}", state.as_str())
        }
        Refused::NotManager => write!(f, "node {rank} is not the manager"),
        Refused::Script(why) => write!(f, "{why}"),
        Refused::Vote(why) => write!(f, "node {rank}: {why}"),
        Refused::Unfit { node } => {
            let why = "it does not fit the state of that node, which may just have changed";
            write!(f, "node {rank} refuses this order about node {node}: {why}")
        }
        Refused::Isolated => write!(f, "node {rank} is isolated"),
        Refused::LeftBroadcasts => {
            write!(f, "node {rank} has lost its broadcast memory, and takes no part in broadcasts")
        }
        Refused::Group(why) => fmt_group(*rank, why, f),
        Refused::Tensor(why) => tensor::fmt_refused(*rank, why, f),
        Refused::OtherReceiver { origin, process } => {
            write!(f, "process {process} already receives from node {origin} at node {rank}")
        }
        Refused::Owned { program } => {
            write!(f, "{program} takes and broadcasts at node {rank} by itself")
        }
        Refused::OtherSender => {
            write!(f, "another client is in the middle of a broadcast at node {rank}")
        }
        Refused::WindowFull => write!(
            f,
            "the window of node {rank} is full: some node has not received its earlier \
             broadcasts"
        ),
        Refused::TooFew { reached } => write!(
            f,
            "node {rank} reaches {reached} of the nodes that take part in broadcasts, and \
             it takes two to send them different messages"
        ),
        Refused::Forgotten { origin, seq } => {
            write!(f, "node {rank} no longer has message {seq} of node {origin}")
        }
        Refused::Malformed(what) => write!(f, "node {rank}: {what}"),
    }
}

fn fmt_group(rank: u16, why: &GroupRefused, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match why {
        GroupRefused::Unknown { groups } => match &groups[..] {
            [] => f.write_str("the cluster file has no groups"),
            groups => {
                let groups = groups.join(", ");
                write!(f, "the cluster file has no such group: its groups are {groups}")
            }
        },
        GroupRefused::NotAMember { rank, members } => {
            write!(f, "node {rank} is not a member of the group, which has {}", nodes(members))
        }
        GroupRefused::Opening => {
            write!(f, "not all members of the group have joined node {rank} in time")
        }
        GroupRefused::WindowFull { hindmost: Some(node) } => {
            write!(
                f,
                "the window of node {rank} is full: node {node} has not received what fills it"
            )
        }
        GroupRefused::WindowFull { hindmost: None } => {
            write!(f, "the window of node {rank} is full")
        }
        GroupRefused::Waiting => {
            write!(
                f,
                "not all members of the group have entered the barrier with node {rank} in time"
            )
        }
        GroupRefused::TooLong { limit } => {
            write!(f, "the message is longer than the window, {limit} bytes")
        }
        GroupRefused::NotSealed(why) => write!(f, "this is not the memory of a message: {why}"),
    }
}

impl GroupRefused {
    const fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } | Self::NotAMember { .. } => Code::Usage,
            Self::Opening | Self::Waiting => Code::Timeout,
            Self::WindowFull { .. } => Code::WindowFull,
            Self::TooLong { .. } => Code::MessageTooLong,
            Self::NotSealed(_) => Code::Protocol,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Unknown { groups } => {
                let make = "`group.count = 1` in the cluster file makes \"all\", and `[[groups]]` \
                            names others";
                if groups.is_empty() {
                    make.to_owned()
                } else {
                    format!("name one of them; {make}")
                }
            }
            Self::NotAMember { .. } => "name one of the members".to_owned(),
            Self::Opening => "run `weft status` to see which nodes run".to_owned(),
            Self::WindowFull { .. } => {
                "receive at every other member, with `weft bcast --tree --receive --node RANK`"
                    .to_owned()
            }
            Self::Waiting => {
                "run `weft group barrier` for every member; an entry stands, so try again"
                    .to_owned()
            }
            Self::TooLong { .. } => "split it, or raise group.blocks or group.block_len".to_owned(),
            Self::NotSealed(_) => {
                "send memory of `SealedDraft::finish`, and run the same build of weft everywhere"
                    .to_owned()
            }
        }
    }
}

impl Explain for ClientError {
    fn code(&self) -> Code {
        match self {
            Self::Find(error) => error.code(),
            Self::Directory(error) => error.code(),
            Self::Cluster(error) => error.code(),
            Self::Replaced { .. } => Code::ClusterNotRunning,
            Self::OutOfRange { .. } => Code::NodeOutOfRange,
            Self::Unreachable { source: PacketError::TimedOut { .. }, .. } => Code::Timeout,
            Self::Unreachable { source: PacketError::TooLong { .. }, .. } => Code::MessageTooLong,
            Self::Unreachable { .. } => Code::NodeUnreachable,
            Self::Full { .. } => Code::Busy,
            Self::Memory(_) => Code::Memory,
            Self::Refused { reason, .. } => match reason {
                Refused::ComponentLost | Refused::NoComponent | Refused::GivenUp => {
                    Code::ComponentLost
                }
                Refused::Busy | Refused::OtherReceiver { .. } | Refused::GuestsFull { .. } => {
                    Code::Busy
                }
                Refused::TaskNameInUse { .. } => Code::NameInUse,
                Refused::Owned { .. } => Code::Owned,
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
                Refused::Script(why) => why.code(),
                Refused::Vote(why) => why.code(),
                Refused::Group(why) => why.code(),
                Refused::Tensor(why) => tensor::code(why),
                Refused::Malformed(_) => Code::Protocol,
            },
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Find(error) => error.cure(),
            Self::Directory(error) => error.cure(),
            Self::Cluster(error) => error.cure(),
            Self::Replaced { .. } => {
                "watch again, which begins with the view of that one".to_owned()
            }
            Self::OutOfRange { nodes, .. } => format!("use a rank from 0 to {}", nodes - 1),
            Self::Unreachable { source: PacketError::TooLong { .. }, .. } => {
                "send fewer or shorter messages in one request".to_owned()
            }
            Self::Unreachable { .. } => "run `weft status` to see which nodes run".to_owned(),
            Self::Full { .. } => "take an answer first, then ask again".to_owned(),
            Self::Memory(_) => {
                "free memory, or raise the limit of this process or container".to_owned()
            }
            Self::Refused { rank, reason } => match reason {
                Refused::ComponentLost => {
                    "check which messages arrived, then try again: the next component is starting"
                        .to_owned()
                }
                Refused::NoComponent => {
                    format!(
                        "wait until `weft status` shows one; `weft status --why {rank}` shows what \
                         is wrong"
                    )
                }
                Refused::GivenUp => {
                    format!(
                        "run `weft status --why {rank}` to see why and fix that; the node tries \
                         again after `restart.within_s`, unless `restart.max` is 0"
                    )
                }
                Refused::Busy => "wait for some of them to end, and try again".to_owned(),
                Refused::TimedOut => "run `weft status` to see what is missing".to_owned(),
                Refused::OutOfRange { nodes, .. } => {
                    format!("use a rank from 0 to {}", nodes - 1)
                }
                Refused::NoTask { .. } => {
                    "`weft status` lists the tasks of every node; the cluster file names them"
                        .to_owned()
                }
                Refused::TaskNameInUse { .. } => {
                    "choose another name, or another node with `--node RANK`; `weft status` lists \
                     the tasks of every node"
                        .to_owned()
                }
                Refused::GuestsFull { .. } => {
                    "end one of them, or choose another node with `--node RANK`".to_owned()
                }
                Refused::NotStarted { name, .. } => format!(
                    "fix the program, then run `weft task start {name} --node {rank}`; another \
                     program needs another cluster file"
                ),
                Refused::NotRunning { name, .. } => {
                    format!("start it with `weft task start {name} --node {rank}`")
                }
                Refused::NotManager | Refused::Unfit { .. } => {
                    "run `weft status` to see which node is the manager and which are isolated"
                        .to_owned()
                }
                Refused::Script(why) => why.cure(),
                Refused::Vote(why) => why.cure(),
                Refused::Isolated => format!(
                    "run `weft status --why {rank}` to see why, and `weft release {rank}` to admit \
                     it again"
                ),
                Refused::LeftBroadcasts => {
                    "broadcast from another node, and put and get at this one; in a cluster with \
                     `neb.membership = \"decided\"` it would take part again"
                        .to_owned()
                }
                Refused::Group(why) => why.cure(),
                Refused::Tensor(why) => tensor::cure(why),
                Refused::OtherReceiver { .. } => {
                    "wait for it to end, end it, or receive from another node with `--origin \
                     RANK`"
                        .to_owned()
                }
                Refused::Owned { .. } => {
                    "have the program take it, or use a node of a cluster without `[component]`"
                        .to_owned()
                }
                Refused::OtherSender => {
                    "wait for it to end, or end it; `--timeout` sets how long to wait".to_owned()
                }
                Refused::WindowFull => format!(
                    "receive at every other node, with `weft bcast --neb --receive --origin {rank} \
                     --node RANK`"
                ),
                Refused::TooFew { .. } => {
                    "run `weft status` to see which nodes run and which have left the broadcasts"
                        .to_owned()
                }
                Refused::Forgotten { .. } => "broadcast it again".to_owned(),
                Refused::Malformed(_) => "run the same build of weft everywhere".to_owned(),
            },
        }
    }
}

//! Joining: a process takes over what its node hands to it, once.
//!
//! ```text
//!   supervisor ── spawn: WEFT_LINK, descriptor 3 ──▶ process
//!              ── Start {process, …}, memory ──────▶ join: claimed, checked, mapped
//!              ◀───────────────────────── Ready ──── the endpoint is made
//! ```
//!
//! The memory of a node is fenced by the death of the process that the node started, and of no
//! other. So a child of that process, by fork or by a shell in between, is refused, and what is
//! mapped is not handed down to children (`shm/pages.rs`).

use std::env;
use std::path::Path;
use std::process::id;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use weft_core::dirnet::ComponentIncarnation;
use weft_core::ids::{Incarnation, Peer};

use super::{Component, ComponentDirNet, Handed, Identity};
use crate::cluster::Cluster;
use crate::explain::{Code, Explain, advice};
use crate::node::NodeError;
use crate::node::link::{FromComponent, LINK_FD, LINK_VAR, LINK_VERSION, ToComponent};
use crate::packet::{PacketError, Socket};
use crate::process::{ProcessError, adopt_inherited};

/// How long the supervisor may take to send `Start`.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How a process becomes a member.
const START: &str = "weft run -- PROGRAM";

/// The process that has joined; 0 for none.
static JOINED: AtomicU32 = AtomicU32::new(0);

/// Why a process is not a member.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// No node has started this process.
    #[error("this process was not started by a node of a cluster")]
    NotAMember {
        /// How to start it.
        cure: &'static str,
    },
    /// This process has joined before.
    #[error("this process has joined its cluster before")]
    AlreadyJoined,
    /// This process was forked from a member.
    #[error("this process was forked from a member")]
    Forked,
    /// The node started another process, of which this one is a child.
    #[error("the node started process {started}, and this is process {}, a child of it", id())]
    OtherProcess {
        /// The process that the node started.
        started: u32,
    },
    /// The descriptor of the link is closed, or is not the link.
    #[error("descriptor {LINK_FD} is not the link to the node any more")]
    NoLink,
    /// The node runs another version of Weft.
    #[error("the node runs version {node} of Weft, and this program has version {LINK_VERSION}")]
    OtherVersion {
        /// The version of the node.
        node: String,
    },
    /// The DIR net did not admit it in time.
    #[error("not admitted to the cluster within {} ms", after.as_millis())]
    TimedOut {
        /// How long it waited.
        after: Duration,
    },
    /// The node ended it before the DIR net had admitted it.
    #[error("the node ended this member before it was admitted")]
    Stopped,
    /// The node's memory, fabric or link cannot be used.
    #[error("{0}")]
    Node(#[source] NodeError),
}

impl Explain for JoinError {
    fn code(&self) -> Code {
        match self {
            Self::NotAMember { .. }
            | Self::AlreadyJoined
            | Self::Forked
            | Self::OtherProcess { .. } => Code::Usage,
            Self::NoLink | Self::OtherVersion { .. } => Code::Protocol,
            Self::TimedOut { .. } => Code::Timeout,
            Self::Stopped => Code::Interrupted,
            Self::Node(error) => error.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::NotAMember { cure } => format!("start it with `{cure}`"),
            Self::AlreadyJoined => "keep the one `Member`, and pass it on".to_owned(),
            Self::Forked => "join in a process of its own, or exec in the child".to_owned(),
            Self::OtherProcess { .. } => {
                "start the program itself, or `exec` it at the end of the script".to_owned()
            }
            Self::NoLink => format!("leave descriptor {LINK_FD} open until the program has joined"),
            Self::OtherVersion { .. } => {
                "build the program against the version of Weft that runs the cluster".to_owned()
            }
            Self::TimedOut { .. } => "run `weft status` to see which nodes run".to_owned(),
            Self::Stopped => "start the cluster again".to_owned(),
            Self::Node(error) => error.cure(),
        }
    }
}

impl From<NodeError> for JoinError {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

impl From<PacketError> for JoinError {
    fn from(error: PacketError) -> Self {
        Self::Node(error.into())
    }
}

/// Claims the one membership that this process can have, and takes its link.
fn claim() -> Result<Socket, JoinError> {
    let me = id();
    match JOINED.load(Ordering::Relaxed) {
        0 => {}
        joined if joined == me => return Err(JoinError::AlreadyJoined),
        _ => return Err(JoinError::Forked),
    }
    let version = env::var_os(LINK_VAR).ok_or(JoinError::NotAMember { cure: START })?;
    if version != LINK_VERSION {
        return Err(JoinError::OtherVersion { node: version.to_string_lossy().into_owned() });
    }
    let claimed = JOINED.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed);
    claimed.map_err(|_| JoinError::AlreadyJoined)?;
    let link = adopt_inherited(LINK_FD).map_err(|error| match error {
        ProcessError::NotInherited { .. } => JoinError::NoLink,
        error => JoinError::Node(error.into()),
    })?;
    Socket::from_fd(link).map_err(|error| match error {
        PacketError::NotPacketSocket => JoinError::NoLink,
        error => error.into(),
    })
}

impl Component {
    /// Takes over what the node of this process hands to it, and reports that it is ready.
    ///
    /// # Errors
    /// [`JoinError`]; what concerns the node is reported to it.
    pub(crate) fn join() -> Result<Self, JoinError> {
        let socket = claim()?;
        let (message, fds) = socket.recv::<ToComponent>(START_TIMEOUT)?;
        let ToComponent::Start {
            process,
            owned,
            finished,
            rank,
            incarnation,
            boot,
            memory_since,
            removed,
            generation,
            tasks,
            cluster,
            places,
        } = message
        else {
            return Err(NodeError::Link("the first message was not a start").into());
        };
        if process != id() {
            return Err(JoinError::OtherProcess { started: process });
        }
        let cluster = Cluster::parse(&cluster, Path::new("link"))
            .map_err(|_| NodeError::Link("the cluster file does not parse"))?;
        if places.len() != cluster.nodes {
            return Err(NodeError::Link("positions of another number of origins").into());
        }
        let identity = Identity {
            me: Peer(rank),
            incarnation: Incarnation(incarnation),
            component: ComponentIncarnation { boot: Incarnation(boot), generation },
            memory_since: Incarnation(memory_since),
            removed: Incarnation(removed),
            tasks,
            owned,
            finished,
        };
        let speaking = socket.try_clone()?;
        let made = Self::new(socket, cluster, identity, Handed { fds, places });
        let ready = made.and_then(|mut component| {
            component.tell(&FromComponent::Ready)?;
            Ok(component)
        });
        ready.map_err(|error| {
            report(&speaking, &error);
            error.into()
        })
    }

    /// Enters the DIR net, once.
    pub(super) fn enter(&mut self, now_ns: u64) -> Result<(), NodeError> {
        let Some(entry) = self.entry.take() else { return Ok(()) };
        self.dirnet = Some(ComponentDirNet::enter(
            (&self.cluster, &self.plan),
            self.identity,
            entry,
            now_ns,
        )?);
        // Its first frames go out before it handles any.
        self.step_dirnet(&[], now_ns).map(drop)
    }

    /// Reports to the supervisor why this component cannot go on.
    pub(crate) fn report_failure(&self, error: &NodeError) {
        report(&self.socket, error);
    }
}

/// How long a component that fails waits for room to report why.
const FAILED_TIMEOUT: Duration = Duration::from_millis(200);

fn report(link: &Socket, error: &NodeError) {
    let message = FromComponent::Failed { cause: error.to_string(), cure: advice(error).1 };
    // A supervisor that does not read sees the end of the link.
    let _ = link.send(&message, &[], FAILED_TIMEOUT);
}

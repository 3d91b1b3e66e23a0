//! Why a node cannot be met over the network, and why a connection fails.

use std::fmt;
use std::io;

use crate::bootstrap::Refusal;
use crate::explain::{Code, Explain};
use crate::process::ProcessError;

/// Why a node cannot be met over the network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The number of addresses differs from the number of nodes.
    #[error("network.addresses has {found} entries for {nodes} nodes")]
    Addresses {
        /// How many nodes there are.
        nodes: u16,
        /// How many addresses.
        found: usize,
    },
    /// The node cannot listen at its own address.
    #[error("this node cannot be met at {address:?}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// No random number could be drawn.
    #[error("no random number can be drawn: {0}")]
    Random(#[source] io::Error),
    /// A thread could not be started.
    #[error("{0}")]
    Thread(#[source] ProcessError),
}

impl Explain for NetworkError {
    fn code(&self) -> Code {
        match self {
            Self::Addresses { .. } => Code::ClusterFile,
            Self::Listen { .. } => Code::NodeUnreachable,
            Self::Random(_) => Code::Internal,
            Self::Thread(source) => source.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Addresses { nodes, .. } => {
                format!("list all {nodes} nodes as \"HOST:PORT\", in the order of their ranks")
            }
            Self::Listen { .. } => "see that the address is HOST:PORT with an address of this \
                                    host, that --rank is this host's, and that the port is free"
                .to_owned(),
            Self::Thread(source) => source.cure(),
            Self::Random(_) => "see what the machine lacks with `weft doctor`".to_owned(),
        }
    }
}

/// Why a connection failed or ended.
#[derive(Debug)]
pub enum LinkError {
    /// A system call failed.
    Io(io::Error),
    /// The other side has closed it.
    Closed,
    /// The other side exceeded a deadline.
    Stalled,
    /// The other side is not a node.
    NotWeft,
    /// A frame longer than the limit.
    TooLong {
        /// Its claimed length.
        len: usize,
    },
    /// A holder of the key sent what no node sends.
    Nonsense,
    /// The other has not registered an address yet.
    Unregistered,
    /// The cryptography could not be set up: a bug.
    Noise(snow::Error),
    /// One side refused the other.
    Refused(Refusal),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Closed => f.write_str("the other side has closed the connection"),
            Self::Stalled => Refusal::Stalled.fmt(f),
            Self::NotWeft => Refusal::NotWeft.fmt(f),
            Self::TooLong { len } => write!(f, "a frame of {len} bytes is longer than any"),
            Self::Nonsense => f.write_str("a node said what no node of this build says"),
            Self::Unregistered => f.write_str("the other side has registered no address yet"),
            Self::Noise(error) => error.fmt(f),
            Self::Refused(reason) => reason.fmt(f),
        }
    }
}

impl LinkError {
    /// The refusal to report; a broken connection is none.
    pub(super) fn reason(self) -> Option<Refusal> {
        match self {
            Self::Refused(reason) => Some(reason),
            Self::Stalled => Some(Refusal::Stalled),
            Self::NotWeft | Self::TooLong { .. } | Self::Nonsense => Some(Refusal::NotWeft),
            Self::Io(_) | Self::Closed | Self::Unregistered | Self::Noise(_) => None,
        }
    }
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

impl From<snow::Error> for LinkError {
    fn from(error: snow::Error) -> Self {
        match error {
            // What does not decrypt was not sealed with this key, or not with this nonce.
            snow::Error::Decrypt | snow::Error::Input | snow::Error::Dh => {
                Self::Refused(Refusal::Key)
            }
            other => Self::Noise(other),
        }
    }
}

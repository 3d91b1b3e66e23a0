//! Why a member cannot go on.

use std::fmt;

use crate::explain::{Code, Explain};
use crate::node::NodeError;

/// Why a member cannot go on. The process should end: its node starts the next incarnation.
#[derive(Debug)]
#[non_exhaustive]
pub enum MemberError {
    /// The node of this member is gone.
    NodeEnded,
    /// The fabric, the memory or the link failed; the node knows why.
    Node(NodeError),
}

impl fmt::Display for MemberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeEnded => f.write_str("the node of this member has ended"),
            Self::Node(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MemberError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NodeEnded => None,
            Self::Node(error) => Some(error),
        }
    }
}

impl Explain for MemberError {
    fn code(&self) -> Code {
        match self {
            Self::NodeEnded => Code::ComponentLost,
            Self::Node(error) => error.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::NodeEnded => "end the program; `weft status` shows which nodes run".to_owned(),
            Self::Node(error) => error.cure(),
        }
    }
}

/// Why a record was not saved. The one before is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveError {
    /// The cluster file has no room for a record.
    NoState,
    /// The record is longer than its room.
    TooLong {
        /// The length of the room: `component.state`.
        limit: usize,
    },
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoState => f.write_str(
                "this cluster keeps no state: set component.state in the cluster file, or run it \
                 with `--state 1MiB`",
            ),
            Self::TooLong { limit } => {
                write!(f, "the record is longer than {limit} bytes: raise component.state")
            }
        }
    }
}

impl std::error::Error for SaveError {}

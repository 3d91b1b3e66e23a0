//! Why a member cannot go on.

use crate::explain::{Code, Explain};
use crate::node::NodeError;

/// Why a member cannot go on. The process should end: its node starts the next incarnation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemberError {
    /// The node of this member is gone.
    #[error("the node of this member has ended")]
    NodeEnded,
    /// The fabric, the memory or the link failed; the node knows why.
    #[error("{0}")]
    Node(#[source] NodeError),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// The cluster file has no room for a record.
    #[error(
        "this cluster keeps no state: set component.state in the cluster file, or run it with \
         `--state 1MiB`"
    )]
    NoState,
    /// The record is longer than its room.
    #[error("the record is longer than {limit} bytes: raise component.state")]
    TooLong {
        /// The length of the room: `component.state`.
        limit: usize,
    },
}

//! Why a member cannot go on.

use crate::explain::{Code, Explain, advice};
use crate::node::{Component, NodeError};

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
    #[error("this cluster keeps no state")]
    NoState,
    /// The record is longer than its room.
    #[error("the record is longer than {limit} bytes")]
    TooLong {
        /// The length of the room: `component.state`.
        limit: usize,
    },
}

/// Why a member whose loop has a thread of its own is over ([`MemberHandle`]). End the program.
///
/// [`MemberHandle`]: super::MemberHandle
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemberEnded {
    /// The node has ordered the program to end: calls no longer wait.
    #[error("the node has ordered this program to end")]
    Stopping,
    /// This boot of the node was removed.
    #[error("this member was removed from its cluster")]
    Excluded,
    /// The node of this member is gone.
    #[error("the node of this member has ended")]
    NodeEnded,
    /// The fabric, the memory or the link failed; the node knows why.
    #[error("{cause}")]
    Failed {
        /// What failed.
        cause: String,
        /// What to do.
        cure: String,
        /// The code of the failure.
        code: Code,
    },
    /// A thread has panicked inside the member: a bug.
    #[error("a thread has panicked inside the member")]
    Panicked,
}

impl MemberEnded {
    pub(super) fn failed(error: &NodeError) -> Self {
        Self::Failed { cause: error.to_string(), cure: advice(error).1, code: error.code() }
    }

    /// Why calls to this component no longer wait, if they do not.
    pub(super) const fn of(component: &Component) -> Option<Self> {
        if component.is_excluded() {
            return Some(Self::Excluded);
        }
        if component.is_stopping() { Some(Self::Stopping) } else { None }
    }
}

impl From<MemberError> for MemberEnded {
    fn from(error: MemberError) -> Self {
        match error {
            MemberError::NodeEnded => Self::NodeEnded,
            MemberError::Node(error) => Self::failed(&error),
        }
    }
}

impl Explain for MemberEnded {
    fn code(&self) -> Code {
        match self {
            Self::Stopping => Code::Interrupted,
            Self::Excluded | Self::NodeEnded => Code::ComponentLost,
            Self::Failed { code, .. } => *code,
            Self::Panicked => Code::Internal,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Stopping => "end the program within 5 s".to_owned(),
            Self::Excluded => "end the program; its node starts the next incarnation".to_owned(),
            Self::NodeEnded => "end the program; `weft status` shows which nodes run".to_owned(),
            Self::Failed { cure, .. } => cure.clone(),
            Self::Panicked => "end the program, and report the panic".to_owned(),
        }
    }
}

/// Why a call to a member whose loop has a thread of its own did nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError<E: std::fmt::Display> {
    /// The member is over.
    #[error("{0}")]
    Ended(MemberEnded),
    /// The call was refused, or there was no room by its timeout.
    #[error("{0}")]
    Refused(E),
}

/// Why a step was not begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkingError {
    /// The cluster file allows no step of that limit.
    #[error("a step may last {} s", bound.as_secs())]
    TooLong {
        /// The bound: `component.working_s`.
        bound: std::time::Duration,
    },
    /// The system starts no thread that polls meanwhile.
    #[error("no thread can be started that polls meanwhile: {0}")]
    Thread(#[source] std::io::Error),
}

//! Why a name could not be taken.
//!
//! The holder is not named: the lock shows that a process runs, not which.
//! Whatever keeps the directory from being used at all is a `RuntimeDirError`, carried along
//! with its own code and cure.

use super::error::RuntimeDirError;
use crate::cluster::ClusterName;
use crate::explain::{Code, Explain};

/// Why a name could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// A living cluster has it.
    #[error("a cluster named {name} is running")]
    NameInUse {
        /// The name.
        name: ClusterName,
    },
    /// A living cluster has it, whose nodes are all one process's.
    #[error("a cluster named {name} is running, with all its nodes below one process")]
    OneOwner {
        /// The name.
        name: ClusterName,
    },
    /// The directory cannot be used.
    #[error(transparent)]
    Dir(#[from] RuntimeDirError),
}

impl Explain for ClaimError {
    fn code(&self) -> Code {
        match self {
            Self::NameInUse { .. } | Self::OneOwner { .. } => Code::NameInUse,
            Self::Dir(source) => source.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::NameInUse { name } => {
                format!("choose another --name, or end it with `weft down --name {name}`")
            }
            Self::OneOwner { name } => format!(
                "`weft status --name {name}` shows its nodes; end it with `weft down --name \
                 {name}` to start them by hand, or give this cluster another `name` in its file"
            ),
            Self::Dir(source) => source.cure(),
        }
    }
}

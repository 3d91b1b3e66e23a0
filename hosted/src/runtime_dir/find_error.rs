//! Why no living cluster of a name was found.
//!
//! Never started and killed are distinguished because their cures differ: the first by
//! another name or another runtime directory, the second by a new start. The names that do run
//! are listed with the first, because it is mostly a matter of a misspelt or forgotten one.

use std::path::PathBuf;

use super::error::RuntimeDirError;
use crate::cluster::ClusterName;
use crate::explain::{Code, Explain};

/// Why no living cluster of a name was found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is no trace of it.
    #[error("no cluster named {name} is running in {dir}")]
    NotRunning {
        /// The name.
        name: ClusterName,
        /// Where it was looked for.
        dir: PathBuf,
        /// The clusters that do run there.
        running: Vec<ClusterName>,
    },
    /// It left its directory behind and none of its processes lives.
    #[error("the cluster {name} is dead: its files are there, its processes are not")]
    Dead {
        /// The name.
        name: ClusterName,
    },
    /// The directory cannot be used.
    #[error(transparent)]
    Dir(#[from] RuntimeDirError),
}

impl Explain for FindError {
    fn code(&self) -> Code {
        match self {
            Self::NotRunning { .. } => Code::ClusterNotRunning,
            Self::Dead { .. } => Code::ClusterDead,
            Self::Dir(source) => source.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::NotRunning { name, running, .. } if running.is_empty() => {
                format!("start it with `weft up --name {name}`")
            }
            Self::NotRunning { name, running, .. } => {
                let running: Vec<&str> = running.iter().map(ClusterName::as_str).collect();
                format!("start it with `weft up --name {name}`; running are {}", running.join(", "))
            }
            Self::Dead { name } => {
                format!(
                    "start it again as before: `weft up` with its file or flags removes what is \
                     left of it; `weft down --name {name}` does only that"
                )
            }
            Self::Dir(source) => source.cure(),
        }
    }
}

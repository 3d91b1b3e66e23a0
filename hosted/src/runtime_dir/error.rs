//! Why the runtime directory, or the directory of a cluster in it, cannot be used.
//!
//! Whether a name is taken or found is not asked here: those are questions of their own, with
//! errors of their own, which may be this one. Each variant
//! has a cure of its own, since a wrong owner and a long path are mended in different places.

use std::io;
use std::path::PathBuf;

use super::cluster_dir::SOCKET_PATH_LEN_MAX;
use crate::explain::{Code, Explain};

/// The bit of a directory in which users may only remove what is their own.
const STICKY: u32 = 0o1000;
/// Others may write there.
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// Why the runtime directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeDirError {
    /// No variable names a place, and there is no directory of the user's session.
    #[error(
        "no private directory for control sockets: WEFT_RUNTIME_DIR, XDG_RUNTIME_DIR, \
         XDG_STATE_HOME and HOME are unset or relative"
    )]
    NoPlace,
    /// `$WEFT_RUNTIME_DIR` is not an absolute path.
    #[error("WEFT_RUNTIME_DIR is the relative path {path}")]
    Relative {
        /// Its value.
        path: PathBuf,
    },
    /// The directory is in one that all users share.
    #[error("the runtime directory {path} is in {root}, which all users share")]
    Shared {
        /// The directory.
        path: PathBuf,
        /// The shared one it is in.
        root: &'static str,
    },
    /// The only places that variables name are in directories that all users share.
    #[error("{variable} is {base}, which is in {root}, and all users share {root}")]
    SharedBase {
        /// The last of these variables.
        variable: &'static str,
        /// Its value.
        base: PathBuf,
        /// The shared directory it is in.
        root: &'static str,
    },
    /// Others may replace what is on the way to the directory.
    #[error(
        "the runtime directory {path} is below {above}, which has mode {mode:04o}, so that others \
         may replace it"
    )]
    Replaceable {
        /// The directory.
        path: PathBuf,
        /// The one above it that others may write to.
        above: PathBuf,
        /// The mode of that one.
        mode: u32,
    },
    /// A symbolic link is where the directory should be.
    #[error("the runtime directory {path} is a symbolic link")]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Something else is where the directory should be.
    #[error("the runtime directory {path} is not a directory")]
    NotDirectory {
        /// Its path.
        path: PathBuf,
    },
    /// The directory is another user's.
    #[error("the runtime directory {path} belongs to uid {owner}")]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Its owner's uid.
        owner: u32,
    },
    /// Others may enter, read or write the directory.
    #[error("the runtime directory {path} has mode {mode:04o}, so that it is open to others")]
    Open {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A directory with a cluster's name holds files that are not a cluster's.
    #[error("the directory {path} holds files that are not a cluster's")]
    NotCluster {
        /// The directory.
        path: PathBuf,
    },
    /// The directory of a running cluster was removed, or another cluster has made it again.
    #[error(
        "the directory {path} was removed while the cluster ran, or belongs to another cluster of \
         its name by now"
    )]
    Displaced {
        /// The directory.
        path: PathBuf,
    },
    /// The path of a control socket is longer than a socket's address may be.
    #[error("the socket path {path} has {len} bytes, but the limit is {SOCKET_PATH_LEN_MAX}")]
    SocketPathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        len: usize,
    },
    /// Another process kept the directory locked past the deadline.
    #[error("another process keeps the directory {path} locked")]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {path}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Explain for RuntimeDirError {
    fn code(&self) -> Code {
        match self {
            Self::System { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Code::Permission
            }
            _ => Code::RuntimeDir,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::NoPlace
            | Self::Relative { .. }
            | Self::Shared { .. }
            | Self::SharedBase { .. } => {
                "set WEFT_RUNTIME_DIR to an absolute path in a directory of your own".to_owned()
            }
            Self::Replaceable { above, .. } => format!(
                "run `chmod go-w {}`, or set WEFT_RUNTIME_DIR to a directory of your own",
                above.display()
            ),
            Self::Link { .. } | Self::NotDirectory { .. } => {
                "set WEFT_RUNTIME_DIR to a directory, not to a file or a link to one".to_owned()
            }
            Self::Foreign { path, .. } => {
                format!("run as the owner of {} or set WEFT_RUNTIME_DIR", path.display())
            }
            // Closing a directory that others work in, such as /tmp, would do harm.
            Self::Open { mode, .. } if mode & (STICKY | WRITABLE_BY_OTHERS) != 0 => {
                "set WEFT_RUNTIME_DIR to a directory of your own with mode 0700".to_owned()
            }
            Self::Open { path, .. } => format!("run `chmod 700 {}`", path.display()),
            Self::NotCluster { .. } => {
                "move them away, or choose another name or an empty WEFT_RUNTIME_DIR".to_owned()
            }
            Self::Displaced { .. } => {
                "start the cluster again; end one with `weft down`, never by removing its directory"
                    .to_owned()
            }
            Self::SocketPathTooLong { .. } => {
                "choose a shorter cluster name, or set WEFT_RUNTIME_DIR to a shorter path"
                    .to_owned()
            }
            Self::Busy { path } => {
                format!("end the stopped process that `fuser {}` shows", path.display())
            }
            Self::System { .. } => {
                "set WEFT_RUNTIME_DIR to a directory that this user may write".to_owned()
            }
        }
    }
}

//! The directory of one cluster and the paths in it.
//!
//! Only files that Weft itself makes are ever removed. A directory that holds files and no
//! `lock` was made by another program, however fitting its name, and is refused: a runtime
//! directory that was set by mistake must not delete a user's files. To keep that rule
//! through a crash, `lock` is the first file made and the last removed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::RuntimeDirError;
use super::gate::LockGate;
use super::lock::{self, Lock};
use super::{Liveness, failed};
use crate::cluster::ClusterName;
use crate::process::Remains;

/// The directory of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterDir {
    name: ClusterName,
    path: PathBuf,
}

impl ClusterDir {
    pub(super) fn below(runtime_dir: &Path, name: &ClusterName) -> Self {
        Self { name: name.clone(), path: runtime_dir.join(name.as_str()) }
    }

    /// The cluster's name.
    #[must_use]
    pub fn name(&self) -> &ClusterName {
        &self.name
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The copy of the cluster file that the cluster was started with.
    #[must_use]
    pub fn cluster_file(&self) -> PathBuf {
        self.path.join(CLUSTER_FILE)
    }

    /// The control socket of the node with this rank.
    ///
    /// # Errors
    /// The path is longer than the address of a socket may be.
    pub fn node_socket(&self, rank: usize) -> Result<PathBuf, RuntimeDirError> {
        self.socket(&format!("{NODE_PREFIX}{rank}.{SOCKET_EXTENSION}"))
    }

    /// The socket at which the node with this rank meets its peers.
    ///
    /// # Errors
    /// The path is longer than the address of a socket may be.
    pub fn peer_socket(&self, rank: usize) -> Result<PathBuf, RuntimeDirError> {
        self.socket(&format!("{NODE_PREFIX}{rank}.peers"))
    }

    /// The socket at which the node with this rank serves its metrics.
    ///
    /// # Errors
    /// The path is longer than the address of a socket may be.
    pub fn metrics_socket(&self, rank: usize) -> Result<PathBuf, RuntimeDirError> {
        self.socket(&format!("{NODE_PREFIX}{rank}.metrics"))
    }

    /// The socket at which the launcher of the nodes receives the call to end them.
    ///
    /// # Errors
    /// The path is longer than the address of a socket may be.
    pub fn launcher_socket(&self) -> Result<PathBuf, RuntimeDirError> {
        self.socket(LAUNCHER_SOCKET)
    }

    /// Where the node with this rank notes the last incarnation that it gave out.
    #[must_use]
    pub fn incarnation_file(&self, rank: usize) -> PathBuf {
        self.path.join(format!("{NODE_PREFIX}{rank}.incarnation"))
    }

    /// Where the node with this rank notes the last term that it has known.
    #[must_use]
    pub fn term_file(&self, rank: usize) -> PathBuf {
        self.path.join(format!("{NODE_PREFIX}{rank}.term"))
    }

    /// Where the node with this rank notes what it has voted and accepted.
    #[must_use]
    pub fn votes_file(&self, rank: usize) -> PathBuf {
        self.path.join(format!("{NODE_PREFIX}{rank}.votes"))
    }

    /// Where the node with this rank notes that it is isolated.
    #[must_use]
    pub fn isolation_file(&self, rank: usize) -> PathBuf {
        self.path.join(format!("{NODE_PREFIX}{rank}.isolated"))
    }

    /// Where the node with this rank saves its copy of the database.
    #[must_use]
    pub fn database_file(&self, rank: usize) -> PathBuf {
        self.path.join(format!("{NODE_PREFIX}{rank}.database"))
    }

    /// Where the node with this rank saves the recovery scripts that it holds.
    #[must_use]
    pub fn scripts_file(&self, rank: usize) -> PathBuf {
        self.path.join(format!("{NODE_PREFIX}{rank}.scripts"))
    }

    /// Where the node with this rank notes which processes its tasks are.
    #[must_use]
    pub fn remains_file(&self, rank: usize) -> PathBuf {
        self.path.join(format!("{NODE_PREFIX}{rank}{REMAINS_SUFFIX}"))
    }

    /// Where the node with this rank notes how its tasks stand.
    #[must_use]
    pub fn tasks_file(&self, rank: usize) -> PathBuf {
        self.path.join(format!("{NODE_PREFIX}{rank}.tasks"))
    }

    /// The instance number of the cluster that the directory belongs to now.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn instance(&self) -> io::Result<u64> {
        lock::read_instance(&fs::File::open(self.lock_file())?)
    }

    /// The files that keep the directory of a cluster that has ended: none where it is gone, and
    /// nothing as long as it is about to be removed or holds a file of a cluster.
    #[must_use]
    pub fn left_by_others(&self) -> Option<Vec<String>> {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return (!self.path.exists()).then(Vec::new);
        };
        let names: BTreeSet<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        let is_held = names.iter().any(|name| name == LOCK_FILE || is_ours(name));
        let left = names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        (!is_held && !names.is_empty()).then_some(left)
    }

    fn socket(&self, name: &str) -> Result<PathBuf, RuntimeDirError> {
        let path = self.path.join(name);
        let len = path.as_os_str().len();
        if len > SOCKET_PATH_LEN_MAX {
            return Err(RuntimeDirError::SocketPathTooLong { path, len });
        }
        Ok(path)
    }

    pub(super) fn lock_file(&self) -> PathBuf {
        self.path.join(LOCK_FILE)
    }

    /// Whether the cluster lives; nothing if there is no such cluster.
    pub(super) fn liveness(&self, _gate: &LockGate) -> Result<Option<Liveness>, RuntimeDirError> {
        let held = Lock::is_held(self)?;
        Ok(held.map(|held| if held { Liveness::Alive } else { Liveness::Dead }))
    }

    /// Refuses a directory that some other program filled.
    pub(super) fn check_ours(&self) -> Result<(), RuntimeDirError> {
        if self.lock_file().symlink_metadata().is_ok() {
            return Ok(());
        }
        match fs::read_dir(&self.path).map_err(failed("list", &self.path))?.next() {
            // A start that was killed between making the directory and its lock.
            None => Ok(()),
            Some(_) => Err(RuntimeDirError::NotCluster { path: self.path.clone() }),
        }
    }

    /// Ends what tasks have left running, and removes all that a cluster made, except the lock.
    pub(super) fn clear(&self, _gate: &LockGate) -> Result<(), RuntimeDirError> {
        for entry in fs::read_dir(&self.path).map_err(failed("list", &self.path))? {
            let entry = entry.map_err(failed("list", &self.path))?;
            let name = entry.file_name();
            if is_ours(&name) {
                if name.to_string_lossy().ends_with(REMAINS_SUFFIX) {
                    end_remains(&entry.path());
                }
                remove_file(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes all that a cluster made, and the directory if nothing else is in it.
    pub(super) fn remove(&self, gate: &LockGate) -> Result<(), RuntimeDirError> {
        self.clear(gate)?;
        remove_file(&self.lock_file())?;
        match fs::remove_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                tracing::warn!("{} stays: some files are not Weft's", self.path.display());
                Ok(())
            }
            removed => removed.map_err(failed("remove", &self.path)),
        }
    }
}

/// Whether a file of that name is one of a cluster, other than its lock.
fn is_ours(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        name.starts_with(NODE_PREFIX) || name.starts_with(CLUSTER_FILE) || name == LAUNCHER_SOCKET
    })
}

/// Ends the processes of tasks that outlive their node, as far as they can be ended.
pub(crate) fn end_remains(path: &Path) {
    let control = path.with_extension(SOCKET_EXTENSION);
    match Remains::end_left(path, &control, REMAINS_PATIENCE) {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "processes of tasks outlived their node, and are ended"),
        Err(error) => tracing::error!(%error, "killed in vain"),
    }
}

fn remove_file(path: &Path) -> Result<(), RuntimeDirError> {
    match fs::remove_file(path) {
        // Its owner, a node that is ending, was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(failed("remove", path)),
    }
}

const LOCK_FILE: &str = "lock";
const CLUSTER_FILE: &str = "cluster.toml";
const NODE_PREFIX: &str = "node-";
const SOCKET_EXTENSION: &str = "sock";
const LAUNCHER_SOCKET: &str = "launcher.sock";
const REMAINS_SUFFIX: &str = ".remains";
/// How long what tasks have left may take to end once it is killed.
const REMAINS_PATIENCE: Duration = Duration::from_secs(5);

/// `sun_path` has 108 bytes, the last of them zero.
pub(super) const SOCKET_PATH_LEN_MAX: usize = 107;

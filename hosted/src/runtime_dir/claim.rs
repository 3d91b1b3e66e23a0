//! A cluster's directory in the hands of one that runs it.
//!
//! `weft up` claims it alone, and the nodes it starts inherit the lock by its file
//! descriptor, so that the cluster counts as alive until the last of them has ended, even
//! after a `kill -9` of `weft up` itself. A node started by hand joins. The directory goes
//! with the last claim: at [`remove`](ClaimedDir::remove), which returns what went wrong, or at
//! drop, which cannot.

use std::fs;
use std::io::Write;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use super::cluster_dir::ClusterDir;
use super::error::RuntimeDirError;
use super::failed;
use super::gate::LockGate;
use super::lock::Lock;
use crate::cluster::Cluster;
use crate::regular_file;

/// The directory of a cluster, held by its lock.
///
/// As a file descriptor it is the lock: a child that inherits it keeps the cluster alive.
#[derive(Debug)]
pub struct ClaimedDir {
    dir: ClusterDir,
    lock: Lock,
    instance: u64,
    given_up: bool,
}

impl ClaimedDir {
    pub(super) fn new(dir: ClusterDir, lock: Lock) -> Result<Self, RuntimeDirError> {
        let instance = lock.instance().map_err(failed("read", &dir.lock_file()))?;
        Ok(Self { dir, lock, instance, given_up: false })
    }

    /// The directory whose lock was inherited as `fd`. Giving it up is left to the process that
    /// claimed it.
    ///
    /// # Errors
    /// The directory is not the one of that lock any more, or the lock cannot be read.
    pub fn inherit(dir: ClusterDir, fd: OwnedFd) -> Result<Self, RuntimeDirError> {
        let mut inherited = Self::new(dir, Lock::inherited(fd))?;
        inherited.given_up = true;
        inherited.check_kept()?;
        Ok(inherited)
    }

    /// The number that distinguishes this cluster from every other of its name; never 0.
    #[must_use]
    pub const fn instance(&self) -> u64 {
        self.instance
    }

    /// Looks whether the directory is still the one that was claimed.
    ///
    /// # Errors
    /// [`RuntimeDirError::Displaced`].
    pub fn check_kept(&self) -> Result<(), RuntimeDirError> {
        match self.lock.is_of(&self.dir) {
            true => Ok(()),
            false => Err(RuntimeDirError::Displaced { path: self.dir.path().to_owned() }),
        }
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &ClusterDir {
        &self.dir
    }

    /// Writes the copy of the cluster file; a reader sees all of it or none.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn publish(&self, cluster: &Cluster) -> Result<(), RuntimeDirError> {
        let target = self.dir.cluster_file();
        // Nodes started by hand publish the same text at the same time, each by its own file.
        let draft = target.with_extension(format!("toml.{}", std::process::id()));
        regular_file::replace(&draft)
            .and_then(|mut file| file.write_all(cluster.to_toml().as_bytes()))
            .map_err(failed("write", &draft))?;
        fs::rename(&draft, &target).map_err(failed("write", &target))
    }

    /// Gives the name up. The last to do so removes the directory; `weft up` does so when all
    /// its nodes have ended.
    ///
    /// # Errors
    /// A file of the cluster cannot be removed. The name is given up even so. Files that are not
    /// Weft's stay, and the directory with them.
    pub fn remove(mut self) -> Result<(), RuntimeDirError> {
        self.give_up()
    }

    fn give_up(&mut self) -> Result<(), RuntimeDirError> {
        if mem::replace(&mut self.given_up, true) {
            return Ok(());
        }
        let runtime_dir = self.dir.path().parent().unwrap_or(Path::new("/"));
        let gate = LockGate::enter(runtime_dir)?;
        // Another cluster's, if a user removed ours by hand: not ours to remove.
        if !self.lock.is_of(&self.dir) || !self.lock.is_last() {
            return Ok(());
        }
        self.dir.remove(&gate)
    }
}

impl AsFd for ClaimedDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }
}

impl Drop for ClaimedDir {
    fn drop(&mut self) {
        // What stays behind is cleared by the next claim of the name.
        let _ = self.give_up();
    }
}

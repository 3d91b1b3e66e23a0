//! The lock of one cluster: who lives holds it.
//!
//! A flock belongs to the open file, not to the process: children that inherit the file hold
//! the lock too, and the kernel drops it with the last of them. All functions here expect the
//! caller inside the [`Gate`](super::gate::Gate).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::cluster_dir::ClusterDir;
use super::error::RuntimeDirError;
use super::failed;
use crate::regular_file;

/// Whom a lock excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Everybody else.
    Exclusive,
    /// Only those who want to be alone.
    Shared,
}

/// A held lock; the file stays open for as long as it is held.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock of `dir`, making its file if there is none; nothing if others hold it.
    pub(super) fn take(dir: &ClusterDir, mode: Mode) -> Result<Option<Self>, RuntimeDirError> {
        let path = dir.lock_file();
        let file = regular_file::update(&path).map_err(failed("open", &path))?;
        Self::over(file, &path, mode)
    }

    /// Whether anybody holds the lock of `dir`; nothing if it has no lock file.
    pub(super) fn is_held(dir: &ClusterDir) -> Result<Option<bool>, RuntimeDirError> {
        let path = dir.lock_file();
        let file = match regular_file::read(&path) {
            Ok(file) => file,
            // Not a directory, or none at all: no cluster either way.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(failed("open", &path)(error)),
        };
        let free = Self::over(file, &path, Mode::Exclusive)?;
        let held = free.is_none();
        if let Some(lock) = free {
            lock.release();
        }
        Ok(Some(held))
    }

    /// Whether nobody else holds this lock. If somebody does, this lock may be lost, so it is
    /// for those who are leaving.
    pub(super) fn is_last(&self) -> bool {
        flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Whether `dir` still has the file of this lock: it may have been removed by hand and
    /// made anew by another cluster.
    pub(super) fn is_of(&self, dir: &ClusterDir) -> bool {
        match (self.file.metadata(), dir.lock_file().symlink_metadata()) {
            (Ok(mine), Ok(there)) => mine.dev() == there.dev() && mine.ino() == there.ino(),
            (Ok(_) | Err(_), _) => false,
        }
    }

    /// Lets go, for children that inherited the file as well.
    pub(super) fn release(self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }

    fn over(file: File, path: &Path, mode: Mode) -> Result<Option<Self>, RuntimeDirError> {
        let operation = match mode {
            Mode::Exclusive => FlockOperation::NonBlockingLockExclusive,
            Mode::Shared => FlockOperation::NonBlockingLockShared,
        };
        match flock(&file, operation) {
            Ok(()) => Ok(Some(Self { file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(failed("lock", path)(error)),
        }
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

//! The lock of one cluster: who lives holds it.
//!
//! A flock belongs to the open file, not to the process: children that inherit the file hold
//! the lock too, and the kernel drops it with the last of them. All functions here expect the
//! caller inside the [`Gate`](super::gate::Gate).
//!
//! The file holds the cluster's instance number in 16 hexadecimal digits: two clusters that bear
//! one name after each other, or at once because a directory was removed by hand, differ in it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use super::cluster_dir::ClusterDir;
use super::error::RuntimeDirError;
use super::failed;
use crate::regular_file;

/// Whom a lock excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// All others.
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

    /// Whether a process holds the lock of `dir`; `None` if it has no lock file.
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

    /// Whether no other process holds this lock. If one does, this lock may be lost, so it is
    /// for those who are leaving.
    pub(super) fn is_last(&self) -> bool {
        flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Whether `dir` still has the file of this lock: it may have been removed by hand and
    /// made again by another cluster.
    pub(super) fn is_of(&self, dir: &ClusterDir) -> bool {
        match (self.file.metadata(), dir.lock_file().symlink_metadata()) {
            (Ok(mine), Ok(there)) => mine.dev() == there.dev() && mine.ino() == there.ino(),
            (Ok(_) | Err(_), _) => false,
        }
    }

    /// The lock that an open file of `dir` holds already.
    pub(super) fn inherited(file: OwnedFd) -> Self {
        Self { file: File::from(file) }
    }

    /// Draws the instance number of a cluster that begins, and notes it in the file.
    pub(super) fn draw_instance(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        getrandom(&mut bytes[..], GetRandomFlags::empty())?;
        // Zero says that it is not known.
        let instance = u64::from_ne_bytes(bytes).max(1);
        self.file.write_all_at(format!("{instance:016x}").as_bytes(), 0)?;
        Ok(instance)
    }

    /// The instance number in the file.
    pub(super) fn instance(&self) -> io::Result<u64> {
        read_instance(&self.file)
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

/// The instance number in the file of a lock.
pub(super) fn read_instance(file: &File) -> io::Result<u64> {
    let mut digits = [0; 16];
    file.read_exact_at(&mut digits, 0)?;
    let digits = std::str::from_utf8(&digits).map_err(io::Error::other)?;
    u64::from_str_radix(digits, 16).map_err(io::Error::other)
}

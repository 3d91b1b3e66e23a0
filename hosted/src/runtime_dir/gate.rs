//! The gate: one process at a time looks at or changes the locks of clusters.
//!
//! It is a flock on the runtime directory itself, so it leaves no file of its own. A process that
//! holds it does a few system calls and leaves; one who was stopped inside must not hang the
//! others forever, so entering has a deadline. Several file systems over a network cannot
//! lock a directory; they are no place for sockets either.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::error::RuntimeDirError;
use super::failed;
use crate::clock::Deadline;

/// The right to look at and change locks, until it is dropped.
#[derive(Debug)]
pub(super) struct LockGate {
    dir: File,
}

impl LockGate {
    /// Waits until the gate is free.
    pub(super) fn enter(dir: &Path) -> Result<Self, RuntimeDirError> {
        let open = File::open(dir).map_err(failed("open", dir))?;
        let deadline = Deadline::after(PATIENCE);
        loop {
            match flock(&open, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { dir: open }),
                Err(Errno::WOULDBLOCK) if deadline.has_passed() => {
                    return Err(RuntimeDirError::Busy { path: dir.to_owned() });
                }
                // A flock has no deadline of its own, and notifies no waiter when it is free.
                Err(Errno::WOULDBLOCK) => thread::park_timeout(LOOK_EVERY),
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed("lock", dir)(error)),
            }
        }
    }
}

impl Drop for LockGate {
    fn drop(&mut self) {
        // Closing would do, but for a child that another thread forks in this moment: it holds
        // the same lock until it becomes another program.
        let _ = flock(&self.dir, FlockOperation::Unlock);
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(3);

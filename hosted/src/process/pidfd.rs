//! A hold on one process that no reuse of its number can confuse.
//!
//! Dead means that the whole thread group has ended: an unreaped zombie counts as
//! dead. By then the kernel has taken the process's memory away from every one of its threads,
//! so that after [`Pidfd::is_dead`] no store of that process reaches shared memory any more.
//! This is what makes a kill a fence. (It does not cover a child that shares the address space,
//! as after vfork; no process of ours has one.)

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal, waitid,
};

use super::ProcessError;
use crate::clock::Deadline;
use crate::readiness::{Readiness, await_events};

/// A descriptor that refers to a process, living or dead.
#[derive(Debug)]
pub struct Pidfd {
    fd: OwnedFd,
}

/// Whether a process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Liveness {
    /// It had not ended when the wait was over.
    Alive,
    /// It has ended, whether reaped or a zombie.
    Dead,
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signalled {
    /// The kernel took it; a zombie takes signals too and ignores them.
    Sent,
    /// The process was dead and reaped already.
    AlreadyDead,
}

impl Pidfd {
    /// This process, for sending to those who shall watch it.
    ///
    /// # Errors
    /// [`ProcessError::Os`].
    pub fn of_self() -> Result<Self, ProcessError> {
        Self::open(getpid())
    }

    /// A child that has not been reaped: before that its number cannot be reused, so the
    /// pidfd is of this child even if it is dead. After a successful `wait` it may be of a
    /// stranger.
    ///
    /// # Errors
    /// [`ProcessError::Os`].
    pub fn from_child(child: &Child) -> Result<Self, ProcessError> {
        Self::open(Pid::from_child(child))
    }

    /// The process that has the number now, which is for the caller to know.
    ///
    /// # Errors
    /// [`ProcessError::Os`], with ESRCH if there is none.
    pub fn open(pid: Pid) -> Result<Self, ProcessError> {
        let fd = pidfd_open(pid, PidfdFlags::empty()).map_err(ProcessError::os("pidfd_open"))?;
        Ok(Self { fd })
    }

    /// Takes over a pidfd that a peer has sent.
    ///
    /// # Errors
    /// [`ProcessError::NotPidfd`] if it is anything else: a readable file in its place would
    /// pass for a dead process.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, ProcessError> {
        // waitid alone shows by errno whether a descriptor is a pidfd without side effects: a
        // process that is not our child is ECHILD, a descriptor that is not a process EBADF.
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::PidFd(fd.as_fd()), peek) {
            Ok(_) | Err(Errno::CHILD | Errno::AGAIN) => Ok(Self { fd }),
            Err(Errno::BADF | Errno::INVAL) => Err(ProcessError::NotPidfd),
            Err(errno) => Err(ProcessError::Os { call: "waitid", errno }),
        }
    }

    /// A second hold on the same process.
    ///
    /// # Errors
    /// [`ProcessError::Os`].
    pub fn try_clone(&self) -> Result<Self, ProcessError> {
        let fd = rustix::io::fcntl_dupfd_cloexec(&self.fd, 0).map_err(ProcessError::os("dup"))?;
        Ok(Self { fd })
    }

    /// Whether the process has ended, without waiting.
    ///
    /// # Errors
    /// [`ProcessError::Os`].
    pub fn is_dead(&self) -> Result<bool, ProcessError> {
        Ok(self.wait_dead(Duration::ZERO)? == Liveness::Dead)
    }

    /// Waits for the process to end.
    ///
    /// # Errors
    /// [`ProcessError::Os`].
    pub fn wait_dead(&self, timeout: Duration) -> Result<Liveness, ProcessError> {
        let deadline = Deadline::after(timeout);
        match await_events(self.as_fd(), PollFlags::IN, deadline) {
            Ok(Readiness::Ready) => Ok(Liveness::Dead),
            Ok(Readiness::TimedOut) => Ok(Liveness::Alive),
            Err(errno) => Err(ProcessError::Os { call: "poll", errno }),
        }
    }

    /// Sends SIGKILL. The process is gone when [`Pidfd::wait_dead`] says so, not before.
    ///
    /// # Errors
    /// [`ProcessError::Os`].
    pub fn kill(&self) -> Result<Signalled, ProcessError> {
        self.signal(Signal::KILL)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// [`ProcessError::Os`].
    pub fn signal(&self, signal: Signal) -> Result<Signalled, ProcessError> {
        match pidfd_send_signal(&self.fd, signal) {
            Ok(()) => Ok(Signalled::Sent),
            Err(Errno::SRCH) => Ok(Signalled::AlreadyDead),
            Err(errno) => Err(ProcessError::Os { call: "pidfd_send_signal", errno }),
        }
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const SOON: Duration = Duration::from_secs(20);

    fn sleeper() -> (Child, Pidfd) {
        let child = Command::new("/bin/sleep").arg("600").spawn().unwrap();
        let pidfd = Pidfd::from_child(&child).unwrap();
        (child, pidfd)
    }

    #[test]
    fn self_is_alive() {
        let own = Pidfd::of_self().unwrap();
        assert!(!own.is_dead().unwrap());
        assert_eq!(own.wait_dead(Duration::from_millis(2)).unwrap(), Liveness::Alive);
    }

    #[test]
    fn zombie_is_dead_and_the_reaped_take_no_signal() {
        let (mut child, pidfd) = sleeper();
        let second = pidfd.try_clone().unwrap();
        assert!(!pidfd.is_dead().unwrap());
        assert_eq!(pidfd.kill().unwrap(), Signalled::Sent);
        assert_eq!(pidfd.wait_dead(SOON).unwrap(), Liveness::Dead);
        assert_eq!(pidfd.kill().unwrap(), Signalled::Sent);

        child.wait().unwrap();
        assert!(second.is_dead().unwrap());
        assert_eq!(second.signal(Signal::TERM).unwrap(), Signalled::AlreadyDead);
    }

    #[test]
    fn pidfd_of_a_child_or_a_stranger_is_adopted() {
        let (mut child, pidfd) = sleeper();
        let adopted = Pidfd::from_fd(pidfd.fd).unwrap();
        let own = Pidfd::from_fd(Pidfd::of_self().unwrap().fd).unwrap();
        assert!(!own.is_dead().unwrap());
        adopted.kill().unwrap();
        assert_eq!(adopted.wait_dead(SOON).unwrap(), Liveness::Dead);
        child.wait().unwrap();
        Pidfd::from_fd(adopted.fd).unwrap();
    }

    #[test]
    fn readable_pipe_does_not_pass_for_a_dead_process() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        assert!(matches!(Pidfd::from_fd(reader.into()), Err(ProcessError::NotPidfd)));
    }
}

//! Who is at the other end of a connection, as the kernel attests it.
//!
//! SO_PEERCRED is recorded when the connection is made: of the process that connected on the
//! accepting side, of the one that listened on the connecting side, of the maker of a pair.
//! The peer cannot choose what it says, but it does not follow a socket that is passed on.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::process::Pid;

use super::PacketError;

/// Who was at the other end when the connection was made.
///
/// The process id names a process of that moment: it may have ended since, and its number may
/// have been given to another. To watch or signal a peer, have it send its pidfd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Effective user id.
    pub uid: u32,
    /// Process id; `None` if the process is not visible from this pid namespace.
    pub pid: Option<Pid>,
}

impl Credentials {
    /// What the process is called now by the kernel: its program's name, up to 15 bytes of it.
    /// None if the process is not visible, or has ended.
    #[must_use]
    pub fn program(self) -> Option<String> {
        let name = fs::read(format!("/proc/{}/comm", self.pid?.as_raw_nonzero())).ok()?;
        let name = String::from_utf8_lossy(&name);
        // A process chooses its name; what would move a terminal's cursor is not shown.
        Some(name.trim_end().chars().filter(|c| !c.is_control()).collect())
    }

    pub(super) fn of_peer(socket: BorrowedFd<'_>) -> Result<Self, PacketError> {
        let mut raw = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut len = size_of::<libc::ucred>() as libc::socklen_t;
        // rustix keeps the pid as a non-zero number, which the kernel does not promise: a peer
        // outside our pid namespace has pid 0.
        // SAFETY: `raw` and `len` are live and writable for the whole call, `len` is the size
        // of `raw`, and every bit pattern is a valid `ucred`.
        let status = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut raw).cast(),
                &raw mut len,
            )
        };
        if status != 0 {
            let errno = Errno::from_io_error(&std::io::Error::last_os_error());
            let errno = errno.expect("last_os_error carries an errno");
            return Err(PacketError::Os { call: "getsockopt SO_PEERCRED", errno });
        }
        Ok(Self { uid: raw.uid, pid: Pid::from_raw(raw.pid) })
    }
}

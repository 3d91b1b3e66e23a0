//! The named end: a path in the file system where peers connect.
//!
//! Binding creates the socket file and fails if anything is there already, whether a live
//! listener or the leftover of a dead one. Dropping the listener closes it but leaves the file:
//! by then another process may have taken the name.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};

use super::{PacketError, Socket};
use crate::clock::Deadline;
use crate::readiness::{Readiness, await_events};

/// Connections the kernel holds for us until they are accepted.
const BACKLOG: i32 = 64;

/// A socket that accepts connections at a path.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
}

impl Listener {
    /// Creates the socket file at `path` and listens there.
    ///
    /// # Errors
    /// [`PacketError::Bind`], with EADDRINUSE if the file exists.
    pub fn bind(path: &Path) -> Result<Self, PacketError> {
        let refused = |errno| PacketError::Bind { path: path.to_path_buf(), errno };
        // Non-blocking, because a connection seen by poll may be accepted by another thread.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(PacketError::os("socket"))?;
        let address = SocketAddrUnix::new(path).map_err(refused)?;
        bind(&fd, &address).map_err(refused)?;
        listen(&fd, BACKLOG).map_err(PacketError::os("listen"))?;
        Ok(Self { fd })
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// [`PacketError::TimedOut`] if none came, [`PacketError::Os`] otherwise.
    pub fn accept(&self, timeout: Duration) -> Result<Socket, PacketError> {
        let deadline = Deadline::after(timeout);
        loop {
            if let Some(socket) = self.try_accept()? {
                return Ok(socket);
            }
            let ready = await_events(self.as_fd(), PollFlags::IN, deadline);
            if ready.map_err(PacketError::os("poll"))? == Readiness::TimedOut {
                return Err(PacketError::TimedOut { call: "accept", timeout });
            }
        }
    }

    /// Takes a connection that is already waiting.
    ///
    /// # Errors
    /// [`PacketError::Os`].
    pub fn try_accept(&self) -> Result<Option<Socket>, PacketError> {
        loop {
            match accept_with(&self.fd, SocketFlags::CLOEXEC) {
                Ok(fd) => return Socket::from_fd(fd).map(Some),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(errno) => {
                    return Err(PacketError::Os { call: "accept", errno });
                }
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

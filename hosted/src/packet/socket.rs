//! One connection that carries packets.
//!
//! All methods take `&self`: one thread may send while another receives, and the kernel keeps
//! each packet whole. No call relies on the descriptor's blocking mode, which processes that
//! share it would share too; every wait is a poll(2) against a deadline.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags,
    SocketType, connect, recvmsg, sendmsg, shutdown, socket_with, socketpair,
};
use rustix::process::geteuid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Credentials, Encoded, Packet, PacketError};
use crate::clock::Deadline;
use crate::readiness::{Readiness, await_events};

const CONTROL_LEN: usize = rustix::cmsg_space!(ScmRights(Packet::MAX_DESCRIPTORS));

/// A connected socket of packets.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

/// A packet as it arrived.
struct Undecoded {
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
}

impl Socket {
    /// Two sockets connected to each other.
    ///
    /// # Errors
    /// [`PacketError::Os`].
    pub fn pair() -> Result<(Self, Self), PacketError> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (left, right) = socketpair(family, kind, SocketFlags::CLOEXEC, None)
            .map_err(PacketError::os("socketpair"))?;
        Ok((Self::from_fd(left)?, Self::from_fd(right)?))
    }

    /// Takes over a connected socket, for example one inherited from the parent process.
    ///
    /// # Errors
    /// [`PacketError::NotPacketSocket`] if it is anything else; the descriptor is then closed.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, PacketError> {
        let domain = sockopt::socket_domain(&fd);
        let kind = sockopt::socket_type(&fd);
        if (domain, kind) != (Ok(AddressFamily::UNIX), Ok(SocketType::SEQPACKET)) {
            return Err(PacketError::NotPacketSocket);
        }
        // The kernel charges a packet's bookkeeping to the same budget, and doubles what is
        // asked for; the default of a host may be set below our longest packet.
        sockopt::set_socket_send_buffer_size(&fd, Packet::MAX_LEN)
            .map_err(PacketError::os("setsockopt SO_SNDBUF"))?;
        Ok(Self { fd })
    }

    /// Connects to the [`Listener`](super::Listener) at `path`.
    ///
    /// # Errors
    /// [`PacketError::Connect`] if no process listens there, [`PacketError::TimedOut`] if the
    /// listener's backlog stayed full.
    pub fn connect(path: &Path, timeout: Duration) -> Result<Self, PacketError> {
        let refused = |errno| PacketError::Connect { path: path.to_path_buf(), errno };
        let address = SocketAddrUnix::new(path).map_err(refused)?;
        let deadline = Deadline::after(timeout);
        let family = AddressFamily::UNIX;
        let fd = socket_with(family, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(PacketError::os("socket"))?;
        loop {
            // poll(2) does not report room in a backlog; the send timeout is what bounds a
            // connect on a Unix socket. Zero would mean "no limit", hence the minimum.
            let left = deadline.remaining().max(Duration::from_micros(1));
            let bound = (left < Duration::from_secs(1 << 30)).then_some(left);
            sockopt::set_socket_timeout(&fd, Timeout::Send, bound)
                .map_err(PacketError::os("setsockopt SO_SNDTIMEO"))?;
            match connect(&fd, &address) {
                Ok(()) => return Self::from_fd(fd),
                Err(Errno::AGAIN | Errno::INTR) if deadline.has_passed() => {
                    return Err(PacketError::TimedOut { call: "connect", timeout });
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(refused(errno)),
            }
        }
    }

    /// Sends `value` with duplicates of `fds`, waiting for room if the peer is slow.
    ///
    /// # Errors
    /// On any error nothing was sent. [`PacketError::Closed`] means that nothing will be.
    pub fn send<T: Serialize>(
        &self,
        value: &T,
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<(), PacketError> {
        let packet = Packet::encode(value)?;
        let deadline = Deadline::after(timeout);
        while !self.try_send(&packet, fds)? {
            self.await_or_time_out(PollFlags::OUT, "send", timeout, deadline)?;
        }
        Ok(())
    }

    /// Sends an encoded value with duplicates of `fds` if there is room; whether there was.
    ///
    /// # Errors
    /// On any error nothing was sent. [`PacketError::Closed`] means that nothing will be.
    pub fn try_send(&self, packet: &Encoded, fds: &[BorrowedFd<'_>]) -> Result<bool, PacketError> {
        if fds.len() > Packet::MAX_DESCRIPTORS {
            return Err(PacketError::TooManyDescriptors { count: fds.len() });
        }
        loop {
            match self.send_now(&packet.0, fds) {
                Ok(()) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED | Errno::NOTCONN) => {
                    return Err(PacketError::Closed);
                }
                Err(errno) => {
                    return Err(PacketError::Os { call: "sendmsg", errno });
                }
            }
        }
    }

    /// Receives the next packet as a `T` and the descriptors that came with it.
    ///
    /// An empty packet, which [`Socket::send`] cannot produce, reads as the end.
    ///
    /// # Errors
    /// After [`PacketError::Decode`] and the truncations the packet is gone and the connection
    /// can be used on; after [`PacketError::TimedOut`] nothing was taken.
    pub fn recv<T: DeserializeOwned>(
        &self,
        timeout: Duration,
    ) -> Result<(T, Vec<OwnedFd>), PacketError> {
        let deadline = Deadline::after(timeout);
        loop {
            if let Some(packet) = self.try_recv()? {
                return Ok(packet);
            }
            self.await_or_time_out(PollFlags::IN, "recv", timeout, deadline)?;
        }
    }

    /// Receives a packet that is already there, `None` if there is none.
    ///
    /// # Errors
    /// As [`Socket::recv`], without the timeout.
    pub fn try_recv<T: DeserializeOwned>(&self) -> Result<Option<(T, Vec<OwnedFd>)>, PacketError> {
        loop {
            match self.recv_now() {
                Ok(Some(Undecoded { bytes, fds })) => {
                    let value = serde_json::from_slice(&bytes).map_err(PacketError::Decode)?;
                    return Ok(Some((value, fds)));
                }
                Ok(None) => return Ok(None),
                // A peer that closes without reading all we sent resets the connection. The
                // reset is reported once, ahead of what the peer itself sent before; that is
                // still queued, and the end comes after it.
                Err(PacketError::Os { errno: Errno::INTR | Errno::CONNRESET, .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Credentials of the process that connected, or that listened, at the other end.
    ///
    /// # Errors
    /// [`PacketError::Os`].
    pub fn peer_credentials(&self) -> Result<Credentials, PacketError> {
        Credentials::of_peer(self.as_fd())
    }

    /// Refuses a peer that runs as another user than this process.
    ///
    /// # Errors
    /// [`PacketError::ForeignUser`].
    pub fn authorize_same_user(&self) -> Result<(), PacketError> {
        let peer_uid = self.peer_credentials()?.uid;
        let own_uid = geteuid().as_raw();
        if peer_uid == own_uid {
            Ok(())
        } else {
            Err(PacketError::ForeignUser { peer_uid, own_uid })
        }
    }

    /// Ends the connection for every handle on it, here and at the peer. What has arrived can
    /// still be received; after it comes [`PacketError::Closed`].
    pub fn shut_down(&self) {
        // Fails only on a connection that has ended.
        let _ = shutdown(&self.fd, Shutdown::Both);
    }

    /// A second handle on the same connection, which ends when the last one is dropped.
    ///
    /// # Errors
    /// [`PacketError::Os`].
    pub fn try_clone(&self) -> Result<Self, PacketError> {
        let fd = rustix::io::fcntl_dupfd_cloexec(&self.fd, 0).map_err(PacketError::os("dup"))?;
        Ok(Self { fd })
    }

    fn send_now(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); CONTROL_LEN];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            let pushed = control.push(SendAncillaryMessage::ScmRights(fds));
            assert!(pushed, "the control buffer holds the most descriptors of a packet");
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.fd, &[IoSlice::new(bytes)], &mut control, flags).map(drop)
    }

    /// The next packet, `None` if none is there.
    fn recv_now(&self) -> Result<Option<Undecoded>, PacketError> {
        let mut bytes = vec![0; Packet::MAX_LEN];
        let mut space = [MaybeUninit::uninit(); CONTROL_LEN];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let iov = &mut [IoSliceMut::new(&mut bytes)];
        let received = match recvmsg(&self.fd, iov, &mut control, flags) {
            Ok(received) => received,
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => {
                return Err(PacketError::Os { call: "recvmsg", errno });
            }
        };
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        if received.flags.contains(ReturnFlags::TRUNC) {
            return Err(PacketError::TruncatedData);
        }
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(PacketError::TruncatedDescriptors);
        }
        if received.bytes == 0 {
            return Err(PacketError::Closed);
        }
        bytes.truncate(received.bytes);
        Ok(Some(Undecoded { bytes, fds }))
    }

    fn await_or_time_out(
        &self,
        events: PollFlags,
        call: &'static str,
        timeout: Duration,
        deadline: Deadline,
    ) -> Result<(), PacketError> {
        match await_events(self.as_fd(), events, deadline) {
            Ok(Readiness::Ready) => Ok(()),
            Ok(Readiness::TimedOut) => Err(PacketError::TimedOut { call, timeout }),
            Err(errno) => Err(PacketError::Os { call: "poll", errno }),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> Self {
        socket.fd
    }
}

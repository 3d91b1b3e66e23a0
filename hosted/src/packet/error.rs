//! Why a packet was not sent, not received or not accepted.
//!
//! Three kinds, which callers treat apart: the connection is over ([`PacketError::Closed`]),
//! this packet is refused but the connection goes on (too long, truncated, malformed), or the
//! operating system said no (an errno, with the call that met it).

use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;

use super::Packet;

/// A failed operation on a [`Socket`](super::Socket) or [`Listener`](super::Listener).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The peer closed the connection, or its process is gone.
    #[error("the peer closed the connection")]
    Closed,
    /// The operation was not possible within its timeout; nothing was sent or taken.
    #[error("{call}: timed out after {timeout:?}")]
    TimedOut {
        /// The system call that had to wait.
        call: &'static str,
        /// The time it was given.
        timeout: Duration,
    },
    /// The encoded value is longer than [`Packet::MAX_LEN`]; nothing was sent.
    #[error("send: value of {len} bytes is over the limit of {}", Packet::MAX_LEN)]
    TooLong {
        /// Length of the encoded value in bytes.
        len: usize,
    },
    /// More than [`Packet::MAX_DESCRIPTORS`] descriptors; nothing was sent.
    #[error("send: {count} descriptors are over the limit of {}", Packet::MAX_DESCRIPTORS)]
    TooManyDescriptors {
        /// How many were given.
        count: usize,
    },
    /// The value could not be written as JSON; nothing was sent.
    #[error("send: value does not encode: {0}")]
    Encode(#[source] serde_json::Error),
    /// The packet is not the JSON that was expected. It is consumed, its descriptors are closed.
    #[error("receive: malformed packet: {0}")]
    Decode(#[source] serde_json::Error),
    /// The peer sent more than [`Packet::MAX_LEN`] bytes. The packet is consumed.
    #[error("receive: packet is over the limit of {} bytes", Packet::MAX_LEN)]
    TruncatedData,
    /// Not all descriptors arrived; those that did are closed. The packet is consumed.
    #[error("receive: descriptors were cut off (is the limit on open files met?)")]
    TruncatedDescriptors,
    /// The peer runs as another user.
    #[error("authorize: peer runs as user {peer_uid}, this process as {own_uid}")]
    ForeignUser {
        /// Effective user id of the peer.
        peer_uid: u32,
        /// Effective user id of this process.
        own_uid: u32,
    },
    /// The descriptor is not an AF_UNIX SOCK_SEQPACKET socket.
    #[error("adopt: not a Unix socket for packets")]
    NotPacketSocket,
    /// No socket could be bound to the path.
    #[error("bind {path}: {errno}")]
    Bind {
        /// The path asked for.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        errno: Errno,
    },
    /// No process listens at the path.
    #[error("connect {path}: {errno}")]
    Connect {
        /// The path asked for.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        errno: Errno,
    },
    /// Any other system call that failed.
    #[error("{call}: {errno}")]
    Os {
        /// The system call.
        call: &'static str,
        /// The kernel's error.
        #[source]
        errno: Errno,
    },
}

impl PacketError {
    /// Names the call for an errno, to be used with `map_err`.
    pub(super) fn os(call: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Os { call, errno }
    }
}

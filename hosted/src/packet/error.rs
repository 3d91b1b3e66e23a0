//! Why a packet was not sent, not received or not accepted.
//!
//! Three kinds, which callers treat apart: the connection is over ([`PacketError::Closed`]),
//! this packet is refused but the connection goes on (too long, truncated, malformed), or the
//! operating system said no (an errno, with the call that met it).

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;

use super::Packet;

/// A failed operation on a [`Socket`](super::Socket) or [`Listener`](super::Listener).
#[derive(Debug)]
#[non_exhaustive]
pub enum PacketError {
    /// The peer closed the connection, or its process is gone.
    Closed,
    /// The operation was not possible within its timeout; nothing was sent or taken.
    TimedOut {
        /// The system call that had to wait.
        call: &'static str,
        /// The time it was given.
        timeout: Duration,
    },
    /// The encoded value is longer than [`Packet::MAX_LEN`]; nothing was sent.
    TooLong {
        /// Length of the encoded value in bytes.
        len: usize,
    },
    /// More than [`Packet::MAX_DESCRIPTORS`] descriptors; nothing was sent.
    TooManyDescriptors {
        /// How many were given.
        count: usize,
    },
    /// The value could not be written as JSON; nothing was sent.
    Encode(serde_json::Error),
    /// The packet is not the JSON that was expected. It is consumed, its descriptors are closed.
    Decode(serde_json::Error),
    /// The peer sent more than [`Packet::MAX_LEN`] bytes. The packet is consumed.
    TruncatedData,
    /// Not all descriptors arrived; those that did are closed. The packet is consumed.
    TruncatedDescriptors,
    /// The peer runs as another user.
    ForeignUser {
        /// Effective user id of the peer.
        peer_uid: u32,
        /// Effective user id of this process.
        own_uid: u32,
    },
    /// The descriptor is not an AF_UNIX SOCK_SEQPACKET socket.
    NotPacketSocket,
    /// No socket could be bound to the path.
    Bind {
        /// The path asked for.
        path: PathBuf,
        /// The kernel's error.
        errno: Errno,
    },
    /// No process listens at the path.
    Connect {
        /// The path asked for.
        path: PathBuf,
        /// The kernel's error.
        errno: Errno,
    },
    /// Any other system call that failed.
    Os {
        /// The system call.
        call: &'static str,
        /// The kernel's error.
        errno: Errno,
    },
}

impl PacketError {
    /// Names the call for an errno, to be used with `map_err`.
    pub(super) fn os(call: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Os { call, errno }
    }
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the peer closed the connection"),
            Self::TimedOut { call, timeout } => write!(f, "{call}: timed out after {timeout:?}"),
            Self::TooLong { len } => {
                write!(f, "send: value of {len} bytes is over the limit of {}", Packet::MAX_LEN)
            }
            Self::TooManyDescriptors { count } => {
                let max = Packet::MAX_DESCRIPTORS;
                write!(f, "send: {count} descriptors are over the limit of {max}")
            }
            Self::Encode(error) => write!(f, "send: value does not encode: {error}"),
            Self::Decode(error) => write!(f, "receive: malformed packet: {error}"),
            Self::TruncatedData => {
                write!(f, "receive: packet is over the limit of {} bytes", Packet::MAX_LEN)
            }
            Self::TruncatedDescriptors => {
                f.write_str("receive: descriptors were cut off (is the limit on open files met?)")
            }
            Self::ForeignUser { peer_uid, own_uid } => {
                write!(f, "authorize: peer runs as user {peer_uid}, this process as {own_uid}")
            }
            Self::NotPacketSocket => f.write_str("adopt: not a Unix socket for packets"),
            Self::Bind { path, errno } => write!(f, "bind {}: {errno}", path.display()),
            Self::Connect { path, errno } => write!(f, "connect {}: {errno}", path.display()),
            Self::Os { call, errno } => write!(f, "{call}: {errno}"),
        }
    }
}

impl Error for PacketError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Encode(error) | Self::Decode(error) => Some(error),
            Self::Bind { errno, .. } | Self::Connect { errno, .. } | Self::Os { errno, .. } => {
                Some(errno)
            }
            Self::Closed
            | Self::TimedOut { .. }
            | Self::TooLong { .. }
            | Self::TooManyDescriptors { .. }
            | Self::TruncatedData
            | Self::TruncatedDescriptors
            | Self::ForeignUser { .. }
            | Self::NotPacketSocket => None,
        }
    }
}

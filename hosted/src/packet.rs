//! Packets between the processes of one host: a JSON value and the descriptors it speaks of.
//!
//! ```text
//!            one packet, whole or not at all (AF_UNIX, SOCK_SEQPACKET)
//!   ┌──────────────────────────────┬───────────────────────────────┐
//!   │ serde_json value, <= 128 KiB │ <= 253 descriptors, SCM_RIGHTS │
//!   └──────────────────────────────┴───────────────────────────────┘
//! ```
//!
//! Bootstrap and the control sockets speak in packets; no data path does. The kernel keeps the
//! packet borders, so there is no framing to lose: a packet that is too long, malformed or cut
//! off costs an error, and the connection goes on with the next one. Received descriptors are
//! close-on-exec from their first moment, and those of a refused packet are closed.
//!
//! What this does not do: it does not authenticate beyond the user id of the peer
//! ([`Socket::authorize_same_user`]), it does not correlate requests with answers, and it does
//! not remove a stale socket file: only the caller knows whether that name is still in use.

mod callers;
mod credentials;
mod error;
mod listener;
mod socket;

pub use callers::{Caller, Callers};
pub use credentials::Credentials;
pub use error::PacketError;
pub use listener::Listener;
pub use socket::Socket;

use serde::Serialize;

/// The limits of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet;

impl Packet {
    /// Longest encoded value in bytes.
    pub const MAX_LEN: usize = 128 * 1024;
    /// Most descriptors in one packet (SCM_MAX_FD of the kernel).
    pub const MAX_DESCRIPTORS: usize = 253;

    /// Encodes a value for [`Socket::try_send`].
    ///
    /// # Errors
    /// [`PacketError::Encode`], [`PacketError::TooLong`].
    pub fn encode<T: Serialize>(value: &T) -> Result<Encoded, PacketError> {
        let bytes = serde_json::to_vec(value).map_err(PacketError::Encode)?;
        if bytes.len() > Self::MAX_LEN {
            return Err(PacketError::TooLong { len: bytes.len() });
        }
        Ok(Encoded(bytes))
    }
}

/// A value that was encoded and may wait for room.
#[derive(Debug)]
pub struct Encoded(Vec<u8>);

#[cfg(test)]
mod tests;

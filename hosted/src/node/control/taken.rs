//! A message that a client has taken from a mailbox.

use serde::{Deserialize, Serialize};

use crate::packet::Packet;
use crate::payload::Payload;

/// A message that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenMessage {
    /// The sender's rank.
    pub from: u16,
    /// The low 16 bits of the sender's incarnation.
    pub incarnation: u16,
    /// The sender's message number, from 0 in each incarnation.
    pub sequence: u32,
    /// The receipt to release it with; the same when the message is delivered again.
    pub receipt: u64,
    /// The message.
    pub payload: Payload,
}

impl TakenMessage {
    /// The most bytes of a packet for the messages of one reply; the rest is for the field names
    /// around them, on the link and on the control socket.
    pub(in crate::node) const REPLY_LEN_MAX: usize = Packet::MAX_LEN - 1024;

    /// The most that a message of `len` bytes takes of a packet.
    pub(in crate::node) const fn encoded_len_max(len: usize) -> usize {
        /// The names of the fields and the largest numbers.
        const NAMES_LEN: usize = 128;
        NAMES_LEN + 4 * len.div_ceil(3)
    }
}

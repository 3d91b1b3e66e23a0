//! Messages that name themselves, so that any alteration shows.

use std::fmt;

use weft_core::ids::{Incarnation, Peer};

/// Bytes of a name at the head of a payload.
const NAME_LEN: usize = 17;
/// The number of a message without a tail has this bit: all such messages are of one length.
pub(super) const ALIKE: u32 = 1 << 31;
/// The longest payload.
pub(super) const PAYLOAD_MAX: u16 = 40;

/// Names a message: the sender and the receiver, each with its incarnation, the channel and a
/// number. A message that is put into a mailbox is for every incarnation of its owner: 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The sender.
    pub from: (Peer, Incarnation),
    /// The receiver.
    pub to: (Peer, Incarnation),
    /// Its number between these two, from 1.
    pub number: u32,
}

impl Name {
    /// Whether it went through a lane.
    #[must_use]
    pub const fn is_of_lane(&self) -> bool {
        self.to.1.0 != 0
    }

    /// The message: its name, and a tail whose length and bytes follow from it.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(usize::from(PAYLOAD_MAX));
        for (peer, incarnation) in [self.from, self.to] {
            payload.extend(peer.0.to_le_bytes());
            payload.extend(incarnation.0.to_le_bytes());
        }
        payload.extend(self.number.to_le_bytes());
        let tail = if self.number & ALIKE == 0 { self.number.wrapping_mul(7) % 24 } else { 0 };
        payload.push(tail as u8);
        payload.extend((0..tail).map(|n| (n * 37 + self.number) as u8));
        payload
    }

    /// The name in `payload`, if that is a message.
    #[must_use]
    pub fn of(payload: &[u8]) -> Option<Self> {
        let head: &[u8; NAME_LEN] = payload.first_chunk()?;
        let short = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let long =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let name = Self {
            from: (Peer(short(0)), Incarnation(long(2))),
            to: (Peer(short(6)), Incarnation(long(8))),
            number: long(12),
        };
        (name.payload() == payload).then_some(name)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from, self.to);
        write!(f, "{}.{}->{}", from.0, from.1, to.0)?;
        if self.is_of_lane() {
            write!(f, ".{} lane", to.1)?;
        }
        write!(f, " #{}", self.number)
    }
}

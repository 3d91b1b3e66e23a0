//! The writing end: seals a slot, posts one write, counts credit.

use core::fmt;

use super::mutants::{FULL_IGNORED, REFUSAL_COUNTED};
use super::{Config, LANE_WORK, MESSAGE_LEN_MAX, Regions, session};
use crate::fabric::{At, CompletionFlags, Fabric, Memory, Op, PostError, Work, WorkId};
use crate::ids::{Incarnation, Peer};
use crate::wire::slot::{Trailer, seal, used};
use crate::wire::{CELL_LEN, Credit};

/// Why a message was not sent. Nothing was written; the caller still has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendError {
    /// The reader has not taken what fills the ring.
    Full,
    /// The message is longer than a slot.
    TooLong,
    /// The fabric did not accept the write.
    Post(PostError),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the lane is full"),
            Self::TooLong => f.write_str("the message is longer than a lane's slot"),
            Self::Post(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SendError {}

/// The writing end of the lane to one reader, between two incarnations.
#[derive(Clone, Copy, Debug, Hash)]
pub struct LaneWriter {
    config: Config,
    me: Peer,
    reader: Peer,
    /// In the reader: what I write.
    written: At,
    /// In me: what the reader writes; its credit comes first.
    credit: At,
    session: u32,
    sent: u64,
    taken: u64,
}

impl LaneWriter {
    /// The lane from this endpoint's incarnation `mine` to the incarnation `theirs` of `reader`.
    #[must_use]
    pub fn new(
        fabric: &impl Fabric,
        config: Config,
        regions: Regions,
        mine: Incarnation,
        (reader, theirs): (Peer, Incarnation),
    ) -> Self {
        let me = fabric.me();
        let written = regions.0.of(me);
        let credit = regions.0.of(reader);
        let session = session(mine, theirs);
        Self { config, me, reader, written, credit, session, sent: 0, taken: 0 }
    }

    /// Sends one message. It stays behind writes that were posted to the reader earlier, and may
    /// pass reads and atomics: what they are after must stay until they have completed.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send(
        &mut self,
        fabric: &mut impl Fabric,
        kind: u16,
        payload: &[u8],
    ) -> Result<(), SendError> {
        if payload.len() > usize::from(self.config.message_len) {
            return Err(SendError::TooLong);
        }
        let copied = |_: &_, slot: &mut [u8]| {
            slot[..payload.len()].copy_from_slice(payload);
            Some((kind, payload.len()))
        };
        self.send_made(fabric, copied).map(drop)
    }

    /// Sends the message that `make` writes into the slot itself, up to [`MESSAGE_LEN_MAX`] bytes,
    /// and of which it returns kind and length; whether there was one. `make` is not called where
    /// there is no room.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send_made<F: Fabric>(
        &mut self,
        fabric: &mut F,
        make: impl FnOnce(&F, &mut [u8]) -> Option<(u16, usize)>,
    ) -> Result<bool, SendError> {
        if !self.has_room(fabric) && !FULL_IGNORED.is_planted() {
            return Err(SendError::Full);
        }
        let mut slot = [0; used(MESSAGE_LEN_MAX as usize)];
        let place = self.config.slot(self.written, self.session, self.sent);
        let room = &mut slot[..usize::from(MESSAGE_LEN_MAX)];
        let Some((kind, len)) = make(fabric, room) else { return Ok(false) };
        let len = match u16::try_from(len) {
            Ok(len) if len <= self.config.message_len => len,
            Ok(_) | Err(_) => return Err(SendError::TooLong),
        };
        let bytes = &mut slot[..used(len.into())];
        // What `make` wrote behind its message is no part of it.
        bytes[len.into()..].fill(0);
        Trailer { len, sender: self.me.0, kind, ..Trailer::default() }.write(bytes);
        #[expect(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
        seal(bytes, place.stamp, 1, self.sent as u32, |bytes| fabric.crc32c(bytes));
        let to = place.start(len.into());
        // A message does not wait behind a long read. Those that let the reader change what a read
        // is after are sent once it has completed: a group's Ack and Report, BUFFER_IDLE of a
        // rendezvous, whose CANCEL comes before its first read. The DIR net reads nothing.
        let flags = CompletionFlags::QUIET | CompletionFlags::WAKE | CompletionFlags::APART;
        let id = WorkId::new(LANE_WORK, u64::from(self.reader.0));
        let posted = fabric.post(self.reader, Work { id, op: Op::Write { to, bytes }, flags });
        if !REFUSAL_COUNTED.is_planted() {
            posted.map_err(SendError::Post)?;
        }
        self.sent += 1;
        Ok(true)
    }

    /// Whether the ring has a free slot, asking for credit only when it seems to have none.
    fn has_room(&mut self, fabric: &impl Fabric) -> bool {
        let slots = u64::from(self.config.slots);
        if self.sent - self.taken < slots {
            return true;
        }
        let mut copy = [0; CELL_LEN];
        fabric.memory().copy_out(self.credit.region, self.credit.offset, &mut copy);
        let credit = Credit::decode(&copy, |bytes| fabric.crc32c(bytes));
        // A broken credit was being written; an earlier pair's or an impossible one says nothing.
        if let Some(Credit { session, taken }) = credit
            && session == self.session
            && (self.taken..=self.sent).contains(&taken)
        {
            self.taken = taken;
        }
        self.sent - self.taken < slots
    }
}

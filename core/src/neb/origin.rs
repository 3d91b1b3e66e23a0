//! The origin: writes own messages from the own ring into the others' (N-1, N-11).
//!
//! A message is sealed in the own ring first and stays there until all members have delivered it.
//! Every peer has a cursor; one write sends all consecutive slots from the cursor to the end, so a
//! batch costs as much as one message. One write in [`SIGNAL_EVERY`](super::SIGNAL_EVERY) messages
//! reports success, for itself and all before it (F-1, F-2).

use super::map::Map;
use super::work::{Errand, seq_of};
use crate::fabric::{CompletionFlags, Fabric, Memory, Op, PostError, Work};
use crate::ids::{Peer, PeerSet};
use crate::wire::broadcast::{HEADER_LEN, Header, seal};

/// The own messages, and how many were sent to each peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin<const PEERS: usize> {
    me: Peer,
    /// The last message sealed.
    last: u64,
    /// For each peer, the last message whose write was posted.
    posted: [u64; PEERS],
    /// The other members to whom messages were not sent: a poll with nothing to send looks here.
    owed: PeerSet,
    /// For each peer, the last message whose write has certainly ended (F-10).
    written: [u64; PEERS],
}

impl<const PEERS: usize> Origin<PEERS> {
    /// The origin that continues after `delivered` own messages and those that an earlier
    /// incarnation had sealed after them: a member that may have received one must receive the same
    /// again.
    pub(super) fn attach(fabric: &impl Fabric, map: &Map, delivered: u64, buf: &mut [u8]) -> Self {
        let me = fabric.me();
        let mut last = delivered;
        while last - delivered < u64::from(map.config.slots())
            && is_sealed(fabric, map, last + 1, buf)
        {
            last += 1;
        }
        // Older messages may still be on their way to a member.
        Self { me, last, posted: [last; PEERS], owed: PeerSet::EMPTY, written: [last; PEERS] }
    }

    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// The last message whose write to `peer` has certainly ended.
    pub(super) const fn written(&self, peer: Peer) -> u64 {
        self.written[peer.index()]
    }

    /// All messages after `shown` are sent to `peer` again: its incarnation, or the pair, is new.
    pub(super) fn restart(&mut self, peer: Peer, shown: u64) {
        self.written[peer.index()] = shown.min(self.last);
        self.note_posted(peer, shown.min(self.last));
    }

    /// Seals the next message in the own ring; no other member sees it before [`Self::post`].
    ///
    /// The caller has checked that the slot is free and the payload fits.
    pub(super) fn stage(
        &mut self,
        fabric: &impl Fabric,
        map: &Map,
        (tag, payload): (u64, &[u8]),
        buf: &mut [u8],
        sign: impl FnOnce(&Header, &mut [u8]),
    ) -> u64 {
        let seq = self.last + 1;
        #[expect(clippy::cast_possible_truncation, reason = "checked by the caller")]
        let len = payload.len() as u16;
        let stamp = map.config.stamp(self.me, seq);
        let header = Header { stamp, len, tag, form: map.config.form() };
        let used = header.used();
        header.write(buf);
        buf[HEADER_LEN..HEADER_LEN + payload.len()].copy_from_slice(payload);
        sign(&header, buf);
        seal(&mut buf[..used], |bytes| fabric.crc32c(bytes));
        let padded = used.next_multiple_of(8);
        buf[used..padded].fill(0);
        let at = map.bcast(self.me, seq);
        fabric.memory().copy_in(at.region, at.offset + 8, &buf[8..padded]);
        fabric.memory().store(at.region, at.offset, seq);
        self.last = seq;
        let all = PeerSet::first(usize::from(map.config.peers()));
        self.owed = all.without(PeerSet::only(self.me));
        seq
    }

    /// The members to whom messages were not sent.
    pub(super) const fn owed(&self) -> PeerSet {
        self.owed
    }

    /// The last message whose write to `peer` was posted is `last`.
    fn note_posted(&mut self, peer: Peer, last: u64) {
        self.posted[peer.index()] = last;
        if last < self.last {
            self.owed.insert(peer);
        } else {
            self.owed.remove(peer);
        }
    }

    /// Posts one write of the next messages for `peer`.
    pub(super) fn post(
        &mut self,
        fabric: &mut impl Fabric,
        map: &Map,
        peer: Peer,
    ) -> Result<(), PostError> {
        let first = self.posted[peer.index()] + 1;
        let every = u64::from(map.config.signal_every());
        // Up to the end of the ring, and never past a message that reports.
        let run_end = first.next_multiple_of(every).min(self.last);
        let ring_end = first + u64::from(map.config.slots() - map.config.index(first)) - 1;
        let last = run_end.min(ring_end);
        let at = map.bcast(self.me, first);
        #[expect(clippy::cast_possible_truncation, reason = "at most 16 slots")]
        let before_last = (last - first) as u32 * map.config.stride();
        let len = before_last + self.used(fabric, map, last);
        let reports = last.is_multiple_of(every);
        let quiet = if reports { CompletionFlags::empty() } else { CompletionFlags::QUIET };
        // A message may pass earlier reads: those are of the peer's `replay` and `progress`, which
        // the peer alone writes, so they can show no more than that it has the message already. A
        // vote is not drawn from a newer slot (N-5), progress only grows, and what may be written
        // was decided by reads that have completed (N-9). A new pair has no earlier work.
        let flags = quiet | CompletionFlags::WAKE | CompletionFlags::APART;
        let op = Op::WriteFrom { to: at, from: at, len };
        fabric.post(peer, Work { id: Errand::Write { last }.id(), op, flags })?;
        self.note_posted(peer, last);
        Ok(())
    }

    /// All writes to `peer` up to the one named `last` have ended.
    pub(super) fn handle_written(&mut self, peer: Peer, last: u64) {
        let last = seq_of(last, self.posted[peer.index()]);
        let written = &mut self.written[peer.index()];
        *written = last.max(*written);
    }

    /// Bytes of the sealed message `seq`, to the next word.
    fn used(&self, fabric: &impl Fabric, map: &Map, seq: u64) -> u32 {
        let at = map.bcast(self.me, seq);
        let mut head = [0; HEADER_LEN];
        fabric.memory().copy_out(at.region, at.offset, &mut head);
        // No other member writes this memory; if it is damaged, the peer sees a bad checksum.
        let used = Header::peek(&head).map_or(HEADER_LEN, |header| header.used());
        #[expect(clippy::cast_possible_truncation, reason = "at most a slot, taken below")]
        let used = used.next_multiple_of(8) as u32;
        used.min(map.config.stride())
    }
}

fn is_sealed(fabric: &impl Fabric, map: &Map, seq: u64, buf: &mut [u8]) -> bool {
    let at = map.bcast(fabric.me(), seq);
    if fabric.memory().load(at.region, at.offset) != seq {
        return false;
    }
    let slot = &mut buf[..map.config.stride() as usize];
    fabric.memory().copy_out(at.region, at.offset, slot);
    let header = Header::open(slot, |bytes| fabric.crc32c(bytes));
    header.is_ok_and(|header| header.stamp == map.config.stamp(fabric.me(), seq))
}

//! The replayer: copies what an origin wrote, exposes it, reads what the others expose (N-2 to
//! N-4).

use super::super::ballot::Ballot;
use super::super::exposed::{Exposed, Extent};
use super::super::mutants::{REUSE_EARLY, SKIP_CHECKSUM};
use super::super::stream::Found;
use super::Neb;
use crate::fabric::{Fabric, Memory, PostError};
use crate::ids::Peer;
use crate::wire::broadcast::{HEADER_LEN, Header};

impl<const PEERS: usize, const DEPTH: usize> Neb<PEERS, DEPTH> {
    /// Whether the replay slot of the next message of `origin` may be used (N-9).
    pub(super) fn may_expose(&mut self, origin: Peer) -> bool {
        let stream = &self.streams[origin.index()];
        let next = stream.next;
        let Some(reused) = next.checked_sub(u64::from(self.map.config.slots())) else {
            return true;
        };
        let settled = self.window.settled(&self.members, origin, stream.delivered);
        if settled >= reused || REUSE_EARLY.is_planted() {
            return true;
        }
        self.window.note_head(&self.members, origin, next, self.map.config.lag());
        false
    }

    /// The number in the slot of the next message of `origin`. Only a hint; the copy decides.
    #[inline]
    pub(super) fn look(&self, fabric: &impl Fabric, origin: Peer) -> u64 {
        let at = self.map.bcast(origin, self.streams[origin.index()].next);
        fabric.memory().load(at.region, at.offset)
    }

    /// Copies and exposes the next message of `origin` and posts its reads, if it has arrived (N-2
    /// to N-4): `seen` is the number in its slot.
    pub(super) fn accept(&mut self, fabric: &mut impl Fabric, origin: Peer, seen: u64) -> Found {
        let stream = &self.streams[origin.index()];
        let next = stream.next;
        if seen != next {
            let is_earlier = stream.is_earlier(&self.map, seen);
            return if is_earlier { Found::Earlier } else { Found::Unfit };
        }
        if !self.streams[origin.index()].has_place(&self.map) || !self.may_expose(origin) {
            return Found::Earlier;
        }
        let Some(header) = self.copy_in(fabric, origin, next) else { return Found::Unfit };
        let message = (self.map.config.stamp(origin, next), header.used());
        let exposed = Exposed::seal(fabric, &self.map, message, self.own.0.clear());
        self.own.0.note(&exposed);
        let stream = &mut self.streams[origin.index()];
        *stream.ballot_mut(&self.map, next) = Ballot::on(exposed);
        stream.advance();
        self.window.note_head(&self.members, origin, next, self.map.config.lag());
        self.ask_about(fabric, origin, next);
        Found::Message
    }

    /// The origin's slot, copied once and checked: the origin can rewrite it at any time.
    pub(super) fn copy_in(
        &mut self,
        fabric: &impl Fabric,
        origin: Peer,
        seq: u64,
    ) -> Option<Header> {
        let (map, memory) = (&self.map, fabric.memory());
        let at = map.bcast(origin, seq);
        let (head, body) = self.own.0.clear().split_at_mut(HEADER_LEN);
        memory.copy_out(at.region, at.offset, head);
        let header = Header::peek(head).ok()?;
        let fits = header.len <= map.config.message_len() && header.form == map.config.form();
        if header.stamp != map.config.stamp(origin, seq) || !fits {
            return None;
        }
        let rest = header.used() - HEADER_LEN;
        #[expect(clippy::cast_possible_truncation, reason = "a header's length")]
        memory.copy_out(at.region, at.offset + HEADER_LEN as u32, &mut body[..rest]);
        let opened = Header::open(self.own.0.clear(), |bytes| fabric.crc32c(bytes));
        (opened.is_ok() || SKIP_CHECKSUM.is_planted()).then_some(header)
    }

    /// Posts the reads that are due for all pending messages of `origin`.
    pub(super) fn ask(&mut self, fabric: &mut impl Fabric, origin: Peer) {
        self.streams[origin.index()].asks = false;
        for seq in self.streams[origin.index()].pending() {
            self.ask_about(fabric, origin, seq);
        }
    }

    /// Posts the reads that are due for one message.
    pub(super) fn ask_about(&mut self, fabric: &mut impl Fabric, origin: Peer, seq: u64) {
        let voters = self.members.voters(origin);
        let ballot = self.streams[origin.index()].ballot(&self.map, seq);
        for replayer in ballot.to_ask(voters).without(self.unreachable()).iter() {
            let stream = &mut self.streams[origin.index()];
            let ballot = stream.ballot_mut(&self.map, seq);
            let extent = if ballot.attempts == 0 { Extent::Used } else { Extent::Whole };
            let Some(exposed) = &ballot.exposed else { return };
            match exposed.post_read(fabric, &self.map, replayer, extent) {
                Ok(()) => {
                    ballot.reading.insert(replayer);
                    self.counters.0.reads += 1;
                    self.counters.0.reads_again += u64::from(extent == Extent::Whole);
                }
                Err(error) => {
                    stream.asks |= error == PostError::Full;
                    self.note_refusal(replayer, error);
                }
            }
        }
    }
}

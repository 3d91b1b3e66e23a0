//! What the caller takes: conflicts, deliveries, and delivered messages that are still in memory.

use super::super::outcome::{Conflict, Message, Outcome};
use super::Neb;
use crate::fabric::{Fabric, Memory};
use crate::ids::Peer;
use crate::wire::broadcast::Header;

impl<const PEERS: usize, const DEPTH: usize> Neb<PEERS, DEPTH> {
    /// The next outcome, if there is one. Each is returned once.
    pub fn take(&mut self, fabric: &impl Fabric) -> Option<Outcome<'_>> {
        if let Some(conflict) = self.take_conflict() {
            return Some(Outcome::Conflict(conflict));
        }
        let (peers, turn) = (self.map.config.peers(), self.turn);
        let ready = (0..peers).map(|n| Peer((turn + n) % peers));
        let ready = ready.into_iter().find(|origin| self.is_deliverable(*origin))?;
        self.turn = (ready.0 + 1) % peers;
        self.take_from(fabric, ready).map(Outcome::Delivered)
    }

    /// The next conflict of any origin. Each is returned once.
    pub fn take_conflict(&mut self) -> Option<Conflict> {
        let origins = (0..).map(Peer).zip(&mut self.streams);
        let mut origins = origins.take(usize::from(self.map.config.peers()));
        origins.find_map(|(origin, stream)| {
            let (seq, replayer) = stream.take_conflict(&self.map)?;
            Some(Conflict { origin, seq, replayer })
        })
    }

    /// Whether [`Self::take_from`] would return a message of `origin`: the last look before the
    /// caller sleeps.
    #[must_use]
    pub fn has_message(&self, origin: Peer) -> bool {
        origin.0 < self.map.config.peers() && self.is_deliverable(origin)
    }

    /// The next message of `origin`, for a caller that chooses the origin.
    pub fn take_from(&mut self, fabric: &impl Fabric, origin: Peer) -> Option<Message<'_>> {
        if self.has_message(origin) { self.deliver(fabric, origin) } else { None }
    }

    /// Message `seq` of `origin`, which was delivered before, in this incarnation or an earlier
    /// one: for a caller that lost a message it had taken. It is kept until a ring of later
    /// messages was delivered, less the depth for another origin's; then the result is `None`.
    pub fn delivered(
        &mut self,
        fabric: &impl Fabric,
        origin: Peer,
        seq: u64,
    ) -> Option<Message<'_>> {
        let map = self.map;
        if origin.0 >= map.config.peers() || seq == 0 {
            return None;
        }
        if seq > self.streams.get(origin.index())?.delivered {
            return None;
        }
        let is_mine = origin == self.members.me;
        let at = if is_mine { map.bcast(origin, seq) } else { map.replay(origin, seq) };
        let slot = &mut self.own.0.clear()[..map.config.stride() as usize];
        fabric.memory().copy_out(at.region, at.offset, slot);
        let header = Header::open(slot, |bytes| fabric.crc32c(bytes)).ok()?;
        let payload = slot.get(header.payload())?;
        let is_it = header.stamp == map.config.stamp(origin, seq);
        is_it.then_some(Message { origin, seq, tag: header.tag, payload })
    }
}

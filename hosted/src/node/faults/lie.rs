//! A fabric that equivocates for its owner: what goes to some peers differs from what others get.
//!
//! ```text
//!   broadcast "…" ──▶ Lying ──┬── to most peers    the slot as the origin sealed it
//!                             └── to the misled    another payload under the same number,
//!                                                  with a valid signature and checksum
//! ```
//!
//! It exists for one call, around the fabric of a component that was ordered to equivocate
//! (`weft inject equivocate`); no type of a node contains it. Everything except the writes of that
//! one slot to the misled peers goes through unaltered.

use weft_core::fabric::{At, Completion, Fabric, FenceError, Memory, Op, PostError, Work};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::Instant;
use weft_core::wire::broadcast::{HEADER_LEN, Header, seal};

/// The tag of an injected equivocation, for the applications that receive it.
pub(in crate::node) const LIE_TAG: u64 = u64::MAX;

/// The longest slot that it alters.
const SLOT_LEN_MAX: usize = 256;

/// `F`, except for one slot and the peers to mislead.
#[derive(Debug)]
pub(in crate::node) struct Lying<'a, F, S> {
    honest: &'a mut F,
    /// Signs the altered slot, where slots are signed.
    sign: S,
    slot: At,
    victims: PeerSet,
    misled: PeerSet,
}

impl<'a, F: Fabric, S: Fn(&mut [u8])> Lying<'a, F, S> {
    /// Alters what is written from and to `slot` for `victims`, and has the altered slot signed.
    pub(in crate::node) const fn new(
        honest: &'a mut F,
        (slot, victims): (At, PeerSet),
        sign: S,
    ) -> Self {
        Self { honest, sign, slot, victims, misled: PeerSet::EMPTY }
    }

    /// The peers that received the altered slot.
    pub(in crate::node) const fn misled(&self) -> PeerSet {
        self.misled
    }

    /// The slot with another payload; none when it holds no message that is short enough.
    fn lie(&self, len: u32) -> Option<[u8; SLOT_LEN_MAX]> {
        let mut slot = [0; SLOT_LEN_MAX];
        let copy = slot.get_mut(..len as usize)?;
        self.honest.memory().copy_out(self.slot.region, self.slot.offset, copy);
        let header = Header::peek(copy).ok()?;
        let first = copy.get_mut(HEADER_LEN)?;
        *first = !*first;
        let lie = copy.get_mut(..header.used())?;
        (self.sign)(lie);
        seal(lie, |bytes| self.honest.crc32c(bytes));
        Some(slot)
    }
}

impl<F: Fabric, S: Fn(&mut [u8])> Fabric for Lying<'_, F, S> {
    type Memory = F::Memory;

    weft_core::delegate_fabric!(self => self.honest);

    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError> {
        let Work { id, op, flags } = work;
        match op {
            Op::WriteFrom { to, from, len } if from == self.slot && self.victims.contains(peer) => {
                let Some(lie) = self.lie(len) else { return self.honest.post(peer, work) };
                let bytes = &lie[..len as usize];
                self.honest.post(peer, Work { id, op: Op::Write { to, bytes }, flags })?;
                self.misled.insert(peer);
                Ok(())
            }
            Op::Write { .. }
            | Op::WriteFrom { .. }
            | Op::Read { .. }
            | Op::FetchAdd { .. }
            | Op::CompareSwap { .. } => self.honest.post(peer, work),
        }
    }

    fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        self.honest.poll(now, done)
    }

    fn memory(&self) -> &Self::Memory {
        self.honest.memory()
    }

    fn fence(&mut self, peer: Peer) -> Result<(), FenceError> {
        self.honest.fence(peer)
    }

    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError> {
        self.honest.admit(peer, incarnation)
    }

    fn crc32c(&self, bytes: &[u8]) -> u32 {
        self.honest.crc32c(bytes)
    }
}

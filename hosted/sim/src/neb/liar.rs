//! The writes of a liar: anything within its rights, some of it well formed.
//!
//! | it | by |
//! |---|---|
//! | sends different messages to different members, and rewrites them | [`Broadcasts::sent`] |
//! | exposes another message, or none, or one that its origin did not sign | [`Broadcasts::shown`] |
//! | names other origins, and signs as itself in the replay of another | [`Broadcasts::slot`] |
//! | alters the pass, uses any number, puts a message where another belongs | both |
//! | repeats a message that an origin has signed, altered in one of these ways | [`Broadcasts::repeated`] |
//! | lies about its progress in some runs; in the others it delays nothing | [`Broadcasts::show`] |
//! | shows that it counts epochs that have not begun | [`Broadcasts::show`] |
//!
//! Liars know one another's keys.

use weft_core::fabric::At;
use weft_core::ids::{Incarnation, Peer};
use weft_core::neb::number_before;
use weft_core::wire::broadcast::{Form, HEADER_LEN, Header, Stamp, seal, seq_of};
use weft_core::wire::{CELL_LEN, Progress, crc32c};

use super::Broadcasts;
use crate::draws::Draws;
use crate::protocol::Forgery;
use crate::world::World;

impl Broadcasts {
    /// A write of the liar into a ring of another member, or a message that it exposes itself.
    pub(super) fn lie(&self, draws: &mut Draws, liar: Peer, world: &World) -> Option<Forgery> {
        self.show(draws, liar, world);
        if draws.chance(1, 2) {
            return Some(self.sent(draws, liar));
        }
        let origin = self.any_origin(draws);
        let seq = self.number(draws);
        let bytes = match draws.below(4) {
            0 => vec![0; self.config.stride() as usize],
            1 => self.slot(draws, (origin, liar), seq),
            _ => self.repeated(draws, (origin, liar), world).unwrap_or_default(),
        };
        // In the place that its header names, or anywhere else.
        let place = if draws.chance(1, 4) || bytes.is_empty() { seq } else { seq_of(&bytes) };
        let origin = if draws.chance(1, 6) { self.any_origin(draws) } else { origin };
        world.memory(liar).poke(self.config.exposed_at(&self.regions, origin, place), &bytes);
        None
    }

    fn any_origin(&self, draws: &mut Draws) -> Peer {
        Peer(draws.below(u64::from(self.config.peers())) as u16)
    }

    /// A number near those in use, or any other.
    fn number(&self, draws: &mut Draws) -> u64 {
        if draws.chance(1, 12) {
            let shift = draws.below(64);
            return draws.word() >> shift;
        }
        self.first(draws) + draws.between(1, 4.max(2 * u64::from(self.config.slots())))
    }

    /// The number before the first of an epoch that a member has in this run.
    fn first(&self, draws: &mut Draws) -> u64 {
        let is_later = !self.mortal().is_empty() && draws.chance(1, 3);
        if is_later { number_before(Incarnation(2)).unwrap_or(self.base) } else { self.base }
    }

    /// One of its next messages, possibly rewritten at once; nearly always in its own ring, since
    /// it has no right to write to others.
    fn sent(&self, draws: &mut Draws, liar: Peer) -> Forgery {
        let origin = if draws.chance(1, 24) { self.any_origin(draws) } else { liar };
        let seq = if draws.chance(1, 12) {
            self.number(draws)
        } else {
            self.first(draws) + draws.between(1, 4)
        };
        let at = self.config.written_at(&self.regions, origin, seq);
        let bytes = self.slot(draws, (origin, liar), seq);
        let then = draws.chance(1, 3).then(|| self.slot(draws, (origin, liar), seq));
        Forgery { at, bytes, then }
    }

    /// A well-formed slot of `origin` with one of three payloads, possibly with a flipped bit. A
    /// liar has the keys of liars only and does not always sign; a slot that it signs as itself may
    /// also name itself as origin.
    fn slot(&self, draws: &mut Draws, (origin, liar): (Peer, Peer), seq: u64) -> Vec<u8> {
        let payload = [draws.below(3) as u8; 20];
        let signer = if self.liars.contains(origin) { origin } else { liar };
        let named = if draws.chance(1, 6) { liar } else { origin };
        let len = draws.pick(&[1, 20]);
        let mut slot = self.sealed((named, signer), seq, &payload[..len]);
        if self.is_signed() && draws.chance(1, 3) {
            unsign(&mut slot);
        }
        if draws.chance(1, 12) {
            alter_pass(draws, &mut slot);
        }
        if draws.chance(1, 8) {
            let at = draws.index(slot.len());
            slot[at] ^= 1 << draws.below(8);
        }
        slot
    }

    /// A message that the liar received from `origin`, or exposes itself: under another number, on
    /// another pass, or unaltered. The signature is the origin's own. `None` if it received none.
    fn repeated(
        &self,
        draws: &mut Draws,
        (origin, liar): (Peer, Peer),
        world: &World,
    ) -> Option<Vec<u8>> {
        let said = (1..=u64::from(self.config.slots())).map(|seq| {
            let at = self.config.written_at(&self.regions, origin, seq);
            world.memory(liar).peek(at, self.config.stride() as usize)
        });
        let mut said: Vec<Vec<u8>> = said.filter(|slot| seq_of(slot) != 0).collect();
        said.sort_by_key(|slot| seq_of(slot));
        let newest = said.len().checked_sub(1)?;
        let which = if draws.chance(1, 2) { newest } else { draws.index(said.len()) };
        let mut slot = said.swap_remove(which);
        match draws.below(3) {
            0 => alter_pass(draws, &mut slot),
            1 => {
                // The next one, possibly before it can know its content.
                let next = seq_of(&slot).wrapping_add(1);
                let seq = if draws.chance(1, 2) { next } else { self.number(draws) };
                let header = Header::open(&mut slot, crc32c).ok()?;
                restamp(&mut slot, self.config.stamp(header.stamp.origin, seq));
            }
            _ => {}
        }
        Some(slot)
    }

    /// Progress: that of the slowest correct member, so that this liar delays nothing; or any
    /// other.
    fn show(&self, draws: &mut Draws, liar: Peer, world: &World) {
        for origin in (0..self.config.peers()).map(Peer) {
            let delivered = if self.boasts && draws.chance(1, 4) {
                self.number(draws)
            } else {
                let correct = (0..self.config.peers()).map(Peer);
                let correct = correct.filter(|peer| !self.liars.contains(*peer));
                let shown = correct.map(|peer| self.progress(world, peer, origin));
                shown.min().unwrap_or(self.base)
            };
            let cell = Progress { origin, delivered }.encode(crc32c);
            let at = self.config.shown_at(&self.regions, origin, delivered);
            world.memory(liar).poke(at, &cell);
        }
        for member in self.mortal().iter().filter(|member| *member != liar) {
            if draws.chance(1, 2) {
                let (at, cell) = self.counted(member);
                world.memory(liar).poke(at, &cell);
            }
        }
    }

    /// What shows that the second epoch of `member` is counted.
    pub(super) fn counted(&self, member: Peer) -> (At, [u8; CELL_LEN]) {
        let epoch = Incarnation(2);
        let (at, origin) = self.config.counted_at(&self.regions, member, epoch);
        (at, Progress { origin, delivered: epoch.0.into() }.encode(crc32c))
    }

    /// The progress for `origin` that `peer` shows.
    fn progress(&self, world: &World, peer: Peer, origin: Peer) -> u64 {
        let cells = [0, 1].map(|turn| {
            let at = self.config.shown_at(&self.regions, origin, turn);
            let cell: [u8; CELL_LEN] = world.memory(peer).peek(at, CELL_LEN).try_into().ok()?;
            Progress::decode(&cell, origin, crc32c)
        });
        cells.iter().flatten().map(|shown| shown.delivered).max().unwrap_or(0)
    }

    /// A slot of `origin`, signed by `signer` where slots are signed.
    pub(super) fn sealed(
        &self,
        (origin, signer): (Peer, Peer),
        seq: u64,
        payload: &[u8],
    ) -> Vec<u8> {
        let stamp = self.config.stamp(origin, seq);
        let len = payload.len() as u16;
        let header = Header { stamp, len, tag: 0, form: self.config.form() };
        let mut slot = vec![0; header.used().next_multiple_of(8)];
        header.write(&mut slot);
        slot[HEADER_LEN..HEADER_LEN + payload.len()].copy_from_slice(payload);
        if header.form == Form::Signed {
            self.keys(signer).sign_slot(&mut slot).expect("it has room for a signature");
        }
        seal(&mut slot[..header.used()], crc32c);
        slot
    }
}

/// Makes the signature of a slot invalid and its checksum valid.
pub(super) fn unsign(slot: &mut [u8]) {
    let header = Header::peek(slot).expect("a slot has a header");
    slot[header.payload().end] ^= 1;
    seal(&mut slot[..header.used()], crc32c);
}

/// Replaces the stamp of a slot and makes its checksum valid. Leaves other bytes unchanged.
pub(super) fn restamp(slot: &mut [u8], stamp: Stamp) {
    let Ok(header) = Header::peek(slot) else { return };
    if header.used() <= slot.len() {
        Header { stamp, ..header }.write(slot);
        seal(&mut slot[..header.used()], crc32c);
    }
}

/// A pass before or after that of its number.
fn alter_pass(draws: &mut Draws, slot: &mut [u8]) {
    let Ok(Header { stamp, .. }) = Header::peek(slot) else { return };
    let by = draws.pick(&[1, u32::MAX]);
    restamp(slot, Stamp { generation: stamp.generation.wrapping_add(by), ..stamp });
}

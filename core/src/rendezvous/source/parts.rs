//! Values that no memory of the fabric holds, part by part (RZ-3).
//!
//! ```text
//!   TENSOR_REQUEST(PART, offer) ──▶ waiter ── polled ──▶ its caller copies the bytes ──▶ Lent
//! ```
//!
//! A part is lent to that request alone, and dropped with it: the value stays where it is. Parts
//! lie in places of their own, so that only parts wait for parts.

use super::super::config::PLACES_MAX;
use super::super::key::Key;
use super::super::outcome::{Draft, OfferError, PartWanted, Place};
use super::{Loan, Name, Offer, Phase, Source, Waiter};
use crate::fabric::{At, Fabric, Memory};
use crate::ids::Peer;
use crate::time::{Duration, Instant};
use crate::wire::rendezvous::{Handle, Status};

/// The parts that are lent, and those that are wanted.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Lent {
    /// A bit for each place that is taken.
    places: u64,
    /// One may be wanted.
    any_wanted: bool,
    turn: Turn,
}

/// The slot of the next waiter that is looked at. It decides no promise, so that two states that
/// differ in nothing else are one to the explorer.
#[derive(Clone, Copy, Debug, Default)]
struct Turn(u16);

impl core::hash::Hash for Turn {
    fn hash<H: core::hash::Hasher>(&self, _state: &mut H) {}
}

const _: () = assert!(PLACES_MAX as u32 == u64::BITS, "a bit for each place");

impl Lent {
    /// How many are lent.
    pub(super) const fn count(self) -> u16 {
        self.places.count_ones() as u16
    }

    const fn take(&mut self, places: u8) -> Option<u8> {
        let place = self.places.trailing_ones() as u8;
        if place >= places {
            return None;
        }
        self.places |= 1 << place;
        Some(place)
    }

    pub(super) const fn give_back(&mut self, place: u8) {
        self.places &= !(1 << place);
    }
}

impl<const PEERS: usize, const SLOTS: usize> Source<PEERS, SLOTS> {
    /// A request of `from` for a part of what it is lent as `offer`.
    pub(in super::super) fn handle_part_request(
        &mut self,
        now: Instant,
        (from, request): (Peer, Handle),
        (offer, key, place): (Handle, Key, Place),
        (wait, warm): (Duration, Option<Loan>),
    ) {
        let parts = self.config.sizes().parts;
        let is_lent = |it: &Offer| {
            // The key names its destination, which is `from`.
            let is_name = it.name.as_ref().is_some_and(|name| name.key == key);
            let is_part = parts.count(it.bytes) == Some(place.parts);
            matches!(it.phase, Phase::Lent { .. }) && is_name && is_part && it.token.is_some()
        };
        if !self.offers.get(offer).is_ok_and(is_lent) {
            return self.refuse((from, request), Status::Cancelled);
        }
        let (name, part_of) = (Name { key, place }, Some(offer));
        let (expires_at, order) = (now.after(wait), self.next_order());
        self.wait(Waiter { from, request, name, part_of, warm, expires_at, order });
        self.parts.any_wanted = true;
    }

    /// The next part that is wanted; none at the end of the list, which then begins again.
    pub(in super::super) fn poll_wanted(&mut self) -> Option<PartWanted> {
        if !self.parts.any_wanted {
            return None;
        }
        let Turn(next) = self.parts.turn;
        let mut wanted = self.waiters.iter().filter(|(_, waiter)| waiter.part_of.is_some());
        let Some((slot, waiter)) = wanted.find(|(slot, _)| *slot >= next) else {
            self.parts.any_wanted = next > 0;
            self.parts.turn = Turn(0);
            return None;
        };
        self.parts.turn = Turn(slot + 1);
        let value = waiter.part_of.and_then(|offer| self.offers.get(offer).ok())?;
        let parts = self.config.sizes().parts;
        let (offset, bytes) = parts.range(value.bytes, waiter.name.place.part);
        let waiter = self.waiters.handle_at(slot)?;
        Some(PartWanted { waiter, token: value.token?, offset, bytes })
    }

    /// Lends `bytes` to the request that waits for them; does nothing if it does not any more.
    pub(in super::super) fn lend_part(
        &mut self,
        fabric: &mut impl Fabric,
        wanted: &PartWanted,
        bytes: &[u8],
    ) -> Result<(), OfferError> {
        let Ok(waiter) = self.waiters.get(wanted.waiter) else { return Ok(()) };
        let value = waiter.part_of.and_then(|offer| self.offers.get(offer).ok());
        let Some(shape) = value.map(|value| value.shape) else { return Ok(()) };
        if bytes.len() as u64 != wanted.bytes {
            return Err(OfferError::BadShape);
        }
        let parts = self.config.sizes().parts;
        let place = self.parts.take(parts.places).ok_or(OfferError::NoSpace)?;
        let offset = self.pool.capacity() + u32::from(place) * parts.len;
        let at = At { region: self.regions.offers, offset };
        let inserted = self.insert((shape, wanted.bytes), (None, Some(place)), offset);
        let waiter = self.waiters.remove_at(wanted.waiter.slot);
        // There is a slot for each place, and the waiter was there above.
        let (Some(offer), Some(waiter)) = (inserted, waiter) else { return Ok(()) };
        fabric.memory().copy_in(at.region, at.offset, bytes);
        let Name { key, place } = &waiter.name;
        self.fill(fabric, &Draft { offer, at, bytes: wanted.bytes }, (key, *place));
        self.lend(offer.slot, (waiter.from, waiter.request), waiter.warm);
        Ok(())
    }

    /// A value is lent no more: its parts are not wanted.
    pub(super) fn drop_wanted(&mut self, slot: u16) {
        let value = self.offers.handle_at(slot);
        if self.parts.any_wanted && self.offers.at(slot).is_some_and(|it| it.token.is_some()) {
            self.drop_waiters(|waiter| waiter.part_of.is_some() && waiter.part_of == value);
        }
    }
}

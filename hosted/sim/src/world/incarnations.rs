//! Incarnations, admission and fences of peers, and cuts.

use weft_core::fabric::{Failure, FenceError};
use weft_core::ids::{Incarnation, Peer};

use super::{DueEvent, World};
use crate::flight::FlightLoss;

/// For how long the memory of a dead peer may still be reached, at most.
const AFTERLIFE_NS: u64 = 200_000;

impl World {
    /// Whether `peer` is alive.
    #[must_use]
    pub fn is_alive(&self, peer: Peer) -> bool {
        self.places[peer.index()].alive
    }

    /// The present or last incarnation of `peer`; 0 before the first.
    #[must_use]
    pub fn incarnation(&self, peer: Peer) -> Incarnation {
        self.places[peer.index()].incarnation
    }

    /// Whether work of `from` can be posted to `to`.
    #[must_use]
    pub fn is_open(&self, from: Peer, to: Peer) -> bool {
        self.places[from.index()].admissions.open[to.index()] != Incarnation(0)
    }

    /// A new incarnation of `peer` begins, over the memory of the last one.
    pub(crate) fn start_peer(&mut self, peer: Peer) -> Incarnation {
        self.kill(peer);
        let place = &mut self.places[peer.index()];
        let incarnation = place.incarnation.next();
        place.alive = true;
        place.incarnation = incarnation;
        let admissions = place.admissions.change();
        admissions.earliest.fill(Incarnation(1));
        for table in [&mut admissions.admitted, &mut admissions.open] {
            table.fill(Incarnation(0));
            table[peer.index()] = incarnation;
        }
        place.memory.fuse.set(None);
        place.memory.clear_races();
        self.note(|| format!("{peer}.{incarnation} starts"));
        incarnation
    }

    /// The incarnation of `peer` ends. What it posted may still take effect.
    pub(crate) fn kill(&mut self, peer: Peer) {
        if !self.is_alive(peer) {
            return;
        }
        let afterlife = if self.timing.is_some() { self.span(0, AFTERLIFE_NS) } else { 0 };
        let now = self.now;
        let place = &mut self.places[peer.index()];
        place.alive = false;
        place.died_at = now + afterlife;
        place.done.clear();
        place.inbox.clear();
        place.memory.fuse.set(None);
        let incarnation = place.incarnation;
        self.note(|| format!("{peer}.{incarnation} dies"));
        for to in self.peers() {
            for flight in std::mem::take(&mut self.pair(peer, to).flights) {
                if !flight.is_landed() {
                    self.linger(flight);
                }
            }
        }
    }

    /// `me` fences `peer`.
    pub(crate) fn fence(&mut self, me: Peer, peer: Peer) -> Result<(), FenceError> {
        if peer == me || peer.index() >= self.places.len() {
            return Err(FenceError::UnknownPeer);
        }
        let place = &mut self.places[me.index()];
        if !place.memory.fuse.acts() {
            return Ok(());
        }
        let admissions = place.admissions.change();
        let admitted = std::mem::take(&mut admissions.admitted[peer.index()]);
        if admitted != Incarnation(0) {
            admissions.earliest[peer.index()] = admitted.next();
        }
        let was_open = admissions.open[peer.index()] != Incarnation(0);
        place.memory.drop_arrivals(peer);
        self.note(|| format!("{me} fences {peer}.{admitted}"));
        if was_open {
            let losses = self.losses.len();
            self.lose(me, peer, FlightLoss::Reported(Failure::Gone));
            // A fence is not a fault.
            self.losses.truncate(losses);
        }
        Ok(())
    }

    /// `me` admits `peer` in its `incarnation`.
    pub(crate) fn admit(
        &mut self,
        me: Peer,
        peer: Peer,
        incarnation: Incarnation,
    ) -> Result<(), FenceError> {
        if peer == me || peer.index() >= self.places.len() {
            return Err(FenceError::UnknownPeer);
        }
        let place = &mut self.places[me.index()];
        if incarnation < place.admissions.earliest[peer.index()] {
            return Err(FenceError::NotReady);
        }
        if !place.memory.fuse.acts() {
            return Ok(());
        }
        let admissions = place.admissions.change();
        admissions.earliest[peer.index()] = incarnation;
        admissions.admitted[peer.index()] = incarnation;
        admissions.open[peer.index()] = incarnation;
        self.note(|| format!("{me} admits {peer}.{incarnation}"));
        // Work that came before its admission is not lost for that.
        self.plan_landing(peer, me);
        Ok(())
    }

    /// Nothing that `from` posts reaches `to` for `span` nanoseconds.
    pub(crate) fn cut(&mut self, from: Peer, to: Peer, span: u64) {
        self.pair(from, to).cut = true;
        self.schedule(span, DueEvent::Heal { from, to });
    }

    pub(crate) fn heal(&mut self, from: Peer, to: Peer) {
        if !std::mem::take(&mut self.pair(from, to).cut) {
            return;
        }
        self.note(|| format!("{to} hears {from} again"));
        self.plan_landing(from, to);
        self.plan_completion(to, from);
    }

    /// Nothing is cut any more.
    pub(crate) fn heal_all(&mut self) {
        for from in self.peers() {
            for to in self.peers() {
                self.heal(from, to);
            }
        }
    }

    /// Whether nothing is under way between living peers.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.messages.is_empty() && self.pairs.iter().all(|pair| pair.flights.is_empty())
    }
}

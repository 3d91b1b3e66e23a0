//! The message port: whole messages between peers, for deciders that are simulated without a
//! transport of their own. A message is lost, repeated, late or overtaken; never altered.

use weft_core::ids::{Incarnation, Peer};

use super::{DueEvent, World};
use crate::fault::SimFault;

/// Messages that may be under way between two peers; more are lost.
const LETTERS_MAX: usize = 256;

/// A message under way.
#[derive(Clone, Debug)]
pub(crate) struct PortMessage {
    number: u64,
    pub(crate) from: (Peer, Incarnation),
    pub(crate) to: Peer,
    bytes: Vec<u8>,
}

impl std::hash::Hash for PortMessage {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.from, self.to, &self.bytes).hash(state);
    }
}

impl World {
    /// `from` sends `bytes` to `to`, to the incarnation that is alive when they arrive.
    pub(crate) fn send_datagram(&mut self, from: Peer, to: Peer, bytes: &[u8]) {
        let full = self.messages.iter().filter(|l| (l.from.0, l.to) == (from, to)).count();
        if !self.memory(from).fuse.acts() || full >= LETTERS_MAX {
            return;
        }
        if let Some(strike) = self.faults.strikes(SimFault::MessageLost) {
            self.note(|| format!("fault {}: a message {from} -> {to} is lost", strike.number));
            return;
        }
        self.mail(from, to, bytes);
        if let Some(strike) = self.faults.strikes(SimFault::MessageTwice) {
            self.note(|| format!("fault {}: and comes twice", strike.number));
            self.mail(from, to, bytes);
        }
    }

    fn mail(&mut self, from: Peer, to: Peer, bytes: &[u8]) {
        self.flights += 1;
        let number = self.flights;
        let from = (from, self.incarnation(from));
        self.note(|| format!("{} -> {to}: message {number}, {} bytes", from.0, bytes.len()));
        self.messages.push(PortMessage { number, from, to, bytes: bytes.to_vec() });
        let mut after = self.span(500, 20_000);
        if let Some(strike) = self.faults.strikes(SimFault::SlowLanding) {
            after = strike.amount(20_000, 6_000_000);
            self.note(|| format!("fault {}: message {number} is late", strike.number));
        }
        self.schedule(after, DueEvent::Deliver { message: number });
    }

    pub(super) fn deliver(&mut self, number: u64) {
        if let Some(found) = self.messages.iter().position(|message| message.number == number) {
            self.deliver_at(found);
        }
    }

    /// The message at `index` arrives, or is lost to a cut or a death.
    pub(super) fn deliver_at(&mut self, index: usize) {
        let message = self.messages.remove(index);
        let cut = self.pair_ref(message.from.0, message.to).cut;
        let place = &mut self.places[message.to.index()];
        if place.alive && !cut {
            place.inbox.push_back((message.from.0, message.bytes));
        }
    }

    /// The message at `index` is lost.
    pub(super) fn drop_at(&mut self, index: usize) {
        self.messages.remove(index);
    }

    /// The message at `index` will arrive once more.
    pub(super) fn repeat_at(&mut self, index: usize) {
        let message = self.messages[index].clone();
        self.messages.push(message);
    }

    /// The next message for `peer`, and who sent it.
    pub(crate) fn receive_datagram(&mut self, peer: Peer) -> Option<(Peer, Vec<u8>)> {
        self.places[peer.index()].inbox.pop_front()
    }
}

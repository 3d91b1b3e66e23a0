//! The messages that were broadcast and delivered, checked against the promises.

use std::collections::BTreeMap;

use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::neb::{Conflict, number_before};
use weft_core::wire::broadcast::Form;

use super::node::{NebEvent, NebNode, is_of};
use crate::protocol::{HistoryEntry, HistoryEvent, Violation};

/// A slot: origin and number.
type Slot = (Peer, u64);

/// The part of the history that the promises are about.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct NebLedger {
    liars: PeerSet,
    /// Members that may be removed: deliveries of their first epochs do not bind others.
    doomed: PeerSet,
    form: Form,
    /// The number after which every origin begins.
    base: u64,
    broadcast: BTreeMap<Slot, Vec<u8>>,
    /// The message that the first member to deliver each slot delivered.
    agreed: BTreeMap<Slot, Vec<u8>>,
    /// By member and origin: the last number delivered, and in which incarnation.
    last: BTreeMap<(Peer, Peer), (u64, Incarnation)>,
}

/// The number before the first of a second epoch.
fn second_epoch() -> u64 {
    number_before(Incarnation(2)).unwrap_or(u64::MAX)
}

fn broken(checker: &'static str, what: String) -> Result<(), Violation> {
    Err(Violation::new(checker, what))
}

impl NebLedger {
    pub(crate) fn of(liars: PeerSet, doomed: PeerSet, form: Form) -> Self {
        Self { liars, doomed, form, ..Self::default() }
    }

    /// The deliveries and broadcasts of the first epoch of `peer` do not bind others.
    pub(super) fn release(&mut self, peer: Peer) {
        self.doomed.insert(peer);
    }

    /// Every origin has broadcast `base` messages, and every member delivered them.
    pub(super) const fn begin_behind(&mut self, base: u64) {
        self.base = base;
    }

    pub(crate) fn judge(&mut self, entry: &HistoryEntry<NebEvent>) -> Result<(), Violation> {
        match &entry.what {
            HistoryEvent::Recorded(NebEvent::Broadcast { seq, payload }) => {
                self.judge_broadcast((entry.peer, *seq), payload)
            }
            HistoryEvent::Recorded(NebEvent::Delivered { origin, seq, payload }) => {
                self.judge_once((entry.peer, entry.incarnation), (*origin, *seq))?;
                self.judge_delivered((entry.peer, entry.incarnation), (*origin, *seq), payload)
            }
            // With signatures, of two messages under one number both are a liar's or one is
            // unsigned; without, either the origin or the replayer lies.
            HistoryEvent::Recorded(NebEvent::Conflict(conflict)) => {
                let Conflict { origin, replayer, .. } = *conflict;
                let replayer_lies = self.form == Form::Unsigned && self.liars.contains(replayer);
                if self.liars.contains(origin) || replayer_lies {
                    return Ok(());
                }
                let what = format!("{} sees {conflict:?} and its origin is correct", entry.peer);
                broken("blame", what)
            }
            HistoryEvent::Began
            | HistoryEvent::Died
            | HistoryEvent::Lied(_)
            | HistoryEvent::Calm => Ok(()),
        }
    }

    fn judge_broadcast(&mut self, slot: Slot, payload: &[u8]) -> Result<(), Violation> {
        if let Some(other) = self.agreed.get(&slot)
            && other != payload
        {
            return broken("integrity", format!("{slot:?} was delivered before it was broadcast"));
        }
        match self.broadcast.insert(slot, payload.to_vec()) {
            Some(other) if other != payload => {
                broken("integrity", format!("{slot:?} was broadcast twice"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A member that dies between storing its progress and delivering the message loses that one.
    fn judge_once(&mut self, by: (Peer, Incarnation), slot: Slot) -> Result<(), Violation> {
        let (origin, seq) = slot;
        let last = self.last.insert((by.0, origin), (seq, by.1));
        let (before, incarnation) = last.unwrap_or((self.base, Incarnation(0)));
        if self.doomed.contains(by.0) && by.1 > Incarnation(1) && incarnation <= Incarnation(1) {
            // A new epoch begins anywhere.
            return Ok(());
        }
        let second = second_epoch();
        let is_later = self.doomed.contains(origin) && seq > second;
        let before = if is_later { before.max(second) } else { before };
        let lost = u64::from(incarnation != by.1);
        if seq <= before || seq > before + 1 + lost * u64::from(by.1.0 - incarnation.0) {
            return broken("once", format!("{} delivers {slot:?} after {before}", by.0));
        }
        Ok(())
    }

    fn judge_delivered(
        &mut self,
        (by, incarnation): (Peer, Incarnation),
        slot: Slot,
        payload: &[u8],
    ) -> Result<(), Violation> {
        let (origin, _) = slot;
        if !self.liars.contains(origin) {
            let is_right = match self.broadcast.get(&slot) {
                Some(sent) => sent == payload,
                // Its origin died before it recorded it, and its next incarnation sent it.
                None => is_of(origin, payload),
            };
            if !is_right {
                return broken("integrity", format!("{by} delivers {payload:?} as {slot:?}"));
            }
        }
        if self.doomed.contains(by) && incarnation <= Incarnation(1) {
            return Ok(());
        }
        let agreed = self.agreed.entry(slot).or_insert_with(|| payload.to_vec());
        if agreed != payload {
            let what = format!("{slot:?} is {agreed:?} to some and {payload:?} to {by}");
            return broken("agreement", what);
        }
        Ok(())
    }

    /// Whether `node` has broadcast all messages that it was ordered to.
    pub(super) fn check_room(&self, peer: Peer, node: &NebNode) -> Result<(), Violation> {
        match node.owed() {
            _ if !node.is_open() => broken("validity", format!("{peer} is not counted by all")),
            0 => Ok(()),
            owed => broken("validity", format!("{peer} has no room for {owed} messages")),
        }
    }

    /// Whether `node` has delivered all messages of correct origins.
    pub(super) fn check_complete(&self, peer: Peer, node: &NebNode) -> Result<(), Violation> {
        self.check_delivered(peer, |origin| node.delivered(origin))
    }

    /// Whether `peer`, which is that far with each origin, has delivered all messages of correct
    /// origins.
    pub(crate) fn check_delivered(
        &self,
        peer: Peer,
        delivered: impl Fn(Peer) -> u64,
    ) -> Result<(), Violation> {
        for slot @ (origin, seq) in self.broadcast.keys() {
            let is_bound = !self.doomed.contains(*origin) || *seq > second_epoch();
            let is_held = !self.liars.contains(*origin) && is_bound;
            if is_held && delivered(*origin) < *seq {
                let at = delivered(*origin);
                return broken("validity", format!("{peer} is at {at} and lacks {slot:?}"));
            }
        }
        Ok(())
    }
}

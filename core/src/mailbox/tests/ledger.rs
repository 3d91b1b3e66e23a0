//! The model: every message and the state that it is in.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::owner::Taken;
use crate::ids::{Incarnation, Peer};

/// Names a message: sender, incarnation, number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    sender: Peer,
    incarnation: Incarnation,
    number: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    /// Its put event was seen.
    put: bool,
    /// Delivered in the present incarnation of the owner.
    delivered: bool,
    /// Delivered in any incarnation.
    ever_delivered: bool,
    released: bool,
}

#[derive(Default)]
pub(super) struct Ledger {
    fates: BTreeMap<Name, Fate>,
    numbers: BTreeMap<(Peer, Incarnation), u32>,
    /// The last message delivered in the present incarnation of the owner, by sender and
    /// incarnation.
    last: BTreeMap<(Peer, Incarnation), u32>,
}

impl Name {
    /// The message itself: its name, and a tail whose length and bytes follow from it.
    pub(super) fn payload(self) -> Vec<u8> {
        let mut payload = Vec::new();
        payload.extend(self.sender.0.to_le_bytes());
        payload.extend(self.incarnation.0.to_le_bytes());
        payload.extend(self.number.to_le_bytes());
        // Several in a row have one length, so that they are packed.
        let tail = (self.number / 4 + 1).wrapping_mul(7) % 31;
        payload.extend((0..tail).map(|n| (n * 37 + self.number) as u8));
        payload
    }

    fn of(payload: &[u8]) -> Option<Self> {
        let head: &[u8; 10] = payload.first_chunk()?;
        let name = Self {
            sender: Peer(u16::from_le_bytes([head[0], head[1]])),
            incarnation: Incarnation(u32::from_le_bytes(head[2..6].try_into().ok()?)),
            number: u32::from_le_bytes(head[6..10].try_into().ok()?),
        };
        (name.payload() == payload).then_some(name)
    }
}

impl Ledger {
    /// A new message.
    pub(super) fn create(&mut self, sender: Peer, incarnation: Incarnation) -> Name {
        let number = self.numbers.entry((sender, incarnation)).or_default();
        *number += 1;
        let name = Name { sender, incarnation, number: *number };
        self.fates.insert(name, Fate::default());
        name
    }

    pub(super) fn note_put(&mut self, name: Name) {
        self.fates.get_mut(&name).unwrap().put = true;
    }

    /// Checks that `taken` may be delivered now.
    pub(super) fn note_delivered(&mut self, taken: &Taken) -> Name {
        let name = Name::of(&taken.payload).expect("nothing is altered");
        assert_eq!(name.sender, taken.sender);
        let fate = self.fates.get_mut(&name).expect("only messages that were put");
        assert!(!fate.released, "{name:?} came again after its release");
        assert!(!fate.delivered, "{name:?} came twice in one incarnation");
        fate.delivered = true;
        fate.ever_delivered = true;
        let of_sender = (name.sender, name.incarnation);
        let before = self.last.insert(of_sender, name.number);
        assert!(before < Some(name.number), "{name:?} came after {before:?}");
        name
    }

    pub(super) fn note_released(&mut self, name: Name) {
        self.fates.get_mut(&name).unwrap().released = true;
    }

    /// The owner has a successor: unreleased messages may be delivered again.
    pub(super) fn note_succession(&mut self) {
        self.last.clear();
        for fate in self.fates.values_mut() {
            fate.delivered = false;
        }
    }

    /// Every message whose put event was seen has come.
    pub(super) fn check_nothing_lost(&self) {
        for (name, fate) in &self.fates {
            assert!(!fate.put || fate.ever_delivered, "{name:?} is lost");
        }
    }

    pub(super) fn delivered_count(&self) -> usize {
        self.fates.values().filter(|fate| fate.ever_delivered).count()
    }
}

//! A table of slots that are used again and again, each use under its own generation.

use super::mutants::GENERATION_IGNORED;
use super::outcome::MessageReject;
use crate::wire::rendezvous::Handle;

/// `N` slots at most; a handle is good for one use of a slot.
#[derive(Clone, Debug, Hash)]
pub(super) struct Slots<T, const N: usize> {
    slots: [Slot<T>; N],
    used: u16,
}

#[derive(Clone, Debug, Hash)]
struct Slot<T> {
    generation: u16,
    value: Option<T>,
}

impl<T, const N: usize> Slots<T, N> {
    pub(super) const fn new() -> Self {
        Self { slots: [const { Slot { generation: 0, value: None } }; N], used: 0 }
    }

    pub(super) const fn len(&self) -> u16 {
        self.used
    }

    /// Puts a value into a slot below `limit`; none if all of those are used.
    pub(super) fn insert(&mut self, limit: u16, value: T) -> Option<Handle> {
        if self.used >= limit {
            return None;
        }
        let slots = self.slots.iter_mut().take(usize::from(limit));
        let (at, slot) = slots.enumerate().find(|(_, slot)| slot.value.is_none())?;
        // Generation 0 is no handle's, not even after 65,535 uses.
        slot.generation = slot.generation.checked_add(1).unwrap_or(1);
        slot.value = Some(value);
        self.used += 1;
        Some(Handle { slot: at as u16, generation: slot.generation })
    }

    pub(super) fn get(&self, handle: Handle) -> Result<&T, MessageReject> {
        let slot = self.slots.get(usize::from(handle.slot)).ok_or(MessageReject::BadSlot)?;
        if slot.generation != handle.generation && !GENERATION_IGNORED.is_planted() {
            return Err(MessageReject::StaleGeneration);
        }
        slot.value.as_ref().ok_or(MessageReject::BadSlot)
    }

    pub(super) fn get_mut(&mut self, handle: Handle) -> Result<&mut T, MessageReject> {
        self.get(handle)?;
        let slot = self.slots.get_mut(usize::from(handle.slot)).ok_or(MessageReject::BadSlot)?;
        slot.value.as_mut().ok_or(MessageReject::BadSlot)
    }

    /// The handle of the present use of a slot.
    pub(super) fn handle_at(&self, slot: u16) -> Option<Handle> {
        let used = self.slots.get(usize::from(slot))?;
        used.value.as_ref().map(|_| Handle { slot, generation: used.generation })
    }

    pub(super) fn at(&self, slot: u16) -> Option<&T> {
        self.slots.get(usize::from(slot))?.value.as_ref()
    }

    pub(super) fn at_mut(&mut self, slot: u16) -> Option<&mut T> {
        self.slots.get_mut(usize::from(slot))?.value.as_mut()
    }

    pub(super) fn remove_at(&mut self, slot: u16) -> Option<T> {
        let value = self.slots.get_mut(usize::from(slot))?.value.take();
        self.used -= u16::from(value.is_some());
        value
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        let slots = (0..).zip(&self.slots);
        let used = slots.filter_map(|(at, slot)| slot.value.as_ref().map(|value| (at, value)));
        // An idle table is not looked through.
        used.take(usize::from(self.used))
    }
}

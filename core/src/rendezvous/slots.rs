//! A table of slots that are used again and again, each use under its own generation.
//!
//! Which slots are used stands in [`Marks`], a bit for each, so that a slot is found without a look
//! at the values: they are long.

use super::config::SLOTS_MAX;
use super::mutants::GENERATION_IGNORED;
use super::outcome::MessageReject;
use crate::wire::rendezvous::Handle;

const WORDS: usize = (SLOTS_MAX / 64) as usize;

/// Some of the slots of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Marks([u64; WORDS]);

impl Marks {
    pub(super) const NONE: Self = Self([0; WORDS]);

    pub(super) const fn set(&mut self, slot: u16) {
        self.0[slot as usize / 64] |= 1 << (slot % 64);
    }

    pub(super) const fn clear(&mut self, slot: u16) {
        self.0[slot as usize / 64] &= !(1 << (slot % 64));
    }

    /// The lowest slot without a mark.
    fn first_clear(&self) -> Option<u16> {
        let (at, word) = (0..).zip(&self.0).find(|(_, word)| **word != u64::MAX)?;
        Some(at * 64 + word.trailing_ones() as u16)
    }

    /// Those that are marked now, ascending.
    pub(super) fn iter(self) -> impl Iterator<Item = u16> {
        (0..).zip(self.0).flat_map(|(at, word)| {
            let rest = |word: &u64| Some(word & (word - 1)).filter(|rest| *rest != 0);
            let words = core::iter::successors(Some(word).filter(|word| *word != 0), rest);
            words.map(move |word| at * 64 + word.trailing_zeros() as u16)
        })
    }

    /// Those that are marked now, from slot `first` on, and then those before it.
    pub(super) fn iter_from(self, first: u16) -> impl Iterator<Item = u16> {
        let behind = self.iter().filter(move |slot| *slot >= first);
        behind.chain(self.iter().filter(move |slot| *slot < first))
    }
}

/// `N` slots at most; a handle is good for one use of a slot.
#[derive(Clone, Debug, Hash)]
pub(super) struct Slots<T, const N: usize> {
    slots: [Slot<T>; N],
    used: u16,
    marks: Marks,
}

#[derive(Clone, Debug, Hash)]
struct Slot<T> {
    generation: u16,
    value: Option<T>,
}

impl<T, const N: usize> Slots<T, N> {
    pub(super) const fn new() -> Self {
        const { assert!(N <= SLOTS_MAX as usize, "marks have a bit for each slot") };
        let slots = [const { Slot { generation: 0, value: None } }; N];
        Self { slots, used: 0, marks: Marks::NONE }
    }

    pub(super) const fn len(&self) -> u16 {
        self.used
    }

    /// Puts a value into a slot below `limit`; none if all of those are used.
    pub(super) fn insert(&mut self, limit: u16, value: T) -> Option<Handle> {
        if self.used >= limit {
            return None;
        }
        let at = self.marks.first_clear().filter(|at| *at < limit)?;
        let slot = self.slots.get_mut(usize::from(at))?;
        // Generation 0 is no handle's, not even after 65,535 uses.
        slot.generation = slot.generation.checked_add(1).unwrap_or(1);
        slot.value = Some(value);
        self.used += 1;
        self.marks.set(at);
        Some(Handle { slot: at, generation: slot.generation })
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
        self.marks.clear(slot);
        value
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        let slots = self.marks.iter();
        slots.filter_map(|at| Some((at, self.at(at)?)))
    }

    /// The slots that are used now.
    pub(super) const fn used(&self) -> Marks {
        self.marks
    }
}

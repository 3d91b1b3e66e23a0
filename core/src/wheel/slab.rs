//! The memory of the wheel: one entry for each key, and the lists that thread through them.
//!
//! Lists are circular and doubly linked; each begins and ends in a link of its own. So an entry
//! leaves its list without knowing which it is, and a list moves whole, both in O(1).

use super::level::{List, Occupancy};
use crate::time::{Duration, Instant};

/// Marks a link that leads to the end of a list; the rest is the number of that list.
const END: u32 = 1 << 31;

#[derive(Clone, Copy, Debug, Hash)]
struct Links {
    previous: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    Vacant,
    /// Stopped, and still where it was filed: until that slot comes up, or the key is started.
    Struck,
    /// On a list of the levels, or drained from one and not looked at yet.
    Filed,
    /// Found to be due: in a run or ready, where order depends on what the entry says.
    Collected,
    /// On no list.
    Paused,
}

/// One timer.
#[derive(Clone, Debug, Hash)]
pub(super) struct Entry {
    links: Links,
    /// When it expires. While it is paused: the time that was left, counted from zero.
    pub(super) due: Instant,
    pub(super) period: Duration,
    /// Its place among all starts, renewals and resumptions.
    pub(super) order: u64,
    pub(super) generation: u32,
    pub(super) state: State,
    pub(super) is_cyclic: bool,
    /// Only ever with [`State::Filed`].
    pub(super) is_silent: bool,
}

impl Entry {
    const VACANT: Self = Self {
        links: Links { previous: 0, next: 0 },
        due: Instant(0),
        period: Duration(0),
        order: 0,
        generation: 0,
        state: State::Vacant,
        is_cyclic: false,
        is_silent: false,
    };

    /// What expiries are sorted by.
    pub(super) const fn rank(&self) -> (u64, u64) {
        (self.due.0, self.order)
    }

    /// Whether it was started and is neither stopped nor over.
    pub(super) const fn is_live(&self) -> bool {
        !matches!(self.state, State::Vacant | State::Struck)
    }

    /// Ends this run of the key, and leaves the entry in `state`.
    pub(super) const fn end_life(&mut self, state: State) {
        self.generation = self.generation.wrapping_add(1);
        self.state = state;
        self.is_silent = false;
    }
}

/// Entries by key, and lists of them.
#[derive(Clone, Debug, Hash)]
pub(super) struct Slab<const TIMERS: usize> {
    entries: [Entry; TIMERS],
    ends: [Links; List::COUNT],
    pub(super) occupancy: Occupancy,
}

impl<const TIMERS: usize> Slab<TIMERS> {
    pub(super) const fn new() -> Self {
        const { assert!(TIMERS > 0 && TIMERS < END as usize, "a link is 31 bits and a mark") }
        let mut ends = [Links { previous: END, next: END }; List::COUNT];
        let mut index = 0;
        while index < List::COUNT {
            let end = END | index as u32;
            ends[index] = Links { previous: end, next: end };
            index += 1;
        }
        Self { entries: [const { Entry::VACANT }; TIMERS], ends, occupancy: Occupancy::EMPTY }
    }

    pub(super) fn entry(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }

    pub(super) fn entry_mut(&mut self, index: u32) -> &mut Entry {
        &mut self.entries[index as usize]
    }

    pub(super) fn first(&self, list: List) -> Option<u32> {
        Some(self.ends[list.index()].next).filter(|link| link & END == 0)
    }

    pub(super) fn last(&self, list: List) -> Option<u32> {
        Some(self.ends[list.index()].previous).filter(|link| link & END == 0)
    }

    /// Puts an entry that is on no list behind the last one of `list`.
    pub(super) fn push_back(&mut self, list: List, index: u32) {
        let end = END | list.index() as u32;
        let previous = self.ends[list.index()].previous;
        self.entry_mut(index).links = Links { previous, next: end };
        self.links_mut(previous).next = index;
        self.ends[list.index()].previous = index;
        self.occupancy.set(list);
    }

    /// Takes an entry off the list it is on.
    pub(super) fn unlink(&mut self, index: u32) {
        let Links { previous, next } = self.entry(index).links;
        self.links_mut(previous).next = next;
        self.links_mut(next).previous = previous;
        // Only a list of one has its own end on both sides.
        if previous == next {
            self.occupancy.clear(List::from_index(next & !END));
        }
    }

    pub(super) fn pop_front(&mut self, list: List) -> Option<u32> {
        let index = self.first(list)?;
        self.unlink(index);
        Some(index)
    }

    /// Moves all of `from` behind the last entry of `to`.
    pub(super) fn append(&mut self, to: List, from: List) {
        let (Some(first), Some(last)) = (self.first(from), self.last(from)) else { return };
        let (to_end, from_end) = (END | to.index() as u32, END | from.index() as u32);
        let previous = self.ends[to.index()].previous;
        self.links_mut(previous).next = first;
        self.entry_mut(first).links.previous = previous;
        self.entry_mut(last).links.next = to_end;
        self.ends[to.index()].previous = last;
        self.ends[from.index()] = Links { previous: from_end, next: from_end };
        self.occupancy.set(to);
        self.occupancy.clear(from);
    }

    fn links_mut(&mut self, link: u32) -> &mut Links {
        if link & END == 0 {
            &mut self.entries[link as usize].links
        } else {
            &mut self.ends[(link & !END) as usize]
        }
    }
}

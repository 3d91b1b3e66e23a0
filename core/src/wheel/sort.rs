//! Brings the timers of one tick into order, one comparison at a time.
//!
//! ```text
//!  drain ──▶ growing ──▶ run 0 ──▶ run 1 ──▶ …  ──▶ ready
//!               └ ascending      └ left + right = merged, one rank up
//! ```
//!
//! A merge sort of linked lists that can stop after every step and in which any entry may be
//! unlinked between two steps: all its state is on lists, except the rank of the merge under way.
//! A list filed in order is one run and costs one step for each timer; n timers in the worst
//! order cost n steps for each doubling of the number of runs.

use super::level::List;
use super::slab::Slab;

/// The merge sort of what is due at the cursor.
#[derive(Clone, Debug, Hash)]
pub(super) struct Sort {
    /// The higher rank of the two runs that are being merged.
    rank: u8,
}

impl Sort {
    pub(super) const fn new() -> Self {
        Self { rank: 0 }
    }

    /// Adds a due timer that is on no list.
    pub(super) fn add<const TIMERS: usize>(&mut self, timers: &mut Slab<TIMERS>, index: u32) {
        let rank = timers.entry(index).rank();
        let descends = |last: u32| timers.entry(last).rank() > rank;
        if timers.last(List::GROWING).is_some_and(descends) {
            self.keep(timers, List::GROWING, 0);
        }
        timers.push_back(List::GROWING, index);
    }

    /// One step of the merge under way; false when there is none.
    pub(super) fn merge<const TIMERS: usize>(&mut self, timers: &mut Slab<TIMERS>) -> bool {
        let is_merging =
            [List::LEFT, List::RIGHT, List::MERGED].iter().any(|list| timers.occupancy.has(*list));
        if !is_merging {
            return false;
        }
        match (timers.first(List::LEFT), timers.first(List::RIGHT)) {
            (Some(left), Some(right)) => {
                let is_left = timers.entry(left).rank() < timers.entry(right).rank();
                let index = if is_left { left } else { right };
                timers.unlink(index);
                timers.push_back(List::MERGED, index);
            }
            (Some(_), None) | (None, Some(_) | None) => {
                timers.append(List::MERGED, List::LEFT);
                timers.append(List::MERGED, List::RIGHT);
                // Timers that are stopped make a run smaller and leave its rank: a sort that more
                // timers join all the time has reached the last one when few are left.
                self.keep(timers, List::MERGED, (self.rank + 1).min(List::RANK_MAX));
            }
        }
        true
    }

    /// Goes on when nothing more is added and no merge is under way: begins the next merge, or
    /// makes the last run ready.
    pub(super) fn finish<const TIMERS: usize>(&mut self, timers: &mut Slab<TIMERS>) {
        let runs = timers.occupancy.runs();
        if runs != 0 && timers.first(List::GROWING).is_some() {
            self.keep(timers, List::GROWING, 0);
            return;
        }
        timers.append(List::READY, List::GROWING);
        if runs == 0 {
            return;
        }
        let low = runs.trailing_zeros();
        let others = runs & (runs - 1);
        if others == 0 {
            timers.append(List::READY, List::run(low as usize));
        } else {
            let high = others.trailing_zeros();
            timers.append(List::RIGHT, List::run(low as usize));
            timers.append(List::LEFT, List::run(high as usize));
            self.rank = high as u8;
        }
    }

    /// Keeps the run `from`, or begins to merge it with the one of its rank.
    fn keep<const TIMERS: usize>(&mut self, timers: &mut Slab<TIMERS>, from: List, rank: u8) {
        let run = List::run(usize::from(rank));
        if timers.first(run).is_none() {
            timers.append(run, from);
        } else {
            timers.append(List::LEFT, run);
            timers.append(List::RIGHT, from);
            self.rank = rank;
        }
    }
}

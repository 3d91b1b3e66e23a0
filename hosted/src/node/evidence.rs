//! What other nodes have concluded and from what, kept so that it outlives them.
//!
//! Whoever notes a verdict, or what one rests on, tells all other supervisors at once; each keeps
//! the last of every observer's, so that a noisy one displaces nobody's but its own. What a letter
//! was lost for, or made room for, is gone with its observer; how much made room is counted.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::chronicle::{Dropped, Entry, What};

/// Entries that are kept of one observer.
const COPIES: usize = 128;

/// The longest letter with an entry: those with the words of an operating system are the longest.
pub const NOTE_LEN_MAX: usize = 2_048;

/// An entry of another node's chronicle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// The entry. Where its observer is on another host, its time is when it was heard of here.
    pub entry: Entry,
    /// Its time by its observer's clock, by which copies of one entry are known as such.
    pub noted_ns: u64,
}

impl What {
    /// Whether it is a conclusion about a node, or what one rests on.
    pub(super) const fn is_evidence(&self) -> bool {
        match self {
            Self::Verdict(_)
            | Self::Alarm { .. }
            | Self::HungEarly { .. }
            | Self::Failed { .. }
            | Self::ResetOrdered { .. }
            | Self::Disputed { .. }
            | Self::Proven { .. } => true,
            // Of these there may be any number, or every node notes its own.
            Self::Started { .. }
            | Self::Ended { .. }
            | Self::Running { .. }
            | Self::Gone
            | Self::Suspected
            | Self::Restored
            | Self::Late { .. }
            | Self::Told { .. }
            | Self::Fenced { .. }
            | Self::Forged { .. }
            | Self::Reborn
            | Self::Injected { .. } => false,
        }
    }
}

/// What the other nodes have said.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    by_observer: BTreeMap<u16, VecDeque<Copied>>,
    dropped: Dropped,
}

impl Evidence {
    /// Keeps an entry of its observer, who is a node of the cluster and writes about one.
    pub(super) fn keep(&mut self, copied: Copied) {
        let copies = self.by_observer.entry(copied.entry.observer).or_default();
        if copies.len() == COPIES
            && let Some(oldest) = copies.pop_front()
        {
            self.dropped.note(oldest.entry.node);
        }
        copies.push_back(copied);
    }

    /// The first after `after_ns` about `node`, or about all, oldest first: at most `max`, which is
    /// more than there are observers, and all of one moment or none.
    pub(super) fn about(&self, node: Option<u16>, after_ns: u64, max: usize) -> Vec<Copied> {
        let is_meant = |copied: &&Copied| {
            let entry = &copied.entry;
            entry.at_ns > after_ns && node.is_none_or(|node| entry.node == node)
        };
        let mut found: Vec<_> = self.by_observer.values().flatten().filter(is_meant).collect();
        found.sort_by_key(|copied| copied.entry.at_ns);
        if let Some(next) = found.get(max).map(|copied| copied.entry.at_ns) {
            found.truncate(max);
            // An observer that gives many entries one time has itself to blame.
            if found.first().is_some_and(|copied| copied.entry.at_ns < next) {
                found.retain(|copied| copied.entry.at_ns < next);
            }
        }
        found.into_iter().cloned().collect()
    }

    /// How much about `node`, or about all, has made room.
    pub(super) fn dropped(&self, node: Option<u16>) -> u64 {
        self.dropped.about(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(at_ns: u64, observer: u16, node: u16) -> Copied {
        let entry = Entry { at_ns, observer, node, what: What::Suspected };
        Copied { entry, noted_ns: at_ns }
    }

    #[test]
    fn the_copies_of_all_observers_are_told_in_the_order_of_time() {
        let mut evidence = Evidence::default();
        let [late, early] = [copied(7, 0, 2), copied(5, 1, 2)];
        for it in [&late, &copied(6, 0, 1), &early] {
            evidence.keep(it.clone());
        }
        assert_eq!(evidence.about(Some(2), 0, 9), [early.clone(), late.clone()]);
        assert_eq!(evidence.about(Some(2), 5, 9), [late]);
        assert_eq!(evidence.about(Some(2), 0, 1), [early]);
        assert_eq!(evidence.about(None, 0, 9).len(), 3);
    }

    #[test]
    fn a_reader_who_goes_on_behind_the_last_misses_none_of_the_same_moment() {
        let mut evidence = Evidence::default();
        for (at_ns, observer) in [(5, 0), (6, 1), (6, 2), (7, 0)] {
            evidence.keep(copied(at_ns, observer, 3));
        }
        let pages = [0, 5, 6].map(|after_ns| evidence.about(None, after_ns, 2));
        let times = pages.map(|page| page.iter().map(|it| it.entry.at_ns).collect::<Vec<_>>());
        assert_eq!(times, [vec![5], vec![6, 6], vec![7]]);
    }

    #[test]
    fn a_noisy_observer_displaces_its_own_words_alone_and_that_is_counted() {
        let mut evidence = Evidence::default();
        evidence.keep(copied(1, 1, 2));
        for at_ns in 0..COPIES as u64 + 3 {
            evidence.keep(copied(2 + at_ns, 0, (at_ns % 2) as u16));
        }
        assert_eq!(evidence.about(Some(2), 0, usize::MAX), [copied(1, 1, 2)]);
        assert_eq!(evidence.about(None, 0, usize::MAX).len(), COPIES + 1);
        let dropped = [None, Some(0), Some(1), Some(2)].map(|node| evidence.dropped(node));
        assert_eq!(dropped, [3, 2, 1, 0]);
    }
}

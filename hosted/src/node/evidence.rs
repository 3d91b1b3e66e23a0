//! The conclusions of other nodes and their evidence, kept so that they outlive their observers.
//!
//! A node that notes a verdict, or its evidence, sends it to all other supervisors at once. Each
//! keeps the last entries of every observer separately, so a noisy one displaces only its own. An
//! entry that was lost on the way, or displaced, is gone with its observer; displaced ones are
//! counted.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::chronicle::{Dropped, Entry, What};

/// The most entries that are kept of one observer.
const COPIES: usize = 128;

/// An entry of another node's chronicle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// The entry. If its observer is on another host, its time is the time of arrival here.
    pub entry: Entry,
    /// Its time by its observer's clock, by which copies of one entry are recognised.
    pub noted_ns: u64,
}

impl What {
    /// Whether it is a conclusion about a node, or evidence for one; or what one node alone
    /// knows and every watcher or the next manager must learn.
    pub(super) const fn is_evidence(&self) -> bool {
        match self {
            Self::Verdict(_)
            | Self::Alarm { .. }
            | Self::HungEarly { .. }
            | Self::Failed { .. }
            | Self::ResetOrdered { .. }
            | Self::Disputed { .. }
            | Self::Proven { .. }
            | Self::Released
            | Self::Hook(_)
            | Self::Task(_) => true,
            // These are unbounded in number, or every node notes its own.
            Self::Started { .. }
            | Self::Ended { .. }
            | Self::Running { .. }
            | Self::Gone
            | Self::Suspected
            | Self::Restored
            | Self::Late { .. }
            | Self::Noted { .. }
            | Self::Fenced { .. }
            | Self::Forged { .. }
            | Self::Reborn
            | Self::Injected { .. } => false,
        }
    }
}

/// The entries of the other nodes.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    by_observer: BTreeMap<u16, VecDeque<Copied>>,
    dropped: Dropped,
}

impl Evidence {
    /// Keeps an entry of its observer; both it and the node that it is about are of the cluster.
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
    /// more than there are observers. Entries of one time are returned together or not at all.
    pub(super) fn about(&self, node: Option<u16>, after_ns: u64, max: usize) -> Vec<Copied> {
        let is_meant = |copied: &&Copied| {
            let entry = &copied.entry;
            entry.at_ns > after_ns && node.is_none_or(|node| entry.node == node)
        };
        let mut found: Vec<_> = self.by_observer.values().flatten().filter(is_meant).collect();
        found.sort_by_key(|copied| copied.entry.at_ns);
        if let Some(next) = found.get(max).map(|copied| copied.entry.at_ns) {
            found.truncate(max);
            // An observer that gives many entries one time loses the rest of its own.
            if found.first().is_some_and(|copied| copied.entry.at_ns < next) {
                found.retain(|copied| copied.entry.at_ns < next);
            }
        }
        found.into_iter().cloned().collect()
    }

    /// How many entries about `node`, or about all, were displaced.
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

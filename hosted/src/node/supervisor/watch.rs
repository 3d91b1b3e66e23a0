//! What a node sends to those who only watch: its view, and what was noted of suspicions and
//! verdicts, here and at other nodes.
//!
//! ```text
//!   view of the component ──────────────┬─▶ a page that readers map (M-14), without the ended
//!   own notes, and copies of others' ───┴─▶ [ NOTED_MAX ] ─▶ WATCH, answered when there is more
//! ```
//!
//! A component that has ended stays in the view until the next one of its node has joined; on the
//! page its bit goes before its end is an event here, for a watcher or for the node's program.
//!
//! A watcher asks for what comes after what it has. If more was noted meanwhile than is kept, the
//! answer counts what is missing; a view that it missed is contained in the next one.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;

use weft_core::dirnet::Verdict;

use super::Supervisor;
use super::clients::Watching;
use crate::clock::now_ns;
use crate::node::chronicle::What;
use crate::node::control::{Outcome, ViewStatus, Watched};
use crate::node::evidence::Copied;
use crate::shm::{MaskPage, SegmentError};

/// The most entries that are kept for watchers.
const NOTED_MAX: usize = 256;
/// The most entries of an answer, so that it is a packet.
const NOTED_A_REPLY: usize = 48;

/// What watchers are sent.
#[derive(Debug)]
pub(super) struct WatchFeed {
    page: MaskPage,
    view: ViewStatus,
    view_at_ns: u64,
    /// Of each rank, the last incarnation that is known to have ended: its boot and generation.
    ended: BTreeMap<u16, (u32, u32)>,
    noted: VecDeque<Copied>,
    /// How many entries came before those that are kept.
    displaced: u64,
}

impl WatchFeed {
    pub(super) fn new() -> Result<Self, SegmentError> {
        Ok(Self {
            page: MaskPage::create()?,
            view: ViewStatus::default(),
            view_at_ns: 0,
            ended: BTreeMap::new(),
            noted: VecDeque::new(),
            displaced: 0,
        })
    }

    /// The page that shows the membership, for a reader.
    pub(super) fn mask(&self) -> Result<OwnedFd, SegmentError> {
        self.page.reader()
    }

    /// The component shows `view`.
    pub(super) fn handle_view(&mut self, view: ViewStatus) {
        (self.view, self.view_at_ns) = (view, now_ns());
        self.show();
    }

    /// The component of `rank` that the view contains has ended, or is fenced here.
    pub(super) fn handle_ended(&mut self, rank: u16) {
        let shown = self.view.members.iter().find(|it| it.rank == rank);
        if let Some(incarnation) = shown.map(|it| (it.boot, it.generation)) {
            self.note_ended(rank, incarnation);
        }
    }

    fn note_ended(&mut self, rank: u16, incarnation: (u32, u32)) {
        let before = self.ended.get(&rank).copied();
        if before >= Some(incarnation) {
            return;
        }
        self.ended.insert(rank, incarnation);
        if self.view.number > 0 {
            self.show();
        }
    }

    fn show(&mut self) {
        let members = self.view.members.iter().map(|it| (it.rank, it.boot, it.generation));
        // Incarnations of a node only rise, so that what is not later has ended as well.
        let runs = |(rank, boot, generation): &(u16, u32, u32)| {
            self.ended.get(rank).is_none_or(|ended| (*boot, *generation) > *ended)
        };
        self.page.show(self.view.number, members.filter(runs));
    }

    /// Keeps an entry that is of interest to watchers.
    pub(super) fn note(&mut self, copied: &Copied) {
        let is_watched = matches!(
            copied.entry.what,
            What::Suspected | What::Restored | What::Verdict(_) | What::Released | What::Task(_)
        );
        if !is_watched {
            return;
        }
        // A node that is down leaves with its view, since a false manager may be corrected.
        if copied.entry.what.is_verdict(Verdict::AgentDown)
            && let What::Verdict(note) = &copied.entry.what
            && let Some((boot, generation)) = note.incarnation().split_once('/')
            && let (Ok(boot), Ok(generation)) = (boot.parse(), generation.parse())
        {
            self.note_ended(copied.entry.node, (boot, generation));
        }
        if self.noted.len() == NOTED_MAX {
            self.noted.pop_front();
            self.displaced += 1;
        }
        self.noted.push_back(copied.clone());
    }

    /// The answer to a watcher, if there is something that it does not have.
    pub(super) fn answer(&self, wanted: &Watching) -> Option<Outcome> {
        let end = self.displaced + self.noted.len() as u64;
        // One that watched an earlier supervisor of this node starts over.
        let after = if wanted.after > end { 0 } else { wanted.after };
        if self.view.number <= wanted.view && after == end {
            return None;
        }
        let skip = usize::try_from(after.saturating_sub(self.displaced)).unwrap_or(usize::MAX);
        let noted: Vec<_> = self.noted.iter().skip(skip).take(NOTED_A_REPLY).cloned().collect();
        let next = after.max(self.displaced) + noted.len() as u64;
        Some(Outcome::Watched(Box::new(Watched {
            view: self.view.clone(),
            view_at_ns: self.view_at_ns,
            noted,
            next,
            missed: self.displaced.saturating_sub(after),
        })))
    }
}

impl Supervisor {
    /// Answers the watchers for which there is more, and those that have waited long enough.
    pub(super) fn answer_watchers(&mut self, now_ns: u64) {
        for (ticket, wanted) in self.clients.watching() {
            match self.watch.answer(&wanted) {
                Some(what) => self.clients.finish(ticket, what),
                None if now_ns >= wanted.deadline_ns => {
                    self.clients.finish(ticket, Outcome::Done);
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::chronicle::Entry;

    fn copied(noted_ns: u64) -> Copied {
        let entry = Entry { at_ns: noted_ns, observer: 0, node: 1, what: What::Suspected };
        Copied { entry, noted_ns }
    }

    fn answered(watch: &WatchFeed, view: u64, after: u64) -> Option<(u64, usize, u64)> {
        match watch.answer(&Watching { view, after, deadline_ns: 0 })? {
            Outcome::Watched(it) => Some((it.next, it.noted.len(), it.missed)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn m12_a_watcher_gets_what_it_does_not_have_once() {
        let mut watch = WatchFeed::new().unwrap();
        assert_eq!(answered(&watch, 0, 0), None);
        watch.note(&copied(1));
        watch.note(&Copied { entry: Entry { what: What::Gone, ..copied(2).entry }, noted_ns: 2 });
        assert_eq!(answered(&watch, 0, 0), Some((1, 1, 0)));
        assert_eq!(answered(&watch, 0, 1), None);
        watch.handle_view(ViewStatus { number: 7, ..ViewStatus::default() });
        assert_eq!(answered(&watch, 6, 1), Some((1, 0, 0)));
        assert_eq!(answered(&watch, 7, 1), None);
        assert_eq!(answered(&watch, 7, 9), Some((1, 1, 0)), "it knows another supervisor's count");
    }

    #[test]
    fn m12_a_watcher_that_reads_slowly_is_sent_how_much_it_missed() {
        let mut watch = WatchFeed::new().unwrap();
        (0..NOTED_MAX as u64 + 5).for_each(|at_ns| watch.note(&copied(at_ns)));
        let (next, len, missed) = answered(&watch, 0, 2).expect("there is more");
        assert_eq!((next, len, missed), (5 + NOTED_A_REPLY as u64, NOTED_A_REPLY, 3));
        let (_, _, missed) = answered(&watch, 0, next).expect("there is more");
        assert_eq!(missed, 0);
    }
}

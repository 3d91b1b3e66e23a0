//! What a member's program is to know of its cluster, in the order in which the member learned it.
//!
//! ```text
//!   what the component reports to its supervisor ─┐
//!   what the supervisor orders ───────────────────┴─▶ [ EVENTS_MAX ] ─▶ the program
//! ```
//!
//! An incarnation joins once and is removed once. When the program does not drain the events, the
//! later ones are counted instead of kept, and the count is the last event.

use std::collections::VecDeque;

use weft_core::dirnet::{Members, Term, ViewNumber};
use weft_core::ids::{Incarnation, Peer, PeerSet, Rank};
use weft_core::rendezvous::{OfferId, Received, RequestId};

use crate::node::chronicle::What;
use crate::node::link::FromComponent;

/// The most events that wait for the program.
const EVENTS_MAX: usize = 1024;

/// Something that a program learns of its cluster (M-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// This member shows this view, after those before it: see [`Member::view`].
    ///
    /// [`Member::view`]: crate::member::Member::view
    View {
        /// Its number.
        number: ViewNumber,
        /// Its members.
        members: Members,
    },
    /// Messages have gone to this incarnation of a member and back.
    Joined {
        /// The member.
        rank: Rank,
        /// Its incarnation.
        incarnation: Incarnation,
    },
    /// The program of this member has finished. Its node keeps its place in the cluster, and
    /// discards what is put or broadcast to it.
    Finished {
        /// The member.
        rank: Rank,
    },
    /// This incarnation of a member is gone: it is fenced, and changes no byte here any more.
    Removed {
        /// The member.
        rank: Rank,
        /// The incarnation that is gone.
        incarnation: Incarnation,
        /// How that is known.
        verdict: Verdict,
    },
    /// Not heard of for longer than the profile allows. No verdict: it may be heard of again.
    Suspected {
        /// The member.
        rank: Rank,
    },
    /// A suspect was heard of again.
    Trusted {
        /// The member.
        rank: Rank,
    },
    /// By decision no incarnation of this member takes part until an operator releases it.
    Isolated {
        /// The member.
        rank: Rank,
    },
    /// An operator has released this member.
    Released {
        /// The member.
        rank: Rank,
    },
    /// Two members show different messages under one number; neither is delivered.
    Conflict {
        /// The member that broadcast them, or that is said to have.
        origin: Rank,
        /// The number.
        seq: u64,
        /// The member that shows another message than this one.
        replayer: Rank,
    },
    /// A [receive](crate::member::Member::receive) has ended: once for each, at its deadline at the
    /// latest.
    Ended {
        /// Which.
        request: RequestId,
        /// How.
        outcome: Received,
    },
    /// The memory of a receive that has ended is free, or will be with its tensor: no byte of it
    /// changes any more. Once for each, after `Ended`.
    Returned {
        /// Which.
        request: RequestId,
    },
    /// The receiver has the tensor that was [sent](crate::member::Member::send).
    Consumed {
        /// Which.
        offer: OfferId,
    },
    /// This member was removed: this boot of its node is over. The node kills the process at once,
    /// mostly before it reads this; what must survive belongs into its
    /// [state](crate::member::Member::save).
    Excluded,
    /// End in order, within [`STOP_TIMEOUT`](crate::member::STOP_TIMEOUT).
    Stop,
    /// The program did not drain the events, and so many are lost.
    Missed {
        /// How many.
        count: u64,
    },
}

/// How it is known that an incarnation is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Its process has ended, as the supervisor of its node reports.
    Ended,
    /// The manager has removed its node.
    NodeRemoved {
        /// The term of that decision.
        term: Term,
    },
}

/// The events that the program has not drained.
#[derive(Debug)]
pub(crate) struct Events {
    queue: VecDeque<Event>,
    missed: u64,
    /// The incarnation of each peer that has joined and is not removed.
    present: Vec<Option<Incarnation>>,
    /// The peers whose programs have finished.
    finished: PeerSet,
    /// Those that are present and suspected.
    suspected: PeerSet,
    /// Whether this boot of the own node is over.
    excluded: bool,
}

impl Events {
    pub(super) fn new(nodes: usize) -> Self {
        let queue = VecDeque::with_capacity(EVENTS_MAX);
        Self {
            queue,
            missed: 0,
            present: vec![None; nodes],
            finished: PeerSet::EMPTY,
            suspected: PeerSet::EMPTY,
            excluded: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.missed == 0
    }

    pub(crate) fn next(&mut self) -> Option<Event> {
        let missed = || {
            let count = std::mem::take(&mut self.missed);
            (count > 0).then_some(Event::Missed { count })
        };
        self.queue.pop_front().or_else(missed)
    }

    pub(super) fn push(&mut self, event: Event) {
        if self.missed > 0 || self.queue.len() >= EVENTS_MAX {
            self.missed += 1;
        } else {
            self.queue.push_back(event);
        }
    }

    /// `incarnation` of `peer` has joined; `finished`, if it stands in for a program.
    pub(super) fn handle_joined(&mut self, peer: Peer, incarnation: Incarnation, finished: bool) {
        let Some(present) = self.present.get_mut(peer.index()) else { return };
        if present.replace(incarnation) == Some(incarnation) {
            return;
        }
        let rank = Rank(peer.0);
        if finished {
            self.finished.insert(peer);
            self.push(Event::Finished { rank });
        } else {
            self.finished.remove(peer);
            self.push(Event::Joined { rank, incarnation });
        }
    }

    pub(super) const fn is_excluded(&self) -> bool {
        self.excluded
    }

    /// Whether the program of `peer` has finished.
    pub(super) const fn has_finished(&self, peer: Peer) -> bool {
        self.finished.contains(peer)
    }

    /// The incarnation of `peer`, if one had joined, is fenced.
    pub(super) fn handle_fenced(&mut self, peer: Peer, verdict: Verdict) {
        let gone = self.present.get_mut(peer.index()).and_then(Option::take);
        if let Some(incarnation) = gone {
            self.suspected.remove(peer);
            self.push(Event::Removed { rank: Rank(peer.0), incarnation, verdict });
        }
    }

    /// A peer that is gone is no suspect.
    fn note_suspected(&mut self, peer: Peer) {
        let is_present = self.present.get(peer.index()).is_some_and(Option::is_some);
        if is_present && !self.suspected.contains(peer) {
            self.suspected.insert(peer);
            self.push(Event::Suspected { rank: Rank(peer.0) });
        }
    }

    fn note_trusted(&mut self, peer: Peer) {
        if self.suspected.contains(peer) {
            self.suspected.remove(peer);
            self.push(Event::Trusted { rank: Rank(peer.0) });
        }
    }

    /// What is reported to the supervisor, the program learns as well.
    pub(super) fn note(&mut self, message: &FromComponent) {
        match message {
            FromComponent::Removed { peer, epoch, claimant, .. } => {
                let term = Term { epoch: *epoch, claimant: Rank(*claimant) };
                self.handle_fenced(Peer(*peer), Verdict::NodeRemoved { term });
            }
            FromComponent::Isolated { node, .. } => {
                self.push(Event::Isolated { rank: Rank(*node) });
            }
            FromComponent::Released { node, .. } => {
                self.push(Event::Released { rank: Rank(*node) });
            }
            FromComponent::Disputed(conflict) => self.push(Event::Conflict {
                origin: Rank(conflict.origin),
                seq: conflict.seq,
                replayer: Rank(conflict.replayer),
            }),
            // Once, as each event of an incarnation.
            FromComponent::Excluded if !self.excluded => {
                self.excluded = true;
                self.push(Event::Excluded);
            }
            FromComponent::Note(entry) => match entry.what {
                What::Suspected => self.note_suspected(Peer(entry.node)),
                What::Restored => self.note_trusted(Peer(entry.node)),
                _ => {}
            },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::chronicle::Entry;

    const FIRST: Incarnation = Incarnation(7);

    #[test]
    fn m5_an_incarnation_joins_once_and_is_removed_once() {
        let mut events = Events::new(2);
        let (peer, rank) = (Peer(1), Rank(1));
        events.handle_joined(peer, FIRST, false);
        events.handle_joined(peer, FIRST, false);
        events.handle_fenced(peer, Verdict::Ended);
        events.note(&FromComponent::Removed { peer: 1, boot: 7, epoch: 1, claimant: 0 });
        events.handle_joined(peer, FIRST.next(), true);
        let drained: Vec<Event> = std::iter::from_fn(|| events.next()).collect();
        let removed = Event::Removed { rank, incarnation: FIRST, verdict: Verdict::Ended };
        let joined = Event::Joined { rank, incarnation: FIRST };
        assert_eq!(drained, [joined, removed, Event::Finished { rank }]);
    }

    #[test]
    fn m5_a_member_that_is_excluded_learns_so_once_and_its_calls_no_longer_wait() {
        let mut events = Events::new(2);
        assert!(!events.is_excluded());
        events.note(&FromComponent::Excluded);
        events.note(&FromComponent::Excluded);
        assert!(events.is_excluded(), "a spawned member ends its calls by it");
        assert_eq!((events.next(), events.next()), (Some(Event::Excluded), None));
    }

    fn noted(what: What) -> FromComponent {
        FromComponent::Note(Entry { at_ns: 0, observer: 0, node: 1, what })
    }

    #[test]
    fn m5_a_suspect_is_present_until_it_is_trusted_or_removed() {
        let mut events = Events::new(2);
        let (peer, rank) = (Peer(1), Rank(1));
        events.note(&noted(What::Suspected));
        events.note(&noted(What::Restored));
        assert!(events.is_empty(), "it is not present");
        events.handle_joined(peer, FIRST, false);
        events.note(&noted(What::Suspected));
        events.note(&noted(What::Suspected));
        events.note(&noted(What::Restored));
        events.note(&noted(What::Suspected));
        events.handle_fenced(peer, Verdict::Ended);
        events.note(&noted(What::Restored));
        let drained: Vec<Event> = std::iter::from_fn(|| events.next()).skip(1).collect();
        let removed = Event::Removed { rank, incarnation: FIRST, verdict: Verdict::Ended };
        let (suspected, trusted) = (Event::Suspected { rank }, Event::Trusted { rank });
        assert_eq!(drained, [suspected, trusted, suspected, removed]);
    }

    #[test]
    fn m5_events_that_find_no_room_are_counted() {
        let mut events = Events::new(2);
        for _ in 0..EVENTS_MAX + 3 {
            events.push(Event::Stop);
        }
        for _ in 0..EVENTS_MAX {
            assert_eq!(events.next(), Some(Event::Stop));
        }
        events.push(Event::Excluded);
        assert_eq!(events.next(), Some(Event::Missed { count: 4 }));
        events.push(Event::Excluded);
        assert_eq!((events.next(), events.next()), (Some(Event::Excluded), None));
        assert!(events.is_empty());
    }
}

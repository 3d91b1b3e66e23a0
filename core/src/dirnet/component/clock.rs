//! Deadlines: which exist, what happens at each, and what extends them.
//!
//! | timer | owner or key | at expiry |
//! |---|---|---|
//! | IA_FLAG (D-40) | all | the timers' progress is counted |
//! | MIA, TAIA_B (D-41, D-46) | all | a heartbeat goes out |
//! | TAIA, MIA_B (D-43, D-45) | by watched node | it is suspected |
//! | TEIF (D-42, D-47) | by suspect | the window ends with a conclusion |
//! | MID (G-9) | backup | the candidate is passed over |
//! | JOINING (G-18) | by node | the recovery escalates |
//! | REQUEST_DB, REPLY_DB (D-49) | all | the next member is asked |
//! | PROBE (X-1) | by suspect of another | the second observer testifies |
//!
//! All of them are declared here and exist from the start (G-15); each expiry carries its timer and
//! node (G-30).

use super::{Component, State, Watch};
use crate::dirnet::{Level, Members};
use crate::ids::Rank;
use crate::time::{Duration, Instant};

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Handles expired deadlines. Inputs that have already arrived must be handled first, or they
    /// count as not arrived.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.begin(now);
        if let State::Excluded = self.state {
            return;
        }
        if self.clear_due <= now {
            self.clear_due = now.after(self.timing().clear);
            self.progress.timers = self.progress.timers.wrapping_add(1);
        }
        if self.beat_due <= now {
            self.beat_due = now.after(self.timing().send);
            self.send_beat(now);
        }
        self.handle_state_deadline(now);
        self.renew_view_numbers(now);
        if self.sync.due().is_some_and(|due| due <= now) {
            self.request_over(now);
        }
        if self.sync.is_gossiping() {
            self.gossip();
            self.refence();
        }
        self.handle_errand_deadlines(now);
        let mut first = None;
        for node in self.config.others().iter() {
            if !self.outputs.has_room() {
                break;
            }
            if self.watch(node).deadline().is_some_and(|due| due <= now) {
                let reported = *first.get_or_insert(node);
                if crate::dirnet::FIRST_EXPIRY_REPEATS.is_planted() && reported != node {
                    // The original's behaviour: the entry at the top of the list is reported again
                    // (G-30).
                    self.set_watch(node, Watch::Off);
                    continue;
                }
                self.handle_watch_deadline(now, node);
            }
        }
    }

    fn handle_state_deadline(&mut self, now: Instant) {
        match self.state {
            State::Joining(joining) if joining.due <= now => self.join_over(now),
            State::Backup(succession)
                if succession.candidate.is_some_and(|(_, due)| due <= now) =>
            {
                self.candidate_over(now);
            }
            State::Joining(_) | State::Backup(_) | State::Manager | State::Excluded => {}
        }
    }

    fn handle_watch_deadline(&mut self, now: Instant, node: Rank) {
        match self.watch(node) {
            Watch::Off => {}
            Watch::Up { .. } => self.suspect(now, node),
            Watch::Suspect(suspicion) => self.window_over(now, node, suspicion),
            Watch::Joining { incarnation, .. } => self.joining_over(now, node, incarnation),
            Watch::Fencing { incarnation, fenced, reset, .. } => {
                self.fence_again(now, node, incarnation, fenced, reset);
            }
        }
    }

    /// Sends MIA to all nodes that are not isolated, or TAIA to the manager. MIA also goes to
    /// removed nodes: a later incarnation of one may manage other nodes and hold this node removed,
    /// and one of the two has to begin.
    fn send_beat(&mut self, now: Instant) {
        let to: Members = match self.state {
            State::Manager => {
                let is_out = |node: &Rank| {
                    self.db.standing(*node).level == Level::Isolated
                        || (self.is_removed(*node)
                            && crate::dirnet::REMOVED_HEAR_NOTHING.is_planted())
                };
                self.config.others().iter().filter(|node| !is_out(node)).collect()
            }
            State::Backup(_) => Members::only(self.term.claimant).without(self.me()),
            State::Joining(_) | State::Excluded => Members::NONE,
        };
        if to.is_empty() {
            return;
        }
        // Zero means that no heartbeat was received.
        self.beats = self.beats.wrapping_add(1).max(1);
        self.owed = to;
        self.is_unheard = !self.may_be_heard(now);
        match (self.state, self.is_unheard) {
            (State::Manager, true) => self.tell_unheard(),
            (State::Manager, false) => self.is_unheard_told = false,
            (State::Backup(_) | State::Joining(_) | State::Excluded, _) => {}
        }
    }

    pub(super) fn is_removed(&self, node: Rank) -> bool {
        let standing = self.db.standing(node);
        standing.is_known() && !standing.is_up()
    }

    /// When to call [`Self::handle_timeout`] if no other input comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let state = match self.state {
            State::Excluded => return None,
            State::Joining(joining) => Some(joining.due),
            State::Backup(succession) => succession.candidate.map(|(_, due)| due),
            State::Manager => None,
        };
        let gossip = self.sync.is_gossiping().then_some(Instant(0));
        // Asked for after every input: without chains of iterators, which are not inlined.
        let mut first = self.clear_due.min(self.beat_due);
        let mut include = |due: Option<Instant>| first = due.map_or(first, |due| due.min(first));
        [state, self.sync.due(), gossip].into_iter().for_each(&mut include);
        self.fellows.iter().for_each(|fellow| include(fellow.watch.deadline()));
        self.errands.iter().for_each(|errand| include(errand.map(|errand| errand.due)));
        Some(first)
    }

    /// This component did not poll for `lag`: extends every deadline that it imposes on others
    ///
    pub(super) fn extend(&mut self, lag: Duration) {
        self.for_each_awaited(|due| *due = due.after(lag));
    }

    /// Shifts the component to an origin of time that lies `by` later. For model checkers, which
    /// treat two states as equal if they differ only in the time at which they were reached.
    pub fn rebase(&mut self, by: Duration) {
        let earlier = |at: &mut Instant| *at = Instant(at.since(Instant(by.0)).0);
        self.for_each_awaited(earlier);
        earlier(&mut self.clear_due);
        earlier(&mut self.beat_due);
        earlier(&mut self.reigns_since);
        earlier(&mut self.outbids_after);
        if let State::Backup(succession) = &mut self.state {
            earlier(&mut succession.lost);
            succession.answered.iter_mut().for_each(earlier);
        }
        self.health.rebase(by);
        self.explanations = Default::default();
        for fellow in &mut self.fellows {
            earlier(&mut fellow.heard);
            earlier(&mut fellow.since);
            fellow.echo.rebase(by);
            fellow.lost.iter_mut().for_each(earlier);
            if let Watch::Suspect(suspicion) = &mut fellow.watch {
                earlier(&mut suspicion.asked_at);
            }
            if let Some(raised) = &mut fellow.raised {
                earlier(&mut raised.at);
            }
            fellow.spawns.rebase(by);
        }
        self.db.rebase(by);
    }

    /// Applies `change` to every deadline by which another node must be heard from.
    fn for_each_awaited(&mut self, mut change: impl FnMut(&mut Instant)) {
        match &mut self.state {
            State::Joining(joining) => change(&mut joining.due),
            State::Backup(succession) => {
                if let Some((_, due)) = &mut succession.candidate {
                    change(due);
                }
            }
            State::Manager | State::Excluded => {}
        }
        self.sync.due_mut().into_iter().for_each(&mut change);
        for fellow in &mut self.fellows {
            fellow.watch.deadline_mut().into_iter().for_each(&mut change);
        }
        for errand in self.errands.iter_mut().flatten() {
            change(&mut errand.due);
        }
    }
}

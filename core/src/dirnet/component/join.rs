//! How a component starts: with the cluster file's roles, or by asking (D-7, D-8, G-19 to G-21).
//!
//! ```text
//!  nothing saved ─▶ static: role of the cluster file, first term
//!  a term saved  ─▶ WITM to all, NMIs are collected until JOIN is over
//!                    answered: the highest term's backup (or, if it names this node, term + 1)
//!                    silence:  the static role, above the saved term; a node that knows that it
//!                              was removed has no role left, and asks until it is answered
//! ```
//!
//! The static roles stand only if all others ask as well, so that no node could answer. A node that
//! hears no other member, not even one that asks, may be deaf: it claims no term, but keeps asking
//! (X-9).

use super::sync::Past;
use super::{Component, Role, Rule, State};
use crate::dirnet::{Frame, Members, Message, Reject, Seat, Standing, Term};
use crate::ids::Rank;
use crate::time::Instant;

/// Waiting for answers to WITM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Joining {
    pub(super) due: Instant,
    is_answered: bool,
    /// Nodes that ask as well: none of them is manager.
    pub(super) asking: Members,
}

impl Joining {
    pub(super) const fn new(due: Instant) -> Self {
        Self { due, is_answered: false, asking: Members::NONE }
    }
}

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Starts the component. It has the static role only if it has saved no term, is not isolated,
    /// and knows of no removal (G-19, G-21).
    pub(super) fn start(&mut self, now: Instant, kept: Option<Term>) {
        let is_first = kept.is_none() || crate::dirnet::CLONES_START_AGAIN.is_planted();
        if is_first && !self.is_isolated() && !self.is_outcast() {
            self.start_static(now);
        } else {
            self.ask_for_manager(now);
        }
        // Its timers run from now on, so its task may watch it (D-12).
        self.send(Members::only(self.me()), Seat::ImAliveTask, Message::Rouse);
    }

    /// Asks all others who the manager is, and collects the answers (D-8). An isolated node asks
    /// for its release instead, until it comes.
    pub(super) fn ask_for_manager(&mut self, now: Instant) {
        let mut joining = Joining::new(now.after(self.timing().join));
        if let State::Joining(before) = self.state {
            joining.asking = before.asking;
        }
        self.state = State::Joining(joining);
        let others = self.config.others();
        if self.is_isolated() {
            self.tell_isolated(others, self.me());
        } else {
            self.send(others, Seat::Component, Message::Witm);
        }
    }

    fn start_static(&mut self, now: Instant) {
        let term = self.config.first_term();
        // This node's own entry goes to all others, and is the first that they receive.
        self.sync.past = Past::Settled;
        self.begin_gossip();
        if term.claimant != self.me() {
            self.rise(now, term);
            return self.follow(now);
        }
        self.become_manager(now, term);
    }

    /// Ends the time for answers.
    pub(super) fn join_over(&mut self, now: Instant) {
        let State::Joining(joining) = self.state else { return };
        // An isolated node runs no component, and names no manager.
        let may_name = |node: &Rank| {
            !self.is_isolated_here(*node) || crate::dirnet::THE_ISOLATED_ARE_AWAITED.is_planted()
        };
        let mut others = self.config.others().iter().filter(may_name);
        let may_be_missed = others.any(|node| !joining.asking.contains(node));
        let is_unanswered = !joining.is_answered && self.is_outcast() && may_be_missed;
        if is_unanswered || self.is_isolated() {
            return self.ask_for_manager(now);
        }
        self.stand_up();
        let may_manage = self.config.may_manage(self.me());
        let is_own = self.term.claimant == self.me();
        let is_static = self.config.first_term().claimant == self.me();
        let claims = if joining.is_answered { is_own } else { is_own || is_static };
        if claims && !self.may_begin(joining) {
            self.tell_unheard();
            return self.ask_for_manager(now);
        }
        if claims && may_manage {
            let rule = if joining.is_answered { Rule::OwnTerm } else { Rule::Succession };
            self.claim(now, rule);
        } else {
            self.follow(now);
        }
        if self.role() == Role::Backup {
            self.ask_for_database(now, self.term.claimant);
        }
    }

    /// Whether a claim now would not be a deaf node's: another member has answered or asks as well,
    /// or no other member is left. A cluster of two has no witness.
    fn may_begin(&self, joining: Joining) -> bool {
        joining.is_answered
            || !joining.asking.is_empty()
            || self.config.nodes() < 3
            || self.is_last_alive()
            || crate::dirnet::THE_DEAF_BEGIN.is_planted()
    }

    /// Whether an earlier incarnation of this node was removed and no answer has named the manager
    /// yet.
    pub(super) fn is_outcast(&self) -> bool {
        let standing = self.db.standing(self.me());
        standing.is_known() && !standing.is_up() && !crate::dirnet::OUTCASTS_CLAIM.is_planted()
    }

    /// Records that this node's present incarnation is the one to admit.
    pub(super) fn stand_up(&mut self) {
        self.db.advance(self.me(), Standing::up(self.incarnation));
    }

    /// Handles the answer that names the manager; its term is already known.
    pub(super) fn handle_nmi(&mut self, now: Instant) {
        if self.is_outcast() && self.term.claimant == self.me() {
            // The sender has not learned of the removal, or of what came after it.
            return;
        }
        if let State::Joining(joining) = &mut self.state {
            joining.is_answered = true;
            if crate::dirnet::FIRST_ANSWER_WINS.is_planted() {
                self.join_over(now);
            }
        }
    }

    /// "Who is the manager?"
    pub(super) fn handle_witm(&mut self, now: Instant, frame: &Frame) -> Result<(), Reject> {
        let from: Rank = frame.sender;
        match self.state {
            State::Joining(ref mut joining) => {
                joining.asking.insert(from);
                return Err(Reject::Joining);
            }
            State::Excluded => return Err(Reject::Joining),
            State::Manager => {
                // The joiner cannot adopt a term below the one it knows, so the manager claims a
                // higher one.
                if frame.term > self.term {
                    self.claim_above(now, frame.term, Rule::Outbid);
                }
                self.await_joiner(now, from, frame.incarnation);
            }
            // The manager may not hear the joiner.
            State::Backup(ref mut succession) if frame.term > self.term => {
                if !crate::dirnet::JOINERS_COUNT_AS_DEAD.is_planted() {
                    succession.asking.insert(from);
                }
                self.tell_above(frame.term);
                // This node's own term is over. If no member is left that answers, this node claims
                // a term above the one that the joiner knows; otherwise each would wait for the
                // other (X-9).
                if self.misses_manager() && !crate::dirnet::JOINERS_ANSWER_NOTHING.is_planted() {
                    self.note_answer(now);
                }
            }
            State::Backup(_) => {}
        }
        self.send(Members::only(from), Seat::Component, Message::Nmi);
        Ok(())
    }

    /// Reports to the manager that a node knows a higher term, and so cannot follow it.
    pub(super) fn tell_above(&mut self, term: Term) {
        if !crate::dirnet::TERMS_ARE_KEPT_BACK.is_planted() {
            let manager = Members::only(self.term.claimant);
            self.send(manager, Seat::Component, Message::Outbid { term });
        }
    }

    /// A member has heard from a node that knows `term`: the manager claims a higher one.
    pub(super) fn handle_outbid(&mut self, now: Instant, term: Term) -> Result<(), Reject> {
        if self.role() != Role::Manager {
            return Err(Reject::NotForMe);
        }
        if !self.config.may_manage(term.claimant) {
            return Err(Reject::BadSubject);
        }
        if term > self.term {
            self.claim_above(now, term, Rule::Outbid);
        }
        Ok(())
    }
}

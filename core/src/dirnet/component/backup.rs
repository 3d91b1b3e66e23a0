//! Loss of the manager: who succeeds it, and how a claim is made and adopted (G-9, G-10).
//!
//! ```text
//!  manager lost ─▶ next in the ring that is up and may manage
//!                    │ it is me: term + 1, NMI to all, then the old manager is dealt with
//!                    └ it is another: wait MID for it; then it is passed over, and so on
//! ```
//!
//! The next candidate asks all other members whether they reach the manager before its turn comes.
//! If one of them does, a link is down and not the manager, and no node succeeds it (G-11).
//! Otherwise the two ends of a link that stays cut would claim higher terms in turn forever.
//!
//! A claim needs an answer of a member during this loss (X-9): a node that hears no other member
//! may be deaf itself, and deposes no manager. The last remaining member also claims, once the end
//! of each other member was reported by the transport or by the member's own I'm-Alive Task;
//! silence is not such a report. A claim that this node refuses because it holds the claimant
//! removed is an answer too.
//!
//! When a partition heals, a single node may be left of the half that removed the other half's
//! manager. It cannot follow an incarnation that it has fenced, and with no member of its own half
//! left it cannot claim: it gives way, and joins in its next incarnation (`is_outvoted`).
//!
//! A candidate that is passed over is not removed. Two simultaneous claims are two terms, and the
//! higher one wins: the other claimant becomes a backup in place (G-22) and requests the database.

use super::suspicion::Loss;
use super::watch::Reset;
use super::{Component, News, Role, Rule, State, Verdict, Watch, Why};
use crate::dirnet::config::Part;
use crate::dirnet::{Change, ComponentIncarnation, Level, Members, Message, Output, Seat, Term};
use crate::ids::Rank;
use crate::time::{Duration, Instant};

/// How far a backup has come in its search for the next manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Succession {
    /// Candidates that had their turn and did not claim.
    passed: Members,
    /// The current candidate and the end of its turn (the MID timer).
    pub(super) candidate: Option<(Rank, Instant)>,
    /// Why the manager is presumed lost.
    loss: Option<Loss>,
    /// When that was concluded.
    pub(super) lost: Instant,
    /// The round in which the others were asked whether they reach the manager, if this node is
    /// next.
    pub(super) round: Option<u32>,
    /// A member follows an incarnation that this node has fenced, in a later term.
    pub(super) is_outvoted: bool,
    /// When a member last answered that it does not reach the manager.
    pub(super) answered: Option<Instant>,
    /// The members that have answered in this round.
    pub(super) alive: Members,
    /// Nodes that have asked for the manager: no members yet, but they run and follow none.
    pub(super) asking: Members,
}

impl Succession {
    /// The manager was heard from: ends the search.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns the next node in the ring after the manager that is up, may manage and was not
    /// passed over.
    pub(super) fn next<const NODES: usize, const TASKS: usize>(
        &self,
        component: &Component<NODES, TASKS>,
    ) -> Option<Rank> {
        let (config, manager) = (&component.config, component.term.claimant);
        if crate::dirnet::SUCCESSOR_UNSEEN.is_planted() {
            // The original's behaviour: the next number, whether that node is up or down (D-53).
            return config.ring_after(manager).next();
        }
        let members = component.members();
        config.ring_after(manager).find(|node| {
            let is_alive = *node == component.me() || members.contains(*node);
            let is_free = *node != manager && !self.passed.contains(*node);
            is_alive && is_free && config.may_manage(*node)
        })
    }
}

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Whether this backup has not heard its manager for longer than R.
    pub(super) fn misses_manager(&self) -> bool {
        let is_heard = matches!(self.watch(self.term.claimant), Watch::Up { .. });
        matches!(self.state, State::Backup(_)) && !is_heard
    }

    /// Starts the search for a successor: the manager is lost.
    pub(super) fn lose_manager(&mut self, now: Instant, loss: Loss) {
        let State::Backup(succession) = &mut self.state else { return };
        (succession.loss, succession.lost) = (Some(loss), now);
        self.pass_on(now);
    }

    /// Starts the search at once: the manager's node was removed (G-12).
    pub(super) fn lose_removed_manager(&mut self, now: Instant) {
        let why = Why::from(Rule::Removed);
        self.lose_manager(now, Loss::Node { why, is_corroborated: false });
    }

    /// Records that another member does not reach the manager either.
    pub(super) fn note_answer(&mut self, now: Instant) {
        if let State::Backup(succession) = &mut self.state {
            succession.answered = Some(now);
        }
    }

    /// The candidate has not claimed within MID.
    pub(super) fn candidate_over(&mut self, now: Instant) {
        let State::Backup(succession) = &mut self.state else { return };
        if let Some((candidate, _)) = succession.candidate.take() {
            succession.passed.insert(candidate);
        }
        if !crate::dirnet::NO_CANDIDATE_TIMER.is_planted() {
            self.pass_on(now);
        }
    }

    /// Passes the turn to the next candidate.
    fn pass_on(&mut self, now: Instant) {
        let State::Backup(succession) = self.state else { return };
        let manager = self.term.claimant;
        self.set_watch(manager, Watch::Off);
        let all = crate::dirnet::ALL_SUCCEED.is_planted();
        let due = now.after(self.timing().candidate);
        let (next, loss) = (succession.next(self), succession.loss);
        match (next, loss) {
            (Some(next), Some(loss)) if next == self.me() || all => {
                self.succeed(now, loss);
            }
            (Some(next), _) => {
                let mut waiting = Succession { candidate: Some((next, due)), ..succession };
                waiting.round = self.ask_before_turn(waiting, next);
                waiting.alive = Members::NONE;
                self.state = State::Backup(waiting);
            }
            // An agent that has passed over all candidates asks who the manager is.
            (None, _) => self.ask_for_manager(now),
        }
    }

    /// Asks the others ahead of this node's turn. The last candidate before this node may have no
    /// reason to claim, if it hears the manager and only this node does not. So the next node asks
    /// the others meanwhile, as the first candidate did in its window (G-11).
    fn ask_before_turn(&mut self, mut waiting: Succession, candidate: Rank) -> Option<u32> {
        waiting.passed.insert(candidate);
        let is_next = waiting.next(self).is_none_or(|next| next == self.me());
        let is_silent =
            matches!(waiting.loss, Some(Loss::Node { why, .. }) if why.rule == Rule::Silence);
        (is_next && is_silent).then(|| self.ask_all(self.term.claimant))
    }

    /// This node succeeds the manager.
    fn succeed(&mut self, now: Instant, loss: Loss) {
        let manager = self.term.claimant;
        let State::Backup(succession) = self.state else { return };
        let Succession { passed, alive, asking, .. } = succession;
        let Some(rule) = self.may_claim(now, loss, &succession) else {
            if succession.is_outvoted && !crate::dirnet::THE_OUTVOTED_STAY.is_planted() {
                return self.exclude();
            }
            self.tell_unheard();
            self.state = State::Backup(Succession::default());
            let incarnation = self.db.standing(manager).incarnation;
            return self.doubt(now, manager, incarnation, Rule::Silence);
        };
        // If only the manager's component is down, its node is reachable: its own task reports
        // that. One that too few members hear is alive.
        let is_met = (matches!(loss, Loss::Agent(_)) || self.is_half_heard(now, manager))
            && !crate::dirnet::LOST_AGENTS_COUNT_AS_DEAD.is_planted();
        // A candidate that did not claim, but has just answered, may only have met the manager.
        let is_alive = |n: &Rank| {
            let has_answered =
                alive.contains(*n) && !crate::dirnet::THE_PASSED_ARE_DEAD.is_planted();
            (*n != manager || is_met) && (!passed.contains(*n) || has_answered)
        };
        let alive: Members = self.members().iter().filter(is_alive).chain(asking.iter()).collect();
        if alive.count() + 1 < u32::from(self.config.min_alive()) {
            self.tell(News::TooFew);
            let due = now.after(self.timing().window);
            self.state = State::Backup(Succession::default());
            return self.set_watch(manager, Watch::Up { due });
        }
        if !self.claim(now, rule) {
            return;
        }
        let incarnation = self.db.standing(manager).incarnation;
        if !self.db.standing(manager).is_up() {
            return;
        }
        match loss {
            Loss::Agent(why) => self.recover_agent(now, manager, incarnation, why),
            Loss::Node { why, is_corroborated: true }
                if self.may_decide(now) && self.is_settled(&passed, why) =>
            {
                self.remove_node(now, manager, incarnation, why);
            }
            Loss::Node { .. } => self.doubt(now, manager, incarnation, Rule::Silence),
        }
    }

    /// Whether the loss of the manager needs no further inquiry: its own node has reported the
    /// cause, or every other member has just answered. A member that stayed silent may reach the
    /// manager.
    fn is_settled(&self, passed: &Members, why: Why) -> bool {
        let testimonies = why.evidence.testimonies;
        let is_answered = testimonies.answered() == testimonies.asked;
        why.rule != Rule::Silence
            || (is_answered && *passed == Members::NONE)
            || crate::dirnet::SILENT_WITNESSES_COUNT.is_planted()
    }

    /// Returns the rule by which this node may claim a term now (X-9), if any: the loss is
    /// established by more than silence, another member has answered during it, or no other member
    /// is left. In a cluster of two there is no other member to ask.
    fn may_claim(&self, now: Instant, loss: Loss, succession: &Succession) -> Option<Rule> {
        let timing = self.timing();
        // An answer from before this node stood still is no evidence about the present.
        let turn = timing.candidate.0.saturating_add(timing.delay.0);
        let limit = timing.verdict_after().max(Duration(turn));
        // So is what established the loss: the turns were extended meanwhile.
        let turns = timing.candidate.0.saturating_mul(1 + u64::from(succession.passed.count()));
        let is_new = now.since(succession.lost) <= Duration(turns)
            || crate::dirnet::OLD_LOSSES_COUNT.is_planted();
        let is_answered = match loss {
            Loss::Agent(_) => is_new,
            Loss::Node { why, .. } => {
                let said = why.evidence;
                let is_reported = said.alarm.is_some() && is_new || why.rule == Rule::Removed;
                // Either this node's own window has just ended, or another candidate's turn, in
                // which it has asked again.
                let is_first = succession.passed.is_empty();
                let is_recent = succession.answered.is_some_and(|at| now.since(at) <= limit)
                    || (succession.answered.is_some()
                        && crate::dirnet::OLD_ANSWERS_COUNT.is_planted());
                is_reported || is_recent || (is_first && said.testimonies.count() > 0)
            }
        };
        if is_answered
            || self.config.nodes() < 3
            || crate::dirnet::CLAIMS_NEED_NO_ANSWER.is_planted()
        {
            return Some(Rule::Succession);
        }
        self.is_last_alive().then_some(Rule::LastAlive)
    }

    /// Claims a term above all known ones; returns whether one was left to claim.
    pub(super) fn claim(&mut self, now: Instant, rule: Rule) -> bool {
        self.claim_above(now, self.term, rule)
    }

    /// Claims a term above `known`, which is at least this node's own; returns whether one was
    /// left.
    ///
    /// Where links are not transitive, a third node may report two managers to each other again and
    /// again. A manager that has claimed a higher term therefore waits before it does so again,
    /// each rank for a different time, so that one of them follows.
    pub(super) fn claim_above(&mut self, now: Instant, known: Term, rule: Rule) -> bool {
        let waits = now < self.outbids_after && !crate::dirnet::TERMS_RACE.is_planted();
        if rule == Rule::Outbid && waits {
            return false;
        }
        let Some(term) = known.claimed_by(self.me()) else {
            self.tell(News::NoMoreTerms);
            return false;
        };
        if crate::dirnet::WINNER_STARTS_OVER.is_planted() {
            // The original's behaviour: the restarted task reads its old role again (G-22).
            self.state = State::Backup(Succession::default());
            return false;
        }
        if rule == Rule::Outbid {
            let timing = self.timing();
            let turn = timing.send.0.saturating_mul(u64::from(self.me().0));
            self.outbids_after = now.after(timing.receive).after(Duration(turn));
        }
        self.become_manager(now, term);
        self.explain(now, self.me(), self.incarnation, Verdict::TookOver, rule.into());
        let members = self.members();
        self.send(members, Seat::Component, Message::Nmi);
        true
    }

    /// Makes this node manager: it watches every member from now on, and completes what the
    /// previous manager may have left undone. A node that is down is reset once all members have
    /// fenced it, even if it was reset before: a reset names the incarnation that it ends and
    /// affects no later one. A node that was never heard from is awaited, and then reported.
    pub(super) fn become_manager(&mut self, now: Instant, term: Term) {
        self.term = term;
        self.outputs.push(Output::Keep(term));
        let was_manager = self.role() == Role::Manager;
        self.state = State::Manager;
        self.reigns_since = now;
        self.is_unheard_told = false;
        self.beat_due = now;
        if !crate::dirnet::FOLLOWERS_OF_BEFORE_OWE_NOTHING.is_planted() {
            self.fellows.iter_mut().for_each(|fellow| fellow.since = now);
        }
        for node in self.config.others().iter() {
            let watch = match self.watch(node) {
                Watch::Suspect(_) if crate::dirnet::CLAIMS_END_SUSPICIONS.is_planted() => {
                    self.inherited(now, node)
                }
                // What this manager has begun continues in its next term.
                begun @ (Watch::Fencing { .. } | Watch::Joining { .. } | Watch::Suspect(_))
                    if was_manager =>
                {
                    begun
                }
                _ => self.inherited(now, node),
            };
            self.set_watch(node, watch);
        }
        self.change_own(Change::Role(Part::Manager as u8));
    }

    /// Returns the watch with which a new manager starts on `node`.
    pub(super) fn inherited(&self, now: Instant, node: Rank) -> Watch {
        let standing = self.db.standing(node);
        let forgets = crate::dirnet::HEIRS_OWE_NOTHING.is_planted();
        match standing.level {
            _ if !standing.is_known() && crate::dirnet::ABSENT_ARE_AWAITED.is_planted() => {
                Watch::Off
            }
            // A node that is not heard from in time is reported (G-24).
            _ if !standing.is_known() => Watch::Joining {
                incarnation: ComponentIncarnation::default(),
                due: now.after(self.timing().clone),
            },
            Level::Up => Watch::Up { due: now.after(self.timing().receive) },
            Level::Down if !forgets => Watch::Fencing {
                incarnation: standing.incarnation,
                fenced: match crate::dirnet::HEIRS_INHERIT_FENCES.is_planted() {
                    true => self.members(),
                    false => Members::NONE,
                },
                due: now,
                reset: Reset::Follows,
            },
            Level::Down | Level::Isolated | Level::Released => Watch::Off,
        }
    }

    /// Adopts a higher term.
    pub(super) fn rise(&mut self, now: Instant, term: Term) {
        let was = self.role();
        if was == Role::Manager && crate::dirnet::RIVALS_ARE_IGNORED.is_planted() {
            return;
        }
        self.term = term;
        self.outputs.push(Output::Keep(term));
        match self.state {
            State::Joining(_) | State::Excluded => {}
            // An earlier incarnation of this node claimed it.
            State::Manager | State::Backup(_) if term.claimant == self.me() => {
                self.claim(now, Rule::OwnTerm);
            }
            State::Manager | State::Backup(_) => {
                self.follow(now);
                if was == Role::Manager {
                    self.change_own(Change::Role(Part::Backup as u8));
                    self.ask_for_database(now, term.claimant);
                }
            }
        }
    }

    /// Makes this node a backup of the current claimant: its one watch is turned to it (G-15).
    pub(super) fn follow(&mut self, now: Instant) {
        let manager = self.term.claimant;
        self.state = State::Backup(Succession::default());
        if !crate::dirnet::DEAFNESS_OUTLIVES_TERMS.is_planted() {
            self.forget_deafness();
        }
        self.is_unheard_told = false;
        self.tell(News::Follows(manager));
        for node in self.config.others().iter() {
            self.set_watch(node, Watch::Off);
        }
        let due = now.after(self.timing().receive);
        if !crate::dirnet::WATCH_IS_NOT_TURNED.is_planted() {
            self.set_watch(manager, Watch::Up { due });
        }
        self.beat_due = now;
    }
}

//! The manager is lost: who follows, and how a claim is made and adopted (G-9, G-10).
//!
//! ```text
//!  manager lost ─▶ next in the ring that is up and may manage
//!                    │ it is me: term + 1, NMI to all, then the old manager is dealt with
//!                    └ it is another: wait MID for it; then it is passed over, and so on
//! ```
//!
//! Whoever is next asks all others whether they meet the manager, before its turn comes: where one
//! does, a link is down and not the manager, and nobody follows it (G-11). Else the two ends of a
//! link that stays cut would outbid each other for ever.
//!
//! A claim needs an answer of a member in this loss (X-9): one that hears no other member may be
//! deaf itself, and deposes no manager. The last member that is left claims as well, once the end
//! of each other one was reported, by the transport or by its own I'm-Alive Task; silence is no
//! report. A claim that this node refuses, since it holds the claimant removed, is an answer too.
//!
//! Where a partition heals, one node may be left of the half that removed the other half's manager.
//! It cannot follow an incarnation that it has fenced, and with no member of its own half left it
//! cannot claim: it gives way, and joins in its next incarnation (`is_outvoted`).
//!
//! Being passed over removes nobody. Two claims at once are two terms, and the higher one wins:
//! its rival becomes a backup in place (G-22) and asks for the database.

use super::suspicion::Loss;
use super::watch::Reset;
use super::{Component, News, Role, Rule, State, Verdict, Watch, Why};
use crate::dirnet::config::Part;
use crate::dirnet::{Change, Level, Life, Members, Message, Output, Seat, Term};
use crate::ids::Rank;
use crate::time::{Duration, Instant};

/// Where a backup is in the search for the next manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Succession {
    /// They had their turn and did not claim.
    passed: Members,
    /// Whose turn it is, and until when (the MID timer).
    pub(super) candidate: Option<(Rank, Instant)>,
    /// Why the manager is thought lost.
    loss: Option<Loss>,
    /// How the others were asked whether they meet the manager, if this node's turn is next.
    pub(super) round: Option<u32>,
    /// A member follows an incarnation that this node has fenced, in a later term.
    pub(super) is_outvoted: bool,
    /// When one of them answered that it does not.
    pub(super) answered: Option<Instant>,
}

impl Succession {
    /// The manager was heard of: nothing is being searched.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// The next in the ring after the manager that is up, may manage and was not passed over.
    pub(super) fn next<const NODES: usize, const TASKS: usize>(
        &self,
        component: &Component<NODES, TASKS>,
    ) -> Option<Rank> {
        let (config, manager) = (&component.config, component.term.claimant);
        if crate::dirnet::SUCCESSOR_UNSEEN.is_planted() {
            // What the original did: the next number, dead or alive (D-53).
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

    /// The manager is lost.
    pub(super) fn lose_manager(&mut self, now: Instant, loss: Loss) {
        let State::Backup(succession) = &mut self.state else { return };
        succession.loss = Some(loss);
        self.pass_on(now);
    }

    /// The manager's node stands removed: no need to wait (G-12).
    pub(super) fn lose_removed_manager(&mut self, now: Instant) {
        let why = Why::from(Rule::Removed);
        self.lose_manager(now, Loss::Node { why, is_corroborated: false });
    }

    /// Another member does not meet the manager either.
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

    /// To whoever is next.
    fn pass_on(&mut self, now: Instant) {
        let State::Backup(succession) = self.state else { return };
        let manager = self.term.claimant;
        self.set_watch(manager, Watch::Off);
        let everybody = crate::dirnet::EVERYBODY_SUCCEEDS.is_planted();
        let due = now.after(self.timing().candidate);
        let (next, loss) = (succession.next(self), succession.loss);
        match (next, loss) {
            (Some(next), Some(loss)) if next == self.me() || everybody => {
                self.succeed(now, loss);
            }
            (Some(next), _) => {
                let mut waiting = Succession { candidate: Some((next, due)), ..succession };
                waiting.round = self.ask_before_turn(waiting, next);
                self.state = State::Backup(waiting);
            }
            // An agent whose candidates have all been passed over asks who the manager is.
            (None, _) => self.ask_for_manager(now),
        }
    }

    /// The last candidate before this node may have no reason to claim: it hears the manager, and
    /// only this node does not. So whoever is next asks the others meanwhile, as the first of the
    /// candidates did in its window (G-11).
    fn ask_before_turn(&mut self, mut waiting: Succession, candidate: Rank) -> Option<u32> {
        waiting.passed.insert(candidate);
        let is_next = waiting.next(self).is_none_or(|next| next == self.me());
        let is_silent =
            matches!(waiting.loss, Some(Loss::Node { why, .. }) if why.rule == Rule::Silence);
        (is_next && is_silent).then(|| self.ask_all(self.term.claimant))
    }

    /// This node follows the manager.
    fn succeed(&mut self, now: Instant, loss: Loss) {
        let manager = self.term.claimant;
        let State::Backup(succession) = self.state else { return };
        let passed = succession.passed;
        let Some(rule) = self.may_claim(now, loss, &succession) else {
            if succession.is_outvoted && !crate::dirnet::THE_OUTVOTED_STAY.is_planted() {
                return self.exclude();
            }
            self.tell_unheard();
            self.state = State::Backup(Succession::default());
            let life = self.db.standing(manager).life;
            return self.doubt(now, manager, life, Rule::Silence);
        };
        // The node of a manager whose component alone is down is met: its own task says so.
        let is_met = matches!(loss, Loss::Agent(_))
            && !crate::dirnet::LOST_AGENTS_COUNT_AS_DEAD.is_planted();
        let is_alive = |n: &Rank| (*n != manager || is_met) && !passed.contains(*n);
        let alive = self.members().iter().filter(is_alive);
        if alive.count() + 1 < usize::from(self.config.min_alive()) {
            self.tell(News::TooFew);
            let due = now.after(self.timing().window);
            self.state = State::Backup(Succession::default());
            return self.set_watch(manager, Watch::Up { due });
        }
        if !self.claim(now, rule) {
            return;
        }
        let life = self.db.standing(manager).life;
        if !self.db.standing(manager).is_up() {
            return;
        }
        match loss {
            Loss::Agent(why) => self.recover_agent(now, manager, life, why),
            Loss::Node { why, is_corroborated: true }
                if self.may_decide(now) && self.is_settled(&passed, why) =>
            {
                self.remove_node(now, manager, life, why);
            }
            Loss::Node { .. } => self.doubt(now, manager, life, Rule::Silence),
        }
    }

    /// Whether nothing is left to ask about the manager that is lost: its node has said itself what
    /// is the matter, or each other member has just answered. One that was silent may meet it.
    fn is_settled(&self, passed: &Members, why: Why) -> bool {
        let testimonies = why.evidence.testimonies;
        let is_answered = testimonies.answered() == testimonies.asked;
        why.rule != Rule::Silence
            || (is_answered && *passed == Members::NONE)
            || crate::dirnet::SILENT_WITNESSES_COUNT.is_planted()
    }

    /// By which rule this node may claim a term now (X-9), if it may: the loss is more than
    /// silence, another member has answered in it, or no other is left. Of two nodes neither has
    /// another.
    fn may_claim(&self, now: Instant, loss: Loss, succession: &Succession) -> Option<Rule> {
        let timing = self.timing();
        // An answer from before this node stood still says nothing of now.
        let turn = timing.candidate.0.saturating_add(timing.delay.0);
        let limit = timing.verdict_after().max(Duration(turn));
        let is_answered = match loss {
            Loss::Agent(_) => true,
            Loss::Node { why, .. } => {
                let said = why.evidence;
                let is_reported = why.rule == Rule::Removed || said.alarm.is_some();
                // Its own window is just over, or another's turn is: then it has asked again.
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

    /// Claims a term above all that are known; whether there was one.
    pub(super) fn claim(&mut self, now: Instant, rule: Rule) -> bool {
        self.claim_above(now, self.term, rule)
    }

    /// Claims a term above `known`, which is at least the own one; whether there was one.
    ///
    /// Where links are not transitive, two managers may each be reported to the other by a third
    /// again and again: one that has gone above a term waits before it does so again, each rank
    /// another time, so that one of them follows.
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
            // What the original did: the restarted task reads its old part again (G-22).
            self.state = State::Backup(Succession::default());
            return false;
        }
        if rule == Rule::Outbid {
            let timing = self.timing();
            let turn = timing.send.0.saturating_mul(u64::from(self.me().0));
            self.outbids_after = now.after(timing.receive).after(Duration(turn));
        }
        self.reign(now, term);
        self.explain(now, self.me(), self.life, Verdict::TookOver, rule.into());
        let members = self.members();
        self.send(members, Seat::Component, Message::Nmi);
        true
    }

    /// This node is manager from now on: every member is watched. What the manager before may have
    /// left undone is done: who is down is reset once everybody has fenced it, be it for the
    /// second time (a reset names the life that it ends, and hits no later one); who was never
    /// heard of is awaited, and told of.
    pub(super) fn reign(&mut self, now: Instant, term: Term) {
        self.term = term;
        self.outputs.push(Output::Keep(term));
        let was_manager = self.role() == Role::Manager;
        self.state = State::Manager;
        self.reigns_since = now;
        self.is_unheard_told = false;
        self.beat_due = now;
        self.fellows.iter_mut().for_each(|fellow| fellow.since = now);
        for node in self.config.others().iter() {
            let watch = match self.watch(node) {
                // What this manager has begun goes on in its next reign.
                begun @ (Watch::Fencing { .. } | Watch::Joining { .. }) if was_manager => begun,
                _ => self.inherited(now, node),
            };
            self.set_watch(node, watch);
        }
        self.change_own(Change::Role(Part::Manager as u8));
    }

    /// How a new manager begins with `node`.
    fn inherited(&self, now: Instant, node: Rank) -> Watch {
        let standing = self.db.standing(node);
        let forgets = crate::dirnet::HEIRS_OWE_NOTHING.is_planted();
        match standing.level {
            _ if !standing.is_known() && crate::dirnet::ABSENT_ARE_AWAITED.is_planted() => {
                Watch::Off
            }
            // Whoever is not heard of in time is told of (G-24).
            _ if !standing.is_known() => {
                Watch::Joining { life: Life::default(), due: now.after(self.timing().clone) }
            }
            Level::Up => Watch::Up { due: now.after(self.timing().receive) },
            Level::Down if !forgets => Watch::Fencing {
                life: standing.life,
                fenced: Members::NONE,
                due: now,
                reset: Reset::Follows,
            },
            Level::Down | Level::Isolated | Level::Released => Watch::Off,
        }
    }

    /// A higher term is known.
    pub(super) fn rise(&mut self, now: Instant, term: Term) {
        let was = self.role();
        if was == Role::Manager && crate::dirnet::RIVALS_ARE_IGNORED.is_planted() {
            return;
        }
        self.term = term;
        self.outputs.push(Output::Keep(term));
        match self.state {
            State::Joining(_) | State::Excluded => {}
            // An earlier life of this node claimed it.
            State::Manager | State::Backup(_) if term.claimant == self.me() => {
                self.claim(now, Rule::OwnReign);
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

    /// A backup of the current claimant, from now on: one watch, turned to it (G-15).
    pub(super) fn follow(&mut self, now: Instant) {
        let manager = self.term.claimant;
        self.state = State::Backup(Succession::default());
        self.forget_deafness();
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

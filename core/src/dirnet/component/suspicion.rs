//! From silence to a conclusion, for both roles (D-50).
//!
//! A suspicion waits W for an alarm of the node's I'm-Alive Task. The alarm means that the
//! component is down and the node is not; silence means that the node is down. Meanwhile all other
//! members probe the suspect: a node that one of them reaches is not removed, and the link to
//! it becomes the suspect. Testimonies belong to one window, and are requested again in the
//! next.
//!
//! A member that still owes its testimony delays the verdict: it runs and hears this node, or is
//! about to be replaced by a clone, and may be the only one that reaches the suspect. It either
//! answers in a later window or falls silent, becomes a suspect itself, and owes nothing, unless a
//! member that hears this node meets it.
//!
//! A member that has not answered, or that a new manager has not heard yet, may not hear this node:
//! the next question reaches it through the others. So does the first one of a backup.

use super::watch::Suspicion;
use super::{Component, Evidence, News, Raised, Role, Rule, State, Succession, Watch, Why};
use crate::dirnet::{
    Alarm, ComponentIncarnation, Members, Message, Question, Reject, Seat, Seen, Testimonies,
};
use crate::ids::Rank;
use crate::time::Instant;

/// What has failed at a suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Loss {
    /// The component.
    Agent(Why),
    /// The node, by a second observer's testimony or because there is none.
    Node { why: Why, is_corroborated: bool },
}

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// `node` has been silent for R.
    pub(super) fn suspect(&mut self, now: Instant, node: Rank) {
        let incarnation = self.db.standing(node).incarnation;
        self.tell(News::Suspected(node));
        let fresh = self.timing().receive.0.saturating_add(self.timing().window.0);
        let raised = self.fellow(node).and_then(|fellow| fellow.raised);
        if let Some(raised) = raised
            && (now.since(raised.at).0 <= fresh || crate::dirnet::OLD_ALARMS_COUNT.is_planted())
            && (raised.incarnation == incarnation
                || crate::dirnet::ALARMS_OF_OTHERS_COUNT.is_planted())
        {
            let why = Why::of_alarm(Rule::AlarmBefore, raised.alarm);
            return self.conclude_agent(now, node, incarnation, why);
        }
        self.doubt(now, node, incarnation, Rule::Silence);
    }

    /// Opens the window: unless the node is heard from, a verdict on it follows.
    pub(super) fn doubt(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
        rule: Rule,
    ) {
        self.ask(now, node, Suspicion::new(incarnation, now.after(self.timing().window), rule));
    }

    /// Asks all other members, if this component would act on their answers: as manager, or as the
    /// backup that would succeed it. A single member that reaches the suspect ends the suspicion.
    fn ask(&mut self, now: Instant, node: Rank, mut suspicion: Suspicion) {
        let acts = match self.state {
            State::Manager => true,
            State::Backup(succession) => {
                suspicion.is_met || succession.next(self) == Some(self.me())
            }
            State::Joining(_) | State::Excluded => false,
        };
        if acts {
            let mut asked = self.members().without(node);
            let silent = asked.iter().filter(|it| self.may_not_hear(&suspicion, *it));
            suspicion.unheard = silent.collect();
            // No heartbeat shows a backup which members hear it, and it may have no other window
            // before it claims a term.
            if self.role() == Role::Backup
                && suspicion.testimonies.asked.is_empty()
                && !crate::dirnet::BACKUPS_ASK_DIRECTLY.is_planted()
            {
                suspicion.unheard = asked;
            }
            if crate::dirnet::ONE_WITNESS_REMOVES.is_planted() && self.role() == Role::Manager {
                asked = self.next_witness(node).map(Members::only).unwrap_or_default();
            }
            suspicion.testimonies = Testimonies::of(asked);
            suspicion.asked_at = now;
            let strangers = self.strangers();
            let all = asked.iter().chain(strangers.iter()).collect();
            suspicion.round = self.question(all, node, suspicion.unheard);
        }
        self.set_watch(node, Watch::Suspect(suspicion));
    }

    /// Nodes that a backup has never heard of, as it may not have been heard of itself: one that is
    /// asked introduces it to the manager.
    fn strangers(&self) -> Members {
        let is_stranger = |node: &Rank| !self.db.standing(*node).is_known();
        match self.state {
            State::Backup(_) if !crate::dirnet::STRANGERS_ARE_NOT_ASKED.is_planted() => {
                self.config.others().iter().filter(is_stranger).collect()
            }
            State::Backup(_) | State::Manager | State::Joining(_) | State::Excluded => {
                Members::NONE
            }
        }
    }

    /// Whether `witness` has shown no sign that a question of this node reaches it: it has not
    /// answered the one before, or has not been heard since this node is manager.
    fn may_not_hear(&self, suspicion: &Suspicion, witness: Rank) -> bool {
        let before = suspicion.testimonies;
        let is_silent = before.asked.contains(witness) && !before.answered().contains(witness);
        let is_new = self.role() == Role::Manager
            && self.fellow(witness).is_some_and(|fellow| fellow.heard < self.reigns_since)
            && !crate::dirnet::HEIRS_ASK_DIRECTLY.is_planted();
        is_silent || is_new || suspicion.unheard.contains(witness)
    }

    /// Asks every other member whether it reaches `node`; returns the round.
    pub(super) fn ask_all(&mut self, node: Rank) -> u32 {
        let asked = self.members().without(node);
        self.question(asked, node, asked)
    }

    fn question(&mut self, witnesses: Members, node: Rank, unheard: Members) -> u32 {
        self.round = self.round.wrapping_add(1);
        let question = Question { node, asker: self.me(), round: self.round };
        self.send(witnesses, Seat::Component, Message::Witness { question, unheard });
        question.round
    }

    /// Returns the next node in the ring that is a member and not suspected itself.
    fn next_witness(&self, node: Rank) -> Option<Rank> {
        let members = self.members();
        self.config.ring_after(node).find(|other| {
            let is_in_doubt = !matches!(self.watch(*other), Watch::Off | Watch::Up { .. });
            *other != node && members.contains(*other) && !is_in_doubt
        })
    }

    /// Handles an alarm about a component, from its own node.
    pub(super) fn handle_teif(
        &mut self,
        now: Instant,
        from: Rank,
        raised: Raised,
    ) -> Result<(), Reject> {
        let standing = self.db.standing(from);
        if raised.incarnation < standing.incarnation
            && !crate::dirnet::LATE_ALARMS_COUNT.is_planted()
        {
            return Err(Reject::OldLife);
        }
        if !self.watches(from) {
            if crate::dirnet::ANY_ALARM_RENEWS.is_planted() {
                // The original's behaviour: it masks the manager's silence (G-17).
                self.hear(now, self.term.claimant);
            }
            // The manager acts on it, or its successor (G-8). If this node becomes the successor
            // soon, it need not wait for the alarm to be repeated (G-5).
            if let Some(fellow) = self.fellow_mut(from)
                && !crate::dirnet::EARLY_ALARM_IS_FORGOTTEN.is_planted()
            {
                fellow.raised = Some(raised);
            }
            // A node that hears another node's task is not deaf itself.
            self.note_answer(now);
            return Err(Reject::NotForMe);
        }
        if raised.alarm == Alarm::SpawnFailed {
            self.conclude_spawn_failed(now, from, raised.incarnation);
            return Ok(());
        }
        let why = Why::of_alarm(Rule::AlarmInWindow, raised.alarm);
        if let Watch::Suspect(suspicion) = self.watch(from)
            && suspicion.rule == Rule::Silence
        {
            self.conclude_agent(now, from, raised.incarnation, why);
            return Ok(());
        }
        if let Watch::Joining { incarnation: clone, .. } = self.watch(from)
            && self.role() == Role::Manager
            && clone.boot <= raised.incarnation.boot
        {
            if raised.incarnation < clone {
                // The SPAN was lost or is in flight: the task spawns once, however often SPAN is
                // sent.
                let span = Message::Span { node: from, incarnation: clone };
                self.send(Members::only(from), Seat::ImAliveTask, span);
                // The link to the node may be cut, although the one from it is not.
                self.send(self.members().without(from), Seat::Component, span);
            } else {
                // The clone, or the node's next boot, is down before it was heard from.
                self.conclude_agent(now, from, raised.incarnation, why);
            }
            return Ok(());
        }
        if let Some(fellow) = self.fellow_mut(from)
            && !crate::dirnet::EARLY_ALARM_IS_FORGOTTEN.is_planted()
        {
            fellow.raised = Some(raised);
        }
        if self.is_late(now) && !crate::dirnet::LATECOMERS_VOUCH.is_planted() {
            // This component's own timers may have stopped as well: it cannot judge who is silent.
            return Ok(());
        }
        // Not suspected: perhaps it was only slow. If it is alive, it wakes its task again (D-24).
        let mine = match self.state {
            State::Manager => true,
            State::Backup(succession) => succession.next(self) == Some(self.me()),
            State::Joining(_) | State::Excluded => false,
        };
        if mine && matches!(self.watch(from), Watch::Up { .. }) {
            self.send(Members::only(from), Seat::Component, Message::Enia);
        }
        Ok(())
    }

    /// Handles what `witness` observed, which `from` may have passed on.
    pub(super) fn handle_testimony(
        &mut self,
        now: Instant,
        (from, witness): (Rank, Rank),
        Question { node, round, .. }: Question,
        seen: Seen,
    ) -> Result<(), Reject> {
        if let State::Backup(succession) = &mut self.state
            && node == self.term.claimant
            && succession.round == Some(round)
        {
            succession.alive.insert(witness);
            let is_kept = seen.component && !self.is_half_heard(now, node);
            if is_kept && !crate::dirnet::MET_MANAGERS_ARE_FOLLOWED.is_planted() {
                self.meet_manager(now);
            } else {
                self.note_answer(now);
            }
            return Ok(());
        }
        let Watch::Suspect(mut suspicion) = self.watch(node) else { return Err(Reject::Late) };
        let is_asked =
            suspicion.round == round || crate::dirnet::TESTIMONIES_OF_ANY_ROUND_COUNT.is_planted();
        if !is_asked || !suspicion.testimonies.note(witness, seen) {
            return Err(Reject::Late);
        }
        if from == witness {
            suspicion.unheard.remove(witness);
        }
        self.set_watch(node, Watch::Suspect(suspicion));
        Ok(())
    }

    /// Whether the testimonies of this suspicion are at most R + W old. If this component stood
    /// still meanwhile, they are not.
    fn is_fresh(&self, now: Instant, suspicion: &Suspicion) -> bool {
        suspicion.testimonies.asked.is_empty()
            || now.since(suspicion.asked_at) <= self.timing().verdict_after()
            || crate::dirnet::TESTIMONIES_NEVER_EXPIRE.is_planted()
    }

    /// Whether a member that is not suspected itself has not answered yet whether it reaches
    /// `node`.
    fn is_owed(&self, now: Instant, node: Rank, testimonies: &Testimonies) -> bool {
        let echoing = self.echoing(now);
        // A member that shows no echo does not receive the question.
        let hears = |member: Rank| {
            let is_up = matches!(self.watch(member), Watch::Up { .. });
            is_up && echoing.contains(member) || self.is_new(now, member)
        };
        let owes = |witness: Rank| match self.watch(witness) {
            Watch::Up { .. } => hears(witness),
            // Its clone joins soon, or it becomes a suspect (G-18).
            Watch::Joining { .. } => true,
            // A member that hears this node has just met it, and passes the question on.
            Watch::Suspect(Suspicion { met_by, testimonies, .. }) => {
                met_by.iter().chain(testimonies.met.iter()).any(hears)
                    && !crate::dirnet::FAR_WITNESSES_OWE_NOTHING.is_planted()
            }
            Watch::Off | Watch::Fencing { .. } => false,
        };
        let has_answered = |witness: Rank| testimonies.answered().contains(witness);
        !crate::dirnet::SILENT_WITNESSES_COUNT.is_planted()
            && !crate::dirnet::ONE_WITNESS_REMOVES.is_planted()
            && self.members().without(node).iter().any(|it| !has_answered(it) && owes(it))
    }

    /// Ends the window W.
    pub(super) fn window_over(&mut self, now: Instant, node: Rank, suspicion: Suspicion) {
        if crate::dirnet::SUSPICION_NEVER_ENDS.is_planted() && self.role() == Role::Backup {
            return self.set_watch(node, Watch::Off);
        }
        if !self.is_fresh(now, &suspicion) {
            return self.ask_again(now, node, suspicion);
        }
        let Suspicion { incarnation, testimonies, rule, .. } = suspicion;
        let is_owed = self.role() == Role::Manager && self.is_owed(now, node, &testimonies);
        if testimonies.met.is_empty() && is_owed {
            return self.ask_again(now, node, suspicion);
        }
        let evidence = Evidence { alarm: None, testimonies };
        // Clones were already tried: the task's answer no longer helps.
        let is_escalated = rule != Rule::Silence;
        // A backup that hears the manager needs no witness that it is alive.
        let is_half_heard = self.role() == Role::Backup && self.is_half_heard(now, node);
        if !testimonies.met.is_empty() && !is_half_heard {
            return self.look_again(now, node, suspicion);
        }
        if !testimonies.met_task.is_empty() && !is_escalated && !is_half_heard {
            return self.conclude_agent(
                now,
                node,
                incarnation,
                Why { rule: Rule::TaskAlone, evidence },
            );
        }
        let why = Why { rule, evidence };
        let is_alone = self.next_witness(node).is_none();
        let is_rash = is_alone && crate::dirnet::ALONE_IT_REMOVES.is_planted();
        let is_corroborated = testimonies.count() > 0 && !is_half_heard
            || self.config.nodes() < 3
            || crate::dirnet::RESET_WITHOUT_WITNESS.is_planted()
            || is_rash;
        let may_decide = self.may_decide(now) || is_rash;
        match self.state {
            // Succession does not wait for a second observer: it removes no node.
            State::Backup(_) => {
                self.lose_manager(now, Loss::Node { why, is_corroborated });
            }
            State::Manager if !may_decide && (self.config.min_alive() > 1 || !is_alone) => {
                self.wait_for_more(now, node, suspicion, News::TooFew);
            }
            State::Manager if may_decide && is_corroborated => {
                self.remove_node(now, node, incarnation, why);
            }
            // All others may be silent because this node is cut off from them.
            State::Manager if is_alone => {
                self.wait_for_more(now, node, suspicion, News::Uncorroborated(node));
            }
            State::Manager => self.ask_again(now, node, suspicion),
            State::Joining(_) | State::Excluded => {}
        }
    }

    /// A second observer reaches the manager that was about to be succeeded: it is not lost.
    fn meet_manager(&mut self, now: Instant) {
        let manager = self.term.claimant;
        let incarnation = self.db.standing(manager).incarnation;
        self.state = State::Backup(Succession::default());
        self.look_again(now, manager, Suspicion::new(incarnation, now, Rule::Silence));
    }

    /// A second observer reaches the node: it is not removed, and is watched again.
    fn look_again(&mut self, now: Instant, node: Rank, suspicion: Suspicion) {
        let is_reported = suspicion.is_met
            || suspicion.is_told && crate::dirnet::LINKS_ARE_NOT_REPORTED.is_planted();
        if !is_reported {
            self.tell(News::OneWay(node));
        }
        self.ask_again(now, node, Suspicion { is_met: true, ..suspicion });
    }

    /// Opens another window in which all are asked again: earlier answers may be out of date.
    fn ask_again(&mut self, now: Instant, node: Rank, suspicion: Suspicion) {
        let due = now.after(self.timing().window);
        let met_by = suspicion.testimonies.met;
        self.ask(now, node, Suspicion { due, met_by, ..suspicion });
    }

    fn wait_for_more(&mut self, now: Instant, node: Rank, suspicion: Suspicion, news: News) {
        if !suspicion.is_told {
            self.tell(news);
        }
        let reported = Suspicion { is_told: true, ..suspicion };
        if crate::dirnet::TESTIMONIES_NEVER_EXPIRE.is_planted() {
            let due = now.after(self.timing().window);
            return self.set_watch(node, Watch::Suspect(Suspicion { due, ..reported }));
        }
        self.ask_again(now, node, reported);
    }

    /// The node's own task reports that only a reset helps: no witness knows better.
    fn conclude_spawn_failed(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
    ) {
        let why = Why::of_alarm(Rule::SpawnFailed, Alarm::SpawnFailed);
        let is_own_word = !crate::dirnet::FAILED_SPAWNS_NEED_WITNESSES.is_planted();
        let may_decide = self.config.min_alive() <= 1 || self.may_decide(now);
        match (self.state, self.watch(node)) {
            (State::Manager, Watch::Fencing { .. }) | (State::Joining(_) | State::Excluded, _) => {}
            (State::Manager, _) if is_own_word && may_decide => {
                self.remove_node(now, node, incarnation, why);
            }
            (State::Manager, Watch::Suspect(Suspicion { rule: Rule::SpawnFailed, .. })) => {}
            (State::Manager, _) => self.doubt(now, node, incarnation, Rule::SpawnFailed),
            (State::Backup(_), _) => {
                self.lose_manager(now, Loss::Node { why, is_corroborated: true });
            }
        }
    }

    fn conclude_agent(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
        why: Why,
    ) {
        match self.state {
            State::Manager => self.recover_agent(now, node, incarnation, why),
            State::Backup(_) => self.lose_manager(now, Loss::Agent(why)),
            State::Joining(_) | State::Excluded => {}
        }
    }
}

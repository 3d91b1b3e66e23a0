//! Admission of frames: every frame and heartbeat is checked here first.
//!
//! ```text
//!  sender a member? ─▶ claimant may manage? ─▶ incarnation: removed, old, current, later?
//!        ─▶ duplicate? ─▶ term: lower (NMI back, dropped), current, higher (adopted)
//!        ─▶ evidence that the sender is alive
//! ```
//!
//! A later incarnation is a member once the manager has heard from it in the manager's own term,
//! directly or through another member (NIUA), or has claimed a term above the one that the
//! incarnation claimed. All other members rely on the manager's NIUA, with three exceptions: a node
//! that they have never heard from, the claimant of the term itself, and any node while they miss
//! the manager. In these cases a frame of the later incarnation in the current term is enough. A
//! term claimed by a removed node is never adopted, whichever node reports it. WITM is handled
//! before all of that: its term is only the one that the joiner remembers.
//! What an I'm-Alive Task reports is evidence, not a decision, and belongs to no term.

use super::echo::Echo;
use super::{Component, Rule, State, Verdict, Watch};
use crate::dirnet::replay::is_after;
use crate::dirnet::{
    Beat, ComponentIncarnation, Frame, Level, Members, Message, Reject, Seat, Standing, Term,
};
use crate::ids::Rank;
use crate::time::Instant;

/// How an incarnation relates to the one that is known.
enum Age {
    Current,
    Later,
    /// An I'm-Alive Task reports on a component from which this node has never heard.
    Unmet,
}

/// Whether a component runs does not depend on terms: where links are not transitive, members that
/// follow different managers would testify that they do not reach each other (X-8).
fn is_asked_in_any_term(message: &Message) -> bool {
    matches!(message, Message::Probe { .. } | Message::Alive { .. })
        && !crate::dirnet::PROBES_NEED_THE_TERM.is_planted()
}

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    pub(super) fn accept(&mut self, now: Instant, from: Rank, frame: &Frame) -> Result<(), Reject> {
        if frame.sender != from {
            return Err(Reject::Forged);
        }
        let is_witm = frame.message == Message::Witm;
        self.check_claimant(from, frame.term, is_witm)?;
        let age = self.age(from, frame.seat, frame.incarnation).inspect_err(|reason| {
            // An ANID is not answered with an ANID: two nodes that removed each other would never
            // stop.
            if !matches!(frame.message, Message::Anid { .. }) {
                self.tell_removed(from, frame.incarnation, *reason);
            }
        })?;
        let needs_term = !is_asked_in_any_term(&frame.message);
        let mut in_term = Ok(());
        if !is_witm && frame.seat == Seat::Component {
            in_term = self.check_reign(now, from, frame.incarnation, frame.term);
            if in_term.is_err() {
                self.hear_of_claimant(now, frame, matches!(age, Age::Current));
            }
            if needs_term {
                in_term?;
            }
        }
        if self.is_removed_by(frame) && !crate::dirnet::DEAF_ARE_ANSWERED.is_planted() {
            return Err(Reject::OldTerm);
        }
        match age {
            // A probe asks whether the component runs, not whether it is a member (X-8).
            Age::Later if !is_witm => match self.meet(now, from, frame.incarnation, frame.term) {
                Err(_) if !needs_term && !crate::dirnet::MEMBERS_ALONE_PROBE.is_planted() => {
                    return Ok(());
                }
                met => met?,
            },
            Age::Current | Age::Later => {}
            Age::Unmet => self.introduce(now, from, frame.incarnation),
        }
        let sequence = frame.sequence;
        let seat = frame.seat as usize;
        if !is_witm
            && let Some(fellow) = self.fellow_mut(from)
            && !fellow.replay[seat].is_new(frame.incarnation, sequence)
        {
            return Err(Reject::Duplicate);
        }
        if is_witm || frame.seat == Seat::ImAliveTask {
            return Ok(());
        }
        self.note_alive(now, from);
        let in_term = in_term.and_then(|()| self.settle_term(now, from, frame.term));
        self.note_view(from, frame.term, frame.view);
        if let State::Joining(_) = self.state {
            return in_term.and_then(|()| self.accept_while_joining(frame));
        }
        if in_term.is_err() {
            return if needs_term { in_term } else { Ok(()) };
        }
        let is_hidden = matches!(frame.message, Message::Db { .. })
            && crate::dirnet::TRAFFIC_IS_NO_SIGN.is_planted();
        // A component whose timers have died still answers requests, and is asked for as long as a
        // link stays cut, both as a suspect and as a witness (D-56).
        let is_asked_for = matches!(
            frame.message,
            Message::Probe { .. } | Message::Alive { .. } | Message::Testimony { .. }
        ) && !crate::dirnet::ANSWERS_ARE_SIGNS.is_planted();
        if !(is_asked_for || is_hidden) {
            self.hear(now, from);
        }
        Ok(())
    }

    pub(super) fn accept_beat(
        &mut self,
        now: Instant,
        from: Rank,
        beat: &Beat,
    ) -> Result<(), Reject> {
        self.check_claimant(from, beat.term, false)?;
        let age = self.age(from, Seat::Component, beat.incarnation).inspect_err(|reason| {
            self.tell_removed(from, beat.incarnation, *reason);
        })?;
        self.check_reign(now, from, beat.incarnation, beat.term)?;
        if !matches!(age, Age::Current) {
            // A node that is not admitted yet may be the first that shows that it hears the
            // manager.
            if beat.term == self.term {
                self.note_echo(now, from, beat);
            }
            self.meet(now, from, beat.incarnation, beat.term)?;
        }
        let Some(fellow) = self.fellow_mut(from) else { return Err(Reject::UnknownSender) };
        if fellow.beat != 0 && !is_after(beat.sequence, fellow.beat) {
            return Err(Reject::Duplicate);
        }
        fellow.beat = beat.sequence;
        if crate::dirnet::ECHOES_OF_ANY_TERM.is_planted() {
            self.note_echo(now, from, beat);
        }
        self.note_alive(now, from);
        self.settle_term(now, from, beat.term)?;
        self.note_echo(now, from, beat);
        if let State::Joining(_) = self.state {
            return Ok(());
        }
        self.hear(now, from);
        self.compare(now, from, beat.digest);
        Ok(())
    }

    pub(super) fn check_claimant(
        &self,
        from: Rank,
        term: Term,
        is_witm: bool,
    ) -> Result<(), Reject> {
        if let State::Excluded = self.state {
            return Err(Reject::Excluded);
        }
        if !self.config.others().contains(from) {
            return Err(Reject::UnknownSender);
        }
        // A joiner that has never known a term sends the default one.
        let is_none = term == Term::default();
        let is_possible = self.config.may_manage(term.claimant) || (is_none && is_witm);
        if !is_possible {
            return Err(Reject::BadTerm);
        }
        Ok(())
    }

    /// Refuses a term claimed by a node that was removed and has not been admitted since, whichever
    /// node reports it. The claimant cannot adopt a term below the one that it knows, so the
    /// manager claims a higher one and admits the claimant as a backup.
    ///
    /// The claimant may itself hold an earlier incarnation of this node removed, as the two halves
    /// of a healed partition do. Then it refuses in turn and claims a higher term; by now it is a
    /// member, and the higher term wins. Each incarnation is superseded once, so one of the two
    /// follows. If the claimant falls silent instead, it is removed like any other member.
    fn check_reign(
        &mut self,
        now: Instant,
        from: Rank,
        incarnation: ComponentIncarnation,
        term: Term,
    ) -> Result<(), Reject> {
        let has_opinion = matches!(self.state, State::Manager | State::Backup(_));
        let is_refused = has_opinion && term > self.term && self.is_removed(term.claimant);
        if !is_refused || crate::dirnet::REMOVED_NODES_CLAIM.is_planted() {
            return Ok(());
        }
        if let State::Manager = self.state
            && !crate::dirnet::REFUSED_CLAIMS_STAND.is_planted()
            && self.claim_above(now, term, Rule::Outbid)
        {
            self.send(Members::only(from), Seat::Component, Message::Nmi);
            if from == term.claimant && !crate::dirnet::RIVALS_STAY_OUT.is_planted() {
                self.admit(now, from, incarnation, Rule::NewLife);
            } else {
                self.await_joiner(now, from, incarnation);
            }
        }
        self.tell_isolated(Members::only(from), term.claimant);
        // The manager may not hear the claimant. A relayed claim gets no report: it may itself be
        // the answer to one, and the exchange would never end.
        if let State::Backup(_) = self.state
            && from == term.claimant
        {
            // This node's manager admits the claimant, as a manager that hears it would; otherwise
            // the two would claim higher terms in turn without end, and neither would follow.
            if !crate::dirnet::FAR_RIVALS_STAY_OUT.is_planted() {
                self.tell_manager(from, incarnation);
            }
            self.tell_above(term);
            // This node's manager may follow the claimant. Then no member will report that it
            // misses the manager, and the refused claim is the answer that this node's own claim
            // needs (X-9).
            if self.misses_manager() && !crate::dirnet::REFUSED_CLAIMS_ANSWER_NOTHING.is_planted() {
                self.note_answer(now);
            }
        }
        Err(Reject::RemovedClaimant)
    }

    /// Answers a node in an earlier term with the manager and its incarnation. That node may hold
    /// an earlier incarnation of the manager removed, and never hear the manager itself (G-11).
    fn name_manager(&mut self, to: Rank) {
        let manager = self.term.claimant;
        let Standing { incarnation, .. } = self.db.standing(manager);
        let is_named = matches!(self.state, State::Backup(_)) && to != manager;
        if is_named
            && self.db.standing(manager).is_up()
            && !crate::dirnet::MANAGERS_HAVE_NO_INCARNATION.is_planted()
        {
            let niua = Message::Niua { node: manager, incarnation };
            self.send(Members::only(to), Seat::Component, niua);
        }
        self.send(Members::only(to), Seat::Component, Message::Nmi);
    }

    /// Handles the report that a removed node is manager. It counts if it comes from the manager
    /// that removed that node and follows it now, or from any member while the manager is missed.
    ///
    /// A later incarnation is a member from now on, as after any NIUA of a manager; its term is
    /// adopted with the next message in it. The removed incarnation stays fenced here: this node
    /// gives way if no member is left that could follow its own manager with it. Only a release
    /// brings an isolated node back.
    fn hear_of_claimant(&mut self, now: Instant, frame: &Frame, is_current: bool) {
        let Message::Niua { node, incarnation } = frame.message else { return };
        let standing = self.db.standing(node);
        let is_manager = is_current && frame.sender == self.term.claimant;
        let is_missed = self.misses_manager();
        let is_claimed = frame.term > self.term && frame.term.claimant == node;
        let State::Backup(succession) = &mut self.state else { return };
        // A released node is as one that was removed: its boot is over, and the next one may lead.
        let is_barred = standing.isolation().is_some()
            || (standing.level == Level::Released
                && crate::dirnet::RELEASED_NEVER_LEAD.is_planted());
        if !is_claimed || is_barred || !(is_manager || is_missed) {
            return;
        }
        if standing.incarnation.boot < incarnation.boot {
            self.introduce(now, node, incarnation);
        } else if standing.incarnation.boot == incarnation.boot {
            succession.is_outvoted = true;
        }
    }

    /// Reports a later incarnation of `node` to the manager, which may not hear it itself.
    fn tell_manager(&mut self, node: Rank, incarnation: ComponentIncarnation) {
        let manager = Members::only(self.term.claimant);
        if !crate::dirnet::NONE_INTRODUCES.is_planted() {
            self.send(manager, Seat::Component, Message::Niua { node, incarnation });
        }
    }

    /// Handles a NIUA in the current term: a member has heard from a later incarnation of `node`,
    /// which is a member from now on.
    pub(super) fn handle_introduction(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
    ) -> Result<(), Reject> {
        let Age::Later = self.age(node, Seat::Component, incarnation)? else {
            return Err(Reject::Late);
        };
        self.admit(now, node, incarnation, Rule::Joined);
        Ok(())
    }

    /// Whether the frame is a removal of this incarnation in an earlier term. Its sender gets no
    /// answer: it would only send the removal again.
    fn is_removed_by(&self, frame: &Frame) -> bool {
        let Message::Anid { node, incarnation, .. } = frame.message else { return false };
        node == self.me() && incarnation.boot == self.incarnation.boot && frame.term < self.term
    }

    /// Answers a node that may not know yet that it was removed or is isolated. It may not hear
    /// the manager, and would otherwise claim a term with members that do not know either.
    fn tell_removed(&mut self, node: Rank, incarnation: ComponentIncarnation, reason: Reject) {
        if !matches!(reason, Reject::Fenced | Reject::Isolated) {
            return;
        }
        let is_isolated = self.tell_isolated(Members::only(node), node);
        let answers = match self.state {
            State::Manager => true,
            State::Backup(_) => !crate::dirnet::BACKUPS_KEEP_REMOVALS.is_planted(),
            State::Joining(_) | State::Excluded => false,
        };
        if answers && !is_isolated {
            let level = self.db.standing(node).level.max(Level::Down);
            self.send(
                Members::only(node),
                Seat::Component,
                Message::Anid { node, incarnation, level },
            );
        }
    }

    /// Reports to `to`, which does not hear its manager, the nodes that are removed or isolated. A
    /// removal is final, so a copy of it is as good as the order.
    pub(super) fn tell_removals(&mut self, to: Members) {
        // Each member begins with another node: an input has room for so many outputs only.
        for node in self.config.ring_after(self.me()) {
            if !self.is_removed(node) || !self.outputs.has_room() {
                continue;
            }
            let Standing { incarnation, level, .. } = self.db.standing(node);
            let is_isolated = self.tell_isolated(to, node);
            if level == Level::Down && !is_isolated {
                let removal = Message::Anid { node, incarnation, level };
                self.send(to, Seat::Component, removal);
            }
        }
    }

    fn age(
        &self,
        from: Rank,
        seat: Seat,
        incarnation: ComponentIncarnation,
    ) -> Result<Age, Reject> {
        let standing = self.db.standing(from);
        let known = standing.incarnation;
        let is_removed =
            standing.level != Level::Up && !crate::dirnet::FENCED_ARE_HEARD.is_planted();
        if incarnation.boot < known.boot || (incarnation.boot == known.boot && is_removed) {
            return Err(Reject::Fenced);
        }
        if standing.level == Level::Isolated {
            return Err(Reject::Isolated);
        }
        match seat {
            Seat::Component if incarnation == known => Ok(Age::Current),
            Seat::Component if incarnation < known => Err(Reject::OldLife),
            Seat::Component => Ok(Age::Later),
            Seat::ImAliveTask if incarnation.boot == known.boot => Ok(Age::Current),
            // If the manager that knew the component is gone, no other member may know it either.
            Seat::ImAliveTask
                if !standing.is_known() && !crate::dirnet::UNMET_TASKS_ARE_IGNORED.is_planted() =>
            {
                Ok(Age::Unmet)
            }
            Seat::ImAliveTask if self.expects(from) => Ok(Age::Current),
            Seat::ImAliveTask => Err(Reject::UnknownLife),
        }
    }

    /// Handles a frame of a later incarnation that has already joined, as its term shows, or that
    /// was never known here.
    fn meet(
        &mut self,
        now: Instant,
        from: Rank,
        incarnation: ComponentIncarnation,
        term: Term,
    ) -> Result<(), Reject> {
        match self.state {
            // An unheard manager may have been superseded already, and does not admit. An
            // incarnation that hears this manager echoes its heartbeats, and so counts.
            State::Manager if term == self.term && !self.is_heard(now) => {
                return Err(Reject::UnknownLife);
            }
            State::Manager if term == self.term => self.admit(now, from, incarnation, Rule::Joined),
            _ if !self.db.standing(from).is_known() => self.introduce(now, from, incarnation),
            _ if term.claimant == from && term >= self.term => {
                self.introduce(now, from, incarnation);
                self.explain(now, from, incarnation, Verdict::Admitted, Rule::NewLife.into());
            }
            State::Manager | State::Backup(_) if term < self.term => {
                self.name_manager(from);
                return Err(Reject::OldTerm);
            }
            State::Manager if term > self.term => {}
            State::Joining(_) => self.introduce(now, from, incarnation),
            // Without a manager a backup cannot claim a term unanswered (X-9). What it has missed
            // meanwhile, including a later term, it learns from a member that it does not know yet.
            // One that its manager does not hear cannot ask it what it has missed.
            State::Backup(_)
                if (term >= self.term && self.misses_manager()
                    || term == self.term && !self.is_heard(now))
                    && !crate::dirnet::MANAGERLESS_ARE_DEAF.is_planted() =>
            {
                if !self.misses_manager() {
                    self.tell_manager(from, incarnation);
                }
                self.introduce(now, from, incarnation);
            }
            State::Backup(_) if term == self.term => {
                self.tell_manager(from, incarnation);
                return Err(Reject::UnknownLife);
            }
            State::Manager | State::Backup(_) | State::Excluded => return Err(Reject::UnknownLife),
        }
        Ok(())
    }

    /// Records a later incarnation; the one before is fenced, and a manager watches the next one.
    pub(super) fn introduce(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
    ) {
        let before = self.db.standing(node);
        if !self.db.advance(node, Standing::up(incarnation)) {
            return;
        }
        if let Some(fellow) = self.fellow_mut(node) {
            fellow.beat = 0;
            fellow.echo = Echo::default();
            if !crate::dirnet::ENDS_OUTLIVE_BOOTS.is_planted() {
                fellow.lost = None;
            }
            fellow.raised = None;
            fellow.since = now;
        }
        for fellow in &mut self.fellows {
            if let Watch::Fencing { fenced, .. } = &mut fellow.watch {
                // A fence by an earlier incarnation of this node does not hold for its present one.
                if !crate::dirnet::CLONES_INHERIT_FENCES.is_planted() {
                    fenced.remove(node);
                }
                if crate::dirnet::LATECOMERS_FENCE_NOTHING.is_planted() {
                    fenced.insert(node);
                }
            }
        }
        if before.is_up() && before.incarnation.boot < incarnation.boot {
            self.fence(node, before.incarnation.boot);
        }
        if !crate::dirnet::STRANGERS_ARE_NOT_WATCHED.is_planted() {
            self.watch_anew(now, node);
        }
    }

    /// The manager has heard from a later incarnation in its own term: admits it as a member (D-21,
    /// NIUA).
    fn admit(&mut self, now: Instant, node: Rank, incarnation: ComponentIncarnation, rule: Rule) {
        self.introduce(now, node, incarnation);
        self.explain(now, node, incarnation, Verdict::Admitted, rule.into());
        let due = now.after(self.timing().receive);
        self.set_watch(node, Watch::Up { due });
        // A node that was removed before this member joined must be fenced by it too, before a
        // reset.
        for fellow in &mut self.fellows {
            if let Watch::Fencing { due, .. } = &mut fellow.watch {
                *due = now;
            }
        }
        let reported = self.members().without(node);
        self.send(reported, Seat::Component, Message::Niua { node, incarnation });
    }

    fn settle_term(&mut self, now: Instant, from: Rank, term: Term) -> Result<(), Reject> {
        if term < self.term {
            if !crate::dirnet::OLD_TERMS_ARE_HEARD.is_planted() {
                if !matches!(self.state, State::Joining(_)) {
                    self.name_manager(from);
                }
                return Err(Reject::OldTerm);
            }
        } else if term > self.term {
            self.rise(now, term);
        }
        Ok(())
    }

    /// While joining, a component takes no decision; it answers probes and listens (G-20).
    fn accept_while_joining(&mut self, frame: &Frame) -> Result<(), Reject> {
        match frame.message {
            // It does not manage, and must not be mistaken for an earlier incarnation that did.
            Message::Probe { .. }
                if frame.term.claimant == self.me()
                    && !crate::dirnet::JOINERS_VOUCH.is_planted() =>
            {
                Err(Reject::Joining)
            }
            Message::Probe { .. } if !crate::dirnet::JOINERS_ARE_DEAF.is_planted() => Ok(()),
            Message::Nmi | Message::Enia | Message::Niua { .. } | Message::Anid { .. } => Ok(()),
            _ => Err(Reject::Joining),
        }
    }
}

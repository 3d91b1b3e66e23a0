//! The second observer (X-1): probes a suspect at the request of another member.
//!
//! It keeps one errand for each pair of asker and suspect (X-8), at most as many as there are
//! nodes; a request beyond that is refused, and repeated when the asker's window ends.
//!
//! Where links are cut, the asker may not reach a member that reaches the suspect. It names those
//! that have not answered it, and every other witness passes the question on to them, once:
//!
//! ```text
//!   asker ── WITNESS, unheard 3 ──▶ 2 ── WITNESS ──▶ 3 ── PROBE ──▶ suspect
//!   asker ◀────── TESTIMONY of 3 ── 2 ◀─ TESTIMONY ─ 3 ◀─ ALIVE ───
//! ```

use super::{Component, Role};
use crate::dirnet::{Members, Message, Question, Reject, Seat, Seen};
use crate::ids::Rank;
use crate::time::{Duration, Instant};

/// What one member has asked this component about one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Errand {
    question: Question,
    /// The members that sent or passed on the question, and receive the answer.
    via: Members,
    /// Number of the probe, from this component's own count.
    probe: u32,
    seen: Seen,
    pub(super) due: Instant,
}

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    pub(super) fn handle_witness(
        &mut self,
        now: Instant,
        via: Rank,
        question: Question,
        unheard: Members,
    ) -> Result<(), Reject> {
        let Question { node, asker, .. } = question;
        let others = self.config.others();
        if !others.contains(node) || !others.contains(asker) || node == asker {
            return Err(Reject::BadSubject);
        }
        // Who asks about the manager may claim its place, and does not learn from it which nodes
        // are removed: one of them could run on and claim a term that the asker follows. It may
        // hear this node, although this node does not hear it.
        let is_about_manager = self.role() == Role::Backup && node == self.term.claimant;
        if is_about_manager && !crate::dirnet::CLAIMANTS_LEARN_NO_REMOVAL.is_planted() {
            // One of the two may not know that the other is removed.
            self.tell_removals([via, asker].into_iter().collect());
        }
        if via == asker {
            self.pass_on_question(question, unheard);
        }
        let due = now.after(Duration(self.timing().delay.0.saturating_mul(2)));
        let is_same = |errand: &Errand| {
            errand.question.node == node
                && (errand.question.asker == asker || crate::dirnet::LAST_ASKER_COUNTS.is_planted())
        };
        let same = self.errands.iter().position(|it| it.as_ref().is_some_and(is_same));
        let free = || self.errands.iter().position(Option::is_none);
        let index = same.or_else(free).ok_or(Reject::Busy)?;
        if let Some(errand) = &mut self.errands[index]
            && errand.question == question
        {
            errand.via.insert(via);
            return Ok(());
        }
        self.round = self.round.wrapping_add(1);
        let probe = self.round;
        let seen = Seen::default();
        self.errands[index] = Some(Errand { question, via: Members::only(via), probe, seen, due });
        for seat in [Seat::Component, Seat::ImAliveTask] {
            self.send(Members::only(node), seat, Message::Probe { round: probe });
        }
        Ok(())
    }

    /// Passes the question on to the members that may not hear the asker.
    fn pass_on_question(&mut self, question: Question, unheard: Members) {
        let members = self.members().without(question.asker).without(question.node);
        let to: Members = members.iter().filter(|it| unheard.contains(*it)).collect();
        if !crate::dirnet::QUESTIONS_ARE_NOT_PASSED_ON.is_planted() {
            let unheard = Members::NONE;
            self.send(to, Seat::Component, Message::Witness { question, unheard });
        }
    }

    /// Passes the testimony of `from` on to the asker.
    pub(super) fn pass_back(
        &mut self,
        from: Rank,
        question: Question,
        testimony: Message,
    ) -> Result<(), Reject> {
        let is_own = matches!(testimony, Message::Testimony { witness, .. } if witness == from);
        if !is_own || !self.config.others().contains(question.asker) {
            return Err(Reject::BadSubject);
        }
        self.send(Members::only(question.asker), Seat::Component, testimony);
        Ok(())
    }

    pub(super) fn handle_alive(
        &mut self,
        from: Rank,
        seat: Seat,
        round: u32,
    ) -> Result<(), Reject> {
        let is_asked = |errand: &Errand| {
            errand.question.node == from
                && (errand.probe == round || crate::dirnet::ALIVE_OF_BEFORE.is_planted())
        };
        let asked = self.errands.iter().position(|it| it.as_ref().is_some_and(is_asked));
        let (index, errand) = asked
            .and_then(|index| Some((index, self.errands[index].as_mut()?)))
            .ok_or(Reject::Late)?;
        match seat {
            Seat::Component => errand.seen.component = true,
            Seat::ImAliveTask => errand.seen.task = true,
        }
        if errand.seen.component {
            self.testify(index);
        }
        Ok(())
    }

    /// Sends the testimonies that are due, as long as there is room for them.
    pub(super) fn handle_errand_deadlines(&mut self, now: Instant) {
        for index in 0..self.errands.len() {
            let is_due = self.errands[index].is_some_and(|errand| errand.due <= now);
            if is_due && self.outputs.has_room() {
                self.testify(index);
            }
        }
    }

    /// Sends the observation to the asker.
    fn testify(&mut self, index: usize) {
        let Some(errand) = self.errands[index].take() else { return };
        let Errand { question, via, seen, .. } = errand;
        let testimony = Message::Testimony { question, witness: self.me(), seen };
        self.send(via, Seat::Component, testimony);
    }
}

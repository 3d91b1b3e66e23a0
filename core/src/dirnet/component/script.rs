//! Recovery of tasks: by the built-in strategy, or by orders of a recovery script.
//!
//! ```text
//!   error ─▶ built-in strategy ────────────────────┐
//!         ─▶ caller: a script is evaluated ─▶ order ├─▶ GUARD, or Output::Task at this node
//!                 left to the house ─▶ strategy ────┘
//! ```
//!
//! The caller evaluates; this machine carries what it orders and what its N-version votes need, and
//! asks its own strategy where the script leaves an error to it. So both take one path to the task.

use super::{Component, News, Role, Rule};
use crate::dirnet::strategy::{Fault, Recovery};
use crate::dirnet::{
    Frame, Members, Message, Output, Reject, ScriptOrder, Seat, TaskAction, TaskError,
};
use crate::ids::Rank;
use crate::time::Instant;
use crate::vote::VoteMessage;

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// A recovery script answers the errors of these tasks of `node`, one bit each; errors of the
    /// others are answered here.
    pub fn leave_to_script(&mut self, node: Rank, tasks: u16) {
        if let Some(scripted) = self.scripted.get_mut(usize::from(node.0)) {
            *scripted = tasks;
        }
    }

    /// Carries an order of a recovery script about a task to its node. It may be lost: repeat it
    /// until the node's entry shows that it was judged.
    ///
    /// # Errors
    /// [`Reject::NotManager`], [`Reject::NoSuchTask`]; nothing changed.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn order_task(
        &mut self,
        now: Instant,
        (node, task): (Rank, u8),
        action: TaskAction,
        order: ScriptOrder,
    ) -> Result<(), Reject> {
        self.check_task(now, node, task)?;
        self.guard(node, task, action, Some(order));
        Ok(())
    }

    /// Has the built-in strategy answer the last error of a task, as a recovery script orders.
    ///
    /// # Errors
    /// [`Reject::NotManager`], [`Reject::NoSuchTask`]; nothing changed.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn order_builtin(
        &mut self,
        now: Instant,
        (node, task): (Rank, u8),
        order: ScriptOrder,
    ) -> Result<(), Reject> {
        self.check_task(now, node, task)?;
        let last = |at: Option<u64>, error: TaskError| {
            if error.task == task { Some(error.at_us) } else { at }
        };
        let at_us = self.db.record(node).and_then(|record| record.errors().fold(None, last));
        self.recover(now, (node, task), at_us.unwrap_or_default(), Some(order));
        Ok(())
    }

    /// Sends a message of an N-version vote to the component of another member, in this term. It
    /// may be lost: repeat it until it is answered.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn send_vote(&mut self, now: Instant, to: Rank, message: VoteMessage) {
        self.begin(now);
        if matches!(self.role(), Role::Manager | Role::Backup) && self.members().contains(to) {
            self.send(Members::only(to), Seat::Component, Message::Vote(message));
        }
    }

    /// Ballots and answers are the manager's; what it asks and proposes is for all others.
    pub(super) fn handle_vote(
        &mut self,
        frame: &Frame,
        message: VoteMessage,
    ) -> Result<(), Reject> {
        match (message, self.role()) {
            (VoteMessage::Outcome(_), Role::Backup) if frame.sender != self.term.claimant => {
                return Err(Reject::NotManager);
            }
            (VoteMessage::Outcome(_), Role::Backup)
            | (VoteMessage::Vote(_) | VoteMessage::Voted { .. }, Role::Manager) => {}
            _ => return Err(Reject::NotForMe),
        }
        let (from, incarnation) = (frame.sender, frame.incarnation);
        self.outputs.push(Output::Vote { from, incarnation, message });
        Ok(())
    }

    fn check_task(&mut self, now: Instant, node: Rank, task: u8) -> Result<(), Reject> {
        self.begin(now);
        let count = self.db.record(node).map_or(0, |record| record.tasks().len());
        match self.role() {
            Role::Manager if usize::from(task) < count => Ok(()),
            Role::Manager => Err(Reject::NoSuchTask),
            Role::Joining | Role::Backup | Role::Excluded => Err(Reject::NotManager),
        }
    }

    /// A task reported an error: evaluates recovery once for each new error (G-27), unless a script
    /// does.
    pub(super) fn recover_task(&mut self, now: Instant, node: Rank, task: u8, at_us: u64) {
        if self.role() != Role::Manager || crate::dirnet::ERRORS_TRIGGER_NOTHING.is_planted() {
            return;
        }
        let scripted = self.scripted.get(usize::from(node.0)).copied().unwrap_or_default();
        if scripted.checked_shr(task.into()).is_none_or(|bits| bits & 1 == 0) {
            self.recover(now, (node, task), at_us, None);
        }
    }

    fn recover(
        &mut self,
        now: Instant,
        (node, task): (Rank, u8),
        at_us: u64,
        order: Option<ScriptOrder>,
    ) {
        let since = at_us.saturating_sub(self.config.limits().restarts.within.as_micros());
        let recent = self.db.record(node).map_or(0, |record| record.errors_of(task, since));
        match self.decide(now, node, Fault::Task { task, recent }) {
            Recovery::RestartTask { task } => self.guard(node, task, TaskAction::Restart, order),
            Recovery::Spawn => {
                let incarnation = self.db.standing(node).incarnation;
                self.spawn(now, node, incarnation, Rule::TaskErrors.into());
                if order.is_some() {
                    self.guard(node, task, TaskAction::Answer, order);
                }
            }
            Recovery::Escalate | Recovery::Reset | Recovery::Isolate => {
                self.tell(News::TaskIsolated { node, task });
                self.guard(node, task, TaskAction::Isolate, order);
            }
        }
    }

    fn guard(&mut self, node: Rank, task: u8, action: TaskAction, order: Option<ScriptOrder>) {
        if node == self.me() {
            let order = order.map(|order| (self.term, order));
            self.outputs.push(Output::Task { task, action, order });
        } else {
            let guard = Message::Guard { task, action, order };
            self.send(Members::only(node), Seat::Component, guard);
        }
    }

    pub(super) fn handle_guard(
        &mut self,
        frame: &Frame,
        task: u8,
        action: TaskAction,
        order: Option<ScriptOrder>,
    ) -> Result<(), Reject> {
        if frame.sender != self.term.claimant {
            return Err(Reject::NotManager);
        }
        let count = self.db.record(self.me()).map_or(0, |record| record.tasks().len());
        if usize::from(task) >= count {
            return Err(Reject::NoSuchTask);
        }
        let order = order.map(|order| (frame.term, order));
        self.outputs.push(Output::Task { task, action, order });
        Ok(())
    }
}

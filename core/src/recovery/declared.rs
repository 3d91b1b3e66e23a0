//! A task that a script declares, at its node: which of its errors wait for an order, and what is
//! done when none comes (RL-3, RL-5).
//!
//! ```text
//!   error ─▶ wait for an order, at most so long ─┬─▶ order: judged, obeyed once, answered
//!                                                └─▶ none came: the script's DEFAULT
//! ```

use super::{Answered, Fallback, Judgement, OrderId, Verb, mutants};
use crate::time::{Duration, Instant};

/// What a script says about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Declared {
    /// What the node does when no order comes.
    pub fallback: Fallback,
    /// For how long it waits for one.
    pub answer: Duration,
}

/// The errors of a task that are left to a script.
#[derive(Clone, Debug, Hash)]
pub struct DeclaredTask {
    declared: Declared,
    answered: Answered,
    /// Until when an order must come.
    until: Option<Instant>,
    /// Whether the component was not sent the mark yet, and whether the order was CLEAR.
    is_fresh: bool,
    is_cleared: bool,
}

/// What the entry of the node must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// How many errors are answered.
    pub answered: u32,
    /// The last order that was judged.
    pub judged: OrderId,
    /// Whether the alpha-count begins again.
    pub is_cleared: bool,
}

impl DeclaredTask {
    /// A task without errors.
    #[must_use]
    pub fn new(declared: Declared) -> Self {
        let answered = Answered::default();
        Self { declared, answered, until: None, is_fresh: false, is_cleared: false }
    }

    /// Another script declares it.
    pub const fn redeclare(&mut self, declared: Declared) {
        self.declared = declared;
    }

    /// The task has had `errors` before a script declares it: they are answered.
    pub fn begin(&mut self, errors: u32) {
        self.answered.answer(errors);
        self.is_fresh = true;
    }

    /// Goes on where an earlier boot stood: the mark, and the orders judged and obeyed last.
    pub const fn go_on(&mut self, (mark, judged, obeyed): (u32, OrderId, OrderId)) {
        self.answered = Answered::restored(mark, judged, obeyed);
        self.is_fresh = true;
    }

    /// What was judged so far.
    #[must_use]
    pub const fn answered(&self) -> &Answered {
        &self.answered
    }

    /// An error needs an order.
    pub fn handle_error(&mut self, now: Instant) {
        self.until.get_or_insert(now.after(self.declared.answer));
    }

    /// When the time for an order is over.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.until
    }

    /// Whether the time for an order is over. The `errors` so far are answered then, by the node;
    /// see [`Self::fallback`].
    pub fn handle_time(&mut self, now: Instant, errors: u32) -> bool {
        let is_over = self.until.take_if(|until| now >= *until).is_some();
        if is_over {
            self.answered.answer(errors);
            self.is_fresh = true;
        }
        is_over
    }

    /// What the node does without an order: there may be no manager. A task that has ended is not
    /// started by that.
    #[must_use]
    pub const fn fallback(&self, has_ended: bool) -> Option<Verb> {
        match self.declared.fallback {
            Fallback::Restart | Fallback::Builtin if !has_ended => Some(Verb::Restart),
            Fallback::Kill => Some(Verb::Stop),
            Fallback::Restart | Fallback::Builtin | Fallback::Nothing => None,
        }
    }

    /// Judges an order of a task that has had `errors`; see [`Answered::judge`].
    pub fn judge(&mut self, id: OrderId, (seen, mark): (u32, u32), errors: u32) -> Judgement {
        let judgement = self.answered.judge(id, seen, mark);
        if self.answered.mark() >= errors {
            self.until = None;
        }
        self.is_fresh = true;
        judgement
    }

    /// Judges a notice; see [`Answered::judge_notice`].
    pub fn judge_notice(&mut self, id: OrderId) -> Judgement {
        self.is_fresh = true;
        self.answered.judge_notice(id)
    }

    /// Whether an order to restart does; otherwise the task is isolated. A restart by order counts
    /// in the task's intensity (RL-5), of which `allows` takes one.
    pub fn may_restart(&self, allows: impl FnOnce() -> bool) -> bool {
        mutants::RESTARTS_ARE_UNCOUNTED.is_planted() || allows()
    }

    /// The order was CLEAR.
    pub const fn clear(&mut self) {
        self.is_cleared = true;
    }

    /// The component to which the mark was sent is gone.
    pub fn forget_sent(&mut self) {
        self.is_fresh = self.answered != Answered::default();
    }

    /// The mark, if the component was not sent it.
    pub fn take_mark(&mut self) -> Option<Mark> {
        let is_cleared = core::mem::take(&mut self.is_cleared);
        let (answered, judged) = (self.answered.mark(), self.answered.judged());
        core::mem::take(&mut self.is_fresh).then_some(Mark { answered, judged, is_cleared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Term;

    const fn declared(fallback: Fallback) -> Declared {
        Declared { fallback, answer: Duration(10) }
    }

    const fn order(evaluation: u32) -> OrderId {
        OrderId { term: Term::of_epoch(1), evaluation, index: 0 }
    }

    #[test]
    fn rl5_a_node_waits_once_for_an_order_that_answers_all_errors() {
        let mut task = DeclaredTask::new(declared(Fallback::Kill));
        task.handle_error(Instant(1));
        task.handle_error(Instant(5));
        assert_eq!(task.poll_timeout(), Some(Instant(11)));
        assert_eq!(task.judge(order(1), (0, 1), 2), Judgement::Obey);
        assert_eq!(task.poll_timeout(), Some(Instant(11)), "one error is not answered");
        assert!(!task.handle_time(Instant(10), 2) && task.handle_time(Instant(11), 2));
        assert_eq!((task.fallback(false), task.answered().mark()), (Some(Verb::Stop), 2));
        assert_eq!(task.judge(order(2), (1, 2), 2), Judgement::Outdated, "too late");
        let mark = Mark { answered: 2, judged: order(2), is_cleared: false };
        assert_eq!((task.take_mark(), task.take_mark()), (Some(mark), None));
        task.forget_sent();
        assert_eq!(task.take_mark(), Some(mark), "to the next component");
    }

    #[test]
    fn rl5_default_starts_no_task_that_has_ended() {
        let mut restarting = DeclaredTask::new(declared(Fallback::Builtin));
        restarting.begin(3);
        assert_eq!(restarting.answered().mark(), 3, "errors before a script declares it");
        assert_eq!(restarting.fallback(false), Some(Verb::Restart));
        assert_eq!(restarting.fallback(true), None);
        assert_eq!(DeclaredTask::new(declared(Fallback::Nothing)).fallback(false), None);
    }
}

//! What a task's node knows of a recovery script that answers the task's errors (RL-3, RL-5).
//!
//! ```text
//!   error ─▶ wait for an order, at most answer_ms ─┬─▶ order: judged, obeyed once, answered
//!                                                  └─▶ none came: the script's DEFAULT
//! ```

use weft_core::recovery::{Answered, Fallback, Judgement, OrderId};

use crate::node::link::{OrderNumber, ScriptOrder, TaskChange};

/// What a recovery script says about one task of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node) struct Declared {
    /// What the node does when no order comes.
    pub(in crate::node) fallback: Fallback,
    /// For how long it waits for one.
    pub(in crate::node) answer_ns: u64,
    /// Within what a beat must follow the last, if the script watches it.
    pub(in crate::node) beat_ns: Option<u64>,
}

/// The errors of a task that are left to a script.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) declared: Declared,
    answered: Answered,
    /// Until when an order must come.
    until_ns: Option<u64>,
    /// Whether the component was not sent the mark yet, and whether the order was CLEAR.
    is_fresh: bool,
    is_cleared: bool,
    /// Whether it was started at all, and again since CLEAR.
    pub(super) has_started: bool,
    pub(super) has_restarted: bool,
}

impl Left {
    pub(super) fn new(declared: Declared) -> Self {
        Self {
            declared,
            answered: Answered::default(),
            until_ns: None,
            is_fresh: false,
            is_cleared: false,
            has_started: false,
            has_restarted: false,
        }
    }

    /// The task has had `errors` before a script declares it: they are answered.
    pub(super) fn begin(&mut self, errors: u64, has_started: bool) {
        self.answered.answer(u32::try_from(errors).unwrap_or(u32::MAX));
        (self.has_started, self.is_fresh) = (has_started, true);
    }

    /// Goes on where an earlier boot stood: the mark, and the orders judged and obeyed last.
    pub(super) fn go_on(&mut self, (mark, judged, obeyed): (u32, OrderNumber, OrderNumber)) {
        self.answered = Answered::restored(mark, judged.into(), obeyed.into());
        self.is_fresh = true;
    }

    /// For the next boot.
    pub(super) fn past(&self) -> (u32, OrderNumber, OrderNumber) {
        let answered = &self.answered;
        (answered.mark(), answered.judged().into(), answered.obeyed().into())
    }

    /// An error needs an order.
    pub(super) fn handle_error(&mut self, now_ns: u64) {
        self.until_ns.get_or_insert(now_ns.saturating_add(self.declared.answer_ns));
    }

    pub(super) const fn next_deadline_ns(&self) -> Option<u64> {
        self.until_ns
    }

    /// Whether the time for an order is over. The `errors` so far are answered then, by the node.
    pub(super) fn handle_time(&mut self, now_ns: u64, errors: u64) -> bool {
        let is_over = self.until_ns.take_if(|until| now_ns >= *until).is_some();
        if is_over {
            self.answered.answer(u32::try_from(errors).unwrap_or(u32::MAX));
            self.is_fresh = true;
        }
        is_over
    }

    /// Judges an order; see [`Answered::judge`].
    pub(super) fn judge(&mut self, order: ScriptOrder, errors: u64) -> Judgement {
        let id = OrderId::from(order.number);
        let judgement = self.answered.judge(id, order.seen, order.mark);
        if u64::from(self.answered.mark()) >= errors {
            self.until_ns = None;
        }
        self.is_fresh = true;
        judgement
    }

    /// Judges a notice; see [`Answered::judge_notice`].
    pub(super) fn judge_notice(&mut self, number: OrderNumber) -> Judgement {
        self.is_fresh = true;
        self.answered.judge_notice(number.into())
    }

    /// Its restarts and α-count begin again.
    pub(super) const fn clear(&mut self) {
        (self.has_restarted, self.is_cleared) = (false, true);
    }

    /// The component to which the mark was sent is gone.
    pub(super) fn forget_told(&mut self) {
        self.is_fresh = self.answered != Answered::default();
    }

    /// The mark, if the component was not sent it.
    pub(super) fn take_answered(&mut self, task: u8) -> Option<TaskChange> {
        let mark = u16::try_from(self.answered.mark()).unwrap_or(u16::MAX);
        let judged = self.answered.judged().into();
        let is_cleared = std::mem::take(&mut self.is_cleared);
        let answered = TaskChange::Answered { task, mark, judged, is_cleared };
        std::mem::take(&mut self.is_fresh).then_some(answered)
    }
}

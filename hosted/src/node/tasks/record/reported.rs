//! Errors that the task itself, or a client on its behalf, reports.

use super::{After, Due, Record};
use crate::node::control::{ReportEffect, TaskFault, TaskOrder, TaskState};

impl Record {
    /// Handles an error that it, or a client on its behalf, has reported.
    pub(in crate::node::tasks) fn handle_report(
        &mut self,
        now_ns: u64,
        error: u16,
    ) -> (Due, ReportEffect) {
        self.note(now_ns, TaskFault::Reported { error });
        if self.left.is_some() {
            return (Due::Nothing, ReportEffect::ToScript);
        }
        if self.state != TaskState::Running || self.after == After::Start {
            return (Due::Nothing, ReportEffect::Noted);
        }
        if !self.intensity.allows(now_ns) {
            self.verdict = true;
            return (self.end_as(TaskState::Isolated), ReportEffect::Isolated);
        }
        self.unanswered_at_ns.get_or_insert(now_ns.saturating_add(self.answer_ns));
        let (restarts, left) = (self.restarts, self.intensity.left());
        (Due::Nothing, ReportEffect::Restart { restarts, left })
    }

    /// The manager has it restarted for the errors that were reported, which have been counted, or
    /// no order has come. If it was started again since the last error, an order has no effect.
    pub(in crate::node::tasks) fn handle_restart(&mut self) -> Due {
        if !self.has_erred_since_start() || self.after == After::Start {
            return Due::Nothing;
        }
        self.unanswered_at_ns = None;
        self.restarts += 1;
        self.handle_order(TaskOrder::Restart).0
    }

    /// Whether the running process has had an error.
    fn has_erred_since_start(&self) -> bool {
        let last = self.last.back().map(|(at_ns, _)| *at_ns);
        self.state == TaskState::Running && last.is_some_and(|at_ns| at_ns > self.started_at_ns)
    }
}

//! The record of one task: its state, its errors, and what they require.
//!
//! ```text
//!            started                exit 0
//!   Waiting ─────────▶ Running ─────────────────▶ Finished
//!      ▲                │   │  failed, or killed as Faulty
//!      │ within the     │   └───────────────────▶ Running again, or Isolated when too often
//!      │ intensity      │ silent past its deadline
//!      └── Faulty ◀─────┘          ordered: Killed, Isolated, Running again
//! ```
//!
//! A decider: time and events come in, actions on the process come out. The first failure in the
//! window is answered by a start at once, later ones by a start after a pause
//! ([`Intensity::pause_ns`]). A reported error counts as a failure, since it goes to the manager,
//! which has the task restarted (G-27): one too many isolates it here. There may be no manager, and
//! its order may be lost: the node does it then. Where a recovery script
//! declares the task, a failure starts nothing: the script's order does, and restarts by order
//! count (RL-5).

mod redeclare;
mod reported;

use std::collections::VecDeque;

use weft_core::recovery::{Judgement, Verb};
use weft_core::script::TaskStatus;
use weft_core::time::Instant;

use super::left::{Declared, LeftErrors, count};
use super::note::{Past, TaskStanding};
use super::owed::Fresh;
use crate::cluster::Task;
use crate::node::control::{TaskEffect, TaskError, TaskFault, TaskOrder, TaskState};
use crate::node::intensity::Intensity;
use crate::node::link::{GuardAction, OrderNumber, ScriptOrder, TaskChange};

/// The most errors that are remembered; all are counted.
const ERRORS_MAX: usize = 8;

/// The action on the task's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Start,
    Kill,
}

/// What follows once the process that is being killed has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Stay,
    Start,
}

/// One task of this node.
#[derive(Debug)]
pub(super) struct Record {
    state: TaskState,
    after: After,
    intensity: Intensity,
    restarts: u64,
    errors: u64,
    last: VecDeque<(u64, TaskFault)>,
    beat_ns: Option<u64>,
    silent_at_ns: Option<u64>,
    /// When the pause before its next start is over.
    start_at_ns: Option<u64>,
    /// For how long a reported error waits for the manager, and until when one does.
    answer_ns: u64,
    unanswered_at_ns: Option<u64>,
    started_at_ns: u64,
    /// Errors that were noted since the last `take_errors`.
    fresh: Vec<Fresh>,
    /// How many errors the database never gets.
    unrecorded: u64,
    /// The status that was last sent to the component.
    reported: Option<u8>,
    /// The phase of its process, and the one that was last sent to the component.
    phase: u8,
    reported_phase: Option<u8>,
    /// What a recovery script says about it, if one declares it.
    left: Option<LeftErrors>,
    /// What was judged under a script that does not declare it any more.
    before: Option<(u32, OrderNumber, OrderNumber)>,
    /// It was isolated without an order, which must be reported to the operator.
    verdict: bool,
    /// It was ended with its node, and must run again with it.
    held: bool,
    /// Its earlier standing is not known here, and nothing was ordered since peers were asked.
    asked: bool,
}

impl Record {
    /// A task that waits for its start. An error that it reports waits for the manager's order for
    /// at most `answer_ms`.
    pub(super) fn new(task: &Task, answer_ms: u64) -> Self {
        Self {
            state: TaskState::Waiting,
            after: After::Stay,
            intensity: Intensity::new(&task.restart),
            restarts: 0,
            errors: 0,
            last: VecDeque::with_capacity(ERRORS_MAX),
            beat_ns: task.beat_ms.map(|beat_ms| beat_ms.saturating_mul(1_000_000)),
            silent_at_ns: None,
            start_at_ns: None,
            answer_ns: answer_ms.saturating_mul(1_000_000),
            unanswered_at_ns: None,
            started_at_ns: 0,
            fresh: Vec::new(),
            unrecorded: 0,
            reported: None,
            phase: 0,
            // As the database has it for a new boot.
            reported_phase: Some(0),
            left: None,
            before: None,
            verdict: false,
            held: false,
            asked: false,
        }
    }

    /// A recovery script answers its errors.
    pub(super) fn leave(&mut self, declared: Declared) {
        self.beat_ns = declared.beat_ns.or(self.beat_ns);
        self.left = Some(LeftErrors::new(declared));
    }

    /// Continues from the history of an earlier boot of its node.
    pub(super) fn go_on(&mut self, past: Past) {
        self.state = state_of(past.standing);
        let Past { errors, restarts, unrecorded, last, answered, .. } = past;
        self.before = answered;
        if let (Some(left), Some(answered)) = (&mut self.left, answered) {
            left.go_on(answered);
        }
        (self.errors, self.restarts, self.unrecorded) = (errors, restarts, unrecorded);
        self.last.extend(last.into_iter().take(ERRORS_MAX));
    }

    /// Whether to start it now that its node knows its standing.
    pub(super) fn is_to_begin(&self) -> bool {
        let waits = self.state == TaskState::Waiting && self.start_at_ns.is_none();
        waits && self.after == After::Stay
    }

    /// Nothing is known of it here: peers are asked.
    pub(super) const fn ask(&mut self) {
        self.asked = true;
    }

    /// Whether peers were asked, and have not answered.
    pub(super) const fn is_asked(&self) -> bool {
        self.asked
    }

    /// Ends the wait for the peers' answer.
    pub(super) const fn settle(&mut self) {
        self.asked = false;
    }

    /// Handles what the peers know of it; an order that came meanwhile stands.
    pub(super) fn learn(&mut self, standing: TaskStanding, errors: u16, answered: u16) {
        if !std::mem::take(&mut self.asked) {
            return;
        }
        self.errors += u64::from(errors);
        if let Some(left) = &mut self.left {
            // Which order was judged last, the note of the earlier boot would say.
            let unknown = OrderNumber::default();
            left.go_on((answered.into(), unknown, unknown));
        }
        if standing != TaskStanding::Free {
            self.held = false;
            self.state = state_of(standing);
        }
    }

    /// Its history for a later boot of its node.
    pub(super) fn past(&self) -> Past {
        let standing = match self.state {
            TaskState::Isolated => TaskStanding::Isolated,
            TaskState::Finished => TaskStanding::Finished,
            TaskState::Killed if !self.held => TaskStanding::Stopped,
            TaskState::Killed | TaskState::Running | TaskState::Waiting | TaskState::Faulty => {
                TaskStanding::Free
            }
        };
        let (errors, restarts, unrecorded) = (self.errors, self.restarts, self.unrecorded);
        let last = self.last.iter().cloned().collect();
        let answered = self.left.as_ref().map(LeftErrors::past).or(self.before);
        Past { standing, errors, restarts, unrecorded, last, answered }
    }

    pub(super) const fn state(&self) -> TaskState {
        self.state
    }

    pub(super) const fn restarts(&self) -> u64 {
        self.restarts
    }

    /// The number of all errors so far.
    pub(super) const fn errors(&self) -> u64 {
        self.errors
    }

    /// The last errors, oldest first.
    pub(super) fn last_errors(&self, now_ns: u64) -> Vec<TaskError> {
        let reported = |(at_ns, fault): &(u64, TaskFault)| TaskError {
            fault: fault.clone(),
            ago_ms: now_ns.saturating_sub(*at_ns) / 1_000_000,
        };
        self.last.iter().map(reported).collect()
    }

    /// Records that its process runs.
    pub(super) fn handle_started(&mut self, now_ns: u64) {
        self.state = TaskState::Running;
        self.started_at_ns = now_ns;
        (self.start_at_ns, self.unanswered_at_ns) = (None, None);
        self.phase = 0;
        if let Some(left) = &mut self.left {
            left.has_restarted = left.has_started;
            left.has_started = true;
        }
        self.await_beat(now_ns);
    }

    /// Its process cannot be started. Trying again would fail the same way, so that is left to
    /// people.
    pub(super) fn handle_not_started(&mut self, now_ns: u64, why: String) {
        self.note(now_ns, TaskFault::NotStarted { why });
        self.state = TaskState::Faulty;
    }

    /// Why it could not be started, if that is its present fault.
    pub(super) fn not_started(&self) -> Option<&str> {
        match self.last.back() {
            Some((_, TaskFault::NotStarted { why })) if self.state == TaskState::Faulty => {
                Some(why)
            }
            _ => None,
        }
    }

    /// Its process has ended by itself or was killed; `fault` is none for status 0.
    pub(super) fn handle_ended(&mut self, now_ns: u64, fault: Option<TaskFault>) -> Due {
        self.silent_at_ns = None;
        match (self.state, std::mem::replace(&mut self.after, After::Stay)) {
            (_, After::Start) => Due::Start,
            (TaskState::Running, After::Stay) => {
                let Some(fault) = fault else {
                    self.state = TaskState::Finished;
                    return Due::Nothing;
                };
                self.note(now_ns, fault);
                self.start_again(now_ns)
            }
            // Killed because it sent no beat, which has been noted.
            (TaskState::Faulty, After::Stay) => self.start_again(now_ns),
            (
                TaskState::Waiting | TaskState::Killed | TaskState::Isolated | TaskState::Finished,
                After::Stay,
            ) => Due::Nothing,
        }
    }

    /// Records its progress; returns its state if it does not run.
    pub(super) fn handle_beat(&mut self, now_ns: u64) -> Result<(), TaskState> {
        if self.state != TaskState::Running {
            return Err(self.state);
        }
        self.await_beat(now_ns);
        Ok(())
    }

    /// Records its phase; returns its state if it does not run.
    pub(super) fn handle_phase(&mut self, phase: u8) -> Result<(), TaskState> {
        if self.state != TaskState::Running {
            return Err(self.state);
        }
        self.phase = phase;
        Ok(())
    }

    /// Records a fault that a recovery script answers.
    pub(super) fn handle_fault(&mut self, now_ns: u64, fault: TaskFault) {
        self.note(now_ns, fault);
    }

    /// Whether the notice of a recovery script was not handed over yet.
    pub(super) fn handle_notice(&mut self, number: OrderNumber) -> bool {
        let left = self.left.as_mut();
        left.is_some_and(|it| it.declared.judge_notice(number.into()) == Judgement::Obey)
    }

    /// When its next beat is overdue, or a pause is over.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        let answer = self.left.as_ref().and_then(LeftErrors::next_deadline_ns);
        let own = [self.silent_at_ns, self.start_at_ns, self.unanswered_at_ns];
        own.into_iter().flatten().chain(answer).min()
    }

    pub(super) fn handle_time(&mut self, now_ns: u64) -> Due {
        if self.start_at_ns.take_if(|at| now_ns >= *at).is_some() {
            return Due::Start;
        }
        if self.unanswered_at_ns.take_if(|at| now_ns >= *at).is_some() {
            return self.handle_restart();
        }
        let recorded = self.recorded();
        if let Some(left) = self.left.as_mut()
            && left.declared.handle_time(Instant(now_ns), count(recorded))
        {
            return self.answer_without_order(now_ns);
        }
        if self.silent_at_ns.is_none_or(|at| now_ns < at) {
            return Due::Nothing;
        }
        self.silent_at_ns = None;
        self.note(now_ns, TaskFault::Silent);
        if self.left.is_some() {
            return Due::Nothing;
        }
        self.state = TaskState::Faulty;
        Due::Kill
    }

    /// Handles an operator's order.
    pub(super) fn handle_order(&mut self, order: TaskOrder) -> (Due, TaskEffect) {
        let is_so = match order {
            TaskOrder::Start => self.state == TaskState::Running,
            TaskOrder::Restart => false,
            // One that has ended in another way stays so.
            TaskOrder::Stop => match self.state {
                TaskState::Killed => !self.held,
                TaskState::Isolated | TaskState::Finished => true,
                TaskState::Running | TaskState::Waiting | TaskState::Faulty => false,
            },
            TaskOrder::Isolate => self.state == TaskState::Isolated,
        };
        if is_so {
            return (Due::Nothing, TaskEffect::Already { state: self.state });
        }
        (self.after, self.held, self.asked) = (After::Stay, false, false);
        let runs = matches!(self.state, TaskState::Running | TaskState::Faulty);
        let due = match order {
            TaskOrder::Start | TaskOrder::Restart if runs => {
                self.silent_at_ns = None;
                self.after = After::Start;
                Due::Kill
            }
            TaskOrder::Start | TaskOrder::Restart => self.start_soon(),
            TaskOrder::Stop => self.end_as(TaskState::Killed),
            TaskOrder::Isolate => self.end_as(TaskState::Isolated),
        };
        (due, TaskEffect::Done)
    }

    /// Its node is isolated: it ends, and is held until the node is released.
    pub(super) fn handle_hold(&mut self) -> Due {
        if !matches!(self.state, TaskState::Running | TaskState::Waiting | TaskState::Faulty) {
            return Due::Nothing;
        }
        (self.after, self.held) = (After::Stay, true);
        self.end_as(TaskState::Killed)
    }

    /// Its node is released.
    pub(super) fn handle_release(&mut self) -> Due {
        if std::mem::take(&mut self.held) { self.start_soon() } else { Due::Nothing }
    }

    /// Handles the order of a recovery script: it is obeyed at most once (RL-3), and a restart too
    /// many isolates (RL-5).
    pub(super) fn handle_script_order(
        &mut self,
        now_ns: u64,
        action: GuardAction,
        order: ScriptOrder,
    ) -> (Due, Judgement) {
        let recorded = self.recorded();
        let judgement = self.left.as_mut().map_or(Judgement::Outdated, |left| {
            let (id, marks) = (order.number.into(), (order.seen, order.mark));
            left.declared.judge(id, marks, count(recorded))
        });
        if judgement != Judgement::Obey {
            return (Due::Nothing, judgement);
        }
        let is_isolated = self.state == TaskState::Isolated;
        let due = match action {
            GuardAction::Restart => self.restart_by_order(now_ns),
            GuardAction::Start if !is_isolated => self.handle_order(TaskOrder::Start).0,
            GuardAction::Stop if !is_isolated => self.handle_order(TaskOrder::Stop).0,
            GuardAction::Isolate => self.handle_isolate(),
            GuardAction::Release if is_isolated => {
                self.state = TaskState::Killed;
                Due::Nothing
            }
            GuardAction::Clear => {
                self.intensity.forget();
                self.left.iter_mut().for_each(LeftErrors::clear);
                Due::Nothing
            }
            GuardAction::Start
            | GuardAction::Stop
            | GuardAction::Release
            | GuardAction::Answer
            | GuardAction::Send
            | GuardAction::Warn => Due::Nothing,
        };
        (due, judgement)
    }

    fn restart_by_order(&mut self, now_ns: u64) -> Due {
        if self.state == TaskState::Isolated {
            return Due::Nothing;
        }
        let left = self.left.as_ref().map(|left| &left.declared);
        let is_allowed = left.is_none_or(|it| it.may_restart(|| self.intensity.allows(now_ns)));
        if !is_allowed {
            self.verdict = true;
            return self.end_as(TaskState::Isolated);
        }
        self.restarts += 1;
        self.handle_order(TaskOrder::Restart).0
    }

    /// No order has come in time: there may be no manager. The node does what DEFAULT says.
    fn answer_without_order(&mut self, now_ns: u64) -> Due {
        let has_ended = matches!(self.state, TaskState::Killed | TaskState::Finished);
        match self.left.as_ref().and_then(|left| left.declared.fallback(has_ended)) {
            Some(Verb::Restart) => self.restart_by_order(now_ns),
            Some(_) => self.handle_order(TaskOrder::Stop).0,
            None => Due::Nothing,
        }
    }

    /// Handles the manager's decision to isolate it.
    pub(super) fn handle_isolate(&mut self) -> Due {
        let (due, effect) = self.handle_order(TaskOrder::Isolate);
        self.verdict |= effect == TaskEffect::Done;
        due
    }

    /// It must be started, and its last process has not ended yet.
    pub(super) fn await_end(&mut self) {
        self.after = After::Start;
    }

    /// Whether it was isolated since the last call, other than by order.
    pub(super) fn take_verdict(&mut self) -> bool {
        std::mem::take(&mut self.verdict)
    }

    /// How many of its errors the database has, or gets.
    const fn recorded(&self) -> u64 {
        self.errors - self.unrecorded
    }

    /// How many errors the database never gets.
    pub(super) const fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    /// Counts one more of them.
    pub(super) const fn note_unrecorded(&mut self) {
        self.unrecorded += 1;
    }

    /// The component to which the state was sent is gone.
    pub(super) fn forget_told(&mut self) {
        self.reported = None;
        if (self.phase, self.reported_phase) != (0, Some(0)) {
            self.reported_phase = None;
        }
        self.left.iter_mut().for_each(|left| left.declared.forget_sent());
    }

    /// The errors since the last call, as times and their numbers in the database.
    pub(super) fn take_errors(&mut self) -> Vec<Fresh> {
        std::mem::take(&mut self.fresh)
    }

    /// The state, if it was not sent to the component. A held task is reported as waiting.
    pub(super) fn take_status(&mut self, task: u8) -> Option<TaskChange> {
        let state = if self.held { TaskState::Waiting } else { self.state };
        let flags = self.left.as_ref().map_or(0, |left| {
            let started = if left.has_started { TaskStatus::STARTED } else { 0 };
            started | if left.has_restarted { TaskStatus::RESTARTED } else { 0 }
        });
        let status = state as u8 | flags;
        let reported = self.reported.replace(status);
        (reported != Some(status)).then_some(TaskChange::Status { task, status })
    }

    /// The phase, if it was not sent to the component.
    pub(super) fn take_phase(&mut self, task: u8) -> Option<TaskChange> {
        let phase = self.phase;
        let reported = self.reported_phase.replace(phase);
        (reported != Some(phase)).then_some(TaskChange::Phase { task, phase })
    }

    /// Which of its errors a script has answered, if the component was not sent it.
    pub(super) fn take_answered(&mut self, task: u8) -> Option<TaskChange> {
        self.left.as_mut()?.take_answered(task)
    }

    /// Whether it was ended with its node.
    pub(super) const fn is_held(&self) -> bool {
        self.held
    }

    fn await_beat(&mut self, now_ns: u64) {
        self.silent_at_ns = self.beat_ns.map(|beat_ns| now_ns.saturating_add(beat_ns));
    }

    fn end_as(&mut self, state: TaskState) -> Due {
        self.state = state;
        (self.silent_at_ns, self.start_at_ns, self.unanswered_at_ns) = (None, None, None);
        Due::Kill
    }

    fn start_soon(&mut self) -> Due {
        self.state = TaskState::Waiting;
        self.start_at_ns = None;
        Due::Start
    }

    fn start_again(&mut self, now_ns: u64) -> Due {
        if self.left.is_some() {
            self.state = TaskState::Waiting;
            return Due::Nothing;
        }
        let pause_ns = self.intensity.pause_ns(now_ns);
        if !self.intensity.allows(now_ns) {
            self.state = TaskState::Isolated;
            self.verdict = true;
            return Due::Nothing;
        }
        self.restarts += 1;
        let due = self.start_soon();
        if pause_ns == 0 {
            return due;
        }
        self.start_at_ns = Some(now_ns.saturating_add(pause_ns));
        Due::Nothing
    }

    fn note(&mut self, now_ns: u64, fault: TaskFault) {
        self.errors += 1;
        if self.last.len() == ERRORS_MAX {
            self.last.pop_front();
        }
        let last_ns = self.last.back().map(|(at_ns, _)| *at_ns);
        self.fresh.push(Fresh { at_ns: now_ns, last_ns, kind: fault.kind() });
        if let Some(left) = &mut self.left {
            left.declared.handle_error(Instant(now_ns));
        }
        self.last.push_back((now_ns, fault));
    }
}

/// The state in which a task begins the next boot of its node.
const fn state_of(standing: TaskStanding) -> TaskState {
    match standing {
        TaskStanding::Free => TaskState::Waiting,
        TaskStanding::Stopped => TaskState::Killed,
        TaskStanding::Isolated => TaskState::Isolated,
        TaskStanding::Finished => TaskState::Finished,
    }
}

#[cfg(test)]
mod tests;

//! What is known of one task: its state, its errors, and what they call for.
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
//! A decider: the time and what happened come in, what must be done with the process comes out.
//! The first failure for long is answered by a start at once, later ones by a start after a pause
//! ([`Intensity::pause_ns`]). An error that is reported counts as a failure, since the manager,
//! which is told, has the task restarted (G-27): one too many isolates it here.

use std::collections::VecDeque;

use super::note::{Past, Standing};
use crate::cluster::Task;
use crate::node::control::{ReportEffect, TaskEffect, TaskError, TaskFault, TaskOrder, TaskState};
use crate::node::intensity::Intensity;
use crate::node::link::TaskChange;

/// Errors that are remembered; all are counted.
const ERRORS_MAX: usize = 8;

/// What must be done with the task's process.
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
    /// When a pause before its next start is over.
    start_at_ns: Option<u64>,
    started_at_ns: u64,
    /// Errors that were noted since they were last taken.
    fresh: Vec<(u64, u16)>,
    /// Errors that the database never gets.
    unrecorded: u64,
    /// The state that the component was told of.
    told: Option<TaskState>,
    /// It was isolated without an order of the operator, who is to be told.
    verdict: bool,
    /// It was ended with its node, and is to run again with it.
    held: bool,
}

impl Record {
    pub(super) fn new(task: &Task) -> Self {
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
            started_at_ns: 0,
            fresh: Vec::new(),
            unrecorded: 0,
            told: None,
            verdict: false,
            held: false,
        }
    }

    /// This task was known before, to an earlier life of its node.
    pub(super) fn go_on(&mut self, past: Past) {
        self.state = match past.standing {
            Standing::Free => TaskState::Waiting,
            Standing::Stopped => TaskState::Killed,
            Standing::Isolated => TaskState::Isolated,
            Standing::Finished => TaskState::Finished,
        };
        let Past { errors, restarts, unrecorded, last, .. } = past;
        (self.errors, self.restarts, self.unrecorded) = (errors, restarts, unrecorded);
        self.last.extend(last.into_iter().take(ERRORS_MAX));
    }

    /// What a later life of its node is to know.
    pub(super) fn past(&self) -> Past {
        let standing = match self.state {
            TaskState::Isolated => Standing::Isolated,
            TaskState::Finished => Standing::Finished,
            TaskState::Killed if !self.held => Standing::Stopped,
            TaskState::Killed | TaskState::Running | TaskState::Waiting | TaskState::Faulty => {
                Standing::Free
            }
        };
        let (errors, restarts, unrecorded) = (self.errors, self.restarts, self.unrecorded);
        Past { standing, errors, restarts, unrecorded, last: self.last.iter().cloned().collect() }
    }

    pub(super) const fn state(&self) -> TaskState {
        self.state
    }

    pub(super) const fn restarts(&self) -> u64 {
        self.restarts
    }

    /// All errors so far.
    pub(super) const fn errors(&self) -> u64 {
        self.errors
    }

    /// The last errors, oldest first.
    pub(super) fn last_errors(&self, now_ns: u64) -> Vec<TaskError> {
        let told = |(at_ns, fault): &(u64, TaskFault)| TaskError {
            fault: fault.clone(),
            ago_ms: now_ns.saturating_sub(*at_ns) / 1_000_000,
        };
        self.last.iter().map(told).collect()
    }

    /// Its process runs.
    pub(super) fn handle_started(&mut self, now_ns: u64) {
        self.state = TaskState::Running;
        self.started_at_ns = now_ns;
        self.start_at_ns = None;
        self.handle_beat(now_ns);
    }

    /// Its process cannot be started. Trying again would find the same, so that is left to people.
    pub(super) fn handle_not_started(&mut self, now_ns: u64, why: String) {
        self.note(now_ns, TaskFault::NotStarted { why });
        self.state = TaskState::Faulty;
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
            // Killed for being silent, which has been noted.
            (TaskState::Faulty, After::Stay) => self.start_again(now_ns),
            (
                TaskState::Waiting | TaskState::Killed | TaskState::Isolated | TaskState::Finished,
                After::Stay,
            ) => Due::Nothing,
        }
    }

    /// It has said that it makes progress.
    pub(super) fn handle_beat(&mut self, now_ns: u64) {
        if self.state == TaskState::Running {
            self.silent_at_ns = self.beat_ns.map(|beat_ns| now_ns.saturating_add(beat_ns));
        }
    }

    /// It, or somebody on its behalf, has reported an error.
    pub(super) fn handle_report(&mut self, now_ns: u64, error: u16) -> (Due, ReportEffect) {
        self.note(now_ns, TaskFault::Reported { error });
        if self.state != TaskState::Running || self.after == After::Start {
            return (Due::Nothing, ReportEffect::Noted);
        }
        if !self.intensity.allows(now_ns) {
            self.verdict = true;
            return (self.end_as(TaskState::Isolated), ReportEffect::Isolated);
        }
        let (restarts, left) = (self.restarts, self.intensity.left());
        (Due::Nothing, ReportEffect::Restart { restarts, left })
    }

    /// When it will have been silent for too long, or a pause is over.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.silent_at_ns.into_iter().chain(self.start_at_ns).min()
    }

    pub(super) fn handle_time(&mut self, now_ns: u64) -> Due {
        if self.start_at_ns.take_if(|at| now_ns >= *at).is_some() {
            return Due::Start;
        }
        if self.silent_at_ns.is_none_or(|at| now_ns < at) {
            return Due::Nothing;
        }
        self.silent_at_ns = None;
        self.note(now_ns, TaskFault::Silent);
        self.state = TaskState::Faulty;
        Due::Kill
    }

    /// People have decided.
    pub(super) fn handle_order(&mut self, order: TaskOrder) -> (Due, TaskEffect) {
        let is_so = match order {
            TaskOrder::Start => self.state == TaskState::Running,
            TaskOrder::Restart => false,
            TaskOrder::Stop => self.state == TaskState::Killed && !self.held,
            TaskOrder::Isolate => self.state == TaskState::Isolated,
        };
        if is_so {
            return (Due::Nothing, TaskEffect::Already);
        }
        (self.after, self.held) = (After::Stay, false);
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

    /// Its node is shut out: it ends, and is held until the node is let in again.
    pub(super) fn handle_hold(&mut self) -> Due {
        if !matches!(self.state, TaskState::Running | TaskState::Waiting | TaskState::Faulty) {
            return Due::Nothing;
        }
        (self.after, self.held) = (After::Stay, true);
        self.end_as(TaskState::Killed)
    }

    /// Its node is let in again.
    pub(super) fn handle_release(&mut self) -> Due {
        if std::mem::take(&mut self.held) { self.start_soon() } else { Due::Nothing }
    }

    /// The manager has it restarted for the errors that were reported, which have been counted.
    /// One that was started again since has been so before the manager could say it.
    pub(super) fn handle_restart(&mut self) -> Due {
        if !self.has_erred_since_start() || self.after == After::Start {
            return Due::Nothing;
        }
        self.restarts += 1;
        self.handle_order(TaskOrder::Restart).0
    }

    /// The manager has it isolated.
    pub(super) fn handle_isolate(&mut self) -> Due {
        let (due, effect) = self.handle_order(TaskOrder::Isolate);
        self.verdict |= effect == TaskEffect::Done;
        due
    }

    /// It is to be started, and its last process has not quite ended.
    pub(super) fn await_end(&mut self) {
        self.after = After::Start;
    }

    /// Whether it was isolated since this was last asked, other than by order.
    pub(super) fn take_verdict(&mut self) -> bool {
        std::mem::take(&mut self.verdict)
    }

    /// Whether the process that runs has had an error.
    fn has_erred_since_start(&self) -> bool {
        let last = self.last.back().map(|(at_ns, _)| *at_ns);
        self.state == TaskState::Running && last.is_some_and(|at_ns| at_ns > self.started_at_ns)
    }

    /// Errors that the database never gets.
    pub(super) const fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    /// One more of them.
    pub(super) const fn note_unrecorded(&mut self) {
        self.unrecorded += 1;
    }

    /// The component that was told is gone.
    pub(super) const fn forget_told(&mut self) {
        self.told = None;
    }

    /// The errors since this was last asked, as when and their numbers in the database.
    pub(super) fn take_errors(&mut self) -> Vec<(u64, u16)> {
        std::mem::take(&mut self.fresh)
    }

    /// The state, if the component was not told of it.
    pub(super) fn take_status(&mut self, task: u8) -> Option<TaskChange> {
        let told = self.told.replace(self.state);
        let status = self.state as u8;
        (told != Some(self.state)).then_some(TaskChange::Status { task, status })
    }

    fn end_as(&mut self, state: TaskState) -> Due {
        self.state = state;
        (self.silent_at_ns, self.start_at_ns) = (None, None);
        Due::Kill
    }

    fn start_soon(&mut self) -> Due {
        self.state = TaskState::Waiting;
        self.start_at_ns = None;
        Due::Start
    }

    fn start_again(&mut self, now_ns: u64) -> Due {
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
        self.fresh.push((now_ns, kind_of(&fault)));
        self.last.push_back((now_ns, fault));
    }
}

/// The number of a fault in the database: a task's own up to 0xF7FF, as far as it keeps to that.
fn kind_of(fault: &TaskFault) -> u16 {
    let low = |number: i32| u16::from(number.to_le_bytes()[0]);
    match fault {
        TaskFault::Reported { error } => *error,
        TaskFault::Exited { status } => 0xFF00 | low(*status),
        TaskFault::Signalled { signal } => 0xFE00 | low(*signal),
        TaskFault::NotStarted { .. } => 0xFD00,
        TaskFault::Silent => 0xFC00,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Restart;

    const SECOND: u64 = 1_000_000_000;
    const FAILED: TaskFault = TaskFault::Exited { status: 3 };

    /// A task that runs, may be restarted once in ten seconds, and must beat every second.
    fn running() -> Record {
        let restart = Restart { max: 1, within_s: 10 };
        let name = "worker".parse().unwrap();
        let task = Task { restart, beat_ms: Some(1000), ..Task::new(name, "worker".to_owned()) };
        let mut record = Record::new(&task);
        record.handle_started(0);
        record
    }

    #[test]
    fn one_that_ends_with_status_0_has_finished() {
        let mut record = running();
        assert_eq!(record.handle_ended(1, None), Due::Nothing);
        assert_eq!((record.state(), record.errors()), (TaskState::Finished, 0));
    }

    #[test]
    fn one_that_fails_too_often_is_isolated() {
        let mut record = running();
        assert_eq!(record.handle_ended(1, Some(FAILED)), Due::Start);
        record.handle_started(2);
        assert!(!record.take_verdict());
        assert_eq!(record.handle_ended(3, Some(FAILED)), Due::Nothing);
        assert_eq!(record.state(), TaskState::Isolated);
        assert_eq!((record.errors(), record.restarts()), (2, 1));
        assert!(record.take_verdict() && !record.take_verdict(), "told once");
    }

    #[test]
    fn one_that_fails_again_waits_before_it_is_started() {
        let restart = Restart { max: 2, within_s: 4 };
        let task = Task { restart, ..Task::new("worker".parse().unwrap(), "worker".to_owned()) };
        let mut record = Record::new(&task);
        assert_eq!(record.state(), TaskState::Waiting);
        record.handle_started(0);
        assert_eq!(record.handle_ended(1, Some(FAILED)), Due::Start);
        record.handle_started(2);
        assert_eq!(record.handle_ended(3, Some(FAILED)), Due::Nothing);
        let due = Some(3 + SECOND / 2);
        assert_eq!((record.state(), record.next_deadline_ns()), (TaskState::Waiting, due));
        assert_eq!(record.handle_time(2 + SECOND / 2), Due::Nothing);
        assert_eq!(record.handle_time(3 + SECOND / 2), Due::Start);
        assert_eq!(record.next_deadline_ns(), None);
    }

    #[test]
    fn an_order_ends_a_pause() {
        for (order, due) in [(TaskOrder::Start, Due::Start), (TaskOrder::Stop, Due::Kill)] {
            let mut record = running();
            record.start_at_ns = Some(SECOND);
            record.state = TaskState::Waiting;
            assert_eq!(record.handle_order(order), (due, TaskEffect::Done));
            assert_eq!(record.start_at_ns, None);
        }
    }

    #[test]
    fn silence_is_killed_and_started_again() {
        let mut record = running();
        record.handle_beat(SECOND / 2);
        assert_eq!(record.handle_time(SECOND), Due::Nothing);
        assert_eq!(record.handle_time(2 * SECOND), Due::Kill);
        assert_eq!(record.state(), TaskState::Faulty);
        assert_eq!(record.handle_time(3 * SECOND), Due::Nothing);
        let killed = TaskFault::Signalled { signal: 9 };
        assert_eq!(record.handle_ended(3 * SECOND, Some(killed)), Due::Start);
        let errors = record.last_errors(4 * SECOND);
        assert_eq!(errors, [TaskError { fault: TaskFault::Silent, ago_ms: 2000 }]);
    }

    #[test]
    fn a_program_that_cannot_be_started_is_faulty_and_left_alone() {
        let mut record = running();
        assert_eq!(record.handle_ended(1, Some(FAILED)), Due::Start);
        record.handle_not_started(2, "no such file".to_owned());
        assert_eq!((record.state(), record.errors()), (TaskState::Faulty, 2));
        assert_eq!(record.handle_time(u64::MAX), Due::Nothing);
        assert_eq!(record.handle_order(TaskOrder::Start), (Due::Kill, TaskEffect::Done));
        assert_eq!(record.handle_ended(3, None), Due::Start);
    }

    #[test]
    fn a_report_counts_as_a_failure_and_the_manager_restarts() {
        let mut record = running();
        assert_eq!(record.handle_restart(), Due::Nothing, "nothing has gone wrong");
        let (restarts, left) = (0, 0);
        let restart = ReportEffect::Restart { restarts, left };
        assert_eq!(record.handle_report(1, 7), (Due::Nothing, restart));
        assert_eq!((record.state(), record.restarts()), (TaskState::Running, 0));
        assert_eq!(record.handle_restart(), Due::Kill);
        assert_eq!(record.handle_restart(), Due::Nothing, "it is under way");
        assert_eq!(record.handle_report(2, 8), (Due::Nothing, ReportEffect::Noted));
        assert_eq!(record.handle_ended(3, Some(FAILED)), Due::Start);
        record.handle_started(4);
        assert_eq!((record.errors(), record.restarts()), (2, 1));
        assert_eq!(record.handle_report(5, 9), (Due::Kill, ReportEffect::Isolated));
        assert_eq!(record.handle_restart(), Due::Nothing);
        assert_eq!(record.handle_ended(6, Some(FAILED)), Due::Nothing);
        assert_eq!(record.state(), TaskState::Isolated);
        assert!(record.take_verdict());
    }

    #[test]
    fn reports_of_one_that_does_not_run_are_only_noted() {
        let mut record = running();
        record.handle_order(TaskOrder::Stop);
        for error in 0..20 {
            assert_eq!(record.handle_report(1, error), (Due::Nothing, ReportEffect::Noted));
        }
        assert_eq!((record.state(), record.errors()), (TaskState::Killed, 20));
        let last = record.last_errors(1);
        assert_eq!(last.len(), ERRORS_MAX);
        assert_eq!(last[ERRORS_MAX - 1].fault, TaskFault::Reported { error: 19 });
    }

    /// The same task at the next life of its node.
    fn next(record: &Record) -> Record {
        let task = Task::new("worker".parse().unwrap(), "worker".to_owned());
        let mut next = Record::new(&task);
        next.go_on(record.past());
        assert_eq!((next.errors(), next.restarts()), (record.errors(), record.restarts()));
        assert_eq!(next.last_errors(9), record.last_errors(9));
        next
    }

    #[test]
    fn what_was_stopped_isolated_or_finished_is_so_in_the_next_life() {
        let mut record = running();
        record.handle_report(1, 7);
        assert_eq!(next(&record).state(), TaskState::Waiting);
        record.handle_order(TaskOrder::Stop);
        assert_eq!(next(&record).state(), TaskState::Killed);
        record.handle_order(TaskOrder::Isolate);
        assert_eq!(next(&record).state(), TaskState::Isolated);
        let mut record = running();
        record.handle_ended(1, None);
        assert_eq!(next(&record).state(), TaskState::Finished);
        let mut record = running();
        record.handle_not_started(1, "no such file".to_owned());
        assert_eq!(next(&record).state(), TaskState::Waiting, "it may be there by now");
    }

    #[test]
    fn what_is_held_with_its_node_runs_again_and_what_was_stopped_does_not() {
        let mut record = running();
        assert_eq!(record.handle_hold(), Due::Kill);
        assert_eq!(record.handle_ended(1, Some(FAILED)), Due::Nothing);
        assert_eq!((record.state(), record.errors()), (TaskState::Killed, 0));
        assert_eq!(next(&record).state(), TaskState::Waiting);
        assert_eq!(record.handle_release(), Due::Start);
        assert_eq!(record.handle_release(), Due::Nothing);
        record.handle_started(2);
        record.handle_hold();
        assert_eq!(record.handle_order(TaskOrder::Stop), (Due::Kill, TaskEffect::Done));
        assert_eq!((record.handle_hold(), record.handle_release()), (Due::Nothing, Due::Nothing));
        assert_eq!(next(&record).state(), TaskState::Killed);
    }

    #[test]
    fn an_order_is_obeyed_whatever_the_state() {
        let mut record = running();
        let done = |due| (due, TaskEffect::Done);
        let already = (Due::Nothing, TaskEffect::Already);
        assert_eq!(record.handle_order(TaskOrder::Start), already);
        assert_eq!(record.handle_order(TaskOrder::Restart), done(Due::Kill));
        assert_eq!(record.handle_ended(1, Some(FAILED)), Due::Start);
        record.handle_started(2);
        assert_eq!(record.handle_order(TaskOrder::Isolate), done(Due::Kill));
        assert_eq!(record.handle_order(TaskOrder::Isolate), already);
        assert_eq!(record.handle_ended(3, Some(FAILED)), Due::Nothing);
        assert_eq!((record.state(), record.errors()), (TaskState::Isolated, 0));
        assert!(!record.take_verdict(), "who gave the order knows");
        assert_eq!(record.handle_order(TaskOrder::Restart), done(Due::Start));
        record.handle_started(4);
        assert_eq!(record.handle_order(TaskOrder::Stop), done(Due::Kill));
        assert_eq!(record.handle_order(TaskOrder::Stop), already);
        assert_eq!(record.handle_time(u64::MAX), Due::Nothing);
        assert_eq!(
            (record.handle_ended(5, None), record.state()),
            (Due::Nothing, TaskState::Killed)
        );
    }
}

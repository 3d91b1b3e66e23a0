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
//! A report changes no state: an error that a task can still tell of is its own to survive.

use std::collections::VecDeque;

use crate::cluster::Task;
use crate::node::control::{TaskError, TaskFault, TaskOrder, TaskState};
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
    started_at_ns: u64,
    /// Errors that were noted since they were last taken.
    fresh: Vec<(u64, u16)>,
    /// Errors that the database never gets.
    unrecorded: u64,
    /// The state that the component was told of.
    told: Option<TaskState>,
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
            started_at_ns: 0,
            fresh: Vec::new(),
            unrecorded: 0,
            told: None,
        }
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
    pub(super) fn handle_report(&mut self, now_ns: u64, error: u16) {
        self.note(now_ns, TaskFault::Reported { error });
    }

    /// When it will have been silent for too long.
    pub(super) const fn next_deadline_ns(&self) -> Option<u64> {
        self.silent_at_ns
    }

    pub(super) fn handle_time(&mut self, now_ns: u64) -> Due {
        if self.silent_at_ns.is_none_or(|at| now_ns < at) {
            return Due::Nothing;
        }
        self.silent_at_ns = None;
        self.note(now_ns, TaskFault::Silent);
        self.state = TaskState::Faulty;
        Due::Kill
    }

    /// People, or a recovery script, have decided.
    pub(super) fn handle_order(&mut self, order: TaskOrder) -> Due {
        self.silent_at_ns = None;
        self.after = After::Stay;
        let runs = matches!(self.state, TaskState::Running | TaskState::Faulty);
        match order {
            TaskOrder::Start if self.state == TaskState::Running => Due::Nothing,
            TaskOrder::Start | TaskOrder::Restart if runs => {
                self.after = After::Start;
                Due::Kill
            }
            TaskOrder::Start | TaskOrder::Restart => Due::Start,
            TaskOrder::Stop => self.end_as(TaskState::Killed),
            TaskOrder::Isolate => self.end_as(TaskState::Isolated),
        }
    }

    /// Whether the process that runs has had an error.
    pub(super) fn has_erred_since_start(&self) -> bool {
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
        Due::Kill
    }

    fn start_again(&mut self, now_ns: u64) -> Due {
        if self.intensity.allows(now_ns) {
            self.restarts += 1;
            self.state = TaskState::Waiting;
            return Due::Start;
        }
        self.state = TaskState::Isolated;
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
        assert_eq!(record.handle_ended(3, Some(FAILED)), Due::Nothing);
        assert_eq!(record.state(), TaskState::Isolated);
        assert_eq!((record.errors(), record.restarts()), (2, 1));
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
        assert_eq!(record.handle_order(TaskOrder::Start), Due::Kill);
        assert_eq!(record.handle_ended(3, None), Due::Start);
    }

    #[test]
    fn a_report_is_counted_and_changes_no_state() {
        let mut record = running();
        for error in 0..20 {
            record.handle_report(1, error);
        }
        assert_eq!((record.state(), record.errors()), (TaskState::Running, 20));
        let last = record.last_errors(1);
        assert_eq!(last.len(), ERRORS_MAX);
        assert_eq!(last[ERRORS_MAX - 1].fault, TaskFault::Reported { error: 19 });
    }

    #[test]
    fn an_order_is_obeyed_whatever_the_state() {
        let mut record = running();
        assert_eq!(record.handle_order(TaskOrder::Start), Due::Nothing);
        assert_eq!(record.handle_order(TaskOrder::Restart), Due::Kill);
        assert_eq!(record.handle_ended(1, Some(FAILED)), Due::Start);
        record.handle_started(2);
        assert_eq!(record.handle_order(TaskOrder::Isolate), Due::Kill);
        assert_eq!(record.handle_ended(3, Some(FAILED)), Due::Nothing);
        assert_eq!((record.state(), record.errors()), (TaskState::Isolated, 0));
        assert_eq!(record.handle_order(TaskOrder::Restart), Due::Start);
        record.handle_started(4);
        assert_eq!(record.handle_order(TaskOrder::Stop), Due::Kill);
        assert_eq!(record.handle_time(u64::MAX), Due::Nothing);
        assert_eq!(
            (record.handle_ended(5, None), record.state()),
            (Due::Nothing, TaskState::Killed)
        );
    }
}

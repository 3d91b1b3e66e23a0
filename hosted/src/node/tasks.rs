//! The tasks of a node: the user's own programs under guard.
//!
//! ```text
//!   cluster file ─▶ Tasks ── Record    what is known: state, errors, what they require
//!                        ├── Guard     the process: a group of its own, killed as a whole
//!                        ├── Left      errors that a recovery script answers
//!                        ├── Guests   tasks that processes outside the node run
//!                        ├── Owed      errors that the database has not got yet
//!                        ├── Notices  what a script has for them
//!                        ├── Note      their standing, for the node's next boot
//!                        └── Traces    their processes, for the program that must end them
//! ```
//!
//! The supervisor starts them, from the thread that runs as long as the node, so that the kernel
//! ends them with it. What a task itself starts is in its process group, which is killed with it.
//! The traces lead to processes that have left the group, and to those that remain when the
//! supervisor is killed. A task finds its name and the way to report in its environment:
//! [`crate::task`].

mod guard;
mod guests;
mod left;
mod note;
mod notices;
mod owed;
mod record;
mod traces;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use guard::TaskGuard;
pub(super) use guard::not_started;
pub use guard::{VARIABLE_CLUSTER, VARIABLE_CONTROL, VARIABLE_NODE, VARIABLE_TASK};
use guests::Guests;
pub(super) use left::Declared;
pub(super) use note::Note;
use note::TaskStanding;
use notices::Notices;
use owed::OwedErrors;
use record::{Due, Record};
use traces::Traces;

use super::chronicle::{TaskNote, TaskStep};
use super::control::{
    GuestOrder, GuestReport, Refused, ReportEffect, TaskEffect, TaskFault, TaskOrder, TaskState,
    TaskStatus,
};
use super::link::{GuardAction, ScriptOrder, TaskChange};
use crate::cluster::{Cluster, Restart, Task, TaskName};
use crate::process::{ProcessError, StillRuns};

/// How long tasks wait for what peers know of them. A cluster that comes together needs less, and
/// where it does not, running tasks are better than tasks that wait forever.
const LEARN_NS_MAX: u64 = 5_000_000_000;

/// How long the processes of one task may take to end once they are killed, while the node waits.
const TASK_PATIENCE: Duration = Duration::from_millis(500);

/// Identifies one process of one task: the task's index, and the number of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskRun {
    index: usize,
    number: u64,
}

/// Reports that a process has ended.
pub(super) type Sink = Arc<dyn Fn(TaskRun) + Send + Sync>;

/// What a task finds in its environment.
#[derive(Clone, Debug)]
pub(super) struct TaskEnvironment {
    pub(super) cluster: String,
    pub(super) rank: u16,
    /// The node's control socket.
    pub(super) control: PathBuf,
}

/// The paths of the notes for the node's next boot.
#[derive(Clone, Debug)]
pub(super) struct Notes {
    /// The standing of the tasks.
    pub(super) tasks: PathBuf,
    /// Their processes.
    pub(super) remains: PathBuf,
}

/// One task: its definition, what is known of it, and its process.
struct TaskEntry {
    task: Task,
    record: Record,
    guard: Option<TaskGuard>,
    notices: Notices,
    /// Processes started so far.
    runs: u64,
}

impl TaskEntry {
    fn note(&self, change: TaskStep) -> TaskNote {
        TaskNote { task: self.task.name.to_string(), change }
    }
}

/// The tasks of one node.
pub(super) struct Tasks {
    surroundings: TaskEnvironment,
    guarded: Vec<TaskEntry>,
    guests: Guests,
    owed: OwedErrors,
    sink: Sink,
    traces: Traces,
    /// Why none may be started: a process that an earlier boot has left does not end.
    obstacle: Option<StillRuns>,
    /// Of each N-version task, the last round that its versions here were judged in.
    rounds: BTreeMap<u8, u32>,
    note_path: PathBuf,
    /// Whether the tasks' earlier standing is known, and no isolation of the node keeps them from
    /// running.
    is_known: bool,
    /// Until when to wait for what peers know; none when there is no need to wait.
    learn_until_ns: Option<u64>,
    /// Whether something has changed since the note was written.
    is_unnoted: bool,
    /// What has become of them since the last [`Self::take_steps`].
    steps: Vec<TaskNote>,
}

impl Tasks {
    /// The tasks that `cluster` gives to the node of `surroundings`, as an earlier boot of it has
    /// noted them; none runs yet, and what that boot has left is ended. `declared` is what a
    /// recovery script says about each.
    pub(super) fn new(
        cluster: &Cluster,
        surroundings: TaskEnvironment,
        notes: Notes,
        declared: impl Fn(u8) -> Option<Declared>,
        sink: Sink,
    ) -> Result<Self, ProcessError> {
        let (traces, ended) = Traces::begin(notes.remains, &surroundings.control)?;
        let mut note = Note::load(&notes.tasks).unwrap_or_else(|error| {
            tracing::error!(%error, "how the tasks stood is asked of the database");
            None
        });
        let was_held = note.as_ref().is_some_and(|note| note.held);
        let own = cluster.tasks.iter().filter(|task| task.runs_on(surroundings.rank)).zip(0..);
        let waiting = |(task, index): (&Task, u8)| {
            let mut record = Record::new(task, cluster.recovery.answer_ms);
            declared(index).into_iter().for_each(|declared| record.leave(declared));
            let past = note.as_mut().and_then(|note| note.tasks.remove(task.name.as_str()));
            match past {
                Some(past) => record.go_on(past),
                None => record.ask(),
            }
            let notices = Notices::default();
            TaskEntry { task: task.clone(), record, guard: None, notices, runs: 0 }
        };
        let guarded: Vec<TaskEntry> = own.map(waiting).collect();
        let is_known = !was_held && guarded.iter().all(|guarded| !guarded.record.is_asked());
        Ok(Self {
            guarded,
            guests: Guests::default(),
            owed: OwedErrors::default(),
            surroundings,
            sink,
            traces,
            obstacle: ended.err(),
            rounds: BTreeMap::new(),
            note_path: notes.tasks,
            is_known,
            learn_until_ns: None,
            is_unnoted: false,
            steps: Vec::new(),
        })
    }

    /// Starts all that should run, once it is known which.
    pub(super) fn begin(&mut self, now_ns: u64) {
        if self.is_known {
            self.start_waiting(now_ns);
        } else if !self.guarded.is_empty() {
            self.learn_until_ns = Some(now_ns.saturating_add(LEARN_NS_MAX));
        }
    }

    /// Whether the tasks wait for what peers know of them.
    pub(super) const fn is_learning(&self) -> bool {
        self.learn_until_ns.is_some()
    }

    /// Handles what peers know of the tasks: the status of each, and how many errors it has had.
    pub(super) fn handle_past(&mut self, past: &[(u8, u16, u16)], now_ns: u64) {
        self.learn_until_ns = None;
        for (guarded, (status, errors, answered)) in self.guarded.iter_mut().zip(past) {
            guarded.record.learn(TaskStanding::of_status(*status), *errors, *answered);
        }
        self.start_waiting(now_ns);
    }

    fn start_waiting(&mut self, now_ns: u64) {
        self.is_unnoted = true;
        for index in 0..self.guarded.len() {
            let record = &mut self.guarded[index].record;
            record.settle();
            match self.obstacle {
                _ if !record.is_to_begin() => {}
                Some(obstacle) => record.handle_not_started(now_ns, obstacle.to_string()),
                None => self.act(index, Due::Start, now_ns),
            }
        }
    }

    /// Notes their standing, if anything has changed.
    pub(super) fn keep_note(&mut self) {
        if !std::mem::take(&mut self.is_unnoted) || self.guarded.is_empty() {
            return;
        }
        // What is not known yet is not noted as if it were.
        let known = self.guarded.iter().filter(|guarded| !guarded.record.is_asked());
        let past = |it: &TaskEntry| (it.task.name.to_string(), it.record.past());
        let held = self.guarded.iter().any(|guarded| guarded.record.is_held());
        let note = Note { held, tasks: known.map(past).collect() };
        if let Err(error) = note.save(&self.note_path) {
            tracing::error!(%error, "how the tasks stand cannot be noted");
        }
    }

    /// Kills all of them with all that they have started, and waits for the end of each.
    pub(super) fn end_all(&mut self) {
        let guards: Vec<TaskGuard> =
            self.guarded.iter_mut().filter_map(|guarded| guarded.guard.take()).collect();
        guards.iter().for_each(TaskGuard::ask_to_end);
        let had_any = self.guarded.iter().any(|guarded| guarded.runs > 0);
        guards.into_iter().for_each(|guard| drop(guard.end()));
        self.guests.await_endings();
        if had_any {
            self.traces.end();
        }
    }

    /// Handles the end of the process of `run`.
    pub(super) fn handle_ended(&mut self, run: TaskRun, now_ns: u64) {
        let Some(guarded) = self.guarded.get_mut(run.index) else { return };
        if guarded.runs != run.number {
            return;
        }
        let Some(guard) = guarded.guard.take() else { return };
        let fault = guard.end();
        self.traces.end_task(&guarded.task.name);
        tracing::info!(task = %guarded.task.name, ?fault, "task ended");
        let (due, step) = ended(&mut guarded.record, fault, now_ns);
        self.steps.extend(step.map(|change| guarded.note(change)));
        self.is_unnoted = true;
        self.act(run.index, due, now_ns);
    }

    /// Handles the time: tasks that have sent no beat for too long.
    pub(super) fn handle_time(&mut self, now_ns: u64) {
        if self.learn_until_ns.take_if(|at| now_ns >= *at).is_some() {
            tracing::warn!("no source knows how the tasks stood: they are started");
            self.start_waiting(now_ns);
        }
        for index in 0..self.guarded.len() {
            let guarded = &mut self.guarded[index];
            let due = guarded.record.handle_time(now_ns);
            if due == Due::Kill {
                self.steps.push(guarded.note(TaskStep::Hung));
            }
            self.act(index, due, now_ns);
        }
        self.guests.handle_time(now_ns);
    }

    /// The earliest deadline of a task.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        let records = self.guarded.iter().filter_map(|it| it.record.next_deadline_ns());
        records.chain(self.learn_until_ns).chain(self.guests.next_deadline_ns()).min()
    }

    /// Handles an error that a task, or a client on its behalf, reports.
    pub(super) fn handle_report(
        &mut self,
        name: &str,
        error: u16,
        now_ns: u64,
    ) -> Result<ReportEffect, Refused> {
        if let Some(effect) = self.guests.handle_error(name, error, now_ns) {
            return Ok(effect);
        }
        let index = self.find(name)?;
        let (due, effect) = self.guarded[index].record.handle_report(now_ns, error);
        tracing::warn!(task = name, error, ?effect, "task reports an error");
        self.is_unnoted = true;
        self.act(index, due, now_ns);
        Ok(effect)
    }

    /// Handles a task's report of progress.
    pub(super) fn handle_beat(&mut self, name: &str, now_ns: u64) -> Result<(), Refused> {
        let beaten = match self.guests.handle_beat(name, now_ns) {
            Some(beaten) => beaten,
            None => {
                let index = self.find(name)?;
                self.guarded[index].record.handle_beat(now_ns)
            }
        };
        beaten.map_err(|state| Refused::NotRunning { name: name.to_owned(), state })
    }

    /// Handles a task's report of its phase.
    pub(super) fn handle_phase(&mut self, name: &str, phase: u8) -> Result<(), Refused> {
        let index = self.find(name)?;
        let done = self.guarded[index].record.handle_phase(phase);
        done.map_err(|state| Refused::NotRunning { name: name.to_owned(), state })
    }

    /// Handles an operator's order about a task.
    pub(super) fn handle_order(
        &mut self,
        name: &str,
        order: TaskOrder,
        now_ns: u64,
    ) -> Result<TaskEffect, Refused> {
        if let Some(effect) = self.guests.handle_order(name, order, now_ns) {
            return Ok(effect);
        }
        let index = self.find(name)?;
        let (due, effect) = self.guarded[index].record.handle_order(order);
        tracing::info!(task = name, ?order, ?effect, "task ordered");
        if (order, effect) == (TaskOrder::Isolate, TaskEffect::Done) {
            self.steps.push(self.guarded[index].note(TaskStep::Isolated));
        }
        self.act(index, due, now_ns);
        match (order, self.guarded[index].record.not_started()) {
            (TaskOrder::Start | TaskOrder::Restart, Some(why)) => {
                Err(Refused::NotStarted { name: name.to_owned(), why: why.to_owned() })
            }
            _ => Ok(effect),
        }
    }

    /// Another recovery script is in force; `declared` is what it says about each task.
    pub(super) fn redeclare(&mut self, declared: impl Fn(u8) -> Option<Declared>, now_ns: u64) {
        for index in 0..self.guarded.len() {
            let TaskEntry { task, record, .. } = &mut self.guarded[index];
            let declared = u8::try_from(index).ok().and_then(&declared);
            let due = record.redeclare(declared, task.beat_ms, now_ns);
            self.act(index, due, now_ns);
        }
        self.is_unnoted = true;
    }

    /// The number of tasks.
    pub(super) fn count(&self) -> u8 {
        u8::try_from(self.guarded.len()).unwrap_or(u8::MAX)
    }

    /// Starts every running task again, for the next boot of the node.
    pub(super) fn restart_all(&mut self, now_ns: u64) {
        for index in 0..self.guarded.len() {
            if self.guarded[index].guard.is_some() {
                let (due, _) = self.guarded[index].record.handle_order(TaskOrder::Restart);
                self.act(index, due, now_ns);
            }
        }
        self.guests.restart_all(now_ns);
    }

    /// Ends every task until [`Self::release_all`].
    pub(super) fn hold_all(&mut self, now_ns: u64) {
        for index in 0..self.guarded.len() {
            let due = self.guarded[index].record.handle_hold();
            self.act(index, due, now_ns);
        }
        self.guests.hold_all(now_ns);
    }

    /// Starts the tasks that were held, unless they were ordered otherwise since.
    pub(super) fn release_all(&mut self, now_ns: u64) {
        for index in 0..self.guarded.len() {
            let due = self.guarded[index].record.handle_release();
            self.act(index, due, now_ns);
        }
        self.guests.release_all(now_ns);
    }

    /// Handles the manager's decision about task number `index`, which may be the `order` of a
    /// recovery script.
    pub(super) fn handle_guard(
        &mut self,
        index: u8,
        action: GuardAction,
        order: Option<ScriptOrder>,
        now_ns: u64,
    ) {
        let Some(guarded) = self.guarded.get_mut(usize::from(index)) else { return };
        // What an order has answered is known to the next boot, too.
        self.is_unnoted |= order.is_some();
        let due = match (order, action) {
            (Some(order), GuardAction::Send | GuardAction::Warn) => {
                if guarded.record.handle_notice(order.number) {
                    guarded.notices.push(notices::notice_of(action, &order));
                }
                Due::Nothing
            }
            (Some(order), _) => {
                let (due, judgement) = guarded.record.handle_script_order(now_ns, action, order);
                tracing::info!(task = %guarded.task.name, ?order, ?judgement, "judged");
                due
            }
            (None, GuardAction::Restart) => guarded.record.handle_restart(),
            (None, GuardAction::Isolate) => guarded.record.handle_isolate(),
            // Only a script gives the others.
            (None, _) => Due::Nothing,
        };
        tracing::info!(task = %guarded.task.name, ?action, ?due, "ordered by the manager");
        self.act(usize::from(index), due, now_ns);
    }

    /// The tasks that were isolated since the last call, other than by order, and why.
    pub(super) fn take_isolated(&mut self, now_ns: u64) -> Vec<(TaskName, Option<TaskFault>)> {
        let isolated = self.guarded.iter_mut().filter_map(|TaskEntry { task, record, .. }| {
            let is_isolated = record.take_verdict();
            let last = record.last_errors(now_ns).pop().map(|error| error.fault);
            is_isolated.then(|| (task.name.clone(), last))
        });
        isolated.chain(self.guests.take_isolated(now_ns)).collect()
    }

    /// What has become of them since the last call.
    pub(super) fn take_steps(&mut self) -> Vec<TaskNote> {
        let mut steps = std::mem::take(&mut self.steps);
        steps.extend(self.guests.take_steps());
        steps
    }

    /// Handles a report of a client about the task that it runs.
    pub(super) fn handle_guest(
        &mut self,
        (client, name): (u64, &str),
        report: GuestReport,
        now_ns: u64,
    ) -> Result<(), Refused> {
        let GuestReport::Begin { mark, restart_max, restart_within_s, beat_ms } = report else {
            return self.guests.handle_report(client, report, now_ns);
        };
        if self.guests.has(name) || self.find(name).is_ok() {
            return Err(Refused::TaskNameInUse { name: name.chars().take(64).collect() });
        }
        let restart = Restart { max: restart_max, within_s: restart_within_s };
        self.guests.begin((client, name), &mark, (restart, beat_ms), now_ns)
    }

    /// What a client must be sent about the task that it runs.
    pub(super) fn poll_guest(&mut self, client: u64) -> Option<GuestOrder> {
        self.guests.poll(client)
    }

    /// A client has left, and with it the task that it ran.
    pub(super) fn handle_left(&mut self, client: u64) {
        self.guests.handle_left(client);
    }

    /// The next component must be sent every state, and the errors that the one before has not
    /// answered.
    pub(super) fn forget_told(&mut self) {
        self.owed.forget_sent();
        for guarded in &mut self.guarded {
            guarded.record.forget_told();
            guarded.notices.forget_awaited();
        }
    }

    /// Errors of tasks, up to this one, are in the database.
    pub(super) fn handle_recorded(&mut self, number: u64) {
        self.owed.handle_recorded(number);
    }

    /// Queues the errors that were noted since for the database.
    pub(super) fn note_errors(&mut self) {
        for index in 0..self.guarded.len() {
            let task = u8::try_from(index).unwrap_or(u8::MAX);
            for error in self.guarded[index].record.take_errors() {
                let given_up = self.owed.push(task, error);
                if let Some(guarded) = given_up.and_then(|it| self.guarded.get_mut(usize::from(it)))
                {
                    tracing::warn!(task = %guarded.task.name, "the database never gets an error");
                    guarded.record.note_unrecorded();
                }
            }
        }
    }

    /// The changes that the component must be sent.
    pub(super) fn take_changes(&mut self) -> Vec<TaskChange> {
        let mut changes: Vec<TaskChange> = std::iter::from_fn(|| self.owed.next()).collect();
        let numbered = (0..).zip(&mut self.guarded);
        changes.extend(numbered.flat_map(|(task, guarded)| {
            let answered = guarded.record.take_answered(task);
            let (status, phase) =
                (guarded.record.take_status(task), guarded.record.take_phase(task));
            answered.into_iter().chain(status).chain(phase)
        }));
        changes
    }

    /// Every task, for people.
    pub(super) fn status(&self, now_ns: u64) -> Vec<TaskStatus> {
        let status = |guarded: &TaskEntry| TaskStatus {
            name: guarded.task.name.to_string(),
            state: guarded.record.state(),
            pid: guarded.guard.as_ref().map(TaskGuard::pid),
            restarts: guarded.record.restarts(),
            errors: guarded.record.errors(),
            unrecorded: guarded.record.unrecorded(),
            last_errors: guarded.record.last_errors(now_ns),
        };
        self.guarded.iter().map(status).chain(self.guests.status(now_ns)).collect()
    }

    fn find(&self, name: &str) -> Result<usize, Refused> {
        let found = self.guarded.iter().position(|guarded| guarded.task.name.as_str() == name);
        found.ok_or_else(|| Refused::NoTask {
            name: name.chars().take(64).collect(),
            tasks: self
                .guarded
                .iter()
                .map(|guarded| guarded.task.name.as_str())
                .chain(self.guests.names())
                .map(str::to_owned)
                .collect(),
        })
    }

    fn act(&mut self, index: usize, due: Due, now_ns: u64) {
        self.is_unnoted |= due != Due::Nothing;
        let guarded = &mut self.guarded[index];
        match (due, &guarded.guard) {
            (Due::Nothing, _) => {}
            (Due::Kill, Some(guard)) => guard.kill(),
            // There is no process to kill: it has ended already. What follows is at most a start.
            (Due::Kill, None) => {
                if guarded.record.handle_ended(now_ns, None) == Due::Start {
                    self.start(index, now_ns);
                }
            }
            // It was ordered to end; wait for that.
            (Due::Start, Some(guard)) => {
                guard.kill();
                guarded.record.await_end();
            }
            (Due::Start, None) => self.start(index, now_ns),
        }
    }

    fn start(&mut self, index: usize, now_ns: u64) {
        let guarded = &mut self.guarded[index];
        let run = TaskRun { index, number: guarded.runs + 1 };
        let environment = (&self.surroundings, self.traces.mark());
        match TaskGuard::start(&guarded.task, environment, run, &self.sink) {
            Ok(guard) => {
                tracing::info!(task = %guarded.task.name, "task started");
                let step = match run.number {
                    1 => TaskStep::Started,
                    _ => TaskStep::Restarted,
                };
                self.steps.push(guarded.note(step));
                guarded.runs = run.number;
                guarded.guard = Some(guard);
                guarded.record.handle_started(now_ns);
                self.traces.note(self.guarded.iter().filter_map(|it| it.guard.as_ref()));
            }
            Err(error) => {
                let why = not_started(&guarded.task.program, &error);
                tracing::error!(task = %guarded.task.name, why, "task cannot be started");
                let fault = TaskFault::NotStarted { why: why.clone() };
                self.steps.push(guarded.note(TaskStep::Failed { fault }));
                guarded.record.handle_not_started(now_ns, why);
            }
        }
    }
}

/// Handles the end of a task's process: the action that follows, and the change to report.
fn ended(record: &mut Record, fault: Option<TaskFault>, now_ns: u64) -> (Due, Option<TaskStep>) {
    let (state, errors) = (record.state(), record.errors());
    let due = record.handle_ended(now_ns, fault.clone());
    let step = match (state, fault) {
        (TaskState::Running, Some(fault)) if errors < record.errors() => {
            Some(TaskStep::Failed { fault })
        }
        (TaskState::Running, None) if due == Due::Nothing => Some(TaskStep::Finished),
        // Those were noted when they were decided.
        (TaskState::Faulty | TaskState::Isolated, _) => None,
        _ => Some(TaskStep::Stopped),
    };
    (due, step)
}

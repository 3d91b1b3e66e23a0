//! The tasks that processes outside the node run for it (`weft guard`).
//!
//! ```text
//!   weft guard ──Begin, Started, Ended──▶ Guest ── Record   what is known, as of any task
//!      │  ◀────Start, Kill, Over────────────┘
//!      └── PROGRAM
//! ```
//!
//! A guest belongs to its connection: when that ends, the task is lost, and what it has started is
//! ended. Guests are not in the database, whose tasks are those of the cluster file: their errors
//! stay at the node, which decides alone, and a later boot does not know them.

use std::thread::JoinHandle;

use super::record::{Due, Record};
use super::{TASK_PATIENCE, ended};
use crate::cluster::{Restart, Task, TaskName};
use crate::node::chronicle::{TaskNote, TaskStep};
use crate::node::control::{
    GuestOrder, GuestReport, Refused, ReportEffect, TaskEffect, TaskFault, TaskOrder, TaskState,
    TaskStatus,
};
use crate::process::{Remains, StillRuns, start_thread};

/// The most guests of a node.
const GUESTS_MAX: usize = 32;
/// The most characters that are kept of why a program was not started.
const WHY_LEN_MAX: usize = 256;

/// What is known of a guest's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuestProcess {
    None,
    /// Its start was ordered.
    Starting,
    Runs {
        pid: i32,
    },
}

/// A task that a client runs.
#[derive(Debug)]
struct RunningGuest {
    name: TaskName,
    client: u64,
    record: Record,
    remains: Remains,
    process: GuestProcess,
    /// What its client must be sent.
    order: Option<GuestOrder>,
    /// Processes started so far.
    runs: u64,
}

/// The guests of one node.
#[derive(Debug, Default)]
pub(super) struct Guests {
    guests: Vec<RunningGuest>,
    steps: Vec<TaskNote>,
    /// Each ends what one lost guest has left, for [`TASK_PATIENCE`] at most.
    endings: Vec<JoinHandle<()>>,
}

impl RunningGuest {
    fn note(&self, change: TaskStep) -> TaskNote {
        TaskNote { task: self.name.to_string(), change }
    }

    fn act(&mut self, due: Due, now_ns: u64) {
        self.order = match (due, self.process) {
            (Due::Nothing, _) => self.order,
            (Due::Kill, GuestProcess::Starting | GuestProcess::Runs { .. }) => {
                Some(GuestOrder::Kill)
            }
            // There is no process to kill. What follows is at most a start.
            (Due::Kill, GuestProcess::None) => {
                let due = self.record.handle_ended(now_ns, None);
                (due == Due::Start).then_some(GuestOrder::Start)
            }
            (Due::Start, GuestProcess::None) => Some(GuestOrder::Start),
            // The start that is under way serves for it.
            (Due::Start, GuestProcess::Starting) => None,
            (Due::Start, GuestProcess::Runs { .. }) => {
                self.record.await_end();
                Some(GuestOrder::Kill)
            }
        };
    }

    fn handle_started(&mut self, pid: i32, now_ns: u64) -> TaskStep {
        self.process = GuestProcess::Runs { pid };
        self.runs += 1;
        // If it was ordered to end meanwhile, its record says so already.
        if self.order != Some(GuestOrder::Kill) {
            self.record.handle_started(now_ns);
        }
        if self.runs == 1 { TaskStep::Started } else { TaskStep::Restarted }
    }

    fn handle_ended(&mut self, fault: Option<TaskFault>, now_ns: u64) -> Option<TaskStep> {
        (self.process, self.order) = (GuestProcess::None, None);
        if let Some(TaskFault::NotStarted { why }) = fault {
            let why: String = why.chars().take(WHY_LEN_MAX).collect();
            self.record.handle_not_started(now_ns, why.clone());
            return Some(TaskStep::Failed { fault: TaskFault::NotStarted { why } });
        }
        let (due, step) = ended(&mut self.record, fault, now_ns);
        self.act(due, now_ns);
        step
    }

    fn handle_stopped(&mut self, now_ns: u64) -> Option<TaskStep> {
        let is_new = self.record.state() != TaskState::Killed || self.record.is_held();
        (self.process, self.order) = (GuestProcess::None, None);
        let (due, _) = self.record.handle_order(TaskOrder::Stop);
        self.act(due, now_ns);
        is_new.then_some(TaskStep::Stopped)
    }

    fn state(&self) -> TaskState {
        match (self.record.state(), self.process) {
            (TaskState::Running, GuestProcess::None | GuestProcess::Starting) => TaskState::Waiting,
            (state, _) => state,
        }
    }

    /// Whether no process of it runs, and none is to be started.
    fn is_over(&self) -> bool {
        let is_idle = self.process == GuestProcess::None && self.order.is_none();
        let state = self.state();
        is_idle
            && !self.record.is_held()
            && !matches!(state, TaskState::Running | TaskState::Waiting)
    }

    fn status(&self, now_ns: u64) -> TaskStatus {
        TaskStatus {
            name: self.name.to_string(),
            state: self.state(),
            pid: match self.process {
                GuestProcess::Runs { pid } => Some(pid),
                GuestProcess::None | GuestProcess::Starting => None,
            },
            restarts: self.record.restarts(),
            errors: self.record.errors(),
            unrecorded: self.record.unrecorded(),
            last_errors: self.record.last_errors(now_ns),
        }
    }
}

fn end_left(task: &TaskName, remains: &Remains) {
    if let Err(StillRuns { process }) = remains.end(TASK_PATIENCE) {
        tracing::error!(%task, process, "what a task has left does not end");
    }
}

impl Guests {
    /// Admits a guest, which is started at once. The name is free.
    pub(super) fn begin(
        &mut self,
        (client, name): (u64, &str),
        mark: &str,
        (restart, beat_ms): (Restart, Option<u64>),
        now_ns: u64,
    ) -> Result<(), Refused> {
        let malformed = |why: String| Refused::Malformed(why);
        if self.guests.iter().any(|guest| guest.client == client) {
            return Err(malformed("a connection guards one task".to_owned()));
        }
        if self.guests.len() == GUESTS_MAX {
            return Err(Refused::GuestsFull { max: GUESTS_MAX });
        }
        let name: TaskName = name.parse().map_err(|error| malformed(format!("{error}")))?;
        let task = Task { restart, beat_ms, ..Task::new(name.clone(), "guest".to_owned()) };
        task.check_alone().map_err(|error| malformed(error.to_string()))?;
        let no_mark = || malformed("the mark is none".to_owned());
        let remains = Remains::of_mark(mark).ok_or_else(no_mark)?;
        let (record, process) = (Record::new(&task, 0), GuestProcess::None);
        let mut guest =
            RunningGuest { name, client, record, remains, process, order: None, runs: 0 };
        guest.act(Due::Start, now_ns);
        self.guests.push(guest);
        Ok(())
    }

    /// Handles what the client of a guest reports.
    pub(super) fn handle_report(
        &mut self,
        client: u64,
        report: GuestReport,
        now_ns: u64,
    ) -> Result<(), Refused> {
        let guest = self.guests.iter_mut().find(|guest| guest.client == client);
        let Some(guest) = guest else {
            return match report {
                // It crossed the order that the task is over.
                GuestReport::Stopped => Ok(()),
                _ => Err(Refused::Malformed("no task is guarded".to_owned())),
            };
        };
        let step = match (report, guest.process) {
            (GuestReport::Started { pid }, GuestProcess::Starting) => {
                Some(guest.handle_started(pid, now_ns))
            }
            (GuestReport::Ended { fault }, GuestProcess::Starting | GuestProcess::Runs { .. }) => {
                guest.handle_ended(fault, now_ns)
            }
            (GuestReport::Stopped, _) => guest.handle_stopped(now_ns),
            (GuestReport::Waiting, _) => None,
            (report, process) => {
                let why = format!("{report:?} does not follow {process:?}");
                return Err(Refused::Malformed(why));
            }
        };
        self.steps.extend(step.map(|change| guest.note(change)));
        Ok(())
    }

    /// What the client of a guest must be sent. A guest that is over is forgotten with that.
    pub(super) fn poll(&mut self, client: u64) -> Option<GuestOrder> {
        let Some(index) = self.guests.iter().position(|guest| guest.client == client) else {
            return Some(GuestOrder::Over { state: TaskState::Killed });
        };
        let guest = &mut self.guests[index];
        let order = guest.order.take();
        // From here on the client may have started it.
        if order == Some(GuestOrder::Start) {
            guest.process = GuestProcess::Starting;
        }
        if order.is_none() && guest.is_over() {
            let state = self.guests.remove(index).record.state();
            return Some(GuestOrder::Over { state });
        }
        order
    }

    /// A client has left: its task is lost, and what that has started is ended.
    pub(super) fn handle_left(&mut self, client: u64) {
        let Some(index) = self.guests.iter().position(|guest| guest.client == client) else {
            return;
        };
        let guest = self.guests.remove(index);
        tracing::warn!(task = %guest.name, "the process that guarded the task is gone");
        self.steps.push(guest.note(TaskStep::Lost));
        self.endings.retain(|ending| !ending.is_finished());
        let RunningGuest { name, remains, .. } = guest;
        let (task, marked) = (name.clone(), remains.clone());
        // Peers and clients are served meanwhile: processes may take long to end.
        let ending = (self.endings.len() < GUESTS_MAX)
            .then(|| start_thread("weft-remains", move || end_left(&task, &marked)));
        match ending {
            Some(Ok(ending)) => self.endings.push(ending),
            // Better late than never: the system has no thread, or too many leave at once.
            Some(Err(_)) | None => end_left(&name, &remains),
        }
    }

    /// Waits until what lost guests have left has ended.
    pub(super) fn await_endings(&mut self) {
        for ending in self.endings.drain(..) {
            // A panic was reported by its thread.
            let _ = ending.join();
        }
    }

    /// Handles the time: beats that are overdue, and pauses that are over.
    pub(super) fn handle_time(&mut self, now_ns: u64) {
        for guest in &mut self.guests {
            // They are not the database's.
            guest.record.take_errors();
            let due = guest.record.handle_time(now_ns);
            if due == Due::Kill {
                self.steps.push(guest.note(TaskStep::Hung));
            }
            guest.act(due, now_ns);
        }
    }

    /// The earliest deadline of a guest.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.guests.iter().filter_map(|guest| guest.record.next_deadline_ns()).min()
    }

    /// Whether there is a guest of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// The names of all guests.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.guests.iter().map(|guest| guest.name.as_str())
    }

    fn find(&mut self, name: &str) -> Option<&mut RunningGuest> {
        self.guests.iter_mut().find(|guest| guest.name.as_str() == name)
    }

    /// As [`super::Tasks::handle_report`], if the task is a guest. The node has it restarted: the
    /// manager does not know it.
    pub(super) fn handle_error(
        &mut self,
        name: &str,
        error: u16,
        now_ns: u64,
    ) -> Option<ReportEffect> {
        let guest = self.find(name)?;
        let (due, effect) = guest.record.handle_report(now_ns, error);
        // The manager restarts tasks of the database, and this is none.
        let due = match effect {
            ReportEffect::Restart { .. } => guest.record.handle_restart(),
            ReportEffect::Isolated | ReportEffect::Noted | ReportEffect::ToScript => due,
        };
        guest.act(due, now_ns);
        Some(effect)
    }

    /// As [`super::Tasks::handle_beat`], if the task is a guest.
    pub(super) fn handle_beat(&mut self, name: &str, now_ns: u64) -> Option<Result<(), TaskState>> {
        Some(self.find(name)?.record.handle_beat(now_ns))
    }

    /// As [`super::Tasks::handle_order`], if the task is a guest.
    pub(super) fn handle_order(
        &mut self,
        name: &str,
        order: TaskOrder,
        now_ns: u64,
    ) -> Option<TaskEffect> {
        let guest = self.find(name)?;
        let (due, effect) = guest.record.handle_order(order);
        guest.act(due, now_ns);
        if (order, effect) == (TaskOrder::Isolate, TaskEffect::Done) {
            let note = guest.note(TaskStep::Isolated);
            self.steps.push(note);
        }
        Some(effect)
    }

    /// As [`super::Tasks::restart_all`].
    pub(super) fn restart_all(&mut self, now_ns: u64) {
        let running =
            |guest: &&mut RunningGuest| matches!(guest.process, GuestProcess::Runs { .. });
        for guest in self.guests.iter_mut().filter(running) {
            let (due, _) = guest.record.handle_order(TaskOrder::Restart);
            guest.act(due, now_ns);
        }
    }

    /// As [`super::Tasks::hold_all`].
    pub(super) fn hold_all(&mut self, now_ns: u64) {
        for guest in &mut self.guests {
            let due = guest.record.handle_hold();
            guest.act(due, now_ns);
        }
    }

    /// As [`super::Tasks::release_all`].
    pub(super) fn release_all(&mut self, now_ns: u64) {
        for guest in &mut self.guests {
            let due = guest.record.handle_release();
            guest.act(due, now_ns);
        }
    }

    /// As [`super::Tasks::take_isolated`].
    pub(super) fn take_isolated(&mut self, now_ns: u64) -> Vec<(TaskName, Option<TaskFault>)> {
        let isolated =
            self.guests.iter_mut().filter_map(|RunningGuest { name, record, .. }| {
                let is_isolated = record.take_verdict();
                let last = record.last_errors(now_ns).pop().map(|error| error.fault);
                is_isolated.then(|| (name.clone(), last))
            });
        isolated.collect()
    }

    /// What has become of them since the last call.
    pub(super) fn take_steps(&mut self) -> Vec<TaskNote> {
        std::mem::take(&mut self.steps)
    }

    /// Every guest, for people.
    pub(super) fn status(&self, now_ns: u64) -> impl Iterator<Item = TaskStatus> {
        self.guests.iter().map(move |guest| guest.status(now_ns))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const MARK: &str = "00112233445566778899aabbccddeeff";

    /// One guest that is allowed one restart, of client 7, whose start was polled.
    fn starting() -> Guests {
        let mut guests = Guests::default();
        let limit = (Restart { max: 1, within_s: 10 }, Some(100));
        guests.begin((7, "camera"), MARK, limit, 0).unwrap();
        assert_eq!(guests.poll(7), Some(GuestOrder::Start));
        assert_eq!(guests.poll(7), None);
        guests
    }

    fn running() -> Guests {
        let mut guests = starting();
        guests.handle_report(7, GuestReport::Started { pid: 9 }, 0).unwrap();
        guests
    }

    fn changes(guests: &mut Guests) -> Vec<TaskStep> {
        guests.take_steps().into_iter().map(|note| note.change).collect()
    }

    #[test]
    fn m15_an_order_to_stop_that_crosses_the_start_is_sent_once_the_program_runs() {
        let mut guests = starting();
        assert_eq!(guests.handle_order("camera", TaskOrder::Stop, 1), Some(TaskEffect::Done));
        guests.handle_report(7, GuestReport::Started { pid: 9 }, 2).unwrap();
        assert_eq!(guests.poll(7), Some(GuestOrder::Kill));
        let fault = Some(TaskFault::Signalled { signal: 9 });
        guests.handle_report(7, GuestReport::Ended { fault }, 3).unwrap();
        assert_eq!(guests.poll(7), Some(GuestOrder::Over { state: TaskState::Killed }));
        assert_eq!(changes(&mut guests), [TaskStep::Started, TaskStep::Stopped]);
    }

    #[test]
    fn m15_a_node_does_not_wait_for_what_a_lost_guest_has_left() {
        let mut guests = running();
        let sleep = Command::new("sleep").arg("600").env(Remains::VARIABLE, MARK).spawn();
        let mut child = sleep.unwrap();
        guests.handle_left(7);
        assert_eq!(guests.endings.len(), 1, "another thread ends it");
        assert_eq!(changes(&mut guests), [TaskStep::Started, TaskStep::Lost]);
        guests.await_endings();
        assert!(!child.wait().unwrap().success(), "killed");
    }

    #[test]
    fn m15_a_report_that_crosses_the_last_order_is_answered() {
        let mut guests = running();
        guests.handle_report(7, GuestReport::Ended { fault: None }, 1).unwrap();
        assert_eq!(guests.poll(7), Some(GuestOrder::Over { state: TaskState::Finished }));
        guests.handle_report(7, GuestReport::Stopped, 2).unwrap();
        assert_eq!(guests.poll(7), Some(GuestOrder::Over { state: TaskState::Killed }));
        guests.handle_left(7);
        assert_eq!(changes(&mut guests), [TaskStep::Started, TaskStep::Finished]);
    }

    #[test]
    fn m15_a_guest_that_is_held_waits_and_starts_with_its_node() {
        let mut guests = running();
        guests.hold_all(1);
        assert_eq!(guests.poll(7), Some(GuestOrder::Kill));
        let fault = Some(TaskFault::Signalled { signal: 9 });
        guests.handle_report(7, GuestReport::Ended { fault }, 2).unwrap();
        assert_eq!(guests.poll(7), None);
        guests.release_all(3);
        assert_eq!(guests.poll(7), Some(GuestOrder::Start));
    }

    #[test]
    fn m15_a_guest_without_beats_is_hung_and_fails_for_good_when_it_is_so_again() {
        let mut guests = running();
        assert_eq!(guests.next_deadline_ns(), Some(100_000_000));
        guests.handle_time(100_000_000);
        assert_eq!(guests.poll(7), Some(GuestOrder::Kill));
        let fault = Some(TaskFault::Signalled { signal: 9 });
        guests.handle_report(7, GuestReport::Ended { fault: fault.clone() }, 100_000_001).unwrap();
        assert_eq!(guests.poll(7), Some(GuestOrder::Start));
        guests.handle_report(7, GuestReport::Started { pid: 10 }, 100_000_002).unwrap();
        guests.handle_time(300_000_000);
        assert_eq!(guests.poll(7), Some(GuestOrder::Kill));
        guests.handle_report(7, GuestReport::Ended { fault }, 300_000_001).unwrap();
        assert_eq!(guests.take_isolated(300_000_001).len(), 1);
        assert_eq!(guests.poll(7), Some(GuestOrder::Over { state: TaskState::Isolated }));
        let expected = [TaskStep::Started, TaskStep::Hung, TaskStep::Restarted, TaskStep::Hung];
        assert_eq!(changes(&mut guests), expected);
    }

    #[test]
    fn m15_what_makes_no_sense_of_a_client_is_refused() {
        let limit = || (Restart { max: 1, within_s: 10 }, None);
        let mut guests = starting();
        let (refused, ended) = (|it| matches!(it, Err(Refused::Malformed(_))), None);
        assert!(refused(guests.begin((7, "other"), MARK, limit(), 0)));
        for (name, mark) in [("Camera", MARK), ("other", "no mark"), ("other", &MARK[1..])] {
            assert!(refused(guests.begin((8, name), mark, limit(), 0)), "{name} {mark}");
        }
        assert!(refused(guests.handle_report(8, GuestReport::Waiting, 0)));
        guests.handle_report(7, GuestReport::Ended { fault: ended }, 0).unwrap();
        assert!(refused(guests.handle_report(7, GuestReport::Started { pid: 9 }, 0)));
        let more = |at: usize| (100 + at as u64, format!("g{at}"));
        for (client, name) in (1..GUESTS_MAX).map(more) {
            guests.begin((client, &name), MARK, limit(), 0).unwrap();
        }
        let full = guests.begin((8, "other"), MARK, limit(), 0);
        assert_eq!(full, Err(Refused::GuestsFull { max: GUESTS_MAX }));
    }
}

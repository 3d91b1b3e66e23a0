//! The supervisor's side of its tasks: how their ends reach it, and the requests of clients about
//! them.

use std::sync::Arc;

use weft_core::recovery::Program;
use weft_core::time::Duration;

use super::Supervisor;
use super::event::{SupervisorEvent, SupervisorQueues};
use crate::clock::now_ns;
use crate::cluster::{Cluster, Task};
use crate::node::NodeError;
use crate::node::chronicle::{TaskNote, TaskStep, What};
use crate::node::control::{GuestOrder, GuestReport, Outcome, Refused, TaskOrder, Want};
use crate::node::link::Ticket;
use crate::node::tasks::{Declared, Notes, TaskEnvironment, Tasks};
use crate::runtime_dir::ClusterDir;

/// The tasks of node `rank`; their ends become events.
pub(super) fn tasks(
    cluster: &Cluster,
    dir: &ClusterDir,
    rank: u16,
    events: &SupervisorQueues,
) -> Result<Tasks, NodeError> {
    let control = dir.node_socket(usize::from(rank))?;
    let surroundings = TaskEnvironment { cluster: cluster.name.to_string(), rank, control };
    let events = events.clone();
    let sink = Arc::new(move |run| events.bring(SupervisorEvent::TaskEnded(run)));
    let (tasks, remains) = (dir.tasks_file(usize::from(rank)), dir.remains_file(usize::from(rank)));
    let script = script(cluster)?;
    let declared = |index| declared(cluster, script.as_ref()?, rank, index);
    Ok(Tasks::new(cluster, surroundings, Notes { tasks, remains }, declared, sink)?)
}

/// The recovery script of `cluster`, if it has one.
pub(super) fn script(cluster: &Cluster) -> Result<Option<Program<'_>>, NodeError> {
    let program = cluster.recovery.program(Some(cluster.nodes)).map_err(NodeError::Image)?;
    match &cluster.recovery.script {
        Some(script) if program.is_none() => {
            Err(NodeError::NotTranslated { script: script.clone() })
        }
        _ => Ok(program),
    }
}

/// What the script says about task number `index` of node `rank`, if it declares it.
pub(super) fn declared(
    cluster: &Cluster,
    script: &Program<'_>,
    rank: u16,
    index: u8,
) -> Option<Declared> {
    let is_it = |task: &u8| {
        script.place_of(*task).is_some_and(|(node, at)| (u16::from(node), at) == (rank, index))
    };
    let number = script.tasks().iter().find(is_it)?;
    let watchdog = script.watchdogs().find(|watchdog| watchdog.task == number);
    Some(Declared {
        answer: weft_core::recovery::Declared {
            fallback: script.fallback(),
            answer: Duration(cluster.recovery.answer_ms.saturating_mul(1_000_000)),
        },
        beat_ns: watchdog.map(|watchdog| watchdog.every.0),
    })
}

impl Supervisor {
    /// Handles a client's request about a task.
    pub(super) fn handle_task_request(&mut self, what: &Want) -> Outcome {
        let now_ns = now_ns();
        let done = match what {
            // It ends with its node, and starts with it.
            Want::Task { order: TaskOrder::Start | TaskOrder::Restart, .. }
                if self.supervision.is_isolated() =>
            {
                Err(Refused::Isolated)
            }
            Want::Report { task, error } => {
                self.tasks.handle_report(task, *error, now_ns).map(Outcome::Reported)
            }
            Want::Beat { task } => self.tasks.handle_beat(task, now_ns).map(|()| Outcome::Done),
            Want::Phase { task, phase } => {
                self.tasks.handle_phase(task, *phase).map(|()| Outcome::Done)
            }
            Want::Notices { task, seen } => {
                self.tasks.handle_notices(task, *seen).map(Outcome::Notices)
            }
            Want::Task { task, order } => {
                self.tasks.handle_order(task, *order, now_ns).map(Outcome::Ordered)
            }
            _ => Err(Refused::Malformed("no request about a task".to_owned())),
        };
        // The answer is a promise that outlives this process: note it first.
        self.tasks.keep_note();
        done.unwrap_or_else(Outcome::Refused)
    }

    /// Handles a report of a client about a task that it runs; the answer is the next order.
    pub(super) fn handle_guest(
        &mut self,
        ticket: Ticket,
        name: &str,
        report: GuestReport,
        timeout_ms: u64,
    ) {
        let now_ns = now_ns();
        // Whichever node has that one: the launcher would take this one for it.
        let is_in_file = self.cluster.tasks.iter().any(|task| task.name.as_str() == name);
        let done = match report {
            GuestReport::Begin { .. } if self.supervision.is_isolated() => Err(Refused::Isolated),
            GuestReport::Begin { .. } if is_in_file => {
                Err(Refused::TaskNameInUse { name: name.to_owned() })
            }
            report => self.tasks.handle_guest((ticket.client, name), report, now_ns),
        };
        match done {
            Ok(()) => {
                let deadline_ns = now_ns.saturating_add(timeout_ms.saturating_mul(1_000_000));
                self.clients.begin_guest(ticket, deadline_ns);
            }
            Err(refused) => self.clients.finish(ticket, Outcome::Refused(refused)),
        }
    }

    /// Answers the clients that run tasks and that have an order, or have waited long enough.
    pub(super) fn answer_guests(&mut self, now_ns: u64) {
        for (ticket, deadline_ns) in self.clients.guests() {
            let order = self.tasks.poll_guest(ticket.client);
            let order = order.or_else(|| (now_ns >= deadline_ns).then_some(GuestOrder::Wait));
            if let Some(order) = order {
                self.clients.finish(ticket, Outcome::Guest(order));
            }
        }
    }

    /// Starts the tasks as the database knows them, where the node itself does not. The report of a
    /// component that has met no peer is not enough: peers may know more.
    pub(super) fn learn_past(&mut self, now_ns: u64) {
        if self.tasks.is_learning()
            && !self.supervision.joined().is_empty()
            && let Some(past) = self.past.take()
        {
            self.tasks.handle_past(&past, now_ns);
        }
    }

    /// Notes what has become of the tasks. Those that were isolated, other than by order, are
    /// reported to the operator through the node's launcher, too.
    pub(super) fn tell_isolated(&mut self) {
        for step in self.tasks.take_steps() {
            self.note(self.rank, What::Task(step));
        }
        for (name, last) in self.tasks.take_isolated(now_ns()) {
            let why = last.map_or_else(String::new, |fault| format!(", {fault}"));
            let words = format!("task {name} is isolated: it failed too often{why}");
            self.note(self.rank, What::Noted { words });
            let (task, change) = (name.to_string(), TaskStep::Isolated);
            self.note(self.rank, What::Task(TaskNote { task, change }));
            let is_it = |task: &Task| task.name == name;
            if let Some(task) = self.cluster.tasks.iter().position(is_it) {
                self.reset.note_task_isolated(&name, task);
            }
        }
    }
}

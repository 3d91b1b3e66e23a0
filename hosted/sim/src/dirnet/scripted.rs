//! A recovery script in force: the DIR net of the core, and tasks that fail as a scenario says.
//!
//! ```text
//!   error, silence, kill ─▶ tasks, nodes ─▶ picture ─▶ Rint, at the manager ─▶ orders ─▶ tasks
//!                           DIR net ──────────┘                             └─▶ nodes, by it
//! ```
//!
//! Detection, removal, resets and the succession of managers are the core's own, and so are
//! verifier, interpreter and the judgement of orders. The lab itself carries facts of tasks to the
//! manager and orders back, in milliseconds and without loss: only the death of either end loses an
//! order. Time goes on in steps of a millisecond.

mod manager;
mod task;
#[cfg(test)]
mod tests;
mod votes;

use std::collections::BTreeMap;

use weft_core::dirnet::{Change, Explanation, Output, Part, TaskAction, Timing};
use weft_core::ids::Rank;
use weft_core::recovery::{Order, Placed, Program, Role, TaskState, Trace, Verb, VoteRefused};
use weft_core::time::Instant;
use weft_core::vote::VoteOutcome;

use super::net::{Net, Setting};
use super::strike::{MS, Strike};
use manager::{Acting, Parcel, Rough};
use task::GuardedTask;
use votes::{Arrived, LabVotes};

/// How long the cluster runs before the scenario begins, so that all are members.
const SETTLED_NS: u64 = 2_000 * MS;

/// What happened, with its time since the begin in µs.
pub type ScriptEvent = (u64, Happening);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A manager evaluated the script.
    Evaluated(Rank, Trace),
    /// It gave an order.
    Ordered(Placed),
    /// The order was obeyed. Of an order that changes a state: it has changed it.
    Obeyed(Placed),
    /// It was not: errors of the task were answered since the picture that the order rests on.
    Outdated(Placed),
    /// The state of a task is another one.
    Task(u8, TaskState),
    /// The DIR net reached a verdict.
    Verdict(Explanation),
    /// A node has learnt that a round of an N-version task is over.
    Voted(Rank, VoteOutcome),
    /// A task has got a notice of that.
    Notified(u8, VoteOutcome),
    /// The vote of a task was refused.
    NotVoted(u8, VoteRefused),
}

/// A cluster with a script, in virtual time.
pub struct ScriptLab<'p> {
    net: Net,
    program: &'p Program<'p>,
    tasks: BTreeMap<u8, GuardedTask>,
    acting: BTreeMap<u16, Box<Acting>>,
    parcels: Vec<Parcel>,
    votes: BTreeMap<u16, LabVotes>,
    /// How orders travel; none for ways that lose nothing.
    rough: Option<Rough>,
    boots: Vec<Option<u32>>,
    begin: u64,
    events: Vec<ScriptEvent>,
}

impl<'p> ScriptLab<'p> {
    /// The cluster of `program`, which was started and has settled; all tasks but `waiting` run.
    pub fn settled(program: &'p Program<'p>, timing: Timing, waiting: &[u8], seed: u64) -> Self {
        let nodes = u16::from(program.code().header().nodes);
        let part = |node| match program.role(node) {
            Some(Role::Manager) => Part::Manager,
            Some(Role::Agent) => Part::Agent,
            Some(Role::Backup) | None => Part::Backup,
        };
        let parts = (0..program.code().header().nodes).map(part).collect();
        let tasks = weft_core::dirnet::TASKS_MAX as u8;
        // Nothing is lost: a scenario says itself what fails.
        let setting = Setting { parts, tasks, ..Setting::fair(nodes, timing, 2 * MS) };
        let mut net = Net::set_up(setting, seed);
        net.boot_all();
        net.run_until(SETTLED_NS);
        net.said.log = Some(Vec::new());
        let begin = net.now;
        let tasks = program.tasks().iter().map(|number| {
            (number, GuardedTask::new(program, number, Instant(begin), !waiting.contains(&number)))
        });
        let boots = (0..nodes).map(|node| net.boot_of(node)).collect();
        let (acting, parcels, events) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (tasks, votes) = (tasks.collect(), BTreeMap::new());
        let mut lab =
            Self { net, program, tasks, acting, parcels, votes, rough: None, boots, begin, events };
        lab.follow_votes(&[]);
        lab
    }

    /// The time since the begin, in µs.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        (self.net.now - self.begin) / 1_000
    }

    /// Lets a millisecond pass.
    pub fn step(&mut self) {
        self.net.run_until(self.net.now + MS);
        self.follow_nodes();
        let arrived = self.follow_net();
        self.follow_votes(&arrived);
        let now = Instant(self.net.now);
        let mut changed = Vec::new();
        for (number, task) in &mut self.tasks {
            let is_changed = task.handle_time(now);
            changed.extend(is_changed.then_some((*number, task.state())));
        }
        for (task, state) in changed {
            self.tell(Happening::Task(task, state));
        }
        self.deliver();
        self.evaluate();
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Vec<ScriptEvent> {
        std::mem::take(&mut self.events)
    }

    /// A task reports an error.
    pub fn error(&mut self, task: u8, kind: u16) {
        let now = Instant(self.net.now);
        self.tasks.entry(task).and_modify(|task| task.handle_error(now, kind));
    }

    /// A task sends no more heartbeats until it is started again.
    pub fn silence(&mut self, task: u8) {
        self.tasks.entry(task).and_modify(GuardedTask::silence);
    }

    /// A task reports a phase.
    pub fn report_phase(&mut self, task: u8, phase: i32) {
        self.tasks.entry(task).and_modify(|task| task.set_phase(phase));
    }

    /// A task ends with success.
    pub fn finish(&mut self, task: u8) {
        let Some(found) = self.tasks.get_mut(&task) else { return };
        if found.finish() {
            self.tell(Happening::Task(task, TaskState::Finished));
        }
    }

    /// A node fails.
    pub fn kill(&mut self, node: u8) {
        self.net.strike(0, Strike::Crash(node.into()));
    }

    /// The component of a node ends.
    pub fn crash(&mut self, node: u8) {
        self.net.strike(0, Strike::End(node.into()));
    }

    fn tell(&mut self, what: Happening) {
        self.events.push((self.now_us(), what));
    }

    /// Tasks end with the boot of their node, and start with the next one if they ran.
    fn follow_nodes(&mut self) {
        let now = Instant(self.net.now);
        for node in 0..self.boots.len() as u16 {
            let boot = self.net.boot_of(node);
            let before = std::mem::replace(&mut self.boots[usize::from(node)], boot);
            // A node that was killed and has booted within the step has changed as well.
            if boot == before {
                continue;
            }
            let ended = before.is_some();
            let is_here = |task: &&mut GuardedTask| u16::from(task.node()) == node;
            for task in self.tasks.values_mut().filter(is_here) {
                if ended {
                    task.handle_node_down();
                }
                if boot.is_some() {
                    task.handle_node_up(now);
                }
            }
            // What was on its way to the boot that ended is lost.
            self.parcels.retain(|parcel| parcel.to != node);
        }
    }

    /// Verdicts of the DIR net, and what its built-in strategy does to tasks.
    fn follow_net(&mut self) -> Vec<Arrived> {
        let mut votes = Vec::new();
        for (_, at, output) in self.net.said.log.as_mut().map(std::mem::take).unwrap_or_default() {
            match output {
                Output::Verdict(why) => self.tell(Happening::Verdict(why)),
                Output::Task { task: index, action, .. } => {
                    let program = self.program;
                    let is_it = |task: &u8| {
                        program
                            .place_of(*task)
                            .is_some_and(|(node, place)| (u16::from(node), place) == (at.0, index))
                    };
                    let found = program.tasks().iter().find(is_it);
                    let verb = match action {
                        TaskAction::Restart => Verb::Restart,
                        TaskAction::Isolate => Verb::Isolate,
                        TaskAction::Start => Verb::Start,
                        TaskAction::Stop => Verb::Stop,
                        TaskAction::Release => Verb::Release,
                        TaskAction::Answer
                        | TaskAction::Clear
                        | TaskAction::Send
                        | TaskAction::Warn => continue,
                    };
                    if let Some(task) = found {
                        self.change_task(task, verb);
                    }
                }
                Output::Vote { from, incarnation, message } => {
                    votes.push((at, (from, incarnation), message));
                }
                _ => {}
            }
        }
        votes
    }

    /// Carries out `verb`; returns whether it has changed the task.
    fn change_task(&mut self, number: u8, verb: Verb) -> bool {
        let now = Instant(self.net.now);
        let Some(task) = self.tasks.get_mut(&number) else { return false };
        let before = task.state();
        let is_changed = task.carry_out(now, verb);
        let state = task.state();
        if state != before {
            self.tell(Happening::Task(number, state));
        }
        is_changed
    }

    /// The node of a task obeys an order about it.
    fn obey(&mut self, placed: Placed) {
        let is_done = match placed.order {
            Order::Task { task, verb, .. } => self.change_task(task, verb),
            Order::Clear { task, .. } => {
                self.tasks.entry(task).and_modify(GuardedTask::clear);
                true
            }
            Order::Builtin { task, .. } => self.leave_to_the_house(task),
            Order::Answer { .. } | Order::Send { .. } | Order::Notice { .. } => true,
            Order::Node { .. } | Order::Log { .. } | Order::Call { .. } => false,
        };
        if is_done {
            self.tell(Happening::Obeyed(placed));
        }
    }

    /// The error of a task goes into the database, where the built-in strategy finds it.
    fn leave_to_the_house(&mut self, number: u8) -> bool {
        let Some(task) = self.tasks.get(&number) else { return false };
        let (node, place) = (u16::from(task.node()), task.place());
        let (kind, at_us) = task.last_error();
        self.net.change(node, Change::TaskError { task: place, kind, at_us, alpha: None }).is_ok()
    }
}

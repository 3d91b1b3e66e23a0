//! A recovery script in force: the DIR net of the core, and tasks that fail as a scenario says.
//!
//! ```text
//!   error, silence ─▶ task ─▶ its node's component ─▶ database ─▶ ScriptMember, at the manager
//!                      ▲                                                     │ orders
//!                      └── DeclaredTask: judged, obeyed once ◀── GUARD ◀─────┘
//! ```
//!
//! Detection, removal, resets and the succession of managers are the core's own, and so are the
//! verifier, the member of the script that evaluates it and agrees on another one, and the
//! judgement of orders. Changes of the database and orders are frames of the DIR net, which are
//! lost, late and repeated as the [`Setting`] says. The lab itself has the supervisors' part:
//! what tasks do, which scripts a node has saved, and how these travel. Each component is stepped
//! once in a millisecond.

mod checks;
mod drawn;
mod expected;
mod member;
mod run;
mod task;
mod votes;

use std::collections::BTreeMap;

use self_cell::self_cell;
use weft_core::dirnet::{Explanation, Output, Part, ScriptOrder, TaskAction, Term, Timing};
use weft_core::ids::Rank;
use weft_core::recovery::{
    Expected, Judgement, OrderId, Picture, Placed, Program, Rcode, Role, TASKS_MAX, TaskState,
    Trace, Verb, VoteRefused, verify,
};
use weft_core::script::{ReloadEnd, ReloadRefused};
use weft_core::time::Instant;
use weft_core::vote::VoteOutcome;

use super::net::{Net, Setting};
use super::strike::{MS, NetStrike};
use crate::draws::{Draws, Purpose};
pub(super) use drawn::assembled;
pub(crate) use expected::EXPECTED;
pub(crate) use run::run;

use member::{LabMember, SavedScripts, ScriptParcel};
use task::GuardedTask;
use votes::{Arrived, LabVotes};

/// How long the cluster runs before the scenario begins, so that all are members.
const SETTLED_NS: u64 = 2_000 * MS;
/// What was translated or drawn is verified for no cluster of its own.
const ANY: Expected = Expected { nodes: None, keeps_rules: |_| true };

/// What a manager sees.
type Facts = Picture<8, TASKS_MAX>;

/// What happened, with its time since the begin in µs.
pub type ScriptEvent = (u64, Happening);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A node evaluated the script with this digest.
    Evaluated(Rank, u64, Trace),
    /// It gave an order.
    Ordered(Placed),
    /// The order was obeyed. Of an order that changes a state: it has changed it.
    Obeyed(Placed),
    /// It was not: errors of the task were answered since the picture that the order rests on.
    Outdated(Placed),
    /// A task's node obeys an order that was given when `seen` errors were answered, and answers
    /// those up to `mark`. [`Self::Obeyed`] follows if that changes anything.
    Answered {
        /// The task.
        task: u8,
        /// The order.
        id: OrderId,
        /// What the manager saw answered.
        seen: u32,
        /// What is answered by it.
        mark: u32,
    },
    /// No order came in time for the errors of a task so far, and its node did what DEFAULT says.
    Unordered {
        /// The task.
        task: u8,
        /// Its errors.
        errors: u32,
    },
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
    /// A node uses the script with this digest from now on.
    Uses(Rank, u64),
    /// A reload of the script with this digest has ended.
    Reloaded(u64, ReloadEnd),
}

/// A cluster with a script, in virtual time.
pub struct ScriptLab {
    net: Net,
    programs: BTreeMap<u64, VerifiedScript>,
    tasks: BTreeMap<u8, GuardedTask>,
    members: BTreeMap<u16, LabMember>,
    saved: Vec<SavedScripts>,
    /// Scripts on their way between supervisors.
    parcels: Vec<ScriptParcel>,
    votes: BTreeMap<u16, LabVotes>,
    /// The orders that were given.
    given: BTreeMap<OrderId, Placed>,
    draws: Draws,
    boots: Vec<Option<u32>>,
    begin: u64,
    events: Vec<ScriptEvent>,
}

/// The digest of an image that was translated or drawn.
pub(super) fn digest_of(image: &[u8]) -> u64 {
    Rcode::new_checked(image).map_or(0, |image| image.digest())
}

pub(super) fn program_of(image: &[u8]) -> Program<'_> {
    verify(image, &ANY).expect("it was translated or drawn")
}

self_cell! {
    /// An image and its program: verified once, and used in every millisecond of virtual time.
    struct VerifiedScript {
        owner: Vec<u8>,
        #[covariant]
        dependent: Program,
    }
}

fn verified(image: &[u8]) -> VerifiedScript {
    VerifiedScript::new(image.to_vec(), |image| program_of(image))
}

impl ScriptLab {
    /// A cluster that uses `image`, was started and has settled, in a network that loses nothing;
    /// all tasks but `waiting` run.
    ///
    /// # Panics
    /// When the verifier refuses the image.
    #[must_use]
    pub fn settled(image: &[u8], timing: Timing, waiting: &[u8], seed: u64) -> Self {
        let nodes = u16::from(program_of(image).code().header().nodes);
        Self::set_up(image, &Setting::fair(nodes, timing, 2 * MS), waiting, seed)
    }

    /// The same in a network as `setting` has it, which loses nothing until the lab begins.
    fn set_up(image: &[u8], setting: &Setting, waiting: &[u8], seed: u64) -> Self {
        let (program, digest) = (program_of(image), digest_of(image));
        let part = |node| match program.role(node) {
            Some(Role::Manager) => Part::Manager,
            Some(Role::Agent) => Part::Agent,
            Some(Role::Backup) | None => Part::Backup,
        };
        let nodes = program.code().header().nodes;
        let parts = (0..nodes).map(part).collect();
        let tasks = weft_core::dirnet::TASKS_MAX as u8;
        let (lost, repeated) = (setting.lost, setting.repeated);
        let mut net =
            Net::set_up(Setting { parts, tasks, lost: 0, repeated: 0, ..setting.clone() }, seed);
        net.boot_all();
        net.run_until(SETTLED_NS);
        net.grow_rough(lost, repeated);
        net.said.log = Some(Vec::new());
        let begin = net.now;
        let tasks = program.tasks().iter().map(|number| {
            (number, GuardedTask::new(&program, number, Instant(begin), !waiting.contains(&number)))
        });
        let mut lab = Self {
            tasks: tasks.collect(),
            programs: BTreeMap::from([(digest, verified(image))]),
            members: BTreeMap::new(),
            saved: vec![SavedScripts::new(digest); usize::from(nodes)],
            parcels: Vec::new(),
            votes: BTreeMap::new(),
            given: BTreeMap::new(),
            draws: Draws::new(seed, Purpose::Schedule),
            boots: (0..u16::from(nodes)).map(|node| net.boot_of(node)).collect(),
            begin,
            events: Vec::new(),
            net,
        };
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
        self.carry_scripts();
        let now = Instant(self.net.now);
        let mut changed = Vec::new();
        let mut unordered = Vec::new();
        for (number, task) in &mut self.tasks {
            let before = task.state();
            unordered.extend(task.handle_time(now).then(|| (*number, task.errors())));
            changed.extend((task.state() != before).then_some((*number, task.state())));
        }
        for (task, errors) in unordered {
            self.tell(Happening::Unordered { task, errors });
        }
        changed.into_iter().for_each(|(task, state)| self.tell(Happening::Task(task, state)));
        (0..self.boots.len() as u16).for_each(|node| self.step_member(node));
        self.follow_votes(&arrived);
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
        self.net.strike(0, NetStrike::Crash(node.into()));
    }

    /// The component of a node ends.
    pub fn crash(&mut self, node: u8) {
        self.net.strike(0, NetStrike::End(node.into()));
    }

    /// An operator has the cluster use `image` instead, by the node that manages, if there is one.
    ///
    /// # Errors
    /// [`ReloadRefused`].
    fn reload(&mut self, image: &[u8]) -> Result<(), ReloadRefused> {
        let Some(manager) = self.net.acting().next().map(|it| it.me()) else {
            return Err(ReloadRefused::NotManager);
        };
        self.reload_at(manager, image)
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

    /// Verdicts of the DIR net, orders that have arrived, and what its built-in strategy does to
    /// tasks; returns the messages of votes.
    fn follow_net(&mut self) -> Vec<Arrived> {
        let mut votes = Vec::new();
        for (_, at, output) in self.net.said.log.as_mut().map(std::mem::take).unwrap_or_default() {
            match output {
                Output::Verdict(why) => self.tell(Happening::Verdict(why)),
                Output::Task { task: place, action, order } => {
                    let is_it = |task: &GuardedTask| {
                        (u16::from(task.node()), task.place()) == (at.0, place)
                    };
                    let found = self.tasks.iter().find(|(_, task)| is_it(task));
                    let Some(number) = found.map(|(number, _)| *number) else { continue };
                    match order {
                        Some(order) => self.judge(number, action, order),
                        None => drop(self.change_task(number, action)),
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

    /// The supervisor of a task's node judges an order of a script.
    fn judge(&mut self, number: u8, action: TaskAction, (term, order): (Term, ScriptOrder)) {
        let (evaluation, index) = (order.evaluation, order.index);
        let id = OrderId { term, evaluation, index };
        let Some(placed) = self.given.get(&id).copied() else { return };
        let Some(task) = self.tasks.get_mut(&number) else { return };
        let is_notice = matches!(action, TaskAction::Send | TaskAction::Warn);
        let judgement = match is_notice {
            true => task.judge_notice(id),
            false => task.judge(id, (order.seen, order.mark)),
        };
        match judgement {
            Judgement::Obey => {
                let (seen, mark) = (order.seen, order.mark);
                if !is_notice {
                    self.tell(Happening::Answered { task: number, id, seen, mark });
                }
                if self.change_task(number, action) {
                    self.tell(Happening::Obeyed(placed));
                }
            }
            Judgement::Outdated => self.tell(Happening::Outdated(placed)),
            Judgement::Repeated => {}
        }
    }

    /// Carries out `action`; returns whether it has changed the task, or was to change none.
    fn change_task(&mut self, number: u8, action: TaskAction) -> bool {
        let verb = match action {
            TaskAction::Restart => Verb::Restart,
            TaskAction::Isolate => Verb::Isolate,
            TaskAction::Start => Verb::Start,
            TaskAction::Stop => Verb::Stop,
            TaskAction::Release => Verb::Release,
            TaskAction::Clear => {
                self.tasks.entry(number).and_modify(GuardedTask::clear);
                return true;
            }
            TaskAction::Answer | TaskAction::Send | TaskAction::Warn => return true,
        };
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
}

//! The recovery script at the component of the manager: what it sees, and what it orders.
//!
//! ```text
//!   database ─▶ picture ─▶ Evaluator ─┬─▶ orders about tasks ─▶ GUARD, until the entry shows it
//!                    SEND, WARN      ┤   as well
//!                                     ├─▶ orders about nodes ─▶ the machine, once
//!                                     └─▶ LOG, CALL          ─▶ the chronicle, the supervisor
//! ```
//!
//! What decides is the core's, the same that the simulator runs. Every node keeps the image; only
//! the manager evaluates it, and what it knows of its term ends with the term.

use std::collections::VecDeque;

use weft_core::dirnet::{
    Judged, Level, Record, Role, ScriptOrder, TASKS_MAX, TaskAction, TaskError, Term,
};
use weft_core::ids::{self, Rank};
use weft_core::recovery::{
    AlphaCount, Entity, Evaluator, NodeFact, Order, OrderId, Picture, Placed, Program, TaskFact,
    TaskOrder, TaskState, Trace, Verb, verify,
};
use weft_core::recovery::{Expected, TASKS_MAX as NUMBERS_MAX};
use weft_core::time::Instant;

use super::reload::Reloading;
use super::votes::Votes;
use super::{DirNet, Ground, Machine};
use crate::cluster::Cluster;
use crate::node::chronicle::What;
use crate::node::control::{SILENT, ScriptStatus, TaskState as State};
use crate::node::link::{self, FromComponent, GuardAction, OrderNumber};
use crate::node::scripts::digest_of;
use crate::node::tasks::{RESTARTED, STARTED};
use crate::node::{NodeError, PEERS};

/// What is verified when the node starts is not verified for the cluster's size again.
const ANY: Expected = Expected { nodes: None, keeps_rules: |_| true };
/// The evaluations that are remembered (RL-9).
const TRACES: usize = 32;

type Facts = Picture<PEERS, NUMBERS_MAX>;

/// The cluster's script.
pub(super) struct Script {
    image: Vec<u8>,
    /// Identifies the image.
    image_digest: u64,
    /// The change to another one.
    pub(super) reloading: Reloading,
    me: u8,
    nodes: u16,
    /// What is kept of the term in which this node manages.
    acting: Option<Box<Evaluator<PEERS, NUMBERS_MAX>>>,
    /// The database that was seen last.
    digest: u32,
    due_ns: u64,
    /// For each number of a task, how many errors it has had, and when the last was learnt of.
    learnt: Vec<(u16, u64)>,
    /// The last evaluations, and how many orders there were in this term.
    traces: VecDeque<Trace>,
    orders: u64,
}

impl Script {
    /// The script of `cluster`, if it has one.
    pub(super) fn new(cluster: &Cluster, me: Rank) -> Result<Option<Self>, NodeError> {
        cluster.recovery.program(Some(cluster.nodes)).map_err(NodeError::Image)?;
        let nodes = u16::try_from(cluster.nodes).unwrap_or(u16::MAX);
        Ok(cluster.recovery.image.clone().map(|image| Self {
            image_digest: digest_of(&image),
            image,
            reloading: Reloading::default(),
            me: u8::try_from(me.0).unwrap_or(u8::MAX),
            nodes,
            acting: None,
            digest: 0,
            due_ns: u64::MAX,
            learnt: vec![(0, 0); NUMBERS_MAX],
            traces: VecDeque::with_capacity(TRACES),
            orders: 0,
        }))
    }

    pub(super) fn image(&self) -> &[u8] {
        &self.image
    }

    pub(super) const fn image_digest(&self) -> u64 {
        self.image_digest
    }

    /// Another script, which was verified, is in force.
    pub(super) fn replace(&mut self, image: Vec<u8>) {
        (self.image_digest, self.image) = (digest_of(&image), image);
        self.acting.iter_mut().for_each(|acting| acting.replace_script());
        self.due_ns = 0;
    }

    /// For people.
    pub(super) fn digest_text(digest: u64) -> String {
        format!("{digest:016x}")
    }

    /// The program, whose image was verified before.
    pub(super) fn program(&self) -> Option<Program<'_>> {
        verify(&self.image, &ANY).ok()
    }

    /// Leaves the declared tasks to the script.
    pub(super) fn declare(&self, machine: &mut Machine) {
        let Some(program) = self.program() else { return };
        for node in 0..self.nodes {
            let places = program.tasks().iter().filter_map(|task| program.place_of(task));
            let own = places.filter(|(at, _)| u16::from(*at) == node);
            let bits =
                own.fold(0, |bits, (_, place)| bits | 1_u16.checked_shl(place.into()).unwrap_or(0));
            machine.leave_to_script(Rank(node), bits);
        }
    }

    /// The α-count of this node's task at `place` after an error at `at_us`, if the script has a
    /// rule for it (RL-7).
    pub(super) fn alpha(&self, own: &Record<TASKS_MAX>, place: u8, at_us: u64) -> Option<u16> {
        let program = self.program()?;
        let is_it = |task: &u8| program.place_of(*task) == Some((self.me, place));
        let rule = program.alpha_of(program.tasks().iter().find(is_it)?)?;
        let count = own.tasks().get(usize::from(place))?.alpha;
        let of_it = |error: &TaskError| error.task == place;
        let last = own.errors().filter(of_it).last().map_or(at_us, |error| error.at_us);
        let at = |us: u64| Instant(us.saturating_mul(1_000));
        let mut alpha = AlphaCount::new(count, at(last));
        alpha.handle_error(at(at_us), &rule);
        Some(alpha.at(at(at_us), &rule))
    }

    /// What `machine` knows, by the numbers of the script.
    fn picture(&mut self, program: &Program<'_>, machine: &Machine, now: Instant) -> Facts {
        let database = machine.database();
        let mut picture = Facts { manager: self.me, ..Facts::default() };
        for (fact, node) in picture.nodes.iter_mut().zip(0..self.nodes) {
            let standing = database.standing(Rank(node));
            *fact = NodeFact {
                is_member: standing.is_up(),
                is_removed: standing.is_known() && standing.level == Level::Down,
                is_isolated: standing.isolation().is_some(),
                has_rebooted: standing.is_up() && standing.incarnation.boot.0 > 1,
            };
        }
        for number in program.tasks().iter() {
            let Some((node, place)) = program.place_of(number) else { continue };
            let Some(record) = database.record(Rank(node.into())) else { continue };
            let Some(task) = record.tasks().get(usize::from(place)) else { continue };
            let (errors, at_ns) = &mut self.learnt[usize::from(number)];
            if std::mem::replace(errors, task.errors) != task.errors {
                *at_ns = now.0;
            }
            let at = Instant(*at_ns);
            let unanswered = usize::from(task.errors.saturating_sub(task.answered));
            let kept: Vec<u16> = record
                .errors()
                .filter(|error| error.task == place)
                .map(|error| error.kind)
                .collect();
            picture.tasks[usize::from(number)] = TaskFact {
                state: state_of(task.status),
                errors: task.errors.into(),
                answered: task.answered.into(),
                error_kind: task.kind,
                error_at: at,
                // The clock of the task's node may be another: it decays from when it was learnt.
                alpha: program
                    .alpha_of(number)
                    .map_or(task.alpha, |rule| AlphaCount::new(task.alpha, at).at(now, &rule)),
                phase: task.phase.into(),
                starts: u32::from(task.status & STARTED != 0),
                restarts: u32::from(task.status & RESTARTED != 0),
                has_fired: kept.iter().rev().take(unanswered).any(|kind| *kind == SILENT),
            };
        }
        picture
    }

    /// Evaluates, if there is news: returns the evaluation, and the orders that are due.
    fn evaluate(&mut self, machine: &Machine, now: Instant) -> (Vec<Placed>, Vec<TaskOrder>) {
        let digest = machine.database().digest();
        let term = number_of(machine.term());
        let is_acting = self.acting.as_ref().is_some_and(|acting| acting.term() == term);
        if is_acting && digest == self.digest && now.0 < self.due_ns {
            return (Vec::new(), Vec::new());
        }
        let image = std::mem::take(&mut self.image);
        let outcome = self.evaluate_image(&image, machine, now);
        self.image = image;
        self.digest = digest;
        outcome
    }

    fn evaluate_image(
        &mut self,
        image: &[u8],
        machine: &Machine,
        now: Instant,
    ) -> (Vec<Placed>, Vec<TaskOrder>) {
        let Ok(program) = verify(image, &ANY) else { return (Vec::new(), Vec::new()) };
        let picture = self.picture(&program, machine, now);
        let term = number_of(machine.term());
        // Variables, PAUSEs and repetitions end with the term (RL-3).
        if self.acting.as_ref().is_none_or(|acting| acting.term() != term) {
            self.acting = Some(Box::new(Evaluator::new(term)));
            self.orders = 0;
        }
        let Some(acting) = self.acting.as_mut() else { return (Vec::new(), Vec::new()) };
        match acting.handle_picture(&program, &picture, now) {
            Ok(Some(trace)) => {
                if self.traces.len() == TRACES {
                    self.traces.pop_front();
                }
                self.traces.push_back(trace);
            }
            Ok(None) => {}
            Err(error) => {
                // Nothing but another term changes that.
                tracing::error!(%error, "the recovery script is not evaluated");
                self.due_ns = u64::MAX;
                return (Vec::new(), Vec::new());
            }
        }
        let others: Vec<Placed> = std::iter::from_fn(|| acting.poll_order()).collect();
        let is_judged = |order: &TaskOrder, id: OrderId| {
            let record = machine.database().record(Rank(order.node.into()));
            record.is_some_and(|record| id <= id_of(record.judged))
        };
        let tasks = std::iter::from_fn(|| acting.poll_task_order(now, is_judged)).collect();
        self.due_ns = acting.poll_timeout().map_or(u64::MAX, |due| due.0);
        (others, tasks)
    }

    /// The line of the script that gave an order, if the image says so.
    fn place(&self, placed: &Placed) -> String {
        let line = self.program().and_then(|program| program.code().line(placed.word));
        match (placed.section, line) {
            (0, _) => "its DEFAULT".to_owned(),
            (section, None) => format!("section {section}"),
            (section, Some(line)) => format!("section {section}, line {line}"),
        }
    }

    fn text(&self, offset: u16) -> String {
        let program = self.program();
        program.and_then(|it| it.code().text(offset).map(str::to_owned)).unwrap_or_default()
    }

    /// The name of a task, or its number.
    fn name(&self, task: u8) -> String {
        let program = self.program();
        program
            .and_then(|it| it.name_of(task).map(str::to_owned))
            .unwrap_or_else(|| format!("T{task}"))
    }

    /// The status for people and scripts.
    pub(super) fn status(&self, votes: &Votes) -> Option<ScriptStatus> {
        let program = self.program()?;
        let header = program.code().header();
        let last = self.traces.back();
        Some(ScriptStatus {
            digest: Self::digest_text(self.image_digest),
            next: self.reloading.next_digest().map(Self::digest_text),
            is_lacking: self.reloading.is_lacking(),
            words: header.words,
            tasks: program.tasks().iter().map(|task| self.name(task)).collect(),
            is_acting: self.acting.is_some(),
            evaluations: last.map_or(0, |trace| trace.number),
            orders: self.orders,
            last_held: last.map_or_else(Vec::new, |trace| trace.held.to_vec()),
            last_steps: last.map_or(0, |trace| trace.steps),
            dropped: self.acting.as_ref().map_or(0, |acting| acting.dropped()),
            last_vote: votes.last(),
            open_votes: votes.open(),
        })
    }

    /// When there is something to do if nothing changes before.
    pub(super) const fn next_ns(&self) -> u64 {
        self.due_ns
    }
}

impl DirNet {
    /// Evaluates the script if this node manages, and carries out what it orders.
    pub(super) fn run_script(
        &mut self,
        now_ns: u64,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        let Some(script) = &mut self.script else { return Ok(()) };
        if self.machine.role() != Role::Manager || script.reloading.is_lacking() {
            (script.acting, script.due_ns) = (None, u64::MAX);
            return Ok(());
        }
        let (others, tasks) = script.evaluate(&self.machine, Instant(now_ns));
        for placed in others {
            self.carry_other(now_ns, &placed);
            self.drain(now_ns, ground)?;
        }
        for order in tasks {
            self.carry_task(now_ns, &order);
            self.drain(now_ns, ground)?;
        }
        Ok(())
    }

    /// Hands an order about a task to the machine, which sends it to the task's node.
    fn carry_task(&mut self, now_ns: u64, order: &TaskOrder) {
        let Some(script) = &mut self.script else { return };
        let Some((node, place)) = script.program().and_then(|it| it.place_of(order.task)) else {
            return;
        };
        let (at, now) = ((Rank(node.into()), place), Instant(now_ns));
        let id = order.placed.id;
        let of = |mark| {
            let (evaluation, index, seen) = (id.evaluation, id.index, order.seen);
            ScriptOrder { evaluation, index, seen, mark }
        };
        let notice =
            |value: i32, about: u32| ScriptOrder { seen: value.cast_unsigned(), ..of(about) };
        let machine = &mut self.machine;
        let (done, what) = match order.placed.order {
            Order::Send { value, .. } => {
                (machine.order_task(now, at, TaskAction::Send, notice(value, 0)), "SEND to")
            }
            Order::Notice { error, about: Entity { kind, id }, .. } => {
                let about = u32::from_le_bytes([id, kind.code(), 0, 0]);
                (machine.order_task(now, at, TaskAction::Warn, notice(error, about)), "WARN")
            }
            Order::Task { verb, mark, .. } => {
                (machine.order_task(now, at, action_of(verb), of(mark)), verb.as_str())
            }
            Order::Answer { mark, .. } => {
                (machine.order_task(now, at, TaskAction::Answer, of(mark)), "REMOVE errors of")
            }
            Order::Clear { mark, .. } => {
                (machine.order_task(now, at, TaskAction::Clear, of(mark)), "CLEAR")
            }
            Order::Builtin { mark, .. } => {
                (machine.order_builtin(now, at, of(mark)), "built-in recovery of")
            }
            _ => return,
        };
        if let Err(reason) = done {
            return tracing::debug!(%reason, ?order, "an order of the script is not sent");
        }
        if !order.is_repeated {
            script.orders += 1;
            let (name, place) = (script.name(order.task), script.place(&order.placed));
            self.note_script(now_ns, at.0, &format!("{what} task {name}, by {place}"));
        }
    }

    /// Carries out what is ordered once: about nodes, and what people read.
    fn carry_other(&mut self, now_ns: u64, placed: &Placed) {
        let Some(script) = &mut self.script else { return };
        script.orders += 1;
        let (script, now, me) = (&*script, Instant(now_ns), self.machine.me());
        let place = script.place(placed);
        let (node, words) = match placed.order {
            Order::Node { node, verb } => {
                let at = Rank(node.into());
                let words = format!("{} node {node}, by {place}", verb.as_str());
                let done = match verb {
                    Verb::Restart => self.machine.restart(now, at),
                    Verb::Stop | Verb::Isolate => self.machine.isolate_by_script(now, at),
                    Verb::Start | Verb::Release => self.machine.release(now, at),
                };
                let words = match done {
                    Ok(()) => words,
                    Err(reason) => format!("{words}: refused, {reason}"),
                };
                (at, words)
            }
            Order::Log { text, values, count } => {
                let values: String =
                    values.iter().take(count.into()).map(|value| format!(" {value}")).collect();
                (me, format!("LOG \"{}\"{values}, by {place}", script.text(text)))
            }
            Order::Call { name, args, count } => {
                let name = script.text(name);
                let words = format!("CALL {name}, by {place}");
                let args = args.iter().take(count.into()).copied().collect();
                let epoch = self.machine.term().epoch;
                let evaluation = placed.id.evaluation;
                self.words.push(FromComponent::Call { name, args, epoch, evaluation });
                (me, words)
            }
            Order::Task { .. }
            | Order::Answer { .. }
            | Order::Clear { .. }
            | Order::Builtin { .. }
            | Order::Send { .. }
            | Order::Notice { .. } => return,
        };
        self.note_script(now_ns, node, &words);
    }

    fn note_script(&mut self, now_ns: u64, node: Rank, words: &str) {
        self.note(now_ns, node, What::Noted { words: format!("recovery script: {words}") });
    }
}

/// The action on a task of this node, for its supervisor.
pub(super) fn guard_word(
    task: u8,
    action: TaskAction,
    order: Option<(Term, ScriptOrder)>,
) -> FromComponent {
    let action = match action {
        TaskAction::Restart => GuardAction::Restart,
        TaskAction::Isolate => GuardAction::Isolate,
        TaskAction::Start => GuardAction::Start,
        TaskAction::Stop => GuardAction::Stop,
        TaskAction::Release => GuardAction::Release,
        TaskAction::Answer => GuardAction::Answer,
        TaskAction::Clear => GuardAction::Clear,
        TaskAction::Send => GuardAction::Send,
        TaskAction::Warn => GuardAction::Warn,
    };
    let order = order.map(|(Term { epoch, claimant: Rank(claimant) }, order)| {
        let ScriptOrder { evaluation, index, seen, mark } = order;
        link::ScriptOrder { number: OrderNumber { epoch, claimant, evaluation, index }, seen, mark }
    });
    FromComponent::Guard { task, action, order }
}

const fn action_of(verb: Verb) -> TaskAction {
    match verb {
        Verb::Restart => TaskAction::Restart,
        Verb::Start => TaskAction::Start,
        Verb::Stop => TaskAction::Stop,
        Verb::Isolate => TaskAction::Isolate,
        Verb::Release => TaskAction::Release,
    }
}

/// The term as orders name it: greater for each later one.
pub(super) fn number_of(Term { epoch, claimant: Rank(claimant) }: Term) -> ids::Term {
    ids::Term(u64::from(epoch) << 16 | u64::from(claimant))
}

fn id_of(Judged { term, evaluation, index }: Judged) -> OrderId {
    OrderId { term: number_of(term), evaluation, index }
}

fn state_of(status: u8) -> TaskState {
    const RUNNING: u8 = State::Running as u8;
    const KILLED: u8 = State::Killed as u8;
    const ISOLATED: u8 = State::Isolated as u8;
    const FINISHED: u8 = State::Finished as u8;
    match status & !(STARTED | RESTARTED) {
        RUNNING => TaskState::Running,
        KILLED => TaskState::Killed,
        ISOLATED => TaskState::Isolated,
        FINISHED => TaskState::Finished,
        _ => TaskState::Waiting,
    }
}

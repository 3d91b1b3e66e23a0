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

use weft_core::dirnet::{Record, ScriptOrder, TASKS_MAX, TaskAction, Term};
use weft_core::ids::Rank;
use weft_core::recovery::{
    Expected, Order, Outcome, Placed, Program, TASKS_MAX as NUMBERS_MAX, TaskOrder, Trace, verify,
};
use weft_core::script::{ScriptMember, alpha_after, declare, order_node, order_task};
use weft_core::time::Instant;

use super::reload::Reloading;
use super::votes::Votes;
use super::{ComponentDirNet, Ground, Machine};
use crate::cluster::Cluster;
use crate::node::chronicle::What;
use crate::node::control::ScriptStatus;
use crate::node::link::{self, FromComponent, GuardAction, OrderNumber};
use crate::node::scripts::digest_of;
use crate::node::{NodeError, PEERS};

/// What is verified when the node starts is not verified for the cluster's size again.
const ANY: Expected = Expected { nodes: None, keeps_rules: |_| true };
/// The evaluations that are remembered (RL-9).
const TRACES: usize = 32;

/// The cluster's script.
pub(super) struct ClusterScript {
    image: Vec<u8>,
    pub(super) member: Box<ScriptMember<PEERS, NUMBERS_MAX>>,
    /// The change to another one.
    pub(super) reloading: Reloading,
    me: Rank,
    nodes: u16,
    /// The last evaluations, and how many orders there were in the term of the last.
    traces: VecDeque<Trace>,
    orders: u64,
}

/// What an evaluation has come to.
#[derive(Default)]
struct Evaluated {
    /// What it did not order, for people.
    lost: Vec<String>,
    /// Orders about anything but tasks.
    others: Vec<Placed>,
}

/// What an evaluation did not order, and why.
fn lost_orders(trace: &Trace) -> Vec<String> {
    let lost = [
        (trace.faults, "sections that an overflow or a division by zero has ended"),
        (trace.refused, "orders refused, since they are about this node, which manages"),
        (trace.dropped, "lists behind a PAUSE dropped, since too many wait"),
        (
            u16::from(trace.outcome == Outcome::TooManyOrders),
            "evaluations ended by the order after the last that one may give",
        ),
    ];
    let lost = lost.into_iter().filter(|(count, _)| *count > 0);
    lost.map(|(count, what)| format!("{what}: {count}")).collect()
}

impl ClusterScript {
    /// The script of `cluster`, if it has one.
    pub(super) fn new(cluster: &Cluster, me: Rank) -> Result<Option<Self>, NodeError> {
        cluster.recovery.program(Some(cluster.nodes)).map_err(NodeError::Image)?;
        let nodes = u16::try_from(cluster.nodes).unwrap_or(u16::MAX);
        Ok(cluster.recovery.image.clone().map(|image| Self {
            member: Box::new(ScriptMember::new(me, nodes, digest_of(&image))),
            image,
            reloading: Reloading::default(),
            me,
            nodes,
            traces: VecDeque::with_capacity(TRACES),
            orders: 0,
        }))
    }

    pub(super) fn image(&self) -> &[u8] {
        &self.image
    }

    /// Another script, which was verified, is in force.
    pub(super) fn replace(&mut self, image: Vec<u8>, machine: &mut Machine) {
        self.image = image;
        self.declare(machine);
    }

    /// Keeps an image for as long as the member waits for it to be in force.
    pub(super) fn keep(&mut self, image: Vec<u8>) {
        let (next, lacking) = (self.member.next(), self.member.lacking());
        let images = &mut self.reloading.images;
        images.retain(|other| *other != image);
        images.push(image);
        images.retain(|image| {
            let digest = Some(digest_of(image));
            digest == next || digest == lacking
        });
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
        if let Some(program) = self.program() {
            declare(&program, machine, self.nodes);
        }
    }

    /// The α-count of this node's task at `place` after an error, if the script has a rule for it
    /// (RL-7). `times` are those of the error before it and of this one, in µs.
    pub(super) fn alpha(
        &self,
        own: &Record<TASKS_MAX>,
        place: u8,
        times: (Option<u64>, u64),
    ) -> Option<u16> {
        alpha_after(&self.program()?, own, (self.me, place), times)
    }

    /// Evaluates, if there is news: returns the orders that are due, and what was not ordered.
    fn evaluate(&mut self, machine: &Machine, now: Instant) -> Evaluated {
        let member = &mut self.member;
        if !member.is_due(machine, now) {
            return Evaluated::default();
        }
        let Ok(program) = verify(&self.image, &ANY) else { return Evaluated::default() };
        let mut lost = Vec::new();
        match member.evaluate(&program, machine, now) {
            Ok(Some(trace)) => {
                if self.traces.back().is_none_or(|last| last.term != trace.term) {
                    self.orders = 0;
                }
                if self.traces.len() == TRACES {
                    self.traces.pop_front();
                }
                lost = lost_orders(&trace);
                self.traces.push_back(trace);
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "the recovery script is not evaluated"),
        }
        Evaluated { lost, others: std::iter::from_fn(|| member.poll_order()).collect() }
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
            digest: Self::digest_text(self.member.used()),
            next: self.member.next().map(Self::digest_text),
            is_lacking: self.member.lacking().is_some(),
            words: header.words,
            tasks: program.tasks().iter().map(|task| self.name(task)).collect(),
            is_acting: self.member.is_acting(),
            evaluations: last.map_or(0, |trace| trace.number),
            orders: self.orders,
            last_held: last.map_or_else(Vec::new, |trace| trace.held.to_vec()),
            last_steps: last.map_or(0, |trace| trace.steps),
            dropped: self.member.dropped(),
            last_vote: votes.last(),
            open_votes: votes.open(),
        })
    }

    /// When there is something to do if nothing changes before.
    pub(super) fn next_ns(&self) -> u64 {
        self.member.poll_timeout().map_or(u64::MAX, |Instant(at_ns)| at_ns)
    }
}

impl ComponentDirNet {
    /// Evaluates the script if this node manages, and carries out what it orders.
    pub(super) fn run_script(
        &mut self,
        now_ns: u64,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        let Some(script) = &mut self.script else { return Ok(()) };
        let Evaluated { lost, others } = script.evaluate(self.member.machine(), Instant(now_ns));
        for words in lost {
            self.note_script(now_ns, self.member.machine().me(), &words);
        }
        for placed in others {
            self.carry_other(now_ns, &placed);
            self.drain(now_ns, ground)?;
        }
        while let Some(order) = self.next_task_order(Instant(now_ns)) {
            self.carry_task(now_ns, &order);
            self.drain(now_ns, ground)?;
        }
        Ok(())
    }

    fn next_task_order(&mut self, now: Instant) -> Option<TaskOrder> {
        self.script.as_mut()?.member.poll_task_order(self.member.machine(), now)
    }

    /// Hands an order about a task to the machine, which sends it to the task's node.
    fn carry_task(&mut self, now_ns: u64, order: &TaskOrder) {
        let Some(script) = &mut self.script else { return };
        let Some(program) = script.program() else { return };
        let done = order_task(self.member.machine_mut(), &program, order, Instant(now_ns));
        if let Err(reason) = done {
            return tracing::debug!(%reason, ?order, "an order of the script is not sent");
        }
        let what = match order.placed.order {
            Order::Send { .. } => "SEND to",
            Order::Notice { .. } => "WARN",
            Order::Task { verb, .. } => verb.as_str(),
            Order::Answer { .. } => "REMOVE errors of",
            Order::Clear { .. } => "CLEAR",
            Order::Builtin { .. } => "built-in recovery of",
            Order::Node { .. } | Order::Log { .. } | Order::Call { .. } => return,
        };
        if !order.is_repeated {
            script.orders += 1;
            let (name, place) = (script.name(order.task), script.place(&order.placed));
            let node = Rank(order.node.into());
            self.note_script(now_ns, node, &format!("{what} task {name}, by {place}"));
        }
    }

    /// Carries out what is ordered once: about nodes, and what people read.
    fn carry_other(&mut self, now_ns: u64, placed: &Placed) {
        let Some(script) = &mut self.script else { return };
        script.orders += 1;
        let (script, now, me) = (&*script, Instant(now_ns), self.member.machine().me());
        let place = script.place(placed);
        let mut is_refused = false;
        let (node, words) = match placed.order {
            Order::Node { node, verb } => {
                let at = Rank(node.into());
                let words = format!("{} node {node}, by {place}", verb.as_str());
                let words = match order_node(self.member.machine_mut(), at, verb, now) {
                    Ok(()) => words,
                    Err(reason) => {
                        is_refused = true;
                        format!("{words}: refused ({reason})")
                    }
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
                let epoch = self.member.machine().term().epoch;
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
        if let Some(script) = self.script.as_mut().filter(|_| is_refused) {
            script.member.handle_refused(placed);
        }
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

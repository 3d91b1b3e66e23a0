//! A recovery script in the explorer: a task on node 1 that reports errors, and what the script
//! members of the components make of it.
//!
//! A member is stepped right behind every input to its component, as a component's loop does, and
//! at a moment at which no time passes; a tick takes it to its next deadline.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use weft_core::dirnet::{self, Change, Role, SNAPSHOT_LEN_MAX, ScriptOrder, TaskAction};
use weft_core::ids::Rank;
use weft_core::recovery::{
    self, Declared, DeclaredTask, Depth, Fallback, Header, Instruction, Judgement, Kind, Mark,
    OrderId, Status, Subject, Target, Verb,
};
use weft_core::script::{ScriptMember, ScriptStep, declare, order_task};
use weft_core::time::{Duration, Instant};

use super::{MS, NetMove, NetWorld};
use crate::dirnet::scripted::{assembled, digest_of, program_of};
use crate::protocol::Violation;
use crate::shared::CopyOnWrite;

/// The node of the task.
const AT: Rank = Rank(1);
const NAME: &[u8] = b"\x04task";

/// How many events of each kind may happen on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in super::super) struct ScriptBudget {
    /// Errors of the task.
    pub(in super::super) errors: u32,
    /// Deadlines of script members.
    pub(in super::super) ticks: u32,
    /// Reloads that an operator begins.
    pub(in super::super) loads: u32,
}

/// Steps of 10 ms in which a cluster without further faults has answered every error.
const FAIR_STEPS: u64 = 200;

type Member = ScriptMember<4, 1>;

/// The scripts that there are; the same in every state.
#[derive(Clone)]
struct Images(Rc<[(u64, Vec<u8>); 2]>);

impl Hash for Images {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Images {
    fn of(&self, digest: u64) -> &[u8] {
        let found = self.0.iter().find(|(of, _)| *of == digest);
        found.map_or(&[], |(_, image)| image)
    }
}

/// What is known of scripts.
#[derive(Clone, Hash)]
pub(super) struct ScriptKnowledge {
    images: Images,
    members: Vec<Option<CopyOnWrite<Member>>>,
    /// What each supervisor has saved: the script that is used, and the one held besides.
    saved: Vec<(u64, Option<u64>)>,
    /// The database that the last component of each has saved.
    databases: Vec<Vec<u8>>,
    /// Scripts on their way.
    parcels: BTreeSet<(Rank, u64)>,
    task: DeclaredTask,
    errors: u32,
    /// Errors that no component was sent.
    owed: u32,
    /// The last order that was obeyed, and the errors that were answered.
    obeyed: (OrderId, u32),
    /// Scripts that were in force.
    in_force: BTreeSet<u64>,
    broken: Option<(&'static str, String)>,
    left: ScriptBudget,
}

/// `IF [ FAULTY T* ] THEN RESTART @1 FI`, for task 0 on node 1.
fn image(nodes: u8, source: u64) -> (u64, Vec<u8>) {
    let role = |node| if node == 0 { recovery::Role::Manager } else { recovery::Role::Backup };
    let mut words: Vec<_> =
        (0..nodes).map(|node| Instruction::Role { node, role: role(node) }).collect();
    words.push(Instruction::Task { task: 0, node: 1, index: 0, name: 0 });
    words.push(Instruction::Code);
    let end = words.len() as u16 + 4;
    words.extend([
        Instruction::Section { number: 1, depth: Depth::Top, end },
        Instruction::Test { status: Status::Faulty, of: Subject::Any(Kind::Task), set: Some(0) },
        Instruction::JumpIfFalse(end),
        Instruction::Act { verb: Verb::Restart, target: Target::Set(0) },
        Instruction::End,
    ]);
    let image = assembled(Header { tasks: 1, nodes, source, ..Header::default() }, &words, NAME);
    (digest_of(&image), image)
}

impl ScriptKnowledge {
    fn new(nodes: u16, left: ScriptBudget) -> Self {
        let images = [image(nodes as u8, 1), image(nodes as u8, 2)];
        let first = images[0].0;
        let answer = Duration(u64::MAX / 2);
        Self {
            images: Images(Rc::new(images)),
            members: vec![None; usize::from(nodes)],
            saved: vec![(first, None); usize::from(nodes)],
            databases: vec![Vec::new(); usize::from(nodes)],
            parcels: BTreeSet::new(),
            task: DeclaredTask::new(Declared { fallback: Fallback::Builtin, answer }),
            errors: 0,
            owed: 0,
            obeyed: (OrderId::default(), 0),
            in_force: BTreeSet::from([first]),
            broken: None,
            left,
        }
    }

    pub(super) fn broken(&self) -> Option<Violation> {
        self.broken.clone().map(|(checker, what)| Violation::new(checker, what))
    }

    fn break_promise(&mut self, checker: &'static str, what: String) {
        self.broken.get_or_insert((checker, what));
    }

    /// The component of `node` ends. Its supervisor sends the next one what it has not sent; what
    /// is on its way to a node that ends is lost by another move.
    pub(super) fn end(&mut self, node: Rank, component: &super::Small) {
        let at = usize::from(node.0);
        self.members[at] = None;
        let (count, mut room) = (self.members.len() as u16, [0; SNAPSHOT_LEN_MAX]);
        self.databases[at] = component.database().save(count, &mut room).to_vec();
    }

    /// The supervisor of the task's node judges an order.
    pub(super) fn judge(&mut self, term: dirnet::Term, action: TaskAction, order: ScriptOrder) {
        let ScriptOrder { evaluation, index, seen, mark } = order;
        let id = OrderId { term, evaluation, index };
        if self.task.judge(id, (seen, mark), self.errors) != Judgement::Obey {
            return;
        }
        let (last, answered) = self.obeyed;
        let is_continued = (id.term, id.evaluation) == (last.term, last.evaluation);
        if id.term < last.term {
            self.break_promise("term", format!("{action:?} of {id:?} behind {last:?}"));
        }
        if id <= last || !is_continued && seen != answered {
            let what = format!("{action:?} of {id:?} behind {last:?}, which answered {answered}");
            self.break_promise("obeyed-once", what);
        }
        self.obeyed = (id, mark.max(answered));
    }

    /// The database that the last component of `node` has saved.
    pub(super) fn database_of(&self, node: Rank) -> &[u8] {
        &self.databases[usize::from(node.0)]
    }

    fn is_unanswered(&self) -> bool {
        self.owed > 0 || self.task.answered().mark() < self.errors
    }

    fn holds(&self, node: Rank, digest: u64) -> bool {
        let (used, next) = self.saved[usize::from(node.0)];
        used == digest || next == Some(digest)
    }
}

impl NetWorld {
    /// A settled cluster with a script in force.
    pub(in super::super) fn scripted(
        count: u16,
        left: super::Budget,
        scripts: ScriptBudget,
    ) -> Self {
        let mut world = Self::settled_with(count, 1, left);
        world.scripts = Some(CopyOnWrite::new(ScriptKnowledge::new(count, scripts)));
        world.ranks().for_each(|node| drop(world.collect(node)));
        world.deliver_all(Instant(0));
        world.beats.clear();
        world
    }

    /// The script member of `node` does one thing that is due at once; returns whether there was
    /// one.
    pub(super) fn step_script(&mut self, node: Rank) -> bool {
        let Some(mut scripts) = self.scripts.take() else { return false };
        let has_acted =
            self.nodes[usize::from(node.0)].is_some() && self.step_member(node, scripts.change());
        self.scripts = Some(scripts);
        has_acted
    }

    fn step_member(&mut self, node: Rank, scripts: &mut ScriptKnowledge) -> bool {
        let at = usize::from(node.0);
        let count = self.nodes.len() as u16;
        let Some(component) = self.nodes[at].as_mut().map(CopyOnWrite::change) else {
            return false;
        };
        let images = scripts.images.clone();
        if scripts.members[at].is_none() {
            let (used, next) = scripts.saved[at];
            let mut member = Member::new(node, count, used);
            next.into_iter().for_each(|next| member.hold(next));
            declare(&program_of(images.of(used)), component, count);
            scripts.members[at] = Some(CopyOnWrite::new(member));
            if node == AT {
                scripts.task.forget_sent();
            }
            return true;
        }
        if node == AT
            && let Some(change) = scripts.next_change()
        {
            component.handle_change(Instant(0), change).expect("the node has the task");
            return true;
        }
        let Some(member) = &mut scripts.members[at] else { return false };
        let steps = member.change().agree(component, Instant(0));
        if !steps.is_empty() {
            for step in steps {
                self.carry_script_step(node, step, scripts);
            }
            return true;
        }
        self.evaluate_script(node, scripts)
    }

    fn carry_script_step(&mut self, node: Rank, step: ScriptStep, scripts: &mut ScriptKnowledge) {
        let at = usize::from(node.0);
        match step {
            ScriptStep::Offer { to, digest } => {
                let to = to.iter().map(|to| (Rank(to.into()), digest));
                scripts.parcels.extend(to);
            }
            ScriptStep::Want { digest } => {
                let has = |other: &Rank| *other != node && scripts.holds(*other, digest);
                if self.ranks().any(|other| has(&other)) {
                    scripts.parcels.insert((node, digest));
                }
            }
            ScriptStep::Use { digest } => {
                let held = scripts.saved[at].1.filter(|next| *next != digest);
                scripts.saved[at] = (digest, held);
                self.check_use(node, digest, scripts);
                let images = scripts.images.clone();
                let count = self.nodes.len() as u16;
                if let Some(component) = self.node(node) {
                    declare(&program_of(images.of(digest)), component, count);
                }
            }
            ScriptStep::Change(change) => {
                if let Some(component) = self.node(node) {
                    component.handle_change(Instant(0), change).expect("it names no task");
                }
                self.carry_out(node);
            }
            ScriptStep::Ended { .. } => {}
        }
    }

    /// The first node that uses a script has decided that it is in force.
    fn check_use(&self, node: Rank, digest: u64, scripts: &mut ScriptKnowledge) {
        if !scripts.in_force.insert(digest) {
            return;
        }
        let Some(component) = &self.nodes[usize::from(node.0)] else { return };
        let lacks = |other: &Rank| {
            let runs = self.nodes[usize::from(other.0)].as_ref();
            let standing = component.database().standing(*other);
            let is_member = runs.is_some_and(|it| it.incarnation() == standing.incarnation);
            standing.is_up() && is_member && !scripts.holds(*other, digest)
        };
        if let Some(other) = self.ranks().find(lacks) {
            let what = format!("node {node} uses a script that member {other} does not hold");
            scripts.break_promise("one-script", what);
        }
    }

    /// Evaluates, if that is due, and sends the orders; returns whether there was anything.
    fn evaluate_script(&mut self, node: Rank, scripts: &mut ScriptKnowledge) -> bool {
        let at = usize::from(node.0);
        let Some(member) = &mut scripts.members[at] else { return false };
        let Some(component) = self.nodes[at].as_mut().map(CopyOnWrite::change) else {
            return false;
        };
        let member = member.change();
        if !member.is_due(component, Instant(0)) {
            return false;
        }
        let images = scripts.images.clone();
        let program = program_of(images.of(member.used()));
        let trace = member.evaluate(&program, component, Instant(0)).expect("it has room");
        let orders: Vec<_> =
            std::iter::from_fn(|| member.poll_task_order(component, Instant(0))).collect();
        if let Some(trace) = &trace
            && trace.term.claimant != node
        {
            let what = format!("node {node} evaluates in term {}", trace.term);
            scripts.break_promise("term", what);
        }
        let has_acted = trace.is_some() || !orders.is_empty();
        for order in orders {
            if let Some(component) = self.node(node) {
                // A node that does not manage is refused.
                let _ = order_task(component, &program, &order, Instant(0));
            }
            // Into the lanes before the next one: the component's outputs are few.
            let beats = self.carry_orders(node, scripts);
            debug_assert!(beats == 0, "an order sends none");
        }
        has_acted
    }

    /// Carries out what an order has sent; its own task's orders are judged at once.
    fn carry_orders(&mut self, node: Rank, scripts: &mut ScriptKnowledge) -> usize {
        self.scripts = Some(CopyOnWrite::new(scripts.clone()));
        let beats = self.carry_out(node).len();
        if let Some(carried) = self.scripts.take() {
            *scripts = ScriptKnowledge::clone(&carried);
        }
        beats
    }

    /// Checks that each error is answered if nothing fails from here on: a manager that the task's
    /// node follows answers it. Where faults are left to happen, a later state is checked.
    pub(super) fn check_answers(&self) -> Result<(), Violation> {
        let Some(scripts) = &self.scripts else { return Ok(()) };
        let faults = self.left.losses + self.left.repeats + self.left.crashes + scripts.left.errors;
        if faults > 0 || !self.lanes.is_empty() || !scripts.is_unanswered() {
            return Ok(());
        }
        let mut fair = self.clone();
        for step in 1..=FAIR_STEPS {
            fair.pass_time(Instant(step * 10 * MS));
        }
        let unanswered = fair.scripts.as_ref().is_some_and(|it| it.is_unanswered());
        if unanswered && fair.has_manager_of_task() {
            let what = "a manager is there, and an error of the task is not answered";
            return Err(Violation::new("answered", what));
        }
        Ok(())
    }

    /// All that is due at `now` happens, and what is sent arrives.
    fn pass_time(&mut self, now: Instant) {
        for node in self.ranks() {
            let Some(component) = self.node(node) else { continue };
            if component.poll_timeout().is_some_and(|due| due <= now) {
                component.handle_timeout(now);
            }
            for (to, beat) in self.collect(node) {
                if let Some(component) = self.node(to) {
                    // Refused where the two do not know each other yet.
                    let _ = component.handle_heartbeat(now, node, &beat);
                    self.collect(to);
                }
            }
            self.scripts().left.ticks = u32::MAX;
            self.tick_script(node);
        }
        self.deliver_all(now);
        self.carry_all();
    }

    fn carry_all(&mut self) {
        while let Some((to, digest)) = self.scripts().parcels.first().copied() {
            self.carry_script(to, digest);
        }
    }

    /// Whether the node of the task follows a manager, of which it is a member.
    fn has_manager_of_task(&self) -> bool {
        let Some(at) = &self.nodes[usize::from(AT.0)] else { return false };
        let manages = |it: &&CopyOnWrite<super::Small>| {
            it.role() == Role::Manager
                && it.term() == at.term()
                && (it.me() == AT || it.database().standing(AT).incarnation == at.incarnation())
        };
        self.nodes.iter().flatten().any(|it| manages(&it))
    }

    /// What may happen next about the script.
    pub(super) fn script_moves(&self) -> Vec<(NetMove, Self)> {
        let Some(scripts) = &self.scripts else { return Vec::new() };
        let done = |what: NetMove, act: &dyn Fn(&mut Self)| {
            let mut world = self.clone();
            act(&mut world);
            (what, world)
        };
        let mut next = Vec::new();
        let runs = |node: Rank| self.nodes[usize::from(node.0)].is_some();
        if scripts.left.errors > 0 && runs(AT) {
            next.push(done(NetMove::Error(AT), &|world| world.err()));
        }
        for node in self.ranks().filter(|node| scripts.left.ticks > 0 && runs(*node)) {
            let mut world = self.clone();
            if world.tick_script(node) {
                next.push((NetMove::Tick(node), world));
            }
        }
        for (to, digest) in &scripts.parcels {
            next.push(done(NetMove::Carry(*to), &|world| world.carry_script(*to, *digest)));
        }
        let manager = |node: &Rank| {
            self.nodes[usize::from(node.0)].as_ref().is_some_and(|it| it.role() == Role::Manager)
        };
        for node in self.ranks().filter(|node| scripts.left.loads > 0 && manager(node)) {
            next.push(done(NetMove::Load(node), &|world| world.load(node)));
        }
        next
    }

    fn scripts(&mut self) -> &mut ScriptKnowledge {
        self.scripts.as_mut().map(CopyOnWrite::change).expect("there is a script")
    }

    /// The task reports an error.
    fn err(&mut self) {
        let scripts = self.scripts();
        scripts.left.errors -= 1;
        scripts.errors += 1;
        scripts.owed += 1;
        scripts.task.handle_error(Instant(0));
        self.collect(AT);
    }

    /// Time passes to the next deadline of the script member of `node`.
    fn tick_script(&mut self, node: Rank) -> bool {
        let scripts = self.scripts();
        scripts.left.ticks -= 1;
        let Some(member) = &mut scripts.members[usize::from(node.0)] else { return false };
        let Some(Instant(due)) = member.poll_timeout() else { return false };
        member.change().rebase(Duration(due));
        self.collect(node);
        true
    }

    /// A script arrives at a supervisor, unless its node is gone.
    fn carry_script(&mut self, to: Rank, digest: u64) {
        let runs = self.nodes[usize::from(to.0)].is_some();
        let scripts = self.scripts();
        scripts.parcels.remove(&(to, digest));
        if !runs {
            return;
        }
        let saved = &mut scripts.saved[usize::from(to.0)];
        if saved.0 != digest {
            saved.1 = Some(digest);
        }
        if let Some(member) = &mut scripts.members[usize::from(to.0)] {
            member.change().hold(digest);
        }
        self.collect(to);
    }

    /// An operator has the manager `at` load the other script.
    fn load(&mut self, at: Rank) {
        let Some(component) = self.nodes[usize::from(at.0)].clone() else { return };
        let scripts = self.scripts();
        scripts.left.loads -= 1;
        let digest = scripts.images.0[1].0;
        let Some(member) = &mut scripts.members[usize::from(at.0)] else { return };
        if member.change().begin_reload(&component, digest, Instant(0)) == Ok(true) {
            scripts.saved[usize::from(at.0)].1 = Some(digest);
        }
        self.collect(at);
    }
}

impl ScriptKnowledge {
    /// What the supervisor of the task's node sends its component next.
    fn next_change(&mut self) -> Option<Change> {
        if self.owed > 0 {
            let at_us = u64::from(self.errors - self.owed + 1);
            self.owed -= 1;
            return Some(Change::TaskError { task: 0, kind: 7, at_us, alpha: None });
        }
        let Mark { answered, judged, is_cleared } = self.task.take_mark()?;
        Some(Change::TaskAnswered { task: 0, mark: answered as u16, judged, is_cleared })
    }
}

//! The components' side: what each knows of the script, and how its orders reach the nodes; and
//! which scripts the supervisors have saved.

use weft_core::dirnet::{Change, ComponentIncarnation, Reject};
use weft_core::ids::Rank;
use weft_core::recovery::{Mark, Order, TASKS_MAX};
use weft_core::script::{
    ReloadRefused, ScriptMember, ScriptStep, alpha_after, declare, order_task,
};
use weft_core::time::{Duration, Instant};

use super::task::{ErrorInTransit, GuardedTask};
use super::{Facts, Happening, ScriptLab, digest_of, verified};
use crate::dirnet::strike::MS;

/// How long a script takes to another node.
const WAY: Duration = Duration(2 * MS);

/// The component of a node.
pub(super) struct LabMember {
    of: ComponentIncarnation,
    script: Box<ScriptMember<8, TASKS_MAX>>,
    /// What it evaluated last.
    picture: Box<Facts>,
}

impl LabMember {
    pub(super) fn used(&self) -> u64 {
        self.script.used()
    }

    pub(super) fn is_lacking(&self) -> bool {
        self.script.lacking().is_some()
    }
}

/// The scripts that the supervisor of a node has saved.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedScripts {
    pub(super) used: u64,
    /// The last two besides it, oldest first.
    next: [Option<u64>; 2],
}

impl SavedScripts {
    pub(super) fn new(used: u64) -> Self {
        Self { used, next: [None; 2] }
    }

    fn holds(&self, digest: u64) -> bool {
        self.used == digest || self.next.contains(&Some(digest))
    }

    fn hold(&mut self, digest: u64) {
        if !self.holds(digest) {
            self.next = [self.next[1], Some(digest)];
        }
    }

    fn put_in_force(&mut self, digest: u64) {
        self.used = digest;
        self.next = self.next.map(|next| next.filter(|next| *next != digest));
    }
}

/// A script on its way to a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScriptParcel {
    pub(super) to: u16,
    digest: u64,
    due: Instant,
}

impl ScriptLab {
    /// What the component of `node` evaluated last.
    pub(super) fn picture(&self, node: Rank) -> Option<&Facts> {
        self.members.get(&node.0).map(|it| &*it.picture)
    }

    /// Whether a running component lacks the script in force.
    pub(super) fn is_lacking_script(&self) -> bool {
        let runs = |node: &u16| self.net.component_of(*node).is_some();
        self.members.iter().any(|(node, it)| runs(node) && it.is_lacking())
    }

    /// A member, as node `at` knows, whose running component does not hold a script.
    pub(super) fn lacking(&self, at: u16, digest: u64) -> Option<u16> {
        let database = self.net.component_of(at)?.database();
        let lacks = |node: &u16| {
            let runs = self.net.component_of(*node).is_some_and(|it| {
                database.standing(Rank(*node)).is_up()
                    && database.standing(Rank(*node)).incarnation == it.incarnation()
            });
            runs && !self.saved[usize::from(*node)].holds(digest)
        };
        (0..self.boots.len() as u16).find(lacks)
    }

    /// Where the alpha-count of a task is another one than its node has computed.
    pub(super) fn alpha_that_differs(&self) -> Option<String> {
        let of = |number: &u8, task: &GuardedTask| {
            let (node, place) = (Rank(task.node().into()), usize::from(task.place()));
            let alpha = task.alpha()?;
            self.net.components().find_map(|it| {
                let record = it.database().record(node)?;
                let has = record.tasks().get(place)?.alpha;
                let me = it.me();
                (has != alpha)
                    .then(|| format!("T{number} has {alpha}, and at node {me} it is {has}"))
            })
        };
        self.tasks.iter().find_map(|(number, task)| of(number, task))
    }

    /// The scripts that running components use.
    pub(super) fn used(&self) -> impl Iterator<Item = (Rank, u64)> {
        let runs = |node: &u16| self.net.component_of(*node).is_some();
        let members = self.members.iter().filter(move |(node, _)| runs(node));
        members.map(|(node, it)| (Rank(*node), it.script.used()))
    }

    /// The operator's client hands `image` to the manager, whose supervisor holds it first.
    pub(super) fn reload_at(&mut self, at: Rank, image: &[u8]) -> Result<(), ReloadRefused> {
        let (digest, now) = (digest_of(image), Instant(self.net.now));
        let machine = self.net.component_of(at.0).ok_or(ReloadRefused::NotManager)?;
        let member = self.members.get_mut(&at.0).ok_or(ReloadRefused::NotManager)?;
        if member.script.begin_reload(machine, digest, now)? {
            self.programs.insert(digest, verified(image));
            self.saved[usize::from(at.0)].hold(digest);
        }
        Ok(())
    }

    /// The component of `node` does what is due.
    pub(super) fn step_member(&mut self, node: u16) {
        let Some(of) = self.net.component_of(node).map(|it| it.incarnation()) else { return };
        if self.members.get(&node).is_none_or(|it| it.of != of) {
            self.begin_member(node, of);
        }
        self.change_tasks(node);
        self.agree(node);
        self.evaluate(node);
    }

    /// A component begins, with what its supervisor has saved.
    fn begin_member(&mut self, node: u16, of: ComponentIncarnation) {
        let (saved, nodes) = (self.saved[usize::from(node)], self.boots.len() as u16);
        let mut script = Box::new(ScriptMember::new(Rank(node), nodes, saved.used));
        saved.next.iter().flatten().for_each(|next| script.hold(*next));
        self.declare(node, saved.used);
        self.members.insert(node, LabMember { of, script, picture: Box::default() });
        let is_here = |task: &&mut GuardedTask| u16::from(task.node()) == node;
        self.tasks.values_mut().filter(is_here).for_each(GuardedTask::forget_sent);
    }

    fn declare(&mut self, node: u16, digest: u64) {
        let (program, nodes) = (&self.programs[&digest], self.boots.len() as u16);
        let done = self.net.order(node, |it, _| {
            declare(program.borrow_dependent(), it, nodes);
            Ok(())
        });
        debug_assert!(done.is_ok(), "its component has just begun");
    }

    /// The supervisor sends its component what has changed at the node's tasks.
    fn change_tasks(&mut self, node: u16) {
        let Some(member) = self.members.get(&node) else { return };
        let program = self.programs[&member.script.used()].borrow_dependent();
        for task in self.tasks.values_mut().filter(|task| u16::from(task.node()) == node) {
            let place = task.place();
            for ErrorInTransit { kind, at_us, last_us } in task.take_errors() {
                task.count_alpha(at_us);
                let done = self.net.order(node, |it, now| {
                    let own = it.database().record(it.me());
                    let alpha = own.and_then(|own| {
                        alpha_after(program, own, (it.me(), place), (last_us, at_us))
                    });
                    it.handle_change(now, Change::TaskError { task: place, kind, at_us, alpha })
                });
                debug_assert!(done.is_ok(), "the node has the task");
            }
            let answered = task.take_mark().map(|Mark { answered, judged, is_cleared }| {
                if is_cleared {
                    task.forget_alpha();
                }
                let (mark, judged) = (answered as u16, judged);
                Change::TaskAnswered { task: place, mark, judged, is_cleared }
            });
            let status = task.take_status();
            let status = status.map(|status| Change::TaskStatus { task: place, status });
            let phase = task.take_phase().map(|phase| Change::TaskPhase { task: place, phase });
            for change in answered.into_iter().chain(status).chain(phase) {
                let done = self.net.change(node, change);
                debug_assert!(done.is_ok(), "the node has the task");
            }
        }
    }

    /// Does what the component of `node` needs about scripts.
    fn agree(&mut self, node: u16) {
        let now = Instant(self.net.now);
        let Some(member) = self.members.get_mut(&node) else { return };
        let Some(machine) = self.net.component_of(node) else { return };
        for step in member.script.agree(machine, now) {
            match step {
                ScriptStep::Offer { to, digest } => {
                    to.iter().for_each(|to| self.send_script(to.into(), digest));
                }
                ScriptStep::Use { digest } => {
                    self.saved[usize::from(node)].put_in_force(digest);
                    self.tell(Happening::Uses(Rank(node), digest));
                    self.declare(node, digest);
                    let program = self.programs[&digest].borrow_dependent();
                    let is_here = |task: &&mut GuardedTask| u16::from(task.node()) == node;
                    self.tasks.values_mut().filter(is_here).for_each(|it| it.redeclare(program));
                }
                ScriptStep::Want { digest } => {
                    let running = |other: &u16| self.boots[usize::from(*other)].is_some();
                    let mut others = (0..self.boots.len() as u16).filter(|it| *it != node);
                    if others.any(|it| running(&it) && self.saved[usize::from(it)].holds(digest)) {
                        self.send_script(node, digest);
                    }
                }
                ScriptStep::Change(change) => {
                    let done = self.net.change(node, change);
                    debug_assert!(done.is_ok(), "it names no task");
                }
                ScriptStep::Ended { digest, end } => self.tell(Happening::Reloaded(digest, end)),
            }
        }
    }

    /// Sends a script to a supervisor, as frames that may be lost.
    fn send_script(&mut self, to: u16, digest: u64) {
        let now = Instant(self.net.now);
        if !self.net.loses(&mut self.draws) {
            self.parcels.push(ScriptParcel { to, digest, due: now.after(WAY) });
        }
    }

    /// Supervisors hold the scripts that have arrived, and their components learn of it.
    pub(super) fn carry_scripts(&mut self) {
        let now = Instant(self.net.now);
        let is_here = |parcel: &mut ScriptParcel| parcel.due <= now;
        let arrived: Vec<_> = self.parcels.extract_if(.., is_here).collect();
        for ScriptParcel { to, digest, .. } in arrived {
            let saved = &mut self.saved[usize::from(to)];
            if self.boots[usize::from(to)].is_none() {
                continue;
            }
            saved.hold(digest);
            if let Some(member) = self.members.get_mut(&to) {
                member.script.hold(digest);
            }
        }
    }

    /// Evaluates if this node manages and there is news, and sends what is ordered.
    fn evaluate(&mut self, node: u16) {
        let now = Instant(self.net.now);
        let Some(member) = self.members.get_mut(&node) else { return };
        let Some(machine) = self.net.component_of(node) else { return };
        if !member.script.is_due(machine, now) {
            return;
        }
        let digest = member.script.used();
        let program = self.programs[&digest].borrow_dependent();
        *member.picture = member.script.picture(program, machine, now);
        let trace = member.script.evaluate(program, machine, now).expect("it has room for it");
        let others: Vec<_> = std::iter::from_fn(|| member.script.poll_order()).collect();
        let mut events = Vec::new();
        events.extend(trace.map(|trace| Happening::Evaluated(Rank(node), digest, trace)));
        for placed in others {
            events.push(Happening::Ordered(placed));
            let is_done = match placed.order {
                Order::Node { node: of, verb } => self.net.order_node(node, of.into(), verb),
                // The manager's own node writes to the chronicle, and would run the program.
                _ => true,
            };
            events.extend(is_done.then_some(Happening::Obeyed(placed)));
            if !is_done {
                member.script.handle_refused(&placed);
            }
        }
        while let Some(order) = self
            .net
            .component_of(node)
            .and_then(|machine| member.script.poll_task_order(machine, now))
        {
            if !order.is_repeated {
                events.push(Happening::Ordered(order.placed));
                self.given.insert(order.placed.id, order.placed);
            }
            let sent = self.net.order(node, |it, now| order_task(it, program, &order, now));
            debug_assert!(matches!(sent, Ok(()) | Err(Reject::NotManager)), "{order:?}: {sent:?}");
        }
        events.into_iter().for_each(|what| self.tell(what));
    }
}

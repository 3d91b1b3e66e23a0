//! The manager's side: what it knows, and how its orders reach the nodes.

use weft_core::dirnet::Level;
use weft_core::ids::{Rank, Term};
use weft_core::recovery::{
    Evaluator, Judgement, Order, OrderId, Picture, Placed, TASKS_MAX, TaskOrder, Verb,
};
use weft_core::time::{Duration, Instant};

use super::{Happening, ScriptLab};
use crate::dirnet::net::Machine;
use crate::dirnet::strike::MS;
use crate::draws::Draws;

/// How long an order takes to its node.
const WAY: Duration = Duration(2 * MS);
type Facts = Picture<8, TASKS_MAX>;

/// What a manager keeps of its term.
pub(super) type Acting = Evaluator<8, TASKS_MAX>;

/// An order on its way to the node of its task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel {
    pub(super) to: u16,
    order: TaskOrder,
    due: Instant,
}

/// Ways of orders that lose some and delay others.
#[derive(Debug)]
pub(super) struct Rough {
    pub(super) draws: Draws,
    /// The longest delay, in ns.
    pub(super) late_max: u64,
    /// How many are lost, per thousand.
    pub(super) lost: u64,
}

impl ScriptLab<'_> {
    /// Every acting manager evaluates; nodes that no longer manage forget.
    pub(super) fn evaluate(&mut self) {
        let now = Instant(self.net.now);
        let program = self.program;
        let pictures = self.net.acting().map(|it| {
            let term = it.term();
            let term = Term(u64::from(term.epoch) << 16 | u64::from(term.claimant.0));
            (it.me(), term, self.picture(it, now))
        });
        let pictures: Vec<(Rank, Term, Facts)> = pictures.collect();
        self.acting.retain(|node, _| pictures.iter().any(|(at, ..)| at.0 == *node));
        for (at, term, picture) in pictures {
            let fresh = || Box::new(Acting::new(term));
            let acting = self.acting.entry(at.0).or_insert_with(fresh);
            // Variables, PAUSEs and repetitions end with the term (RL-3).
            if acting.term() != term {
                *acting = fresh();
            }
            if let Ok(Some(trace)) = acting.handle_picture(program, &picture, now) {
                self.tell(Happening::Evaluated(at, trace));
            }
            self.give(at, now);
        }
    }

    /// What `manager` knows: nodes by its database, tasks by their supervisors.
    fn picture(&self, manager: &Machine, now: Instant) -> Facts {
        let mut picture = Facts { manager: manager.me().0 as u8, ..Facts::default() };
        for (fact, node) in picture.nodes.iter_mut().zip(0..self.boots.len() as u16) {
            let standing = manager.database().standing(Rank(node));
            fact.is_member = standing.is_up();
            fact.is_removed = standing.is_known() && standing.level == Level::Down;
            fact.is_isolated = standing.isolation().is_some();
            fact.has_rebooted = standing.is_up() && standing.incarnation.boot.0 > 1;
        }
        for (number, task) in &self.tasks {
            picture.tasks[usize::from(*number)] = task.fact(now);
        }
        picture
    }

    /// Carries what `manager` has ordered: also to a node that is down, whose next boot judges it.
    fn give(&mut self, manager: Rank, now: Instant) {
        let due = now.after(WAY);
        while let Some(placed) = self.acting.get_mut(&manager.0).and_then(|it| it.poll_order()) {
            self.tell(Happening::Ordered(placed));
            match placed.order {
                Order::Node { node, verb } => self.order_node(manager, node, verb, placed),
                // The manager's own node writes to the chronicle, and would run the program.
                _ => self.tell(Happening::Obeyed(placed)),
            }
        }
        let Some(acting) = self.acting.get_mut(&manager.0) else { return };
        let tasks = &self.tasks;
        let is_judged = |order: &TaskOrder, id: OrderId| {
            tasks.get(&order.task).is_none_or(|task| id <= task.judged())
        };
        let orders: Vec<_> =
            std::iter::from_fn(|| acting.poll_task_order(now, is_judged)).collect();
        for order in orders {
            if !order.is_repeated {
                self.tell(Happening::Ordered(order.placed));
            }
            self.send(Parcel { to: order.node.into(), order, due });
        }
    }

    /// Orders about nodes go the way of an operator's (RL-6).
    fn order_node(&mut self, manager: Rank, node: u8, verb: Verb, placed: Placed) {
        let to = u16::from(node);
        let is_obeyed = match verb {
            Verb::Restart => self.net.restart(manager.0, to).is_ok(),
            Verb::Stop | Verb::Isolate => {
                self.net.isolate(manager.0, to);
                true
            }
            Verb::Start | Verb::Release => {
                self.net.release(to);
                true
            }
        };
        if is_obeyed {
            self.tell(Happening::Obeyed(placed));
        }
    }

    /// Sends an order. What one node sends to another arrives in its order, as over a lane.
    fn send(&mut self, mut parcel: Parcel) {
        if let Some(Rough { draws, late_max, lost }) = &mut self.rough {
            if draws.chance(*lost, 1_000) {
                return;
            }
            parcel.due = parcel.due.after(Duration(draws.below(*late_max)));
        }
        let is_behind = |other: &&Parcel| {
            (other.to, other.order.placed.id.term) == (parcel.to, parcel.order.placed.id.term)
        };
        let last = self.parcels.iter().filter(is_behind).map(|other| other.due).max();
        parcel.due = last.map_or(parcel.due, |last| parcel.due.max(last));
        self.parcels.push(parcel);
    }

    /// Hands over the orders that have arrived.
    pub(super) fn deliver(&mut self) {
        let now = Instant(self.net.now);
        let (arrived, left) = std::mem::take(&mut self.parcels)
            .into_iter()
            .partition::<Vec<_>, _>(|parcel| parcel.due <= now);
        self.parcels = left;
        for Parcel { to, order: TaskOrder { placed, task, seen, .. }, .. } in arrived {
            let runs = self.boots.get(usize::from(to)).is_some_and(Option::is_some);
            let mark = match placed.order {
                Order::Task { mark, .. }
                | Order::Answer { mark, .. }
                | Order::Clear { mark, .. }
                | Order::Builtin { mark, .. } => Some(mark),
                _ => None,
            };
            let Some(found) = self.tasks.get_mut(&task).filter(|_| runs) else { continue };
            let judgement = match mark {
                Some(mark) => found.judge(placed.id, seen, mark),
                None => found.judge_notice(placed.id),
            };
            match judgement {
                Judgement::Obey => self.obey(placed),
                Judgement::Outdated => self.tell(Happening::Outdated(placed)),
                Judgement::Repeated => {}
            }
        }
    }
}

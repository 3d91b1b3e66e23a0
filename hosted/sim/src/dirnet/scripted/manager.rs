//! The manager's side: when a script is evaluated, and how its orders reach the nodes.

use weft_core::dirnet::Level;
use weft_core::ids::{Rank, Term};
use weft_core::recovery::{
    Judgement, Order, Picture, Placed, Program, Progress, Rint, TASKS_MAX, Trace, Verb,
};
use weft_core::time::{Duration, Instant};

use super::{Happening, ScriptLab};
use crate::dirnet::net::Machine;
use crate::dirnet::strike::MS;
use crate::draws::Draws;

/// The most evaluations are one in this time; all news since the last are one batch (RL-1).
const BATCH: Duration = Duration(10 * MS);
/// How long an order takes to its node.
const WAY: Duration = Duration(2 * MS);
/// How long a manager waits for a judgement until it repeats an order (RL-3).
const AGAIN: Duration = Duration(100 * MS);

type Facts = Picture<8, TASKS_MAX>;

/// What a manager keeps of its term.
pub(super) struct Acting {
    term: Term,
    rint: Box<Rint<8, TASKS_MAX>>,
    /// What it saw last, without what time alone changes.
    seen: Option<Facts>,
    evaluated: Instant,
    /// Orders about tasks that are not known to be judged.
    pending: Vec<Parcel>,
}

/// An order on its way to the node of its task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel {
    pub(super) to: u16,
    placed: Placed,
    task: u8,
    /// How many errors of the task were answered in the picture.
    seen: u32,
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

impl Acting {
    fn new(term: Term) -> Self {
        let (rint, pending) = (Box::default(), Vec::new());
        Self { term, rint, seen: None, evaluated: Instant(0), pending }
    }

    /// Evaluates if there is news, or a PAUSE is over.
    fn evaluate(
        &mut self,
        program: &Program<'_>,
        picture: &Facts,
        now: Instant,
    ) -> Option<(Trace, Vec<Placed>)> {
        if self.seen.is_some() && now.since(self.evaluated) < BATCH {
            return None;
        }
        let mut news = *picture;
        news.tasks.iter_mut().for_each(|fact| fact.alpha = 0);
        let is_resumed = self.rint.resume(program, picture, now) == Ok(true);
        // The list behind a PAUSE goes first: it is older than the news.
        if !is_resumed {
            if self.seen == Some(news) {
                return None;
            }
            self.seen = Some(news);
            self.rint.evaluate(program, picture, self.term, now).ok()?;
        }
        self.evaluated = now;
        let words = program.code().header().words.max(1);
        let Ok(Progress::Done(trace)) = self.rint.step(program, words) else { return None };
        let orders = std::iter::from_fn(|| self.rint.poll_order()).collect();
        Some((trace, orders))
    }
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
            let acting = self.acting.entry(at.0).or_insert_with(|| Acting::new(term));
            // Variables, PAUSEs and repetitions end with the term (RL-3).
            if acting.term != term {
                *acting = Acting::new(term);
            }
            if let Some((trace, orders)) = acting.evaluate(program, &picture, now) {
                self.tell(Happening::Evaluated(at, trace));
                orders.into_iter().for_each(|placed| self.give(at, &picture, placed));
            }
            self.repeat(at.0, now);
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

    fn give(&mut self, manager: Rank, picture: &Facts, placed: Placed) {
        self.tell(Happening::Ordered(placed));
        let task = match placed.order {
            Order::Task { task, .. }
            | Order::Answer { task, .. }
            | Order::Clear { task, .. }
            | Order::Builtin { task, .. } => task,
            Order::Send { to, .. } | Order::Notice { to, .. } => to,
            Order::Node { node, verb } => return self.order_node(manager, node, verb, placed),
            // The manager's own node writes to the chronicle, and would run the program.
            Order::Log { .. } | Order::Call { .. } => {
                return self.tell(Happening::Obeyed(placed));
            }
        };
        let Some((to, _)) = self.program.place_of(task) else { return };
        let due = Instant(self.net.now).after(WAY);
        let seen = picture.tasks[usize::from(task)].answered;
        let parcel = Parcel { to: to.into(), placed, task, seen, due };
        self.send(parcel);
        let is_told_once = matches!(placed.order, Order::Send { .. } | Order::Notice { .. });
        if let Some(acting) = self.acting.get_mut(&manager.0)
            && !is_told_once
        {
            acting.pending.push(Parcel { due: due.after(AGAIN), ..parcel });
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

    /// Sends orders again that were not judged, also to a node that is down: its next boot judges
    /// them.
    fn repeat(&mut self, manager: u16, now: Instant) {
        let Some(acting) = self.acting.get_mut(&manager) else { return };
        let tasks = &self.tasks;
        acting.pending.retain(|parcel| {
            let judged = tasks.get(&parcel.task).map(super::GuardedTask::judged);
            judged.is_some_and(|judged| judged < parcel.placed.id)
        });
        let mut again = Vec::new();
        for parcel in acting.pending.iter_mut().filter(|parcel| parcel.due <= now) {
            parcel.due = now.after(AGAIN);
            again.push(Parcel { due: now.after(WAY), ..*parcel });
        }
        again.into_iter().for_each(|parcel| self.send(parcel));
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
            (other.to, other.placed.id.term) == (parcel.to, parcel.placed.id.term)
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
        for Parcel { to, placed, task, seen, .. } in arrived {
            let runs = self.boots.get(usize::from(to)).is_some_and(Option::is_some);
            let mark = match placed.order {
                Order::Task { mark, .. }
                | Order::Answer { mark, .. }
                | Order::Clear { mark, .. }
                | Order::Builtin { mark, .. } => Some(mark),
                _ => None,
            };
            let Some(found) = self.tasks.get_mut(&task).filter(|_| runs) else { continue };
            let judgement = mark.map(|mark| found.judge(placed.id, seen, mark));
            match judgement {
                None | Some(Judgement::Obey) => self.obey(placed),
                Some(Judgement::Outdated) => self.tell(Happening::Outdated(placed)),
                Some(Judgement::Repeated) => {}
            }
        }
    }
}

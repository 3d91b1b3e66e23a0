//! The recovery script at a component of the DIR net: which one is in force, what the manager
//! evaluates it on, and how its orders reach their nodes.
//!
//! ```text
//!   database ─▶ Picture ─▶ Evaluator ─┬─▶ orders about tasks ─▶ GUARD, until the entry shows it
//!      │                              └─▶ orders about nodes ─▶ the component, once
//!      └─▶ held, used ─▶ Reload ─▶ the latest "used" of all entries is in force
//! ```
//!
//! [`recovery`](crate::recovery) does not know the DIR net, and [`dirnet`](crate::dirnet)
//! no script; a [`ScriptMember`] knows both. Images are the caller's: a member knows them by their
//! digests. Every member keeps the image of the script in force; only the manager evaluates it, and
//! what it knows of its term ends with the term. A node says in its own entry which script it holds
//! and which it uses, so nothing else is repeated when a frame is lost, and a manager that takes
//! over knows as much as the one before (RL-12).
//!
//! The caller drains the component's outputs behind every call that changes it.

mod agree;
mod facts;
mod orders;

pub use agree::{ReloadEnd, ReloadRefused, ScriptStep};
pub use facts::{SILENT, TaskStatus, alpha_after};
pub use orders::{action_of, declare, order_node, order_task};

use crate::dirnet::{Component, Role};
use crate::ids::Rank;
use crate::recovery::{
    Evaluator, OrderId, Placed, Program, Reload, RintError, TaskOrder, Trace, mutants,
};
use crate::time::{Duration, Instant};

/// A member's part in the recovery script of clusters of up to `NODES` nodes, whose tasks have
/// numbers below `NUMBERS`.
#[derive(Clone, Debug, Hash)]
pub struct ScriptMember<const NODES: usize, const NUMBERS: usize> {
    me: Rank,
    nodes: u16,
    /// What is kept of the term in which this node manages.
    acting: Option<Evaluator<NODES, NUMBERS>>,
    /// The database that was evaluated last.
    digest: u32,
    /// The script cannot be evaluated, which only another one, or another database, changes.
    is_broken: bool,
    /// For each number of a task, how many errors it has had, and when the last was learnt of.
    learnt: [(u16, Instant); NUMBERS],
    /// The script that is used, by its digest.
    used: u64,
    /// The one that is held besides.
    next: Option<u64>,
    reload: Option<Reload>,
    /// The script in force that is neither; and whether it has arrived since.
    lacking: Option<u64>,
    has_arrived: bool,
    ask_at: Instant,
}

impl<const NODES: usize, const NUMBERS: usize> ScriptMember<NODES, NUMBERS> {
    /// The member `me` of `nodes` nodes, which uses the script with digest `used` until another one
    /// is known to be in force.
    #[must_use]
    pub const fn new(me: Rank, nodes: u16, used: u64) -> Self {
        Self {
            me,
            nodes,
            acting: None,
            digest: 0,
            is_broken: false,
            learnt: [(0, Instant(0)); NUMBERS],
            used,
            next: None,
            reload: None,
            lacking: None,
            has_arrived: false,
            ask_at: Instant(0),
        }
    }

    /// The script that is used, by its digest.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// The script that is to replace it.
    #[must_use]
    pub const fn next(&self) -> Option<u64> {
        self.next
    }

    /// The script in force, if it is not used here, so this node must not evaluate.
    #[must_use]
    pub const fn lacking(&self) -> Option<u64> {
        self.lacking
    }

    /// Whether it evaluates: it manages.
    #[must_use]
    pub const fn is_acting(&self) -> bool {
        self.acting.is_some()
    }

    /// How many orders found no room; see [`Evaluator::dropped`].
    #[must_use]
    pub fn dropped(&self) -> u32 {
        self.acting.as_ref().map_or(0, Evaluator::dropped)
    }

    /// Whether [`Self::evaluate`] has something to do. Where `machine` does not manage, variables,
    /// PAUSEs and orders that are under way end.
    pub fn is_due<const TASKS: usize>(
        &mut self,
        machine: &Component<NODES, TASKS>,
        now: Instant,
    ) -> bool {
        let manages = machine.role() == Role::Manager || mutants::BACKUPS_EVALUATE.is_planted();
        if !manages || self.lacking.is_some() {
            self.acting = None;
            return false;
        }
        let term = machine.term();
        let Some(acting) = self.acting.as_ref().filter(|acting| acting.term() == term) else {
            return true;
        };
        let is_late = acting.poll_timeout().is_some_and(|due| due <= now);
        machine.database().digest() != self.digest || is_late && !self.is_broken
    }

    /// Evaluates `program`, the script in force, if there is news (RL-1). Drain
    /// [`Self::poll_order`] and [`Self::poll_task_order`] behind it.
    ///
    /// # Errors
    /// [`RintError`]: another database may change that.
    pub fn evaluate<const TASKS: usize>(
        &mut self,
        program: &Program<'_>,
        machine: &Component<NODES, TASKS>,
        now: Instant,
    ) -> Result<Option<Trace>, RintError> {
        let picture = self.picture(program, machine, now);
        self.digest = machine.database().digest();
        let term = machine.term();
        // Variables, PAUSEs and repetitions end with the term (RL-3).
        let acting = self.acting.take().filter(|acting| acting.term() == term);
        let acting = self.acting.insert(acting.unwrap_or_else(|| Evaluator::new(term)));
        let evaluated = acting.handle_picture(program, &picture, now);
        self.is_broken = evaluated.is_err();
        evaluated
    }

    /// The next order about anything but a task. It is given once.
    pub fn poll_order(&mut self) -> Option<Placed> {
        self.acting.as_mut()?.poll_order()
    }

    /// The component has refused an order about a node: what it was to answer stays unanswered.
    /// Call it before [`Self::poll_task_order`].
    pub fn handle_refused(&mut self, placed: &Placed) {
        self.acting.iter_mut().for_each(|acting| acting.handle_refused(placed));
    }

    /// The next order about a task that is due, for the first time or again; see [`order_task`].
    pub fn poll_task_order<const TASKS: usize>(
        &mut self,
        machine: &Component<NODES, TASKS>,
        now: Instant,
    ) -> Option<TaskOrder> {
        let is_judged = |order: &TaskOrder, id: OrderId| {
            let record = machine.database().record(Rank(order.node.into()));
            record.is_some_and(|record| id <= record.judged)
        };
        self.acting.as_mut()?.poll_task_order(now, is_judged)
    }

    /// When there is something to do if no input comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let acting = self.acting.as_ref().filter(|_| !self.is_broken);
        let acting = acting.and_then(Evaluator::poll_timeout);
        let reload = self.reload.as_ref().map(Reload::poll_timeout);
        acting.into_iter().chain(reload).chain(self.lacking.map(|_| self.ask_at)).min()
    }

    /// Shifts its deadlines to an origin of time that lies `by` later.
    pub fn rebase(&mut self, by: Duration) {
        self.acting.iter_mut().for_each(|acting| acting.rebase(by));
        self.reload.iter_mut().for_each(|reload| reload.rebase(by));
        let shift = |at: &mut Instant| *at = Instant(at.0.saturating_sub(by.0));
        self.learnt.iter_mut().for_each(|(_, at)| shift(at));
        shift(&mut self.ask_at);
    }
}

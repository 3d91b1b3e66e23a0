//! When a manager evaluates, and how its orders reach the nodes: each once, whatever is lost.
//!
//! ```text
//!   picture ─▶ handle_picture ─▶ news, at most once in 10 ms ─▶ Rint ─▶ poll_order:
//!                                                                        nodes, LOG, CALL
//!                            one at a time a node, until it has judged ─▶ poll_task_order
//! ```
//!
//! An order about a task, and a notice for one, is handed out again every 100 ms until its node has
//! judged it (RL-3). The orders of a node are handed out one after the other, in their order: one
//! that has judged an order has judged all before it. Orders about other things are handed out
//! once.

use core::hash::{Hash, Hasher};

use heapless::{Deque, Vec};

use super::limits::{ORDERS_MAX, TASKS_MAX};
use super::{Order, OrderId, Picture, Placed, Program, Progress, Rint, RintError, Trace, Verb};
use crate::ids::Term;
use crate::time::{Duration, Instant};

/// The most evaluations are one in this time; all news since the last are one batch (RL-1).
const BATCH: Duration = Duration::from_millis(10);
/// How long a manager waits for a judgement until it repeats an order (RL-3).
const AGAIN: Duration = Duration::from_millis(100);
/// Room for the orders of one evaluation, and for what earlier ones have left.
const PENDING_MAX: usize = ORDERS_MAX + TASKS_MAX;

/// An order about a task, for the node of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskOrder {
    /// The order.
    pub placed: Placed,
    /// The node of the task.
    pub node: u8,
    /// The task.
    pub task: u8,
    /// How many errors of the task were answered in the picture.
    pub seen: u32,
    /// Whether it was handed out before.
    pub is_repeated: bool,
}

#[derive(Clone, Copy, Debug, Hash)]
struct Pending {
    order: TaskOrder,
    due: Instant,
}

/// An order about a node.
#[derive(Clone, Copy, Debug, Hash)]
struct NodeOrder {
    verb: Verb,
    placed: Placed,
}

/// Whether `answer`, about a task at node `at`, came with `order`, which is about that node.
fn is_answer_of((answer, at): (&Placed, u8), order: &Placed) -> bool {
    let Order::Node { node, .. } = order.order else { return false };
    let of = |placed: &Placed| (placed.id.term, placed.id.evaluation, placed.word);
    matches!(answer.order, Order::Answer { .. }) && at == node && of(answer) == of(order)
}

/// What a manager does with its script, for as long as it manages.
#[derive(Clone, Debug)]
pub struct Evaluator<const NODES: usize, const TASKS: usize> {
    term: Term,
    rint: Rint<NODES, TASKS>,
    /// The last picture, without what time alone changes.
    seen: Option<Picture<NODES, TASKS>>,
    /// Before it no further evaluation begins.
    not_before: Instant,
    /// Whether there is news that the batch has not taken in yet.
    is_due: bool,
    /// Orders about tasks that are not known to be judged.
    pending: Vec<Pending, PENDING_MAX>,
    others: Deque<Placed, ORDERS_MAX>,
    /// The last order about each node that was given.
    nodes: [Option<NodeOrder>; NODES],
    /// The last order about a node that was not given, since the same is under way.
    suppressed: Option<Placed>,
    dropped: u32,
}

/// For an explorer's states.
impl<const NODES: usize, const TASKS: usize> Hash for Evaluator<NODES, TASKS> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.term, &self.rint, &self.seen, self.not_before, self.is_due).hash(state);
        (&self.pending, &self.nodes, self.dropped).hash(state);
        self.others.iter().for_each(|placed| placed.hash(state));
    }
}

impl<const NODES: usize, const TASKS: usize> Evaluator<NODES, TASKS> {
    /// The evaluator of the manager of `term`: variables are zero, no PAUSE and no order is
    /// pending.
    #[must_use]
    pub fn new(term: Term) -> Self {
        Self {
            term,
            rint: Rint::default(),
            seen: None,
            not_before: Instant(0),
            is_due: false,
            pending: Vec::new(),
            others: Deque::new(),
            nodes: [None; NODES],
            suppressed: None,
            dropped: 0,
        }
    }

    /// The term of the manager.
    #[must_use]
    pub const fn term(&self) -> Term {
        self.term
    }

    /// Another script is in force from now on: its variables are zero, no PAUSE and no order of the
    /// last one is pending, and the next picture is news. Evaluations are numbered on, for nodes
    /// have judged what has a lower number.
    pub fn replace_script(&mut self) {
        let mut rint = core::mem::take(&mut self.rint);
        rint.forget();
        let not_before = self.not_before;
        *self = Self { rint, not_before, ..Self::new(self.term) };
        if super::mutants::NUMBERS_BEGIN_AGAIN.is_planted() {
            self.rint = Rint::default();
        }
    }

    /// How many orders found no room because nodes have not judged those before them. What they
    /// were to answer is unanswered in the next picture.
    #[must_use]
    pub const fn dropped(&self) -> u32 {
        self.dropped
    }

    /// Evaluates `program` on `picture` if there is news, or a PAUSE is over. Drain
    /// [`Self::poll_order`] before the next call.
    ///
    /// # Errors
    /// [`RintError`].
    pub fn handle_picture(
        &mut self,
        program: &Program<'_>,
        picture: &Picture<NODES, TASKS>,
        now: Instant,
    ) -> Result<Option<Trace>, RintError> {
        let mut news = *picture;
        news.tasks.iter_mut().for_each(|fact| (fact.alpha, fact.error_at) = (0, Instant(0)));
        if self.seen.is_none() && super::mutants::FIRST_PICTURE_IS_OLD.is_planted() {
            self.seen = Some(news);
        }
        self.is_due = self.seen != Some(news);
        if self.seen.is_some() && now < self.not_before {
            return Ok(None);
        }
        // The list behind a PAUSE goes first: it is older than the news.
        if !self.rint.resume(program, picture, now)? {
            if !self.is_due {
                return Ok(None);
            }
            (self.seen, self.is_due) = (Some(news), false);
            self.rint.evaluate(program, picture, self.term, now)?;
        }
        self.not_before = now.after(BATCH);
        let words = program.code().header().words.max(1);
        let Progress::Done(trace) = self.rint.step(program, words)? else {
            return Err(RintError::Broken);
        };
        while let Some(placed) = self.rint.poll_order() {
            self.take(program, picture, placed, now);
        }
        Ok(Some(trace))
    }

    fn take(
        &mut self,
        program: &Program<'_>,
        picture: &Picture<NODES, TASKS>,
        placed: Placed,
        now: Instant,
    ) {
        let task = match placed.order {
            Order::Task { task, .. }
            | Order::Answer { task, .. }
            | Order::Clear { task, .. }
            | Order::Builtin { task, .. } => task,
            Order::Send { to, .. } | Order::Notice { to, .. } => to,
            Order::Node { node, verb } => return self.take_node(node, verb, placed),
            Order::Log { .. } | Order::Call { .. } => {
                self.dropped += u32::from(self.others.push_back(placed).is_err());
                return;
            }
        };
        let Some((node, _)) = program.place_of(task) else { return };
        if self.suppressed.is_some_and(|order| is_answer_of((&placed, node), &order)) {
            return;
        }
        let seen = picture.tasks.get(usize::from(task)).map_or(0, |fact| fact.answered);
        let is_same = |TaskOrder { placed: other, seen: then, .. }: &TaskOrder| {
            (other.order, *then) == (placed.order, seen)
        };
        // The same order on the same picture, which is still under way, says all of it. Of notices
        // each is one.
        let is_notice = matches!(placed.order, Order::Send { .. } | Order::Notice { .. });
        if !is_notice && self.pending.iter().any(|other| is_same(&other.order)) {
            return;
        }
        let order = TaskOrder { placed, node, task, seen, is_repeated: false };
        self.dropped += u32::from(self.pending.push(Pending { order, due: now }).is_err());
    }

    /// Takes an order about a node, and with it the answers that follow it. Its tasks' errors stay
    /// unanswered in the picture until the node has judged those: the same order is not given again
    /// before, whichever section gives it, and answers nothing either.
    fn take_node(&mut self, node: u8, verb: Verb, placed: Placed) {
        let Some(last) = self.nodes.get_mut(usize::from(node)) else { return };
        let is_under_way = last.is_some_and(|last| {
            let of_it = |it: &TaskOrder| is_answer_of((&it.placed, it.node), &last.placed);
            last.verb == verb && self.pending.iter().any(|pending| of_it(&pending.order))
        });
        if is_under_way {
            self.suppressed = Some(placed);
        } else {
            *last = Some(NodeOrder { verb, placed });
            self.dropped += u32::from(self.others.push_back(placed).is_err());
        }
    }

    /// An order about a node was refused: what it was to answer stays unanswered. Call it before
    /// [`Self::poll_task_order`].
    pub fn handle_refused(&mut self, placed: &Placed) {
        let of_it = |it: &TaskOrder| is_answer_of((&it.placed, it.node), placed);
        self.pending.retain(|pending| !of_it(&pending.order));
    }

    /// The next order about anything but a task.
    pub fn poll_order(&mut self) -> Option<Placed> {
        self.others.pop_front()
    }

    /// The next order about a task that is due, for the first time or again. `is_judged` says
    /// whether the node of an order has judged it.
    pub fn poll_task_order(
        &mut self,
        now: Instant,
        is_judged: impl Fn(&TaskOrder, OrderId) -> bool,
    ) -> Option<TaskOrder> {
        self.pending.retain(|pending| !is_judged(&pending.order, pending.order.placed.id));
        let due = self.first_of_nodes().find(|at| self.pending[*at].due <= now)?;
        let pending = self.pending.get_mut(due)?;
        pending.due = now.after(AGAIN);
        let repeated = TaskOrder { is_repeated: true, ..pending.order };
        let order = core::mem::replace(&mut pending.order, repeated);
        if super::mutants::ORDERS_GO_ONCE.is_planted() {
            self.pending.remove(due);
        }
        Some(order)
    }

    /// Shifts its deadlines to an origin of time that lies `by` later.
    pub fn rebase(&mut self, by: Duration) {
        let shift = |at: &mut Instant| *at = Instant(at.0.saturating_sub(by.0));
        shift(&mut self.not_before);
        self.pending.iter_mut().for_each(|pending| shift(&mut pending.due));
        self.rint.rebase(by);
    }

    /// The first order of each node.
    fn first_of_nodes(&self) -> impl Iterator<Item = usize> {
        let mut asked = 0_u64;
        self.pending.iter().enumerate().filter_map(move |(at, pending)| {
            let node = 1_u64.checked_shl(pending.order.node.into()).unwrap_or_default();
            let is_first = asked & node == 0;
            asked |= node;
            is_first.then_some(at)
        })
    }

    /// When there is something to do if no picture with news comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let again = self.first_of_nodes().map(|at| self.pending[at].due).min();
        let batch = self.not_before;
        let paused = self.rint.poll_timeout().map(|due| due.max(batch));
        again.into_iter().chain(self.is_due.then_some(batch)).chain(paused).min()
    }
}

#[cfg(test)]
pub(in crate::recovery) mod tests {
    use super::super::tests::{ANY_CLUSTER, ENTRY, N1, T3, T4, facts, image, section, test};
    use super::super::{Depth, Entity, Instruction, Kind, Status, Subject, Target, Verb, verify};
    use super::*;

    const fn ms(count: u64) -> Instant {
        Instant(count * 1_000_000)
    }

    /// RESTART of what is faulty; task 3 is.
    fn restarting() -> std::vec::Vec<u8> {
        let faulty = test(Status::Faulty, Subject::Any(Kind::Task));
        let restart = Instruction::Act { verb: Verb::Restart, target: Target::Set(0) };
        image(&section(&[faulty], &[restart]))
    }

    #[test]
    fn rl1_news_are_evaluated_at_most_once_in_10_ms_and_the_same_picture_never_again() {
        let image = restarting();
        let program = verify(&image, &ANY_CLUSTER).unwrap();
        let mut evaluator = Evaluator::<4, 8>::new(Term::of_epoch(1));
        assert!(evaluator.handle_picture(&program, &facts(), ms(1)).unwrap().is_some());
        assert_eq!(evaluator.handle_picture(&program, &facts(), ms(50)), Ok(None));
        let mut news = facts();
        news.tasks[3].alpha += 1;
        assert_eq!(evaluator.handle_picture(&program, &news, ms(60)), Ok(None), "time alone");
        news.tasks[4].errors += 1;
        assert!(evaluator.handle_picture(&program, &news, ms(61)).unwrap().is_some());
        news.tasks[5].errors += 1;
        assert_eq!(evaluator.handle_picture(&program, &news, ms(62)), Ok(None), "in the batch");
        assert_eq!(evaluator.poll_timeout(), Some(ms(1)), "an order is due");
        assert!(evaluator.poll_task_order(ms(62), |_, _| true).is_none());
        assert_eq!(evaluator.poll_timeout(), Some(ms(71)), "the end of the batch");
        let trace = evaluator.handle_picture(&program, &news, ms(71)).unwrap();
        assert_eq!(trace.map(|trace| trace.number), Some(3));
    }

    #[test]
    fn rl3_an_order_is_repeated_until_it_is_judged_and_holds_up_those_behind_it() {
        let image = restarting();
        let program = verify(&image, &ANY_CLUSTER).unwrap();
        let mut evaluator = Evaluator::<4, 8>::new(Term::of_epoch(1));
        evaluator.handle_picture(&program, &facts(), ms(1)).unwrap();
        let first = evaluator.poll_task_order(ms(1), |_, _| false).unwrap();
        assert_eq!((first.task, first.node, first.seen), (3, 1, 1));
        let mut news = facts();
        news.tasks[3].errors += 1;
        evaluator.handle_picture(&program, &news, ms(20)).unwrap();
        // The next order about the task waits for the first, which is not due again yet.
        assert_eq!(evaluator.poll_task_order(ms(20), |_, _| false), None);
        assert_eq!(evaluator.poll_timeout(), Some(ms(101)));
        assert_eq!(
            evaluator.poll_task_order(ms(101), |_, _| false),
            Some(TaskOrder { is_repeated: true, ..first })
        );
        let judged = first.placed.id;
        let next = evaluator.poll_task_order(ms(102), |_, id| id <= judged).unwrap();
        assert!(next.placed.id > judged);
        assert_eq!(evaluator.poll_task_order(ms(900), |_, _| true), None);
        assert_eq!(evaluator.poll_timeout(), None);
    }

    /// The first of two orders was given before its errors were answered otherwise, and is
    /// outdated at its node; only the second is obeyed.
    #[test]
    fn rl3_the_same_order_on_another_picture_is_another_order() {
        let start = Instruction::Act { verb: Verb::Start, target: Target::One(T3) };
        let image = image(&section(&[test(Status::Present, Subject::Any(Kind::Node))], &[start]));
        let program = verify(&image, &ANY_CLUSTER).unwrap();
        let mut evaluator = Evaluator::<4, 8>::new(Term::of_epoch(1));
        evaluator.handle_picture(&program, &facts(), ms(1)).unwrap();
        let mut news = facts();
        news.tasks[3].answered = 2;
        evaluator.handle_picture(&program, &news, ms(20)).unwrap();
        let first = evaluator.poll_task_order(ms(20), |_, _| false).unwrap();
        let is_first = |_: &TaskOrder, id| id <= first.placed.id;
        let second = evaluator.poll_task_order(ms(20), is_first).unwrap();
        assert_eq!(second.placed.order, first.placed.order);
        assert_eq!((first.seen, second.seen), (1, 2));
        // On the same picture it says nothing new.
        news.tasks[5].errors += 1;
        evaluator.handle_picture(&program, &news, ms(40)).unwrap();
        let is_second = |order: &TaskOrder, id| order.task == 3 && id <= second.placed.id;
        let others = core::iter::from_fn(|| evaluator.poll_task_order(ms(40), is_second));
        assert!(others.take(9).all(|order| order.task != 3));
    }

    #[test]
    fn rl3_no_node_waits_for_the_judgement_of_another() {
        let faulty = test(Status::Faulty, Subject::Any(Kind::Task));
        let restart = Instruction::Act { verb: Verb::Restart, target: Target::Set(0) };
        let image = image(&section(&[faulty], &[restart]));
        let program = verify(&image, &ANY_CLUSTER).unwrap();
        let mut evaluator = Evaluator::<4, 8>::new(Term::of_epoch(1));
        let mut picture = facts();
        (picture.tasks[4].errors, picture.tasks[5].errors) = (1, 1);
        evaluator.handle_picture(&program, &picture, ms(1)).unwrap();
        let nodes = core::iter::from_fn(|| evaluator.poll_task_order(ms(1), |_, _| false));
        let nodes: std::vec::Vec<u8> = nodes.map(|order| order.node).collect();
        assert_eq!(nodes, [1, 2, 0]);
    }

    /// While the node is down, its tasks' errors are unanswered in each picture.
    #[test]
    fn rl4_an_order_about_a_node_is_given_again_only_once_the_node_has_judged_its_answers() {
        let restart = Instruction::Act { verb: Verb::Restart, target: Target::One(N1) };
        let image = image(&section(&[test(Status::Faulty, Subject::Any(Kind::Task))], &[restart]));
        let program = verify(&image, &ANY_CLUSTER).unwrap();
        let mut evaluator = Evaluator::<4, 8>::new(Term::of_epoch(1));
        evaluator.handle_picture(&program, &facts(), ms(1)).unwrap();
        let node = Order::Node { node: 1, verb: Verb::Restart };
        assert_eq!(evaluator.poll_order().map(|placed| placed.order), Some(node));
        let answer = evaluator.poll_task_order(ms(1), |_, _| false).unwrap();
        assert_eq!(answer.placed.order, Order::Answer { task: 3, mark: 2 });
        let mut news = facts();
        news.nodes[1].is_member = false;
        evaluator.handle_picture(&program, &news, ms(20)).unwrap();
        assert_eq!(evaluator.poll_order(), None, "it is under way");
        // It is judged, and the task fails once more.
        assert_eq!(evaluator.poll_task_order(ms(30), |_, _| true), None);
        (news.tasks[3].answered, news.tasks[3].errors) = (2, 3);
        evaluator.handle_picture(&program, &news, ms(40)).unwrap();
        assert_eq!(evaluator.poll_order().map(|placed| placed.order), Some(node));
    }

    /// Two tasks of a node that fail, with a section each: the node is ordered once for both.
    #[test]
    fn rl4_another_section_does_not_order_the_node_again_while_answers_are_under_way() {
        let n2 = Entity { kind: Kind::Node, id: 2 };
        let restart = |of| Instruction::Act { verb: Verb::Restart, target: Target::One(of) };
        let faulty = |of| test(Status::Faulty, Subject::One(of));
        let mut code = section(&[faulty(T3)], &[restart(N1), restart(n2)]);
        code.pop();
        let end = ENTRY + 2 * code.len() as u16 - 1;
        code.push(Instruction::Section { number: 2, depth: Depth::Top, end });
        code.extend([faulty(T4), Instruction::JumpIfFalse(end), restart(n2), Instruction::End]);
        let image = image(&code);
        let program = verify(&image, &ANY_CLUSTER).unwrap();
        let mut evaluator = Evaluator::<4, 8>::new(Term::of_epoch(1));
        let mut picture = facts();
        picture.tasks[4].errors = 1;
        evaluator.handle_picture(&program, &picture, ms(1)).unwrap();
        let orders = core::iter::from_fn(|| evaluator.poll_order());
        let orders: std::vec::Vec<Placed> = orders.collect();
        assert_eq!(orders.len(), 2, "{orders:?}");
        // The first is refused: only its own answer goes with it.
        evaluator.handle_refused(&orders[0]);
        let answer = evaluator.poll_task_order(ms(1), |_, _| false).unwrap();
        assert_eq!((answer.node, answer.placed.order), (2, Order::Answer { task: 4, mark: 1 }));
        assert_eq!(evaluator.poll_task_order(ms(1), |_, _| false), None);
        picture.tasks[3].answered = 2;
        evaluator.handle_picture(&program, &picture, ms(20)).unwrap();
        assert_eq!(evaluator.poll_order(), None, "the second is under way");
        assert_eq!(evaluator.poll_task_order(ms(20), |_, _| false), None, "so is its answer");
    }

    /// News that never end must not hold up what a PAUSE has put off.
    #[test]
    fn rl1_a_list_behind_a_pause_goes_before_the_news() {
        let list = [
            Instruction::Pause { ms: 20, end: ENTRY + 5 },
            Instruction::Act { verb: Verb::Stop, target: Target::One(T4) },
        ];
        let image = image(&section(&[test(Status::Faulty, Subject::Any(Kind::Task))], &list));
        let program = verify(&image, &ANY_CLUSTER).unwrap();
        let mut evaluator = Evaluator::<4, 8>::new(Term::of_epoch(1));
        evaluator.handle_picture(&program, &facts(), ms(1)).unwrap();
        let mut news = facts();
        news.tasks[5].errors += 1;
        let listed = evaluator.handle_picture(&program, &news, ms(30)).unwrap().unwrap();
        assert_eq!((listed.number, listed.orders), (2, 1));
        assert_eq!(evaluator.poll_timeout(), Some(ms(1)), "the order, and the news behind it");
        let next = evaluator.handle_picture(&program, &news, ms(40)).unwrap().unwrap();
        assert_eq!(next.number, 3);
    }

    /// Its numbers go on: orders of the term with lower ones count as judged.
    #[test]
    pub(in crate::recovery) fn rl12_the_next_script_begins_afresh_and_its_orders_are_later() {
        let image = restarting();
        let program = verify(&image, &ANY_CLUSTER).unwrap();
        let mut evaluator = Evaluator::<4, 8>::new(Term::of_epoch(1));
        evaluator.handle_picture(&program, &facts(), ms(1)).unwrap();
        let old = evaluator.poll_task_order(ms(1), |_, _| false).unwrap();
        evaluator.replace_script();
        assert_eq!(evaluator.poll_task_order(ms(500), |_, _| false), None, "of the old script");
        // The same picture is news for another script.
        assert!(evaluator.handle_picture(&program, &facts(), ms(12)).unwrap().is_some());
        let new = evaluator.poll_task_order(ms(12), |_, id| id <= old.placed.id);
        assert!(new.is_some_and(|new| new.placed.id > old.placed.id));
    }
}

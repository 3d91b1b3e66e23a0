//! The interpreter: a verified script, evaluated on one frozen picture.
//!
//! ```text
//!   evaluate(program, picture) ─▶ step(budget) … ─▶ Done(trace)
//!                                      │
//!                                      └─▶ poll_order: orders, then DEFAULT for the unanswered
//!   poll_timeout ─▶ resume(program, picture): what stands behind a PAUSE
//! ```
//!
//! The same image, picture and variables give the same orders. The picture is the interpreter's own
//! copy, so nothing that an evaluation orders changes what it sees (RL-2).

mod act;
mod look;

use core::fmt;
use core::hash::{Hash, Hasher};

use heapless::{Deque, Vec};

use super::limits::{NODES_MAX, ORDERS_MAX, PAUSES_MAX, SETS_MAX, STACK_MAX, TASKS_MAX, VARIABLES};
use super::mutants::{
    BRANCH_NOT_TAKEN, DEFAULT_FOR_ANSWERED, DIV_BY_ZERO_IS_TRUE, OPERANDS_SWAPPED,
    PAUSE_OUTLIVES_TERM,
};
use super::{
    Entity, Fallback, IdSet, Instruction, Kind, Order, OrderId, Outcome, Picture, Placed, Program,
    Subject, Trace, Verb,
};
use crate::ids::Term;
use crate::time::{Duration, Instant};

/// Why the interpreter does not do what it was asked for. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RintError {
    /// An evaluation is under way, or its orders have not been taken.
    Busy,
    /// The program declares more nodes or tasks than the interpreter has room for.
    TooLarge,
    /// Nothing is under way.
    Idle,
    /// The program is not the one that began, or it was not verified.
    Broken,
}

impl fmt::Display for RintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "an evaluation is under way; run it to its end and take its orders",
            Self::TooLarge => "the program has more nodes or tasks than this interpreter",
            Self::Idle => "no evaluation is under way; begin one",
            Self::Broken => "the program is not the one that the evaluation began with",
        })
    }
}

impl core::error::Error for RintError {}

/// How far an evaluation has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The budget is used up; go on with the next call.
    More,
    /// It has ended.
    Done(Trace),
}

/// The entities that satisfied an atom, and what was asked.
#[derive(Clone, Copy, Debug)]
struct Kept {
    of: Subject,
    ids: IdSet,
}

const NOTHING_KEPT: Kept = Kept { of: Subject::Any(Kind::Task), ids: IdSet::EMPTY };

/// What stands behind a PAUSE.
#[derive(Clone, Copy, Debug, Hash)]
struct Continuation {
    due: Instant,
    word: u16,
    end: u16,
    section: u16,
}

/// An evaluation that is under way.
#[derive(Clone, Debug)]
struct Run {
    source: u64,
    now: Instant,
    word: u16,
    /// Where the rest of a list ends; none for a whole evaluation.
    until: Option<u16>,
    section: u16,
    section_end: u16,
    /// The first entity of the order before, which `AND WARN` is about.
    about: Option<Entity>,
    trace: Trace,
}

/// What ends a section early.
enum Stop {
    /// An overflow, or a division by zero.
    Fault,
    /// One order more than are allowed.
    TooManyOrders,
    /// No verified program does this.
    Broken,
}

/// An interpreter for clusters of up to `NODES` nodes and scripts with task numbers below `TASKS`.
#[derive(Clone, Debug)]
pub struct Rint<const NODES: usize, const TASKS: usize> {
    picture: Picture<NODES, TASKS>,
    term: Term,
    evaluations: u32,
    stack: [i32; STACK_MAX],
    depth: usize,
    sets: [Kept; SETS_MAX],
    variables: [i32; VARIABLES],
    continuations: Vec<Continuation, PAUSES_MAX>,
    run: Option<Run>,
    orders: Deque<Placed, ORDERS_MAX>,
    /// How many orders of this evaluation have an identity.
    numbered: u16,
    ordered_tasks: IdSet,
    ordered_nodes: IdSet,
    answered: IdSet,
    /// The tasks that DEFAULT answers, once an evaluation has ended.
    unanswered: IdSet,
    fallback: Fallback,
}

impl<const NODES: usize, const TASKS: usize> Default for Rint<NODES, TASKS> {
    fn default() -> Self {
        const { assert!(NODES <= NODES_MAX && TASKS <= TASKS_MAX, "more than an image can name") };
        Self {
            picture: Picture::default(),
            term: Term::default(),
            evaluations: 0,
            stack: [0; STACK_MAX],
            depth: 0,
            sets: [NOTHING_KEPT; SETS_MAX],
            variables: [0; VARIABLES],
            continuations: Vec::new(),
            run: None,
            orders: Deque::new(),
            numbered: 0,
            ordered_tasks: IdSet::EMPTY,
            ordered_nodes: IdSet::EMPTY,
            answered: IdSet::EMPTY,
            unanswered: IdSet::EMPTY,
            fallback: Fallback::Builtin,
        }
    }
}

/// For an explorer's states, between evaluations: the next one begins with a picture of its own.
impl<const NODES: usize, const TASKS: usize> Hash for Rint<NODES, TASKS> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.term, self.evaluations, &self.variables, &self.continuations).hash(state);
    }
}

impl<const NODES: usize, const TASKS: usize> Rint<NODES, TASKS> {
    /// Begins an evaluation of `program` on `picture`, by the manager of `term`. In another term
    /// than the last, variables begin at zero and no PAUSE is pending.
    ///
    /// # Errors
    /// [`RintError::Busy`], [`RintError::TooLarge`].
    pub fn evaluate(
        &mut self,
        program: &Program<'_>,
        picture: &Picture<NODES, TASKS>,
        term: Term,
        now: Instant,
    ) -> Result<(), RintError> {
        self.admit(program)?;
        if term != self.term {
            self.forget();
            self.term = term;
        }
        self.picture = *picture;
        self.fallback = program.fallback();
        self.begin(program, now, program.entry, None, 0);
        Ok(())
    }

    /// Begins the first list that waits behind a PAUSE whose time is over, on a new picture.
    /// Returns whether there is one.
    ///
    /// # Errors
    /// [`RintError::Busy`], [`RintError::TooLarge`].
    pub fn resume(
        &mut self,
        program: &Program<'_>,
        picture: &Picture<NODES, TASKS>,
        now: Instant,
    ) -> Result<bool, RintError> {
        self.admit(program)?;
        let due = self.continuations.iter().position(|waiting| waiting.due <= now);
        let Some(due) = due else { return Ok(false) };
        let Continuation { word, end, section, .. } = self.continuations.remove(due);
        self.picture = *picture;
        self.begin(program, now, word, Some(end), section);
        Ok(true)
    }

    fn admit(&self, program: &Program<'_>) -> Result<(), RintError> {
        if self.run.is_some() || !self.orders.is_empty() || !self.unanswered.is_empty() {
            return Err(RintError::Busy);
        }
        let nodes = usize::from(program.code().header().nodes);
        let fits = nodes <= NODES && program.tasks().without(&IdSet::first(TASKS)).is_empty();
        if fits { Ok(()) } else { Err(RintError::TooLarge) }
    }

    fn begin(
        &mut self,
        program: &Program<'_>,
        now: Instant,
        word: u16,
        until: Option<u16>,
        section: u16,
    ) {
        // The list behind a PAUSE has a number of its own, too, so no two orders share an identity.
        self.evaluations = self.evaluations.wrapping_add(1);
        self.numbered = 0;
        self.depth = 0;
        self.sets = [NOTHING_KEPT; SETS_MAX];
        self.ordered_tasks = IdSet::EMPTY;
        self.ordered_nodes = IdSet::EMPTY;
        self.answered = IdSet::EMPTY;
        let trace = Trace { term: self.term, number: self.evaluations, ..Trace::default() };
        let section_end = until.unwrap_or(word);
        let source = program.code().header().source;
        self.run = Some(Run { source, now, word, until, section, section_end, about: None, trace });
    }

    /// Ends what is under way, pending PAUSEs and orders that were not taken, and sets the
    /// variables to zero: for another program, or at the end of a term.
    pub fn forget(&mut self) {
        let keep = PAUSE_OUTLIVES_TERM.is_planted().then(|| self.continuations.clone());
        let (evaluations, term) = (self.evaluations, self.term);
        *self = Self { evaluations, term, ..Self::default() };
        self.continuations = keep.unwrap_or_default();
    }

    /// The next order, in the order of the script; those of DEFAULT come last.
    pub fn poll_order(&mut self) -> Option<Placed> {
        if let Some(placed) = self.orders.pop_front() {
            return Some(placed);
        }
        let task = self.unanswered.pop()?;
        let mark = self.picture.tasks[usize::from(task)].errors;
        let order = match self.fallback {
            Fallback::Builtin => Order::Builtin { task, mark },
            Fallback::Restart => Order::Task { task, verb: Verb::Restart, mark },
            Fallback::Kill => Order::Task { task, verb: Verb::Stop, mark },
            Fallback::Nothing => Order::Answer { task, mark },
        };
        Some(Placed { id: self.next_id(), order, section: 0, word: 0 })
    }

    fn next_id(&mut self) -> OrderId {
        let id = OrderId { term: self.term, evaluation: self.evaluations, index: self.numbered };
        self.numbered = self.numbered.saturating_add(1);
        id
    }

    /// When the first PAUSE is over.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.continuations.iter().map(|waiting| waiting.due).min()
    }

    /// Shifts the ends of PAUSEs to an origin of time that lies `by` later.
    pub(super) fn rebase(&mut self, by: Duration) {
        for waiting in &mut self.continuations {
            waiting.due = Instant(waiting.due.0.saturating_sub(by.0));
        }
    }

    /// The value of variable `number`, 0 for A; 0 if there is no such variable.
    #[must_use]
    pub fn variable(&self, number: u8) -> i32 {
        self.variables.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// Runs at most `budget` words.
    ///
    /// # Errors
    /// [`RintError::Idle`]; [`RintError::Broken`] with another program than the one that began.
    pub fn step(&mut self, program: &Program<'_>, budget: u16) -> Result<Progress, RintError> {
        let Some(mut run) = self.run.take() else { return Err(RintError::Idle) };
        if run.source != program.code().header().source {
            self.run = Some(run);
            return Err(RintError::Broken);
        }
        for _ in 0..budget {
            let is_over = run.until.is_some_and(|end| run.word >= end);
            let next = program.instruction(run.word);
            let Some(next) = next.filter(|next| !is_over && *next != Instruction::End) else {
                return Ok(Progress::Done(self.finish(program, run)));
            };
            run.trace.steps = run.trace.steps.saturating_add(1);
            if run.trace.steps > program.code().header().words {
                return Err(RintError::Broken);
            }
            run.word += 1;
            match self.execute(program, &mut run, next) {
                Ok(()) => {}
                Err(Stop::Fault) => {
                    run.trace.faults = run.trace.faults.saturating_add(1);
                    self.depth = 0;
                    run.word = run.section_end;
                }
                Err(Stop::TooManyOrders) => {
                    run.trace.outcome = Outcome::TooManyOrders;
                    return Ok(Progress::Done(self.finish(program, run)));
                }
                Err(Stop::Broken) => return Err(RintError::Broken),
            }
        }
        self.run = Some(run);
        Ok(Progress::More)
    }

    fn finish(&mut self, program: &Program<'_>, run: Run) -> Trace {
        // What stands behind a PAUSE answers nothing that its evaluation left.
        if run.until.is_none() {
            let is_faulty = |task: &u8| self.picture.tasks[usize::from(*task)].is_faulty();
            let faulty: IdSet = program.tasks().iter().filter(is_faulty).collect();
            let is_unanswered = !DEFAULT_FOR_ANSWERED.is_planted();
            self.unanswered = if is_unanswered { faulty.without(&self.answered) } else { faulty };
        }
        run.trace
    }

    fn execute(
        &mut self,
        program: &Program<'_>,
        run: &mut Run,
        next: Instruction,
    ) -> Result<(), Stop> {
        match next {
            Instruction::Section { number, end, .. } => {
                // The sets of the section before stay, and no word of this one reads them.
                (run.section, run.section_end) = (number, end);
                Ok(())
            }
            Instruction::Test { status, of, set } => {
                if let Some(set) = set {
                    let ids = self.satisfying(program, status, of);
                    let kept = self.sets.get_mut(usize::from(set)).ok_or(Stop::Broken)?;
                    *kept = Kept { of, ids };
                }
                let holds = match of {
                    Subject::One(entity) => self.holds(program, status, entity),
                    Subject::Any(kind) => self.some_holds(program, status, kind),
                };
                self.push(i32::from(holds))
            }
            Instruction::Push(number) => self.push(number),
            Instruction::Load(fact) => {
                let number = self.look_up(program, fact).ok_or(Stop::Broken)?;
                self.push(number)
            }
            Instruction::Store(variable) => {
                let value = self.pop()?;
                let slot = self.variables.get_mut(usize::from(variable)).ok_or(Stop::Broken)?;
                *slot = value;
                Ok(())
            }
            Instruction::JumpIfFalse(to) => {
                if self.pop()? == 0 && !BRANCH_NOT_TAKEN.is_planted() {
                    run.word = to;
                } else {
                    // A trace has room for the first sections; the others are left out.
                    let _full = run.trace.held.push(run.section);
                }
                Ok(())
            }
            Instruction::Jump(to) => {
                run.word = to;
                Ok(())
            }
            Instruction::Pause { ms, end } => {
                let due = run.now.after(Duration::from_millis(u64::from(ms)));
                let rest = Continuation { due, word: run.word, end, section: run.section };
                let is_dropped = self.continuations.push(rest).is_err();
                run.trace.dropped = run.trace.dropped.saturating_add(u16::from(is_dropped));
                run.word = end;
                Ok(())
            }
            _ if self.calculate(next)? => Ok(()),
            _ => self.act(program, run, next),
        }
    }

    fn push(&mut self, number: i32) -> Result<(), Stop> {
        *self.stack.get_mut(self.depth).ok_or(Stop::Broken)? = number;
        self.depth += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<i32, Stop> {
        self.depth = self.depth.checked_sub(1).ok_or(Stop::Broken)?;
        self.stack.get(self.depth).copied().ok_or(Stop::Broken)
    }

    /// Arithmetic and logic. Returns whether `next` was of that sort.
    fn calculate(&mut self, next: Instruction) -> Result<bool, Stop> {
        let result = match next {
            Instruction::Neg => self.pop()?.checked_neg().ok_or(Stop::Fault)?,
            Instruction::Not => i32::from(self.pop()? == 0),
            Instruction::Add
            | Instruction::Sub
            | Instruction::Mul
            | Instruction::Div
            | Instruction::Compare(_)
            | Instruction::And
            | Instruction::Or => {
                let (right, left) = (self.pop()?, self.pop()?);
                combine(next, left, right).ok_or(Stop::Fault)?
            }
            _ => return Ok(false),
        };
        self.push(result)?;
        Ok(true)
    }
}

/// None for an overflow and for a division by zero.
fn combine(operation: Instruction, left: i32, right: i32) -> Option<i32> {
    match operation {
        Instruction::Add => left.checked_add(right),
        Instruction::Sub => left.checked_sub(right),
        Instruction::Mul => left.checked_mul(right),
        Instruction::Div if right == 0 && DIV_BY_ZERO_IS_TRUE.is_planted() => Some(1),
        Instruction::Div => left.checked_div(right),
        Instruction::Compare(comparison) if OPERANDS_SWAPPED.is_planted() => {
            Some(i32::from(comparison.holds(right, left)))
        }
        Instruction::Compare(comparison) => Some(i32::from(comparison.holds(left, right))),
        Instruction::And => Some(i32::from(left != 0 && right != 0)),
        _ => Some(i32::from(left != 0 || right != 0)),
    }
}

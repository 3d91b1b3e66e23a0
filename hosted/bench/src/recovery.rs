//! Recovery scripts: what it costs to decide by one, beside code that decides the same.
//!
//! ```text
//!   each round    interpreter, Rust, interpreter, … ─▶ verifier ─▶ translator
//!   each pair     two clusters: an error at the one, whose script restarts the task ─▶ an error at
//!                 the other, which has no script
//! ```
//!
//! | what | measures | its rival |
//! |---|---|---|
//! | `evaluate` | an evaluation of 1,000 words, all sections looked at, orders taken | `by_hand` |
//! | `by_hand` | the same orders on the same facts by a function in Rust | itself |
//! | `verify` | an image of 3,000 words | |
//! | `translate` | the script of that image, of 1,000 lines, to its verified image | |
//! | `restart_by_script` | from the report of an error to the task's next process | the built-in |
//! | `restart_built_in` | the same in a cluster without a script | itself |
//!
//! The facts are drawn, and most guards do not hold, as in a cluster that works. Both give the
//! same orders, or there is no result. The function leaves a guard at the first part that does not
//! hold, as Rust does; the interpreter runs every word of it. Rivals take turns within a round, and
//! a ratio is the median of the rounds' ratios. A restart ends when the node has started the next
//! process, by its own chronicle.
//!
//! What this does not measure: scripts with PAUSE, votes, and a manager that fails meanwhile.

mod by_hand;
mod facts;
mod processes;
mod report;
mod script;

use std::hint::black_box;

use weft_core::ids::Term;
use weft_core::recovery::{Expected, Order, Program, Progress, Rint, verify};
use weft_core::time::Instant;

pub use report::{RecoveryReport, RecoveryRow, RecoveryWhat};

use self::facts::{Facts, NODES, TASKS};
use self::script::SizedImage;
use super::error::BenchError;
use super::figure::Samples;
use super::host::{self, CpuStall, STALL_WATCH_NS};
use super::run::Course;
use weft::clock::now_ns;

/// Decisions on every picture in one round, and how many share a sample: few, so that most samples
/// lie within one turn at the processor.
const DECISIONS: u32 = 50;
const TOGETHER: usize = 32;
/// Samples of the verifier and of the translator in one round.
const VERIFICATIONS: u32 = 50;
const TRANSLATIONS: u32 = 5;
const ANY_CLUSTER: Expected = Expected { nodes: None, keeps_rules: |_| true };

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryPlan {
    /// How often the rivals take turns.
    pub rounds: u32,
    /// How many tasks each of the two clusters restarts in a round; none starts no cluster.
    pub restarts: u32,
}

/// What was measured of all.
#[derive(Debug, Default)]
struct RecoveryCourses {
    evaluate: Course,
    by_hand: Course,
    verify: Course,
    translate: Course,
    restart_by_script: Course,
    restart_built_in: Course,
    /// The fewest words that an evaluation has run.
    steps: u16,
    words: u16,
    lines: usize,
}

/// How many parts a run of `plan` has.
#[must_use]
pub const fn parts(plan: &RecoveryPlan) -> u64 {
    let halves = if plan.restarts > 0 { 2 } else { 1 };
    plan.rounds as u64 * halves
}

/// Measures; `on_part` is called for every part that is done, [`parts`] of them.
///
/// # Errors
/// [`BenchError`]; its processes are gone then.
pub fn run(plan: &RecoveryPlan, mut on_part: impl FnMut()) -> Result<RecoveryReport, BenchError> {
    let (mut courses, mut stall) = (RecoveryCourses::default(), CpuStall::default());
    let (looked_at, longest) = (script::looked_at()?, script::longest()?);
    (courses.words, courses.lines) = (longest.words, longest.lines());
    for _ in 0..plan.rounds {
        decide(&looked_at, &mut courses)?;
        courses.verify.add(verified(&longest)?);
        courses.translate.add(translated(&longest)?);
        stall.watch(STALL_WATCH_NS);
        on_part();
    }
    if plan.restarts > 0 {
        processes::run(plan, &mut courses, || {
            stall.watch(STALL_WATCH_NS);
            on_part();
        })?;
    }
    Ok(RecoveryReport::new(report::rows(&courses), host::describe(&stall)))
}

/// The interpreter and the function, in turns.
fn decide(image: &SizedImage, courses: &mut RecoveryCourses) -> Result<(), BenchError> {
    let program = verify(&image.bytes, &ANY_CLUSTER).map_err(script::refused)?;
    let pictures = facts::pictures();
    let mut rint = Rint::default();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut fewest = u16::MAX;
    for picture in &pictures {
        fewest = fewest.min(evaluate(&mut rint, &program, picture, &mut ours)?);
        by_hand::decide(picture, &mut theirs);
        if ours != theirs || ours.is_empty() {
            let cause = format!("it orders {ours:?}, and the function in Rust {theirs:?}");
            return Err(BenchError::Script { cause });
        }
    }
    courses.steps = fewest;
    let (mut evaluations, mut calls) = (Samples::default(), Samples::default());
    for some in (0..DECISIONS).flat_map(|_| pictures.chunks(TOGETHER)) {
        let begun = now_ns();
        for picture in some {
            evaluate(&mut rint, &program, black_box(picture), &mut ours)?;
            black_box(&ours);
        }
        let half = now_ns();
        for picture in some {
            by_hand::decide(black_box(picture), &mut theirs);
            black_box(&theirs);
        }
        evaluations.push(half - begun, some.len() as u64);
        calls.push(now_ns() - half, some.len() as u64);
    }
    courses.evaluate.add(evaluations);
    courses.by_hand.add(calls);
    Ok(())
}

/// One evaluation, which leaves its orders: how many words it has run.
fn evaluate(
    rint: &mut Rint<NODES, TASKS>,
    program: &Program<'_>,
    picture: &Facts,
    orders: &mut Vec<Order>,
) -> Result<u16, BenchError> {
    orders.clear();
    rint.evaluate(program, picture, Term::of_epoch(1), Instant(0)).map_err(script::refused)?;
    let words = program.code().header().words;
    let Progress::Done(trace) = rint.step(program, words).map_err(script::refused)? else {
        return Err(BenchError::OutOfStep("an evaluation has no end"));
    };
    orders.extend(std::iter::from_fn(|| rint.poll_order()).map(|placed| placed.order));
    Ok(trace.steps)
}

fn verified(image: &SizedImage) -> Result<Samples, BenchError> {
    let mut samples = Samples::default();
    for _ in 0..VERIFICATIONS {
        let begun = now_ns();
        let program = verify(black_box(&image.bytes), &ANY_CLUSTER).map_err(script::refused)?;
        black_box(&program);
        samples.push(now_ns() - begun, 1);
    }
    Ok(samples)
}

fn translated(image: &SizedImage) -> Result<Samples, BenchError> {
    let mut samples = Samples::default();
    for _ in 0..TRANSLATIONS {
        let begun = now_ns();
        black_box(script::translate(black_box(&image.text))?);
        samples.push(now_ns() - begun, 1);
    }
    Ok(samples)
}

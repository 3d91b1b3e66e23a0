//! Timers: what the wheel costs, beside what others wrote for the same purpose.
//!
//! ```text
//!   one size (10^2 … 10^6 timers)     each turn: A B C D, so that noise hits rivals alike
//!     weft │ DelayQueue │ hash wheel │ BTreeMap
//!     start … stop … restart … renew … advance …
//! ```
//!
//! All keep the same timers with the same delays, stopped, started and renewed in the same
//! scattered order. A turn times thousands of calls together; figures are medians of turns, and
//! a ratio is the median of the ratios within turns. A `start` is of a timer
//! that is nowhere in the keeper, a `restart` of one that was just stopped; `renew` is a
//! cancellation and a start where a keeper has no other way; `advance` is what a polling loop
//! calls when nothing is due.
//!
//! What this does not measure: expiries, and keepers that several threads share.

mod aims;
mod contender;
mod course;
mod report;
#[cfg(feature = "rivals")]
mod rivals;

use std::thread;

pub use report::{TimerAction, TimerKeeper, WheelReport, WheelRow};

use self::contender::{Contender, Faulty, Ours, SortedMap, TIMERS_MAX};
use self::course::{Track, WheelCourse};
use super::error::BenchError;
use super::host::{self, CpuStall, STALL_WATCH_NS};
use super::verdict;
use weft::allocations;

/// How many timers run, unless others are asked for.
pub const SIZES: [usize; 5] = [100, 1_000, 10_000, 100_000, TIMERS_MAX];
/// Room to make a wheel of a million timers, which passes over the stack: three times its size.
const STACK_LEN: usize = 256 << 20;

/// What to measure.
#[derive(Clone, Debug)]
pub struct WheelPlan {
    /// Numbers of timers, up to 10^6 each.
    pub sizes: Vec<usize>,
    /// How many turns every keeper has.
    pub turns: u32,
}

/// Measures; `on_size` is called for every size that is done.
///
/// # Errors
/// [`BenchError`].
pub fn run(plan: &WheelPlan, on_size: impl FnMut(usize) + Send) -> Result<WheelReport, BenchError> {
    thread::scope(|scope| {
        let measuring = thread::Builder::new().stack_size(STACK_LEN);
        let measuring = measuring.spawn_scoped(scope, || measure_all(plan, on_size));
        let measured = measuring.map_err(BenchError::Thread)?.join();
        measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn measure_all(
    plan: &WheelPlan,
    mut on_size: impl FnMut(usize),
) -> Result<WheelReport, BenchError> {
    #[cfg(feature = "rivals")]
    let runtime = rivals::runtime().map_err(BenchError::Thread)?;
    #[cfg(feature = "rivals")]
    let _entered = runtime.enter();
    let mut stall = CpuStall::default();
    let mut rows = Vec::new();
    for timers in &plan.sizes {
        let field = measure(*timers, plan.turns, &mut stall)?;
        rows.extend(rows_of(*timers, &field).ok_or(BenchError::OutOfStep("a run without turns"))?);
        on_size(*timers);
    }
    let mut verdicts = aims::judge(&rows);
    let host = host::describe(&stall);
    verdicts.push(verdict::noise(&host));
    Ok(WheelReport { rows, with_rivals: cfg!(feature = "rivals"), host, verdicts })
}

/// All keepers with so many timers, in turns.
fn measure(
    timers: usize,
    turns: u32,
    stall: &mut CpuStall,
) -> Result<Vec<(TimerKeeper, WheelCourse)>, BenchError> {
    let track = Track::new(timers);
    let mut ours = ContenderLane::new(TimerKeeper::Weft, Ours::new(timers), &track)?;
    let mut map = ContenderLane::new(TimerKeeper::SortedMap, SortedMap::new(timers), &track)?;
    #[cfg(feature = "rivals")]
    let mut queue =
        ContenderLane::new(TimerKeeper::DelayQueue, rivals::TokioQueue::new(timers), &track)?;
    #[cfg(feature = "rivals")]
    let mut hash = ContenderLane::new(TimerKeeper::HashWheel, rivals::HashWheel::new(), &track)?;
    for _ in 0..turns {
        ours.turn(&track)?;
        #[cfg(feature = "rivals")]
        queue.turn(&track)?;
        #[cfg(feature = "rivals")]
        hash.turn(&track)?;
        map.turn(&track)?;
        stall.watch(STALL_WATCH_NS);
    }
    Ok(vec![
        ours.finish(),
        #[cfg(feature = "rivals")]
        queue.finish(),
        #[cfg(feature = "rivals")]
        hash.finish(),
        map.finish(),
    ])
}

/// One keeper and its course.
struct ContenderLane<C> {
    keeper: TimerKeeper,
    contender: C,
    course: WheelCourse,
}

impl<C: Contender> ContenderLane<C> {
    fn new(keeper: TimerKeeper, mut contender: C, track: &Track) -> Result<Self, BenchError> {
        let course = WheelCourse::default();
        course.fill(&mut contender, track).map_err(|Faulty| BenchError::Timer(keeper))?;
        Ok(Self { keeper, contender, course })
    }

    fn turn(&mut self, track: &Track) -> Result<(), BenchError> {
        let warmed = self.course.warm_up(&mut self.contender, track);
        let turned = warmed.and_then(|()| self.course.turn(&mut self.contender, track));
        turned.map_err(|Faulty| BenchError::Timer(self.keeper))
    }

    fn finish(self) -> (TimerKeeper, WheelCourse) {
        (self.keeper, self.course)
    }
}

/// The rows of one size, by action and keeper; ours is the first of the field.
fn rows_of(timers: usize, field: &[(TimerKeeper, WheelCourse)]) -> Option<Vec<WheelRow>> {
    let (_, ours) = field.first()?;
    let mut rows = Vec::new();
    for action in TimerAction::ALL {
        for (keeper, course) in field {
            let series = &course.series[action as usize];
            let allocations = series.allocations as f64 / series.calls as f64;
            rows.push(WheelRow {
                timers,
                action,
                keeper: *keeper,
                p50_ns: series.median()?,
                min_ns: series.each_ns.iter().copied().min_by(f64::total_cmp)?,
                ratio_to_weft: series.ratio_to(&ours.series[action as usize])?,
                allocations: allocations::are_counted().then_some(allocations),
            });
        }
    }
    Some(rows)
}

//! Many seeds on all cores, each a run of its own.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::run::{RunOutcome, RunPlan};
use super::subject::Subject;

/// A seed whose run broke a promise.
#[derive(Debug)]
pub struct Failed {
    /// The seed.
    pub seed: u64,
    /// How its run ended.
    pub outcome: RunOutcome,
}

/// What many seeds came to.
#[derive(Debug, Default)]
pub struct SeedTally {
    /// Seeds that were run.
    pub seeds: u64,
    /// Events of all of them.
    pub events: u64,
    /// Those that failed, in ascending order of seeds.
    pub failed: Vec<Failed>,
}

/// Runs the seeds from `first`, `count` of them; after `failures_max` failures no new one is
/// begun. `on_seed` is called after each.
///
/// The seeds that are begun are begun in order, so the first failing one is always among them.
pub fn run_seeds(
    subject: &Subject,
    (first, count): (u64, u64),
    failures_max: usize,
    on_seed: impl Fn() + Sync,
) -> SeedTally {
    let next = AtomicU64::new(0);
    let tally = Mutex::new(SeedTally::default());
    let work = || loop {
        let failures = lock(&tally).failed.len();
        let index = next.fetch_add(1, Ordering::Relaxed);
        if failures >= failures_max || index >= count {
            return;
        }
        let seed = first + index;
        let outcome = (subject.run)(&RunPlan::of(seed));
        let mut tally = lock(&tally);
        tally.seeds += 1;
        tally.events += outcome.events;
        if outcome.violation.is_some() {
            tally.failed.push(Failed { seed, outcome });
        }
        drop(tally);
        on_seed();
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut tally = tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    tally.failed.sort_by_key(|failed| failed.seed);
    tally
}

fn lock(tally: &Mutex<SeedTally>) -> std::sync::MutexGuard<'_, SeedTally> {
    tally.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

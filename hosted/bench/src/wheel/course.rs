//! One contender's turns: the same timers, the same delays, the same order for each contender.

use weft_core::time::{Duration, Instant};

use super::contender::{Contender, Faulty};
use super::report::TimerAction;
use crate::figure::Samples;
use weft::allocations::allocations;
use weft::clock::now_ns;

/// Calls that are timed together at least, so that two looks at the clock do not count.
const CALLS_MIN: u64 = 8192;
/// Timers that are started, then stopped, restarted and renewed at most.
const TIMERS_PER_LEG: usize = 1024;
/// Timers that are touched before a turn: as many as are said to fit into a cache, and more.
const WARMED: usize = 16_384;
/// Time between two advances: a loop that polls a million times a second.
const BETWEEN_ADVANCES: Duration = Duration::from_micros(1);
/// Delays: none ends within a run, and no slot of a wheel comes up within one.
const DELAY_MIN_MS: u64 = 70_000;
const DELAY_MAX_MS: u64 = 600_000;

/// What is done to every contender of one size.
#[derive(Debug)]
pub(super) struct Track {
    /// All timers with their delays, scattered; each turn takes the next ones.
    timers: Vec<(u32, Duration)>,
}

impl Track {
    pub(super) fn new(timers: usize) -> Self {
        let mut random = Random(timers as u64);
        let mut scattered = Vec::with_capacity(timers);
        for number in 0..timers as u32 {
            let delay_ms = DELAY_MIN_MS + random.below(DELAY_MAX_MS - DELAY_MIN_MS);
            scattered.push((number, Duration::from_millis(delay_ms)));
        }
        for last in (1..timers).rev() {
            scattered.swap(last, random.below(last as u64 + 1) as usize);
        }
        Self { timers: scattered }
    }

    /// The timers of the leg that begins at `from`, and where the next one begins.
    fn leg(&self, from: usize) -> (&[(u32, Duration)], usize) {
        let end = self.timers.len().min(from + TIMERS_PER_LEG);
        (&self.timers[from..end], if end == self.timers.len() { 0 } else { end })
    }
}

/// What one contender has shown so far.
#[derive(Debug, Default)]
pub(super) struct WheelCourse {
    pub(super) series: [ActionSeries; TimerAction::ALL.len()],
    now: Instant,
    at: usize,
}

/// One action over all turns.
#[derive(Debug, Default)]
pub(super) struct ActionSeries {
    /// What one call took, by turn.
    pub(super) each_ns: Vec<f64>,
    pub(super) calls: u64,
    pub(super) allocations: u64,
}

impl WheelCourse {
    /// Starts all timers; not timed.
    pub(super) fn fill(&self, contender: &mut impl Contender, track: &Track) -> Result<(), Faulty> {
        for (number, delay) in &track.timers {
            contender.start(*number, *delay)?;
        }
        Ok(())
    }

    /// Touches timers that stand before the next turn's, untimed: where all of them fit into the
    /// cache, no contender pays for what the rival before it threw out; where they do not, the
    /// timers of the turn stay as cold as they are.
    pub(super) fn warm_up(
        &self,
        contender: &mut impl Contender,
        track: &Track,
    ) -> Result<(), Faulty> {
        let count = track.timers.len();
        for back in 1..=count.min(WARMED) {
            let (number, delay) = track.timers[(self.at + count - back) % count];
            contender.renew(number, delay)?;
        }
        Ok(())
    }

    /// One turn of `contender`, in which every action is timed.
    pub(super) fn turn(
        &mut self,
        contender: &mut impl Contender,
        track: &Track,
    ) -> Result<(), Faulty> {
        let mut spans = [TimedCalls::default(); TimerAction::ALL.len()];
        while spans[TimerAction::Start as usize].calls < CALLS_MIN {
            let (leg, next) = track.leg(self.at);
            self.at = next;
            leg.iter().try_for_each(|(number, _)| contender.forget(*number))?;
            spans[TimerAction::Start as usize]
                .time(leg, |(number, delay)| contender.start(number, delay))?;
            spans[TimerAction::Stop as usize].time(leg, |(number, _)| contender.stop(number))?;
            spans[TimerAction::Restart as usize]
                .time(leg, |(number, delay)| contender.start(number, delay))?;
            spans[TimerAction::Renew as usize]
                .time(leg, |(number, delay)| contender.renew(number, delay))?;
        }
        while spans[TimerAction::Advance as usize].calls < CALLS_MIN {
            let (leg, next) = track.leg(self.at);
            self.at = next;
            spans[TimerAction::Advance as usize].time(leg, |_| {
                self.now = self.now.after(BETWEEN_ADVANCES);
                contender.advance(self.now)
            })?;
        }
        for (series, span) in self.series.iter_mut().zip(spans) {
            series.each_ns.push(span.ns as f64 / span.calls as f64);
            series.calls += span.calls;
            series.allocations += span.allocations;
        }
        Ok(())
    }
}

/// Calls that were timed together.
#[derive(Clone, Copy, Debug, Default)]
struct TimedCalls {
    ns: u64,
    calls: u64,
    allocations: u64,
}

impl TimedCalls {
    /// Times `call` once for each of `leg`.
    #[inline(always)]
    fn time(
        &mut self,
        leg: &[(u32, Duration)],
        mut call: impl FnMut((u32, Duration)) -> Result<(), Faulty>,
    ) -> Result<(), Faulty> {
        let (allocated, begun) = (allocations(), now_ns());
        for timer in leg {
            call(*timer)?;
        }
        self.ns += now_ns() - begun;
        self.allocations += allocations() - allocated;
        self.calls += leg.len() as u64;
        Ok(())
    }
}

impl ActionSeries {
    /// The median of all turns.
    pub(super) fn median(&self) -> Option<f64> {
        let mut samples = Samples::default();
        self.each_ns.iter().for_each(|ns| samples.push_value(*ns));
        samples.median()
    }

    /// How many times as long as `other` it took: the median of the ratios within turns.
    pub(super) fn ratio_to(&self, other: &Self) -> Option<f64> {
        let mut samples = Samples::default();
        for (mine, theirs) in self.each_ns.iter().zip(&other.each_ns) {
            samples.push_value(mine / theirs);
        }
        samples.median()
    }
}

/// SplitMix64: reproducible, and random enough to scatter.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (word ^ (word >> 31)) % end
    }
}

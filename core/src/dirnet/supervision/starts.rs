//! Starts of a node's component: when the next one is started, who hears of the end of the last
//! one, and when its supervisor gives up.
//!
//! ```text
//!   start ── fails, or it ends by itself before its I'm-Alive Task watches it ──▶ wait ──▶ start
//!     └ watched: the next failure is the first again   more than so many in a row, or more ends
//!                                                      than the restart intensity allows: given
//!                                                      up for the window of the intensity, and
//!                                                      reported to the manager: no clone helps
//! ```
//!
//! The end of one that its I'm-Alive Task watches is that task's: it raises the alarm, the manager
//! orders the clone. One that is killed before it is watched is started again at once: a kill is no
//! evidence about the next one. The restart intensity counts every end (X-6).

use super::super::backoff::Backoff;
use super::super::intensity::Intensity;
use crate::dirnet::{RestartLimit, Spawned};
use crate::time::{Duration, Instant};

/// The wait after the first failure, and the longest one.
const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(1_000);
/// The most failures in a row before components are given up; about four seconds.
const FAILURES_MAX: u32 = 10;

/// How a component has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// By itself.
    Failed,
    /// It was killed.
    Killed,
    /// It was the program, which has done its work.
    Finished,
}

/// One thing to do about the component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Start one now, and report the outcome: [`Starts::handle_started`] or
    /// [`Starts::handle_start_failed`].
    Start {
        /// Whether it restarts a component of this boot, or of one that was given up.
        is_restart: bool,
    },
    /// The I'm-Alive Task learns that the component has ended.
    Alarm,
    /// No component is started before the next [`Self::TryAgain`], if there is one: report it. The
    /// I'm-Alive Task learns that the component has ended.
    GiveUp,
    /// What was given up is tried again, by the [`Self::Start`] that follows.
    TryAgain,
}

/// The decisions of one supervisor about the starts of its component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starts {
    limit: RestartLimit,
    ends: Intensity,
    backoff: Backoff,
    /// When the next start is tried, if one is waited for.
    due: Option<Instant>,
    has_given_up: bool,
    /// Whether a process runs, and whether its I'm-Alive Task watches it.
    runs: bool,
    is_watched: bool,
    /// Whether the node is isolated: it starts nothing.
    is_halted: bool,
    steps: heapless::Deque<Step, 4>,
}

impl Starts {
    /// Nothing was started yet; at most that many ends are followed by a start.
    #[must_use]
    pub fn new(limit: RestartLimit) -> Self {
        Self {
            limit,
            ends: Intensity::default(),
            backoff: Backoff::new(FIRST, LONGEST),
            due: None,
            has_given_up: false,
            runs: false,
            is_watched: false,
            is_halted: false,
            steps: heapless::Deque::new(),
        }
    }

    /// Returns the next step, if any. Steps are carried out in this sequence.
    pub fn poll_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// When to call [`Self::handle_time`] if nothing comes before.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Whether components have failed too often, and none is started for now.
    #[must_use]
    pub const fn has_given_up(&self) -> bool {
        self.has_given_up
    }

    /// The outcome of a clone that was ordered, once its steps are carried out. One that is tried
    /// again soon counts as running.
    #[must_use]
    pub const fn spawned(&self) -> Spawned {
        if self.has_given_up { Spawned::Failed } else { Spawned::Runs }
    }

    /// A process was started.
    pub fn handle_started(&mut self) {
        (self.runs, self.is_watched, self.due) = (true, false, None);
    }

    /// No process could be started.
    pub fn handle_start_failed(&mut self, now: Instant) {
        let wait = self.backoff.fail();
        if self.backoff.failures() <= FAILURES_MAX {
            self.due = Some(now.after(wait));
        } else {
            self.give_up(now);
        }
    }

    /// Its I'm-Alive Task watches the component.
    pub fn handle_watched(&mut self) {
        self.is_watched = self.runs;
        self.backoff.succeed();
    }

    /// The component has ended.
    pub fn handle_ended(&mut self, now: Instant, end: End) {
        let was_watched = self.is_watched;
        self.handle_replaced(now, end);
        match end {
            _ if self.is_halted => {}
            _ if was_watched => self.push(Step::Alarm),
            // No node but its own knows of it, and it is tried again.
            _ if self.has_given_up => {}
            End::Killed | End::Finished => self.push(Step::Start { is_restart: true }),
            End::Failed => self.handle_start_failed(now),
        }
    }

    /// The component has ended so that its clone can start: [`Self::handle_clone`] follows.
    pub fn handle_replaced(&mut self, now: Instant, end: End) {
        (self.runs, self.is_watched) = (false, false);
        let is_allowed = end == End::Finished || self.ends.allows(now, self.limit);
        if !is_allowed && !self.is_halted {
            self.give_up(now);
        }
    }

    /// The I'm-Alive Task orders a clone; no process runs any more.
    pub fn handle_clone(&mut self) {
        if !self.has_given_up {
            self.due = None;
            self.push(Step::Start { is_restart: true });
        }
    }

    /// This boot is over; a process that runs is being killed, and its end starts the next one.
    pub fn handle_reboot(&mut self) {
        self.is_watched = false;
        if !self.runs && !self.has_given_up {
            self.due = None;
            self.push(Step::Start { is_restart: false });
        }
    }

    /// This node is isolated; a process that runs is being killed. Earlier failures end with the
    /// boot.
    pub fn handle_halt(&mut self) {
        (self.is_halted, self.has_given_up, self.is_watched, self.due) = (true, false, false, None);
    }

    /// This node is released. A process that still ends starts the next one by its end.
    pub fn handle_resume(&mut self) {
        self.is_halted = false;
        if !self.runs {
            self.push(Step::Start { is_restart: false });
        }
    }

    /// Time has passed: the start that is due is tried.
    pub fn handle_time(&mut self, now: Instant) {
        let is_due = self.due.take_if(|due| *due <= now).is_some();
        if is_due && !self.runs && !self.is_halted {
            if core::mem::take(&mut self.has_given_up) {
                self.push(Step::TryAgain);
            }
            self.push(Step::Start { is_restart: true });
        }
    }

    /// Starts no further component before the failures leave the window; never, where no restart is
    /// allowed.
    fn give_up(&mut self, now: Instant) {
        self.has_given_up = true;
        self.backoff.succeed();
        self.due = (self.limit.max > 0).then(|| now.after(self.limit.within));
        self.push(Step::GiveUp);
    }

    fn push(&mut self, step: Step) {
        let accepted = self.steps.push_back(step);
        debug_assert!(accepted.is_ok(), "drain poll_step before the next input");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const LIMIT: RestartLimit = RestartLimit { max: 3, within: Duration::from_millis(5_000) };
    const RESTART: Step = Step::Start { is_restart: true };

    fn at(ms: u64) -> Instant {
        Instant(0).after(Duration::from_millis(ms))
    }

    fn steps(starts: &mut Starts) -> Vec<Step> {
        core::iter::from_fn(|| starts.poll_step()).collect()
    }

    fn running() -> Starts {
        let mut starts = Starts::new(LIMIT);
        starts.handle_started();
        starts
    }

    #[test]
    fn each_failure_in_a_row_is_waited_out_longer_and_the_last_is_the_end() {
        let (mut starts, mut now, mut waits) = (Starts::new(LIMIT), at(0), Vec::new());
        loop {
            starts.handle_start_failed(now);
            if starts.has_given_up() {
                break;
            }
            let due = starts.poll_timeout().expect("it is tried again");
            starts.handle_time(Instant(due.0 - 1));
            assert_eq!(steps(&mut starts), []);
            starts.handle_time(due);
            assert_eq!(steps(&mut starts), [RESTART]);
            waits.push(due.since(now).as_micros() / 1_000);
            now = due;
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]);
        assert_eq!(
            (steps(&mut starts), starts.spawned()),
            ([Step::GiveUp].into(), Spawned::Failed)
        );
        starts.handle_clone();
        assert_eq!(steps(&mut starts), [], "a clone does not help");
        let due = starts.poll_timeout().expect("it is tried again");
        assert_eq!(due.since(now), LIMIT.within);
        starts.handle_time(due);
        assert_eq!(steps(&mut starts), [Step::TryAgain, RESTART]);
        starts.handle_start_failed(due);
        assert_eq!(starts.poll_timeout(), Some(due.after(FIRST)), "a first one again");
    }

    #[test]
    fn x6_ends_beyond_the_limit_are_given_up_and_finished_programs_are_not_counted() {
        let mut starts = running();
        for n in 0..9 {
            starts.handle_ended(at(n), End::Finished);
            assert_eq!(steps(&mut starts), [RESTART]);
            starts.handle_started();
        }
        for n in 10..13 {
            starts.handle_ended(at(n), End::Killed);
            assert_eq!(steps(&mut starts), [RESTART]);
            starts.handle_started();
        }
        starts.handle_ended(at(13), End::Killed);
        assert_eq!(steps(&mut starts), [Step::GiveUp]);
        let mut never = Starts::new(RestartLimit { max: 0, ..LIMIT });
        never.handle_started();
        never.handle_ended(at(0), End::Killed);
        assert_eq!((steps(&mut never), never.poll_timeout()), ([Step::GiveUp].into(), None));
    }

    #[test]
    fn d54_the_end_of_a_component_that_is_watched_is_left_to_its_task() {
        let mut starts = running();
        starts.handle_watched();
        starts.handle_ended(at(0), End::Failed);
        assert_eq!((steps(&mut starts), starts.poll_timeout()), ([Step::Alarm].into(), None));
        starts.handle_clone();
        assert_eq!(steps(&mut starts), [RESTART]);
        starts.handle_started();
        starts.handle_ended(at(1), End::Failed);
        assert_eq!((steps(&mut starts), starts.poll_timeout()), (Vec::new(), Some(at(11))));
        starts.handle_clone();
        assert_eq!((steps(&mut starts), starts.poll_timeout()), ([RESTART].into(), None));
    }

    #[test]
    fn a_boot_that_is_over_is_followed_by_the_next_once_its_process_has_ended() {
        let mut starts = running();
        starts.handle_watched();
        starts.handle_reboot();
        assert_eq!(steps(&mut starts), []);
        starts.handle_ended(at(0), End::Killed);
        assert_eq!(steps(&mut starts), [RESTART], "no task of that boot is left");
        // It could not be started.
        starts.handle_reboot();
        assert_eq!(steps(&mut starts), [Step::Start { is_restart: false }]);
    }

    #[test]
    fn x5_an_isolated_node_starts_nothing_and_its_failures_end_with_the_boot() {
        let mut starts = running();
        starts.handle_watched();
        (0..3).for_each(|n| assert!(starts.ends.allows(at(n), LIMIT)));
        starts.handle_halt();
        starts.handle_ended(at(4), End::Killed);
        starts.handle_time(at(60_000));
        assert_eq!((steps(&mut starts), starts.has_given_up()), (Vec::new(), false));
        starts.handle_resume();
        assert_eq!(steps(&mut starts), [Step::Start { is_restart: false }]);
    }
}

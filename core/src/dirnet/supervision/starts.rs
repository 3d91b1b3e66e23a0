//! Starts of a node's component: when the next one is started, when it enters the DIR net, when one
//! that hangs is killed, who hears of its end, and when its supervisor gives up.
//!
//! ```text
//!           started             its I'm-Alive Task watches it
//!   Down ───────────▶ Starting ──────────────────────────────▶ Watched
//!     ▲                  │ it hangs │ clone, reboot, halt          │ clone, reboot, halt
//!     │ ended            ▼          ▼                              ▼
//!     ├───────────────────────── Ending ◀── Kill ──────────────────┘
//!     ├── ended: it is retried, later with each failure in a row ── Starting
//!     └── ended: alarm, the manager orders the clone ── Watched
//! ```
//!
//! More than so many failures in a row, or more ends than the restart intensity allows: components
//! are given up for the window of the intensity, which is reported to the manager: no clone helps.
//!
//! The end of one that its I'm-Alive Task watches is that task's: it raises the alarm, the manager
//! orders the clone. One that is killed before it is watched is started again at once: a kill is no
//! evidence about the next one. The restart intensity counts every end (X-6).
//!
//! **Order of kill and start.** No component is started while another one runs. What must give way
//! is killed, and its end is an input like any other, behind all that it has sent: it may have
//! learned that its node is removed or isolated, and then there is no clone.

use super::super::backoff::Backoff;
use super::super::intensity::Intensity;
use super::startup_watchdog::{Greeted, StartupWatchdog};
use crate::dirnet::{Progress, RestartLimit, Spawned};
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
    /// It takes part in the DIR net from now on.
    Enter,
    /// It has made no progress for that long before its I'm-Alive Task watched it.
    /// [`Self::Kill`] follows.
    Hangs(Duration),
    /// Kill it. Handle all that it has sent before [`Starts::handle_ended`].
    Kill,
    /// The I'm-Alive Task learns the outcome of the clone that it ordered: [`Starts::spawned`].
    Cloned,
    /// The I'm-Alive Task learns that the component has ended.
    Alarm,
    /// No component is started before the next [`Self::TryAgain`], if there is one: report it. The
    /// I'm-Alive Task learns that the component has ended.
    GiveUp,
    /// What was given up is tried again, by the [`Self::Start`] that follows.
    TryAgain,
}

/// The process of the component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    /// None runs.
    Down,
    /// One runs, and its I'm-Alive Task does not watch it yet.
    Starting(StartupWatchdog),
    /// One runs, and its I'm-Alive Task watches it.
    Watched,
    /// One is being killed, perhaps for a clone.
    Ending { is_clone_due: bool },
}

/// The decisions of one supervisor about the starts of its component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starts {
    limit: RestartLimit,
    /// Within this time the manager must hear of a clone that it requested.
    clone: Duration,
    ends: Intensity,
    backoff: Backoff,
    /// When the next start is tried, if one is waited for.
    due: Option<Instant>,
    has_given_up: bool,
    process: Process,
    /// Whether the node is isolated: it starts nothing.
    is_halted: bool,
    steps: heapless::Deque<Step, 4>,
}

impl Starts {
    /// Nothing was started yet; at most that many ends are followed by a start. `clone` is the
    /// profile's.
    #[must_use]
    pub fn new(limit: RestartLimit, clone: Duration) -> Self {
        Self {
            limit,
            clone,
            ends: Intensity::default(),
            backoff: Backoff::new(FIRST, LONGEST),
            due: None,
            has_given_up: false,
            process: Process::Down,
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
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.process {
            Process::Starting(watchdog) => watchdog.poll_timeout(),
            Process::Down => self.due,
            Process::Watched | Process::Ending { .. } => None,
        }
    }

    /// Whether components have failed too often, and none is started for now.
    #[must_use]
    pub const fn has_given_up(&self) -> bool {
        self.has_given_up
    }

    /// The outcome of a clone that was ordered. One that is tried again soon counts as running.
    #[must_use]
    pub const fn spawned(&self) -> Spawned {
        if self.has_given_up { Spawned::Failed } else { Spawned::Runs }
    }

    /// A process was started; `flag` is what its predecessors left.
    pub fn handle_started(&mut self, now: Instant, flag: Progress) {
        self.due = None;
        self.process = Process::Starting(StartupWatchdog::new(now, self.clone, flag));
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

    /// The component's endpoint is made: from now on its loop runs.
    pub fn handle_ready(&mut self, now: Instant) {
        if let Process::Starting(watchdog) = &mut self.process {
            watchdog.handle_ready(now);
        }
    }

    /// Its I'm-Alive Task watches the component.
    pub fn handle_watched(&mut self) {
        if matches!(self.process, Process::Starting(_)) {
            self.process = Process::Watched;
        }
        self.backoff.succeed();
    }

    /// The component has ended, and all that it has sent was handled.
    pub fn handle_ended(&mut self, now: Instant, end: End) {
        let process = core::mem::replace(&mut self.process, Process::Down);
        let is_allowed = end == End::Finished || self.ends.allows(now, self.limit);
        if !is_allowed && !self.is_halted {
            self.give_up(now);
        }
        match (process, end) {
            _ if self.is_halted => {}
            (Process::Ending { is_clone_due: true }, _) => self.start_clone(),
            (Process::Watched, _) => self.push(Step::Alarm),
            // No node but its own knows of it, and it is tried again.
            _ if self.has_given_up => {}
            (_, End::Killed | End::Finished) => self.push(Step::Start { is_restart: true }),
            (_, End::Failed) => self.handle_start_failed(now),
        }
    }

    /// The I'm-Alive Task orders a clone. A component that runs ends first.
    pub fn handle_clone(&mut self) {
        if self.process == Process::Down {
            return self.start_clone();
        }
        self.kill();
        self.process = Process::Ending { is_clone_due: true };
    }

    /// This boot is over; the end of a process that runs starts the next one.
    pub fn handle_reboot(&mut self) {
        self.kill();
        if self.process == Process::Down && !self.has_given_up {
            self.due = None;
            self.push(Step::Start { is_restart: false });
        }
    }

    /// This node is isolated. Earlier failures end with the boot.
    pub fn handle_halt(&mut self) {
        self.kill();
        (self.is_halted, self.has_given_up, self.due) = (true, false, None);
    }

    /// This node is released. A process that still ends starts the next one by its end.
    pub fn handle_resume(&mut self) {
        self.is_halted = false;
        if self.process == Process::Down {
            self.push(Step::Start { is_restart: false });
        }
    }

    /// Time has passed: the start that is due is tried; a component that hangs as it starts is
    /// killed; one that has waited long enough for its peers enters the DIR net.
    pub fn handle_time(&mut self, now: Instant, flag: Progress, greeted: Greeted) {
        if let Process::Starting(watchdog) = &mut self.process {
            let hangs = watchdog.handle_time(now, flag);
            let is_to_enter = hangs.is_none() && watchdog.enters(now, greeted);
            if let Some(hung_for) = hangs {
                self.push(Step::Hangs(hung_for));
                self.kill();
            }
            if is_to_enter {
                self.push(Step::Enter);
            }
        }
        let is_due = self.due.take_if(|due| *due <= now).is_some();
        if is_due && self.process == Process::Down && !self.is_halted {
            if core::mem::take(&mut self.has_given_up) {
                self.push(Step::TryAgain);
            }
            self.push(Step::Start { is_restart: true });
        }
    }

    fn start_clone(&mut self) {
        if !self.has_given_up {
            self.due = None;
            self.push(Step::Start { is_restart: true });
        }
        self.push(Step::Cloned);
    }

    /// Ends a process that runs. A clone that was ordered is none of the next boot.
    fn kill(&mut self) {
        if self.process != Process::Down {
            self.push(Step::Kill);
            self.process = Process::Ending { is_clone_due: false };
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
    const CLONE: Duration = Duration::from_millis(2_000);
    const RESTART: Step = Step::Start { is_restart: true };
    const FLAG: Progress = Progress { generation: 0, timers: 0, messages: 0, heard_late: 0 };

    fn at(ms: u64) -> Instant {
        Instant(0).after(Duration::from_millis(ms))
    }

    fn steps(starts: &mut Starts) -> Vec<Step> {
        core::iter::from_fn(|| starts.poll_step()).collect()
    }

    fn pass(starts: &mut Starts, now: Instant) {
        starts.handle_time(now, FLAG, Greeted::Few);
    }

    fn running() -> Starts {
        let mut starts = Starts::new(LIMIT, CLONE);
        starts.handle_started(at(0), FLAG);
        starts
    }

    fn watched() -> Starts {
        let mut starts = running();
        starts.handle_watched();
        starts
    }

    #[test]
    fn each_failure_in_a_row_is_waited_out_longer_and_the_last_is_the_end() {
        let (mut starts, mut now, mut waits) = (Starts::new(LIMIT, CLONE), at(0), Vec::new());
        loop {
            starts.handle_start_failed(now);
            if starts.has_given_up() {
                break;
            }
            let due = starts.poll_timeout().expect("it is tried again");
            pass(&mut starts, Instant(due.0 - 1));
            assert_eq!(steps(&mut starts), []);
            pass(&mut starts, due);
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
        assert_eq!(steps(&mut starts), [Step::Cloned], "a clone does not help");
        let due = starts.poll_timeout().expect("it is tried again");
        assert_eq!(due.since(now), LIMIT.within);
        pass(&mut starts, due);
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
            starts.handle_started(at(n), FLAG);
        }
        for n in 10..13 {
            starts.handle_ended(at(n), End::Killed);
            assert_eq!(steps(&mut starts), [RESTART]);
            starts.handle_started(at(n), FLAG);
        }
        starts.handle_ended(at(13), End::Killed);
        assert_eq!(steps(&mut starts), [Step::GiveUp]);
        let retry = starts.poll_timeout();
        starts.handle_reboot();
        assert_eq!((steps(&mut starts), starts.poll_timeout()), (Vec::new(), retry));
        assert!(retry.is_some(), "it is tried again, whatever ends the boot");
        let mut never = Starts::new(RestartLimit { max: 0, ..LIMIT }, CLONE);
        never.handle_started(at(0), FLAG);
        never.handle_ended(at(0), End::Killed);
        assert_eq!((steps(&mut never), never.poll_timeout()), ([Step::GiveUp].into(), None));
    }

    #[test]
    fn d54_the_end_of_a_component_that_is_watched_is_left_to_its_task() {
        let mut starts = watched();
        starts.handle_ended(at(0), End::Failed);
        assert_eq!((steps(&mut starts), starts.poll_timeout()), ([Step::Alarm].into(), None));
        starts.handle_clone();
        assert_eq!(steps(&mut starts), [RESTART, Step::Cloned]);
        starts.handle_started(at(0), FLAG);
        starts.handle_ended(at(1), End::Failed);
        assert_eq!((steps(&mut starts), starts.poll_timeout()), (Vec::new(), Some(at(11))));
        starts.handle_clone();
        let now = (steps(&mut starts), starts.poll_timeout());
        assert_eq!(now, ([RESTART, Step::Cloned].into(), None));
    }

    #[test]
    fn a_component_ends_before_its_clone_starts() {
        let mut starts = watched();
        starts.handle_clone();
        assert_eq!(steps(&mut starts), [Step::Kill]);
        starts.handle_watched();
        starts.handle_ended(at(1), End::Killed);
        assert_eq!(steps(&mut starts), [RESTART, Step::Cloned]);
        // What it had sent ends the boot: there is no clone.
        let mut starts = watched();
        starts.handle_clone();
        starts.handle_reboot();
        starts.handle_ended(at(1), End::Killed);
        assert_eq!(steps(&mut starts), [Step::Kill, Step::Kill, RESTART]);
    }

    /// X-12: the order of a clone beyond the limit is answered with a failure.
    #[test]
    fn x12_a_clone_that_is_one_too_many_fails() {
        let mut starts = watched();
        (0..3).for_each(|n| assert!(starts.ends.allows(at(n), LIMIT)));
        starts.handle_clone();
        starts.handle_ended(at(4), End::Killed);
        assert_eq!(steps(&mut starts), [Step::Kill, Step::GiveUp, Step::Cloned]);
        assert_eq!(starts.spawned(), Spawned::Failed);
    }

    #[test]
    fn a_boot_that_is_over_is_followed_by_the_next_once_its_process_has_ended() {
        let mut starts = watched();
        starts.handle_reboot();
        assert_eq!(steps(&mut starts), [Step::Kill]);
        starts.handle_ended(at(0), End::Killed);
        assert_eq!(steps(&mut starts), [RESTART], "no task of that boot is left");
        // It could not be started.
        starts.handle_reboot();
        assert_eq!(steps(&mut starts), [Step::Start { is_restart: false }]);
    }

    #[test]
    fn x5_an_isolated_node_starts_nothing_and_its_failures_end_with_the_boot() {
        let mut starts = watched();
        (0..3).for_each(|n| assert!(starts.ends.allows(at(n), LIMIT)));
        starts.handle_halt();
        starts.handle_ended(at(4), End::Killed);
        pass(&mut starts, at(60_000));
        assert_eq!((steps(&mut starts), starts.has_given_up()), ([Step::Kill].into(), false));
        starts.handle_resume();
        assert_eq!(steps(&mut starts), [Step::Start { is_restart: false }]);
        // It is released before its process has ended.
        let mut starts = watched();
        starts.handle_halt();
        starts.handle_resume();
        assert_eq!(steps(&mut starts), [Step::Kill]);
        starts.handle_ended(at(4), End::Killed);
        assert_eq!(steps(&mut starts), [RESTART]);
    }

    /// The start fails after the node was isolated, and the release orders the next one.
    #[test]
    fn a_start_that_was_due_ends_with_the_next_start() {
        let mut starts = Starts::new(LIMIT, CLONE);
        starts.handle_halt();
        starts.handle_start_failed(at(0));
        starts.handle_resume();
        assert_eq!(steps(&mut starts), [Step::Start { is_restart: false }]);
        starts.handle_started(at(1), FLAG);
        starts.handle_ended(at(2), End::Finished);
        assert_eq!((steps(&mut starts), starts.poll_timeout()), ([RESTART].into(), None));
    }

    #[test]
    fn one_that_hangs_as_it_starts_is_killed_and_followed_at_once() {
        let mut starts = running();
        assert_eq!(starts.poll_timeout(), Some(at(1_000)));
        pass(&mut starts, at(1_000));
        assert_eq!(steps(&mut starts), [Step::Hangs(Duration(CLONE.0 / 2)), Step::Kill]);
        assert_eq!(starts.poll_timeout(), None);
        starts.handle_ready(at(1_001));
        pass(&mut starts, at(9_000));
        assert_eq!(steps(&mut starts), [], "it enters no more");
        starts.handle_ended(at(9_001), End::Killed);
        assert_eq!(steps(&mut starts), [RESTART]);
    }

    #[test]
    fn it_enters_the_net_once() {
        let mut starts = running();
        starts.handle_ready(at(0));
        for _ in 0..2 {
            starts.handle_time(at(1), FLAG, Greeted::All);
        }
        assert_eq!(steps(&mut starts), [Step::Enter]);
    }
}

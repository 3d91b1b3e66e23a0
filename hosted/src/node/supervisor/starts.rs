//! A component that cannot start is tried again, with back-off, and finally given up.
//!
//! ```text
//!   start ── fails, or it ends by itself before its I'm-Alive Task watches it ──▶ wait ──▶ start
//!     └ watched: the next failure is the first again   more than so many in a row: given up for
//!                                                      the window of the restart intensity, and
//!                                                      reported to the manager: no clone helps
//! ```
//!
//! One that is killed before it is watched is started again at once: a kill is no evidence about
//! the next one. The restart intensity counts every end (X-6).

use std::time::Duration;

use super::Supervisor;
use crate::clock::now_ns;
use crate::cluster::Restart;
use crate::explain::advice;
use crate::node::backoff::Backoff;
use crate::node::chronicle::What;
use crate::node::control::Refused;

/// The wait after the first failure, and the longest one.
const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);
/// The most failures in a row before components are given up; about four seconds.
const FAILURES_MAX: u32 = 10;

/// The outcome of the last starts of components.
#[derive(Debug)]
pub(super) struct Starts {
    backoff: Backoff,
    /// When the next one is tried, if one is waited for.
    due_ns: Option<u64>,
}

impl Starts {
    pub(super) const fn new() -> Self {
        Self { backoff: Backoff::new(FIRST, LONGEST), due_ns: None }
    }

    /// Counts a failed start: the next is due later, or never; whether it is due.
    fn handle_failed(&mut self, now_ns: u64) -> bool {
        let wait = u64::try_from(self.backoff.fail().as_nanos()).unwrap_or(u64::MAX);
        let is_tried = self.backoff.failures() <= FAILURES_MAX;
        self.due_ns = is_tried.then(|| now_ns.saturating_add(wait));
        is_tried
    }

    /// Tries no further one before `due_ns`, or none at all; its failure counts as the first again.
    fn rest(&mut self, due_ns: Option<u64>) {
        self.backoff.succeed();
        self.due_ns = due_ns;
    }

    /// Records that one is watched by its I'm-Alive Task.
    pub(super) const fn handle_watched(&mut self) {
        self.backoff.succeed();
    }

    /// Cancels the wait: another event starts one, or none must be started.
    pub(super) const fn forget_due(&mut self) {
        self.due_ns = None;
    }

    /// Whether the next one is due; true once.
    fn take_due(&mut self, now_ns: u64) -> bool {
        self.due_ns.take_if(|due| now_ns >= *due).is_some()
    }

    /// When the next one is tried.
    pub(super) const fn next_deadline_ns(&self) -> Option<u64> {
        self.due_ns
    }
}

impl Supervisor {
    /// Starts the next component, now or later.
    pub(super) fn try_start(&mut self) {
        self.starts.forget_due();
        if let Err(error) = self.start_component() {
            self.note_failed(error.to_string(), advice(&error).1);
            self.start_later();
        }
    }

    /// Schedules the next start: the last one failed, or ended by itself before it was watched.
    pub(super) fn start_later(&mut self) {
        if !self.starts.handle_failed(now_ns()) {
            self.give_up();
        }
    }

    /// Starts the component that is due.
    pub(super) fn start_due(&mut self, now_ns: u64) {
        let is_wanted = self.component.is_none() && !self.supervision.is_isolated();
        if self.starts.take_due(now_ns) && is_wanted {
            if std::mem::take(&mut self.given_up) {
                let words = "its component is tried again: what failed may be mended by now";
                self.note(self.rank, What::Noted { words: words.to_owned() });
            }
            self.restarts += 1;
            self.try_start();
        }
    }

    /// Starts no further component before the failures leave the window; never, where no restart is
    /// allowed. Reports this to the operator and the manager.
    pub(super) fn give_up(&mut self) {
        let Restart { max, within_s } = self.cluster.restart;
        let within_ns = (max > 0).then(|| within_s.saturating_mul(1_000_000_000));
        let words = match within_ns {
            Some(_) => format!("component failed too often: given up for {within_s} s"),
            None => "component failed, and `restart.max` is 0: given up".to_owned(),
        };
        tracing::error!(rank = self.rank, "{words}");
        self.note(self.rank, What::Noted { words });
        self.given_up = true;
        self.reset.note_given_up();
        self.handle_program_given_up();
        self.starts.rest(within_ns.map(|within_ns| now_ns().saturating_add(within_ns)));
        self.parked.clear();
        self.clients.refuse_pending(&Refused::GivenUp);
        if let Some(im_alive) = &self.im_alive {
            im_alive.handle_ended();
        }
    }

    /// Notes why a component does not run.
    pub(super) fn note_failed(&mut self, cause: String, cure: String) {
        tracing::error!(rank = self.rank, cause, cure, "the component failed");
        self.note(self.rank, What::Failed { cause, cure });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn each_failure_in_a_row_is_waited_out_longer_and_the_last_is_the_end() {
        let mut starts = Starts::new();
        let (mut now_ns, mut waits) = (0, Vec::new());
        while starts.handle_failed(now_ns) {
            let due_ns = starts.next_deadline_ns().expect("it is tried again");
            assert!(!starts.take_due(due_ns - 1));
            assert!(starts.take_due(due_ns) && !starts.take_due(due_ns), "reported once");
            waits.push((due_ns - now_ns) / MS);
            now_ns = due_ns;
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]);
        assert_eq!(starts.next_deadline_ns(), None);
    }

    #[test]
    fn one_that_is_given_up_is_tried_again_when_its_failures_count_no_longer() {
        let mut starts = Starts::new();
        while starts.handle_failed(0) {}
        starts.rest(Some(5_000 * MS));
        assert!(!starts.take_due(4_999 * MS) && starts.take_due(5_000 * MS));
        assert!(starts.handle_failed(5_000 * MS), "a first one again");
        starts.rest(None);
        assert!(!starts.take_due(u64::MAX));
    }

    #[test]
    fn one_that_is_watched_makes_good_for_all_before() {
        let mut starts = Starts::new();
        (0..FAILURES_MAX).for_each(|_| assert!(starts.handle_failed(0)));
        starts.handle_watched();
        assert!(starts.handle_failed(0));
        assert_eq!(starts.next_deadline_ns(), Some(10 * MS));
    }
}

//! The startup watchdog of a component: deadlines for the time before its I'm-Alive Task watches
//! it.
//!
//! ```text
//!  started ───────────────▶ ready ──────────────────▶ ordered to enter ──────▶ watched
//!     └ half of `clone` at most └ peers greet it: 4 s at most ────┘               by its task,
//!                               └ no pass of its loop for an eighth of `clone`, ┘ with A
//!                                 100 ms at least
//! ```
//!
//! `clone` is the profile's: within this time the manager must hear of a clone that it requested.
//! So a component that hangs here is killed, and its successor heard of, before the whole node is
//! reset. Its end counts like any other against the restart intensity. No alarm goes to the other
//! nodes: it has sent them nothing yet, and they may not be in the net themselves.

use crate::dirnet::Progress;
use crate::time::{Duration, Instant};

/// How long a component waits for peers that may not run before it enters the DIR net.
const ENTER_AFTER: Duration = Duration::from_millis(400);
/// How long it waits at most for running peers that do not greet it, however patient the profile:
/// the link to one of them may be cut, and the others can decide without it.
const PEERS_MAX: Duration = Duration::from_millis(4_000);
/// If the supervisor checks a deadline later than this, the watched component may have been paused
/// with it, and gets its time again (X-3).
const LATE: Duration = Duration::from_millis(100);
/// The least time that a loop gets for a pass, however impatient the profile: shared hosts pause a
/// process for as long.
const PASS_MIN: Duration = Duration::from_millis(100);

/// How many of the other nodes have greeted the component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Greeted {
    /// All nodes of the cluster.
    All,
    /// All that run.
    Living,
    /// Not even those.
    Few,
}

/// The state of one component before it is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartupWatchdog {
    clone: Duration,
    ready_at: Option<Instant>,
    has_entered: bool,
    /// When the wait for peers is looked at next.
    look_at: Option<Instant>,
    /// The flag as it was last seen.
    seen: Progress,
    /// How long it may make no progress, and until when.
    allowed: Duration,
    due: Instant,
}

impl StartupWatchdog {
    /// For a component that is started now, with the flag as its predecessors left it.
    pub(super) fn new(now: Instant, clone: Duration, seen: Progress) -> Self {
        let allowed = Duration(clone.0 / 2);
        let due = now.after(allowed);
        Self { clone, ready_at: None, has_entered: false, look_at: None, seen, allowed, due }
    }

    /// Its endpoint is made: from now on its loop runs.
    pub(super) fn handle_ready(&mut self, now: Instant) {
        self.ready_at = Some(now);
        self.look_at = Some(now.after(ENTER_AFTER));
        self.allowed = Duration(self.clone.0 / 8).max(PASS_MIN);
        self.due = now.after(self.allowed);
    }

    /// For how long it has made no progress, by its present flag, if that is too long.
    pub(super) fn handle_time(&mut self, now: Instant, flag: Progress) -> Option<Duration> {
        let has_moved = self.ready_at.is_some() && flag != self.seen;
        let was_late = now > self.due.after(LATE);
        if has_moved || was_late {
            self.seen = flag;
            self.due = now.after(self.allowed);
        }
        (now >= self.due).then_some(self.allowed)
    }

    /// When to look again if nothing comes before.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.look_at.into_iter().chain([self.due]).min()
    }

    /// Whether it enters the DIR net now: it does so once.
    pub(super) fn enters(&mut self, now: Instant, greeted: Greeted) -> bool {
        let peers = self.clone.min(PEERS_MAX);
        let wait = match greeted {
            Greeted::All => Duration(0),
            Greeted::Living => ENTER_AFTER,
            Greeted::Few => peers,
        };
        let Some(ready) = self.ready_at.filter(|_| !self.has_entered) else { return false };
        self.has_entered = now >= ready.after(wait);
        let looks = [ENTER_AFTER, peers].map(|wait| ready.after(wait));
        self.look_at = looks.into_iter().find(|at| *at > now && !self.has_entered);
        self.has_entered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLONE: Duration = Duration::from_millis(2_000);

    fn at(ms: u64) -> Instant {
        Instant(0).after(Duration::from_millis(ms))
    }

    fn passes(timers: u32) -> Progress {
        Progress { timers, ..Progress::default() }
    }

    fn ready(clone: Duration) -> StartupWatchdog {
        let mut watchdog = StartupWatchdog::new(at(0), clone, passes(7));
        watchdog.handle_ready(at(0));
        watchdog
    }

    #[test]
    fn one_that_does_not_become_ready_hangs_whatever_its_flag_shows() {
        let mut watchdog = StartupWatchdog::new(at(0), CLONE, passes(7));
        assert_eq!(watchdog.poll_timeout(), Some(at(1_000)));
        assert_eq!(watchdog.handle_time(at(999), passes(8)), None);
        let hangs = watchdog.handle_time(at(1_000), passes(9));
        assert_eq!(hangs, Some(Duration::from_millis(1_000)));
    }

    #[test]
    fn one_that_is_ready_may_wait_for_as_long_as_its_loop_runs() {
        let mut watchdog = ready(CLONE);
        for pass in 1..100 {
            let now = at(u64::from(pass) * 249);
            assert_eq!(watchdog.handle_time(now, passes(7 + pass)), None);
        }
        let due = watchdog.due;
        assert_eq!(watchdog.handle_time(Instant(due.0 - 1), passes(106)), None);
        let hangs = watchdog.handle_time(due, passes(106));
        assert_eq!(hangs, Some(Duration::from_millis(250)));
    }

    /// The least `clone` that the cluster file takes.
    #[test]
    fn an_impatient_profile_leaves_a_loop_its_time() {
        let clone = Duration::from_millis(250);
        let mut watchdog = StartupWatchdog::new(at(0), clone, passes(7));
        assert_eq!(watchdog.poll_timeout(), Some(at(125)));
        watchdog.handle_ready(at(125));
        assert_eq!(watchdog.handle_time(at(224), passes(7)), None);
        assert!(watchdog.handle_time(at(225), passes(7)).is_some());
    }

    /// X-3: the host was paused, not the component.
    #[test]
    fn a_supervisor_that_was_late_allows_the_whole_time_again() {
        let mut watchdog = StartupWatchdog::new(at(0), CLONE, passes(7));
        assert_eq!(watchdog.handle_time(at(1_101), passes(7)), None);
        assert_eq!(watchdog.poll_timeout(), Some(at(2_101)));
    }

    /// The link to one of its peers is cut.
    #[test]
    fn a_patient_profile_keeps_no_node_out_for_a_peer_that_does_not_greet_it() {
        let mut watchdog = ready(Duration::from_millis(20_000));
        assert_eq!(watchdog.poll_timeout(), Some(at(400)));
        assert!(!watchdog.enters(at(400), Greeted::Few));
        assert_eq!(watchdog.look_at, Some(at(4_000)));
        assert!(!watchdog.enters(at(3_999), Greeted::Few));
        assert!(watchdog.enters(at(4_000), Greeted::Few));
    }

    #[test]
    fn it_enters_with_all_at_once_with_the_living_soon_and_alone_in_the_end() {
        let mut early = StartupWatchdog::new(at(0), CLONE, passes(7));
        assert!(!early.enters(Instant(u64::MAX), Greeted::All), "it is not ready");
        let cases = [(Greeted::All, 0), (Greeted::Living, 400), (Greeted::Few, 2_000)];
        for (greeted, ms) in cases {
            let (on_time, mut before) = (ready(CLONE).enters(at(ms), greeted), ready(CLONE));
            assert!(on_time, "{greeted:?}");
            assert!(ms == 0 || !before.enters(at(ms - 1), greeted), "{greeted:?}");
        }
    }
}

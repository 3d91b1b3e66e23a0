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

use std::time::Duration;

use weft_core::dirnet::{Profile, Progress};

/// How long a component waits for peers that may not run before it enters the DIR net.
const ENTER_AFTER_NS: u64 = 400_000_000;
/// How long it waits at most for running peers that do not greet it, however patient the profile:
/// the link to one of them may be cut, and the others can decide without it.
const PEERS_NS_MAX: u64 = 4_000_000_000;
/// If the supervisor checks a deadline later than this, the watched component may have been paused
/// with it, and gets its time again (X-3).
const LATE_NS: u64 = 100_000_000;
/// The least time that a loop gets for a pass, however impatient the profile: shared hosts pause a
/// process for as long.
const PASS_NS_MIN: u64 = 100_000_000;

/// How many of the other nodes have greeted the component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greeted {
    /// All nodes of the cluster.
    All,
    /// All that run.
    Living,
    /// Not even those.
    Few,
}

/// The time limits of a component, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Patience {
    ready: u64,
    pass: u64,
    peers: u64,
}

/// The state of one component before it is watched.
#[derive(Debug)]
pub(super) struct StartupWatchdog {
    patience: Patience,
    ready_at_ns: Option<u64>,
    /// The flag as it was last seen.
    seen: Progress,
    /// How long it may make no progress, and until when; none once it is watched or given up.
    allowed_ns: u64,
    due_ns: Option<u64>,
}

impl StartupWatchdog {
    /// For a component that is started now, with the flag as its predecessors left it.
    pub(super) fn new(now_ns: u64, profile: &Profile, seen: Progress) -> Self {
        let clone = profile.timing().clone.0;
        let (pass, peers) = ((clone / 8).max(PASS_NS_MIN), clone.min(PEERS_NS_MAX));
        let patience = Patience { ready: clone / 2, pass, peers };
        let mut startup_watchdog =
            Self { patience, ready_at_ns: None, seen, due_ns: None, allowed_ns: patience.ready };
        startup_watchdog.wait(now_ns);
        startup_watchdog
    }

    /// Its endpoint is made: from now on its loop runs.
    pub(super) fn handle_ready(&mut self, now_ns: u64) {
        self.ready_at_ns = Some(now_ns);
        self.allowed_ns = self.patience.pass;
        self.wait(now_ns);
    }

    /// Ends the watchdog: its I'm-Alive Task watches it.
    pub(super) fn end(&mut self) {
        self.due_ns = None;
    }

    /// For how long it has made no progress, by its present flag, if that is too long; reported
    /// once.
    pub(super) fn handle_time(&mut self, now_ns: u64, flag: Progress) -> Option<Duration> {
        let due_ns = self.due_ns?;
        let has_moved = self.ready_at_ns.is_some() && flag != self.seen;
        let was_late = now_ns > due_ns.saturating_add(LATE_NS);
        if has_moved || was_late {
            self.seen = flag;
            self.wait(now_ns);
        } else if now_ns >= due_ns {
            self.due_ns = None;
            return Some(Duration::from_nanos(self.allowed_ns));
        }
        None
    }

    /// When to check again if nothing comes before.
    pub(super) const fn next_deadline_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Whether it is time to enter the DIR net.
    pub(super) fn is_to_enter(&self, now_ns: u64, greeted: Greeted) -> bool {
        let wait_ns = match greeted {
            Greeted::All => 0,
            Greeted::Living => ENTER_AFTER_NS,
            Greeted::Few => self.patience.peers,
        };
        self.ready_at_ns.is_some_and(|at| now_ns >= at.saturating_add(wait_ns))
    }

    fn wait(&mut self, now_ns: u64) {
        self.due_ns = Some(now_ns.saturating_add(self.allowed_ns));
    }
}

#[cfg(test)]
mod tests {
    use weft_core::dirnet::Timing;

    use super::*;

    const MS: u64 = 1_000_000;

    fn startup_watchdog() -> StartupWatchdog {
        let profile = Profile::new(Timing::LAN).unwrap();
        StartupWatchdog::new(0, &profile, passes(7))
    }

    fn passes(timers: u32) -> Progress {
        Progress { timers, ..Progress::default() }
    }

    #[test]
    fn one_that_does_not_become_ready_hangs_whatever_its_flag_shows() {
        let mut startup_watchdog = startup_watchdog();
        assert_eq!(startup_watchdog.next_deadline_ns(), Some(1_000 * MS));
        assert_eq!(startup_watchdog.handle_time(999 * MS, passes(8)), None);
        let hangs = startup_watchdog.handle_time(1_000 * MS, passes(9));
        assert_eq!(hangs, Some(Duration::from_millis(1_000)));
        assert_eq!(startup_watchdog.handle_time(9_000 * MS, passes(9)), None, "reported once");
        assert_eq!(startup_watchdog.next_deadline_ns(), None);
    }

    #[test]
    fn one_that_is_ready_may_wait_for_as_long_as_its_loop_runs() {
        let mut startup_watchdog = startup_watchdog();
        startup_watchdog.handle_ready(900 * MS);
        for pass in 1..100 {
            let now_ns = 900 * MS + u64::from(pass) * 249 * MS;
            assert_eq!(startup_watchdog.handle_time(now_ns, passes(7 + pass)), None);
        }
        let due_ns = startup_watchdog.next_deadline_ns().unwrap();
        assert_eq!(startup_watchdog.handle_time(due_ns - 1, passes(106)), None);
        let hangs = startup_watchdog.handle_time(due_ns, passes(106));
        assert_eq!(hangs, Some(Duration::from_millis(250)));
    }

    /// The least `clone` that the cluster file takes.
    #[test]
    fn an_impatient_profile_leaves_a_loop_its_time() {
        let clone = weft_core::time::Duration::from_millis(250);
        let profile = Profile::new(Timing { clone, ..Timing::RDMA }).unwrap();
        let mut startup_watchdog = StartupWatchdog::new(0, &profile, passes(7));
        assert_eq!(startup_watchdog.next_deadline_ns(), Some(125 * MS));
        startup_watchdog.handle_ready(125 * MS);
        assert_eq!(startup_watchdog.handle_time(224 * MS, passes(7)), None);
        assert!(startup_watchdog.handle_time(225 * MS, passes(7)).is_some());
    }

    #[test]
    fn one_that_is_watched_by_its_task_is_left_to_it() {
        let mut startup_watchdog = startup_watchdog();
        startup_watchdog.handle_ready(0);
        startup_watchdog.end();
        assert_eq!(startup_watchdog.handle_time(u64::MAX, passes(7)), None);
    }

    /// X-3: the host was paused, not the component.
    #[test]
    fn a_supervisor_that_was_late_allows_the_whole_time_again() {
        let mut startup_watchdog = startup_watchdog();
        assert_eq!(startup_watchdog.handle_time(1_101 * MS, passes(7)), None);
        assert_eq!(startup_watchdog.next_deadline_ns(), Some(2_101 * MS));
    }

    /// The link to one of its peers is cut.
    #[test]
    fn a_patient_profile_keeps_no_node_out_for_a_peer_that_does_not_greet_it() {
        let clone = weft_core::time::Duration::from_millis(20_000);
        let profile = Profile::new(Timing { clone, ..Timing::LAN }).unwrap();
        let mut startup_watchdog = StartupWatchdog::new(0, &profile, passes(7));
        startup_watchdog.handle_ready(0);
        assert!(!startup_watchdog.is_to_enter(3_999 * MS, Greeted::Few));
        assert!(startup_watchdog.is_to_enter(4_000 * MS, Greeted::Few));
    }

    #[test]
    fn it_enters_with_all_at_once_with_the_living_soon_and_alone_in_the_end() {
        let mut startup_watchdog = startup_watchdog();
        assert!(!startup_watchdog.is_to_enter(u64::MAX, Greeted::All), "it is not ready");
        startup_watchdog.handle_ready(100 * MS);
        let cases = [(Greeted::All, 0), (Greeted::Living, 400), (Greeted::Few, 2_000)];
        for (greeted, ms) in cases {
            let at_ns = (100 + ms) * MS;
            assert!(startup_watchdog.is_to_enter(at_ns, greeted), "{greeted:?}");
            assert!(!startup_watchdog.is_to_enter(at_ns - 1, greeted), "{greeted:?}");
        }
    }
}

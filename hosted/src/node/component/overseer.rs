//! The component watches its supervisor, as its supervisor watches it (X-13).
//!
//! ```text
//!   supervisor: main loop ─┐
//!               I'm-Alive ─┴─ passes ──▶ flag ──▶ component ── none for `clone` ──▶ TEIF to all
//! ```
//!
//! A supervisor that is stopped, or of which a thread hangs, guards no task, raises no alarm and
//! carries out no reset, while the component goes on: no other node would notice. The bound is what
//! the profile allows a clone for joining, and R + W at least: on a host so busy that loops are
//! late by seconds, a shorter one was a false positive for a supervisor that was only slow. Safety
//! does not depend on this bound: what follows is a node failure like any other, and the fence ends
//! the component.

use weft_core::dirnet::Profile;

/// A pause of the component itself counts for one part in so many of the bound at most (X-3).
const PAUSES: u64 = 8;

/// How long either loop of a supervisor may make no progress, in nanoseconds.
pub(in crate::node) fn bound_ns(profile: &Profile) -> u64 {
    let timing = profile.timing();
    timing.clone.0.max(timing.verdict_after().0)
}

/// The state of the own supervisor.
#[derive(Debug)]
pub(super) struct Overseer {
    bound_ns: u64,
    /// The passes that were seen last, and for how long each loop has made no further one.
    seen: [u64; 2],
    still_ns: [u64; 2],
    looked_at_ns: u64,
    /// When it is reported again.
    report_every_ns: u64,
    report_at_ns: u64,
}

impl Overseer {
    pub(super) fn new(now_ns: u64, profile: &Profile, seen: [u64; 2]) -> Self {
        Self {
            bound_ns: bound_ns(profile),
            seen,
            still_ns: [0; 2],
            looked_at_ns: now_ns,
            report_every_ns: profile.timing().receive.0,
            report_at_ns: 0,
        }
    }

    /// Whether to report it now, by the passes that its flag shows.
    pub(super) fn handle_time(&mut self, now_ns: u64, passes: [u64; 2]) -> bool {
        let passed = now_ns.saturating_sub(self.looked_at_ns).min(self.bound_ns / PAUSES);
        self.looked_at_ns = now_ns;
        for ((still, seen), passes) in self.still_ns.iter_mut().zip(self.seen).zip(passes) {
            *still = if seen == passes { still.saturating_add(passed) } else { 0 };
        }
        self.seen = passes;
        let is_hung = self.still_ns.iter().any(|still| *still >= self.bound_ns);
        let is_due = is_hung && now_ns >= self.report_at_ns;
        if is_due {
            self.report_at_ns = now_ns.saturating_add(self.report_every_ns);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use weft_core::dirnet::Timing;

    use super::*;

    const MS: u64 = 1_000_000;

    fn overseer() -> Overseer {
        Overseer::new(0, &Profile::new(Timing::LAN).unwrap(), [7, 9])
    }

    /// Looks every 10 ms from `from` until `to`, with the passes that are made by then; returns the
    /// times of the reports.
    fn reports(it: &mut Overseer, span: (u64, u64), passes: impl Fn(u64) -> [u64; 2]) -> Vec<u64> {
        let times = (span.0 / 10 + 1..=span.1 / 10).map(|at| at * 10);
        times.filter(|ms| it.handle_time(ms * MS, passes(*ms))).collect()
    }

    #[test]
    fn either_loop_that_stands_still_is_reported_until_it_goes_on() {
        let still: [fn(u64) -> [u64; 2]; 2] = [|ms| [7, ms], |ms| [ms, 9]];
        for passes in still {
            let mut it = overseer();
            let reported = reports(&mut it, (0, 2_500), passes);
            assert_eq!(reported, [2_000, 2_220, 2_440]);
            assert!(reports(&mut it, (2_500, 9_000), |ms| [ms, ms]).is_empty());
        }
    }

    #[test]
    fn one_that_makes_a_pass_now_and_then_is_well() {
        assert!(reports(&mut overseer(), (0, 60_000), |ms| [ms / 1_990; 2]).is_empty());
    }

    /// X-3: the host was paused, not the supervisor alone.
    #[test]
    fn a_pause_of_the_component_itself_is_no_pause_of_its_supervisor() {
        let mut it = overseer();
        assert!(!it.handle_time(60_000 * MS, [7, 9]));
        assert!(reports(&mut it, (60_000, 61_000), |ms| [ms, ms]).is_empty());
    }
}

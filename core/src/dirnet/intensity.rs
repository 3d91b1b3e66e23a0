//! Restart intensity: at most r restarts within t, as Erlang's supervisors have it.
//!
//! Up to [`RestartLimit::EXACT`] restarts are remembered individually. For a larger r, the restarts
//! within a sixth of t form one group that carries the time of the first, and expire with it.

use super::config::RestartLimit;
use crate::time::{Duration, Instant};

const GROUPS: usize = RestartLimit::EXACT as usize;

/// Restarts that are counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Group {
    /// When the first of them happened.
    pub(super) at: Instant,
    pub(super) count: u16,
}

/// Counts restarts within a sliding window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Intensity {
    /// The latest restarts, oldest first.
    groups: [Group; GROUPS],
    len: u8,
}

impl Intensity {
    /// Whether one more restart at `now` is within `limit`; if it is, counts it.
    pub(super) fn allows(&mut self, now: Instant, limit: RestartLimit) -> bool {
        self.keep(|group| now.since(group.at) < limit.within);
        let counts = self.groups().iter().map(|group| usize::from(group.count));
        let is_allowed = counts.sum::<usize>() < usize::from(limit.max);
        if is_allowed {
            self.note(now, limit);
        }
        is_allowed
    }

    /// Counts a restart at `now`; if there is no more room, the oldest are forgotten.
    pub(super) fn note(&mut self, now: Instant, limit: RestartLimit) {
        let width = match limit.max {
            ..=RestartLimit::EXACT => Duration(0),
            _ => Duration(limit.within.0.div_ceil(GROUPS as u64 - 1)),
        };
        match self.groups[..usize::from(self.len)].last_mut() {
            Some(last) if now.since(last.at) < width => last.count = last.count.saturating_add(1),
            _ => self.push(Group { at: now, count: 1 }),
        }
    }

    /// Appends a group after all others.
    pub(super) fn push(&mut self, group: Group) {
        if usize::from(self.len) == GROUPS {
            self.groups.copy_within(1.., 0);
            self.len -= 1;
        }
        self.groups[usize::from(self.len)] = group;
        self.len += 1;
    }

    /// The remembered groups, oldest first.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups[..usize::from(self.len)]
    }

    /// Forgets groups that begin later than `now`.
    pub(super) fn forget_later(&mut self, now: Instant) {
        self.keep(|group| group.at <= now);
    }

    /// Shifts the counts to an origin of time that lies `by` later.
    pub(super) fn rebase(&mut self, by: Duration) {
        for group in &mut self.groups[..usize::from(self.len)] {
            group.at = Instant(group.at.since(Instant(by.0)).0);
        }
    }

    fn keep(&mut self, is_kept: impl Fn(&Group) -> bool) {
        let mut kept = Self::default();
        self.groups().iter().filter(|group| is_kept(group)).for_each(|group| kept.push(*group));
        *self = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWICE: RestartLimit = RestartLimit { max: 2, within: Duration(10) };

    #[test]
    fn restarts_leave_the_window_one_by_one() {
        let mut intensity = Intensity::default();
        assert!(intensity.allows(Instant(1), TWICE) && intensity.allows(Instant(5), TWICE));
        assert!(!intensity.allows(Instant(10), TWICE));
        assert!(intensity.allows(Instant(11), TWICE));
        assert!(!intensity.allows(Instant(14), TWICE));
        assert!(intensity.allows(Instant(15), TWICE));
    }

    #[test]
    fn none_allowed_means_none() {
        let limit = RestartLimit { max: 0, within: Duration(1) };
        assert!(!Intensity::default().allows(Instant(0), limit));
    }

    /// The first restart expires after one window, and the rest of its group with it.
    #[test]
    fn many_are_counted_in_sixths_of_the_window() {
        for max in [8, 50, 10_000] {
            let limit = RestartLimit { max, within: Duration(60_000) };
            let mut intensity = Intensity::default();
            assert!((0..u64::from(max)).all(|at| intensity.allows(Instant(at), limit)), "{max}");
            assert!(!intensity.allows(Instant(59_999), limit), "{max}");
            assert!(intensity.allows(Instant(60_000), limit), "{max}");
        }
        let limit = RestartLimit { max: 60, within: Duration(600) };
        let mut intensity = Intensity::default();
        let allowed = (0..6_000).filter(|at| intensity.allows(Instant(*at), limit)).count();
        assert!((600..=720).contains(&allowed), "{allowed}");
    }
}

//! The latest resets of a node, as every member counts them for every other (X-6).
//!
//! ```text
//!  the manager decides, and counts ── ANID ──▶ a backup counts, by its own clock
//!                                  ── ANID ──▶ a backup counts, by its own clock ──▶ snapshot
//! ```
//!
//! All members learn of every removal, so all count, and a successor of the manager continues with
//! its own count: a node whose failures also bring its manager down does not escape the limit. A
//! count is saved with the database, and outlives the component and the node's boot. It is never
//! sent, since the clocks of two nodes cannot be compared. A member that was absent and has lost
//! its saved count starts with what it learns from then on. A release ends the count.
//!
//! ANID is also repeated when a fence was not confirmed. An incarnation is removed once; a repeated
//! ANID counts only after the time that the node has to come back: by then it was reset again.

use super::config::RestartLimit;
use super::image::ImageError;
use super::intensity::{Group, Intensity};
use crate::ids::Incarnation;
use crate::time::{Duration, Instant};

/// The maximum number of bytes that the remembered resets take in a snapshot.
pub(super) const RESETS_LEN_MAX: usize = 13 + 9 * RestartLimit::EXACT as usize;

/// The latest resets of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Resets {
    intensity: Intensity,
    /// The last boot that was reset, and when.
    boot: Incarnation,
    last: Instant,
}

impl Resets {
    /// Whether boot `boot` may be reset at `now` within `limit`; if it may, counts the reset.
    pub(super) fn allows(&mut self, now: Instant, boot: Incarnation, limit: RestartLimit) -> bool {
        let is_allowed = self.intensity.allows(now, limit);
        if is_allowed {
            (self.boot, self.last) = (self.boot.max(boot), now);
        }
        is_allowed
    }

    /// Notes that the manager has removed boot `boot`. Returns whether that is new: a later boot,
    /// or the same one after the time `reboot` that it had to come back; if so, counts it.
    pub(super) fn note(
        &mut self,
        now: Instant,
        boot: Incarnation,
        limit: RestartLimit,
        reboot: Duration,
    ) -> bool {
        let is_news = self.boot < boot || now.since(self.last) >= reboot;
        if is_news {
            self.intensity.note(now, limit);
            (self.boot, self.last) = (self.boot.max(boot), now);
        }
        is_news
    }

    /// Forgets resets later than `now`: their times are from another clock, before the host
    /// started.
    pub(super) fn forget_later(&mut self, now: Instant) {
        self.intensity.forget_later(now);
        self.last = self.last.min(now);
    }

    /// Shifts the counts to an origin of time that lies `by` later.
    pub(super) fn rebase(&mut self, by: Duration) {
        self.intensity.rebase(by);
        self.last = Instant(self.last.since(Instant(by.0)).0);
    }

    /// Encodes itself piece by piece into `put`.
    pub(super) fn save(&self, mut put: impl FnMut(&[u8])) {
        let groups = self.intensity.groups();
        put(&self.boot.0.to_le_bytes());
        put(&self.last.0.to_le_bytes());
        put(&[u8::try_from(groups.len()).unwrap_or(u8::MAX)]);
        for group in groups {
            put(&group.at.0.to_le_bytes());
            put(&[u8::try_from(group.count).unwrap_or(u8::MAX)]);
        }
    }

    /// Decodes what [`Self::save`] wrote at the beginning of `bytes`; returns it and the rest.
    pub(super) fn restore(bytes: &[u8]) -> Result<(Self, &[u8]), ImageError> {
        let (boot, rest) = bytes.split_first_chunk().ok_or(ImageError::Count)?;
        let (last, rest) = rest.split_first_chunk().ok_or(ImageError::Count)?;
        let (&[len], mut rest) = rest.split_first_chunk().ok_or(ImageError::Count)?;
        if u16::from(len) > RestartLimit::EXACT {
            return Err(ImageError::Count);
        }
        let (boot, last) = (Incarnation(u32::from_le_bytes(*boot)), u64::from_le_bytes(*last));
        let mut resets = Self { boot, last: Instant(last), ..Self::default() };
        for _ in 0..len {
            let (at, left) = rest.split_first_chunk().ok_or(ImageError::Count)?;
            let (&[count], left) = left.split_first_chunk().ok_or(ImageError::Count)?;
            resets
                .intensity
                .push(Group { at: Instant(u64::from_le_bytes(*at)), count: count.into() });
            rest = left;
        }
        Ok((resets, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const REBOOT: Duration = Duration(10);
    const TWICE: RestartLimit = RestartLimit { max: 2, within: Duration(100) };

    fn times(resets: &Resets) -> Vec<u64> {
        resets.intensity.groups().iter().map(|group| group.at.0).collect()
    }

    fn noted(at: &[(u64, u32)]) -> Resets {
        let mut resets = Resets::default();
        for (at, boot) in at {
            resets.note(Instant(*at), Incarnation(*boot), TWICE, REBOOT);
        }
        resets
    }

    #[test]
    fn a_removal_that_is_said_again_counts_once_for_each_reset() {
        assert_eq!(times(&noted(&[(1, 4), (2, 4), (10, 4)])), [1]);
        assert_eq!(times(&noted(&[(1, 4), (11, 4), (12, 5), (13, 4), (22, 5)])), [1, 11, 12, 22]);
    }

    #[test]
    fn what_was_heard_counts_when_it_is_decided() {
        let mut resets = noted(&[(1, 4)]);
        assert!(resets.allows(Instant(50), Incarnation(5), TWICE));
        assert!(!resets.note(Instant(51), Incarnation(5), TWICE, REBOOT), "it was counted");
        assert!(!resets.allows(Instant(100), Incarnation(6), TWICE));
        let mut refused = resets;
        let is_new = refused.note(Instant(100), Incarnation(6), TWICE, REBOOT);
        assert!(is_new, "a reset that is not allowed is not counted");
        assert!(resets.allows(Instant(101), Incarnation(6), TWICE));
    }

    #[test]
    fn only_the_latest_are_remembered_and_come_back_as_they_were_saved() {
        let all: Vec<_> = (1..=9).map(|n| (u64::from(n), n)).collect();
        let resets = noted(&all);
        assert_eq!(times(&resets), [3, 4, 5, 6, 7, 8, 9]);
        let mut bytes = Vec::new();
        resets.save(|piece| bytes.extend_from_slice(piece));
        assert_eq!(bytes.len(), RESETS_LEN_MAX);
        bytes.push(7);
        assert_eq!(Resets::restore(&bytes), Ok((resets, &[7][..])));
        for len in 0..RESETS_LEN_MAX {
            assert_eq!(Resets::restore(&bytes[..len]), Err(ImageError::Count), "{len}");
        }
        bytes[12] = 8;
        bytes.extend([0; 9]);
        assert_eq!(Resets::restore(&bytes), Err(ImageError::Count));
    }

    #[test]
    fn times_of_another_clock_are_forgotten() {
        let mut resets = noted(&[(1, 1), (2, 2), (30, 3)]);
        resets.forget_later(Instant(2));
        assert_eq!(times(&resets), [1, 2]);
        assert!(resets.note(Instant(12), Incarnation(3), TWICE, REBOOT));
    }
}

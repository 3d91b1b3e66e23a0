//! Refusals that were reported lately, so that a caller that keeps calling does not flood the log.
//!
//! A caller with the wrong key calls several times a second, and two nodes behind one address may
//! be refused for different reasons in turn. Each reason is reported once a minute for each caller.
//! Beyond the entries that are remembered nothing is reported: the log has enough evidence by then.

use crate::bootstrap::Refusal;

/// How long a refusal is not reported again.
const AGAIN_AFTER_NS: u64 = 60_000_000_000;
/// The most refusals that are remembered.
const ENTRIES_MAX: usize = 64;

#[derive(Debug)]
struct ReportedRefusal {
    who: String,
    reason: Refusal,
    at_ns: u64,
}

/// The refusals that were reported: caller, reason and time.
#[derive(Debug, Default)]
pub(super) struct Reported {
    entries: Vec<ReportedRefusal>,
}

impl Reported {
    /// Whether to report `reason` for `who`; if so, it counts as reported.
    pub(super) fn is_news(&mut self, who: &str, reason: &Refusal, now_ns: u64) -> bool {
        self.entries.retain(|entry| now_ns.saturating_sub(entry.at_ns) < AGAIN_AFTER_NS);
        let is_known = self.entries.iter().any(|entry| entry.who == who && entry.reason == *reason);
        if is_known || self.entries.len() >= ENTRIES_MAX {
            return false;
        }
        self.entries.push(ReportedRefusal {
            who: who.to_owned(),
            reason: reason.clone(),
            at_ns: now_ns,
        });
        true
    }

    /// `who` was met: its next refusal is reported.
    pub(super) fn forget(&mut self, who: &str) {
        self.entries.retain(|entry| entry.who != who);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Refusal = Refusal::Rank { rank: 1 };
    const OTHER: Refusal = Refusal::Replayed;

    #[test]
    fn reasons_in_turn_are_told_once_each_and_again_after_a_minute() {
        let mut reported = Reported::default();
        let new = (0..100).filter(|round| {
            let reason = if round % 2 == 0 { ONE } else { OTHER };
            reported.is_news("a", &reason, round * 100_000_000)
        });
        assert_eq!(new.count(), 2);
        assert!(reported.is_news("b", &ONE, 0));
        assert!(reported.is_news("a", &ONE, AGAIN_AFTER_NS));
        assert!(!reported.is_news("a", &ONE, AGAIN_AFTER_NS + 1));
    }

    #[test]
    fn who_was_met_meanwhile_is_reported_anew() {
        let mut reported = Reported::default();
        assert!(reported.is_news("a", &ONE, 0) && reported.is_news("b", &ONE, 0));
        reported.forget("a");
        assert!(reported.is_news("a", &ONE, 1) && !reported.is_news("b", &ONE, 1));
    }

    #[test]
    fn a_crowd_is_not_told_of_without_end() {
        let mut reported = Reported::default();
        let new = (0..1000).filter(|who| reported.is_news(&format!("{who}"), &ONE, 5));
        assert_eq!(new.count(), ENTRIES_MAX);
        assert!(reported.is_news("late", &ONE, 5 + AGAIN_AFTER_NS));
    }
}

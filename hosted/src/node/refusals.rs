//! How many messages were refused, by reason: counted by one thread, read by another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The counts; clones share them. The reasons are few, and static names of the program.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(Arc<Mutex<BTreeMap<&'static str, u32>>>);

impl Refusals {
    /// Counts one more for this reason.
    pub(super) fn count(&self, reason: &'static str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(reason).or_default();
        *count = count.saturating_add(1);
    }

    /// All counts, by reason.
    pub(super) fn counts(&self) -> BTreeMap<String, u32> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_count_together() {
        let refusals = Refusals::default();
        let clone = refusals.clone();
        refusals.count("late");
        clone.count("late");
        clone.count("inbox-full");
        let counts: Vec<_> = refusals.counts().into_iter().collect();
        assert_eq!(counts, [("inbox-full".to_owned(), 1), ("late".to_owned(), 2)]);
    }
}

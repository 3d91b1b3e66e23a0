//! Which of an endpoint's words were heard before: the latest sequence and 64 before it.

/// A sliding window over sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Replay {
    latest: u32,
    /// Bit n for `latest - n`.
    heard: u64,
}

impl Replay {
    /// Whether `sequence` is heard for the first time. One that is too old to tell is not.
    pub(super) fn is_new(&mut self, sequence: u32) -> bool {
        if self.heard == 0 || sequence > self.latest {
            let ahead = if self.heard == 0 { 64 } else { sequence - self.latest };
            self.heard = self.heard.checked_shl(ahead).unwrap_or(0) | 1;
            self.latest = sequence;
            return true;
        }
        let Some(bit) = 1_u64.checked_shl(self.latest - sequence) else { return false };
        let is_new = self.heard & bit == 0;
        self.heard |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn nothing_is_heard_twice_and_nothing_near_is_lost(
            words in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let (mut replay, mut heard) = (Replay::default(), BTreeSet::new());
            for word in words.into_iter().map(u32::from) {
                let is_near = heard.last().is_none_or(|latest| word + 64 > *latest);
                prop_assert_eq!(replay.is_new(word), is_near && heard.insert(word));
            }
        }
    }

    #[test]
    fn the_ends_of_the_numbers_are_numbers() {
        let mut replay = Replay::default();
        assert!(replay.is_new(0) && replay.is_new(u32::MAX) && !replay.is_new(0));
    }
}

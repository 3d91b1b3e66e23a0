//! Replay protection: the latest sequence number of an endpoint and the 64 before it.

use super::ComponentIncarnation;

/// The number before the first one that an endpoint uses. It is close to the maximum, so that every
/// run wraps around early, as Linux does with its jiffies.
pub(super) const BEFORE_FIRST: u32 = u32::MAX - 20;

/// Whether the number `this` comes after `that`, by serial-number arithmetic (RFC 1982).
pub(super) fn is_after(this: u32, that: u32) -> bool {
    if super::NUMBERS_ONLY_GROW.is_planted() {
        return this > that;
    }
    this != that && this.wrapping_sub(that) < 1 << 31
}

/// A sliding window over the sequence numbers of one incarnation; a later incarnation resets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Replay {
    incarnation: ComponentIncarnation,
    latest: u32,
    /// Bit n is set if `latest - n` was received.
    heard: u64,
}

impl Replay {
    /// Whether `sequence` of `incarnation` is received for the first time. A number too old for
    /// the window is not new, nor is any number of an incarnation before the latest.
    pub(super) fn is_new(&mut self, incarnation: ComponentIncarnation, sequence: u32) -> bool {
        if incarnation > self.incarnation {
            *self = Self { incarnation, ..Self::default() };
        } else if incarnation < self.incarnation {
            return false;
        }
        if self.heard == 0 || is_after(sequence, self.latest) {
            let ahead = if self.heard == 0 { 64 } else { sequence.wrapping_sub(self.latest) };
            self.heard = self.heard.checked_shl(ahead).unwrap_or(0) | 1;
            self.latest = sequence;
            return true;
        }
        let Some(bit) = 1_u64.checked_shl(self.latest.wrapping_sub(sequence)) else { return false };
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

    use crate::ids::Incarnation;

    const INCARNATION: ComponentIncarnation =
        ComponentIncarnation { boot: Incarnation(1), generation: 0 };

    proptest! {
        #[test]
        fn nothing_is_heard_twice_and_nothing_near_is_lost(
            words in proptest::collection::vec(any::<u8>(), 0..200), first in any::<u32>(),
        ) {
            for first in [0, BEFORE_FIRST, first] {
                let (mut replay, mut heard) = (Replay::default(), BTreeSet::new());
                for word in words.iter().copied().map(u32::from) {
                    let is_near = heard.last().is_none_or(|latest| word + 64 > *latest);
                    let is_new = replay.is_new(INCARNATION, first.wrapping_add(word));
                    prop_assert_eq!(is_new, is_near && heard.insert(word));
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_numbers_are_numbers() {
        let mut replay = Replay::default();
        assert!(replay.is_new(INCARNATION, 0) && replay.is_new(INCARNATION, u32::MAX));
        assert!(!replay.is_new(INCARNATION, 0));
    }

    #[test]
    fn each_incarnation_begins_again_and_ends_the_one_before() {
        let mut replay = Replay::default();
        assert!(replay.is_new(INCARNATION, 9) && replay.is_new(INCARNATION.clone_of(), 5));
        assert!(!replay.is_new(INCARNATION, 10) && !replay.is_new(INCARNATION.clone_of(), 5));
    }
}

//! Small records that one peer stores while others read them: claims, credits and progress.
//!
//! Under F-3 not even an aligned word arrives whole, so each cell is 16 bytes with a checksum of
//! their own; a reader that finds a torn cell reads again. Where words are placed whole (F-14), a
//! claim is one word.
//!
//! ```text
//! byte    0          4         8            12       16
//! claim   │ tag·count│ a       │ b          │ crc32c │   Idle; Reserving(a = sequence);
//!                                                        Holding(a = epoch, b = first ticket)
//! credit  │ session  │ taken (64 bits)      │ crc32c │
//! progress│ 1·origin │ delivered (64 bits)  │ crc32c │
//!
//! byte       0          4        6          8
//! claim word │ a        │ b      │ tag·count│   count of 14 bits
//! ```

use super::mutants::TORN_CELL_BELIEVED;
use super::slot::{self, Stamp};
use super::u32_at;
use crate::checksum::crc32c;
use crate::ids::Peer;

/// Length of a claim, a credit or a progress in bytes.
pub const CELL_LEN: usize = 16;

/// The state of a sender's put to one owner (MB-7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Claim {
    /// No put is under way: every ticket of the sender is written or never will be.
    #[default]
    Idle,
    /// Tickets are being reserved; their numbers are not known yet.
    Reserving {
        /// Differs from the number of the previous put.
        sequence: u32,
    },
    /// Tickets `first.ticket ..` of `first.epoch` are being written.
    Holding {
        /// The first ticket.
        first: Stamp,
        /// The number of tickets, at most 2^14 - 1.
        count: u32,
    },
}

const IDLE: u32 = 1;
/// `Idle` as bytes: every put ends with it.
const IDLE_CELL: [u8; CELL_LEN] = {
    let [a, b, c, d] = crc32c(&[0, 0, 0, IDLE as u8, 0, 0, 0, 0, 0, 0, 0, 0]).to_le_bytes();
    [0, 0, 0, IDLE as u8, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
};
const RESERVING: u32 = 2;
const HOLDING: u32 = 3;
const COUNT_MASK: u32 = 0x00FF_FFFF;
/// Where the tag of a claim word begins.
const TAG_SHIFT: u32 = 62;
const COUNT_SHIFT: u32 = 48;
const WORD_COUNT_MASK: u64 = (1 << (TAG_SHIFT - COUNT_SHIFT)) - 1;

impl Claim {
    /// The claim as bytes. Zeroed memory is not `Idle` but an invalid claim.
    #[must_use]
    pub fn encode(self, checksum: impl Fn(&[u8]) -> u32) -> [u8; CELL_LEN] {
        match self {
            Self::Idle => IDLE_CELL,
            Self::Reserving { sequence } => encode([RESERVING << 24, sequence, 0], checksum),
            Self::Holding { first, count } => {
                let head = HOLDING << 24 | count & COUNT_MASK;
                encode([head, first.epoch, first.ticket], checksum)
            }
        }
    }

    /// The claim in a private copy, or `None` if the copy is torn or not one.
    #[must_use]
    pub fn decode(copy: &[u8; CELL_LEN], checksum: impl Fn(&[u8]) -> u32) -> Option<Self> {
        let [head, a, b] = decode(copy, checksum)?;
        match (head >> 24, head & COUNT_MASK) {
            (IDLE, 0) => Some(Self::Idle),
            (RESERVING, 0) => Some(Self::Reserving { sequence: a }),
            (HOLDING, count) => Some(Self::Holding { first: Stamp { epoch: a, ticket: b }, count }),
            _ => None,
        }
    }

    /// The claim as a word, where that is placed whole (F-14). Never zero.
    #[inline]
    #[must_use]
    pub const fn to_word(self) -> u64 {
        match self {
            Self::Idle => (IDLE as u64) << TAG_SHIFT,
            Self::Reserving { sequence } => (RESERVING as u64) << TAG_SHIFT | sequence as u64,
            Self::Holding { first, count } => {
                let count = count as u64 & WORD_COUNT_MASK;
                (HOLDING as u64) << TAG_SHIFT | count << COUNT_SHIFT | first.sealed(0)
            }
        }
    }

    /// The claim in a word, or `None` if it is none.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the parts of the word")]
    pub const fn from_word(word: u64) -> Option<Self> {
        let (tag, count) = ((word >> TAG_SHIFT) as u32, word >> COUNT_SHIFT & WORD_COUNT_MASK);
        let stamp = Stamp::from_word(slot::cleared(word));
        match (tag, count, stamp) {
            (IDLE, 0, Stamp { epoch: 0, ticket: 0 }) => Some(Self::Idle),
            (RESERVING, 0, Stamp { epoch, ticket: 0 }) => Some(Self::Reserving { sequence: epoch }),
            (HOLDING, count, first) => Some(Self::Holding { first, count: count as u32 }),
            _ => None,
        }
    }

    /// Whether the claim covers `stamp`.
    #[must_use]
    pub fn holds(&self, stamp: Stamp) -> bool {
        match *self {
            Self::Holding { first, count } => {
                first.epoch == stamp.epoch && stamp.ticket.wrapping_sub(first.ticket) < count
            }
            Self::Idle | Self::Reserving { .. } => false,
        }
    }
}

/// The number of messages that a lane's reader has taken, for the writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Credit {
    /// The pair of incarnations that the count belongs to.
    pub session: u32,
    /// Messages taken in this session.
    pub taken: u64,
}

impl Credit {
    /// The credit as bytes.
    #[must_use]
    pub fn encode(self, checksum: impl Fn(&[u8]) -> u32) -> [u8; CELL_LEN] {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of the count")]
        let words = [self.session, self.taken as u32, (self.taken >> 32) as u32];
        encode(words, checksum)
    }

    /// The credit in a private copy, or `None` if the copy is torn or not one.
    #[must_use]
    pub fn decode(copy: &[u8; CELL_LEN], checksum: impl Fn(&[u8]) -> u32) -> Option<Self> {
        let [session, low, high] = decode(copy, checksum)?;
        Some(Self { session, taken: u64::from(low) | u64::from(high) << 32 })
    }
}

/// The last message of one origin that a member has delivered, for all members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Progress {
    /// The origin.
    pub origin: Peer,
    /// The number of the last message delivered; zero before the first.
    pub delivered: u64,
}

/// The tag of a progress, so that the one of origin 0 differs from zeroed memory.
const PROGRESS: u32 = 1 << 16;

impl Progress {
    /// The progress as bytes.
    #[must_use]
    pub fn encode(self, checksum: impl Fn(&[u8]) -> u32) -> [u8; CELL_LEN] {
        let head = PROGRESS | u32::from(self.origin.0);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of the count")]
        let words = [head, self.delivered as u32, (self.delivered >> 32) as u32];
        encode(words, checksum)
    }

    /// The progress for `origin` in a private copy, or `None` if the copy is torn, is another
    /// origin's, or is not one.
    #[must_use]
    pub fn decode(
        copy: &[u8; CELL_LEN],
        origin: Peer,
        checksum: impl Fn(&[u8]) -> u32,
    ) -> Option<Self> {
        let [head, low, high] = decode(copy, checksum)?;
        let delivered = u64::from(low) | u64::from(high) << 32;
        (head == PROGRESS | u32::from(origin.0)).then_some(Self { origin, delivered })
    }
}

fn encode(words: [u32; 3], checksum: impl Fn(&[u8]) -> u32) -> [u8; CELL_LEN] {
    let mut cell = [0; CELL_LEN];
    for (chunk, word) in cell.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    let crc = checksum(&cell[..12]);
    cell[12..].copy_from_slice(&crc.to_le_bytes());
    cell
}

fn decode(copy: &[u8; CELL_LEN], checksum: impl Fn(&[u8]) -> u32) -> Option<[u32; 3]> {
    let whole = checksum(&copy[..12]) == u32_at(copy, 12) || TORN_CELL_BELIEVED.is_planted();
    whole.then(|| [u32_at(copy, 0), u32_at(copy, 4), u32_at(copy, 8)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::crc32c;
    use proptest::prelude::*;

    fn claim() -> impl Strategy<Value = Claim> {
        prop_oneof![
            Just(Claim::Idle),
            any::<u32>().prop_map(|sequence| Claim::Reserving { sequence }),
            (any::<u32>(), any::<u16>(), 0u32..1 << 14).prop_map(|(epoch, ticket, count)| {
                Claim::Holding { first: Stamp { epoch, ticket: ticket.into() }, count }
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_claim_round_trips(claim in claim()) {
            prop_assert_eq!(Claim::decode(&claim.encode(crc32c), crc32c), Some(claim));
            prop_assert_eq!(Claim::from_word(claim.to_word()), Some(claim));
        }

        #[test]
        fn a_credit_round_trips(session in any::<u32>(), taken in any::<u64>()) {
            let credit = Credit { session, taken };
            prop_assert_eq!(Credit::decode(&credit.encode(crc32c), crc32c), Some(credit));
        }

        #[test]
        fn a_progress_round_trips_for_its_own_origin(
            origin in any::<u16>(), delivered in any::<u64>(),
        ) {
            let progress = Progress { origin: Peer(origin), delivered };
            let cell = progress.encode(crc32c);
            prop_assert_eq!(Progress::decode(&cell, Peer(origin), crc32c), Some(progress));
            let other = Peer(origin.wrapping_add(1));
            prop_assert_eq!(Progress::decode(&cell, other, crc32c), None);
        }

        #[test]
        fn a_claim_with_a_flipped_byte_is_invalid(
            claim in claim(), at in 0..CELL_LEN, flip in 1u8..,
        ) {
            let mut cell = claim.encode(crc32c);
            cell[at] ^= flip;
            prop_assert_eq!(Claim::decode(&cell, crc32c), None);
        }

        #[test]
        fn a_torn_claim_is_one_of_the_two_or_invalid(
            old in claim(), new in claim(), arrived in any::<[bool; CELL_LEN]>(),
        ) {
            let (before, after) = (old.encode(crc32c), new.encode(crc32c));
            let mixed = core::array::from_fn(|i| if arrived[i] { after[i] } else { before[i] });
            let seen = Claim::decode(&mixed, crc32c);
            prop_assert!(seen.is_none() || seen == Some(old) || seen == Some(new));
        }

        #[test]
        fn garbage_never_panics(bytes in any::<[u8; CELL_LEN]>()) {
            let _ = (Claim::decode(&bytes, crc32c), Credit::decode(&bytes, crc32c));
            let _ = Progress::decode(&bytes, Peer(0), crc32c);
        }
    }

    #[test]
    fn zeroed_memory_holds_no_claim() {
        assert_eq!(Claim::decode(&[0; CELL_LEN], crc32c), None);
        assert_eq!(Claim::from_word(0), None);
    }

    #[test]
    fn a_claim_holds_its_tickets_and_no_other() {
        let claim = Claim::Holding { first: Stamp { epoch: 4, ticket: 10 }, count: 3 };
        let held = |epoch, ticket| claim.holds(Stamp { epoch, ticket });
        assert!(held(4, 10) && held(4, 12));
        assert!(!held(4, 9) && !held(4, 13) && !held(5, 11));
    }
}

//! The heartbeat: a cell in the receiver's memory that is overwritten, never queued.
//!
//! ```text
//! byte  0       4          6       8      12           16         20       24     28       32
//!       │ epoch │ claimant │ heard │ boot │ generation │ sequence │ digest │ echo │ crc32c │
//! ```
//!
//! MIA when the sender is the claimant of its term, TAIA otherwise. A plain write can tear (F-3),
//! so the cell carries its own checksum; a reader that finds a broken cell reads it again later.

use super::{ComponentIncarnation, Term};
use crate::ids::{Incarnation, Rank};

/// Bytes of a heartbeat cell.
pub const BEAT_LEN: usize = 32;

const CRC: usize = BEAT_LEN - 4;

/// "Manager is alive", or "this agent is alive".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Beat {
    /// The term that the sender knows.
    pub term: Term,
    /// The sender's incarnation.
    pub incarnation: ComponentIncarnation,
    /// Counts the heartbeats of this incarnation, as a serial number that is never zero. A
    /// heartbeat that does not come after the last one carries no news.
    pub sequence: u32,
    /// The digest of the sender's database and of the last view that it knows (G-25, M-6).
    pub digest: u32,
    /// The number of the last heartbeat that the sender received from this receiver (X-9); zero for
    /// none.
    pub echo: u32,
    /// Whether the sender knows that it is heard: for a manager, by as many members as its
    /// decisions need; for a backup, by its manager.
    pub is_heard: bool,
}

impl Beat {
    /// The cell as bytes.
    #[must_use]
    pub fn encode(self, checksum: impl Fn(&[u8]) -> u32) -> [u8; BEAT_LEN] {
        let mut cell = [0; BEAT_LEN];
        let words = [
            self.term.epoch,
            u32::from(self.term.claimant.0) | u32::from(self.is_heard) << 16,
            self.incarnation.boot.0,
            self.incarnation.generation,
            self.sequence,
            self.digest,
            self.echo,
        ];
        for (chunk, word) in cell.chunks_exact_mut(4).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        let crc = checksum(&cell[..CRC]);
        cell[CRC..].copy_from_slice(&crc.to_le_bytes());
        cell
    }

    /// Decodes the heartbeat in a private copy; `None` when the copy is torn or was never written.
    #[must_use]
    pub fn decode(copy: &[u8; BEAT_LEN], checksum: impl Fn(&[u8]) -> u32) -> Option<Self> {
        let mut words = [0; BEAT_LEN / 4];
        for (word, chunk) in words.iter_mut().zip(copy.chunks_exact(4)) {
            *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        let [epoch, claimant, boot, generation, sequence, digest, echo, crc] = words;
        let is_heard = claimant >> 16 == 1;
        let claimant = u16::try_from(claimant - (u32::from(is_heard) << 16)).ok()?;
        let is_whole = checksum(&copy[..CRC]) == crc && sequence != 0;
        is_whole.then_some(Self {
            term: Term { epoch, claimant: Rank(claimant) },
            incarnation: ComponentIncarnation { boot: Incarnation(boot), generation },
            sequence,
            digest,
            echo,
            is_heard,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::crc32c;
    use proptest::prelude::*;

    fn beat() -> impl Strategy<Value = Beat> {
        (any::<[u32; 6]>(), any::<u16>(), any::<bool>()).prop_map(
            |([epoch, boot, generation, sequence, digest, echo], claimant, is_heard)| Beat {
                term: Term { epoch, claimant: Rank(claimant) },
                incarnation: ComponentIncarnation { boot: Incarnation(boot), generation },
                sequence: sequence.max(1),
                digest,
                echo,
                is_heard,
            },
        )
    }

    proptest! {
        #[test]
        fn a_heartbeat_comes_back(beat in beat()) {
            prop_assert_eq!(Beat::decode(&beat.encode(crc32c), crc32c), Some(beat));
        }

        #[test]
        fn a_torn_heartbeat_is_one_of_the_two_or_broken(
            old in beat(), new in beat(), arrived in any::<[bool; BEAT_LEN]>(),
        ) {
            let (before, after) = (old.encode(crc32c), new.encode(crc32c));
            let mixed = core::array::from_fn(|i| if arrived[i] { after[i] } else { before[i] });
            let seen = Beat::decode(&mixed, crc32c);
            prop_assert!(seen.is_none() || seen == Some(old) || seen == Some(new));
        }
    }

    #[test]
    fn fresh_memory_holds_no_heartbeat() {
        assert_eq!(Beat::decode(&[0; BEAT_LEN], crc32c), None);
    }
}

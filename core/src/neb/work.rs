//! Work ids, packed with checked widths (N-10).
//!
//! ```text
//! bits  54  52     46         40       24           0
//!       │ 1 │ …    │ replayer │ origin │ index     │ generation │   read of a replay
//!       │ 2 │ …                        │ last message, 48 bits  │   write of messages up to it
//!       │ 3 │ …                                                 │   read of a progress
//! ```

use super::NEB_WORK;
use super::config::SLOTS_MAX;
use crate::fabric::WorkId;
use crate::ids::{Peer, PeerSet};
use crate::wire::broadcast::Stamp;

const GENERATION_BITS: u32 = 24;
const INDEX_BITS: u32 = 16;
const PEER_BITS: u32 = 6;
const LAST_BITS: u32 = 48;
const KIND_SHIFT: u32 = 54;

const _: () = assert!(SLOTS_MAX <= 1 << INDEX_BITS);
const _: () = assert!(PeerSet::CAPACITY <= 1 << PEER_BITS);
const _: () = assert!(GENERATION_BITS + INDEX_BITS + 2 * PEER_BITS <= KIND_SHIFT);
const _: () = assert!(LAST_BITS <= KIND_SHIFT && KIND_SHIFT + 2 <= 56);

const VOTE: u64 = 1;
const WRITE: u64 = 2;
const PROGRESS: u64 = 3;

/// The purpose of a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// A read of what `replayer` exposed.
    Vote { replayer: Peer, origin: Peer, index: u32, generation: u32 },
    /// A write of own messages, up to the one whose number ends with the bits `last`.
    Write { last: u64 },
    /// A read of a peer's progress.
    Progress,
}

const fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The bits of a generation that an id carries.
pub(super) fn tag_of(generation: u32) -> u32 {
    generation & ((1 << GENERATION_BITS) - 1)
}

/// The message at or before `posted` whose number ends with the bits `last`.
pub(super) fn seq_of(last: u64, posted: u64) -> u64 {
    posted - (posted.wrapping_sub(last) & low(LAST_BITS)).min(posted)
}

impl Errand {
    pub(super) fn vote(replayer: Peer, stamp: Stamp, index: u32) -> Self {
        let generation = tag_of(stamp.generation);
        Self::Vote { replayer, origin: stamp.origin, index, generation }
    }

    pub(super) fn id(self) -> WorkId {
        let detail = match self {
            Self::Vote { replayer, origin, index, generation } => {
                let who = u64::from(replayer.0) & low(PEER_BITS);
                let origin = u64::from(origin.0) & low(PEER_BITS);
                let place = who << PEER_BITS | origin;
                let place = place << INDEX_BITS | u64::from(index) & low(INDEX_BITS);
                VOTE << KIND_SHIFT | place << GENERATION_BITS | u64::from(tag_of(generation))
            }
            Self::Write { last } => WRITE << KIND_SHIFT | last & low(LAST_BITS),
            Self::Progress => PROGRESS << KIND_SHIFT,
        };
        WorkId::new(NEB_WORK, detail)
    }

    /// The purpose of the work with this id; `None` if [`Self::id`] did not make it.
    pub(super) fn of(id: WorkId) -> Option<Self> {
        let detail = id.detail();
        #[expect(clippy::cast_possible_truncation, reason = "masked to fewer bits")]
        let field = |shift: u32, bits: u32| (detail >> shift & low(bits)) as u32;
        #[expect(clippy::cast_possible_truncation, reason = "masked to fewer bits")]
        let peer = |shift: u32| Peer(field(shift, PEER_BITS) as u16);
        match (id.machine(), detail >> KIND_SHIFT) {
            (NEB_WORK, VOTE) => Some(Self::Vote {
                replayer: peer(GENERATION_BITS + INDEX_BITS + PEER_BITS),
                origin: peer(GENERATION_BITS + INDEX_BITS),
                index: field(GENERATION_BITS, INDEX_BITS),
                generation: field(0, GENERATION_BITS),
            }),
            (NEB_WORK, WRITE) => Some(Self::Write { last: detail & low(LAST_BITS) }),
            (NEB_WORK, PROGRESS) => Some(Self::Progress),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn errand() -> impl Strategy<Value = Errand> {
        let peer = || (0..64u16).prop_map(Peer);
        prop_oneof![
            (peer(), peer(), 0..SLOTS_MAX, 0..1u32 << 24).prop_map(
                |(replayer, origin, index, generation)| {
                    Errand::Vote { replayer, origin, index, generation }
                }
            ),
            (0..1u64 << 48).prop_map(|last| Errand::Write { last }),
            Just(Errand::Progress),
        ]
    }

    proptest! {
        #[test]
        fn an_errand_round_trips_through_its_id(errand in errand()) {
            prop_assert_eq!(errand.id().machine(), NEB_WORK);
            prop_assert_eq!(Errand::of(errand.id()), Some(errand));
        }

        #[test]
        fn a_number_is_recovered_from_its_last_bits(posted: u64, behind in 0..1u64 << 40) {
            let seq = posted.saturating_sub(behind);
            prop_assert_eq!(seq_of(seq & low(LAST_BITS), posted), seq);
        }

        #[test]
        fn no_id_panics(id: u64) {
            let _ = Errand::of(WorkId(id));
        }
    }
}

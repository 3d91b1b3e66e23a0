//! The configurations of rendezvous that the explorer walks.
//!
//! ```text
//!   members   2: peer 0 sends one value, peer 1 asks for one; 3: two ask for one each
//!   paths     inline, and by a read
//!   crash     of either, at any operation
//! ```
//!
//! No time passes, no receive is cancelled and no step ends: seeds show those.

use weft_core::rendezvous::{Digest, RendezvousSizes};

use super::Meetings;
use crate::protocol::{Pace, Small};

/// All of them.
pub(super) fn all() -> Vec<Small<Meetings>> {
    [("n = 2, one value, inline", 2, 16, 1), ("n = 2, one value, read", 2, 0, 1)]
        .map(|(name, peers, inline, crashes)| {
            let sizes = RendezvousSizes {
                peers,
                slots: 4,
                leaf_len: 64,
                offer_leaves: 2,
                landing_leaves: 2,
                inline,
                piece_len: 8,
                digest: Digest::Off,
                lane_slots: 2,
            };
            let protocol = Meetings::new(sizes, (1, 16, 1_000_000));
            let small = Small::of(name, protocol, vec![1; usize::from(peers)]);
            Small { crashes, pace: Pace::AtOnce, ..small }
        })
        .into()
}

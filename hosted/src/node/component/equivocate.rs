//! An injected equivocation: some peers receive another message under one number.

use weft_core::ids::{Peer, PeerSet};

use super::Component;
use crate::node::casts::has_room;
use crate::node::control::{Equivocation, Outcome, Refused};
use crate::node::faults::{LIE_TAG, Lying};

/// The original; the altered message differs in its first letter.
const STORY: &[u8] = b"one story for some, another for others";
/// Two different messages need two receivers.
const STORIES: usize = 2;

impl Component {
    /// Broadcasts a message that differs from peer to peer: every second peer that takes part and
    /// can be reached receives the altered one.
    pub(super) fn equivocate(&mut self) -> Outcome {
        let me = self.endpoint.me();
        let admitted = self.endpoint.admitted();
        let Some((broadcast, fabric)) = self.endpoint.broadcast() else {
            return Outcome::Refused(Refused::TooFew { reached: 0 });
        };
        let (sizes, regions) = broadcast.layout();
        let live = broadcast.live();
        let is_other = |peer: &Peer| *peer != me && live.contains(*peer);
        let others: Vec<Peer> = admitted.iter().filter(is_other).collect();
        if others.len() < STORIES {
            return Outcome::Refused(Refused::TooFew { reached: others.len() });
        }
        let mut victims = PeerSet::EMPTY;
        others.iter().skip(1).step_by(2).for_each(|peer| victims.insert(*peer));
        // What was staged before goes out unaltered.
        broadcast.flush(fabric);
        let standing = broadcast.standing(me).unwrap_or_default();
        if !has_room(standing, sizes.slots()) {
            return Outcome::Refused(Refused::WindowFull);
        }
        let next = standing.seen + 1;
        let slot = sizes.written_at(&regions, me, next);
        let keys = broadcast.keys().cloned();
        let mut lying = Lying::new(fabric, (slot, victims), |lie| {
            if let Some(keys) = &keys {
                // A slot without room for a signature needs none.
                let _ = keys.sign_slot(lie);
            }
        });
        let Ok(seq) = broadcast.broadcast(&mut lying, LIE_TAG, STORY) else {
            return Outcome::Refused(Refused::WindowFull);
        };
        let misled = lying.misled();
        let (altered, original) =
            others.iter().partition::<Vec<Peer>, _>(|peer| misled.contains(**peer));
        let ranks = |peers: Vec<Peer>| peers.iter().map(|peer| peer.0).collect();
        tracing::warn!(seq, "equivocates by order");
        Outcome::Equivocated(Equivocation {
            seq,
            original: ranks(original),
            altered: ranks(altered),
        })
    }
}

//! Which client receives the broadcasts of each origin at this node, and how much it has processed.
//!
//! ```text
//!   an origin ── asked for by name, or handed out ──▶ held by one client
//!      ▲                                                │
//!      └── it ends, leaves, or asks for another alone ──┘
//! ```
//!
//! A decider. One client an origin, so that no message is handed to two; one client may hold
//! several, and several clients one each. Positions only advance, and only by a report of the
//! origin's holder: a late report of another client changes nothing. The supervisor keeps a copy,
//! so that a client in the middle of a file keeps its place when the component dies.

use serde::{Deserialize, Serialize};
use weft_core::ids::Peer;

/// A client that receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReceivingClient {
    pub(super) client: u64,
    /// Its process, reported to clients that find the place taken.
    pub(super) process: u32,
}

/// The state of receiving one origin's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OriginState {
    /// The last message that a client has processed.
    after: u64,
    holder: Option<ReceivingClient>,
}

/// One place for each origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Places(Vec<OriginState>);

impl Places {
    /// All free, from the first message on.
    pub(super) fn new(origins: usize) -> Self {
        Self(vec![OriginState::default(); origins])
    }

    /// The number of origins.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// For each origin, the last message that a client has processed.
    pub(super) fn after(&self) -> Vec<u64> {
        self.0.iter().map(|place| place.after).collect()
    }

    /// The last message of `origin` that a client has processed.
    pub(super) fn after_of(&self, origin: Peer) -> u64 {
        self.0.get(origin.index()).map_or(0, |place| place.after)
    }

    /// The client that holds `origin`, unless that is `client` itself.
    pub(super) fn other_holder(&self, origin: Peer, client: u64) -> Option<ReceivingClient> {
        let place = self.0.get(origin.index())?;
        place.holder.filter(|holder| holder.client != client)
    }

    /// Gives `origin` to `receiver`; no other client may hold it.
    pub(super) fn hold(&mut self, origin: Peer, receiver: ReceivingClient) {
        debug_assert!(self.other_holder(origin, receiver.client).is_none(), "held by another");
        if let Some(place) = self.0.get_mut(origin.index()) {
            place.holder = Some(receiver);
        }
    }

    /// Advances the positions to what `client` reports as processed of each origin: only of those
    /// that it holds, and not past what was `delivered`.
    pub(super) fn note_dealt_with(
        &mut self,
        client: u64,
        confirmed: &[u64],
        mut delivered: impl FnMut(Peer) -> u64,
    ) {
        for (origin, (place, confirmed)) in (0..).map(Peer).zip(self.0.iter_mut().zip(confirmed)) {
            if place.holder.is_some_and(|holder| holder.client == client) {
                place.after = place.after.max((*confirmed).min(delivered(origin)));
            }
        }
    }

    /// Takes back all that `client` holds except `kept`.
    pub(super) fn give_back(&mut self, client: u64, kept: Option<Peer>) {
        for (origin, place) in (0..).map(Peer).zip(&mut self.0) {
            if Some(origin) != kept {
                place.holder.take_if(|holder| holder.client == client);
            }
        }
    }

    /// Takes back what clients hold that are no longer connected.
    pub(super) fn retain(&mut self, is_connected: impl Fn(u64) -> bool) {
        for place in &mut self.0 {
            place.holder.take_if(|holder| !is_connected(holder.client));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ReceivingClient = ReceivingClient { client: 1, process: 100 };
    const B: ReceivingClient = ReceivingClient { client: 2, process: 200 };

    /// Three origins; A holds 0 and 2.
    fn held() -> Places {
        let mut places = Places::new(3);
        places.hold(Peer(0), A);
        places.hold(Peer(2), A);
        places
    }

    #[test]
    fn an_origin_is_held_by_one_and_others_are_told_by_whom() {
        let mut places = held();
        assert_eq!(places.other_holder(Peer(0), B.client), Some(A));
        assert_eq!(places.other_holder(Peer(0), A.client), None, "it may ask again");
        assert_eq!(places.other_holder(Peer(1), B.client), None, "free");
        places.hold(Peer(1), B);
        assert_eq!(places.other_holder(Peer(1), A.client), Some(B));
        assert_eq!(places.other_holder(Peer(9), A.client), None, "no such origin");
    }

    #[test]
    fn who_keeps_to_one_origin_gives_the_others_back() {
        let mut places = held();
        places.give_back(A.client, Some(Peer(2)));
        assert_eq!(places.other_holder(Peer(0), B.client), None);
        assert_eq!(places.other_holder(Peer(2), B.client), Some(A));
        places.give_back(A.client, None);
        assert_eq!(places, Places::new(3));
    }

    #[test]
    fn positions_advance_by_the_word_of_the_holder_alone() {
        let mut places = held();
        places.note_dealt_with(A.client, &[5, 5, 5], |_| 4);
        assert_eq!(places.after(), [4, 0, 4], "what it holds, as far as was delivered");
        places.note_dealt_with(A.client, &[2, 2, 2], |_| 9);
        places.note_dealt_with(B.client, &[9, 9, 9], |_| 9);
        assert_eq!((places.after(), places.after_of(Peer(2))), (vec![4, 0, 4], 4));
    }

    #[test]
    fn who_left_while_no_component_ran_holds_nothing_in_the_next() {
        let mut places = held();
        places.hold(Peer(1), B);
        places.retain(|client| client == B.client);
        assert_eq!(places.other_holder(Peer(0), B.client), None);
        assert_eq!(places.other_holder(Peer(1), A.client), Some(B));
    }
}

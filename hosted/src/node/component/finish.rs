//! The programs of all members have finished: a node that ends with its program may end.
//!
//! ```text
//!   hello, finished ──▶ a peer that heard this knows it         welcome, finished ──▶ both know it
//! ```
//!
//! A member that ends must not leave another one that waits for its word. So it ends once every
//! peer, finished itself, has answered its hello. A peer that had finished and is gone by then has
//! ended for the same reason: it waits for no answer.

use weft_core::ids::{Peer, PeerSet};

use super::Component;
use crate::node::NodeError;
use crate::node::link::FromComponent;

/// What peers have sent of their ends.
#[derive(Debug, Default)]
pub(super) struct Finish {
    /// The peers whose programs have finished, by their hello.
    heard: PeerSet,
    is_reported: bool,
}

impl Finish {
    /// Records the peers whose programs have finished, by their hello.
    pub(super) fn note_heard(&mut self, peers: PeerSet) {
        self.heard = self.heard.union(peers);
    }
}

impl Component {
    /// Reports once that the programs of all members have finished, and that all know it.
    #[inline]
    pub(super) fn report_finish(&mut self) -> Result<(), NodeError> {
        if !self.identity.finished || self.finish.is_reported {
            return Ok(());
        }
        let admitted = self.endpoint.admitted();
        let others = PeerSet::first(self.cluster.nodes).without(PeerSet::only(self.identity.me));
        let has_ended = |peer: Peer| {
            let is_gone = self.finish.heard.contains(peer) && !admitted.contains(peer);
            self.events.has_finished(peer) || is_gone
        };
        if others.iter().all(has_ended) {
            self.finish.is_reported = true;
            self.tell(&FromComponent::AllFinished)?;
        }
        Ok(())
    }
}

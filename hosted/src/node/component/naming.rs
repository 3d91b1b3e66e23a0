//! When a component may question tickets: once each process that reaches its memory is one it asks.
//!
//! Over shared memory a writer may stall between its check of the gate and its copy, and copy when
//! the owner's next component runs, which has neither fenced nor asked that writer. The supervisor
//! names every component that runs and ends every other one that ever reached this memory; then it
//! sends [`AllNamed`](crate::node::link::ToComponent::AllNamed).

use weft_core::ids::{Peer, PeerSet};

use super::Component;

/// Which peers were named and are not settled yet.
#[derive(Debug, Default)]
pub(super) struct Naming {
    /// Whether the supervisor has named all.
    is_over: bool,
    /// Named, running, and neither admitted nor fenced.
    outside: PeerSet,
}

impl Component {
    pub(super) fn handle_all_named(&mut self) {
        self.naming.is_over = true;
        self.question_if_all_named();
    }

    /// `peer` was named; over shared memory it may reach this memory already.
    pub(super) fn note_named(&mut self, peer: Peer) {
        self.naming.outside.insert(peer);
    }

    /// `peer` is admitted, so tickets are questioned at it; or it is fenced, and writes nothing.
    pub(super) fn note_settled(&mut self, peer: Peer) {
        self.naming.outside.remove(peer);
        self.question_if_all_named();
    }

    fn question_if_all_named(&mut self) {
        if self.naming.is_over && self.naming.outside.is_empty() {
            self.endpoint.handle_all_named();
        }
    }
}

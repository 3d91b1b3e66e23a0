//! When a component may question tickets: once no process reaches its memory that it does not ask.
//!
//! Over shared memory a writer may stall between its look at the gate and its copy, and copy when
//! the owner's next component has begun, which has neither fenced nor asked it. The supervisor
//! names every component that lives and ends every other that ever reached this memory; then it
//! says [`AllNamed`](crate::node::link::ToComponent::AllNamed).

use weft_core::ids::{Peer, PeerSet};

use super::Component;

/// Who was named, as far as that matters.
#[derive(Debug, Default)]
pub(super) struct Naming {
    /// The supervisor has named all.
    is_over: bool,
    /// Named, alive, and neither admitted nor fenced.
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

    /// `peer` is admitted, so it is asked; or it is fenced, and writes nothing.
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

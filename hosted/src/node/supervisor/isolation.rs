//! Isolation (X-5): a node that the cluster has shut out keeps quiet until it is released.
//!
//! ```text
//!   its peers, by decision of the manager: fence it, let no life of it in, tell it so
//!        │ Isolated                                        │ Released
//!        ▼                                                 ▼
//!   no component, no task, no request but for its status   another life of it begins
//! ```
//!
//! A node whose supervisor has died meanwhile is started again by whoever can, once it is released.

use weft_core::dirnet;
use weft_core::ids::{Incarnation, Peer, Rank};

use super::Supervisor;
use crate::clock::now_ns;
use crate::node::chronicle::What;
use crate::node::control::Refused;

impl Supervisor {
    /// By decision no life of `peer` is let in from now on.
    pub(super) fn isolate_peer(&mut self, peer: Peer, boot: Incarnation) {
        if self.lives.handle_isolated(peer, boot) {
            self.bootstrap.isolate(peer);
            self.reset.note_isolated(Rank(peer.0), boot);
        }
    }

    /// By decision `peer` may come back.
    pub(super) fn release_peer(&mut self, peer: Peer, boot: Incarnation) {
        if !self.lives.handle_released(peer, boot) {
            return;
        }
        self.reset.note_released(Rank(peer.0), boot);
        if self.lives.is_met(peer) {
            self.bootstrap.release(peer);
            let due = self.lives.handle_let_in(peer, boot);
            self.act(due);
        } else {
            self.reset_node(peer.0, boot.0);
        }
    }

    /// Everything below this supervisor ends; what its peers decide next is waited for.
    pub(super) fn be_isolated(&mut self) {
        if std::mem::replace(&mut self.isolated, true) {
            return;
        }
        let me = Rank(self.rank);
        self.note(self.rank, What::news(dirnet::News::Isolated(me), me).1);
        self.boot = None;
        self.births.forget_due();
        self.im_alive = None;
        self.tasks.hold_all(now_ns());
        if let Some(component) = &self.component {
            // One that is dead by now is what was wanted.
            let _ = component.spawned.pidfd.kill();
        }
        self.parked.clear();
        self.clients.refuse_pending(&Refused::Isolated);
    }

    /// Another life of this node begins, once the last one has ended.
    pub(super) fn be_released(&mut self) {
        if !std::mem::take(&mut self.isolated) {
            return;
        }
        self.note(self.rank, What::Reborn);
        self.tasks.release_all(now_ns());
        if self.component.is_none() && !self.given_up {
            self.try_start();
        }
    }
}

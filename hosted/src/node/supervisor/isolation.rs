//! Isolation (X-5): a node that the cluster has shut out keeps quiet until it is released.
//!
//! ```text
//!   its peers, by decision of the manager: fence it, let no life of it in, tell it so
//!        │ Isolated                                        │ Released
//!        ▼                                                 ▼
//!   no component, no task, no request but for its status   another life of it begins
//! ```
//!
//! What somebody knows may be over: one that starts with an old database, for instance. So each
//! isolation and each release names the life that it is about, and the later word counts. Whoever
//! meets a node that was released tells it so; it contradicts those who have not heard of it yet.
//!
//! A node whose supervisor has died meanwhile is started again by whoever can, once it is released.

use weft_core::dirnet;
use weft_core::ids::{Incarnation, Peer, Rank};

use super::Supervisor;
use crate::clock::now_ns;
use crate::node::chronicle::What;
use crate::node::control::Refused;
use crate::node::link::ToComponent;

impl Supervisor {
    /// By decision no life of `peer` is let in from now on.
    pub(super) fn isolate_peer(&mut self, peer: Peer, boot: Incarnation) {
        if self.lives.handle_isolated(peer, boot) {
            self.bootstrap.isolate(peer, boot);
            self.reset.note_isolated(Rank(peer.0), boot);
        } else if let Some(boot) = self.lives.released(peer) {
            self.tell(&ToComponent::Released { peer: peer.0, boot: boot.0 }, &[]);
        }
    }

    /// By decision `peer` may come back.
    pub(super) fn release_peer(&mut self, peer: Peer, boot: Incarnation) {
        if !self.lives.handle_released(peer, boot) {
            return;
        }
        self.reset.note_released(Rank(peer.0), boot);
        if self.lives.is_met(peer) {
            self.bootstrap.release(peer, boot);
            let due = self.lives.handle_let_in(peer, boot);
            self.act(due);
        } else {
            self.reset_node(peer.0, boot.0);
        }
    }

    /// `peer` was released, and knows it better than this node: its component is told so, and the
    /// life of it that was kept out is let in.
    pub(super) fn handle_contradiction(&mut self, peer: Peer, boot: Incarnation) {
        if !self.lives.handle_released(peer, boot) {
            return;
        }
        self.reset.note_released(Rank(peer.0), boot);
        self.tell(&ToComponent::Released { peer: peer.0, boot: boot.0 }, &[]);
        let due = self.lives.handle_let_in(peer, boot);
        self.act(due);
    }

    /// Everything below this supervisor ends; what its peers decide next is waited for.
    pub(super) fn be_isolated(&mut self, since: Incarnation) {
        let before = self.isolated;
        self.isolated = before.max(Some(since));
        if before.is_some() {
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

    /// Isolations since `boot` or before are over: another life of this node begins, once the last
    /// one has ended.
    pub(super) fn be_released(&mut self, boot: Incarnation) {
        self.free = self.free.max(boot);
        if self.isolated.take_if(|since| *since <= boot).is_none() {
            return;
        }
        self.note(self.rank, What::Reborn);
        self.tasks.release_all(now_ns());
        if self.component.is_none() && !self.given_up {
            self.try_start();
        }
    }
}

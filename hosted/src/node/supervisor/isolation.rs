//! Isolation (X-5): a node that the cluster has isolated runs no component until it is released.
//!
//! ```text
//!   its peers, by decision of the manager: fence it, admit no incarnation of it, report it
//!        │ Isolated                                        │ Released
//!        ▼                                                 ▼
//!   no component, no task, no request but for its status   its next boot begins
//! ```
//!
//! What a node knows may be out of date: it may have started with an old database. So each
//! isolation and each release has a number, and core's `Standing` merges them in any order, here as
//! in the components. A node that meets a released one sends it the release; a released node
//! contradicts those that have not heard of it yet.
//!
//! A node whose supervisor has died meanwhile is started again, by its launcher or an operator,
//! once it is released. If it is started before, it knows from its own note that it is isolated,
//! and waits.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::OFlags;
use weft_core::dirnet::{self, Standing};
use weft_core::ids::{Incarnation, Peer, Rank};

use super::Supervisor;
use crate::clock::now_ns;
use crate::node::chronicle::What;
use crate::node::control::Refused;
use crate::node::link::ToComponent;

/// The note of the boot since which a node is isolated.
#[derive(Debug)]
pub(super) struct IsolationNote {
    path: PathBuf,
}

impl IsolationNote {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The boot since which it is isolated, if it is. A note that makes no sense isolates the node
    /// as well, until any release.
    pub(super) fn load(&self) -> Option<Incarnation> {
        // Bounded by the longest number; a file that is not this user's cannot be read, and
        // isolates.
        let mut text = String::new();
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(&self.path);
        let read = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            file => file.and_then(|file| file.take(16).read_to_string(&mut text)),
        };
        let since = read.ok().and_then(|_| text.parse().ok());
        Some(Incarnation(since.unwrap_or(0)))
    }

    fn keep(&self, since: Option<Incarnation>) -> io::Result<()> {
        let Some(Incarnation(since)) = since else {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            };
        };
        // A reader sees all of it or none.
        let draft = self.path.with_extension("isolated.new");
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft);
        file.and_then(|mut file| file.write_all(since.to_string().as_bytes()))?;
        fs::rename(&draft, &self.path)
    }
}

impl Supervisor {
    /// Restores the state before this supervisor started: isolated, if it noted so.
    pub(super) fn recall_isolation(&mut self) {
        if let Some(since) = self.isolation_note.load() {
            // A note that makes no sense is older than any release.
            self.be_isolated(since.max(Incarnation(1)));
        }
    }

    /// Notes the standing of the node: its next supervisor knows only what is noted.
    fn keep_isolation(&mut self) {
        if let Err(error) = self.isolation_note.keep(self.standing.isolation()) {
            tracing::error!(%error, "whether this node is isolated cannot be noted");
        }
    }

    /// Whether this node is isolated.
    pub(super) fn is_isolated(&self) -> bool {
        self.standing.isolation().is_some()
    }

    /// Handles an isolation that the component knows: of this node, or of a peer.
    pub(super) fn handle_isolation(&mut self, node: u16, boot: Incarnation) {
        if node != self.rank {
            self.isolate_peer(Peer(node), boot);
        } else if boot <= self.standing.released() {
            let boot = self.standing.released().0;
            self.tell(&ToComponent::Released { peer: node, boot }, &[]);
        } else {
            self.be_isolated(boot);
        }
    }

    /// Handles a release that the component knows: of this node, or of a peer.
    pub(super) fn handle_release(&mut self, node: u16, boot: Incarnation) {
        if node == self.rank { self.be_released(boot) } else { self.release_peer(Peer(node), boot) }
    }

    /// By decision no incarnation of `peer` is admitted from now on.
    fn isolate_peer(&mut self, peer: Peer, boot: Incarnation) {
        if self.lives.handle_isolated(peer, boot) {
            self.bootstrap.isolate(peer, boot);
            self.reset.note_isolated(Rank(peer.0), boot);
        } else if let Some(boot) = self.lives.released(peer) {
            self.tell(&ToComponent::Released { peer: peer.0, boot: boot.0 }, &[]);
        }
    }

    /// By decision `peer` may come back. It may have noted an isolation that was never known here.
    fn release_peer(&mut self, peer: Peer, boot: Incarnation) {
        let is_news = self.lives.handle_released(peer, boot);
        if is_news {
            self.reset.note_released(Rank(peer.0), boot);
        }
        if self.lives.is_met(peer) {
            self.bootstrap.release(peer, boot);
            let due = self.lives.handle_let_in(peer, boot);
            self.act(due);
        } else if is_news {
            self.reset_node(peer.0, boot.0);
        }
    }

    /// `peer` was released, and knows more than this node: the release is sent to the component,
    /// and the incarnation of it that was kept out is admitted.
    pub(super) fn handle_contradiction(&mut self, peer: Peer, boot: Incarnation) {
        if !self.lives.handle_released(peer, boot) {
            return;
        }
        self.reset.note_released(Rank(peer.0), boot);
        self.tell(&ToComponent::Released { peer: peer.0, boot: boot.0 }, &[]);
        let due = self.lives.handle_let_in(peer, boot);
        self.act(due);
    }

    /// Ends everything below this supervisor, and waits for the next decision of its peers.
    pub(super) fn be_isolated(&mut self, since: Incarnation) {
        let was_isolated = self.is_isolated();
        self.standing = self.standing.merged(Standing::isolate(since));
        if was_isolated || !self.is_isolated() {
            return self.keep_isolation();
        }
        self.keep_isolation();
        let me = Rank(self.rank);
        self.note(self.rank, What::news(dirnet::News::Isolated(me), me).1);
        self.boot = None;
        self.births.forget_due();
        // Earlier failures end with the boot.
        self.given_up = false;
        self.im_alive = None;
        self.tasks.hold_all(now_ns());
        if let Some(component) = &self.component {
            // It fails only for a process that is dead already.
            let _ = component.spawned.pidfd.kill();
        }
        self.parked.clear();
        self.clients.refuse_pending(&Refused::Isolated);
    }

    /// Isolations since `boot` or before are over: the next boot of this node begins, once the last
    /// one has ended.
    pub(super) fn be_released(&mut self, boot: Incarnation) {
        let was_isolated = self.is_isolated();
        self.standing = self.standing.merged(Standing::release(boot));
        if !was_isolated || self.is_isolated() {
            return;
        }
        self.keep_isolation();
        self.note(self.rank, What::Reborn);
        self.tasks.release_all(now_ns());
        if self.component.is_none() {
            self.try_start();
        }
    }
}

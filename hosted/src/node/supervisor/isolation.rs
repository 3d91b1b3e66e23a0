//! Isolation (X-5): a node that the cluster has isolated runs no component until it is released.
//!
//! ```text
//!   its peers, by decision of the manager: fence it, admit no incarnation of it, report it
//!        │ Isolated                                        │ Released
//!        ▼                                                 ▼
//!   no component, no task, no request but for its status   its next boot begins
//! ```
//!
//! Core decides which of its peers and which of its own boots are isolated: `Supervision`. A node
//! that meets a released one sends it the release; a released node contradicts those that have not
//! heard of it yet. Here is what follows for the processes of this node.
//!
//! The launcher starts a node whose supervisor dies meanwhile, or does not report that it has
//! halted, and writes its note first. A supervisor knows from the note that its node is isolated,
//! starts no component, and reports the isolation to all nodes that it meets.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::OFlags;
use weft_core::dirnet;
use weft_core::ids::{Incarnation, Rank};

use super::Supervisor;
use crate::clock::now_ns;
use crate::node::chronicle::What;
use crate::node::control::Refused;

/// The note of the boot since which a node is isolated.
#[derive(Debug)]
pub(crate) struct IsolationNote {
    path: PathBuf,
}

impl IsolationNote {
    pub(crate) const fn new(path: PathBuf) -> Self {
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

    pub(crate) fn keep(&self, since: Option<Incarnation>) -> io::Result<()> {
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
            self.supervision.handle_isolated(Rank(self.rank), since.max(Incarnation(1)));
            self.obey();
        }
    }

    /// Notes since when this node is isolated: its next supervisor knows only what is noted.
    pub(super) fn keep_isolation(&mut self, since: Option<Incarnation>) {
        if let Err(error) = self.isolation_note.keep(since) {
            tracing::error!(%error, "whether this node is isolated cannot be noted");
        }
    }

    /// Ends everything below this supervisor, which is isolated.
    pub(super) fn halt(&mut self) {
        let me = Rank(self.rank);
        self.note(self.rank, What::news(dirnet::News::Isolated(me), me).1);
        self.starts.handle_halt();
        self.im_alive = None;
        self.tasks.hold_all(now_ns());
        self.take_steps();
        self.parked.clear();
        self.clients.refuse_pending(&Refused::Isolated);
    }

    /// The next boot of this node begins, once the last one has ended: it is released.
    pub(super) fn resume(&mut self) {
        self.note(self.rank, What::Reborn);
        self.tasks.release_all(now_ns());
        self.starts.handle_resume();
        self.take_steps();
    }
}

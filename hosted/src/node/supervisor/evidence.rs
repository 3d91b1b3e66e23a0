//! The entries that this node notes, and those that it receives from other nodes.

use weft_core::ids::Peer;

use super::Supervisor;
use crate::bootstrap::{Datagram, DatagramPort, NOTE_LEN_MAX};
use crate::clock::now_ns;
use crate::node::chronicle::{Entry, What};
use crate::node::control::{CHRONICLE_MAX, Outcome, Payload};
use crate::node::evidence::Copied;

/// A message was dropped: it holds no entry of its sender about a node.
const NO_ENTRY: &str = "no-entry";

impl Supervisor {
    /// Notes something about `node` in the chronicle.
    pub(super) fn note(&mut self, node: u16, what: What) {
        let entry = Entry { at_ns: now_ns(), observer: self.rank, node, what };
        self.keep_note(entry);
    }

    /// Puts `entry` into the chronicle. A conclusion, and its evidence, goes to all others at once:
    /// it must not be lost with this node.
    pub(super) fn keep_note(&mut self, entry: Entry) {
        let entry = self.chronicle.note(entry);
        self.watch.note(&Copied { entry: entry.clone(), noted_ns: entry.at_ns });
        if entry.what.is_evidence() {
            let entry = entry.clone();
            self.tell_evidence(&entry);
        }
    }

    fn tell_evidence(&self, entry: &Entry) {
        let Ok(bytes) = serde_json::to_vec(entry) else { return };
        if bytes.len() > NOTE_LEN_MAX {
            return tracing::debug!(len = bytes.len(), "an entry too long for a datagram");
        }
        let datagram = Datagram { to: DatagramPort::Chronicle, bytes: Payload(bytes) };
        let nodes = u16::try_from(self.cluster.nodes).unwrap_or(u16::MAX);
        let others = (0..nodes).filter(|rank| *rank != self.rank).map(Peer);
        for peer in others.filter(|peer| !self.cut.has(*peer)) {
            self.datagrams.send(peer, &datagram);
        }
    }

    /// Keeps an entry that `peer` has noted.
    pub(super) fn handle_evidence(&mut self, peer: Peer, bytes: &[u8]) {
        let is_possible = |entry: &Entry| {
            entry.observer == peer.0 && usize::from(entry.node) < self.cluster.nodes
        };
        let entry = serde_json::from_slice::<Entry>(bytes).ok().filter(is_possible);
        let Some(mut entry) = entry else { return self.refusals.count(NO_ENTRY) };
        let noted_ns = entry.at_ns;
        if !self.is_on_one_host {
            entry.at_ns = now_ns();
        }
        self.note_hook(&entry);
        let copied = Copied { entry, noted_ns };
        self.watch.note(&copied);
        self.evidence.keep(copied);
    }

    /// The entries of others about `node`, or about all, and how many were dropped here.
    pub(super) fn evidence(&self, about: Option<u16>, after_ns: u64) -> Outcome {
        let copies = self.evidence.about(about, after_ns, CHRONICLE_MAX);
        let dropped = self.evidence.dropped(about) + self.chronicle.dropped(about);
        Outcome::Evidence { copies, dropped }
    }
}

//! The group's part of the demonstration: a broadcast along a tree that loses its forwarder.
//!
//! ```text
//!   root ──▶ forwarder, the manager's node ──▶ orphan       before the node dies
//!     ╰────▶ the fourth node
//!
//!   root ────────────────────────────────────▶ orphan       once all have removed it
//!     ╰────▶ the fourth node
//! ```
//!
//! The broadcast begins before the node is struck and ends after its recovery, so it is in the
//! middle when the node dies, however fast the machine is. Each survivor must have all bytes, by
//! their digest, or all must have abandoned the broadcast after the same ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Serialize;
use weft_core::group::Tree;

use super::nodes::Nodes;
use super::traffic::DemoTraffic;
use super::{DemoError, NODES, PATIENCE};
use crate::transfer::{Cutter, Joiner, Piece};
use weft::client::{GroupListener, GroupSpeaker};
use weft::clock::{Deadline, now_ns};
use weft::cluster::Group;
use weft::node::control::GroupReceived;
use weft::process::start_thread;

/// Bytes of one message: too many to travel with an entry.
const PART_LEN: usize = 16 * 1024;
/// Messages that each member has received before the blow.
const BEFORE: u64 = 4;
/// The root rests between two messages, for the sake of those who recover.
const REST: Duration = Duration::from_millis(2);
/// How often is asked whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What the tree broadcast has shown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TreeSummary {
    /// The member that broadcast.
    pub root: u16,
    /// The member that was lost in the middle.
    pub forwarder: u16,
    /// The member to which it forwarded.
    pub orphan: u16,
    /// Messages sent, and how many of them before the blow.
    pub messages: u64,
    /// Of those, how many before the blow.
    pub messages_before: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// SHA-256 of the bytes sent; none if the root was lost, too.
    pub digest: Option<String>,
    /// What the survivors received.
    pub survivors: Vec<TreeReceived>,
}

/// What one survivor received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TreeReceived {
    /// The member.
    pub rank: u16,
    /// Bytes received.
    pub bytes: u64,
    /// SHA-256 of them.
    pub digest: String,
    /// Whether the broadcast was abandoned after these bytes.
    pub is_abandoned: bool,
    /// The longest time without a message, in microseconds.
    pub longest_silence_us: u64,
    /// When it ended.
    #[serde(skip)]
    pub(super) silence_end_ns: u64,
}

impl TreeSummary {
    /// Whether the blow fell in the middle, and all survivors agree on what was broadcast.
    pub(super) fn is_held(&self) -> bool {
        let is_in_middle = self.messages_before > 0 && self.messages > self.messages_before;
        let is_whole = |it: &TreeReceived| {
            !it.is_abandoned && it.bytes == self.bytes && Some(&it.digest) == self.digest.as_ref()
        };
        let first = self.survivors.first();
        let is_same = |it: &TreeReceived| {
            it.is_abandoned && first.is_some_and(|first| first.digest == it.digest)
        };
        let all = &self.survivors;
        let is_agreed = all.iter().all(is_whole) || all.iter().all(is_same);
        is_in_middle && is_agreed && all.len() == NODES - 2
    }

    /// What the member received that had lost its forwarder.
    pub(super) fn orphaned(&self) -> Option<&TreeReceived> {
        self.survivors.iter().find(|it| it.rank == self.orphan)
    }
}

/// What the threads of the broadcast share.
#[derive(Debug, Default)]
struct TreeProgress {
    sent: AtomicU64,
    received: [AtomicU64; NODES],
    /// The story goes on: the broadcast ends.
    is_enough: AtomicBool,
}

/// What the root has sent.
struct TreeSent {
    messages: u64,
    bytes: u64,
    digest: String,
}

/// A tree broadcast under way.
pub(super) struct TreeBroadcast {
    summary: TreeSummary,
    progress: Arc<TreeProgress>,
    sender: JoinHandle<Result<TreeSent, DemoError>>,
    receivers: Vec<(u16, JoinHandle<Result<TreeReceived, DemoError>>)>,
}

impl TreeBroadcast {
    /// Begins to broadcast `text`, again and again, along the tree in which `forwarder` forwards;
    /// returns once every other member has received some of it.
    pub(super) fn begin(
        nodes: &Nodes,
        forwarder: u16,
        text: &Arc<[u8]>,
        traffic: &Arc<DemoTraffic>,
    ) -> Result<Self, DemoError> {
        let (root, orphan) = around(nodes.cluster().group.tree(), forwarder)?;
        let progress = Arc::new(TreeProgress::default());
        let mut receivers = Vec::new();
        for rank in nodes.ranks().filter(|rank| *rank != root) {
            let listener = GroupListener::new(nodes.connect(rank)?, Group::ALL);
            let (progress, traffic) = (Arc::clone(&progress), Arc::clone(traffic));
            let ear = TreeEar { rank, root, listener, progress, traffic };
            receivers.push((rank, start(move || ear.hear())?));
        }
        let marker = Cutter::given_up();
        let client = nodes.connect(root)?;
        let name = (u64::from(root), marker.as_slice());
        let speaker = GroupSpeaker::begin(client, Group::ALL, name, PATIENCE)?;
        let sender = {
            let (text, progress, traffic) =
                (Arc::clone(text), Arc::clone(&progress), Arc::clone(traffic));
            start(move || speak(speaker, &text, &progress, &traffic))?
        };
        nodes.await_that("a tree broadcast does not begin", || {
            let count = |(rank, _): &(u16, _)| {
                progress.received[usize::from(*rank)].load(Ordering::Relaxed)
            };
            let is_over = traffic.is_over() || sender.is_finished();
            (is_over || receivers.iter().all(|it| count(it) >= BEFORE)).then_some(())
        })?;
        let messages_before = progress.sent.load(Ordering::Relaxed);
        let summary =
            TreeSummary { root, forwarder, orphan, messages_before, ..TreeSummary::default() };
        Ok(Self { summary, progress, sender, receivers })
    }

    /// Ends the broadcast, and waits for what the survivors received.
    pub(super) fn end(self) -> Result<TreeSummary, DemoError> {
        let Self { mut summary, progress, sender, receivers } = self;
        progress.is_enough.store(true, Ordering::Relaxed);
        // A root that was lost as well leaves no digest: its broadcast is abandoned everywhere.
        if let Ok(sent) = join(sender) {
            (summary.messages, summary.bytes) = (sent.messages, sent.bytes);
            summary.digest = Some(sent.digest);
        } else {
            summary.messages = progress.sent.load(Ordering::Relaxed);
        }
        for (rank, receiver) in receivers {
            let received = join(receiver);
            // Its node died under the client.
            if rank != summary.forwarder {
                summary.survivors.push(received?);
            }
        }
        Ok(summary)
    }
}

/// The root along whose tree `forwarder` forwards, and the first member to which it does.
fn around(tree: Tree, forwarder: u16) -> Result<(u16, u16), DemoError> {
    let nodes = NODES as u16;
    let positions = (1..nodes).map(|position| (position, tree.serves(nodes, position)));
    let found = positions.filter(|(_, serves)| !serves.is_empty()).map(|(position, serves)| {
        let root = (forwarder + nodes - position) % nodes;
        (root, (root + serves.start) % nodes)
    });
    let none = || DemoError::Stopped("no member forwards along this tree".to_owned());
    found.min().ok_or_else(none)
}

/// Broadcasts until it is enough; what was sent.
fn speak(
    mut speaker: GroupSpeaker,
    text: &[u8],
    progress: &TreeProgress,
    traffic: &DemoTraffic,
) -> Result<TreeSent, DemoError> {
    let mut cutter = Cutter::default();
    let mut messages = 0;
    for part in text.chunks(PART_LEN).cycle() {
        if traffic.is_over() {
            return Err(DemoError::Interrupted);
        }
        if progress.is_enough.load(Ordering::Relaxed) {
            break;
        }
        speaker.send(&cutter.part(part), PATIENCE)?;
        messages += 1;
        progress.sent.store(messages, Ordering::Relaxed);
        thread::park_timeout(REST);
    }
    speaker.send(&cutter.end(), PATIENCE)?;
    speaker.end(PATIENCE)?;
    Ok(TreeSent { messages: messages + 1, bytes: cutter.len(), digest: cutter.digest() })
}

/// One member's receiver.
struct TreeEar {
    rank: u16,
    root: u16,
    listener: GroupListener,
    progress: Arc<TreeProgress>,
    traffic: Arc<DemoTraffic>,
}

impl TreeEar {
    /// Receives to the end of the broadcast, or until it is abandoned.
    fn hear(mut self) -> Result<TreeReceived, DemoError> {
        let (mut joiner, mut message) = (Joiner::default(), Vec::new());
        let mut received = TreeReceived { rank: self.rank, ..TreeReceived::default() };
        let (mut last_ns, mut silent) = (now_ns(), Deadline::after(PATIENCE));
        loop {
            if self.traffic.is_over() {
                return Err(DemoError::Interrupted);
            }
            let Some(heard) = self.listener.listen(Some(self.root), LOOK_EVERY)? else {
                if silent.has_passed() {
                    return Err(self.silence());
                }
                continue;
            };
            message.clear();
            match &heard {
                GroupReceived::Run(run) => self.listener.copy_out(run, &mut message)?,
                GroupReceived::Abandoned { .. } => {
                    self.listener.note_processed(&heard);
                    continue;
                }
                GroupReceived::RootLost { .. } => {
                    received.is_abandoned = true;
                    break;
                }
            }
            let piece = joiner.join(&message);
            let piece = piece.map_err(|error| DemoError::Stopped(error.to_string()))?;
            self.listener.note_processed(&heard);
            self.progress.received[usize::from(self.rank)].fetch_add(1, Ordering::Relaxed);
            let at_ns = now_ns();
            let silence_us = (at_ns - last_ns) / 1_000;
            // Before the first message there is nothing to go on with.
            if silence_us > received.longest_silence_us && joiner.len() > PART_LEN as u64 {
                (received.longest_silence_us, received.silence_end_ns) = (silence_us, at_ns);
            }
            (last_ns, silent) = (at_ns, Deadline::after(PATIENCE));
            match piece {
                Piece::Bytes(_) | Piece::Repeated => {}
                Piece::End => break,
                Piece::GivenUp => {
                    received.is_abandoned = true;
                    break;
                }
            }
        }
        self.listener.end(LOOK_EVERY)?;
        (received.bytes, received.digest) = (joiner.len(), joiner.digest());
        Ok(received)
    }

    fn silence(&self) -> DemoError {
        DemoError::Stopped(format!("node {} receives nothing more along the tree", self.rank))
    }
}

fn start<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DemoError> + Send + 'static,
) -> Result<JoinHandle<Result<T, DemoError>>, DemoError> {
    let started = start_thread("weft-tree", work);
    started.map_err(|error| DemoError::Stopped(error.to_string()))
}

fn join<T>(thread: JoinHandle<Result<T, DemoError>>) -> Result<T, DemoError> {
    thread.join().unwrap_or_else(|_| Err(DemoError::Stopped("a thread panicked".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::group::{Class, Costs};

    #[test]
    fn the_struck_node_forwards_to_another_whichever_it_is() {
        let costs = Costs::postal(1);
        for class in [Class::Pipe, Class::Binary, Class::Fibonacci] {
            for forwarder in 0..4 {
                let tree = Tree { class, costs };
                let (root, orphan) = around(tree, forwarder).expect("one forwards");
                let place = tree.place(4, (orphan + 4 - root) % 4);
                assert_eq!((root + place.from) % 4, forwarder, "{class:?}");
                assert!(root != forwarder && orphan != root && orphan != forwarder);
            }
        }
        assert!(around(Tree { class: Class::Serial, costs }, 0).is_err());
    }

    fn received(rank: u16, digest: &str, is_abandoned: bool) -> TreeReceived {
        let digest = digest.to_owned();
        TreeReceived { rank, bytes: 9, digest, is_abandoned, ..TreeReceived::default() }
    }

    #[test]
    fn all_survivors_have_the_same_bytes_or_it_did_not_hold() {
        let held = |before, digest: Option<&str>, survivors: [TreeReceived; 2]| {
            let summary = TreeSummary {
                messages: 9,
                messages_before: before,
                bytes: 9,
                digest: digest.map(str::to_owned),
                survivors: survivors.into(),
                ..TreeSummary::default()
            };
            summary.is_held()
        };
        let whole = |rank| received(rank, "a", false);
        let torso = |rank, digest| received(rank, digest, true);
        assert!(held(4, Some("a"), [whole(1), whole(2)]));
        assert!(held(4, None, [torso(1, "b"), torso(2, "b")]));
        assert!(!held(9, Some("a"), [whole(1), whole(2)]), "it was over before the blow");
        assert!(!held(4, Some("b"), [whole(1), whole(2)]));
        assert!(!held(4, Some("a"), [whole(1), torso(2, "a")]));
        assert!(!held(4, None, [torso(1, "b"), torso(2, "a")]));
    }
}

//! Watching a cluster without being a member (M-12).
//!
//! ```text
//!   node 0 ✗   node 1 ──views, verdicts──▶ Watcher ──▶ view, joined, removed, suspected, …
//!                                            └ asks the next node when this one is gone
//! ```
//!
//! The events follow from views and notes (`node/changes.rs`), so nothing is lost while the watcher
//! goes on to another node: the next view contains what it has missed, and verdicts are known to
//! every node. Suspicions are noted by the node that has them alone: of those, a watcher sees what
//! the node notes at which it watches.

use std::time::Duration;

use super::{Client, ClientError, find, millis};
use crate::clock::{Deadline, now_ns};
use crate::cluster::{Cluster, ClusterName};
use crate::node::control::{Outcome, ViewStatus, Want};
use crate::node::{Changes, WatchEvent};
use crate::runtime_dir::ClusterDir;

/// How long one request waits.
const TURN: Duration = Duration::from_secs(1);
/// How soon a node is asked again when none answers.
const AGAIN: Duration = Duration::from_millis(20);
/// How long a note may be on its way from the node that has noted it.
const NOTE_DELAY_NS: u64 = 1_000_000_000;

/// Watches a cluster.
#[derive(Debug)]
pub struct Watcher {
    dir: ClusterDir,
    /// Which of the clusters that bear this name, one after the other, is watched.
    instance: Option<u64>,
    cluster: Cluster,
    client: Option<Client>,
    /// The node that is watched, or asked next.
    rank: u16,
    /// How many entries that node has sent.
    after: u64,
    changes: Changes,
}

impl Watcher {
    /// Watches the running cluster `name`; waits up to `patience` for one that is being started.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn start(name: &ClusterName, patience: Duration) -> Result<Self, ClientError> {
        find(name, patience).map(|(dir, cluster)| Self::new(dir, cluster))
    }

    /// Watches the cluster in `dir`, from its node 0 on, as [`find_in`](super::find_in) returns it.
    #[must_use]
    pub fn new(dir: ClusterDir, cluster: Cluster) -> Self {
        let (instance, changes) = (dir.instance().ok(), Changes::new());
        Self { dir, instance, cluster, client: None, rank: 0, after: 0, changes }
    }

    /// The next event; none if none comes within `timeout`.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] if no node answers any more within `timeout`;
    /// [`ClientError::Replaced`] if another cluster of the name has begun.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<WatchEvent>, ClientError> {
        let deadline = Deadline::after(timeout);
        loop {
            if let Some(event) = self.changes.next() {
                return Ok(Some(event));
            }
            let turn = self.changes.verdict_wait().unwrap_or(TURN);
            match self.ask(deadline.remaining().min(turn)) {
                Ok(()) => {}
                Err(error @ ClientError::Replaced { .. }) => return Err(error),
                Err(error) if deadline.has_passed() && self.changes.is_empty() => {
                    return Err(error);
                }
                Err(_) => {
                    self.go_on();
                    std::thread::park_timeout(AGAIN.min(deadline.remaining()));
                    continue;
                }
            }
            if deadline.has_passed() && self.changes.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The view that the events so far have led to.
    #[must_use]
    pub const fn view(&self) -> &ViewStatus {
        self.changes.view()
    }

    /// Whether the directory belongs to a later cluster by now, whose views count from one again.
    fn is_replaced(&self) -> bool {
        self.dir.instance().is_ok_and(|now| Some(now) != self.instance)
    }

    /// The node is gone: the next one is asked for everything.
    fn go_on(&mut self) {
        self.client = None;
        self.rank = (self.rank + 1) % u16::try_from(self.cluster.nodes).unwrap_or(u16::MAX);
        self.after = 0;
    }

    fn connect(&self) -> Result<Client, ClientError> {
        let client = Client::connect(&self.dir, &self.cluster, self.rank, Duration::ZERO);
        // Only behind the connection: a later cluster notes its number before its nodes listen, so
        // the number read now is that of the cluster that has answered, or of a later one.
        match self.is_replaced() {
            true => Err(ClientError::Replaced { name: self.cluster.name.clone() }),
            false => client,
        }
    }

    fn ask(&mut self, timeout: Duration) -> Result<(), ClientError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.connect()?,
        };
        let client = self.client.insert(client);
        let (view, after) = (self.changes.view().number, self.after);
        let want = Want::Watch { view, after, timeout_ms: millis(timeout) };
        // A note may take this long from one node to the other.
        let since_ns = now_ns().saturating_sub(NOTE_DELAY_NS);
        match client.ask(want, timeout)? {
            Outcome::Done => {}
            Outcome::Watched(watched) => {
                self.after = watched.next;
                self.changes.handle(*watched);
            }
            other => return Err(client.out_of_place(&other)),
        }
        self.changes.advance(since_ns);
        Ok(())
    }
}

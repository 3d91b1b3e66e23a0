//! How the demonstration reaches its nodes, from as many threads as it needs.

use std::thread;
use std::time::Duration;

use super::{DemoError, PATIENCE};
use weft::client::{Client, ClientError};
use weft::clock::Deadline;
use weft::cluster::Cluster;
use weft::launch::Launched;
use weft::node::chronicle::Entry;
use weft::node::control::{DirNetStatus, NodeStatus};
use weft::runtime_dir::ClusterDir;

/// How often to poll for state that no event reports.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The nodes of the demonstration's cluster.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    dir: ClusterDir,
    cluster: Cluster,
}

impl Nodes {
    pub(super) fn of(launched: &Launched) -> Self {
        Self { dir: launched.dir().clone(), cluster: launched.cluster().clone() }
    }

    pub(super) const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(super) fn ranks(&self) -> impl Iterator<Item = u16> + use<> {
        0..u16::try_from(self.cluster.nodes).unwrap_or(u16::MAX)
    }

    pub(super) fn connect(&self, rank: u16) -> Result<Client, ClientError> {
        Client::connect(&self.dir, &self.cluster, rank, PATIENCE)
    }

    /// Waits until `node` runs in `incarnation` or a later one and exchanges messages with every
    /// other; its supervisor may come back as another process.
    pub(super) fn await_return(
        &self,
        node: u16,
        incarnation: u32,
    ) -> Result<NodeStatus, DemoError> {
        let deadline = Deadline::after(PATIENCE);
        let peers = self.cluster.nodes - 1;
        loop {
            let left = deadline.remaining();
            let returned = Client::connect(&self.dir, &self.cluster, node, left)
                .and_then(|mut client| client.await_joined(incarnation, peers, left));
            match returned {
                Err(ClientError::Unreachable { .. }) if !deadline.has_passed() => {
                    thread::park_timeout(LOOK_EVERY);
                }
                returned => return Ok(returned?),
            }
        }
    }

    /// Waits until all nodes agree on one manager; the standing of one of them.
    pub(super) fn await_manager(&self) -> Result<DirNetStatus, DemoError> {
        self.await_that("the nodes do not agree on a manager", || self.agreed())
    }

    /// The standing of one node, if all take part and agree on one manager.
    pub(super) fn agreed(&self) -> Option<DirNetStatus> {
        let standing = |rank| self.connect(rank).ok()?.status().ok()?.dirnet;
        let all: Vec<DirNetStatus> = self.ranks().map(standing).collect::<Option<_>>()?;
        let first = all.first()?.clone();
        let is_same = |standing: &DirNetStatus| {
            (standing.epoch, standing.manager) == (first.epoch, first.manager)
                && standing.removed.is_empty()
                && standing.is_member()
        };
        let managers = all.iter().filter(|standing| standing.role == "manager").count();
        (managers == 1 && all.iter().all(is_same)).then_some(first)
    }

    /// Waits until there is something.
    pub(super) fn await_that<T>(
        &self,
        otherwise: &str,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<T, DemoError> {
        let deadline = Deadline::after(PATIENCE);
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            if deadline.has_passed() {
                return Err(DemoError::Stopped(otherwise.to_owned()));
            }
            thread::park_timeout(LOOK_EVERY);
        }
    }

    /// What the nodes that answer have noted after `after_ns`, in the order of time.
    pub(super) fn noted_after(&self, after_ns: u64) -> Vec<Entry> {
        let ask = |rank| self.connect(rank).ok()?.whole_chronicle(None, after_ns).ok();
        let mut entries: Vec<Entry> = self.ranks().filter_map(ask).flatten().collect();
        entries.sort_by_key(|entry| entry.at_ns);
        entries
    }
}

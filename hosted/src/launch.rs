//! A whole cluster on this machine: one supervisor process for each node.
//!
//! The processes die with the one that launched them, and a launched cluster that is dropped is
//! ended. The cluster's name is taken from before the first process starts until after the last
//! has ended.

use std::fmt;
use std::os::fd::{AsFd, RawFd};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;

use crate::client::{Client, ClientError};
use crate::clock::Deadline;
use crate::cluster::Cluster;
use crate::explain::{Code, Explain};
use crate::process::{Pidfd, ProcessError, Spawn, Spawned};
use crate::runtime_dir::{ClaimError, ClaimedDir, ClusterDir, RuntimeDir, RuntimeDirError};

/// Where a node finds the cluster's lock.
const LOCK_FD: RawFd = 3;
/// How often a cluster that comes together is asked whether a node has ended meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a node may take to end in order.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A cluster of processes below this one.
#[derive(Debug)]
pub struct Launched {
    cluster: Cluster,
    /// Given up last, by [`Self::stop`] or by drop.
    claimed: Option<ClaimedDir>,
    dir: ClusterDir,
    nodes: Vec<Spawned>,
}

/// Why a cluster was not launched. Nothing of it is left.
#[derive(Debug)]
#[non_exhaustive]
pub enum LaunchError {
    /// Its name cannot be taken.
    Claim(ClaimError),
    /// The runtime directory.
    Directory(RuntimeDirError),
    /// A node's process cannot be started.
    Process(ProcessError),
    /// A node ended before the cluster ran; what it said is above.
    Ended {
        /// Which node.
        rank: u16,
        /// How.
        status: ExitStatus,
    },
    /// The nodes do not come together.
    Client(ClientError),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(error) => error.fmt(f),
            Self::Directory(error) => error.fmt(f),
            Self::Process(error) => write!(f, "a node cannot be started: {error}"),
            Self::Ended { rank, status } => write!(f, "node {rank} ended at its start: {status}"),
            Self::Client(error) => write!(f, "the nodes do not come together: {error}"),
        }
    }
}

impl std::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Claim(error) => Some(error),
            Self::Directory(error) => Some(error),
            Self::Process(error) => Some(error),
            Self::Ended { .. } => None,
            Self::Client(error) => Some(error),
        }
    }
}

impl Explain for LaunchError {
    fn code(&self) -> Code {
        match self {
            Self::Claim(error) => error.code(),
            Self::Directory(error) => error.code(),
            Self::Process(_) => Code::Internal,
            Self::Ended { .. } => Code::ComponentLost,
            Self::Client(error) => error.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Claim(error) => error.cure(),
            Self::Directory(error) => error.cure(),
            Self::Process(_) => "see what the machine lacks with `weft doctor`".to_owned(),
            Self::Ended { .. } => "mend what the node said above".to_owned(),
            Self::Client(_) => "set WEFT_LOG=debug and try again".to_owned(),
        }
    }
}

impl Launched {
    /// Takes the cluster's name and starts its nodes. They run when [`Self::await_running`]
    /// says so. To be called from a thread that lives as long as the cluster shall: the nodes
    /// end with it.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub fn start(cluster: &Cluster) -> Result<Self, LaunchError> {
        let runtime_dir = RuntimeDir::open().map_err(LaunchError::Directory)?;
        let claimed = runtime_dir.claim(&cluster.name).map_err(LaunchError::Claim)?;
        claimed.publish(cluster).map_err(LaunchError::Directory)?;
        let dir = claimed.dir().clone();
        let (cluster, claimed) = (cluster.clone(), Some(claimed));
        let mut launched = Self { cluster, claimed, dir, nodes: Vec::new() };
        for rank in launched.ranks() {
            launched.start_node(rank)?;
        }
        Ok(launched)
    }

    fn start_node(&mut self, rank: u16) -> Result<(), LaunchError> {
        let Some(claimed) = &self.claimed else { return Ok(()) };
        let lock = claimed.as_fd().try_clone_to_owned().map_err(ProcessError::Spawn);
        let node = Spawn::own_program()
            .arg("node")
            .arg(self.dir.cluster_file())
            .args(["--rank", &rank.to_string(), "--lock-fd", &LOCK_FD.to_string()])
            .parent_death_signal(Signal::TERM)
            .stdin(std::process::Stdio::null())
            .inherit(LOCK_FD, lock.map_err(LaunchError::Process)?)
            .start();
        self.nodes.push(node.map_err(LaunchError::Process)?);
        Ok(())
    }

    /// The cluster.
    #[must_use]
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Its directory.
    #[must_use]
    pub const fn dir(&self) -> &ClusterDir {
        &self.dir
    }

    /// The ranks of its nodes.
    pub fn ranks(&self) -> impl Iterator<Item = u16> + use<> {
        0..u16::try_from(self.cluster.nodes).unwrap_or(u16::MAX)
    }

    /// Connects to one node.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn connect(&self, rank: u16, patience: Duration) -> Result<Client, ClientError> {
        Client::connect(&self.dir, &self.cluster, rank, patience)
    }

    /// Waits until every node exchanges messages with every other.
    ///
    /// # Errors
    /// [`LaunchError::Ended`], as soon as a node has; [`LaunchError::Client`].
    pub fn await_running(&mut self, timeout: Duration) -> Result<(), LaunchError> {
        let deadline = Deadline::after(timeout);
        while let Err(error) = self.look(deadline.remaining().min(LOOK_EVERY)) {
            self.check_alive()?;
            if deadline.has_passed() {
                return Err(LaunchError::Client(error));
            }
        }
        Ok(())
    }

    /// Whether every node exchanges messages with every other by now, or within `patience`.
    fn look(&self, patience: Duration) -> Result<(), ClientError> {
        let deadline = Deadline::after(patience);
        self.ranks().try_for_each(|rank| {
            let mut client = self.connect(rank, deadline.remaining())?;
            client.await_joined(0, self.cluster.nodes - 1, deadline.remaining()).map(drop)
        })
    }

    /// Whether every node's supervisor lives.
    ///
    /// # Errors
    /// [`LaunchError::Ended`] names the first that does not.
    pub fn check_alive(&mut self) -> Result<(), LaunchError> {
        for (rank, node) in (0..).zip(&mut self.nodes) {
            if let Ok(Some(status)) = node.child.try_wait() {
                return Err(LaunchError::Ended { rank, status });
            }
        }
        Ok(())
    }

    /// The processes of the nodes, to be watched.
    pub fn processes(&self) -> impl Iterator<Item = &Pidfd> {
        self.nodes.iter().map(|node| &node.pidfd)
    }

    /// Ends every node in order, kills what does not end, and gives the name up.
    ///
    /// # Errors
    /// [`RuntimeDirError`], when the cluster's directory cannot be removed.
    pub fn stop(mut self) -> Result<(), RuntimeDirError> {
        self.end_nodes();
        self.claimed.take().map_or(Ok(()), ClaimedDir::remove)
    }

    fn end_nodes(&mut self) {
        for node in &self.nodes {
            // A node that is gone has been told.
            let _ = node.pidfd.signal(Signal::TERM);
        }
        let deadline = Deadline::after(STOP_TIMEOUT);
        for mut node in self.nodes.drain(..) {
            let _ = node.pidfd.wait_dead(deadline.remaining());
            let _ = node.pidfd.kill();
            let _ = node.child.wait();
        }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        self.end_nodes();
    }
}

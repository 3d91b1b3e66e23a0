//! A whole cluster on this machine: one supervisor process for each node.
//!
//! The processes die with the one that launched them, and a launched cluster that is dropped is
//! ended. A node is restarted if the cluster's manager orders its reset, or if it has died and no
//! manager decides about it. The cluster's name is taken from before the first
//! process starts until after the last has ended.

mod door;
mod keeper;

pub use door::call_off;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::client::{Client, ClientError};
use crate::clock::Deadline;
use crate::cluster::Cluster;
use crate::explain::{Code, Explain};
use crate::process::{ProcessError, how_ended, start_thread};
use crate::runtime_dir::{ClaimError, ClaimedDir, ClusterDir, RuntimeDir, RuntimeDirError};
use door::Door;
use keeper::{Keeper, KeeperEvent, NodeSetup};

/// Where a node finds the cluster's lock.
const LOCK_FD: RawFd = 3;
/// Where a node finds its launcher.
const LAUNCH_FD: RawFd = 4;
/// Where a node finds the output of its program.
const STDOUT_FD: RawFd = 5;
const STDERR_FD: RawFd = 6;
/// How often a cluster that comes together is asked whether a node has ended meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Events that wait for the keeper.
const EVENTS: usize = 1024;
/// Notices queued for the caller that launched the cluster; more are dropped.
const NOTICES: usize = 1024;

/// A cluster of processes below this one.
#[derive(Debug)]
pub struct Launched {
    cluster: Cluster,
    /// Given up last, by [`Self::stop`] or by drop.
    claimed: Option<ClaimedDir>,
    dir: ClusterDir,
    keeper: Option<thread::JoinHandle<()>>,
    door: Option<Door>,
    events: SyncSender<KeeperEvent>,
    notices: Receiver<Notice>,
    /// Of them, what happened to tasks and programs while the nodes came together: bounded by the
    /// restart intensity.
    early: RefCell<VecDeque<Notice>>,
}

/// What happens to a launched node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Its supervisor has ended.
    Ended {
        /// The node.
        rank: u16,
        /// Its exit status.
        status: ExitStatus,
    },
    /// It was started again.
    Reset {
        /// The node.
        rank: u16,
        /// The first incarnation of the boot that has ended.
        boot: u32,
        /// The node that said so.
        by: u16,
    },
    /// It is isolated, by decision of the manager.
    Isolated {
        /// The node.
        rank: u16,
    },
    /// Its isolation is over: its next boot may take part.
    Released {
        /// The node.
        rank: u16,
    },
    /// It has isolated a task for its failures.
    TaskIsolated {
        /// The node.
        rank: u16,
        /// The task's place in the cluster file.
        task: usize,
    },
    /// Its program has ended.
    Exited {
        /// The node.
        rank: u16,
        /// In which incarnation.
        incarnation: u32,
        /// Whether it had joined.
        joined: bool,
        /// Its exit status.
        status: ExitStatus,
    },
    /// Its components have failed too often, and no further one is started soon.
    GivenUp {
        /// The node.
        rank: u16,
    },
    /// It had died, no manager decided about it, and it was restarted.
    Restarted {
        /// The node.
        rank: u16,
    },
    /// The cluster's directory is not its own any more; all nodes are ended.
    Displaced,
}

/// Why a cluster was not launched. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// Its name cannot be taken.
    #[error("{0}")]
    Claim(#[source] ClaimError),
    /// The runtime directory.
    #[error("{0}")]
    Directory(#[source] RuntimeDirError),
    /// A node's process cannot be started.
    #[error("a node cannot be started: {0}")]
    Process(#[source] ProcessError),
    /// The thread that keeps the nodes has ended.
    #[error("the thread that keeps the nodes has ended")]
    Keeper,
    /// A node ended before the cluster ran; what it said is above.
    #[error("node {rank} {} at its start", how_ended(*status))]
    Ended {
        /// The node.
        rank: u16,
        /// Its exit status.
        status: ExitStatus,
    },
    /// The nodes do not come together.
    #[error("the nodes do not connect to each other: {0}")]
    Client(#[source] ClientError),
}

impl Explain for LaunchError {
    fn code(&self) -> Code {
        match self {
            Self::Claim(error) => error.code(),
            Self::Directory(error) => error.code(),
            Self::Process(_) | Self::Keeper => Code::Internal,
            Self::Ended { .. } => Code::ComponentLost,
            Self::Client(error) => error.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Claim(error) => error.cure(),
            Self::Directory(error) => error.cure(),
            Self::Process(error) => error.cure(),
            Self::Keeper => "run `weft doctor` to see what the machine lacks".to_owned(),
            Self::Ended { .. } => "fix the error that the node printed above".to_owned(),
            Self::Client(_) => "try again with WEFT_LOG=debug to see more".to_owned(),
        }
    }
}

impl Launched {
    /// Takes the cluster's name and starts its nodes. They run when [`Self::await_running`]
    /// says so.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub fn start(cluster: &Cluster) -> Result<Self, LaunchError> {
        Self::start_with_output(cluster, Vec::new())
    }

    /// As [`Self::start`]; the standard output and standard error of the program at each rank go to
    /// `outputs`, where it has that rank.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub fn start_with_output(
        cluster: &Cluster,
        outputs: Vec<[OwnedFd; 2]>,
    ) -> Result<Self, LaunchError> {
        let runtime_dir = RuntimeDir::open().map_err(LaunchError::Directory)?;
        let claimed = runtime_dir.claim(&cluster.name).map_err(LaunchError::Claim)?;
        claimed.publish(cluster).map_err(LaunchError::Directory)?;
        let dir = claimed.dir().clone();
        let lock = claimed.as_fd().try_clone_to_owned().map_err(ProcessError::Spawn);
        let lock = lock.map_err(LaunchError::Process)?;
        let home = ClaimedDir::inherit(dir.clone(), lock).map_err(LaunchError::Directory)?;
        let undecided = Duration::from_nanos(cluster.dirnet.timing().clone.0) * 3 / 2;
        let start = NodeSetup { home, undecided, outputs };
        let (events, heard) = sync_channel(EVENTS);
        let (notice, notices) = sync_channel(NOTICES);
        let door = dir.launcher_socket().map_err(LaunchError::Directory)?;
        let door = Some(Door::open(door, events.clone()).map_err(LaunchError::Process)?);
        let (result, started) = sync_channel(1);
        let (count, sender) = (cluster.nodes, events.clone());
        let keeper = start_thread("weft-keeper", move || {
            match Keeper::start(start, count, sender, notice) {
                Ok(keeper) => {
                    // The caller of `start` waits for this.
                    let _ = result.send(Ok(()));
                    keeper.run(&heard);
                }
                Err(error) => {
                    let _ = result.send(Err(error));
                }
            }
        })
        .map_err(LaunchError::Process)?;
        let (cluster, claimed, keeper) = (cluster.clone(), Some(claimed), Some(keeper));
        let early = RefCell::default();
        let launched = Self { cluster, claimed, dir, keeper, door, events, notices, early };
        started.recv().map_err(|_| LaunchError::Keeper)??;
        Ok(launched)
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

    /// Whether every node exchanges messages with every other, within `patience`.
    fn look(&self, patience: Duration) -> Result<(), ClientError> {
        let deadline = Deadline::after(patience);
        self.ranks().try_for_each(|rank| {
            let mut client = self.connect(rank, deadline.remaining())?;
            client.await_joined(0, self.cluster.nodes - 1, deadline.remaining()).map(drop)
        })
    }

    /// Whether no node has ended since this was last asked.
    ///
    /// # Errors
    /// [`LaunchError::Ended`] names the first that has.
    pub fn check_alive(&mut self) -> Result<(), LaunchError> {
        while let Ok(notice) = self.notices.try_recv() {
            match notice {
                Notice::Ended { rank, status } => {
                    return Err(LaunchError::Ended { rank, status });
                }
                // Returned later by `next`.
                Notice::TaskIsolated { .. }
                | Notice::Exited { .. }
                | Notice::Isolated { .. }
                | Notice::Released { .. } => self.early.get_mut().push_back(notice),
                Notice::Displaced => return Err(self.displaced()),
                Notice::Reset { .. } | Notice::Restarted { .. } | Notice::GivenUp { .. } => {}
            }
        }
        Ok(())
    }

    /// Waits up to `timeout` for something to happen to a node.
    ///
    /// # Errors
    /// [`RecvTimeoutError`]: nothing did, or nothing ever will.
    pub fn next_notice(&self, timeout: Duration) -> Result<Notice, RecvTimeoutError> {
        let early = self.early.borrow_mut().pop_front();
        match early {
            Some(notice) => Ok(notice),
            None => self.notices.recv_timeout(timeout),
        }
    }

    /// Ends every node in order, kills what does not end, and gives the name up.
    ///
    /// # Errors
    /// [`RuntimeDirError`], when the files of the cluster cannot be removed.
    pub fn stop(mut self) -> Result<(), RuntimeDirError> {
        self.end_nodes();
        self.claimed.take().map_or(Ok(()), ClaimedDir::remove)
    }

    /// Why a cluster ends whose directory is not its own any more.
    #[must_use]
    pub fn displaced(&self) -> LaunchError {
        LaunchError::Directory(RuntimeDirError::Displaced { path: self.dir.path().to_owned() })
    }

    fn end_nodes(&mut self) {
        // A keeper that is gone has ended them.
        let _ = self.events.send(KeeperEvent::Stop { ended: None });
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
        match (self.door.take(), &self.claimed) {
            (Some(door), Some(home)) if home.check_kept().is_err() => door.leave(),
            (door, _) => drop(door),
        }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        self.end_nodes();
    }
}

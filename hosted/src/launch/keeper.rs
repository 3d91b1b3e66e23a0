//! The thread that starts the nodes, and restarts a node when it must be reset.
//!
//! ```text
//!   node's supervisor ── Began, Reset ──┐
//!   node's end ─────────────────────────┼─▶ keeper ── Notice ──▶ the caller that launched
//!   Launched::stop, drop ───────────────┘     └─ kill, wait, start
//! ```
//!
//! One thread starts all of them and lives as long as the cluster, because the kernel ties a child
//! to the thread that started it. Core decides which node is restarted, and when:
//! [`weft_core::dirnet::Launcher`]. Here is what follows for its processes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use rustix::process::Signal;
use weft_core::dirnet::Launcher;
use weft_core::ids::{Incarnation, PeerSet, Rank};
use weft_core::time::{self, Instant};

use super::{LAUNCH_FD, LOCK_FD, LaunchError, Notice, STDERR_FD, STDOUT_FD};
use crate::clock::{Deadline, now_ns};
use crate::node::{IsolationNote, ToLauncher};
use crate::packet::{PacketError, Socket};
use crate::process::{Liveness, ProcessError, Spawn, Spawned, start_thread};
use crate::runtime_dir::{ClaimedDir, end_remains};

/// How long a node may take to end in order: its program has five seconds.
const STOP_TIMEOUT: Duration = Duration::from_secs(7);
/// How often the launcher looks whether its directory is still its own.
const LOOK_HOME_EVERY: Duration = Duration::from_millis(500);
/// How long a killed node may take to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Something to act on.
pub(super) enum KeeperEvent {
    /// A message of a node.
    Said { rank: u16, run: u64, word: ToLauncher },
    /// A node's process has ended.
    Ended { rank: u16, run: u64 },
    /// The cluster must end; a caller may wait for the number of nodes that have ended.
    Stop { ended: Option<SyncSender<usize>> },
}

/// What every node is started with.
#[derive(Debug)]
pub(super) struct NodeSetup {
    pub(super) home: ClaimedDir,
    /// How long a node that has died waits for a decision about it.
    pub(super) undecided: Duration,
    /// The standard output and standard error of each node's program; none where they are the
    /// launcher's.
    pub(super) outputs: Vec<[OwnedFd; 2]>,
}

/// The process of one node.
struct NodeProcess {
    spawned: Option<Spawned>,
    /// Counts the processes of this node, so that events of an earlier one are recognized.
    run: u64,
    /// Whether its program has finished.
    finished: bool,
}

pub(super) struct Keeper {
    start: NodeSetup,
    decider: Launcher<{ PeerSet::CAPACITY }>,
    nodes: Vec<NodeProcess>,
    events: SyncSender<KeeperEvent>,
    notices: SyncSender<Notice>,
}

impl Keeper {
    /// Starts `count` nodes.
    pub(super) fn start(
        start: NodeSetup,
        count: usize,
        events: SyncSender<KeeperEvent>,
        notices: SyncSender<Notice>,
    ) -> Result<Self, LaunchError> {
        let undecided = u64::try_from(start.undecided.as_nanos()).unwrap_or(u64::MAX);
        let decider = Launcher::new(time::Duration(undecided));
        let mut keeper = Self { start, decider, nodes: Vec::new(), events, notices };
        for rank in (0..).take(count) {
            keeper.nodes.push(NodeProcess { spawned: None, run: 0, finished: false });
            if let Err(error) = keeper.start_node(rank) {
                keeper.end_nodes();
                return Err(LaunchError::Process(error));
            }
        }
        Ok(keeper)
    }

    /// Runs the nodes until the cluster must end, and returns once they have ended.
    pub(super) fn run(mut self, events: &Receiver<KeeperEvent>) {
        let asked = loop {
            match events.recv_timeout(self.patience()) {
                Ok(KeeperEvent::Said { rank, run, word }) => self.handle_word(rank, run, word),
                Ok(KeeperEvent::Ended { rank, run }) => self.handle_ended(rank, run),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(KeeperEvent::Stop { ended }) => break ended,
                Err(RecvTimeoutError::Disconnected) => break None,
            }
            if let Err(error) = self.start.home.check_kept() {
                // The caller reports it.
                tracing::debug!(%error, "the nodes are ended");
                self.notify(Notice::Displaced);
                break None;
            }
            self.start_due();
        };
        let ended = self.end_nodes();
        if let Some(asked) = asked {
            // The caller may have left.
            let _ = asked.send(ended);
        }
    }

    fn handle_word(&mut self, rank: u16, run: u64, word: ToLauncher) {
        match word {
            ToLauncher::Began { boot } => {
                if self.runs(rank, run) {
                    self.decider.handle_began(Rank(rank), Incarnation(boot));
                }
            }
            ToLauncher::Entered => {
                if self.runs(rank, run) {
                    self.decider.handle_entered(Rank(rank));
                }
            }
            ToLauncher::Removed { rank: of, boot } => {
                self.decider.handle_removed(now(), Rank(rank), Rank(of), Incarnation(boot));
            }
            ToLauncher::Reset { rank: of, boot } => self.reset(of, boot, rank),
            ToLauncher::Isolated { rank: of, boot } => {
                if self.decider.handle_isolated(now(), Rank(of), Incarnation(boot)) {
                    self.notify(Notice::Isolated { rank: of });
                }
                if of == rank && self.runs(rank, run) {
                    self.decider.handle_halted(Rank(rank));
                }
            }
            ToLauncher::Released { rank, boot } => {
                if self.decider.handle_released(now(), Rank(rank), Incarnation(boot)) {
                    self.notify(Notice::Released { rank });
                }
            }
            ToLauncher::Exited { incarnation, joined, status } => {
                let status = ExitStatus::from_raw(status);
                if let Some(node) = self.node(rank) {
                    node.finished |= status.success();
                }
                self.notify(Notice::Exited { rank, incarnation, joined, status });
            }
            ToLauncher::GivenUp => self.notify(Notice::GivenUp { rank }),
            ToLauncher::TaskIsolated { task } => self.notify(Notice::TaskIsolated { rank, task }),
        }
    }

    /// Whether this is the present process of node `rank`.
    fn runs(&self, rank: u16, run: u64) -> bool {
        self.nodes.get(usize::from(rank)).is_some_and(|node| node.run == run)
    }

    fn handle_ended(&mut self, rank: u16, run: u64) {
        let remains_file = self.start.home.dir().remains_file(usize::from(rank));
        let Some(node) = self.node(rank).filter(|node| node.run == run) else { return };
        let Some(mut spawned) = node.spawned.take() else { return };
        if let Ok(status) = spawned.child.wait() {
            end_remains(&remains_file);
            self.decider.handle_ended(now(), Rank(rank), status.success());
            self.notify(Notice::Ended { rank, status });
        }
    }

    /// Ends boot `boot` of node `rank`, if it runs, and starts the next.
    fn reset(&mut self, rank: u16, boot: u32, by: u16) {
        if !self.decider.handle_reset(Rank(rank), Incarnation(boot)) {
            return tracing::debug!(rank, boot, by, "an order to reset that comes too late");
        }
        self.start_again(rank, Notice::Reset { rank, boot, by });
    }

    /// Kills what is left of node `rank`; whether nothing is.
    fn end_node(&mut self, rank: u16) -> bool {
        let Some(node) = self.node(rank) else { return false };
        if let Some(mut spawned) = node.spawned.take() {
            // One that is dead by now is what was wanted.
            let _ = spawned.pidfd.kill();
            if !matches!(spawned.pidfd.wait_dead(KILL_TIMEOUT), Ok(Liveness::Dead)) {
                tracing::error!(rank, "a node that must be reset does not die");
                node.spawned = Some(spawned);
                return false;
            }
            let _ = spawned.child.wait();
        }
        true
    }

    /// How long until a node that has died is due, or the directory is looked at.
    fn patience(&self) -> Duration {
        let due = self.decider.poll_timeout().map(|due| Duration::from_nanos(due.since(now()).0));
        due.unwrap_or(LOOK_HOME_EVERY).min(LOOK_HOME_EVERY)
    }

    /// Restarts nodes for which no decision came in time, and isolated ones that hang.
    fn start_due(&mut self) {
        let began = now();
        while let Some(Rank(rank)) = self.decider.next_due(began) {
            self.start_again(rank, Notice::Restarted { rank });
        }
    }

    /// Starts a node in place of what is left of it, or tries again later.
    fn start_again(&mut self, rank: u16, notice: Notice) {
        if !self.end_node(rank) {
            return self.decider.handle_start_failed(now(), Rank(rank));
        }
        match self.start_node(rank) {
            Ok(()) => self.notify(notice),
            Err(error) => {
                tracing::error!(rank, %error, "a node cannot be started again");
                self.decider.handle_start_failed(now(), Rank(rank));
            }
        }
    }

    fn start_node(&mut self, rank: u16) -> Result<(), ProcessError> {
        let home = &self.start.home;
        // It would take the places of another cluster's node.
        home.check_kept().map_err(|error| ProcessError::Spawn(io::Error::other(error)))?;
        let lock = home.as_fd().try_clone_to_owned().map_err(ProcessError::Spawn)?;
        let (ours, theirs) =
            Socket::pair().map_err(|error| ProcessError::Spawn(io::Error::other(error)))?;
        if let Some(since) = self.decider.isolation(Rank(rank)) {
            let note = IsolationNote::new(home.dir().isolation_file(usize::from(rank)));
            if let Err(error) = note.keep(Some(since)) {
                tracing::error!(rank, %error, "that this node is isolated cannot be noted");
            }
        }
        let mut node = Spawn::own_program()
            .arg("node")
            .arg(home.dir().cluster_file())
            .args(["--rank", &rank.to_string(), "--lock-fd", &LOCK_FD.to_string()])
            .args(["--launch-fd", &LAUNCH_FD.to_string()])
            .parent_death_signal(Signal::TERM)
            .stdin(Stdio::null())
            .inherit(LOCK_FD, lock)
            .inherit(LAUNCH_FD, OwnedFd::from(theirs));
        if let Some([stdout, stderr]) = self.start.outputs.get(usize::from(rank)) {
            let numbers = [("--stdout-fd", STDOUT_FD), ("--stderr-fd", STDERR_FD)];
            for (fd, (flag, number)) in [stdout, stderr].into_iter().zip(numbers) {
                let fd = fd.try_clone().map_err(ProcessError::Spawn)?;
                node = node.args([flag, &number.to_string()]).inherit(number, fd);
            }
        }
        if self.nodes.get(usize::from(rank)).is_some_and(|node| node.finished) {
            node = node.arg("--finished");
        }
        let mut spawned = node.start()?;
        let process = spawned.pidfd.try_clone()?;
        let events = self.events.clone();
        let Some(node) = self.node(rank) else { return Ok(()) };
        let run = node.run + 1;
        let listening = start_thread("weft-keeper", move || {
            while let Some(word) = hear(&ours) {
                if events.send(KeeperEvent::Said { rank, run, word }).is_err() {
                    return;
                }
            }
            // The socket closes a moment before the process has ended.
            while !matches!(process.wait_dead(Duration::MAX), Ok(Liveness::Dead)) {}
            // The keeper is gone only after all nodes have ended.
            let _ = events.send(KeeperEvent::Ended { rank, run });
        });
        if let Err(error) = listening {
            // No thread would notice its end.
            let _ = spawned.pidfd.kill();
            let _ = spawned.child.wait();
            return Err(error);
        }
        (node.run, node.spawned) = (run, Some(spawned));
        self.decider.handle_started(Rank(rank));
        Ok(())
    }

    fn node(&mut self, rank: u16) -> Option<&mut NodeProcess> {
        self.nodes.get_mut(usize::from(rank))
    }

    fn notify(&self, notice: Notice) {
        if let Err(error) = self.notices.try_send(notice) {
            tracing::debug!(?error, "the launcher does not read notices");
        }
    }

    /// Ends every node in order, and kills what does not end; how many there were.
    fn end_nodes(&mut self) -> usize {
        for node in self.nodes.iter().filter_map(|node| node.spawned.as_ref()) {
            // A node that is gone needs no signal.
            let _ = node.pidfd.signal(Signal::TERM);
        }
        let deadline = Deadline::after(STOP_TIMEOUT);
        let mut ended = 0;
        for rank in (0..).take(self.nodes.len()) {
            let Some(mut spawned) = self.node(rank).and_then(|node| node.spawned.take()) else {
                continue;
            };
            let _ = spawned.pidfd.wait_dead(deadline.remaining());
            let _ = spawned.pidfd.kill();
            if let Ok(status) = spawned.child.wait() {
                self.notify(Notice::Ended { rank, status });
            }
            ended += 1;
        }
        ended
    }
}

/// The time on the clock of core.
fn now() -> Instant {
    Instant(now_ns())
}

/// The next message of a node; `None` once it has closed its end.
fn hear(socket: &Socket) -> Option<ToLauncher> {
    loop {
        match socket.recv::<ToLauncher>(Duration::MAX) {
            Ok((word, _)) => return Some(word),
            Err(PacketError::TimedOut { .. }) => {}
            Err(_) => return None,
        }
    }
}

//! A client of one node: the library behind `weft put`, `get`, `status` and the demo.
//!
//! A [`Client`] speaks to a node's supervisor, which outlives the component, so a client keeps
//! its connection while the component is killed and started again: requests that had not begun
//! are served by the next one, requests that were under way fail with `ComponentLost`.
//!
//! [`Pipeline`] keeps several requests under way, and has a descriptor for an event loop.
//!
//! [`Inbox`] is the receiving side with bookkeeping: it returns every message once, even if the
//! component dies and restarts.

mod error;
mod group;
mod guest;
mod inbox;
mod lasting;
mod listener;
mod pipeline;
mod put;
mod speaker;
mod task;
mod tensor;
mod watcher;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

pub use crate::cluster::Kind;
pub use crate::node::WatchEvent;
pub use error::ClientError;
pub use group::{GroupListener, GroupSpeaker};
pub use guest::Guest;
pub use inbox::Inbox;
pub use lasting::order_lasting;
pub use listener::Listener;
pub use pipeline::Pipeline;
pub use speaker::Speaker;
pub use tensor::{ReceivedTensor, SendUntil};
pub use watcher::Watcher;

use crate::clock::Deadline;
use crate::cluster::{Cluster, ClusterName};
use crate::node::chronicle::Entry;
use crate::node::control::{
    Deliveries, Equivocation, Fault, HeldProof, NodeOrder, NodeStatus, Outcome, Payload, Refused,
    Reply, Request, ScriptLoaded, TakenMessage, Want,
};
use crate::node::evidence::Copied;
use crate::packet::{PacketError, Socket};
use crate::runtime_dir::{ClusterDir, FindError, RuntimeDir};
use crate::shm::Mask;

/// How long a node's supervisor may take beyond what a request itself allows.
const SLACK: Duration = Duration::from_secs(5);
/// How often to look again for a cluster that is starting.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A connection to one node.
#[derive(Debug)]
pub struct Client {
    rank: u16,
    socket: Socket,
    requests: u64,
}

/// How long a client waits.
///
/// A [`Duration`] stands for as long for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For actions of other nodes: to broadcast a message, or to receive one.
    pub others: Duration,
    /// For the node itself, which may be starting its next component; as long as for the others at
    /// least.
    pub node: Duration,
}

impl From<Duration> for Patience {
    fn from(timeout: Duration) -> Self {
        Self { others: timeout, node: timeout }
    }
}

impl Patience {
    /// For an answer.
    fn whole(self) -> Duration {
        self.node.max(self.others)
    }
}

/// Finds the running cluster `name`, waiting up to `patience` for one that is being started.
///
/// # Errors
/// [`ClientError::Find`]: not running, or dead.
pub fn find(name: &ClusterName, patience: Duration) -> Result<(ClusterDir, Cluster), ClientError> {
    find_in(&RuntimeDir::open().map_err(ClientError::Directory)?, name, patience)
}

/// As [`find`], in a runtime directory of the caller's choice.
///
/// # Errors
/// [`ClientError::Find`]: not running, or dead.
pub fn find_in(
    runtime_dir: &RuntimeDir,
    name: &ClusterName,
    patience: Duration,
) -> Result<(ClusterDir, Cluster), ClientError> {
    let deadline = Deadline::after(patience);
    loop {
        let found = runtime_dir.find(name).map_err(ClientError::Find).and_then(|dir| {
            let cluster = Cluster::load_kept(&dir.cluster_file()).map_err(ClientError::Cluster)?;
            Ok((dir, cluster))
        });
        match found {
            // The directory of a cluster that is being started is there a moment before its file,
            // and before it that of a dead one of the same name may be.
            Err(
                ClientError::Find(FindError::NotRunning { .. } | FindError::Dead { .. })
                | ClientError::Cluster(_),
            ) if !deadline.has_passed() => std::thread::park_timeout(LOOK_EVERY),
            found => return found,
        }
    }
}

impl Client {
    /// Connects to node `rank` of the cluster in `dir`.
    ///
    /// # Errors
    /// [`ClientError::OutOfRange`], [`ClientError::Unreachable`].
    pub fn connect(
        dir: &ClusterDir,
        cluster: &Cluster,
        rank: u16,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        if usize::from(rank) >= cluster.nodes {
            return Err(ClientError::OutOfRange { rank, nodes: cluster.nodes });
        }
        let path = dir.node_socket(usize::from(rank)).map_err(ClientError::Directory)?;
        Self::connect_at(&path, rank, patience)
    }

    /// Connects to node `rank` at its control socket.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub fn connect_at(path: &Path, rank: u16, patience: Duration) -> Result<Self, ClientError> {
        let socket = connect_patiently(path, patience)
            .map_err(|source| ClientError::Unreachable { rank, source })?;
        Ok(Self { rank, socket, requests: 0 })
    }

    /// Which node this is.
    #[must_use]
    pub const fn rank(&self) -> u16 {
        self.rank
    }

    /// The process of the node's supervisor, as the kernel knows it.
    #[must_use]
    pub fn supervisor_pid(&self) -> Option<i32> {
        let peer = self.socket.peer_credentials().ok()?.pid?;
        Some(peer.as_raw_nonzero().get())
    }

    /// Takes up to `max` messages, waiting up to `timeout` for the first. Unless they are released,
    /// they are delivered again, to the next client that asks.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn take(
        &mut self,
        max: usize,
        timeout: Duration,
    ) -> Result<Vec<TakenMessage>, ClientError> {
        match self.ask(Want::Take { max, timeout_ms: millis(timeout) }, timeout)? {
            Outcome::Taken(messages) => Ok(messages),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// Releases the messages with these receipts: the client has processed them.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn release(&mut self, receipts: Vec<u64>) -> Result<usize, ClientError> {
        match self.ask(Want::Release { receipts }, Duration::ZERO)? {
            Outcome::Released(count) => Ok(count),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// Messages that other members broadcast behind `after`: see [`Listener`].
    pub(crate) fn deliveries(
        &mut self,
        origin: Option<u16>,
        after: Vec<u64>,
        max: usize,
        patience: Patience,
    ) -> Result<Deliveries, ClientError> {
        let (process, timeout_ms) = (std::process::id(), millis(patience.others));
        let want = Want::Deliver { origin, process, after, max, timeout_ms };
        match self.ask(want, patience.whole())? {
            Outcome::Delivered(deliveries) => Ok(deliveries),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// Ends all of this client's subscriptions to origins: see [`Listener`].
    pub(crate) fn end_deliveries(
        &mut self,
        after: Vec<u64>,
        patience: Duration,
    ) -> Result<(), ClientError> {
        match self.ask(Want::EndDeliver { after }, patience)? {
            Outcome::Delivered(_) => Ok(()),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// Has the node's component equivocate: some peers receive another message than the others.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn equivocate(&mut self) -> Result<Equivocation, ClientError> {
        match self.ask(Want::Inject(Fault::Equivocate), Duration::ZERO)? {
            Outcome::Equivocated(equivocation) => Ok(equivocation),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// A proof that a node sent different messages to different nodes: against `origin` or, without
    /// one, the first proof that the node holds. `None` if it holds none.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn proof(&mut self, origin: Option<u16>) -> Result<Option<HeldProof>, ClientError> {
        match self.ask(Want::Proof { origin }, Duration::ZERO)? {
            Outcome::Proof(proof) => Ok(proof),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// The node's status.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn status(&mut self) -> Result<NodeStatus, ClientError> {
        self.status_within(SLACK)
    }

    /// The node's status, if it answers within `timeout`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn status_within(&mut self, timeout: Duration) -> Result<NodeStatus, ClientError> {
        match self.ask_until(Want::Status, Deadline::after(timeout))? {
            Outcome::Status(status) => Ok(*status),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// What happened at the node after `after_ns` by its host's clock, about one node or about all,
    /// oldest first; at most [`CHRONICLE_MAX`](crate::node::control::CHRONICLE_MAX) entries.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn chronicle(
        &mut self,
        about: Option<u16>,
        after_ns: u64,
    ) -> Result<Vec<Entry>, ClientError> {
        match self.ask(Want::Chronicle { about, after_ns }, Duration::ZERO)? {
            Outcome::Chronicle(entries) => Ok(entries),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// The whole chronicle of the node after `after_ns`, however many replies it takes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn whole_chronicle(
        &mut self,
        about: Option<u16>,
        mut after_ns: u64,
    ) -> Result<Vec<Entry>, ClientError> {
        let mut all = Vec::new();
        loop {
            let entries = self.chronicle(about, after_ns)?;
            let Some(last) = entries.last() else { return Ok(all) };
            after_ns = last.at_ns;
            all.extend(entries);
        }
    }

    /// Copies of other nodes' conclusions that this node keeps, about one node or about all, and
    /// how many older entries it has dropped.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn whole_evidence(
        &mut self,
        about: Option<u16>,
    ) -> Result<(Vec<Copied>, u64), ClientError> {
        let (mut all, mut after_ns) = (Vec::new(), 0);
        loop {
            match self.ask(Want::Evidence { about, after_ns }, Duration::ZERO)? {
                Outcome::Evidence { copies, dropped } => {
                    let Some(last) = copies.last() else { return Ok((all, dropped)) };
                    after_ns = last.entry.at_ns;
                    all.extend(copies);
                }
                other => return Err(self.out_of_place(&other)),
            }
        }
    }

    /// Maps the page on which the node shows the membership (M-14).
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn mask(&mut self) -> Result<Mask, ClientError> {
        let deadline = Deadline::after(SLACK);
        self.request(Want::Mask, deadline)?;
        let rank = self.rank;
        match self.answer_with(deadline)? {
            (Outcome::Done, fds) if fds.len() == 1 => Mask::open(fds[0].as_fd()).map_err(|error| {
                let reason = Refused::Malformed(format!("the page cannot be mapped: {error}"));
                ClientError::Refused { rank, reason }
            }),
            (other, _) => Err(self.out_of_place(&other)),
        }
    }

    /// Waits until the node runs in `incarnation` or a later one, joined with all living peers.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn await_running(
        &mut self,
        incarnation: u32,
        timeout: Duration,
    ) -> Result<NodeStatus, ClientError> {
        self.wait(incarnation, 0, timeout)
    }

    /// Waits until the node runs in `incarnation` or a later one, and at least `peers` peers run
    /// and have joined.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn await_joined(
        &mut self,
        incarnation: u32,
        peers: usize,
        timeout: Duration,
    ) -> Result<NodeStatus, ClientError> {
        self.wait(incarnation, peers, timeout)
    }

    fn wait(
        &mut self,
        incarnation: u32,
        peers: usize,
        timeout: Duration,
    ) -> Result<NodeStatus, ClientError> {
        let want = Want::Await { incarnation, peers, timeout_ms: millis(timeout) };
        match self.ask(want, timeout)? {
            Outcome::Running(status) => Ok(*status),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// Has the node, which is the manager, isolate or release another, or hand over to it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn order_node(&mut self, node: u16, order: NodeOrder) -> Result<(), ClientError> {
        self.ask_for_done(Want::Node { node, order })
    }

    /// Has the node, which is the manager, replace the cluster's recovery script by the translated
    /// one. It is in force once all members hold it; if one does not within 10 s, nothing changes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn load_script(&mut self, image: Vec<u8>) -> Result<ScriptLoaded, ClientError> {
        match self.ask(Want::LoadScript { image: Payload(image) }, Duration::from_secs(15))? {
            Outcome::ScriptLoaded(loaded) => Ok(loaded),
            other => Err(self.out_of_place(&other)),
        }
    }

    fn ask_for_done(&mut self, what: Want) -> Result<(), ClientError> {
        match self.ask(what, Duration::ZERO)? {
            Outcome::Done => Ok(()),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// Kills the node's component process with SIGKILL.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn kill(&mut self) -> Result<(), ClientError> {
        self.ask_for_done(Want::Kill)
    }

    /// Kills the node: its supervisor's process and all below it, with SIGKILL.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn kill_node(&mut self) -> Result<(), ClientError> {
        self.ask_for_done(Want::KillNode)
    }

    /// Injects `fault` into the node's component.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn inject(&mut self, fault: Fault) -> Result<(), ClientError> {
        self.ask_for_done(Want::Inject(fault))
    }

    /// Ends the node, and waits until its supervisor has let go of the connection.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn stop(&mut self) -> Result<(), ClientError> {
        match self.ask(Want::Stop, Duration::ZERO)? {
            Outcome::Done => {}
            other => return Err(self.out_of_place(&other)),
        }
        match self.socket.recv::<Reply>(SLACK) {
            Err(PacketError::Closed) => Ok(()),
            Ok((reply, _)) => Err(self.out_of_place(&reply.what)),
            Err(source) => Err(ClientError::Unreachable { rank: self.rank, source }),
        }
    }

    fn ask(&mut self, what: Want, timeout: Duration) -> Result<Outcome, ClientError> {
        self.ask_until(what, Deadline::after(timeout.saturating_add(SLACK)))
    }

    fn ask_until(&mut self, what: Want, deadline: Deadline) -> Result<Outcome, ClientError> {
        self.request(what, deadline)?;
        self.answer(deadline)
    }

    /// As [`Self::ask`]; whenever `every` has passed without an answer, `look` decides whether to
    /// go on waiting.
    fn ask_looking<E>(
        &mut self,
        what: Want,
        timeout: Duration,
        (every, look): (Duration, &mut dyn FnMut() -> Result<(), E>),
    ) -> Result<Result<Outcome, ClientError>, E> {
        let deadline = Deadline::after(timeout.saturating_add(SLACK));
        if let Err(error) = self.request(what, deadline) {
            return Ok(Err(error));
        }
        loop {
            match self.answer(Deadline::after(deadline.remaining().min(every))) {
                Err(ClientError::Unreachable { source: PacketError::TimedOut { .. }, .. })
                    if !deadline.has_passed() =>
                {
                    look()?;
                }
                answer => return Ok(answer),
            }
        }
    }

    fn request(&mut self, what: Want, deadline: Deadline) -> Result<(), ClientError> {
        self.request_with(what, &[], deadline)
    }

    /// As [`Self::request`], with duplicates of `fds`.
    fn request_with(
        &mut self,
        what: Want,
        fds: &[BorrowedFd<'_>],
        deadline: Deadline,
    ) -> Result<(), ClientError> {
        self.requests += 1;
        let request = Request { id: self.requests, what };
        match self.socket.send(&request, fds, deadline.remaining()) {
            // It may have sent the reason before it closed.
            Ok(()) | Err(PacketError::Closed) => Ok(()),
            Err(source) => Err(ClientError::Unreachable { rank: self.rank, source }),
        }
    }

    /// The answer to the last request.
    fn answer(&mut self, deadline: Deadline) -> Result<Outcome, ClientError> {
        self.answer_with(deadline).map(|(what, _)| what)
    }

    /// The answer to the last request, and the descriptors that came with it.
    fn answer_with(&mut self, deadline: Deadline) -> Result<(Outcome, Vec<OwnedFd>), ClientError> {
        let rank = self.rank;
        let unreachable = |source| ClientError::Unreachable { rank, source };
        loop {
            let (reply, fds) =
                self.socket.recv::<Reply>(deadline.remaining()).map_err(unreachable)?;
            match reply {
                Reply { id: 0, what: Outcome::Refused(reason) } => {
                    return Err(ClientError::Refused { rank, reason });
                }
                // The answer to a request that was given up.
                Reply { id, .. } if id != self.requests => {}
                Reply { what: Outcome::Refused(reason), .. } => {
                    return Err(ClientError::Refused { rank, reason });
                }
                Reply { what, .. } => return Ok((what, fds)),
            }
        }
    }

    fn out_of_place(&self, outcome: &Outcome) -> ClientError {
        let reason = Refused::Malformed(format!("an answer out of place: {outcome:?}"));
        ClientError::Refused { rank: self.rank, reason }
    }
}

/// Whether the component ended while it had the request.
const fn is_loss(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { reason: Refused::ComponentLost, .. })
}

fn millis(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
}

/// Connects to a socket that may not be there yet.
fn connect_patiently(path: &Path, patience: Duration) -> Result<Socket, PacketError> {
    let deadline = Deadline::after(patience);
    loop {
        match Socket::connect(path, deadline.remaining()) {
            Err(PacketError::Connect { .. }) if !deadline.has_passed() => {
                std::thread::park_timeout(LOOK_EVERY);
            }
            connected => return connected,
        }
    }
}

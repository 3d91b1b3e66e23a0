//! The requests of clients to a node over its control socket, and its replies.
//!
//! One packet a request, one packet a reply; the reply carries the request's number. Everything is
//! JSON, payloads in base64. A client that leaves gives back what it took and did not release, and
//! one that stays gives it back after `mailbox.hold_s`.

mod broadcast;
mod counters;
mod fault;
mod group;
mod guest;
mod holder;
mod hook;
mod latency;
mod put;
mod script;
mod standing;
mod taken;
mod task;
mod tensor;
mod vote;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use broadcast::{
    BroadcastOutcome, BroadcastStopped, ConflictStatus, DeliveredMessage, Deliveries, Equivocation,
    HeldProof, OriginStatus, ProofStatus, Then, WindowStatus,
};

pub use counters::CounterStatus;
pub use fault::Fault;
pub use group::{
    GroupDone, GroupOutcome, GroupPart, GroupReceived, GroupRefused, GroupRun, GroupStatus,
    GroupWant, GroupWindow, RootStatus,
};
pub use guest::{GuestOrder, GuestReport};
pub use holder::HolderStatus;
pub use hook::HookStatus;
pub use latency::Latency;
pub use put::{PutOutcome, Stopped};
pub use script::{ScriptLoaded, ScriptRefused, ScriptStatus};
pub use standing::{
    DirNetStatus, EntryStatus, MemberStatus, NodeOrder, PeerStatus, TimingStatus, ViewStatus,
};
pub use taken::TakenMessage;
pub use task::{ReportEffect, TaskEffect, TaskError, TaskFault, TaskOrder, TaskState, TaskStatus};
pub use tensor::{
    KeptTensor, TensorKey, TensorList, TensorOutcome, TensorRefused, TensorState, TensorStatus,
    TensorWant,
};
pub use vote::{TaskNotice, TaskNotices, Vote, VoteDenied, VoteResult};

use super::chronicle::Entry;
use super::evidence::Copied;
use crate::cluster::Form;
pub use crate::payload::Payload;

/// The most payload bytes of one request or reply, so that its packet has room for them.
pub const PAYLOAD_LEN_MAX: usize = 64 * 1024;
/// The most messages of one request or reply.
pub const MESSAGES_MAX: usize = 256;
/// The most requests of one client that are under way; its node reads no more before one ends.
pub const REQUESTS_OPEN_MAX: usize = 8;

/// The most entries of a chronicle in one reply.
pub const CHRONICLE_MAX: usize = 128;

/// A numbered request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// The client's own number for it.
    pub id: u64,
    /// The request.
    pub what: Want,
}

/// A request of a client to a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Want {
    /// Put these messages, in this order, into the mailbox of `to`.
    Put {
        /// The owner's rank.
        to: u16,
        /// The messages.
        messages: Vec<Payload>,
        /// How long to wait while the mailbox is full.
        timeout_ms: u64,
    },
    /// Take up to `max` messages from this node's mailbox, waiting for the first.
    Take {
        /// The most messages to take.
        max: usize,
        /// How long to wait for the first.
        timeout_ms: u64,
    },
    /// These messages were processed.
    Release {
        /// Their receipts. One that the client does not hold, or holds no longer because
        /// `mailbox.hold_s` has passed, is ignored, whether another client holds it by now or not.
        receipts: Vec<u64>,
    },
    /// Broadcast these messages, in this order, to all members.
    Broadcast {
        /// The application's tag of each of them.
        tag: u64,
        /// The messages.
        messages: Vec<Payload>,
        /// How long to wait while the window is full, or another client broadcasts.
        timeout_ms: u64,
        /// What the client intends to do next.
        then: Then,
    },
    /// Deliver what other members broadcast, waiting for the first. One client for each origin.
    Deliver {
        /// Only this origin, which the client holds from now on, and no other; without it, all
        /// origins that no other client holds, each of which is held once a message of it was
        /// delivered.
        origin: Option<u16>,
        /// The client's process, shown to other clients.
        process: u32,
        /// For each origin, the last message that was processed, where the client holds it; none to
        /// continue after the last client.
        after: Vec<u64>,
        /// The most messages; with none this only reports what was processed.
        max: usize,
        /// How long to wait for the first.
        timeout_ms: u64,
    },
    /// This client receives no more: the next one begins after what it has processed.
    EndDeliver {
        /// For each origin, the last message that was processed.
        after: Vec<u64>,
    },
    /// Something of a group.
    Group {
        /// The group's name.
        group: String,
        /// How long to wait for other members, and other clients.
        timeout_ms: u64,
        /// What.
        what: GroupWant,
    },
    /// Something of the tensors.
    Tensor {
        /// How long to wait for room, for a receiver, or for the tensor.
        timeout_ms: u64,
        /// What.
        what: TensorWant,
    },
    /// A proof that a node has equivocated.
    Proof {
        /// Only against this node.
        origin: Option<u16>,
    },
    /// The status of the node.
    Status,
    /// The events of the chronicle, with their causes.
    Chronicle {
        /// Only about this node.
        about: Option<u16>,
        /// Only after this time, by the clock of the node's host.
        after_ns: u64,
    },
    /// The conclusions of other nodes that this one has received, with their evidence.
    Evidence {
        /// Only about this node.
        about: Option<u16>,
        /// Only after this time, by the clock of the node's host.
        after_ns: u64,
    },
    /// Reply as soon as the node shows a later view than `view`, or has noted more than `after`
    /// entries of interest to those who watch.
    Watch {
        /// The number of the last view that the client has; zero for none.
        view: u64,
        /// [`Watched::next`] of the last reply; zero at first.
        after: u64,
        /// How long to wait; then the reply is [`Outcome::Done`].
        timeout_ms: u64,
    },
    /// Reply with a descriptor of the page that shows the membership ([`Mask`](crate::shm::Mask)).
    Mask,
    /// Reply once the node runs, joined with all running peers, in this incarnation or later.
    Await {
        /// The earliest incarnation to wait for.
        incarnation: u32,
        /// The least number of peers to wait for.
        peers: usize,
        /// How long to wait.
        timeout_ms: u64,
    },
    /// Record that a task has met this error.
    Report {
        /// The task's name.
        task: String,
        /// The error, a number whose meaning is the task's.
        error: u16,
    },
    /// Record that a task makes progress.
    Beat {
        /// The task's name.
        task: String,
    },
    /// Record in which phase a task is.
    Phase {
        /// The task's name.
        task: String,
        /// The phase, a number whose meaning is the task's.
        phase: u8,
    },
    /// A version of an N-version task votes.
    Vote {
        /// The task's name.
        task: String,
        /// The round, from 1.
        round: u32,
        /// The vote.
        vote: Vote,
    },
    /// Reply with the notices for a task.
    Notices {
        /// The task's name.
        task: String,
        /// The last one that it has seen; 0 for none.
        seen: u64,
    },
    /// Report about a task that the client itself runs, and reply with the next order.
    Guard {
        /// The task's name.
        task: String,
        /// The report.
        report: GuestReport,
        /// How long to wait for an order.
        timeout_ms: u64,
    },
    /// Order something about a task.
    Task {
        /// The task's name.
        task: String,
        /// The order.
        order: TaskOrder,
    },
    /// Order something about a node; for the manager.
    Node {
        /// The node.
        node: u16,
        /// The order.
        order: NodeOrder,
    },
    /// Replace the recovery script of the cluster; for the manager.
    LoadScript {
        /// The translated script.
        image: Payload,
    },
    /// Kill the component process with SIGKILL.
    Kill,
    /// Kill the supervisor process and all of its descendants with SIGKILL.
    KillNode,
    /// Inject this fault into the component.
    Inject(Fault),
    /// Stop the node.
    Stop,
}

impl Want {
    /// The payload bytes that it carries.
    pub(super) fn payload_len(&self) -> usize {
        match self {
            Self::Put { messages, .. } | Self::Broadcast { messages, .. } => {
                messages.iter().map(|message| message.0.len()).sum()
            }
            Self::LoadScript { image } => image.0.len(),
            _ => 0,
        }
    }

    /// Whether it administers the node; the others carry messages, or wait for them.
    pub(super) const fn is_operators(&self) -> bool {
        match self {
            Self::Put { .. }
            | Self::Take { .. }
            | Self::Release { .. }
            | Self::Broadcast { .. }
            | Self::Deliver { .. }
            | Self::EndDeliver { .. }
            | Self::Group { .. }
            | Self::Tensor { .. }
            | Self::Report { .. }
            | Self::Guard { .. }
            | Self::Phase { .. }
            | Self::Vote { .. }
            | Self::Notices { .. }
            | Self::Beat { .. } => false,
            Self::Proof { .. }
            | Self::Status
            | Self::Chronicle { .. }
            | Self::Evidence { .. }
            | Self::Watch { .. }
            | Self::Mask
            | Self::Await { .. }
            | Self::Task { .. }
            | Self::Node { .. }
            | Self::LoadScript { .. }
            | Self::Kill
            | Self::KillNode
            | Self::Inject(_)
            | Self::Stop => true,
        }
    }
}

/// The reply to the request of the same number.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The number of the request.
    pub id: u64,
    /// The outcome.
    pub what: Outcome,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The first `put` messages are in the owner's memory, whatever fails later.
    Put(PutOutcome),
    /// Messages, in delivery order; empty when none came in time.
    Taken(Vec<TakenMessage>),
    /// How many of the receipts were held by the client, and are released.
    Released(usize),
    /// The first of the messages are on their way to all members, whatever fails later.
    Broadcast(BroadcastOutcome),
    /// Broadcasts of other members.
    Delivered(Deliveries),
    /// What came of a request about a group.
    Group(GroupOutcome),
    /// What came of a request about a tensor; with its memory where it was received.
    Tensor(TensorOutcome),
    /// An altered message was broadcast.
    Equivocated(Equivocation),
    /// A proof, if the node holds one.
    Proof(Option<HeldProof>),
    /// The node's status.
    Status(Box<NodeStatus>),
    /// Events, oldest first; at most [`CHRONICLE_MAX`] entries.
    Chronicle(Vec<Entry>),
    /// Conclusions of others, oldest first; at most [`CHRONICLE_MAX`] entries.
    Evidence {
        /// The entries.
        copies: Vec<Copied>,
        /// How many older ones, of others and of its own, the node has dropped to make room.
        dropped: u64,
    },
    /// What a watcher does not have.
    Watched(Box<Watched>),
    /// The node runs.
    Running(Box<NodeStatus>),
    /// A task's error is recorded.
    Reported(ReportEffect),
    /// An order about a task is carried out.
    Ordered(TaskEffect),
    /// The next order about a task that the client runs.
    Guest(GuestOrder),
    /// Notices for a task.
    Notices(TaskNotices),
    /// The recovery script is in force.
    ScriptLoaded(ScriptLoaded),
    /// Done.
    Done,
    /// Not done, for this reason.
    Refused(Refused),
}

/// What a watcher does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// The view of the node.
    pub view: ViewStatus,
    /// Since when the node shows it, by the clock of its host.
    pub view_at_ns: u64,
    /// Suspicions and verdicts that this node and others have noted, as they arrived.
    pub noted: Vec<Copied>,
    /// How many entries the client has now.
    pub next: u64,
    /// How many entries it has missed.
    pub missed: u64,
}

impl DeliveredMessage {
    /// The most that a message of `len` bytes takes of a packet.
    pub(super) const fn encoded_len_max(len: usize) -> usize {
        TakenMessage::encoded_len_max(len)
    }
}

/// Why a node refuses a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refused {
    /// The component ended while it had the request; how much it had done is not known.
    ComponentLost,
    /// There is no component: the next one is being started.
    NoComponent,
    /// The component failed too often and is not started again.
    GivenUp,
    /// Too many clients are connected, or too many requests are waiting.
    Busy,
    /// The deadline has passed.
    TimedOut,
    /// No such rank.
    OutOfRange {
        /// The requested rank.
        rank: u16,
        /// The number of nodes.
        nodes: u16,
    },
    /// The node has no such task.
    NoTask {
        /// The requested name.
        name: String,
        /// The tasks that it has.
        tasks: Vec<String>,
    },
    /// The cluster file, or another client, has a task of this name.
    TaskNameInUse {
        /// The requested name.
        name: String,
    },
    /// Clients run as many tasks for this node as it has places for.
    GuestsFull {
        /// The limit.
        max: usize,
    },
    /// The task should be started, and its program cannot be.
    NotStarted {
        /// The requested name.
        name: String,
        /// What is wrong with the program, with its name.
        why: String,
    },
    /// The task does not run, so it cannot make progress.
    NotRunning {
        /// The requested name.
        name: String,
        /// Its state.
        state: TaskState,
    },
    /// This node is not the manager.
    NotManager,
    /// About the recovery script.
    Script(ScriptRefused),
    /// About a vote.
    Vote(VoteDenied),
    /// The order does not fit the node's state.
    Unfit {
        /// The node.
        node: u16,
    },
    /// The node is isolated.
    Isolated,
    /// The node takes no part in broadcasts any more.
    LeftBroadcasts,
    /// About a group.
    Group(GroupRefused),
    /// About a tensor.
    Tensor(TensorRefused),
    /// Another client receives what this origin broadcasts.
    OtherReceiver {
        /// The requested origin.
        origin: u16,
        /// That client's process.
        process: u32,
    },
    /// The program of the node takes and broadcasts by itself.
    Owned {
        /// The program.
        program: String,
    },
    /// Another client is in the middle of its broadcasts.
    OtherSender,
    /// The window is full: some member has not taken what was broadcast before.
    WindowFull,
    /// Too few members can be reached for an equivocation.
    TooFew {
        /// How many can be reached.
        reached: usize,
    },
    /// A message was delivered so long ago that its slot has been reused.
    Forgotten {
        /// The origin.
        origin: u16,
        /// Its number.
        seq: u64,
    },
    /// The request itself is malformed.
    Malformed(String),
}

/// The state of a node's component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// A component was started and is not ready.
    Starting,
    /// It is ready, and waits for a welcome from each running peer.
    Joining,
    /// It exchanges messages with every running peer, or goes on without those that do not answer.
    Running,
    /// Its program has finished, and the component that stands in for it does not run yet.
    Finished,
    /// It failed more often than the cluster file allows.
    GivenUp,
    /// The cluster has fenced the node until it is released; it has no component.
    Isolated,
}

impl NodeState {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Starting,
        Self::Joining,
        Self::Running,
        Self::Finished,
        Self::GivenUp,
        Self::Isolated,
    ];

    /// The text for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Joining => "joining",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::GivenUp => "given up",
            Self::Isolated => "isolated",
        }
    }
}

/// The status of a node, as it sees itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its rank.
    pub rank: u16,
    /// The state of its component.
    pub state: NodeState,
    /// The component's incarnation.
    pub incarnation: u32,
    /// How often the component was started again.
    pub restarts: u64,
    /// The supervisor's process.
    pub supervisor_pid: i32,
    /// When that process began to count: milliseconds since 1970.
    pub since_unix_ms: u64,
    /// The component's process, when there is one.
    pub component_pid: Option<i32>,
    /// From the last end of a component to the next one running, in microseconds.
    pub last_recovery_us: Option<u64>,
    /// All of those times.
    pub recovery: Latency,
    /// The peers.
    pub peers: Vec<PeerStatus>,
    /// The peers that an injected partition has cut off.
    pub cut: Vec<u16>,
    /// The tasks under its guard.
    pub tasks: Vec<TaskStatus>,
    /// The hooks that it has run as the manager's node, if the cluster has any.
    pub hooks: Option<HookStatus>,
    /// The component's state in the DIR net, when it could be asked and takes part.
    pub dirnet: Option<DirNetStatus>,
    /// The component's counters, when it could be asked.
    pub counters: Option<CounterStatus>,
    /// The clients that hold messages of its mailbox, the one that has held one for longest first;
    /// none when the component could not be asked.
    pub holders: Vec<HolderStatus>,
    /// Whether broadcasts are signed.
    pub form: Form,
    /// The state of each member's broadcasts; nothing when the component could not be asked.
    pub broadcasts: Vec<OriginStatus>,
    /// The groups of the cluster file; nothing when the component could not be asked.
    pub groups: Vec<GroupStatus>,
    /// Its tensors, if the cluster has a rendezvous.
    pub tensors: Option<TensorStatus>,
    /// The proofs that it holds.
    pub proofs: Vec<ProofStatus>,
    /// How many frames and entries its supervisor had no receiver for, by reason.
    pub refused_by_supervisor: BTreeMap<String, u32>,
    /// How many frames its I'm-Alive Task has refused, by reason.
    pub refused_by_task: BTreeMap<String, u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_survives_the_wire_whatever_its_bytes() {
        let payload = Payload((0..=255).collect());
        let json = serde_json::to_string(&payload).unwrap();
        assert_eq!(serde_json::from_str::<Payload>(&json).unwrap(), payload);
        assert!(serde_json::from_str::<Payload>("\"not base64!\"").is_err());
    }

    fn payload() -> Payload {
        Payload(vec![255; PAYLOAD_LEN_MAX / MESSAGES_MAX])
    }

    #[test]
    fn the_largest_request_and_reply_fit_into_packets() {
        let messages = vec![payload(); MESSAGES_MAX];
        let what = Want::Put { to: u16::MAX, messages, timeout_ms: u64::MAX };
        let json = serde_json::to_vec(&Request { id: u64::MAX, what }).unwrap();
        assert!(json.len() < crate::packet::Packet::MAX_LEN, "{} bytes", json.len());
    }

    #[test]
    fn a_taken_message_is_no_longer_than_is_reckoned() {
        for len in [0, 1, 2, 3, 64, 4000] {
            let payload = Payload(vec![255; len]);
            let (from, incarnation, sequence) = (u16::MAX, u16::MAX, u32::MAX);
            let message = TakenMessage { from, incarnation, sequence, receipt: u64::MAX, payload };
            let json = serde_json::to_vec(&message).unwrap();
            // With the comma that follows it.
            assert!(json.len() < TakenMessage::encoded_len_max(len), "{len}: {}", json.len());
        }
    }
}

//! The messages between a supervisor and its component.
//!
//! The component finds its end of the link at descriptor [`LINK_FD`]. Descriptors travel with
//! `Start` (the node's own memory, the flag, the note of the last term, the saved database, the key
//! to sign with where broadcasts are signed, and the program's record), with `Tensor`, `Received`,
//! `KeepTensor` and `HandedOver` (its memory) and, over shared memory, `Connect` (what may be
//! reached of a peer, and the peer's process last).
//!
//! ```text
//!   control ──▶ [ CONTROL_MAX ]  ─┐                        ┌─▶ [ CONTROL_MAX ]
//!   requests ─▶ [ REQUESTS_MAX ] ─┴─▶ socket ─▶ read link ─┴─▶ [ REQUESTS_MAX ]
//! ```
//!
//! Neither process waits for the other. What does not fit into the socket waits in [`Outgoing`],
//! control before requests and replies, so that clients delay no control message by more than what
//! is in the socket already. Requests are bounded by the windows of the clients; a process that
//! leaves so much control unread hangs.

mod outgoing;

use std::os::fd::RawFd;

use serde::{Deserialize, Serialize};
use weft_core::ids::{Rank, Term};
use weft_core::recovery::OrderId;

pub(super) use outgoing::{Outgoing, SendError};

use super::abort_markers::AbortMarker;
use super::chronicle::Entry;
use super::control::{
    ConflictStatus, HeldProof, Outcome, Payload, TaskFault, TaskNotice, TaskNotices, TensorKey,
    TensorRefused, ViewStatus, Want,
};
use super::places::Places;
use crate::bootstrap::PairEnd;
use crate::signing::PublicKey;
use crate::tensor::ShapeText;

/// Where a component finds the link.
pub(super) const LINK_FD: RawFd = 3;
/// The variable that names the version of the link to the process that a node starts.
pub(super) const LINK_VAR: &str = "WEFT_LINK";
/// Both ends of a link are of one version of Weft.
pub(super) const LINK_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The most control messages that wait at either end of the link.
pub(super) const CONTROL_MAX: usize = 1024;
/// The most requests, and ends of clients, under way: more than all places of clients allow.
pub(super) const REQUESTS_MAX: usize = 2816;

/// The queue that a message waits in. Messages of different classes are not ordered, except that
/// replies never overtake control messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Messages of the node itself.
    Control,
    /// Requests of clients, their replies, and messages that must stay in order with them.
    Request,
}

/// A message of the link.
pub(super) trait Classed: Serialize {
    /// The queue that it waits in.
    fn class(&self) -> Class;
}

/// The numbers of tensors that programs hand over begin with this one.
pub(super) const OWN_NUMBERS: u64 = 1 << 63;

/// The client number of the supervisor's own requests.
pub(super) const SUPERVISOR: u64 = 0;

impl Classed for ToComponent {
    fn class(&self) -> Class {
        match self {
            Self::Request { ticket, .. } if ticket.client == SUPERVISOR => Class::Control,
            // The end of a client, and its abort marker, come behind its requests.
            Self::Request { .. }
            | Self::Tensor { .. }
            | Self::Execute { .. }
            | Self::Left { .. } => Class::Request,
            Self::Start { .. }
            | Self::Connect { .. }
            | Self::Key { .. }
            | Self::Enter
            | Self::AllNamed
            | Self::Acknowledged { .. }
            | Self::Datagram { .. }
            | Self::Change(_)
            | Self::Offer { .. }
            | Self::Fence { .. }
            | Self::Isolated { .. }
            | Self::Released { .. }
            | Self::Parted { .. }
            | Self::Script { .. }
            | Self::HandedOver { .. }
            | Self::Notices { .. }
            | Self::Stop => Class::Control,
        }
    }
}

impl Classed for FromComponent {
    fn class(&self) -> Class {
        if matches!(self, Self::Reply { .. }) { Class::Request } else { Class::Control }
    }
}

/// Identifies a request on the link: its client, and the client's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Ticket {
    pub(super) client: u64,
    pub(super) id: u64,
}

/// A change of the node's own entry in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TaskChange {
    /// Its state.
    Status { task: u8, status: u8 },
    /// The phase that it has reported.
    Phase { task: u8, phase: u8 },
    /// An error, and when it happened by the clock of this host; sent again until it is answered.
    /// `last_us` is when the task had the error before it.
    Error { number: u64, task: u8, kind: u16, at_us: u64, last_us: Option<u64> },
    /// How many of its errors are answered, and the last order of a script that was judged.
    Answered { task: u8, mark: u16, judged: OrderNumber, is_cleared: bool },
}

/// Identifies an order of a recovery script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OrderNumber {
    pub(super) epoch: u32,
    pub(super) claimant: u16,
    pub(super) evaluation: u32,
    pub(super) index: u16,
}

impl From<OrderId> for OrderNumber {
    fn from(OrderId { term, evaluation, index }: OrderId) -> Self {
        let Term { epoch, claimant: Rank(claimant) } = term;
        Self { epoch, claimant, evaluation, index }
    }
}

impl From<OrderNumber> for OrderId {
    fn from(OrderNumber { epoch, claimant, evaluation, index }: OrderNumber) -> Self {
        Self { term: Term { epoch, claimant: Rank(claimant) }, evaluation, index }
    }
}

/// A recovery script's order about a task: who it is, and the errors that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ScriptOrder {
    pub(super) number: OrderNumber,
    /// How many errors were answered as far as the manager knew.
    pub(super) seen: u32,
    /// How many are answered by it.
    pub(super) mark: u32,
}

/// An order of the manager about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum GuardAction {
    Restart,
    Isolate,
    Start,
    Stop,
    Release,
    /// Nothing but that its errors are answered.
    Answer,
    /// Forget its restarts, too.
    Clear,
    /// Hand it an integer, which stands in [`ScriptOrder::seen`].
    Send,
    /// Hand it a notice: the error in [`ScriptOrder::seen`], and what it is about in
    /// [`ScriptOrder::mark`].
    Warn,
}

/// What became of a tensor that a supervisor keeps for its component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TensorNews {
    /// Its receiver can have it.
    Sent,
    /// It cannot be sent.
    Refused(TensorRefused),
    /// Its receiver has it.
    Consumed,
}

/// A message from the supervisor to its component.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToComponent {
    /// Run as this node, in this incarnation.
    Start {
        /// The process that the node has started.
        process: u32,
        /// Whether the mailbox and the broadcasts are a program's, and no client's.
        owned: bool,
        /// Whether it stands in for a program that has finished.
        finished: bool,
        rank: u16,
        incarnation: u32,
        boot: u32,
        /// The first incarnation of this supervisor, whose memory the component takes over.
        memory_since: u32,
        /// The last boot of this node that its peers have removed; zero: none.
        removed: u32,
        generation: u32,
        tasks: u8,
        cluster: String,
        /// Which client receives each origin's broadcasts, and how much it has processed.
        places: Places,
    },
    /// Fence whatever incarnation of `peer` was known, and admit this one: at once over shared
    /// memory, when both ends of a pair are made over verbs. `boot` is the boot for which this was
    /// decided: the component refuses one that it has removed meanwhile.
    Connect { peer: u16, incarnation: u32, boot: u32 },
    /// That node signs what it broadcasts with this key; sent before its incarnation is admitted.
    Key { peer: u16, key: PublicKey },
    /// Every component that may write into this memory was named by `Connect`; each other that ever
    /// could is dead. Tickets may be questioned.
    AllNamed,
    /// Take part in the DIR net: every running peer can be reached.
    Enter,
    /// A frame of the DIR net, from the I'm-Alive Task of node `from`.
    Datagram { from: u16, bytes: Payload },
    /// A task of this node has changed.
    Change(TaskChange),
    /// That incarnation of `peer` has made its end of the pair with this incarnation.
    Offer { peer: u16, incarnation: u32, end: PairEnd },
    /// The incarnation of `peer` has ended.
    Fence { peer: u16 },
    /// The removal of `peer` up to that boot is known here: later messages were decided after it.
    Acknowledged { peer: u16, boot: u32 },
    /// `peer` is isolated since that boot, whatever the component has restored.
    Isolated { peer: u16, boot: u32 },
    /// Isolations of `peer`, or of this node, up to that boot are over.
    Released { peer: u16, boot: u32 },
    /// The node of `peer` is lost: its supervisor has ended, or the link to it.
    Parted { peer: u16 },
    /// The supervisor holds this recovery script, which is to replace the one in force.
    Script { image: Payload },
    /// A request of a client.
    Request { ticket: Ticket, what: Want },
    /// Send this tensor, whose sealed memory comes with this, or hand it over, if none does;
    /// answered by [`FromComponent::Tensor`]. `timeout_ms` is how long it may wait for room.
    Tensor { number: u64, key: TensorKey, shape: Option<ShapeText>, timeout_ms: u64 },
    /// The tensor that [`FromComponent::FetchTensor`] asked for under this number: its sealed
    /// memory comes with this, or it is refused, or it has room in the store and comes in parts.
    HandedOver { fetch: u64, refused: Option<TensorRefused> },
    /// Broadcast this abort marker, if the last message that was broadcast has its tag and is
    /// another one; answered by [`FromComponent::Executed`].
    Execute { number: u64, marker: AbortMarker },
    /// A client has left: what it holds goes back, what it waits for is dropped; answered by
    /// [`FromComponent::Forgotten`].
    Left { client: u64 },
    /// The notices for a task that [`FromComponent::AwaitNotices`] asked for; at least one.
    Notices { task: u8, notices: TaskNotices },
    /// Shut down cleanly.
    Stop,
}

/// A message from the component to its supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromComponent {
    /// The endpoint is made; peers may admit it.
    Ready,
    /// It cannot go on, for this reason; it ends.
    Failed { cause: String, cure: String },
    /// Messages have gone to that incarnation of `peer` and back.
    Joined { peer: u16, incarnation: u32 },
    /// The own end of the pair with that incarnation of `peer`.
    Offer { peer: u16, incarnation: u32, end: PairEnd },
    /// The answer to a request.
    Reply { ticket: Ticket, what: Outcome },
    /// What became of a tensor that the supervisor keeps.
    Tensor { number: u64, news: TensorNews },
    /// A tensor for a client that asked for it. Its sealed memory comes with this: its source drops
    /// it once this was sent.
    Received { ticket: Ticket, key: TensorKey, shape: Option<ShapeText> },
    /// Fetch a tensor that `peer` hands over in its incarnation `lent_by`, which keeps it under
    /// `number`: for a client, or for the program. Answered by [`ToComponent::HandedOver`].
    FetchTensor {
        fetch: u64,
        ticket: Option<Ticket>,
        peer: u16,
        lent_by: u32,
        number: u64,
        bytes: u64,
    },
    /// Keep the sealed memory that comes with this under `number`, from [`OWN_NUMBERS`] on, for
    /// node `to` to fetch, until it is dropped or this incarnation ends.
    KeepTensor { number: u64, to: u16 },
    /// Keep that no longer.
    DropTensor { number: u64 },
    /// Nothing of this client, which has left, is under way.
    Forgotten { client: u64 },
    /// A peer is not admitted: what it granted or offered does not lead to its memory.
    Unreachable { peer: u16, error: String },
    /// Work for that incarnation of `peer` was lost: it has ended, or the pair with it has.
    Lost { peer: u16, incarnation: u32 },
    /// Frames of the DIR net for I'm-Alive Tasks.
    Letters { to: Vec<u16>, bytes: Payload },
    /// Incarnations of `peer` up to those that began with `boot` are removed, by decision in this
    /// term, and are fenced; answered by [`ToComponent::Acknowledged`].
    Removed { peer: u16, boot: u32, epoch: u32, claimant: u16 },
    /// By decision of this manager a boot of `node` is over: reset the node.
    Reset { node: u16, boot: u32 },
    /// By decision of the manager: do this with a task of this node.
    Guard { task: u8, action: GuardAction, order: Option<ScriptOrder> },
    /// A round of an N-version task is over: these tasks of the node are at fault, and these get a
    /// notice of the outcome. It may come again.
    Round {
        nversion: u8,
        round: u32,
        /// By the place of the task.
        faults: Vec<(u8, TaskFault)>,
        notices: Vec<(u8, TaskNotice)>,
    },
    /// By order of the program: this task of the node is in this phase, if it runs.
    Phase { task: u8, phase: u8 },
    /// The program asks for the notices for this task after number `seen`, as soon as there is one;
    /// answered by [`ToComponent::Notices`].
    AwaitNotices { task: u8, seen: u64 },
    /// By order of the recovery script, which this component evaluates as the manager: run this
    /// program of `[recovery.calls]`.
    Call { name: String, args: Vec<i32>, epoch: u32, evaluation: u32 },
    /// Hold this recovery script, which is to replace the one in force: the component manages.
    HoldScript { image: Payload },
    /// Bring the recovery script that is held to these nodes.
    OfferScript { to: Vec<u16>, digest: u64 },
    /// Another node has the recovery script in force, and this one lacks it.
    WantScript { digest: u64 },
    /// By decision of a manager this recovery script is in force, and the component uses it.
    UseScript { digest: u64, next: Option<u64> },
    /// `node`, which may be this one, is isolated by decision: no boot of it is admitted. The last
    /// isolation ended `boot`.
    Isolated { node: u16, boot: u32 },
    /// An operator has released `node`, which may be this one: isolations up to `boot` are over.
    Released { node: u16, boot: u32 },
    /// The component shows this view.
    View(ViewStatus),
    /// The history of the node's tasks in the database, complete as far as it can be known: the
    /// status of each, how many errors it has had, and how many of them a script has answered.
    Past { tasks: Vec<(u8, u16, u16)> },
    /// The errors of tasks up to this number are in the database, and saved.
    Recorded { number: u64 },
    /// This node was removed: this boot of it is over.
    Excluded,
    /// An entry for the chronicle.
    Note(Entry),
    /// Which client receives each origin's broadcasts, and how much it has processed; sent before a
    /// client that has processed so much is answered.
    Receiving(Places),
    /// The abort marker of this number was broadcast, or is void.
    Executed { number: u64 },
    /// The programs of all members have finished, this one's included.
    AllFinished,
    /// Members show different messages for one slot.
    Disputed(ConflictStatus),
    /// A node has equivocated: the proof.
    Proven(HeldProof),
}

//! Tensors in the requests and replies of clients. Their bytes travel beside them, as a descriptor
//! of sealed memory.

use serde::{Deserialize, Serialize};

use crate::tensor::ShapeText;

/// What a tensor is sent and received under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorKey {
    /// The node that sends it.
    pub from: u16,
    /// The node that receives it.
    pub to: u16,
    /// What it is.
    pub edge: String,
    /// In which step.
    pub step: i64,
}

/// What a client wants of the tensors of its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TensorWant {
    /// Keep the tensor whose sealed memory comes with this, until its receiver has it.
    Send {
        /// Under which name; the node itself sends it.
        key: TensorKey,
        /// What it is; none for a dead one, which has no memory.
        shape: Option<ShapeText>,
        /// Reply only once its receiver has it.
        waits: bool,
    },
    /// Receive a tensor, which may be sent earlier or later; the node itself receives it.
    Receive {
        /// Under which name.
        key: TensorKey,
    },
    /// The client has processed the tensor of this number, which it received.
    Release {
        /// The number.
        number: u64,
    },
    /// Drop the tensors of a step, and end its receives.
    EndStep {
        /// The step.
        step: i64,
        /// Whether it is aborted; otherwise it is cleaned up.
        is_aborted: bool,
    },
    /// List what the node keeps.
    List {
        /// Only tensors of higher numbers.
        after: u64,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TensorOutcome {
    /// The node keeps the tensor.
    Sent {
        /// Under this number.
        number: u64,
    },
    /// Its receiver has it.
    Consumed {
        /// The number that it had.
        number: u64,
    },
    /// Received. Its memory comes with this, and stays with the node, too, until it is released.
    Received {
        /// Under this number.
        number: u64,
        /// What it is; none if it is dead.
        shape: Option<ShapeText>,
    },
    /// Whether the client held that tensor, which is released now.
    Released(bool),
    /// The step is over.
    Ended,
    /// What the node keeps.
    Listed(TensorList),
}

/// Tensors that a node keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorList {
    /// Bytes of all of them, and of those that are being received at the most.
    pub bytes: u64,
    /// The most bytes (`rendezvous.store_mib`).
    pub limit: u64,
    /// Receives that wait.
    pub receives: usize,
    /// Requests, and tensors that are being received, for which there is no room yet.
    pub waiting: usize,
    /// Some of the tensors, by their numbers.
    pub kept: Vec<KeptTensor>,
}

/// A tensor that a node keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptTensor {
    /// The node's number of it.
    pub number: u64,
    /// Under which name.
    pub key: TensorKey,
    /// What it is; none if it is dead.
    pub shape: Option<ShapeText>,
    /// Its bytes.
    pub bytes: u64,
    /// What it waits for.
    pub state: TensorState,
}

/// What a tensor in a store waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorState {
    /// It is to be sent, and waits for room in the memory that its receiver reads.
    Waiting,
    /// It is sent, and waits for its receiver.
    Sent,
    /// It was received, and no client has it yet.
    Received,
    /// A client has it, and has not released it.
    Held,
}

impl TensorState {
    /// The text for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Waiting => "waits for room",
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Held => "held by a client",
        }
    }
}

/// How much of its rendezvous a node uses. What its component knows is zero where that could not be
/// asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorStatus {
    /// Tensors in the store of its supervisor.
    pub kept: usize,
    /// Bytes of those, and of receives that wait for one, at the most.
    pub kept_bytes: u64,
    /// The most bytes of the store (`rendezvous.store_mib`).
    pub store_bytes: u64,
    /// Values that its component offers to their receivers.
    pub offered: u16,
    /// Memory of those, and of values that are being made: lent until their receivers have them.
    pub offered_bytes: u64,
    /// Receives of its component that are not released.
    pub receives: u16,
    /// Memory of those.
    pub received_bytes: u64,
    /// As much of that as belongs to receives that have ended, and that reads or writes which are
    /// out may still change.
    pub quarantined_bytes: u64,
    /// Receives of peers that wait for a value of its component.
    pub waiters: u16,
    /// Messages of peers that its component has dropped: they came too late, or did not fit its
    /// state.
    pub rejects: u64,
}

impl TensorStatus {
    /// This store, with what the component knows, if it could be asked.
    #[must_use]
    pub fn with(self, component: Option<Self>) -> Self {
        let Self { kept, kept_bytes, store_bytes, .. } = self;
        Self { kept, kept_bytes, store_bytes, ..component.unwrap_or_default() }
    }
}

/// Why a node refuses a request about a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TensorRefused {
    /// The cluster file has no rendezvous.
    NoRendezvous,
    /// The name can be no part of a key, for this reason.
    BadName(String),
    /// What came with the request is not the sealed memory of the tensor, for this reason.
    NotSealed(String),
    /// There are as many of them as there may be.
    Full {
        /// The limit.
        limit: usize,
    },
    /// The tensor is longer than any piece of the pool.
    TooLong {
        /// The longest tensor in bytes.
        limit: u64,
    },
    /// Other tensors take the memory that receivers read, past the deadline.
    NoSpace,
    /// The store would hold more than it may, past the deadline.
    StoreFull {
        /// Bytes that the tensor needs, or the receive at the most.
        needed: u64,
        /// Bytes that it holds, or has promised to tensors that are being received.
        bytes: u64,
        /// The most that it may hold.
        limit: u64,
    },
    /// The client holds as many tensors that it received as one may.
    Held {
        /// The limit.
        limit: usize,
    },
    /// The node may open too few files for one more tensor: each has a descriptor.
    Descriptors {
        /// For how many there is room.
        places: usize,
        /// How many files it may open (`RLIMIT_NOFILE`).
        open_files: u64,
    },
    /// That node was removed, or its incarnation ended.
    PeerGone,
    /// The program of that node has finished.
    Finished,
    /// The step was cleaned up.
    StepOver,
    /// The step was aborted.
    Aborted,
    /// The bytes were damaged on the way; the tensor stays at its source.
    Corrupt,
    /// The tensor was not sent in time.
    NotSent,
    /// The node keeps the tensor, and its receiver did not ask for it in time.
    NotReceived {
        /// The number of the tensor.
        number: u64,
    },
    /// The source has no room for one more receive that waits.
    NoWaiter,
}

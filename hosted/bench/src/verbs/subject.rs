//! What is measured, and who the rival is.

use serde::{Deserialize, Serialize};

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerbsOp {
    /// Latency of a write.
    Write,
    /// Latency of a read.
    Read,
    /// Latency of a remote addition.
    FetchAdd,
    /// Bytes a second that writes carry.
    Bandwidth,
    /// Latency of a message, mailbox to mailbox.
    Mailbox,
    /// Latency of a broadcast among three, from the call to the last delivery.
    Broadcast,
    /// Bytes a second of a message to a group of three, from the call to the last delivery.
    Tree,
    /// Bytes a second of a tensor that its receiver reads, from the call to the end of the receive.
    TensorRead,
    /// The same of one that its sender writes.
    TensorWrite,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerbsSubject {
    /// The operation.
    pub what: VerbsOp,
    /// Its length in bytes.
    pub bytes: u32,
}

/// At most so many times as long as the rival.
const LATENCY_RATIO: f64 = 1.15;
/// At least this share of the rival's bandwidth.
const BANDWIDTH_RATIO: f64 = 0.90;
/// At most so many times as long as the bare operations.
const MAILBOX_RATIO: f64 = 1.20;
/// At most so many times as long as a write and a read, which it cannot do without.
const BROADCAST_RATIO: f64 = 1.30;
/// At least this share of the rate at which one reader reads.
const TREE_RATIO: f64 = 0.70;
/// At least this share of the rate at which one process reads or writes.
const TENSOR_RATIO: f64 = 0.85;

impl VerbsSubject {
    /// The longest operation.
    pub const BYTES_MAX: u32 = 64 * 1024;

    /// The longest broadcast.
    pub(super) const MESSAGE_MAX: usize = 4096;

    /// The message to a group, and a tensor.
    pub(super) const LONG_BYTES: u32 = 1 << 20;

    /// All that is measured.
    pub const ALL: [Self; 16] = [
        Self::of(VerbsOp::Write, 8),
        Self::of(VerbsOp::Write, 64),
        Self::of(VerbsOp::Write, 512),
        Self::of(VerbsOp::Write, 4096),
        Self::of(VerbsOp::Write, Self::BYTES_MAX),
        Self::of(VerbsOp::Read, 8),
        Self::of(VerbsOp::Read, Self::BYTES_MAX),
        Self::of(VerbsOp::FetchAdd, 8),
        Self::of(VerbsOp::Bandwidth, 4096),
        Self::of(VerbsOp::Bandwidth, Self::BYTES_MAX),
        Self::of(VerbsOp::Mailbox, 8),
        Self::of(VerbsOp::Broadcast, 8),
        Self::of(VerbsOp::Broadcast, Self::MESSAGE_MAX as u32),
        Self::of(VerbsOp::Tree, Self::LONG_BYTES),
        Self::of(VerbsOp::TensorRead, Self::LONG_BYTES),
        Self::of(VerbsOp::TensorWrite, Self::LONG_BYTES),
    ];

    const fn of(what: VerbsOp, bytes: u32) -> Self {
        Self { what, bytes }
    }

    /// The name of what it is compared with.
    #[must_use]
    pub const fn rival(self) -> &'static str {
        match self.what {
            VerbsOp::Write => "ib_write_lat",
            VerbsOp::Read => "ib_read_lat",
            VerbsOp::FetchAdd => "ib_atomic_lat",
            VerbsOp::Bandwidth | VerbsOp::TensorWrite => "ib_write_bw",
            VerbsOp::Mailbox => "add + write",
            VerbsOp::Broadcast => "write + read",
            VerbsOp::Tree | VerbsOp::TensorRead => "ib_read_bw",
        }
    }

    /// The aim for our figure divided by the rival's, and whether `ratio` reaches it.
    #[must_use]
    pub fn aim(self, ratio: f64) -> (f64, bool) {
        match self.what {
            VerbsOp::Write | VerbsOp::Read | VerbsOp::FetchAdd => {
                (LATENCY_RATIO, ratio <= LATENCY_RATIO)
            }
            VerbsOp::Bandwidth => (BANDWIDTH_RATIO, ratio >= BANDWIDTH_RATIO),
            VerbsOp::Mailbox => (MAILBOX_RATIO, ratio <= MAILBOX_RATIO),
            VerbsOp::Broadcast => (BROADCAST_RATIO, ratio <= BROADCAST_RATIO),
            VerbsOp::Tree => (TREE_RATIO, ratio >= TREE_RATIO),
            VerbsOp::TensorRead | VerbsOp::TensorWrite => (TENSOR_RATIO, ratio >= TENSOR_RATIO),
        }
    }

    /// Operations in one turn, of `iterations` that a turn of short ones has: long ones are fewer,
    /// so that no row takes much longer than another. A stream has one figure a turn, and is as
    /// long as it can be, so that a stall of the host is a small part of it.
    #[must_use]
    pub fn iterations(self, iterations: u32) -> u32 {
        match self.what {
            VerbsOp::Write
            | VerbsOp::Read
            | VerbsOp::FetchAdd
            | VerbsOp::Mailbox
            | VerbsOp::Broadcast
            | VerbsOp::Tree
            | VerbsOp::TensorRead
            | VerbsOp::TensorWrite => (iterations / (1 + self.bytes / 8192)).max(20),
            VerbsOp::Bandwidth => iterations,
        }
    }
}

impl VerbsOp {
    /// Whether its figures are MiB a second, of which more is better; else latencies.
    #[must_use]
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::Bandwidth | Self::Tree | Self::TensorRead | Self::TensorWrite)
    }
}

impl std::fmt::Display for VerbsOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::FetchAdd => "fetch_add",
            Self::Bandwidth => "bandwidth",
            Self::Mailbox => "mailbox",
            Self::Broadcast => "broadcast",
            Self::Tree => "tree",
            Self::TensorRead => "tensor_read",
            Self::TensorWrite => "tensor_write",
        })
    }
}

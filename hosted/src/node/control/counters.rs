//! The counters of a component in its status.

use serde::{Deserialize, Serialize};

use super::latency::Latency;

/// The counters of a component since its start (MB-10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterStatus {
    /// When the component began to count: milliseconds since 1970.
    pub since_unix_ms: u64,
    /// Messages put into other mailboxes.
    pub put: u64,
    /// Puts that found a mailbox full.
    pub full: u64,
    /// Puts for which the fabric returned an implausible ticket.
    pub tickets_unknown: u64,
    /// Messages taken from the own mailbox.
    pub taken: u64,
    /// Messages in the own mailbox and not released.
    pub owed: u32,
    /// Messages that went back to the mailbox because a client held them for too long.
    pub returned: u64,
    /// Tickets skipped because no process could still write them.
    pub skipped: u64,
    /// Inquiries into missing tickets.
    pub questioned: u64,
    /// Damaged copies: never delivered.
    pub checksum_failures: u64,
    /// Messages with a sender that may not write: never delivered.
    pub forged: u64,
    /// Tickets that a member forged by writing over the reservation word, or that a fabric
    /// answered wrongly.
    pub forged_tickets: u64,
    /// The longest that a ticket was missing, in microseconds.
    pub longest_stall_us: u64,
    /// Damaged lane messages.
    pub lane_failures: u64,
    /// Slots in the own broadcast memory that hold garbage where a message is due; they are never
    /// delivered.
    pub broadcast_unfit: u64,
    /// From the acceptance of a batch of messages to the moment when all of it is known to be in
    /// the owner's memory, waits at a full mailbox included, as exactly as the passes of the loop
    /// follow each other.
    pub put_latency: Latency,
    /// From a broadcast to the moment when every node is known to have received it; one broadcast
    /// at a time is followed.
    pub broadcast_latency: Latency,
}

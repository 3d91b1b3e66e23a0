//! Takes that clients wait for, in the order of their requests.
//!
//! A client holds what it took until it releases it; when it leaves, or has held a message for
//! `mailbox.hold_s`, the rest goes back and the next client gets it.

use std::collections::VecDeque;
use std::time::Duration;

use weft_core::mailbox::Receipt;
use weft_core::time::Instant;

use super::NodeEndpoint;
use super::control::{HolderStatus, MESSAGES_MAX, Outcome, Payload, Refused, TakenMessage};
use super::holds::Holds;
use super::link::Ticket;
use super::puts::Answer;

/// The most takes in line.
const LINE_MAX: usize = 256;

/// A take that a client requested.
#[derive(Debug)]
pub(super) struct TakeJob {
    pub(super) ticket: Ticket,
    pub(super) max: usize,
    pub(super) deadline_ns: u64,
}

/// The takes in line and what was taken.
#[derive(Debug)]
pub(super) struct Takes {
    line: VecDeque<TakeJob>,
    holds: Holds,
}

impl Takes {
    /// What is taken is held for `hold` at most; without it, as long as the client is connected.
    pub(super) fn new(hold: Option<Duration>) -> Self {
        Self { line: VecDeque::new(), holds: Holds::new(hold) }
    }

    /// Queues a take.
    pub(super) fn begin(&mut self, job: TakeJob) -> Option<Answer> {
        if self.line.len() >= LINE_MAX {
            return Some((job.ticket, Outcome::Refused(Refused::Busy)));
        }
        self.line.push_back(job);
        None
    }

    /// Whether no client waits, and none holds a message that goes back after a while.
    pub(super) fn is_empty(&self) -> bool {
        self.next_deadline_ns().is_none()
    }

    /// Serves the line from what has landed; a client past its deadline gets nothing.
    pub(super) fn step(&mut self, endpoint: &mut NodeEndpoint, now_ns: u64) -> Vec<Answer> {
        give_back(endpoint, &self.holds.expire(now_ns));
        let mut answers = Vec::new();
        while let Some(job) = self.line.front() {
            let taken = take(endpoint, job.max, now_ns);
            if taken.is_empty() {
                break;
            }
            let receipts = taken.iter().map(|message| message.receipt);
            self.holds.hold(job.ticket.client, receipts, now_ns);
            answers.push((job.ticket, Outcome::Taken(taken)));
            self.line.pop_front();
        }
        self.line.retain(|job| {
            let waits = now_ns < job.deadline_ns;
            if !waits {
                answers.push((job.ticket, Outcome::Taken(Vec::new())));
            }
            waits
        });
        answers
    }

    /// Releases what `client` holds of `receipts`; returns how many those were.
    pub(super) fn release(
        &mut self,
        endpoint: &mut NodeEndpoint,
        client: u64,
        receipts: &[u64],
    ) -> usize {
        let held = self.holds.release(client, receipts).into_iter().map(Receipt::from_bits);
        held.filter(|receipt| endpoint.release(*receipt).is_ok()).count()
    }

    /// The client has left: what it holds goes back, what it waits for is dropped.
    pub(super) fn forget(&mut self, endpoint: &mut NodeEndpoint, client: u64) {
        self.line.retain(|job| job.ticket.client != client);
        give_back(endpoint, &self.holds.forget(client));
    }

    /// When the next take in line times out, or the next message goes back.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        let waiting = self.line.iter().map(|job| job.deadline_ns);
        waiting.chain(self.holds.next_deadline_ns()).min()
    }

    /// The clients that hold messages.
    pub(super) fn holders(&self, now_ns: u64) -> Vec<HolderStatus> {
        self.holds.holders(now_ns)
    }

    /// How many messages went back because a client held them for too long.
    pub(super) const fn returned(&self) -> u64 {
        self.holds.returned()
    }
}

/// Returns what was held to the mailbox.
fn give_back(endpoint: &mut NodeEndpoint, receipts: &[u64]) {
    for receipt in receipts.iter().rev() {
        let restored = endpoint.restore(Receipt::from_bits(*receipt));
        debug_assert!(restored.is_ok(), "a held receipt is out");
    }
}

/// Takes up to `max` messages, as many as one reply can carry.
fn take(endpoint: &mut NodeEndpoint, max: usize, now_ns: u64) -> Vec<TakenMessage> {
    let longest = TakenMessage::encoded_len_max(usize::from(endpoint.message_len()));
    let mut taken = Vec::new();
    let mut len = 0;
    while taken.len() < max.min(MESSAGES_MAX) && len + longest <= TakenMessage::REPLY_LEN_MAX {
        let Some(message) = endpoint.take(Instant(now_ns)) else { break };
        len += TakenMessage::encoded_len_max(message.payload.len());
        taken.push(TakenMessage {
            from: message.sender.0,
            incarnation: message.incarnation,
            sequence: message.sequence,
            receipt: message.receipt.to_bits(),
            payload: Payload(message.payload.to_vec()),
        });
    }
    taken
}

//! Takes that clients wait for, in the order in which they asked.
//!
//! What a client took is its own until it releases it; when it leaves, the rest goes back and
//! the next one gets it.

use std::collections::{BTreeMap, VecDeque};

use weft_core::mailbox::Receipt;
use weft_core::time::Instant;

use super::NodeEndpoint;
use super::control::{MESSAGES_MAX, Outcome, Payload, Refused, TakenMessage};
use super::link::Ticket;
use super::puts::Answer;

/// Takes in line.
const LINE_MAX: usize = 256;

/// A take as a client asked for it.
#[derive(Debug)]
pub(super) struct TakeJob {
    pub(super) ticket: Ticket,
    pub(super) max: usize,
    pub(super) deadline_ns: u64,
}

/// The takes in line and what was taken.
#[derive(Debug, Default)]
pub(super) struct Takes {
    line: VecDeque<TakeJob>,
    held: BTreeMap<u64, Vec<Receipt>>,
}

impl Takes {
    /// Queues a take.
    pub(super) fn begin(&mut self, job: TakeJob) -> Option<Answer> {
        if self.line.len() >= LINE_MAX {
            return Some((job.ticket, Outcome::Refused(Refused::Busy)));
        }
        self.line.push_back(job);
        None
    }

    /// Serves the line from what has landed; who has waited long enough gets nothing.
    pub(super) fn step(&mut self, endpoint: &mut NodeEndpoint, now_ns: u64) -> Vec<Answer> {
        let mut answers = Vec::new();
        while let Some(job) = self.line.front() {
            let taken = take(endpoint, job.max, now_ns);
            if taken.is_empty() {
                break;
            }
            let held = self.held.entry(job.ticket.client).or_default();
            held.extend(taken.iter().map(|message| Receipt::from_bits(message.receipt)));
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
        let Some(held) = self.held.get_mut(&client) else { return 0 };
        let mut released = 0;
        held.retain(|receipt| {
            let named = receipts.contains(&receipt.to_bits());
            if named && endpoint.release(*receipt).is_ok() {
                released += 1;
            }
            !named
        });
        released
    }

    /// The client has left: what it holds goes back, what it waits for is dropped.
    pub(super) fn forget(&mut self, endpoint: &mut NodeEndpoint, client: u64) {
        self.line.retain(|job| job.ticket.client != client);
        for receipt in self.held.remove(&client).into_iter().flatten().rev() {
            let restored = endpoint.restore(receipt);
            debug_assert!(restored.is_ok(), "a held receipt is out");
        }
    }

    /// When the next one in line gives up.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.line.iter().map(|job| job.deadline_ns).min()
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
            sequence: message.sequence,
            receipt: message.receipt.to_bits(),
            payload: Payload(message.payload.to_vec()),
        });
    }
    taken
}

//! Broadcasts that clients wait for, in the order in which they asked.
//!
//! A full window is waited for until the client's deadline, but a broadcast is tried at least
//! once; the reply says how far it came and why no further. What it says was broadcast stands in
//! the memory of the supervisor, so that the next life of the component goes on with it.

use std::collections::VecDeque;

use weft_core::ids::Peer;
use weft_core::neb::BroadcastError;

use super::NodeEndpoint;
use super::control::{BroadcastOutcome, BroadcastStopped, Outcome, Payload, Refused};
use super::link::Ticket;
use super::puts::Answer;

/// Broadcasts in line.
const LINE_MAX: usize = 256;

/// A broadcast as a client asked for it.
#[derive(Debug)]
pub(super) struct CastJob {
    ticket: Ticket,
    tag: u64,
    messages: Vec<Payload>,
    deadline_ns: u64,
    outcome: BroadcastOutcome,
}

impl CastJob {
    pub(super) fn new(ticket: Ticket, tag: u64, messages: Vec<Payload>, deadline_ns: u64) -> Self {
        Self { ticket, tag, messages, deadline_ns, outcome: BroadcastOutcome::default() }
    }
}

/// The line.
#[derive(Debug, Default)]
pub(super) struct Casts {
    line: VecDeque<CastJob>,
}

impl Casts {
    /// Queues a broadcast.
    pub(super) fn begin(&mut self, job: CastJob) -> Option<Answer> {
        if self.line.len() >= LINE_MAX {
            return Some((job.ticket, Outcome::Refused(Refused::Busy)));
        }
        self.line.push_back(job);
        None
    }

    /// The client has left: what it has not broadcast yet is dropped.
    pub(super) fn forget(&mut self, client: u64) {
        self.line.retain(|job| job.ticket.client != client);
    }

    /// Broadcasts as much as the window takes; the answers of those that have ended.
    pub(super) fn step(&mut self, endpoint: &mut NodeEndpoint, now_ns: u64) -> Vec<Answer> {
        let mut answers = Vec::new();
        deliver_own(endpoint);
        while let Some(job) = self.line.front_mut() {
            if !advance(job, endpoint, now_ns) {
                break;
            }
            let ended = self.line.pop_front();
            answers.extend(ended.map(|job| (job.ticket, Outcome::Broadcast(job.outcome))));
        }
        answers
    }

    /// When the first in line gives up.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.line.front().map(|job| job.deadline_ns)
    }
}

/// What this node broadcasts is delivered here by having been handed in.
fn deliver_own(endpoint: &mut NodeEndpoint) {
    let me: Peer = endpoint.me();
    if let Some((broadcast, fabric)) = endpoint.broadcast() {
        while broadcast.take_from(fabric, me).is_some() {}
    }
}

/// Broadcasts what the window takes; whether the job has ended.
fn advance(job: &mut CastJob, endpoint: &mut NodeEndpoint, now_ns: u64) -> bool {
    let me = endpoint.me();
    let Some((broadcast, fabric)) = endpoint.broadcast() else { return true };
    let mut stopped = None;
    for message in job.messages.iter().skip(job.outcome.broadcast) {
        match broadcast.stage(fabric, job.tag, &message.0) {
            Ok(_) => {
                job.outcome.broadcast += 1;
                while broadcast.take_from(fabric, me).is_some() {}
            }
            Err(BroadcastError::WindowFull) => {
                let settled = broadcast.standing(me).map_or(0, |standing| standing.settled);
                stopped = Some(BroadcastStopped::WindowFull { settled });
                break;
            }
            Err(BroadcastError::TooLong) => {
                let limit = usize::from(broadcast.layout().0.message_len());
                stopped = Some(BroadcastStopped::TooLong { limit });
                break;
            }
        }
    }
    broadcast.flush(fabric);
    if matches!(stopped, Some(BroadcastStopped::WindowFull { .. })) && now_ns < job.deadline_ns {
        return false;
    }
    job.outcome.stopped = stopped;
    job.outcome.last = broadcast.standing(me).map_or(0, |standing| standing.seen);
    true
}

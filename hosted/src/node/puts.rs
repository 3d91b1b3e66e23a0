//! Puts that clients wait for: one at a time for each owner, the others in line behind it.
//!
//! A full mailbox is tried again, at first at once, then after pauses that double up to a
//! millisecond, until the client's deadline; the reply says how far the put came and why no
//! further. What is refused is still the client's: nothing is half put but for the messages
//! counted as `unknown`, whose write was under way when the owner was lost.

use std::collections::VecDeque;

use weft_core::endpoint::{Event, PutError};
use weft_core::ids::Peer;
use weft_core::mailbox::StageError;

use super::NodeEndpoint;
use super::control::{Outcome, Payload, PutOutcome, Refused, Stopped};
use super::link::Ticket;

/// Puts in line for one owner.
const LINE_MAX: usize = 256;
const PAUSE_NS_MIN: u64 = 1_000;
const PAUSE_NS_MAX: u64 = 1_000_000;

/// A put as a client asked for it.
#[derive(Debug)]
pub(super) struct PutJob {
    ticket: Ticket,
    messages: Vec<Payload>,
    deadline_ns: u64,
    outcome: PutOutcome,
    retry_at_ns: u64,
    pause_ns: u64,
    under_way: bool,
}

impl PutJob {
    pub(super) fn new(ticket: Ticket, messages: Vec<Payload>, deadline_ns: u64) -> Self {
        let outcome = PutOutcome::default();
        let (retry_at_ns, pause_ns, under_way) = (0, PAUSE_NS_MIN, false);
        Self { ticket, messages, deadline_ns, outcome, retry_at_ns, pause_ns, under_way }
    }

    fn pause(&mut self, now_ns: u64) {
        self.under_way = false;
        self.retry_at_ns = now_ns + self.pause_ns;
        self.pause_ns = (self.pause_ns * 2).min(PAUSE_NS_MAX);
    }
}

/// Something to tell a client.
pub(super) type Answer = (Ticket, Outcome);

/// The lines of all owners.
#[derive(Debug)]
pub(super) struct Puts {
    lines: Vec<VecDeque<PutJob>>,
}

impl Puts {
    pub(super) fn new(nodes: usize) -> Self {
        Self { lines: (0..nodes).map(|_| VecDeque::new()).collect() }
    }

    /// Queues a put to `to`.
    pub(super) fn begin(&mut self, to: u16, job: PutJob) -> Option<Answer> {
        let nodes = u16::try_from(self.lines.len()).unwrap_or(u16::MAX);
        let refused = match self.lines.get_mut(usize::from(to)) {
            None => Refused::OutOfRange { rank: to, nodes },
            Some(line) if line.len() >= LINE_MAX => Refused::Busy,
            Some(line) => {
                line.push_back(job);
                return None;
            }
        };
        Some((job.ticket, Outcome::Refused(refused)))
    }

    /// The client has left: what it has in line is not begun.
    pub(super) fn forget(&mut self, client: u64) {
        for line in &mut self.lines {
            let mut first = true;
            line.retain(|job| {
                // The one at the head may have staged messages; it ends by itself.
                let kept = std::mem::take(&mut first) || job.ticket.client != client;
                kept
            });
        }
    }

    /// Goes on with every line; the answers of the puts that have ended.
    pub(super) fn step(&mut self, endpoint: &mut NodeEndpoint, now_ns: u64) -> Vec<Answer> {
        let mut answers = Vec::new();
        for (to, line) in (0..).map(Peer).zip(&mut self.lines) {
            while let Some(job) = line.front_mut() {
                match advance(job, endpoint, to, now_ns) {
                    Progress::Waiting => break,
                    Progress::Ended => {
                        let ended = line.pop_front();
                        answers.extend(ended.map(|job| (job.ticket, Outcome::Put(job.outcome))));
                    }
                }
            }
        }
        answers
    }

    /// Takes in what became of a flush.
    pub(super) fn handle_event(
        &mut self,
        endpoint: &mut NodeEndpoint,
        event: Event,
        now_ns: u64,
    ) -> Option<Answer> {
        let to = match event {
            Event::Put { to, .. }
            | Event::Full { to }
            | Event::TicketUnknown { to }
            | Event::Lost { peer: to, .. } => to,
            // The peer's supervisor will say what became of it.
            Event::LaneLost { .. } => return None,
        };
        let line = self.lines.get_mut(to.index())?;
        let job = line.front_mut()?;
        match event {
            Event::Put { count, .. } => {
                job.outcome.put += count as usize;
                job.under_way = false;
                job.pause_ns = PAUSE_NS_MIN;
            }
            Event::Full { .. } => {
                job.outcome.full += 1;
                job.pause(now_ns);
            }
            Event::TicketUnknown { .. } | Event::Lost { unknown: 0, .. } => job.pause(now_ns),
            Event::Lost { unknown, .. } => {
                job.outcome.unknown = unknown as usize;
                job.outcome.stopped = Some(Stopped::Unreachable);
                discard(endpoint, to);
                let ended = line.pop_front()?;
                return Some((ended.ticket, Outcome::Put(ended.outcome)));
            }
            Event::LaneLost { .. } => {}
        }
        None
    }

    /// When the next pause is over.
    pub(super) fn next_retry_ns(&self) -> Option<u64> {
        self.lines.iter().filter_map(|line| line.front()).map(|job| job.retry_at_ns).min()
    }
}

enum Progress {
    Waiting,
    Ended,
}

/// Stages and flushes what it can of the put at the head of a line.
fn advance(job: &mut PutJob, endpoint: &mut NodeEndpoint, to: Peer, now_ns: u64) -> Progress {
    if job.under_way || now_ns < job.retry_at_ns {
        return Progress::Waiting;
    }
    let staged = endpoint.outbox(to).map_or(0, |outbox| outbox.staged() as usize);
    if now_ns >= job.deadline_ns && (staged > 0 || job.outcome.put < job.messages.len()) {
        let full = job.outcome.full > 0 && endpoint.admitted().contains(to);
        job.outcome.stopped = Some(if full { Stopped::Full } else { Stopped::Unreachable });
        discard(endpoint, to);
        return Progress::Ended;
    }
    for message in job.messages.iter().skip(job.outcome.put + staged) {
        match endpoint.stage(to, 0, &message.0) {
            Ok(()) => {}
            Err(PutError::Stage(StageError::TooLong)) => {
                // What lies before it is put first.
                if endpoint.outbox(to).is_ok_and(|outbox| outbox.staged() > 0) {
                    break;
                }
                let limit = usize::from(endpoint.message_len());
                job.outcome.stopped = Some(Stopped::TooLong { limit });
                return Progress::Ended;
            }
            Err(_) => break,
        }
    }
    if endpoint.outbox(to).is_ok_and(|outbox| outbox.staged() == 0) {
        return Progress::Ended;
    }
    match endpoint.flush(to) {
        Ok(()) => job.under_way = true,
        // Nobody there, or the queue is full: later.
        Err(_) => job.pause(now_ns),
    }
    Progress::Waiting
}

fn discard(endpoint: &mut NodeEndpoint, to: Peer) {
    if let Ok(outbox) = endpoint.outbox(to) {
        outbox.discard();
    }
}

//! Puts that clients wait for: one at a time for each owner, the others queued behind it.
//!
//! A full mailbox is tried again, at first at once, then after pauses that double up to a
//! millisecond, until the client's deadline, but at least once; the reply gives how many messages
//! were put and why no more. What is refused was not put; only of the messages counted as
//! `unknown`, whose write was under way when the owner was lost, this is not known.

use std::collections::VecDeque;

use weft_core::endpoint::{Event, PutError};
use weft_core::fabric::PostError;
use weft_core::ids::{Peer, PeerSet};
use weft_core::mailbox::StageError;

use super::NodeEndpoint;
use super::control::{Latency, Outcome, Payload, PutOutcome, Refused, Stopped};
use super::link::Ticket;

/// The most puts queued for one owner.
const LINE_MAX: usize = 256;
pub(super) const PAUSE_NS_MIN: u64 = 1_000;
pub(super) const PAUSE_NS_MAX: u64 = 1_000_000;

/// A put that a client requested.
#[derive(Debug)]
pub(super) struct PutJob {
    ticket: Ticket,
    messages: Vec<Payload>,
    began_ns: u64,
    deadline_ns: u64,
    outcome: PutOutcome,
    retry_at_ns: u64,
    pause_ns: u64,
    under_way: bool,
    /// Why the last attempt failed.
    obstacle: Option<Stopped>,
}

impl PutJob {
    pub(super) fn new(
        ticket: Ticket,
        messages: Vec<Payload>,
        began_ns: u64,
        deadline_ns: u64,
    ) -> Self {
        let outcome = PutOutcome::default();
        Self {
            ticket,
            messages,
            began_ns,
            deadline_ns,
            outcome,
            retry_at_ns: 0,
            pause_ns: PAUSE_NS_MIN,
            under_way: false,
            obstacle: None,
        }
    }

    fn pause(&mut self, now_ns: u64, obstacle: Stopped) {
        self.under_way = false;
        self.obstacle = Some(obstacle);
        self.retry_at_ns = now_ns + self.pause_ns;
        self.pause_ns = (self.pause_ns * 2).min(PAUSE_NS_MAX);
    }
}

/// An answer to a client.
pub(super) type Answer = (Ticket, Outcome);

/// The queues of all owners.
#[derive(Debug)]
pub(super) struct Puts {
    lines: Vec<VecDeque<PutJob>>,
    latency: Latency,
}

impl Puts {
    pub(super) fn new(nodes: usize) -> Self {
        Self { lines: (0..nodes).map(|_| VecDeque::new()).collect(), latency: Latency::default() }
    }

    /// How long puts took whose messages are all put.
    pub(super) const fn latency(&self) -> &Latency {
        &self.latency
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

    /// Whether no put is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(VecDeque::is_empty)
    }

    /// The client has left: its queued puts are not begun.
    pub(super) fn forget(&mut self, client: u64) {
        for line in &mut self.lines {
            let mut first = true;
            line.retain_mut(|job| {
                let (head, its) = (std::mem::take(&mut first), job.ticket.client == client);
                if head && its {
                    // It may have staged messages, so it ends by itself, at the next obstacle.
                    job.deadline_ns = 0;
                }
                head || !its
            });
        }
    }

    /// Advances every queue, except to owners whose outbox is `held` by the program; returns the
    /// answers of the puts that have ended.
    pub(super) fn step(
        &mut self,
        endpoint: &mut NodeEndpoint,
        held: PeerSet,
        now_ns: u64,
    ) -> Vec<Answer> {
        let mut answers = Vec::new();
        for (to, line) in (0..).map(Peer).zip(&mut self.lines) {
            if held.contains(to) {
                // The program's messages go first; a client that gives up has put none.
                for job in line.iter_mut() {
                    job.obstacle.get_or_insert(Stopped::Full);
                }
                answers.extend(give_up_all(line, now_ns));
                continue;
            }
            while let Some(job) = line.front_mut() {
                match advance(job, endpoint, to, now_ns) {
                    PutProgress::Waiting => break,
                    PutProgress::Ended => {
                        let ended = line.pop_front();
                        if let Some(job) = ended.as_ref().filter(|it| it.outcome.stopped.is_none())
                        {
                            self.latency.record(job.began_ns, now_ns);
                        }
                        answers.extend(ended.map(|job| (job.ticket, Outcome::Put(job.outcome))));
                    }
                }
            }
            answers.extend(give_up_waiting(line, now_ns));
        }
        answers
    }

    /// Handles the completion of a flush.
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
            // The peer's supervisor will report what became of it.
            Event::Gone { .. } | Event::Fenced { .. } | Event::LaneLost { .. } => return None,
        };
        let line = self.lines.get_mut(to.index())?;
        let job = line.front_mut()?;
        match event {
            Event::Put { count, .. } => {
                job.outcome.put += count as usize;
                job.under_way = false;
                job.obstacle = None;
                job.pause_ns = PAUSE_NS_MIN;
            }
            Event::Full { .. } => {
                job.outcome.full += 1;
                job.pause(now_ns, Stopped::Full);
            }
            Event::TicketUnknown { .. } | Event::Lost { unknown: 0, .. } => {
                job.pause(now_ns, Stopped::Unreachable);
            }
            Event::Lost { unknown, .. } => {
                job.outcome.unknown = unknown as usize;
                job.outcome.stopped = Some(Stopped::Unreachable);
                discard(endpoint, to);
                let ended = line.pop_front()?;
                return Some((ended.ticket, Outcome::Put(ended.outcome)));
            }
            Event::Gone { .. } | Event::Fenced { .. } | Event::LaneLost { .. } => {}
        }
        None
    }

    /// When the next pause is over.
    pub(super) fn next_retry_ns(&self) -> Option<u64> {
        self.lines.iter().filter_map(|line| line.front()).map(|job| job.retry_at_ns).min()
    }
}

enum PutProgress {
    Waiting,
    Ended,
}

/// Ends the puts whose deadline has passed, none of which has staged anything.
fn give_up_all(line: &mut VecDeque<PutJob>, now_ns: u64) -> Vec<Answer> {
    let mut answers = Vec::new();
    line.retain(|job| {
        let waits = now_ns < job.deadline_ns;
        if !waits {
            let outcome = PutOutcome { stopped: job.obstacle, ..job.outcome };
            answers.push((job.ticket, Outcome::Put(outcome)));
        }
        waits
    });
    answers
}

/// Ends the puts behind the head whose deadline has passed, for the reason that stops the head.
fn give_up_waiting(line: &mut VecDeque<PutJob>, now_ns: u64) -> Vec<Answer> {
    let mut answers = Vec::new();
    let Some(obstacle) = line.front().and_then(|head| head.obstacle) else { return answers };
    let mut first = true;
    line.retain(|job| {
        let waits = std::mem::take(&mut first) || now_ns < job.deadline_ns;
        if !waits {
            let outcome = PutOutcome { stopped: Some(obstacle), ..job.outcome };
            answers.push((job.ticket, Outcome::Put(outcome)));
        }
        waits
    });
    answers
}

/// Stages and flushes what it can of the put at the head of a line.
fn advance(job: &mut PutJob, endpoint: &mut NodeEndpoint, to: Peer, now_ns: u64) -> PutProgress {
    if job.under_way || now_ns < job.retry_at_ns {
        return PutProgress::Waiting;
    }
    // Whatever its deadline, a put is tried once, and goes on while nothing obstructs it.
    if job.obstacle.is_some() && now_ns >= job.deadline_ns {
        job.outcome.stopped = job.obstacle;
        discard(endpoint, to);
        return PutProgress::Ended;
    }
    let staged = endpoint.outbox(to).map_or(0, |outbox| outbox.staged() as usize);
    for message in job.messages.iter().skip(job.outcome.put + staged) {
        match endpoint.stage(to, 0, &message.0) {
            Ok(()) => {}
            Err(PutError::Stage(StageError::TooLong { limit })) => {
                // Messages staged earlier are put first.
                if endpoint.outbox(to).is_ok_and(|outbox| outbox.staged() > 0) {
                    break;
                }
                job.outcome.stopped = Some(Stopped::TooLong { limit: usize::from(limit) });
                return PutProgress::Ended;
            }
            Err(_) => break,
        }
    }
    if endpoint.outbox(to).is_ok_and(|outbox| outbox.staged() == 0) {
        return PutProgress::Ended;
    }
    match endpoint.flush(to) {
        Ok(()) => job.under_way = true,
        Err(PutError::Post(PostError::Gone)) => job.pause(now_ns, Stopped::Unreachable),
        // The own send queue is full.
        Err(_) => job.pause(now_ns, Stopped::Full),
    }
    PutProgress::Waiting
}

fn discard(endpoint: &mut NodeEndpoint, to: Peer) {
    if let Ok(outbox) = endpoint.outbox(to) {
        outbox.discard();
    }
}

//! Broadcasts that clients wait for, in the order of their requests.
//!
//! A broadcast waits for a full window until the client's deadline, but is tried at least once; the
//! reply gives how many messages were broadcast and why no more. What counts as broadcast is in the
//! supervisor's memory, so the next incarnation of the component goes on with it.
//!
//! An abort marker is queued like a broadcast and has no deadline: see
//! [`super::abort_markers`].
//! The last slot of the window is reserved for it, so that receivers that wait for the rest of a
//! transfer learn at once that it does not come, however full the window is.
//!
//! Once all other members have left the broadcasts, a broadcast is refused: it has no receiver.

use std::collections::VecDeque;

use weft_core::ids::{Peer, PeerSet};
use weft_core::neb::{BroadcastError, Standing};

use super::NodeEndpoint;
use super::abort_markers::AbortMarker;
use super::control::{BroadcastOutcome, BroadcastStopped, Latency, Outcome, Payload, Refused};
use super::faults::LIE_TAG;
use super::link::Ticket;
use super::puts::Answer;

/// Slots of the window that no broadcast of a client takes.
const KEPT_FREE: u64 = 1;
/// The most broadcasts in the queue.
const LINE_MAX: usize = 256;
/// How long a broadcast is followed.
const FOLLOWED_NS_MAX: u64 = 60_000_000_000;

/// A broadcast that a client requested.
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

    fn answer(&mut self) -> Answer {
        (self.ticket, Outcome::Broadcast(std::mem::take(&mut self.outcome)))
    }

    /// Its deadline has passed while the window is full.
    fn give_up(&mut self, endpoint: &mut NodeEndpoint) {
        let me = endpoint.me();
        let standing = endpoint.broadcast().and_then(|(broadcast, _)| broadcast.standing(me));
        let Standing { settled, seen, .. } = standing.unwrap_or_default();
        self.outcome.stopped = Some(BroadcastStopped::WindowFull { settled });
        self.outcome.last = seen;
    }
}

/// An element of the queue.
#[derive(Debug)]
enum InLine {
    Job(CastJob),
    AbortMarker { number: u64, marker: AbortMarker },
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Casts {
    line: VecDeque<InLine>,
    /// Abort markers that were broadcast or are void.
    executed: Vec<u64>,
    followed: Followed,
}

impl Casts {
    /// The broadcast whose latency is measured.
    pub(super) const fn followed(&mut self) -> &mut Followed {
        &mut self.followed
    }

    /// Whether nothing waits for room.
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Queues a broadcast.
    pub(super) fn begin(&mut self, job: CastJob) -> Option<Answer> {
        if self.line.len() >= LINE_MAX {
            return Some((job.ticket, Outcome::Refused(Refused::Busy)));
        }
        self.line.push_back(InLine::Job(job));
        None
    }

    /// Queues an abort marker; the supervisor bounds how many there are.
    pub(super) fn execute(&mut self, number: u64, marker: AbortMarker) {
        self.line.push_back(InLine::AbortMarker { number, marker });
    }

    /// Counts an abort marker as done: it is void.
    pub(super) fn void(&mut self, number: u64) {
        self.executed.push(number);
    }

    /// Takes the abort markers that are done since the last call.
    pub(super) fn take_executed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.executed)
    }

    /// The client has left: what it has not broadcast yet is dropped.
    pub(super) fn forget(&mut self, client: u64) {
        self.line.retain(|it| !matches!(it, InLine::Job(job) if job.ticket.client == client));
    }

    /// Broadcasts as much as the window takes; returns the answers of those that have ended.
    pub(super) fn step(&mut self, endpoint: &mut NodeEndpoint, now_ns: u64) -> Vec<Answer> {
        let mut answers = Vec::new();
        while let Some(first) = self.line.front_mut() {
            let is_over = match first {
                InLine::Job(job) => advance(job, endpoint, &mut self.followed, now_ns),
                InLine::AbortMarker { marker, .. } => execute(marker, endpoint),
            };
            if !is_over {
                break;
            }
            match self.line.pop_front() {
                Some(InLine::Job(mut job)) => answers.push(job.answer()),
                Some(InLine::AbortMarker { number, .. }) => self.executed.push(number),
                None => {}
            }
        }
        // A broadcast behind an abort marker that waits for room waits for the same room.
        self.line.retain_mut(|it| match it {
            InLine::Job(job) if now_ns >= job.deadline_ns => {
                job.give_up(endpoint);
                answers.push(job.answer());
                false
            }
            InLine::Job(_) | InLine::AbortMarker { .. } => true,
        });
        answers
    }

    /// The earliest deadline in the queue.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        let deadline = |it: &InLine| match it {
            InLine::Job(job) => Some(job.deadline_ns),
            InLine::AbortMarker { .. } => None,
        };
        self.line.iter().filter_map(deadline).min()
    }
}

/// The broadcast of this node whose latency is measured, one at a time: to look for it in every
/// pass costs nothing while there is none.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// Its number, and when it was staged.
    open: Option<(u64, u64)>,
    latency: Latency,
}

impl Followed {
    /// How long those took that every node has received.
    pub(super) const fn latency(&self) -> &Latency {
        &self.latency
    }

    /// A message was staged under this number.
    #[inline]
    pub(super) const fn note_staged(&mut self, seq: u64, now_ns: u64) {
        if self.open.is_none() {
            self.open = Some((seq, now_ns));
        }
    }

    /// Looks whether every node has received it.
    #[inline]
    pub(super) fn look(&mut self, endpoint: &mut NodeEndpoint, now_ns: u64) {
        let Some((seq, staged_ns)) = self.open else { return };
        let me = endpoint.me();
        let standing = endpoint.broadcast().and_then(|(broadcast, _)| broadcast.standing(me));
        if standing.is_some_and(|standing| standing.settled >= seq) {
            self.latency.record(staged_ns, now_ns);
            self.open = None;
        } else if now_ns.saturating_sub(staged_ns) > FOLLOWED_NS_MAX {
            // A client that receives nothing, or a conflict, must not end the measurement for good.
            self.open = None;
        }
    }
}

/// Delivers this node's own broadcasts here: a broadcast is delivered at its origin once it is
/// staged.
pub(super) fn deliver_own(endpoint: &mut NodeEndpoint) {
    let me: Peer = endpoint.me();
    if let Some((broadcast, fabric)) = endpoint.broadcast() {
        while broadcast.take_from(fabric, me).is_some() {}
    }
}

/// Whether the window has room for a client's message.
pub(super) fn has_room(standing: Standing, slots: u32) -> bool {
    standing.seen.saturating_sub(standing.settled) + KEPT_FREE < u64::from(slots)
}

/// Broadcasts what the window takes; whether the job has ended.
fn advance(
    job: &mut CastJob,
    endpoint: &mut NodeEndpoint,
    followed: &mut Followed,
    now_ns: u64,
) -> bool {
    let me = endpoint.me();
    let Some((broadcast, fabric)) = endpoint.broadcast() else { return true };
    if !job.messages.is_empty() && broadcast.live() == PeerSet::only(me) {
        job.outcome.stopped = Some(BroadcastStopped::Alone);
        job.outcome.last = broadcast.standing(me).map_or(0, |standing| standing.seen);
        return true;
    }
    let mut stopped = None;
    for message in job.messages.iter().skip(job.outcome.broadcast) {
        let staged = match broadcast.standing(me) {
            Some(standing) if !has_room(standing, broadcast.layout().0.slots()) => {
                Err(BroadcastError::WindowFull)
            }
            Some(_) | None => broadcast.stage(fabric, job.tag, &message.0),
        };
        match staged {
            Ok(seq) => {
                followed.note_staged(seq, now_ns);
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

/// Broadcasts an abort marker once there is room, unless it is void; whether it is done.
fn execute(marker: &AbortMarker, endpoint: &mut NodeEndpoint) -> bool {
    let me = endpoint.me();
    let Some((broadcast, fabric)) = endpoint.broadcast() else { return true };
    let Standing { seen, .. } = broadcast.standing(me).unwrap_or_default();
    // An injected equivocation in the middle of a transfer is not part of it.
    let is_part = |tag| tag == marker.tag || tag != LIE_TAG;
    let is_due = (1..=seen)
        .rev()
        .map_while(|seq| {
            let message = broadcast.delivered(fabric, me, seq)?;
            Some((message.tag, message.payload != marker.message.0))
        })
        .find(|(tag, _)| is_part(*tag))
        .is_some_and(|(tag, is_rest)| tag == marker.tag && is_rest);
    if !is_due {
        return true;
    }
    match broadcast.stage(fabric, marker.tag, &marker.message.0) {
        Ok(_) => {
            while broadcast.take_from(fabric, me).is_some() {}
            broadcast.flush(fabric);
            true
        }
        Err(BroadcastError::WindowFull) => false,
        Err(BroadcastError::TooLong) => true,
    }
}

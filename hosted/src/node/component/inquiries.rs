//! Status requests of clients, which wait until the node has read the members' progress.
//!
//! How far all members have delivered is known from their progress, which is otherwise read only
//! when a window runs full. A status request starts that read, and is answered when it is done or,
//! where a read takes long, after a short deadline with what is known.

use super::Component;
use crate::node::control::Outcome;
use crate::node::link::Ticket;
use crate::node::puts::Answer;

/// The most inquiries in the queue; one more is answered at once.
const LINE_MAX: usize = 256;
/// How long an inquiry waits for reads, in nanoseconds.
const READ_NS_MAX: u64 = 20_000_000;

/// The inquiries in the queue.
#[derive(Debug, Default)]
pub(super) struct Inquiries {
    line: Vec<Ticket>,
    /// When they are answered, whatever is read by then.
    deadline_ns: Option<u64>,
}

impl Inquiries {
    /// Whether none waits.
    pub(super) const fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// The deadline of those in the queue.
    pub(super) const fn next_deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }
}

impl Component {
    /// Starts the reads for a client that requests the status.
    pub(super) fn inquire(&mut self, ticket: Ticket, now_ns: u64) -> Option<Answer> {
        if self.inquiries.line.len() >= LINE_MAX {
            return Some((ticket, Outcome::Status(Box::new(self.status()))));
        }
        if let Some((broadcast, _)) = self.endpoint.broadcast() {
            broadcast.ask_progress();
        }
        self.inquiries.line.push(ticket);
        self.inquiries.deadline_ns.get_or_insert(now_ns.saturating_add(READ_NS_MAX));
        None
    }

    /// Answers those in the queue once everything was read, or their deadline has passed.
    pub(super) fn answer_inquiries(&mut self, now_ns: u64) -> Vec<Answer> {
        let Some(deadline_ns) = self.inquiries.deadline_ns else { return Vec::new() };
        let broadcast = self.endpoint.broadcast();
        let reads = broadcast.is_some_and(|(broadcast, _)| broadcast.asks_progress());
        if reads && now_ns < deadline_ns {
            return Vec::new();
        }
        self.inquiries.deadline_ns = None;
        let status = self.status();
        let answer = |ticket| (ticket, Outcome::Status(Box::new(status.clone())));
        std::mem::take(&mut self.inquiries.line).into_iter().map(answer).collect()
    }
}

//! Clients that ask how the node stands, and wait until it has looked.
//!
//! How far everybody has delivered is known from the others' progress, which is read only when a
//! window runs full. Whoever asks for the status has it read, and is answered when that is done or,
//! where a read takes its time, a moment later with what is known.

use super::Component;
use crate::node::control::Outcome;
use crate::node::link::Ticket;
use crate::node::puts::Answer;

/// Inquiries in line; one more is answered at once.
const LINE_MAX: usize = 256;
/// How long an inquiry waits for reads.
const READ_NS_MAX: u64 = 20_000_000;

/// The inquiries in line.
#[derive(Debug, Default)]
pub(super) struct Inquiries {
    line: Vec<Ticket>,
    /// When those in line are answered, whatever is read by then.
    deadline_ns: Option<u64>,
}

impl Inquiries {
    /// When those in line have waited long enough.
    pub(super) const fn next_deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }
}

impl Component {
    /// Begins to look, for a client that asks for the status.
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

    /// Answers those in line once everything was read, or they have waited long enough.
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

//! The send queue: one client at a time may broadcast, so that no two files of a node are
//! interleaved.
//!
//! ```text
//!   ask ──▶ has its turn ── GoOn: keeps it until it leaves ──▶ its abort marker, then the next
//!     │        └─ Rest: gives it up with the answer ──────────▶ the next
//!     └──▶ in line ── its deadline ──▶ refused
//! ```
//!
//! A decider. It is part of the supervisor, so that a file continues where it was when a component
//! dies in the middle of it, and nothing of another client comes in between.

use std::collections::VecDeque;

use crate::node::abort_markers::AbortMarker;
use crate::node::control::{Payload, Then, Want};
use crate::node::link::Ticket;

/// The most requests in line.
const LINE_MAX: usize = 256;

/// A broadcast that a client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cast {
    pub(super) tag: u64,
    pub(super) messages: Vec<Payload>,
    pub(super) then: Then,
    pub(super) deadline_ns: u64,
}

impl Cast {
    /// The request to the component, with the time that is left.
    pub(super) fn want(self, now_ns: u64) -> Want {
        let Self { tag, messages, then, deadline_ns } = self;
        let timeout_ms = deadline_ns.saturating_sub(now_ns).div_ceil(1_000_000);
        Want::Broadcast { tag, messages, timeout_ms, then }
    }
}

/// The outcome of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The component must serve it now.
    Now(Cast),
    /// It is in line.
    Later,
    /// The line is full.
    Full,
}

/// The client whose turn it is.
#[derive(Debug)]
struct Holder {
    client: u64,
    /// The request whose answer ends its turn; none while it intends to go on.
    last: Option<Ticket>,
    /// Its abort marker, broadcast if it leaves before that.
    marker: Option<AbortMarker>,
}

impl Holder {
    fn new(ticket: Ticket, cast: &Cast) -> Self {
        let mut holder = Self { client: ticket.client, last: None, marker: None };
        holder.note(ticket, cast);
        holder
    }

    /// Updates the turn from its next request. An abort marker stands until the answer to its last
    /// one.
    fn note(&mut self, ticket: Ticket, cast: &Cast) {
        match &cast.then {
            Then::GoOn { marker } => {
                self.marker = Some(AbortMarker { tag: cast.tag, message: marker.clone() });
                self.last = None;
            }
            Then::Rest => self.last = Some(ticket),
        }
    }
}

/// The client that broadcasts, and those that wait.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    holder: Option<Holder>,
    line: VecDeque<(Ticket, Cast)>,
}

impl SendQueue {
    /// Handles a client's request to broadcast.
    pub(super) fn ask(&mut self, ticket: Ticket, cast: Cast) -> Asked {
        if let Some(holder) = &mut self.holder
            && holder.client == ticket.client
        {
            holder.note(ticket, &cast);
            return Asked::Now(cast);
        }
        if self.line.len() >= LINE_MAX {
            return Asked::Full;
        }
        self.line.push_back((ticket, cast));
        Asked::Later
    }

    /// The next request to serve, if there is one; `is_waiting` returns whether a request was not
    /// answered yet.
    pub(super) fn next(&mut self, is_waiting: impl Fn(Ticket) -> bool) -> Option<(Ticket, Cast)> {
        let is_over = |holder: &mut Holder| holder.last.is_some_and(|last| !is_waiting(last));
        self.holder.take_if(is_over);
        self.line.retain(|(ticket, _)| is_waiting(*ticket));
        if self.holder.is_some() {
            return None;
        }
        let (ticket, cast) = self.line.pop_front()?;
        self.holder = Some(Holder::new(ticket, &cast));
        Some((ticket, cast))
    }

    /// Removes and returns the requests past their deadline.
    pub(super) fn take_overdue(&mut self, now_ns: u64) -> Vec<Ticket> {
        let mut overdue = Vec::new();
        self.line.retain(|(ticket, cast)| {
            let waits = now_ns < cast.deadline_ns;
            if !waits {
                overdue.push(*ticket);
            }
            waits
        });
        overdue
    }

    /// Removes a client that has left; returns its abort marker, if it was in the middle of a
    /// broadcast.
    pub(super) fn forget(&mut self, client: u64) -> Option<AbortMarker> {
        self.line.retain(|(ticket, _)| ticket.client != client);
        let holder = self.holder.take_if(|holder| holder.client == client)?;
        holder.marker
    }

    /// The earliest deadline of those in line.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.line.iter().map(|(_, cast)| cast.deadline_ns).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ticket(client: u64, id: u64) -> Ticket {
        Ticket { client, id }
    }

    /// A request in the middle of a file.
    fn go_on() -> Cast {
        cast(Then::GoOn { marker: Payload(vec![9]) })
    }

    fn cast(then: Then) -> Cast {
        Cast { tag: 1, messages: Vec::new(), then, deadline_ns: 100 }
    }

    /// Client 1 is in the middle of a file; the request 2.1 waits.
    fn taken(cast: Cast) -> SendQueue {
        let mut send_queue = SendQueue::default();
        assert_eq!(send_queue.ask(ticket(1, 1), cast), Asked::Later);
        assert_eq!(send_queue.next(|_| true).map(|(ticket, _)| ticket), Some(ticket(1, 1)));
        assert_eq!(send_queue.ask(ticket(2, 1), self::cast(Then::Rest)), Asked::Later);
        assert_eq!(send_queue.next(|_| true), None);
        send_queue
    }

    #[test]
    fn a_sender_that_goes_on_keeps_its_turn_until_it_leaves_with_an_abort_marker() {
        let mut send_queue = taken(go_on());
        let is_waiting = |ticket: Ticket| ticket.client == 2;
        assert_eq!(send_queue.next(is_waiting), None, "its request is answered, and it goes on");
        assert_eq!(send_queue.ask(ticket(1, 2), go_on()), Asked::Now(go_on()));
        assert_eq!(send_queue.forget(1), Some(AbortMarker { tag: 1, message: Payload(vec![9]) }));
        assert_eq!(send_queue.next(is_waiting), Some((ticket(2, 1), cast(Then::Rest))));
    }

    #[test]
    fn a_sender_that_rests_gives_its_turn_up_with_the_answer() {
        let mut send_queue = taken(cast(Then::Rest));
        assert_eq!(send_queue.next(|_| true), None);
        let is_waiting = |ticket: Ticket| ticket.client == 2;
        assert_eq!(send_queue.next(is_waiting).map(|(ticket, _)| ticket), Some(ticket(2, 1)));
        assert_eq!(send_queue.forget(1), None, "it was done");
    }

    #[test]
    fn a_marker_stands_until_the_last_answer() {
        let mut send_queue = taken(go_on());
        assert_eq!(send_queue.ask(ticket(1, 2), cast(Then::Rest)), Asked::Now(cast(Then::Rest)));
        assert!(send_queue.forget(1).is_some(), "it is not known what became of its last request");
        assert_eq!(send_queue.forget(2), None, "it had not begun");
    }

    #[test]
    fn who_waits_too_long_is_refused_and_who_was_answered_otherwise_is_forgotten() {
        let mut send_queue = taken(go_on());
        assert_eq!(
            (send_queue.take_overdue(99), send_queue.next_deadline_ns()),
            (vec![], Some(100))
        );
        assert_eq!(send_queue.take_overdue(100), [ticket(2, 1)]);
        assert_eq!(send_queue.next_deadline_ns(), None);
        assert_eq!(send_queue.ask(ticket(3, 1), cast(Then::Rest)), Asked::Later);
        assert_eq!(send_queue.next(|_| false), None);
        assert_eq!(send_queue.next_deadline_ns(), None);
    }

    #[test]
    fn the_line_has_an_end() {
        let mut send_queue = taken(go_on());
        for id in 2..=LINE_MAX as u64 {
            assert_eq!(send_queue.ask(ticket(2, id), cast(Then::Rest)), Asked::Later);
        }
        assert_eq!(send_queue.ask(ticket(3, 1), cast(Then::Rest)), Asked::Full);
        assert_eq!(send_queue.forget(2), None);
        assert_eq!(send_queue.ask(ticket(3, 1), cast(Then::Rest)), Asked::Later);
    }

    #[test]
    fn the_component_is_told_what_is_left_of_the_time() {
        let Want::Broadcast { timeout_ms, .. } = cast(Then::Rest).want(200) else { panic!() };
        assert_eq!(timeout_ms, 0);
        let cast = Cast { deadline_ns: 5_000_001, ..cast(Then::Rest) };
        let Want::Broadcast { timeout_ms, .. } = cast.want(1) else { panic!() };
        assert_eq!(timeout_ms, 5);
    }
}

//! Several requests under way on one connection, and a descriptor for an event loop.
//!
//! ```text
//!   put, take, release ──▶ [ REQUESTS_OPEN_MAX ] ──▶ node
//!       epoll, asyncio ◀── readable ── answers, each under the number of its request
//! ```
//!
//! Nothing here waits but [`Pipeline::wait_answer`]. Puts to one member are put in the order of the
//! calls; answers come in the order in which requests end.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::PollFlags;

use super::{Client, ClientError, SLACK, millis};
use crate::clock::Deadline;
use crate::node::control::{Outcome, Payload, REQUESTS_OPEN_MAX, Reply, Request, Want};
use crate::packet::{Packet, PacketError};
use crate::readiness::{Readiness, await_events};

/// A client with up to [`REQUESTS_OPEN_MAX`] requests under way.
///
/// Its descriptor ([`AsFd`]) is readable while an answer waits, and once the connection has ended:
/// then call [`Self::poll_answer`] until it has none. What is under way when it is dropped may or
/// may not be done; taken messages that were not released go back.
#[derive(Debug)]
pub struct Pipeline {
    client: Client,
    /// The requests without an answer, oldest first, and until when each has one.
    open: VecDeque<(u64, Deadline)>,
}

impl Pipeline {
    /// Speaks to the client's node.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self { client, open: VecDeque::new() }
    }

    /// How many requests are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.open.len()
    }

    /// Begins to put messages into the mailbox of `to`, in order; the number under which
    /// [`Outcome::Put`] comes.
    ///
    /// # Errors
    /// [`ClientError::Full`], or [`ClientError::Unreachable`], as when one request cannot carry
    /// them; nothing was begun.
    pub fn put(
        &mut self,
        to: u16,
        messages: &[&[u8]],
        timeout: Duration,
    ) -> Result<u64, ClientError> {
        let messages = messages.iter().map(|message| Payload(message.to_vec())).collect();
        self.begin(Want::Put { to, messages, timeout_ms: millis(timeout) }, timeout)
    }

    /// Begins to take up to `max` messages; the number under which [`Outcome::Taken`] comes, as
    /// soon as there is one, or empty after `timeout`.
    ///
    /// # Errors
    /// [`ClientError::Full`], [`ClientError::Unreachable`]; nothing was begun.
    pub fn take(&mut self, max: usize, timeout: Duration) -> Result<u64, ClientError> {
        self.begin(Want::Take { max, timeout_ms: millis(timeout) }, timeout)
    }

    /// Begins to release what was taken; the number under which [`Outcome::Released`] comes.
    ///
    /// # Errors
    /// [`ClientError::Full`], [`ClientError::Unreachable`]; nothing was begun.
    pub fn release(&mut self, receipts: Vec<u64>) -> Result<u64, ClientError> {
        self.begin(Want::Release { receipts }, Duration::ZERO)
    }

    fn begin(&mut self, what: Want, timeout: Duration) -> Result<u64, ClientError> {
        let rank = self.client.rank;
        let full = ClientError::Full { rank, under_way: self.open.len() };
        // The node reads no more of one client at a time: the rest would only age in its socket.
        if self.open.len() >= REQUESTS_OPEN_MAX {
            return Err(full);
        }
        let id = self.client.requests + 1;
        let sent = Packet::encode(&Request { id, what })
            .and_then(|packet| self.client.socket.try_send(&packet, &[]));
        match sent {
            // It may have sent the reason before it closed: the next answer says so.
            Ok(true) | Err(PacketError::Closed) => {}
            Ok(false) => return Err(full),
            Err(source) => return Err(ClientError::Unreachable { rank, source }),
        }
        self.client.requests = id;
        // It may be read only when the one before it has ended.
        let before = self.open.back().map_or(Duration::ZERO, |(_, by)| by.remaining());
        let within = before.saturating_add(timeout).saturating_add(SLACK);
        self.open.push_back((id, Deadline::after(within)));
        Ok(id)
    }

    /// The next answer that is there, with the number of its request; none if there is none yet. A
    /// node that refuses one request says so here ([`Outcome::Refused`]).
    ///
    /// # Errors
    /// [`ClientError`]: the node ended, or left a request unanswered for longer than its timeout;
    /// what is under way may or may not be done.
    pub fn poll_answer(&mut self) -> Result<Option<(u64, Outcome)>, ClientError> {
        let rank = self.client.rank;
        loop {
            let reply = match self.client.socket.try_recv::<Reply>() {
                Ok(Some((reply, _))) => reply,
                Ok(None) if self.open.iter().any(|(_, by)| by.has_passed()) => {
                    let source = PacketError::TimedOut { call: "recv", timeout: SLACK };
                    return Err(ClientError::Unreachable { rank, source });
                }
                Ok(None) => return Ok(None),
                Err(source) => return Err(ClientError::Unreachable { rank, source }),
            };
            match reply {
                Reply { id: 0, what: Outcome::Refused(reason) } => {
                    return Err(ClientError::Refused { rank, reason });
                }
                Reply { id, what } => {
                    let under_way = self.open.len();
                    self.open.retain(|(open, _)| *open != id);
                    // Any other answers what the client gave up before.
                    if self.open.len() < under_way {
                        return Ok(Some((id, what)));
                    }
                }
            }
        }
    }

    /// As [`Self::poll_answer`], waiting for one until `timeout`; at once if none is under way.
    ///
    /// # Errors
    /// As [`Self::poll_answer`].
    pub fn wait_answer(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<(u64, Outcome)>, ClientError> {
        let deadline = Deadline::after(timeout);
        loop {
            let answer = self.poll_answer()?;
            let first = self.open.iter().map(|(_, by)| *by).min();
            let (None, Some(by)) = (&answer, first) else { return Ok(answer) };
            let ready = await_events(self.as_fd(), PollFlags::IN, deadline.min(by));
            match ready {
                Ok(Readiness::TimedOut) if deadline.has_passed() => return Ok(None),
                // The node is late, or it has answered: the next look says which.
                Ok(Readiness::TimedOut | Readiness::Ready) => {}
                Err(errno) => {
                    let source = PacketError::Os { call: "poll", errno };
                    return Err(ClientError::Unreachable { rank: self.client.rank, source });
                }
            }
        }
    }
}

impl AsFd for Pipeline {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.client.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::control::{PutOutcome, Refused};
    use crate::packet::Socket;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn pipeline() -> (Pipeline, Socket) {
        let (socket, node) = Socket::pair().unwrap();
        (Pipeline::new(Client { rank: 3, socket, requests: 0 }), node)
    }

    fn is_readable(pipeline: &Pipeline) -> bool {
        let now = Deadline::after(Duration::ZERO);
        await_events(pipeline.as_fd(), PollFlags::IN, now).unwrap() == Readiness::Ready
    }

    #[test]
    fn a_pipeline_is_bounded_and_refuses_by_name() {
        let (mut pipeline, node) = pipeline();
        for _ in 0..REQUESTS_OPEN_MAX {
            pipeline.take(1, PATIENCE).unwrap();
        }
        let full = pipeline.put(1, &[b"one more"], PATIENCE);
        assert!(
            matches!(full, Err(ClientError::Full { rank: 3, under_way: REQUESTS_OPEN_MAX })),
            "{full:?}"
        );
        let (Request { id, .. }, _) = node.recv(PATIENCE).unwrap();
        node.send(&Reply { id, what: Outcome::Taken(Vec::new()) }, &[], PATIENCE).unwrap();
        assert_eq!(pipeline.wait_answer(PATIENCE).unwrap(), Some((id, Outcome::Taken(Vec::new()))));
        pipeline.put(1, &[b"one more"], PATIENCE).expect("there is room again");
    }

    #[test]
    fn a_pipeline_never_waits_for_a_node_that_does_not_read() {
        let (mut pipeline, _node) = pipeline();
        let (long, mut accepted) = (vec![0; 60_000], 0);
        let refused = loop {
            match pipeline.put(1, &[&long], PATIENCE) {
                Ok(_) => accepted += 1,
                Err(error) => break error,
            }
        };
        let full = matches!(refused, ClientError::Full { under_way, .. } if under_way == accepted);
        assert!(full && pipeline.under_way() == accepted, "{refused}");
        let long = vec![0; Packet::MAX_LEN];
        let (mut empty, _node) = self::pipeline();
        assert!(matches!(
            empty.put(1, &[&long], PATIENCE),
            Err(ClientError::Unreachable { source: PacketError::TooLong { .. }, .. })
        ));
        assert_eq!(empty.under_way(), 0, "nothing was begun");
    }

    #[test]
    fn answers_come_as_requests_end_and_make_the_descriptor_readable() {
        let (mut pipeline, node) = pipeline();
        let take = pipeline.take(1, PATIENCE).unwrap();
        let put = pipeline.put(1, &[b"a"], PATIENCE).unwrap();
        assert!(!is_readable(&pipeline) && pipeline.poll_answer().unwrap().is_none());
        let what = Outcome::Put(PutOutcome { put: 1, ..PutOutcome::default() });
        node.send(&Reply { id: put, what: what.clone() }, &[], PATIENCE).unwrap();
        assert!(is_readable(&pipeline));
        assert_eq!(pipeline.poll_answer().unwrap(), Some((put, what)));
        assert!(!is_readable(&pipeline));
        let refused = Outcome::Refused(Refused::ComponentLost);
        node.send(&Reply { id: take, what: refused.clone() }, &[], PATIENCE).unwrap();
        assert_eq!(pipeline.wait_answer(PATIENCE).unwrap(), Some((take, refused)));
        assert_eq!(pipeline.wait_answer(PATIENCE).unwrap(), None, "none is under way");
        drop(node);
        assert!(is_readable(&pipeline) && pipeline.poll_answer().is_err());
    }
}

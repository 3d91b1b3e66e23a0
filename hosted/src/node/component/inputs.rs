//! The component's end of the link: inputs and replies.
//!
//! A thread reads the link into two queues; the loop handles control first, then one request a
//! pass. What the loop sends never waits: it is kept until there is room.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{SyncSender, TryRecvError};
use std::time::Duration;

use super::{Component, Flow};
use crate::node::NodeError;
use crate::node::control::Outcome;
use crate::node::link::{Class, Classed, FromComponent, SendError, Ticket, ToComponent};
use crate::packet::{PacketError, Socket};
use crate::shm::Bell;

/// Control messages that are handled in one pass.
const CONTROL_A_PASS: usize = 16;

/// A message and the descriptors that came with it.
pub(super) type Heard = (ToComponent, Vec<OwnedFd>);

impl Component {
    /// Handles what came over the link: control first, then one request.
    pub(super) fn take_inputs(&mut self, now_ns: u64) -> Result<Flow, NodeError> {
        for handled in 0..CONTROL_A_PASS {
            match self.control.try_recv() {
                Ok(heard) => {
                    if self.take_input(heard, now_ns)? == Flow::End {
                        return Ok(Flow::End);
                    }
                }
                Err(TryRecvError::Disconnected) => return Ok(Flow::End),
                // No further request is begun while replies wait for room.
                Err(TryRecvError::Empty) if self.outgoing.has_requests() => {
                    return Ok(if handled > 0 { Flow::Progress } else { Flow::Idle });
                }
                Err(TryRecvError::Empty) => match self.requests.try_recv() {
                    Ok(heard) => return self.take_input(heard, now_ns),
                    Err(_) if handled > 0 => return Ok(Flow::Progress),
                    Err(_) => return Ok(Flow::Idle),
                },
            }
        }
        Ok(Flow::Progress)
    }

    fn take_input(&mut self, (word, fds): Heard, now_ns: u64) -> Result<Flow, NodeError> {
        if self.handle(word, fds, now_ns)? == Flow::End {
            return Ok(Flow::End);
        }
        // A fence ends the put that was under way.
        self.drain_events(now_ns)?;
        Ok(Flow::Progress)
    }

    pub(super) fn answer(&mut self, ticket: Ticket, what: Outcome) -> Result<(), NodeError> {
        if let Some(places) = self.deliveries.take_places() {
            self.tell(&FromComponent::Receiving(places))?;
        }
        self.tell(&FromComponent::Reply { ticket, what })
    }

    /// Sends a message, now or when there is room.
    pub(super) fn tell(&mut self, word: &FromComponent) -> Result<(), NodeError> {
        self.events.note(word);
        self.outgoing.send(&self.socket, word, &[]).map_err(|error| match error {
            SendError::Packet(error) => error.into(),
            SendError::Full | SendError::Descriptors(_) => {
                NodeError::Link("the supervisor does not read the link")
            }
        })
    }
}

/// Queues what comes over the link until it closes. Control messages wait only when the loop has
/// left so many unread that it counts as hung; requests never wait.
pub(super) fn read_link(
    socket: &Socket,
    control: &SyncSender<Heard>,
    requests: &SyncSender<Heard>,
    bell: &Bell,
) {
    loop {
        match socket.recv::<ToComponent>(Duration::MAX) {
            Ok(heard) => {
                let queue = match heard.0.class() {
                    Class::Control => control,
                    Class::Request => requests,
                };
                if queue.send(heard).is_err() {
                    return;
                }
                // If the bell cannot be rung, the loop still wakes within its longest sleep.
                let _ = bell.ring_if_armed();
            }
            Err(PacketError::TimedOut { .. }) => {}
            Err(error) => {
                tracing::debug!(%error, "the link is closed");
                return;
            }
        }
    }
}

//! The component's end of the link: inputs and replies.
//!
//! ```text
//!   link ─────────────────┬▶ thread ─▶ [ control ] [ requests ] ─▶ loop
//!   processes of the peers ┘
//! ```
//!
//! The loop handles control first, then one request a pass. What the loop sends never waits: it is
//! kept until there is room. The thread also waits for the ends of the peers' processes, so that
//! the loop asks the kernel for none of them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{SyncSender, TryRecvError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use weft_core::ids::Peer;

use super::{Component, Flow};
use crate::cluster::FabricKind;
use crate::node::NodeError;
use crate::node::control::Outcome;
use crate::node::fabric::NodeFabric;
use crate::node::link::{Class, Classed, FromComponent, SendError, Ticket, ToComponent};
use crate::packet::Socket;
use crate::process::Pidfd;
use crate::readiness::await_any;
use crate::shm::Bell;

/// Control messages that are handled in one pass.
const CONTROL_A_PASS: usize = 16;

/// What the thread has read.
#[derive(Debug)]
pub(super) enum LinkInput {
    /// A message, and the descriptors that came with it.
    Message(ToComponent, Vec<OwnedFd>),
    /// The process of a peer on this host has ended.
    PeerEnded,
}

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

    fn take_input(&mut self, heard: LinkInput, now_ns: u64) -> Result<Flow, NodeError> {
        let LinkInput::Message(message, fds) = heard else {
            if let NodeFabric::Shm(fabric) = self.endpoint.fabric().whole() {
                fabric.watch();
            }
            return Ok(Flow::Progress);
        };
        if self.handle(message, fds, now_ns)? == Flow::End {
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
        self.tell_with(word, &[])
    }

    /// As [`Self::tell`], with duplicates of `fds`.
    pub(super) fn tell_with(
        &mut self,
        word: &FromComponent,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), NodeError> {
        self.events.note(word);
        self.outgoing.send(&self.socket, word, fds).map_err(|error| match error {
            SendError::Packet(error) => error.into(),
            SendError::Full | SendError::Descriptors(_) => {
                NodeError::Link("the supervisor does not read the link")
            }
        })
    }
}

/// The loop's end of the queues, and what the thread waits for.
pub(super) struct LinkReader {
    pub(super) socket: Socket,
    pub(super) control: SyncSender<LinkInput>,
    pub(super) requests: SyncSender<LinkInput>,
    pub(super) bell: Bell,
    pub(super) fabric: FabricKind,
    /// The processes of the peers that were admitted last.
    pub(super) processes: Vec<(Peer, Pidfd)>,
}

impl LinkReader {
    /// Queues what comes over the link until it closes. Control messages wait only when the loop
    /// has left so many unread that it counts as hung; requests never wait.
    pub(super) fn run(mut self) {
        while let Some(heard) = self.next() {
            let queue = match &heard {
                LinkInput::PeerEnded => &self.control,
                LinkInput::Message(message, _) => match message.class() {
                    Class::Control => &self.control,
                    Class::Request => &self.requests,
                },
            };
            if queue.send(heard).is_err() {
                return;
            }
            // If the bell cannot be rung, the loop still wakes within its longest sleep.
            let _ = self.bell.ring_if_armed();
        }
    }

    /// Waits for the next input; none once the link is closed.
    fn next(&mut self) -> Option<LinkInput> {
        loop {
            if self.wait()? {
                return Some(LinkInput::PeerEnded);
            }
            match self.socket.try_recv::<ToComponent>() {
                Ok(Some((message, fds))) => {
                    self.note_process(&message, &fds);
                    return Some(LinkInput::Message(message, fds));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, "the link is closed");
                    return None;
                }
            }
        }
    }

    /// Waits until the link can be read or a process has ended; whether one has. It is not waited
    /// for again.
    fn wait(&mut self) -> Option<bool> {
        let processes = self.processes.iter().map(|(_, process)| process.as_fd());
        let fds = std::iter::once(self.socket.as_fd()).chain(processes);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        await_any(&mut fds, Duration::MAX).ok()?;
        let runs: Vec<_> = fds.iter().skip(1).map(|fd| fd.revents().is_empty()).collect();
        let mut each = runs.iter();
        self.processes.retain(|_| each.next() == Some(&true));
        Some(runs.contains(&false))
    }

    /// Over shared memory the last descriptor of an admission is the peer's process.
    fn note_process(&mut self, message: &ToComponent, fds: &[OwnedFd]) {
        let ToComponent::Connect { peer, .. } = *message else { return };
        self.processes.retain(|(known, _)| *known != Peer(peer));
        let process = fds.last().filter(|_| self.fabric == FabricKind::Shm);
        let process = process.and_then(|fd| Pidfd::from_fd(fd.try_clone().ok()?).ok());
        self.processes.extend(process.map(|process| (Peer(peer), process)));
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn m3_the_end_of_a_peer_is_an_input_behind_its_admission() {
        let (ours, theirs) = Socket::pair().unwrap();
        let (control_sender, control) = sync_channel(8);
        let (request_sender, _requests) = sync_channel(8);
        let segment = Bell::segment("weft-test-bell").unwrap();
        let reading = LinkReader {
            socket: theirs,
            control: control_sender,
            requests: request_sender,
            bell: Bell::open(segment.writable_fd()).unwrap(),
            fabric: FabricKind::Shm,
            processes: Vec::new(),
        };
        let thread = thread::spawn(move || reading.run());
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Pidfd::from_child(&child).unwrap();
        let connect = ToComponent::Connect { peer: 1, incarnation: 1, boot: 1 };
        ours.send(&connect, &[process.as_fd()], SOON).unwrap();
        let admitted = control.recv_timeout(SOON).unwrap();
        assert!(matches!(admitted, LinkInput::Message(ToComponent::Connect { peer: 1, .. }, _)));
        drop(child.stdin.take());
        assert!(matches!(control.recv_timeout(SOON).unwrap(), LinkInput::PeerEnded));
        // Once.
        ours.send(&ToComponent::Enter, &[], SOON).unwrap();
        let next = control.recv_timeout(SOON).unwrap();
        assert!(matches!(next, LinkInput::Message(ToComponent::Enter, _)));
        child.wait().unwrap();
        drop(ours);
        thread.join().unwrap();
    }
}

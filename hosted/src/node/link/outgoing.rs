//! The send queues of one end of the link: a message goes out at once where there is room, and is
//! kept where there is not.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{CONTROL_MAX, Class, Classed, REQUESTS_MAX};
use crate::packet::{Encoded, Packet, PacketError, Socket};

/// A message that waits for room.
#[derive(Debug)]
struct WaitingMessage {
    packet: Encoded,
    fds: Vec<OwnedFd>,
}

/// The messages that wait for room, of each class in order.
#[derive(Debug, Default)]
pub(in crate::node) struct Outgoing {
    control: VecDeque<WaitingMessage>,
    requests: VecDeque<WaitingMessage>,
}

/// Why a message was neither sent nor kept.
#[derive(Debug)]
pub(in crate::node) enum SendError {
    /// The queue of its class is full: the other end does not read.
    Full,
    /// It cannot be encoded as a packet, or the link is closed.
    Packet(PacketError),
    /// Its descriptors cannot be duplicated.
    Descriptors(io::Error),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the other end of the link does not read"),
            Self::Packet(error) => error.fmt(f),
            Self::Descriptors(error) => write!(f, "descriptors cannot be kept: {error}"),
        }
    }
}

impl Outgoing {
    /// Whether no message waits.
    pub(in crate::node) fn is_empty(&self) -> bool {
        self.control.is_empty() && self.requests.is_empty()
    }

    /// Whether so much control waits that expendable messages should be dropped.
    pub(in crate::node) fn is_crowded(&self) -> bool {
        self.control.len() >= CONTROL_MAX / 2
    }

    /// Whether any request or reply waits.
    pub(in crate::node) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Sends a message behind those of its class, now or when there is room.
    pub(in crate::node) fn send(
        &mut self,
        socket: &Socket,
        message: &impl Classed,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), SendError> {
        let packet = Packet::encode(message).map_err(SendError::Packet)?;
        let is_full = match message.class() {
            Class::Control => self.control.len() >= CONTROL_MAX,
            Class::Request => self.requests.len() >= REQUESTS_MAX,
        };
        if is_full {
            return Err(SendError::Full);
        }
        let is_first = match message.class() {
            Class::Control => self.control.is_empty(),
            Class::Request => self.is_empty(),
        };
        if is_first && socket.try_send(&packet, fds).map_err(SendError::Packet)? {
            return Ok(());
        }
        let fds = fds.iter().map(BorrowedFd::try_clone_to_owned).collect::<Result<_, _>>();
        let waiting = WaitingMessage { packet, fds: fds.map_err(SendError::Descriptors)? };
        match message.class() {
            Class::Control => self.control.push_back(waiting),
            Class::Request => self.requests.push_back(waiting),
        }
        Ok(())
    }

    /// Sends what there is room for, control first.
    pub(in crate::node) fn flush(&mut self, socket: &Socket) -> Result<(), PacketError> {
        for queue in [&mut self.control, &mut self.requests] {
            while let Some(first) = queue.front() {
                let fds: Vec<_> = first.fds.iter().map(AsFd::as_fd).collect();
                if !socket.try_send(&first.packet, &fds)? {
                    return Ok(());
                }
                queue.pop_front();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{FromComponent, Ticket, ToComponent};
    use super::*;
    use crate::node::control::Want;

    const SOON: Duration = Duration::from_secs(20);

    fn request(id: u64) -> ToComponent {
        ToComponent::Request { ticket: Ticket { client: 1, id }, what: Want::Status }
    }

    /// A link whose socket is full, and how many requests it holds.
    fn full() -> (Socket, Socket, Outgoing, u64) {
        let (ours, theirs) = Socket::pair().unwrap();
        let mut outgoing = Outgoing::default();
        let mut sent = 0;
        while outgoing.is_empty() {
            outgoing.send(&ours, &request(sent), &[]).unwrap();
            sent += 1;
        }
        (ours, theirs, outgoing, sent)
    }

    #[test]
    fn control_overtakes_the_requests_that_wait_and_nothing_else() {
        let (ours, theirs, mut outgoing, sent) = full();
        outgoing.send(&ours, &ToComponent::Left { client: 1 }, &[]).unwrap();
        outgoing.send(&ours, &ToComponent::Enter, &[]).unwrap();
        outgoing.send(&ours, &ToComponent::Fence { peer: 1 }, &[]).unwrap();
        let mut heard = Vec::new();
        while let Some((message, _)) = theirs.try_recv::<ToComponent>().unwrap() {
            heard.push(message);
            outgoing.flush(&ours).unwrap();
        }
        let entered = heard.iter().position(|it| matches!(it, ToComponent::Enter)).unwrap();
        assert!(matches!(heard[entered + 1], ToComponent::Fence { peer: 1 }));
        let last = usize::try_from(sent).unwrap() - 1;
        assert_eq!(entered, last, "behind what was in the socket, before the last request");
        assert!(matches!(heard[last + 2], ToComponent::Request { .. }));
        assert!(matches!(heard[last + 3], ToComponent::Left { client: 1 }));
    }

    #[test]
    fn each_class_has_its_own_end() {
        let (ours, _theirs, mut outgoing, _) = full();
        for id in 1..REQUESTS_MAX as u64 {
            outgoing.send(&ours, &request(id), &[]).unwrap();
        }
        assert!(matches!(outgoing.send(&ours, &request(0), &[]), Err(SendError::Full)));
        for _ in 0..CONTROL_MAX {
            outgoing.send(&ours, &ToComponent::Enter, &[]).unwrap();
        }
        assert!(outgoing.is_crowded());
        let refused = outgoing.send(&ours, &ToComponent::Enter, &[]);
        assert!(matches!(refused, Err(SendError::Full)));
    }

    #[test]
    fn descriptors_wait_with_their_message() {
        let (ours, theirs, mut outgoing, _) = full();
        let (reader, writer) = io::pipe().unwrap();
        outgoing.send(&ours, &ToComponent::Enter, &[writer.as_fd()]).unwrap();
        drop(writer);
        let fds = loop {
            let (message, fds) = theirs.recv::<ToComponent>(SOON).unwrap();
            outgoing.flush(&ours).unwrap();
            if matches!(message, ToComponent::Enter) {
                break fds;
            }
        };
        assert_eq!(fds.len(), 1);
        drop(fds);
        assert_eq!(io::read_to_string(reader).unwrap(), "");
    }

    #[test]
    fn replies_never_overtake_what_was_said_before() {
        let (ours, theirs) = Socket::pair().unwrap();
        let mut outgoing = Outgoing::default();
        while outgoing.is_empty() {
            outgoing.send(&ours, &FromComponent::Recorded { number: 1 }, &[]).unwrap();
        }
        let ticket = Ticket { client: 1, id: 1 };
        let what = crate::node::control::Outcome::Done;
        outgoing.send(&ours, &FromComponent::Reply { ticket, what }, &[]).unwrap();
        let mut last = None;
        while let Some((message, _)) = theirs.try_recv::<FromComponent>().unwrap() {
            assert!(!matches!(last, Some(FromComponent::Reply { .. })));
            last = Some(message);
            outgoing.flush(&ours).unwrap();
        }
        assert!(matches!(last, Some(FromComponent::Reply { .. })));
    }
}

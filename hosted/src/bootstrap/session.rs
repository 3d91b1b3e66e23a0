//! One connection between two nodes of a host: the handshake, then events until it ends.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::PollFlags;
use serde::{Deserialize, Serialize};
use weft_core::ids::Peer;

use super::News;
use super::audience::PeerLine;
use super::hello::{Hello, Refusal};
use super::session_message::SessionMessage;
use crate::clock::Deadline;
use crate::packet::{Caller, PacketError, Socket};
use crate::readiness::{Readiness, await_events};
use crate::shm::Grant;

/// How long a node may take to send the next message of the handshake.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The answer to a hello.
#[derive(Debug, Serialize, Deserialize)]
enum HelloAnswer {
    Welcome(Hello),
    Refused(Refusal),
}

/// Why a session did not begin.
#[derive(Debug)]
pub(super) enum SessionError {
    Refused(Refusal),
    Packet(PacketError),
}

impl From<PacketError> for SessionError {
    fn from(error: PacketError) -> Self {
        Self::Packet(error)
    }
}

impl From<Refusal> for SessionError {
    fn from(reason: Refusal) -> Self {
        Self::Refused(reason)
    }
}

/// Sends a hello to `peer` and takes its answer.
pub(super) fn greet(
    socket: &Socket,
    hello: &Hello,
    nodes: u16,
    grant: &Grant,
) -> Result<(Peer, Grant), SessionError> {
    socket.authorize_same_user().map_err(|_| SessionError::Refused(Refusal::User))?;
    socket.send(hello, &grant.borrow(), HANDSHAKE_TIMEOUT)?;
    let (answer, fds) = socket.recv::<HelloAnswer>(HANDSHAKE_TIMEOUT)?;
    match answer {
        HelloAnswer::Welcome(theirs) => {
            hello.check(&theirs, nodes).map_err(SessionError::Refused)?;
            Ok((Peer(theirs.rank), Grant(fds)))
        }
        HelloAnswer::Refused(reason) => Err(SessionError::Refused(reason)),
    }
}

/// Answers the hello of a caller of this user; `grant` makes what the caller may reach. This never
/// waits: a connection that has just been made has room for an answer.
pub(super) fn answer(
    caller: &Caller<Hello>,
    hello: &Hello,
    nodes: u16,
    grant: impl FnOnce(Peer) -> Result<Grant, Refusal>,
) -> Result<Peer, SessionError> {
    let Caller { socket, first: theirs, .. } = caller;
    let peer = Peer(theirs.rank);
    match hello.check(theirs, nodes).and_then(|()| grant(peer)) {
        Ok(grant) => {
            let welcome = HelloAnswer::Welcome(hello.clone());
            socket.send(&welcome, &grant.borrow(), Duration::ZERO)?;
            Ok(peer)
        }
        Err(reason) => {
            socket.send(&HelloAnswer::Refused(reason.clone()), &[], Duration::ZERO)?;
            Err(SessionError::Refused(reason))
        }
    }
}

impl PeerLine for Socket {
    type Error = PacketError;

    /// Never waits: a peer that has left the whole socket buffer unread loses the session.
    fn tell(&self, word: &SessionMessage, fd: Option<BorrowedFd<'_>>) -> Result<(), PacketError> {
        self.send(word, fd.as_slice(), Duration::ZERO)
    }

    /// A socket counts as writable while three quarters of its buffer are free; the rest is kept
    /// for messages that must not be lost.
    fn tell_at_once(&self, word: &SessionMessage) -> Result<(), PacketError> {
        let now = Deadline::after(Duration::ZERO);
        match await_events(self.as_fd(), PollFlags::OUT, now) {
            Ok(Readiness::Ready) => self.send(word, &[], Duration::ZERO),
            Ok(Readiness::TimedOut) => {
                Err(PacketError::TimedOut { call: "send", timeout: Duration::ZERO })
            }
            Err(errno) => Err(PacketError::Os { call: "poll", errno }),
        }
    }

    fn shut_down(&self) {
        Self::shut_down(self);
    }
}

/// Waits up to `timeout` for an event; none in time is `Ok(None)`. A message that makes no sense
/// ends the session, since the other side is not a node of this build.
pub(super) fn hear(socket: &Socket, timeout: Duration) -> Result<Option<News>, PacketError> {
    let (word, mut fds) = match socket.recv::<SessionMessage>(timeout) {
        Ok(heard) => heard,
        Err(PacketError::TimedOut { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let fd = fds.pop();
    if fd.is_none() && word.needs_descriptor() {
        return Err(PacketError::TruncatedDescriptors);
    }
    let nonsense = || PacketError::Decode(serde::de::Error::custom("no node says such a thing"));
    word.into_news(fd).map(Some).ok_or_else(nonsense)
}

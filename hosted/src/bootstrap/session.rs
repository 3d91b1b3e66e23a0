//! One connection between two nodes of a host: the handshake, then news until it ends.

use std::os::fd::AsFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_core::ids::Peer;

use super::News;
use super::audience::Line;
use super::hello::{Hello, Refusal};
use super::word::Word;
use crate::packet::{PacketError, Socket};
use crate::process::Pidfd;
use crate::shm::Grant;

/// How long a node may take to say the next word of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a peer may leave its socket full.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The answer to a hello.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
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

/// Says hello to `peer` and takes its answer.
pub(super) fn greet(
    socket: &Socket,
    hello: &Hello,
    nodes: u16,
    grant: &Grant,
) -> Result<(Peer, Grant), SessionError> {
    socket.authorize_same_user().map_err(|_| SessionError::Refused(Refusal::User))?;
    socket.send(hello, &grant.borrow(), HANDSHAKE_TIMEOUT)?;
    let (answer, fds) = socket.recv::<Answer>(HANDSHAKE_TIMEOUT)?;
    match answer {
        Answer::Welcome(theirs) => {
            hello.check(&theirs, nodes).map_err(SessionError::Refused)?;
            Ok((Peer(theirs.rank), Grant(fds)))
        }
        Answer::Refused(reason) => Err(SessionError::Refused(reason)),
    }
}

/// Waits for a hello and answers it; `grant` makes what the caller may reach.
pub(super) fn answer(
    socket: &Socket,
    hello: &Hello,
    nodes: u16,
    grant: impl FnOnce(Peer) -> Result<Grant, Refusal>,
) -> Result<(Peer, Grant), SessionError> {
    let heard = socket.authorize_same_user().map_err(|_| Refusal::User);
    let (theirs, fds) = socket.recv::<Hello>(HANDSHAKE_TIMEOUT)?;
    let peer = Peer(theirs.rank);
    match heard.and_then(|()| hello.check(&theirs, nodes)).and_then(|()| grant(peer)) {
        Ok(grant) => {
            let welcome = Answer::Welcome(hello.clone());
            socket.send(&welcome, &grant.borrow(), HANDSHAKE_TIMEOUT)?;
            Ok((peer, Grant(fds)))
        }
        Err(reason) => {
            socket.send(&Answer::Refused(reason.clone()), &[], HANDSHAKE_TIMEOUT)?;
            Err(SessionError::Refused(reason))
        }
    }
}

impl Line for Socket {
    type Error = PacketError;

    fn tell(&self, word: &Word, process: Option<&Pidfd>) -> Result<(), PacketError> {
        let process: Vec<_> = process.map(AsFd::as_fd).into_iter().collect();
        self.send(word, &process, SEND_TIMEOUT)
    }

    fn tell_at_once(&self, word: &Word) -> Result<(), PacketError> {
        self.send(word, &[], Duration::ZERO)
    }

    fn shut_down(&self) {
        Self::shut_down(self);
    }
}

/// Waits up to `timeout` for news; none in time is `Ok(None)`. Words that make no sense end the
/// session, since the other side is no node of this build.
pub(super) fn hear(socket: &Socket, timeout: Duration) -> Result<Option<News>, PacketError> {
    let (word, mut fds) = match socket.recv::<Word>(timeout) {
        Ok(heard) => heard,
        Err(PacketError::TimedOut { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let process = fds.pop().map(Pidfd::from_fd).transpose();
    let process = process.map_err(|_| PacketError::TruncatedDescriptors)?;
    if matches!(word, Word::Alive { .. }) && process.is_none() {
        return Err(PacketError::TruncatedDescriptors);
    }
    let nonsense = || PacketError::Decode(serde::de::Error::custom("no node says such a thing"));
    word.into_news(process).map(Some).ok_or_else(nonsense)
}

//! One connection between two nodes of a host: the handshake, then news until it ends.

use std::os::fd::AsFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_core::ids::{Incarnation, Peer};

use super::hello::{Hello, Refusal};
use super::{Life, News};
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

/// What follows the handshake.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    /// With the process as descriptor.
    Alive {
        incarnation: u32,
    },
    Dead {
        incarnation: u32,
    },
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

pub(super) fn tell_alive(socket: &Socket, life: &Life) -> Result<(), PacketError> {
    let word = Word::Alive { incarnation: life.incarnation.0 };
    socket.send(&word, &[life.process.as_fd()], SEND_TIMEOUT)
}

pub(super) fn tell_dead(socket: &Socket, incarnation: Incarnation) -> Result<(), PacketError> {
    socket.send(&Word::Dead { incarnation: incarnation.0 }, &[], SEND_TIMEOUT)
}

/// Waits up to `timeout` for news; none in time is `Ok(None)`. Words that make no sense end the
/// session, since the other side is no node of this build.
pub(super) fn hear(socket: &Socket, timeout: Duration) -> Result<Option<News>, PacketError> {
    let (word, mut fds) = match socket.recv::<Word>(timeout) {
        Ok(heard) => heard,
        Err(PacketError::TimedOut { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    match word {
        Word::Dead { incarnation } => Ok(Some(News::Dead(Incarnation(incarnation)))),
        Word::Alive { incarnation: 0 } => {
            let error = serde::de::Error::custom("no life has incarnation 0");
            Err(PacketError::Decode(error))
        }
        Word::Alive { incarnation } => {
            let process = fds.pop().ok_or(PacketError::TruncatedDescriptors)?;
            let process = Pidfd::from_fd(process).map_err(|_| PacketError::TruncatedDescriptors)?;
            Ok(Some(News::Alive(Life { incarnation: Incarnation(incarnation), process })))
        }
    }
}

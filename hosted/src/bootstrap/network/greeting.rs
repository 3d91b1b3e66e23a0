//! The handshake between two nodes on a TCP connection.
//!
//! ```text
//!   caller                               listener
//!   preface ───────────────────────────▶ not Weft's: closed without an answer
//!      ◀──────────────────────────────── preface; another version: both refuse
//!   psk, e: Greeting ──────────────────▶ another key: refused in clear
//!                                        another cluster, layout, fabric; another node is meant;
//!                                        a rank that is taken; a greeting that was heard before
//!      ◀──────────────────────────────── e, ee: Welcome(Greeting), or Refused(reason)
//!   a first message over the channel ──▶ not under these keys: the greeting was a replay
//! ```
//!
//! All of it has one deadline. A greeting names its node's run by a number drawn when the node
//! started, and counts that run's calls, so a replay is recognised without a list of nonces. The
//! replay of a greeting from a former run fails at the last step: only the node that made the
//! greeting just now has the ephemeral secret that belongs to it.

use std::net::TcpStream;

use serde::{Deserialize, Serialize};
use snow::HandshakeState;
use weft_core::ids::Peer;

use super::channel::{Channel, Hearing};
use super::frame::{BODY_LEN_MAX, Kind, read_frame, read_preface, write_frame, write_preface};
use super::key::Key;
use super::{LinkError, Timing, noise};
use crate::bootstrap::{Hello, Refusal};
use crate::clock::Deadline;

/// A hello, the node that it is for, and the call that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NetworkGreeting {
    pub(super) hello: Hello,
    /// The rank of the node that is greeted. A node that a call has reached by mistake, or through
    /// a relay without the key, refuses it and keeps its sessions.
    pub(super) to: u16,
    /// The run of the node: drawn at its start.
    pub(super) run: u64,
    /// The number of the call in that run, from 1.
    pub(super) call: u64,
}

#[derive(Debug, Serialize, Deserialize)]
enum GreetingAnswer {
    Welcome(NetworkGreeting),
    Refused(Refusal),
}

/// What either side needs for a handshake.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) key: &'a Key,
    pub(super) hello: &'a Hello,
    /// The run of this node.
    pub(super) run: u64,
    pub(super) nodes: u16,
    pub(super) timing: Timing,
}

/// A peer that was met.
pub(super) struct Met {
    pub(super) peer: Peer,
    /// The run and the call of its greeting.
    pub(super) greeted: (u64, u64),
    pub(super) channel: Channel,
    pub(super) hearing: Hearing,
}

impl Side<'_> {
    /// Greets `peer`, expected at the other end of `stream`, in this call of the run.
    pub(super) fn call(&self, stream: TcpStream, peer: Peer, call: u64) -> Result<Met, LinkError> {
        let deadline = Deadline::after(self.timing.handshake);
        stream.set_nodelay(true)?;
        write_preface(&stream, self.hello.version, deadline)?;
        self.check_version(read_preface(&stream, deadline)?)?;
        let mut noise = noise::caller(self.key)?;
        send(&stream, &mut noise, &self.greeting(peer.0, call), deadline)?;
        let answer = read_frame(&stream, deadline)?;
        if answer.kind == Kind::Refused {
            let reason = serde_json::from_slice(&answer.body).map_err(|_| LinkError::Nonsense)?;
            return Err(LinkError::Refused(reason));
        }
        let theirs = match open(&mut noise, &answer.body)? {
            GreetingAnswer::Welcome(theirs) => theirs,
            GreetingAnswer::Refused(reason) => return Err(LinkError::Refused(reason)),
        };
        let checked = self.hello.check(&theirs.hello, self.nodes);
        let meant = checked.and_then(|()| is_meant(peer.0, theirs.hello.rank));
        meant.map_err(LinkError::Refused)?;
        let met = self.meet(stream, noise, &theirs)?;
        met.channel.say(None)?;
        Ok(met)
    }

    /// Answers the node at the other end of `stream`; `judge` decides whether this greeting of a
    /// member is accepted.
    pub(super) fn answer(
        &self,
        stream: TcpStream,
        judge: impl FnOnce(&NetworkGreeting) -> Result<(), Refusal>,
    ) -> Result<Met, LinkError> {
        let deadline = Deadline::after(self.timing.handshake);
        stream.set_nodelay(true)?;
        let version = read_preface(&stream, deadline)?;
        write_preface(&stream, self.hello.version, deadline)?;
        self.check_version(version)?;
        let first = read_frame(&stream, deadline)?;
        let mut noise = noise::listener(self.key)?;
        let theirs: NetworkGreeting = match open(&mut noise, &first.body) {
            Err(LinkError::Refused(Refusal::Key)) => {
                let reason = serde_json::to_vec(&Refusal::Key).map_err(|_| LinkError::Nonsense)?;
                write_frame(&stream, Kind::Refused, &reason, deadline)?;
                return Err(LinkError::Refused(Refusal::Key));
            }
            opened => opened?,
        };
        let checked = self.hello.check(&theirs.hello, self.nodes);
        let meant = checked.and_then(|()| is_meant(theirs.to, self.hello.rank));
        if let Err(reason) = meant.and_then(|()| judge(&theirs)) {
            send(&stream, &mut noise, &GreetingAnswer::Refused(reason.clone()), deadline)?;
            return Err(LinkError::Refused(reason));
        }
        send(
            &stream,
            &mut noise,
            &GreetingAnswer::Welcome(self.greeting(theirs.hello.rank, 0)),
            deadline,
        )?;
        let mut met = self.meet(stream, noise, &theirs)?;
        match met.hearing.listen(deadline) {
            Ok(Some(None)) => Ok(met),
            Ok(Some(Some(_))) => Err(LinkError::Nonsense),
            Ok(None) => Err(LinkError::Stalled),
            // A caller that replays a greeting cannot go on from there.
            Err(LinkError::Refused(Refusal::Key)) => Err(LinkError::Refused(Refusal::Replayed)),
            Err(error) => Err(error),
        }
    }

    /// The greeting of this side to the node of rank `to`.
    fn greeting(&self, to: u16, call: u64) -> NetworkGreeting {
        NetworkGreeting { hello: self.hello.clone(), to, run: self.run, call }
    }

    fn check_version(&self, theirs: u32) -> Result<(), LinkError> {
        let ours = self.hello.version;
        if theirs == ours {
            Ok(())
        } else {
            Err(LinkError::Refused(Refusal::Version { ours, theirs }))
        }
    }

    fn meet(
        &self,
        stream: TcpStream,
        noise: HandshakeState,
        theirs: &NetworkGreeting,
    ) -> Result<Met, LinkError> {
        let noise = noise.into_stateless_transport_mode()?;
        let channel = Channel::new(stream, noise, self.timing);
        let hearing = channel.hearing();
        let greeted = (theirs.run, theirs.call);
        Ok(Met { peer: Peer(theirs.hello.rank), greeted, channel, hearing })
    }
}

/// Checks that a call for the node `meant` has reached it, and not the node `found`.
fn is_meant(meant: u16, found: u16) -> Result<(), Refusal> {
    if meant == found { Ok(()) } else { Err(Refusal::Addressee { meant, found }) }
}

fn send(
    stream: &TcpStream,
    noise: &mut HandshakeState,
    value: &impl Serialize,
    deadline: Deadline,
) -> Result<(), LinkError> {
    let plain = serde_json::to_vec(value).map_err(|_| LinkError::Nonsense)?;
    let mut sealed = [0; BODY_LEN_MAX];
    let len = noise.write_message(&plain, &mut sealed)?;
    write_frame(stream, Kind::Noise, &sealed[..len], deadline)
}

fn open<T: serde::de::DeserializeOwned>(
    noise: &mut HandshakeState,
    sealed: &[u8],
) -> Result<T, LinkError> {
    let mut plain = [0; BODY_LEN_MAX];
    let len = noise.read_message(sealed, &mut plain)?;
    serde_json::from_slice(&plain[..len]).map_err(|_| LinkError::Nonsense)
}

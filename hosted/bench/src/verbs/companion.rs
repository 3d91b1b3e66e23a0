//! The other process as the leader holds it.

use std::process::Stdio;
use std::time::Duration;

use weft_driver::{Device, DeviceChoice};

use super::bare::{FabricPair, TurnSpan};
use super::end::{BareEnd, LEADER, SpinWait};
use super::error::VerbsBenchError;
use super::mail::Mail;
use super::pins::Pins;
use super::subject::{VerbsOp, VerbsSubject};
use super::word::{EncodedEnds, FromPeer, PATIENCE, SOCKET_FD, ToPeer, VerbsTurn};
use crate::figure::Samples;
use weft::packet::Socket;
use weft::process::{Liveness, Spawn, Spawned};

/// How long it may take to end once its socket has closed, or once it has said why it ends.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Both processes, connected.
#[derive(Debug)]
pub(super) struct Companions {
    pair: FabricPair,
    spawned: Spawned,
    /// Closed to end the other process.
    socket: Option<Socket>,
    /// The number of the next write.
    next: u64,
}

impl Companions {
    /// Starts the other process on `device`, and lets it in.
    pub(super) fn start(device: &Device, pins: &Pins) -> Result<Self, VerbsBenchError> {
        let choice = DeviceChoice { name: Some(device.name().to_owned()), port: device.port() };
        let vigil = SpinWait::new(pins.yield_every());
        let (mut end, mut mail) =
            (BareEnd::new(LEADER, &choice, vigil)?, Mail::new(LEADER, &choice)?);
        let mine = EncodedEnds { bare: end.prepare()?, mail: mail.prepare()? };

        let (socket, theirs) = Socket::pair()?;
        let spawn = Spawn::own_program().args(["bench", "verbs-peer"]).stdin(Stdio::null());
        let spawned = spawn.stdout(Stdio::null()).inherit(SOCKET_FD, theirs.into()).start()?;
        let pair = FabricPair { end, mail };
        let mut both = Self { pair, spawned, socket: Some(socket), next: 1 };
        both.send(&ToPeer::Meet {
            device: device.name().to_owned(),
            port: device.port(),
            processor: pins.follower(),
            yield_every: pins.yield_every(),
            ends: mine,
        })?;
        let FromPeer::Met { ends } = both.hear()? else {
            return Err(VerbsBenchError::OutOfStep("no answer to the meeting"));
        };
        both.pair.end.open(&ends.bare)?;
        both.pair.mail.open(&ends.mail)?;
        Ok(both)
    }

    /// One turn of `iterations` operations; the samples are nanoseconds an operation.
    pub(super) fn run(
        &mut self,
        turn: VerbsTurn,
        iterations: u32,
    ) -> Result<Samples, VerbsBenchError> {
        let course = TurnSpan { iterations, first: self.next };
        self.next += u64::from(iterations) + 1;
        let mut samples = Samples::default();
        self.take_turn(turn, course, &mut samples)?;
        if let VerbsTurn::Subject(VerbsSubject { what: VerbsOp::Bandwidth, bytes }) = turn {
            self.take_turn(VerbsTurn::Arrived { bytes }, course, &mut Samples::default())?;
        }
        Ok(samples)
    }

    fn take_turn(
        &mut self,
        turn: VerbsTurn,
        course: TurnSpan,
        samples: &mut Samples,
    ) -> Result<(), VerbsBenchError> {
        let TurnSpan { iterations, first } = course;
        self.send(&ToPeer::Run { turn, iterations, first })?;
        let led = self.pair.lead(turn, course, samples);
        // Whatever the leader stumbled over, a follower that is dead is why.
        led.map_err(|error| self.last_words().unwrap_or(error))?;
        match self.hear()? {
            FromPeer::Done => Ok(()),
            FromPeer::Met { .. } | FromPeer::Failed { .. } => {
                Err(VerbsBenchError::OutOfStep("no end of a turn"))
            }
        }
    }

    fn send(&self, word: &ToPeer) -> Result<(), VerbsBenchError> {
        let Some(socket) = &self.socket else { return Ok(()) };
        let sent = socket.send(word, &[], PATIENCE);
        sent.map_err(|error| self.last_words().unwrap_or(error.into()))
    }

    fn hear(&self) -> Result<FromPeer, VerbsBenchError> {
        let Some(socket) = &self.socket else {
            return Err(VerbsBenchError::OutOfStep("a closed socket"));
        };
        match socket.recv(PATIENCE) {
            Ok((FromPeer::Failed { words }, _)) => Err(VerbsBenchError::PeerLost { words }),
            Ok((word, _)) => Ok(word),
            Err(error) => Err(self.last_words().unwrap_or(error.into())),
        }
    }

    /// Why the other process has ended; nothing while it lives.
    fn last_words(&self) -> Option<VerbsBenchError> {
        let is_dead = self.spawned.pidfd.wait_dead(END_TIMEOUT).ok()? == Liveness::Dead;
        let words = match self.socket.as_ref()?.try_recv() {
            Ok(Some((FromPeer::Failed { words }, _))) => words,
            Ok(Some((FromPeer::Met { .. } | FromPeer::Done, _)) | None) | Err(_) => {
                "it was killed".to_owned()
            }
        };
        is_dead.then_some(VerbsBenchError::PeerLost { words })
    }
}

impl Drop for Companions {
    fn drop(&mut self) {
        self.socket = None;
        self.spawned.end(END_TIMEOUT);
    }
}

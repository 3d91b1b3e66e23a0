//! The other process: it carries out orders until its socket closes.

use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use weft_driver::DeviceChoice;

use super::bare::{FabricPair, TurnSpan};
use super::end::{BareEnd, FOLLOWER, SpinWait};
use super::error::VerbsBenchError;
use super::mail::Mail;
use super::word::{EncodedEnds, FromPeer, PATIENCE, SOCKET_FD, ToPeer};
use weft::packet::{PacketError, Socket};
use weft::process::adopt_inherited;

/// How long it may be left without a word, while rivals run.
const WORD_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs the peer whose socket was inherited.
///
/// # Errors
/// [`VerbsBenchError`], which is sent to the leader, too.
pub fn run() -> Result<(), VerbsBenchError> {
    let socket = Socket::from_fd(adopt_inherited(SOCKET_FD)?)?;
    let ended = serve(&socket);
    if let Err(error) = &ended {
        // A leader that is gone needs no explanation.
        let _ = socket.send(&FromPeer::Failed { words: error.to_string() }, &[], PATIENCE);
    }
    ended
}

fn serve(socket: &Socket) -> Result<(), VerbsBenchError> {
    let mut pair = meet(socket)?;
    loop {
        match socket.recv(WORD_TIMEOUT) {
            Ok((ToPeer::Run { turn, iterations, first }, _)) => {
                pair.follow(turn, TurnSpan { iterations, first })?;
                socket.send(&FromPeer::Done, &[], PATIENCE)?;
            }
            Ok((ToPeer::Meet { .. }, _)) => {
                return Err(VerbsBenchError::OutOfStep("a second meeting"));
            }
            Err(PacketError::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn meet(socket: &Socket) -> Result<FabricPair, VerbsBenchError> {
    let (word, _) = socket.recv(PATIENCE)?;
    let ToPeer::Meet { device, port, processor, yield_every, ends } = word else {
        return Err(VerbsBenchError::OutOfStep("no meeting"));
    };
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).map_err(VerbsBenchError::Processors)?;
    let device = DeviceChoice { name: Some(device), port };
    let vigil = SpinWait::new(yield_every);
    let mut end = BareEnd::new(FOLLOWER, &device, vigil)?;
    let mut mail = Mail::new(FOLLOWER, &device)?;
    let mine = EncodedEnds { bare: end.prepare()?, mail: mail.prepare()? };
    end.open(&ends.bare)?;
    mail.open(&ends.mail)?;
    socket.send(&FromPeer::Met { ends: mine }, &[], PATIENCE)?;
    Ok(FabricPair { end, mail })
}

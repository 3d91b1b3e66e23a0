//! A writer's process: it carries out the owner's orders until the socket closes.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use weft_core::ids::Peer;

use super::cell::Cell;
use super::crew::{OWNER, meet, take_seat};
use super::error::BenchError;
use super::exchange::ExchangeLines;
use super::parcel::{self, DATA, END, PING};
use super::phase::{FromWriter, PATIENCE, Phase, SOCKET_FD, ToWriter};
use super::seat::BenchSeat;
use weft::packet::{PacketError, Socket};
use weft::process::{Pidfd, adopt_inherited};
use weft::shm::Grant;

/// How long the owner may leave a writer without a word.
const WORD_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs the writer whose socket was inherited.
///
/// # Errors
/// [`BenchError`], which is sent to the owner, too.
pub fn run() -> Result<(), BenchError> {
    report_end(&Socket::from_fd(adopt_inherited(SOCKET_FD)?)?, serve)
}

/// Runs `serve`; an error is sent over `socket`, too.
pub(super) fn report_end(
    socket: &Socket,
    serve: impl FnOnce(&Socket) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let ended = serve(socket);
    if let Err(error) = &ended {
        // One that is gone needs no explanation.
        let _ = socket.send(&FromWriter::Failed { words: error.to_string() }, &[], PATIENCE);
    }
    ended
}

fn serve(socket: &Socket) -> Result<(), BenchError> {
    let mut writer = MailboxWriter::start(socket.recv(PATIENCE)?)?;
    socket.send(&FromWriter::Ready, &[], PATIENCE)?;
    loop {
        match socket.recv(WORD_TIMEOUT) {
            Ok((ToWriter::Run { phase, millis }, _)) => {
                writer.seat.vigil.begin(Duration::from_millis(millis) + 2 * PATIENCE);
                writer.take_part(phase)?;
            }
            Ok((ToWriter::Start { .. }, _)) => return Err(BenchError::OutOfStep("a second start")),
            Err(PacketError::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

struct MailboxWriter {
    seat: BenchSeat,
    me: Peer,
    lines: ExchangeLines,
    /// Messages that one put carries.
    batch: u32,
    payload: Vec<u8>,
}

impl MailboxWriter {
    fn start((word, mut fds): (ToWriter, Vec<OwnedFd>)) -> Result<Self, BenchError> {
        let ToWriter::Start { rank, writers, bytes, wait } = word else {
            return Err(BenchError::OutOfStep("the first word was not a start"));
        };
        let plan = Cell { bytes, writers }.plan()?;
        let layout = plan.layout();
        let own_count = layout.regions().len() + 2;
        let (Some(process), Some(lines)) = (fds.pop(), fds.pop()) else {
            return Err(BenchError::OutOfStep("a start without descriptors"));
        };
        if fds.len() < own_count {
            return Err(BenchError::OutOfStep("a start without memory"));
        }
        let owners = Grant(fds.split_off(own_count));
        let me = Peer(rank);
        let mut seat = take_seat(&plan, me, &Grant(fds), wait.into(), Vec::new())?;
        meet(&mut seat, layout, OWNER, &owners, Some(Pidfd::from_fd(process)?))?;
        let lines = ExchangeLines::map(lines.as_fd())?;
        let batch = plan.mailbox().batch();
        Ok(Self { seat, me, lines, batch, payload: vec![0; bytes] })
    }

    fn take_part(&mut self, phase: Phase) -> Result<(), BenchError> {
        match phase {
            Phase::Exchange => self.lines.echo(self.me, &mut self.seat.vigil),
            Phase::Latency => self.echo(),
            Phase::Rate => self.pour(),
        }
    }

    /// Sends back what comes.
    fn echo(&mut self) -> Result<(), BenchError> {
        loop {
            let payload = &mut self.payload;
            let (kind, receipt) = self.seat.await_message(|message| {
                if message.payload.len() != payload.len() {
                    return Err(BenchError::OutOfStep("a message of another length"));
                }
                payload.copy_from_slice(message.payload);
                Ok(message.kind)
            })?;
            self.seat.put(OWNER, kind, &self.payload)?;
            self.seat.release(receipt);
            match kind {
                PING => {}
                END => return Ok(()),
                _ => return Err(BenchError::OutOfStep("a message of another phase")),
            }
        }
    }

    /// Sends until the owner has had enough.
    fn pour(&mut self) -> Result<(), BenchError> {
        let mut number = 0;
        loop {
            for _ in 0..self.batch {
                parcel::write(&mut self.payload, number);
                self.seat.endpoint.stage(OWNER, DATA, &self.payload)?;
                number += 1;
            }
            self.seat.flush(OWNER)?;
            // The end may lie in a half that only a poll finds open.
            self.seat.vigil.tick();
            self.seat.poll()?;
            if self.seat.take(|message| Ok(message.kind))? == Some(END) {
                parcel::write(&mut self.payload, number);
                return self.seat.put(OWNER, END, &self.payload);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_fails_says_why() {
        let (owner, writer) = Socket::pair().unwrap();
        owner.send(&ToWriter::Run { phase: Phase::Rate, millis: 1 }, &[], PATIENCE).unwrap();
        let error = report_end(&writer, serve).unwrap_err();
        let last: (FromWriter, Vec<OwnedFd>) = owner.recv(PATIENCE).unwrap();
        assert!(matches!(last.0, FromWriter::Failed { words } if words == error.to_string()));
    }
}

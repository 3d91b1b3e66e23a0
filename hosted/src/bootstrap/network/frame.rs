//! Frames on a TCP connection, each whole before its deadline.
//!
//! ```text
//!   preface   "weft"   version, u32        once, first, in both directions
//!   frame     kind, u8   length, u16   that many bytes, at most 8192
//!   integers little-endian
//! ```
//!
//! The preface is in clear because it determines how everything after it is decoded. So is a frame
//! of kind `Refused`, which a side sends that could not decrypt what it answers; forging one gains
//! an attacker no more than cutting the connection would.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::clock::Deadline;

use super::LinkError;

const MAGIC: [u8; 4] = *b"weft";
const HEAD_LEN: usize = 3;
/// The longest body: more than the longest message takes.
pub(super) const BODY_LEN_MAX: usize = 8192;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A Noise message.
    Noise = 1,
    /// A refusal in clear.
    Refused = 2,
}

/// A frame as it arrived.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it holds.
    pub kind: Kind,
    /// At most 8192 bytes.
    pub body: Vec<u8>,
}

pub(super) fn write_preface(
    stream: &TcpStream,
    version: u32,
    deadline: Deadline,
) -> Result<(), LinkError> {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..].copy_from_slice(&version.to_le_bytes());
    write(stream, &bytes, deadline)
}

/// Reads the version that the other side speaks.
pub(super) fn read_preface(stream: &TcpStream, deadline: Deadline) -> Result<u32, LinkError> {
    let mut magic = [0; 4];
    read(stream, &mut magic, deadline)?;
    if magic != MAGIC {
        return Err(LinkError::NotWeft);
    }
    let mut version = [0; 4];
    read(stream, &mut version, deadline)?;
    Ok(u32::from_le_bytes(version))
}

pub(super) fn write_frame(
    stream: &TcpStream,
    kind: Kind,
    body: &[u8],
    deadline: Deadline,
) -> Result<(), LinkError> {
    let len = u16::try_from(body.len()).ok().filter(|_| body.len() <= BODY_LEN_MAX);
    let len = len.ok_or(LinkError::TooLong { len: body.len() })?;
    let mut bytes = Vec::with_capacity(HEAD_LEN + body.len());
    bytes.push(kind as u8);
    bytes.extend(len.to_le_bytes());
    bytes.extend(body);
    write(stream, &bytes, deadline)
}

pub(super) fn read_frame(stream: &TcpStream, deadline: Deadline) -> Result<Frame, LinkError> {
    let mut frames = Frames::default();
    loop {
        if let Some(frame) = frames.take()? {
            return Ok(frame);
        }
        // Not past the frame: what follows is for the next reader.
        if !frames.fill(stream, frames.missing(), deadline)? {
            return Err(LinkError::Stalled);
        }
    }
}

/// The bytes of frames that have arrived so far.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Appends bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Takes the first frame, once it is whole.
    ///
    /// # Errors
    /// [`LinkError::NotWeft`], [`LinkError::TooLong`]: nothing that follows can be read.
    pub fn take(&mut self) -> Result<Option<Frame>, LinkError> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<HEAD_LEN>() else {
            return Ok(None);
        };
        let kind = match head[0] {
            1 => Kind::Noise,
            2 => Kind::Refused,
            _ => return Err(LinkError::NotWeft),
        };
        let len = usize::from(u16::from_le_bytes([head[1], head[2]]));
        if len > BODY_LEN_MAX {
            return Err(LinkError::TooLong { len });
        }
        let Some(body) = rest.get(..len) else { return Ok(None) };
        let body = body.to_vec();
        self.bytes.drain(..HEAD_LEN + len);
        Ok(Some(Frame { kind, body }))
    }

    /// How many bytes the first frame lacks, as far as is known.
    fn missing(&self) -> usize {
        match self.bytes.as_slice() {
            [_, low, high, body @ ..] => {
                usize::from(u16::from_le_bytes([*low, *high])).saturating_sub(body.len())
            }
            short => HEAD_LEN - short.len(),
        }
    }

    /// Reads up to `max` bytes that have come by `deadline`; whether there were any.
    pub(super) fn fill(
        &mut self,
        stream: &TcpStream,
        max: usize,
        deadline: Deadline,
    ) -> Result<bool, LinkError> {
        let mut chunk = [0; 1024];
        let room = max.clamp(1, chunk.len());
        let Some(count) = read_some(stream, &mut chunk[..room], deadline)? else {
            return Ok(false);
        };
        self.push(&chunk[..count]);
        Ok(true)
    }
}

fn read(stream: &TcpStream, mut into: &mut [u8], deadline: Deadline) -> Result<(), LinkError> {
    while !into.is_empty() {
        let count = read_some(stream, into, deadline)?.ok_or(LinkError::Stalled)?;
        into = &mut into[count..];
    }
    Ok(())
}

/// Reads at least one byte, or none by the deadline.
fn read_some(
    mut stream: &TcpStream,
    into: &mut [u8],
    deadline: Deadline,
) -> Result<Option<usize>, LinkError> {
    loop {
        stream.set_read_timeout(Some(left(deadline)))?;
        match stream.read(into) {
            Ok(0) => return Err(LinkError::Closed),
            Ok(count) => return Ok(Some(count)),
            Err(error) if is_wait(&error) && deadline.has_passed() => return Ok(None),
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn write(mut stream: &TcpStream, mut bytes: &[u8], deadline: Deadline) -> Result<(), LinkError> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)))?;
        match stream.write(bytes) {
            Ok(0) => return Err(LinkError::Closed),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_wait(&error) && deadline.has_passed() => {
                return Err(LinkError::Stalled);
            }
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The time left, at least a millisecond: a socket timeout of zero would wait forever.
fn left(deadline: Deadline) -> Duration {
    deadline.remaining().clamp(Duration::from_millis(1), Duration::from_secs(3600))
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(bytes: &[u8]) -> Frames {
        Frames { bytes: bytes.to_vec() }
    }

    #[test]
    fn a_frame_is_taken_when_it_is_whole() {
        let bytes = [1, 2, 0, 7, 8, 2, 0, 0];
        for cut in 0..5 {
            assert_eq!(frames(&bytes[..cut]).take().unwrap(), None);
        }
        let mut both = frames(&bytes);
        let first = both.take().unwrap().unwrap();
        assert_eq!(first, Frame { kind: Kind::Noise, body: vec![7, 8] });
        assert_eq!(both.take().unwrap(), Some(Frame { kind: Kind::Refused, body: vec![] }));
        assert_eq!(both.take().unwrap(), None);
    }

    #[test]
    fn other_kinds_and_lengths_are_refused_by_their_head() {
        assert!(matches!(frames(&[9, 0, 0]).take(), Err(LinkError::NotWeft)));
        assert!(matches!(frames(&[1, 1, 0x20]).take(), Err(LinkError::TooLong { len: 8193 })));
    }

    proptest! {
        #[test]
        fn no_bytes_are_taken_for_more_than_they_are(bytes: Vec<u8>) {
            let mut all = frames(&bytes);
            let mut taken = 0;
            while let Ok(Some(frame)) = all.take() {
                taken += HEAD_LEN + frame.body.len();
            }
            prop_assert_eq!(taken + all.bytes.len(), bytes.len());
        }
    }
}

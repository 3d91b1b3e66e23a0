//! A file as a stream of broadcast messages, and back.
//!
//! ```text
//! byte 0        8      9    16
//!      │ offset │ what │ 0… │ bytes of the file, or of its digest …
//! ```
//!
//! The tag of every message is the stream's own number. A part says where it belongs; the end says
//! how long the file is and carries its SHA-256, unless it is said that none comes. A part that
//! comes again adds nothing, by its offset. Messages of other streams and of no stream at all are
//! distinguished by tag and layout; the caller handles them.

use sha2::{Digest as _, Sha256};

/// Length of what comes before the bytes.
pub const HEADER_LEN: usize = 16;

const WHAT: usize = 8;
const PART: u8 = 1;
const END: u8 = 2;
const GIVEN_UP: u8 = 3;

/// Cuts a file into messages.
#[derive(Clone, Debug, Default)]
pub struct Cutter {
    offset: u64,
    digest: Sha256,
}

impl Cutter {
    /// The message that carries the next bytes of the file.
    pub fn part(&mut self, bytes: &[u8]) -> Vec<u8> {
        let message = message(self.offset, PART, bytes);
        self.offset += bytes.len() as u64;
        self.digest.update(bytes);
        message
    }

    /// The last message.
    #[must_use]
    pub fn end(&self) -> Vec<u8> {
        message(self.offset, END, &self.digest.clone().finalize())
    }

    /// The message that says, whatever came before it, that the rest does not come.
    #[must_use]
    pub fn given_up() -> Vec<u8> {
        message(0, GIVEN_UP, &[])
    }

    /// How many bytes were cut.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.offset
    }

    /// Whether nothing was cut yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.offset == 0
    }

    /// The SHA-256 of what was cut, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> String {
        hex(&self.digest.clone().finalize())
    }
}

fn message(offset: u64, what: u8, bytes: &[u8]) -> Vec<u8> {
    let mut message = vec![0; HEADER_LEN];
    message[..WHAT].copy_from_slice(&offset.to_le_bytes());
    message[WHAT] = what;
    message.extend_from_slice(bytes);
    message
}

/// Joins the messages of one stream.
#[derive(Clone, Debug, Default)]
pub struct Joiner {
    len: u64,
    digest: Sha256,
    repeated: u64,
}

/// What a message adds to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The next bytes of the file.
    Bytes(&'a [u8]),
    /// Bytes that were there already.
    Repeated,
    /// The file is complete, and is what the sender sent.
    End,
    /// The rest does not come: the sender has given up.
    GivenUp,
}

/// Why a message does not go on with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamJoinError {
    /// It is no message of a stream.
    #[error("no message of a stream")]
    Foreign,
    /// The stream began before the first message that was seen, or one is missing.
    #[error("the stream goes on at byte {found} and has only come to {at}")]
    Gap {
        /// Where the stream should go on.
        at: u64,
        /// Where the message belongs.
        found: u64,
    },
    /// All bytes are there and are not those that were sent.
    #[error("the bytes are not those that were sent")]
    Digest,
}

impl Joiner {
    /// Takes in the next message.
    ///
    /// # Errors
    /// [`StreamJoinError`]; nothing changed.
    pub fn join<'a>(&mut self, message: &'a [u8]) -> Result<Piece<'a>, StreamJoinError> {
        let (header, bytes) =
            message.split_at_checked(HEADER_LEN).ok_or(StreamJoinError::Foreign)?;
        let offset = header.first_chunk::<8>().ok_or(StreamJoinError::Foreign)?;
        let found = u64::from_le_bytes(*offset);
        let at = self.len;
        match header[WHAT] {
            PART if found < at => {
                self.repeated += 1;
                Ok(Piece::Repeated)
            }
            PART if found == at => {
                self.len += bytes.len() as u64;
                self.digest.update(bytes);
                Ok(Piece::Bytes(bytes))
            }
            PART => Err(StreamJoinError::Gap { at, found }),
            END if found != at => Err(StreamJoinError::Gap { at, found }),
            END if bytes == self.digest.clone().finalize().as_slice() => Ok(Piece::End),
            END => Err(StreamJoinError::Digest),
            GIVEN_UP => Ok(Piece::GivenUp),
            _ => Err(StreamJoinError::Foreign),
        }
    }

    /// How many bytes are there.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is there yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Messages whose bytes were there already.
    #[must_use]
    pub const fn repeated(&self) -> u64 {
        self.repeated
    }

    /// The SHA-256 of what is there, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> String {
        hex(&self.digest.clone().finalize())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_file_comes_back_whatever_is_sent_again(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..20),
            again in any::<prop::sample::Index>(),
        ) {
            let mut cutter = Cutter::default();
            let mut messages: Vec<_> = parts.iter().map(|part| cutter.part(part)).collect();
            messages.push(cutter.end());
            let at = again.index(messages.len());
            // Everything from some message on comes twice, as after a lost component.
            let sent = messages[..at].iter().chain(&messages[..at]).chain(&messages[at..]);
            let (mut joiner, mut file, mut ended) = (Joiner::default(), Vec::new(), false);
            for message in sent {
                match joiner.join(message).unwrap() {
                    Piece::Bytes(bytes) => file.extend_from_slice(bytes),
                    Piece::Repeated => {}
                    Piece::End => ended = true,
                    Piece::GivenUp => unreachable!("the sender completes the file"),
                }
            }
            prop_assert!(ended);
            prop_assert_eq!(file, parts.concat());
            prop_assert_eq!((joiner.len(), joiner.digest()), (cutter.len(), cutter.digest()));
            prop_assert_eq!(joiner.repeated(), at as u64);
        }

        #[test]
        fn bytes_that_are_no_stream_do_no_harm(message in any::<Vec<u8>>()) {
            let _ = Joiner::default().join(&message);
        }
    }

    #[test]
    fn a_stream_that_is_given_up_says_so_wherever_it_is() {
        let mut cutter = Cutter::default();
        let mut joiner = Joiner::default();
        assert_eq!(joiner.join(&Cutter::given_up()), Ok(Piece::GivenUp));
        assert_eq!(joiner.join(&cutter.part(b"one")), Ok(Piece::Bytes(b"one")));
        assert_eq!((joiner.join(&Cutter::given_up()), joiner.len()), (Ok(Piece::GivenUp), 3));
    }

    #[test]
    fn a_missing_part_and_an_altered_one_are_seen() {
        let mut cutter = Cutter::default();
        let (first, second) = (cutter.part(b"one"), cutter.part(b"two"));
        let end = cutter.end();
        let mut joiner = Joiner::default();
        assert_eq!(joiner.join(&second), Err(StreamJoinError::Gap { at: 0, found: 3 }));
        assert_eq!(joiner.join(&first), Ok(Piece::Bytes(b"one")));
        assert_eq!(joiner.join(&end), Err(StreamJoinError::Gap { at: 3, found: 6 }));
        let mut altered = second.clone();
        altered[HEADER_LEN] ^= 1;
        assert!(joiner.join(&altered).is_ok());
        assert_eq!(joiner.join(&end), Err(StreamJoinError::Digest));
        assert_eq!(joiner.join(b"short"), Err(StreamJoinError::Foreign));
    }
}

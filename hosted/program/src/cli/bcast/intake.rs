//! Which messages belong to the file that is received.
//!
//! ```text
//!                     beginning of a file          its end
//!   no file yet ─────────────────────────▶ a file ─────────▶ received
//!     │ the rest of a file that was          │ of another origin: left for the next receive
//!     │ taken before, or of none:            │ of no file: passed over, and counted
//!     └ passed over, and counted             │ a beginning: this one was cut short; it is left
//!                                            └ that it was given up: it has no end
//! ```
//!
//! A decider: it takes in one message after another, in the order of their origin. A node
//! broadcasts one file at a time, so another beginning means that the one before does not go on.

use std::fmt;

use crate::transfer::{Joiner, Piece, StreamJoinError};
use weft::node::control::DeliveredMessage;

/// How a message was classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageClass<'a> {
    /// It comes from another origin: left for a later receive.
    Left,
    /// It belongs to no file that can be received.
    PassedOver,
    /// It carries these next bytes of the file.
    Bytes(&'a [u8]),
    /// It completes the file.
    Last,
    /// It says that the sender has given up: the file has no end.
    GivenUp,
}

/// Why the file cannot be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// Its origin has begun another file. The message that begins it is left for the next receive.
    CutShort {
        /// The node that broadcast it.
        origin: u16,
        /// Bytes of it that were received.
        bytes: u64,
    },
    /// The received bytes are not those that were sent.
    Damaged {
        /// The node that broadcast it.
        origin: u16,
        /// The failed check.
        error: StreamJoinError,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutShort { origin, bytes } => {
                write!(f, "node {origin} began another file after {bytes} bytes of this one")
            }
            Self::Damaged { origin, error } => {
                write!(f, "the file of node {origin} is damaged: {error}")
            }
        }
    }
}

/// A file that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BegunFile {
    origin: u16,
    stream: u64,
    /// The number of its last message.
    last: u64,
}

/// The file that is received: the first that begins.
#[derive(Debug, Default)]
pub(super) struct Intake {
    begun: Option<BegunFile>,
    joiner: Joiner,
    messages: u64,
    passed_over: u64,
}

impl Intake {
    /// Takes in the next message.
    ///
    /// # Errors
    /// [`Broken`]; nothing changed.
    pub(super) fn take<'a>(
        &mut self,
        message: &'a DeliveredMessage,
    ) -> Result<MessageClass<'a>, Broken> {
        let DeliveredMessage { origin, tag, payload, .. } = message;
        let (origin, stream) = (*origin, *tag);
        match self.begun {
            Some(begun) if begun.origin != origin => return Ok(MessageClass::Left),
            Some(begun) if begun.stream != stream && begins(&payload.0) => {
                return Err(Broken::CutShort { origin, bytes: self.joiner.len() });
            }
            Some(begun) if begun.stream != stream => return Ok(self.pass_over()),
            None if !begins(&payload.0) => return Ok(self.pass_over()),
            Some(_) | None => {}
        }
        let piece = self.joiner.join(&payload.0);
        let piece = piece.map_err(|error| Broken::Damaged { origin, error })?;
        self.begun = Some(BegunFile { origin, stream, last: message.seq });
        self.messages += 1;
        Ok(match piece {
            Piece::Bytes(bytes) => MessageClass::Bytes(bytes),
            Piece::Repeated => MessageClass::Bytes(&[]),
            Piece::End => MessageClass::Last,
            Piece::GivenUp => MessageClass::GivenUp,
        })
    }

    /// Passes over a message that is none of a file.
    pub(super) fn pass_over<'a>(&mut self) -> MessageClass<'a> {
        self.passed_over += 1;
        MessageClass::PassedOver
    }

    /// The origin of the file, once it has begun.
    pub(super) fn origin(&self) -> Option<u16> {
        self.begun.map(|begun| begun.origin)
    }

    /// The number of the last message of the file, once it has begun.
    pub(super) fn last(&self) -> Option<u64> {
        self.begun.map(|begun| begun.last)
    }

    /// Messages of the file received so far.
    pub(super) const fn messages(&self) -> u64 {
        self.messages
    }

    /// Messages passed over because they belong to no file that can be received.
    pub(super) const fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// The part of the file received so far.
    pub(super) const fn joiner(&self) -> &Joiner {
        &self.joiner
    }
}

/// Whether a file begins with this message.
fn begins(message: &[u8]) -> bool {
    match Joiner::default().join(message) {
        Ok(Piece::Bytes(_) | Piece::Repeated | Piece::End) | Err(StreamJoinError::Digest) => true,
        Ok(Piece::GivenUp) | Err(StreamJoinError::Foreign | StreamJoinError::Gap { .. }) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::Cutter;
    use weft::node::control::Payload;

    /// A file of these parts, as messages of `origin`.
    fn file(origin: u16, stream: u64, parts: &[&str]) -> Vec<DeliveredMessage> {
        let mut cutter = Cutter::default();
        let mut payloads: Vec<_> = parts.iter().map(|part| cutter.part(part.as_bytes())).collect();
        payloads.push(cutter.end());
        let message =
            |payload| DeliveredMessage { origin, seq: 1, tag: stream, payload: Payload(payload) };
        payloads.into_iter().map(message).collect()
    }

    fn of_no_file() -> DeliveredMessage {
        let payload = Payload(b"one story for some".to_vec());
        DeliveredMessage { origin: 1, seq: 1, tag: u64::MAX, payload }
    }

    /// An intake that waits for the rest of a file of node 1.
    fn begun() -> Intake {
        let mut intake = Intake::default();
        let torso = file(1, 7, &["one ", "two"]);
        assert_eq!(intake.take(&torso[0]), Ok(MessageClass::Bytes(b"one ")));
        intake
    }

    #[test]
    fn a_file_is_taken_from_its_beginning_to_its_end() {
        let mut intake = Intake::default();
        let file = file(1, 7, &["one ", "two"]);
        let took: Vec<_> = file.iter().map(|message| intake.take(message).unwrap()).collect();
        assert_eq!(
            took,
            [MessageClass::Bytes(b"one "), MessageClass::Bytes(b"two"), MessageClass::Last]
        );
        assert_eq!((intake.origin(), intake.messages(), intake.joiner().len()), (Some(1), 3, 7));
    }

    #[test]
    fn a_beginning_of_another_file_ends_the_one_before_and_is_left() {
        for next in [file(1, 8, &["new"]), file(1, 8, &[])] {
            let mut intake = begun();
            let broken = intake.take(&next[0]);
            assert_eq!(broken, Err(Broken::CutShort { origin: 1, bytes: 4 }));
            assert_eq!((intake.messages(), intake.passed_over()), (1, 0));
            assert_eq!(
                broken.unwrap_err().to_string(),
                "node 1 began another file after 4 bytes of this one"
            );
        }
    }

    #[test]
    fn a_file_that_is_given_up_ends_with_that() {
        let given_up = |stream| {
            let payload = Payload(Cutter::given_up());
            DeliveredMessage { origin: 1, seq: 2, tag: stream, payload }
        };
        assert_eq!(Intake::default().take(&given_up(7)), Ok(MessageClass::PassedOver), "not begun");
        let mut intake = begun();
        assert_eq!(intake.take(&given_up(6)), Ok(MessageClass::PassedOver), "another one");
        assert_eq!(intake.take(&given_up(7)), Ok(MessageClass::GivenUp));
        assert_eq!((intake.joiner().len(), intake.passed_over()), (4, 1));
    }

    #[test]
    fn what_other_nodes_broadcast_meanwhile_is_left() {
        let mut intake = begun();
        assert_eq!(intake.take(&file(2, 7, &["other"])[0]), Ok(MessageClass::Left));
        assert_eq!(intake.take(&file(1, 7, &["one ", "two"])[1]), Ok(MessageClass::Bytes(b"two")));
    }

    #[test]
    fn what_belongs_to_no_file_is_passed_over_and_counted() {
        let mut intake = Intake::default();
        let rest = &file(1, 6, &["taken before", "the rest"])[1..];
        for message in [&rest[0], &rest[1], &of_no_file()] {
            assert_eq!(intake.take(message), Ok(MessageClass::PassedOver));
        }
        assert_eq!((intake.passed_over(), intake.origin()), (3, None));
        let mut intake = begun();
        assert_eq!(intake.take(&of_no_file()), Ok(MessageClass::PassedOver));
        assert_eq!(intake.take(&rest[0]), Ok(MessageClass::PassedOver));
        assert_eq!((intake.passed_over(), intake.messages()), (2, 1));
    }

    #[test]
    fn a_part_that_comes_again_adds_nothing_and_one_that_is_missing_is_seen() {
        let mut intake = begun();
        let file = file(1, 7, &["one ", "two", " three"]);
        assert_eq!(intake.take(&file[0]), Ok(MessageClass::Bytes(b"")));
        let error = StreamJoinError::Gap { at: 4, found: 7 };
        assert_eq!(intake.take(&file[2]), Err(Broken::Damaged { origin: 1, error }));
        assert_eq!(intake.joiner().repeated(), 1);
    }
}

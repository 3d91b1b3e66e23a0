//! What was sent and what became of it, and the books that must balance in the end.
//!
//! Every message carries its stream (from, to, and who wrote it) and its number in the stream.
//! A number is used once: what was refused is sent again under the next one, so that a message
//! that comes although it was refused is seen.

use std::collections::{BTreeMap, BTreeSet};

use weft::client::ClientError;
use weft::node::control::{PutOutcome, Refused, TakenMessage};

/// One writer's messages to one mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stream {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) kind: Kind,
}

/// Who writes a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Request,
    Reply,
    /// The client of this number.
    Client(u16),
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Put,
    Unknown,
    Refused,
}

/// What one writer sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) stream: Stream,
    pub(crate) fates: Vec<Fate>,
}

/// What one reader received, in order.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// The sender's incarnation, as its sequence numbers show it, and the number.
    streams: BTreeMap<Stream, Vec<(u32, usize)>>,
}

/// How many messages met which fate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) put: usize,
    pub(crate) unknown: usize,
    pub(crate) unknown_received: usize,
    pub(crate) refused: usize,
}

impl Sent {
    pub(crate) const fn new(stream: Stream) -> Self {
        Self { stream, fates: Vec::new() }
    }

    /// The next `count` messages.
    pub(crate) fn draft(&self, count: usize) -> Vec<Vec<u8>> {
        let first = self.fates.len();
        (first..first + count).map(|number| self.stream.message(number)).collect()
    }

    /// Notes what became of the draft of `count`; the error, if it is not one of a lost component.
    pub(crate) fn note(
        &mut self,
        count: usize,
        outcome: Result<PutOutcome, ClientError>,
    ) -> Result<(), ClientError> {
        let (put, unknown) = match outcome {
            Ok(outcome) => (outcome.put, outcome.unknown),
            Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => (0, count),
            Err(error) => return Err(error),
        };
        let end = self.fates.len() + count;
        self.fates.extend(std::iter::repeat_n(Fate::Put, put));
        self.fates.extend(std::iter::repeat_n(Fate::Unknown, unknown));
        assert!(self.fates.len() <= end, "more was put than was sent");
        self.fates.resize(end, Fate::Refused);
        Ok(())
    }
}

impl Received {
    /// Notes a message, which must be one that was sent, unaltered, and to this reader.
    pub(crate) fn note(&mut self, to: u16, message: &TakenMessage) -> Stream {
        self.note_payload(to, (message.from, message.incarnation), &message.payload.0)
    }

    /// As [`Self::note`], with the sender and its incarnation.
    pub(crate) fn note_payload(
        &mut self,
        to: u16,
        (from, incarnation): (u16, u16),
        payload: &[u8],
    ) -> Stream {
        let (stream, number) =
            Stream::parse(payload).unwrap_or_else(|| panic!("altered: {}", payload.escape_ascii()));
        assert_eq!((stream.from, stream.to), (from, to), "misled: {}", payload.escape_ascii());
        assert_eq!(*payload, stream.message(number), "altered");
        self.streams.entry(stream).or_default().push((u32::from(incarnation), number));
        stream
    }

    /// Which messages of a stream came.
    pub(crate) fn numbers(&self, stream: Stream) -> BTreeSet<usize> {
        let received = self.streams.get(&stream).map_or(&[][..], Vec::as_slice);
        received.iter().map(|(_, number)| *number).collect()
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.streams.extend(other.streams);
    }

    /// Asserts that what was put came once and in order, what is unknown at most once, and what
    /// was refused not at all.
    pub(crate) fn balance(&self, sent: &[Sent]) -> Tally {
        let mut tally = Tally::default();
        for Sent { stream, fates } in sent {
            let received = self.streams.get(stream).map_or(&[][..], Vec::as_slice);
            assert_order(*stream, received);
            let numbers = self.numbers(*stream);
            assert_eq!(numbers.len(), received.len(), "something of {stream:?} came twice");
            let sent = numbers.last().is_none_or(|last| *last < fates.len());
            assert!(sent, "something of {stream:?} came that was never sent");
            for (number, fate) in fates.iter().enumerate() {
                tally.count(*stream, number, *fate, numbers.contains(&number));
            }
        }
        tally
    }
}

impl Tally {
    fn count(&mut self, stream: Stream, number: usize, fate: Fate, received: bool) {
        match (fate, received) {
            (Fate::Put, true) => self.put += 1,
            (Fate::Unknown, _) => {
                self.unknown += 1;
                self.unknown_received += usize::from(received);
            }
            (Fate::Refused, false) => self.refused += 1,
            (Fate::Put, false) => panic!("message {number} of {stream:?} was put and is lost"),
            (Fate::Refused, true) => panic!("message {number} of {stream:?} was refused and came"),
        }
    }
}

/// Within one incarnation of the sender, numbers rise.
fn assert_order(stream: Stream, received: &[(u32, usize)]) {
    let mut last = BTreeMap::new();
    for (incarnation, number) in received {
        let before = last.insert(incarnation, number);
        let rises = before.is_none_or(|before| before < number);
        assert!(rises, "{stream:?} in incarnation {incarnation}: {number} after {before:?}");
    }
}

impl Stream {
    /// Message `number`: longer and shorter ones take turns.
    pub(crate) fn message(self, number: usize) -> Vec<u8> {
        let padding = ".".repeat(number * 7 % 40);
        let kind = match self.kind {
            Kind::Request => "request".to_owned(),
            Kind::Reply => "reply".to_owned(),
            Kind::Client(client) => format!("client{client}"),
        };
        format!("{} {} {kind} {number} {padding}", self.from, self.to).into_bytes()
    }

    fn parse(message: &[u8]) -> Option<(Self, usize)> {
        let mut words = std::str::from_utf8(message).ok()?.split(' ');
        let (from, to) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let kind = match words.next()? {
            "request" => Kind::Request,
            "reply" => Kind::Reply,
            kind => Kind::Client(kind.strip_prefix("client")?.parse().ok()?),
        };
        Some((Self { from, to, kind }, words.next()?.parse().ok()?))
    }
}

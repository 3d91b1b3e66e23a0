//! One sender: puts its frames in order, round after round of the input, and goes on where it
//! stopped when its component, or its whole node, dies.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::collector::hex;
use super::frame::{FrameKind, StreamFrame};
use super::nodes::Nodes;
use super::traffic::DemoTraffic;
use super::{COLLECTOR, DemoError, PATIENCE};
use weft::client::{Client, ClientError};
use weft::clock::{Deadline, now_ns};
use weft::node::control::{PutOutcome, Refused, Stopped};

/// Frames of one request.
const BATCH: usize = 64;
/// How long a full mailbox may hold up one request.
const PUT_TIMEOUT: Duration = Duration::from_secs(20);
/// How much longer a stream rests than its last request took, and at most: a stream that never
/// rests leaves those who recover no processor, on a machine with few and slow ones.
const REST: u32 = 3;
const REST_MAX: Duration = Duration::from_millis(40);
/// How often a mark is put that goes down with its component.
const MARKS_MAX: usize = 8;
/// How often a stream may be cut off, by order or not.
const LOSSES_MAX: usize = 32;
/// Answers that fit into a channel: more than there are questions.
pub(super) const ANSWERS_MAX: usize = MARKS_MAX * LOSSES_MAX;

/// The answer to "how far did I come?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resumed {
    /// Which question.
    pub(super) question: u32,
    /// The next frame that is expected.
    pub(super) next: usize,
}

/// A stream under way.
pub(super) struct MessageStream {
    nodes: Nodes,
    client: Client,
    /// One round of the input.
    frames: Arc<[StreamFrame]>,
    traffic: Arc<DemoTraffic>,
    resumed_at: Receiver<Resumed>,
    digest: Sha256,
    end: StreamEnd,
}

/// What a stream counted.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamEnd {
    pub(super) rank: u16,
    /// Frames that a node said it had put, or the collector that it had; marks not counted.
    pub(super) acknowledged: usize,
    /// Whole rounds of the input.
    pub(super) rounds: usize,
    /// Times the mailbox was found full and the put was tried again.
    pub(super) full: u64,
    /// How often the component was lost with a request under way.
    pub(super) resumed: usize,
    /// Frames that were handed to components that died and had not been put.
    pub(super) put_again: usize,
    /// SHA-256 of the lines that were put.
    pub(super) digest: String,
}

impl MessageStream {
    pub(super) fn new(
        nodes: Nodes,
        client: Client,
        frames: Arc<[StreamFrame]>,
        traffic: Arc<DemoTraffic>,
        resumed_at: Receiver<Resumed>,
    ) -> Self {
        let end = StreamEnd { rank: client.rank(), ..StreamEnd::default() };
        Self { nodes, client, frames, traffic, resumed_at, digest: Sha256::new(), end }
    }

    /// Puts the input again and again until it is enough, once at least, and the end mark.
    pub(super) fn run(mut self) -> Result<StreamEnd, DemoError> {
        let round = self.frames.len();
        let mut next = 0;
        while next < round || !self.traffic.is_enough() {
            if self.traffic.is_over() {
                return Ok(self.end);
            }
            let frames = self.frames.iter().cycle().skip(next % round).zip(next..next + BATCH);
            let batch: Vec<StreamFrame> =
                frames.map(|(frame, number)| frame.numbered(number)).collect();
            let messages: Vec<_> = batch.iter().map(StreamFrame::encode).collect();
            let began_ns = now_ns();
            let landed = match self.put(&messages)? {
                Some(outcome) => outcome.put,
                None => self.resume(next, batch.len())?,
            };
            batch[..landed].iter().for_each(|frame| frame.absorb(&mut self.digest));
            next += landed;
            let took = Duration::from_nanos(now_ns() - began_ns);
            thread::park_timeout(took.saturating_mul(REST).min(REST_MAX));
        }
        self.mark(&StreamFrame::mark(u32::try_from(next).unwrap_or(u32::MAX), FrameKind::End))?;
        self.end.acknowledged = next;
        self.end.rounds = next / round;
        self.end.digest = hex(&self.digest.finalize());
        Ok(self.end)
    }

    /// Puts a batch; nothing when the component was lost while it had it, or the whole node.
    fn put(&mut self, messages: &[Vec<u8>]) -> Result<Option<PutOutcome>, DemoError> {
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let outcome = match self.client.put(COLLECTOR, &messages, PUT_TIMEOUT) {
            Ok(outcome) => outcome,
            Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => return Ok(None),
            Err(ClientError::Unreachable { .. }) => {
                self.client = self.nodes.connect(self.end.rank)?;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        self.end.full += outcome.full;
        match outcome.stopped {
            None => Ok(Some(outcome)),
            Some(Stopped::Full) => Err(stopped("the mailbox stayed full")),
            Some(Stopped::Unreachable) => Err(stopped("the collector's node stayed away")),
            Some(Stopped::TooLong { .. }) => Err(stopped("a frame is longer than a message")),
            // A batch of frames is one request, and never split.
            Some(Stopped::Interrupted) => Err(stopped("a batch was split")),
        }
    }

    /// How many of a batch from `next` on have landed. The collector knows for certain: messages of
    /// one sender are delivered in order, so everything of the dead component is in, or never will
    /// be, before the question is.
    fn resume(&mut self, next: usize, handed: usize) -> Result<usize, DemoError> {
        self.end.resumed += 1;
        if self.end.resumed > LOSSES_MAX {
            return Err(stopped("a component was lost again and again"));
        }
        let question = u32::try_from(self.end.resumed).unwrap_or(u32::MAX);
        self.mark(&StreamFrame::mark(question, FrameKind::Resume))?;
        let deadline = Deadline::after(PATIENCE);
        let answer = loop {
            let answer = self.resumed_at.recv_timeout(deadline.remaining());
            let answer = answer.map_err(|_| stopped("the collector does not answer"))?;
            // Another's is the answer to a mark that was put twice.
            if answer.question == question {
                break answer;
            }
        };
        let landed = answer.next.checked_sub(next).filter(|landed| *landed <= handed);
        let landed = landed.ok_or_else(|| stopped("what was put has not arrived"))?;
        self.end.put_again += handed - landed;
        Ok(landed)
    }

    /// Puts a mark; one that arrives twice does no harm.
    fn mark(&mut self, mark: &StreamFrame) -> Result<(), DemoError> {
        let mark = mark.encode();
        for _ in 0..MARKS_MAX {
            if self.put(std::slice::from_ref(&mark))?.is_some() {
                return Ok(());
            }
        }
        Err(stopped("a component was lost again and again"))
    }
}

fn stopped(why: &str) -> DemoError {
    DemoError::Stopped(why.to_owned())
}

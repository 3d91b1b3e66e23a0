//! One sender: puts its frames in order, and goes on where it stopped when its component dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use super::frame::{Frame, What};
use super::{DemoError, PATIENCE};
use crate::client::{Client, ClientError};
use crate::node::control::{PutOutcome, Refused, Stopped};

/// Frames of one request.
const BATCH: usize = 64;
/// How long a full mailbox may hold up one request.
const PUT_TIMEOUT: Duration = Duration::from_secs(20);

/// A stream under way.
pub(super) struct Stream {
    client: Client,
    to: u16,
    frames: Arc<[Frame]>,
    /// At which frame to have the own component killed, and whom to tell.
    kill_at: Option<(usize, SyncSender<()>)>,
    resumed_at: Receiver<usize>,
    end: StreamEnd,
}

/// What a stream counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamEnd {
    pub(super) rank: u16,
    /// Frames that a node said it had put, marks not counted.
    pub(super) acknowledged: usize,
    /// Times the mailbox was found full and the put was tried again.
    pub(super) full: u64,
    /// How far the stream had come when the component was lost, as the collector tells.
    pub(super) resumed_at: Option<usize>,
    /// Frames that were handed to the component that died and had not been put.
    pub(super) put_again: usize,
}

impl Stream {
    pub(super) fn new(
        client: Client,
        to: u16,
        frames: Arc<[Frame]>,
        kill_at: Option<(usize, SyncSender<()>)>,
        resumed_at: Receiver<usize>,
    ) -> Self {
        let end = StreamEnd { rank: client.rank(), ..StreamEnd::default() };
        Self { client, to, frames, kill_at, resumed_at, end }
    }

    /// Puts every frame and the end mark.
    pub(super) fn run(mut self, interrupted: &AtomicBool) -> Result<StreamEnd, DemoError> {
        let mut next = 0;
        while next < self.frames.len() {
            if interrupted.load(Ordering::Relaxed) {
                return Err(DemoError::Interrupted);
            }
            if let Some((_, kill)) = self.kill_at.take_if(|(at, _)| next >= *at) {
                // The killer waits for nothing else, so there is room.
                kill.try_send(()).map_err(|_| stopped("the killer is gone"))?;
            }
            // Up to the frame at which the kill is due, so that none is passed unseen.
            let due = self.kill_at.as_ref().map_or(usize::MAX, |(at, _)| *at);
            let batch = next..self.frames.len().min(next + BATCH).min(due);
            let handed = batch.len();
            let messages: Vec<_> = self.frames[batch].iter().map(Frame::encode).collect();
            match self.put(&messages)? {
                Some(outcome) => {
                    self.end.acknowledged += outcome.put;
                    next += outcome.put;
                }
                None => {
                    let resumed_at = self.resume()?;
                    let unknown = resumed_at.checked_sub(next);
                    let landed = unknown.ok_or_else(|| stopped("what was put has not arrived"))?;
                    self.end.acknowledged += landed;
                    self.end.put_again = handed.saturating_sub(landed);
                    self.end.resumed_at = Some(resumed_at);
                    next = resumed_at;
                }
            }
        }
        self.mark(What::End)?;
        Ok(self.end)
    }

    /// Puts a batch; nothing when the component was lost while it had it.
    fn put(&mut self, messages: &[Vec<u8>]) -> Result<Option<PutOutcome>, DemoError> {
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let outcome = match self.client.put(self.to, &messages, PUT_TIMEOUT) {
            Ok(outcome) => outcome,
            Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.end.full += outcome.full;
        match outcome.stopped {
            None => Ok(Some(outcome)),
            Some(Stopped::Full) => Err(stopped("the mailbox stayed full")),
            Some(Stopped::Unreachable) => Err(stopped("the collector's node stayed away")),
            Some(Stopped::TooLong { .. }) => Err(stopped("a frame is longer than a message")),
        }
    }

    /// Asks the collector how far it came. Its answer is certain: messages of one sender are
    /// delivered in order, so everything of the dead component is in before the question is.
    fn resume(&mut self) -> Result<usize, DemoError> {
        self.mark(What::Resume)?;
        self.resumed_at.recv_timeout(PATIENCE).map_err(|_| stopped("the collector does not answer"))
    }

    fn mark(&mut self, what: What) -> Result<(), DemoError> {
        let number = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        let mark = Frame::mark(number, what).encode();
        // Once more if the component is lost; a mark that arrives twice does no harm.
        for _ in 0..2 {
            if self.put(std::slice::from_ref(&mark))?.is_some() {
                return Ok(());
            }
        }
        Err(stopped("the component was lost again and again"))
    }
}

fn stopped(why: &str) -> DemoError {
    DemoError::Stopped(why.to_owned())
}

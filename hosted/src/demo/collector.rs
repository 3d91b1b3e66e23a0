//! The receiving side: counts, checks every number and hash, and keeps a digest per stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use sha2::{Digest as _, Sha256};

use super::frame::{Frame, What};
use super::{DemoError, PATIENCE};
use crate::client::Inbox;
use crate::node::control::{MESSAGES_MAX, TakenMessage};

/// What arrived of one stream.
#[derive(Clone, Default)]
pub(super) struct Received {
    /// The next frame number that is expected.
    pub(super) next: usize,
    /// Frames.
    pub(super) frames: u64,
    /// Lines.
    pub(super) lines: u64,
    /// Frames whose number had been before.
    pub(super) duplicated: u64,
    /// Frames whose number was skipped.
    pub(super) missing: u64,
    digest: Sha256,
    ended: bool,
}

impl Received {
    /// Frames that are missing, those behind the last one included.
    pub(super) fn lost(&self, total: usize) -> u64 {
        self.missing + total.saturating_sub(self.next) as u64
    }

    pub(super) fn digest(&self) -> String {
        hex(&self.digest.clone().finalize())
    }
}

/// Collects the streams of all senders.
pub(super) struct Collector {
    total: usize,
    digest: String,
    /// By rank of the sender.
    pub(super) streams: Vec<Received>,
    /// Messages that are no frame, or from nobody who streams.
    pub(super) altered: u64,
    /// To whom to answer how far it came.
    resumes: Vec<SyncSender<usize>>,
}

impl Collector {
    pub(super) fn new(frames: &Arc<[Frame]>, resumes: Vec<SyncSender<usize>>) -> Self {
        let mut digest = Sha256::new();
        frames.iter().for_each(|frame| absorb(&mut digest, frame));
        Self {
            total: frames.len(),
            digest: hex(&digest.finalize()),
            streams: vec![Received::default(); resumes.len()],
            altered: 0,
            resumes,
        }
    }

    /// Takes messages until every stream has ended.
    pub(super) fn collect(
        &mut self,
        inbox: &mut Inbox,
        interrupted: &AtomicBool,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<(), DemoError> {
        let all = (self.total * self.streams.len()) as u64;
        let mut arrived = 0;
        while self.streams.iter().any(|stream| !stream.ended) {
            if interrupted.load(Ordering::Relaxed) {
                return Err(DemoError::Interrupted);
            }
            let messages = inbox.receive(MESSAGES_MAX, PATIENCE)?;
            if messages.is_empty() {
                let why = format!("nothing arrived for {} s", PATIENCE.as_secs());
                return Err(DemoError::Stopped(why));
            }
            arrived += messages.len() as u64;
            messages.iter().for_each(|message| self.note(message));
            progress(arrived.min(all), all);
        }
        Ok(inbox.release()?)
    }

    fn note(&mut self, message: &TakenMessage) {
        let sender = usize::from(message.from);
        let (Ok(frame), Some(stream)) =
            (Frame::decode(&message.payload.0), self.streams.get_mut(sender))
        else {
            self.altered += 1;
            return;
        };
        match frame.what {
            What::Resume => {
                // The channel holds one answer; a question asked twice has the same one.
                let _ = self.resumes[sender].try_send(stream.next);
            }
            What::End => stream.ended = true,
            What::Part | What::LineEnd => {
                let number = frame.number as usize;
                if number < stream.next {
                    stream.duplicated += 1;
                    return;
                }
                stream.missing += (number - stream.next) as u64;
                stream.next = number + 1;
                stream.frames += 1;
                stream.lines += u64::from(frame.what == What::LineEnd);
                absorb(&mut stream.digest, &frame);
            }
        }
    }

    /// Frames of each stream.
    pub(super) const fn total(&self) -> usize {
        self.total
    }

    /// The digest that every stream must have.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }
}

fn absorb(digest: &mut Sha256, frame: &Frame) {
    digest.update(&frame.text);
    if frame.what == What::LineEnd {
        digest.update(b"\n");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

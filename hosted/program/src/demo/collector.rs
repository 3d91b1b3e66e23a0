//! The receiving side: counts, checks every number and hash, and keeps a digest per stream.
//!
//! A component that is killed while it copies a batch may have written later slots of it and not
//! the earlier ones. What arrives beyond such a gap is set aside: its put was never acknowledged,
//! and it is put again behind the gap. If a gap is never closed, everything behind it is lost.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::frame::{FrameKind, StreamFrame};
use super::stream::Resumed;
use super::traffic::{ArrivalCounts, DemoTraffic};
use super::{DemoError, PATIENCE};
use weft::client::Inbox;
use weft::clock::{Deadline, now_ns};
use weft::node::control::{MESSAGES_MAX, TakenMessage};

/// How often is asked whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What arrived of one stream.
#[derive(Clone, Default)]
pub(super) struct Received {
    /// The next frame number that is expected.
    next: usize,
    /// Frames.
    pub(super) frames: u64,
    /// Lines.
    pub(super) lines: u64,
    /// Frames whose number had been before.
    pub(super) duplicated: u64,
    /// Frames beyond a gap: they do not count as received.
    pub(super) put_aside: u64,
    digest: Sha256,
    ended: bool,
}

impl Received {
    /// Of so many frames, those that are missing at the end of the stream.
    pub(super) fn lost(&self, total: usize) -> u64 {
        total.saturating_sub(self.next) as u64
    }

    fn note(&mut self, frame: &StreamFrame) {
        match (frame.number as usize).cmp(&self.next) {
            Less => self.duplicated += 1,
            Greater => self.put_aside += 1,
            Equal => {
                self.next += 1;
                self.frames += 1;
                self.lines += u64::from(frame.what == FrameKind::LineEnd);
                frame.absorb(&mut self.digest);
            }
        }
    }

    pub(super) fn digest(&self) -> String {
        hex(&self.digest.clone().finalize())
    }
}

/// Collects the streams of all senders.
pub(super) struct Collector {
    /// By rank of the sender.
    pub(super) streams: Vec<Received>,
    /// When what arrived.
    pub(super) flow: ArrivalCounts,
    /// Messages that are no frame, or whose sender has no stream.
    pub(super) altered: u64,
    /// To whom to answer how far it came.
    resumes: Vec<SyncSender<Resumed>>,
    traffic: Arc<DemoTraffic>,
}

impl Collector {
    pub(super) fn new(resumes: Vec<SyncSender<Resumed>>, traffic: Arc<DemoTraffic>) -> Self {
        let streams = vec![Received::default(); resumes.len()];
        Self { streams, flow: ArrivalCounts::new(now_ns()), altered: 0, resumes, traffic }
    }

    /// Takes messages until every stream has ended, or some thread cannot go on.
    pub(super) fn collect(
        &mut self,
        inbox: &mut Inbox,
        mut progress: impl FnMut(&DemoTraffic),
    ) -> Result<(), DemoError> {
        let mut silent = Deadline::after(PATIENCE);
        while self.streams.iter().any(|stream| !stream.ended) {
            if self.traffic.is_interrupted() {
                return Err(DemoError::Interrupted);
            }
            if self.traffic.is_over() {
                return Ok(());
            }
            let messages = inbox.receive(MESSAGES_MAX, LOOK_EVERY)?;
            let at_ns = now_ns();
            messages.iter().for_each(|message| self.note(at_ns, message));
            if !messages.is_empty() {
                silent = Deadline::after(PATIENCE);
            } else if silent.has_passed() {
                let why = format!("nothing arrived for {} s", PATIENCE.as_secs());
                return Err(DemoError::Stopped(why));
            }
            progress(&self.traffic);
        }
        Ok(inbox.release()?)
    }

    fn note(&mut self, at_ns: u64, message: &TakenMessage) {
        let sender = usize::from(message.from);
        let (Ok(frame), Some(stream)) =
            (StreamFrame::decode(&message.payload.0), self.streams.get_mut(sender))
        else {
            self.altered += 1;
            return;
        };
        match frame.what {
            FrameKind::Resume => {
                let answer = Resumed { question: frame.number, next: stream.next };
                // There is room for every time that a question may be put.
                let _ = self.resumes[sender].try_send(answer);
            }
            FrameKind::End => stream.ended = true,
            FrameKind::Part | FrameKind::LineEnd => {
                stream.note(&frame);
                self.flow.note(at_ns, sender);
                self.traffic.note_arrived(sender);
            }
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u32) -> StreamFrame {
        StreamFrame {
            number,
            what: FrameKind::LineEnd,
            text: format!("line {number}").into_bytes(),
        }
    }

    #[test]
    fn what_lands_beyond_a_gap_is_put_aside_and_taken_when_it_comes_again() {
        let (mut torn, mut whole) = (Received::default(), Received::default());
        // 2 and 3 landed, 1 died with its writer, and the next incarnation continues behind 0.
        for number in [0, 2, 3, 1, 2, 3] {
            torn.note(&frame(number));
        }
        for number in [0, 1, 2, 3] {
            whole.note(&frame(number));
        }
        assert_eq!((torn.frames, torn.put_aside, torn.duplicated), (4, 2, 0));
        assert_eq!((torn.lost(4), torn.digest()), (0, whole.digest()));
    }

    #[test]
    fn a_gap_that_stays_open_is_a_loss_and_a_number_that_was_taken_a_duplicate() {
        let mut stream = Received::default();
        for number in [0, 2, 0] {
            stream.note(&frame(number));
        }
        assert_eq!((stream.lost(3), stream.duplicated), (2, 1));
    }
}

//! Polling: completions, the marker, the deadline.
//!
//! The deadline (F-12) is looked at only when the device has nothing more to report, so that a
//! poster that was away for long finds its completions and not a loss. It counts for signalled
//! work alone: unsignalled work at the tail is no debt of the device's until a marker covers it,
//! which happens after a quarter of the deadline.
//!
//! A lost pair's work is ended by the device, as flushed. Should it not be within
//! [`FLUSH_GRACE`], the pair is destroyed and the work ended here.

use weft_core::fabric::Completion;
use weft_core::time::{Duration, Instant};

use super::{Loss, Pair, State};
use crate::HostMemory;
use crate::completion::{BATCH, WorkEnd};

/// How long the device may take to flush a lost pair.
const FLUSH_GRACE: Duration = Duration::from_millis(1_000);

impl<M: HostMemory> Pair<M> {
    /// Moves ends of work into `done`; returns how many.
    pub(crate) fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        if self.queue.is_empty() || done.is_empty() {
            return 0;
        }
        self.queue.see(now);
        let room = done.len().min(BATCH);
        let ends = self.completions.poll(room);
        let mut count = 0;
        for end in ends.iter() {
            if let Some(completion) = self.take(end) {
                done[count] = completion;
                count += 1;
            }
        }
        self.release();
        if ends.len() < room {
            count += self.look_at_the_clock(now, &mut done[count..]);
        }
        count
    }

    fn take(&mut self, end: WorkEnd) -> Option<Completion> {
        if end.outcome.is_err() {
            // The device has moved the pair to error already; that it may resist is no news.
            let _ = self.lose(Loss::Device);
        }
        let ended = self.queue.end(end.place, end.outcome)?;
        Some(self.report(ended))
    }

    fn look_at_the_clock(&mut self, now: Instant, done: &mut [Completion]) -> usize {
        let deadline = self.config.deadline;
        let is_past =
            |since: Option<Instant>, span| since.is_some_and(|since| now >= since.after(span));
        match &self.state {
            State::Open(_) if is_past(self.queue.owed_since(), deadline) => {
                // A pair that resists is closed, and its work ended at the next poll.
                let _ = self.lose(Loss::Deadline(now));
                0
            }
            State::Open(_) => {
                if is_past(self.queue.uncovered_since(), Duration(deadline.0 / 4)) {
                    self.post_marker();
                }
                0
            }
            State::Failed(_) if !self.is_flushing() => self.abandon_into(done),
            State::Failed(_) => {
                let lost_at = *self.lost_at.get_or_insert(now);
                if now >= lost_at.after(FLUSH_GRACE) {
                    self.state = State::Closed;
                }
                0
            }
            State::Prepared(_) | State::Closed => self.abandon_into(done),
        }
    }

    /// Ends as much work as fits, without the device.
    fn abandon_into(&mut self, done: &mut [Completion]) -> usize {
        let mut count = 0;
        while count < done.len() {
            let Some(ended) = self.abandon() else { break };
            if let Some(ended) = ended {
                done[count] = self.report(ended);
                count += 1;
            }
        }
        count
    }
}

//! The flag of a component: what it has done, in words that its node's I'm-Alive Task reads.
//!
//! ```text
//!   word 0   generation << 32 | how often its timers went off
//!   word 1   heard while timers were late << 32 | how many messages it has handled
//!   word 2   passes of the supervisor's main loop      ┐ read by the component, which watches its
//!   word 3   passes of the node's I'm-Alive Task       ┘ supervisor in turn
//! ```
//!
//! One segment of the supervisor. The first two words are written by the component alone, the
//! others by one thread of the supervisor each. Each word is stored whole, and nothing is made of
//! them together. A loop that hangs leaves its words as they are.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use weft_core::dirnet::Progress;

use super::{Mapping, Segment, SegmentError};

/// A component's flag, as one process maps it.
#[derive(Debug)]
pub struct Flag {
    words: Mapping,
}

impl Flag {
    /// Length of the segment in bytes.
    pub const SEGMENT_LEN: usize = 4096;

    /// Creates the segment of a flag, to be mapped by [`Flag::open`] wherever it is passed.
    ///
    /// # Errors
    /// As [`Segment::create`].
    pub fn segment(name: &str) -> Result<Segment, SegmentError> {
        Segment::create(name, Self::SEGMENT_LEN)
    }

    /// Maps the flag behind the writable descriptor of its segment.
    ///
    /// # Errors
    /// [`SegmentError`] if the descriptor is of anything else.
    pub fn open(fd: BorrowedFd<'_>) -> Result<Self, SegmentError> {
        Ok(Self { words: Mapping::writable(fd, Self::SEGMENT_LEN)? })
    }

    /// Says what was done so far.
    pub fn store(&self, progress: Progress) {
        let [timers, messages, ..] = self.words.words() else { return };
        let word = u64::from(progress.generation) << 32 | u64::from(progress.timers);
        timers.store(word, Ordering::Relaxed);
        let word = u64::from(progress.heard_late) << 32 | u64::from(progress.messages);
        messages.store(word, Ordering::Relaxed);
    }

    /// What was done so far.
    #[must_use]
    pub fn load(&self) -> Progress {
        let [timers, messages, ..] = self.words.words() else { return Progress::default() };
        let (word, messages) = (timers.load(Ordering::Relaxed), messages.load(Ordering::Relaxed));
        #[expect(clippy::cast_possible_truncation, reason = "halves of words")]
        let progress = Progress {
            generation: (word >> 32) as u32,
            timers: word as u32,
            messages: messages as u32,
            heard_late: (messages >> 32) as u32,
        };
        progress
    }

    /// The supervisor's main loop has made a pass.
    pub fn note_supervisor(&self) {
        self.note_pass(2);
    }

    /// The I'm-Alive Task has made a pass.
    pub fn note_task(&self) {
        self.note_pass(3);
    }

    /// How many passes the supervisor's main loop and the I'm-Alive Task have made.
    #[must_use]
    pub fn supervision(&self) -> [u64; 2] {
        let [_, _, supervisor, task, ..] = self.words.words() else { return [0; 2] };
        [supervisor.load(Ordering::Relaxed), task.load(Ordering::Relaxed)]
    }

    fn note_pass(&self, word: usize) {
        if let Some(word) = self.words.words().get(word) {
            word.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_seen_through_another_mapping() {
        let segment = Flag::segment("weft-test-flag").unwrap();
        let component = Flag::open(segment.writable_fd()).unwrap();
        let task = Flag::open(segment.writable_fd()).unwrap();
        assert_eq!(task.load(), Progress::default());
        let progress = Progress { generation: 3, timers: u32::MAX, messages: 7, heard_late: 9 };
        component.store(progress);
        assert_eq!(task.load(), progress);
        task.note_task();
        task.note_supervisor();
        task.note_supervisor();
        assert_eq!((component.supervision(), component.load()), ([2, 1], progress));
    }
}

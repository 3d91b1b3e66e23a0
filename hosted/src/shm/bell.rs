//! The bell of one endpoint: rung by peers that have left work in its memory.
//!
//! A page of its own, which every peer may write, holding one word in one cache line: busy
//! mailboxes share no line with it. While the owner is awake a ring costs a fence and a load of a
//! line that no process writes; only the ring for a sleeper costs a system call.
//!
//! A bell carries no information. A woken thread looks for work everywhere, and finding none
//! is no error. Lost wake-ups are excluded between processes that keep to the armed word;
//! for one that dies half-way, or writes nonsense, the sleeper's timeout and [`Bell::ring`] remain.

use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU32;

use rustix::io::Errno;
use rustix::thread::futex;
use weft_core::fabric::arm::{ARMED, ArmWord, Duty};

use super::pages::Pages;
use super::{BellError, Segment, SegmentError};
use crate::clock::Deadline;
use crate::readiness::timespec_until;

/// All sleepers: a stopped predecessor of the owner may be queued ahead of it.
const ALL_SLEEPERS: u32 = i32::MAX as u32;

/// One endpoint's bell, mapped by its owner and by all who ring it.
#[derive(Debug)]
pub struct Bell {
    page: Pages,
}

/// What ringing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// The owner was awake and needed no wake-up.
    Unneeded,
    /// The owner was woken, or turned back on its way to sleep.
    Rung,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sleep {
    /// By a ring, a signal, or at once because the word was not armed any more.
    Over,
    TimedOut,
}

impl Bell {
    /// Length of a bell's segment in bytes.
    pub const SEGMENT_LEN: usize = 4096;

    /// Creates the segment of a bell, to be mapped by [`Bell::open`] wherever it is passed.
    ///
    /// # Errors
    /// As [`Segment::create`].
    pub fn segment(name: &str) -> Result<Segment, SegmentError> {
        Segment::create(name, Self::SEGMENT_LEN)
    }

    /// Maps the bell behind the writable descriptor of its segment.
    ///
    /// # Errors
    /// [`SegmentError`] if the descriptor is of anything else.
    pub fn open(fd: BorrowedFd<'_>) -> Result<Self, SegmentError> {
        Ok(Self { page: Pages::writable(fd, Self::SEGMENT_LEN)? })
    }

    /// Wakes the owner if it sleeps or is about to; to be called after work has been stored.
    ///
    /// # Errors
    /// [`BellError::Wake`].
    pub fn ring_if_armed(&self) -> Result<Ring, BellError> {
        match self.arm_word().start_ring() {
            Duty::Nothing => Ok(Ring::Unneeded),
            Duty::Wake => self.wake(),
        }
    }

    /// Wakes the owner whatever its word says: for a supervisor that saw a peer die, perhaps in
    /// the middle of ringing. An owner that is awake is not notified: what it must find
    /// must be stored before, and it will look once more before it sleeps.
    ///
    /// # Errors
    /// [`BellError::Wake`].
    pub fn ring(&self) -> Result<Ring, BellError> {
        self.arm_word().start_forced_ring();
        self.wake()
    }

    /// Sleeps while the word is armed.
    pub(super) fn sleep(&self, deadline: Deadline) -> Result<Sleep, BellError> {
        let timeout = timespec_until(deadline);
        // Not PRIVATE: the ringers are other processes.
        match futex::wait(self.word(), futex::Flags::empty(), ARMED, Some(&timeout)) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(Sleep::Over),
            Err(Errno::TIMEDOUT) => Ok(Sleep::TimedOut),
            Err(errno) => Err(BellError::Sleep(errno)),
        }
    }

    pub(super) fn arm_word(&self) -> ArmWord<'_> {
        ArmWord(self.word())
    }

    fn wake(&self) -> Result<Ring, BellError> {
        // The kernel orders our change of the word before its look for sleepers.
        futex::wake(self.word(), futex::Flags::empty(), ALL_SLEEPERS).map_err(BellError::Wake)?;
        self.arm_word().finish_ring();
        Ok(Ring::Rung)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is mapped readable and writable while it is borrowed, its base is
        // aligned, and every bit pattern is a valid `u32`. The mapping belongs to this bell
        // alone, so all accesses through it are atomic and of this one size.
        unsafe { self.page.base().cast::<AtomicU32>().as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn quiet_bell_needs_no_ring_in_any_mapping() {
        let segment = Bell::segment("weft-test-bell").unwrap();
        let owner = Bell::open(segment.writable_fd()).unwrap();
        let peer = Bell::open(segment.writable_fd()).unwrap();
        assert_eq!(peer.ring_if_armed(), Ok(Ring::Unneeded));
        owner.arm_word().arm();
        assert_eq!(peer.ring_if_armed(), Ok(Ring::Rung));
        assert_eq!(peer.ring_if_armed(), Ok(Ring::Unneeded));
        assert_eq!(peer.ring(), Ok(Ring::Rung));
        assert_eq!(peer.ring_if_armed(), Ok(Ring::Unneeded));
    }

    #[test]
    fn sleep_on_an_unarmed_word_is_over_at_once() {
        let segment = Bell::segment("weft-test-bell").unwrap();
        let bell = Bell::open(segment.writable_fd()).unwrap();
        let deadline = Deadline::after(Duration::from_secs(3600));
        assert_eq!(bell.sleep(deadline), Ok(Sleep::Over));
        bell.arm_word().arm();
        bell.ring().unwrap();
        assert_eq!(bell.sleep(deadline), Ok(Sleep::Over));
    }

    #[test]
    fn other_segments_are_no_bells() {
        let segment = Segment::create("weft-test", 8).unwrap();
        let refused = Bell::open(segment.writable_fd()).map(drop);
        let expected = Bell::SEGMENT_LEN;
        assert_eq!(refused, Err(SegmentError::WrongSize { expected, found: 8 }));
    }
}

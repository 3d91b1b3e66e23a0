//! Waiting for one descriptor: poll(2) against a fixed end.
//!
//! The single place where the crate blocks on a descriptor. A signal interrupts poll(2); the
//! loop then waits for what is left of the deadline, never for the whole timeout again.
//!
//! Ready means "worth trying": another thread may take the packet or the connection first, so
//! callers try without blocking and come back here.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::clock::Deadline;

/// How a wait for a descriptor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// An event, an error or a hang-up is there.
    Ready,
    /// The deadline has passed.
    TimedOut,
}

/// Waits until `fd` shows one of `events`, an error or a hang-up.
pub fn await_events(
    fd: BorrowedFd<'_>,
    events: PollFlags,
    deadline: Deadline,
) -> Result<Readiness, Errno> {
    loop {
        let mut fds = [PollFd::from_borrowed_fd(fd, events)];
        match poll(&mut fds, Some(&timespec_until(deadline))) {
            Ok(0) if deadline.has_passed() => return Ok(Readiness::TimedOut),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(Readiness::Ready),
            Err(errno) => return Err(errno),
        }
    }
}

/// Waits until one of `fds` shows what it is watched for, an error or a hang-up, or a signal comes,
/// or `timeout` has passed; which of them do stands in `fds`.
pub fn await_any(fds: &mut [PollFd<'_>], timeout: Duration) -> Result<(), Errno> {
    match poll(fds, Some(&timespec_until(Deadline::after(timeout)))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// What is left of `deadline` as the kernel wants it.
pub fn timespec_until(deadline: Deadline) -> Timespec {
    let left = deadline.remaining();
    Timespec {
        // At most u64::MAX nanoseconds are left, which is far below i64::MAX seconds.
        tv_sec: left.as_secs().cast_signed(),
        tv_nsec: left.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;
    use std::os::fd::AsFd;

    #[test]
    fn readable_descriptor_is_ready_even_with_no_time_left() {
        let (reader, writer) = pipe().unwrap();
        rustix::io::write(&writer, b"x").unwrap();
        let readiness =
            await_events(reader.as_fd(), PollFlags::IN, Deadline::after(Duration::ZERO));
        assert_eq!(readiness, Ok(Readiness::Ready));
    }

    #[test]
    fn silent_descriptor_times_out() {
        let (reader, _writer) = pipe().unwrap();
        let deadline = Deadline::after(Duration::from_millis(5));
        let readiness = await_events(reader.as_fd(), PollFlags::IN, deadline);
        assert_eq!(readiness, Ok(Readiness::TimedOut));
        assert!(deadline.has_passed());
    }

    #[test]
    fn hang_up_counts_as_ready() {
        let (reader, writer) = pipe().unwrap();
        drop(writer);
        let deadline = Deadline::after(Duration::from_secs(60));
        assert_eq!(await_events(reader.as_fd(), PollFlags::IN, deadline), Ok(Readiness::Ready));
    }
}

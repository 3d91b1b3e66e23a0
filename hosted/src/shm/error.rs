//! Why memory was not shared, and why a bell was not heard.
//!
//! A wrong descriptor from a peer is distinguished from a refusal of the operating system, because
//! only the first counts against the peer. A bell fails only
//! if the kernel has no futex for us (a sandbox) or if the page cannot be touched any more.

use rustix::fs::SealFlags;
use std::io;

use rustix::io::Errno;

use super::Segment;

/// Why a segment was not created or not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The length is zero or no multiple of a word.
    #[error("segment: length {len} is not a positive multiple of {}", Segment::WORD_LEN)]
    Length {
        /// The length asked for in bytes.
        len: usize,
    },
    /// The descriptor's size can still change under us, or it is no shared memory at all.
    #[error("map: shared memory lacks the seals {missing:?}")]
    Unsealed {
        /// The seals it lacks.
        missing: SealFlags,
    },
    /// The descriptor's memory is shorter or longer than agreed.
    #[error("map: shared memory of {found} bytes where {expected} were agreed")]
    WrongSize {
        /// The length agreed on in bytes.
        expected: usize,
        /// Its size in bytes.
        found: u64,
    },
    /// Not as many descriptors as the layout calls for.
    #[error("map: {found} descriptors where the layout has {expected}")]
    Count {
        /// As the layout says.
        expected: usize,
        /// As received.
        found: usize,
    },
    /// A system call that failed.
    #[error("{call}: {errno}")]
    Os {
        /// The system call.
        call: &'static str,
        /// What the kernel said.
        #[source]
        errno: Errno,
    },
}

impl SegmentError {
    /// A segment that cannot be written.
    pub(crate) fn unwritten(error: &io::Error) -> Self {
        Self::Os { call: "write", errno: Errno::from_io_error(error).unwrap_or(Errno::IO) }
    }

    /// Names the call for an errno, to be used with `map_err`.
    pub(super) fn os(call: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Os { call, errno }
    }
}

/// A bell that could not be rung or waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BellError {
    /// The sleeper could not be woken.
    #[error("futex wake: {0}")]
    Wake(#[source] Errno),
    /// The waiter could not go to sleep.
    #[error("futex wait: {0}")]
    Sleep(#[source] Errno),
}

//! Why memory was not shared, and why a bell was not heard.
//!
//! A wrong descriptor from a peer is distinguished from a refusal of the operating system, because
//! only the first counts against the peer. A bell fails only
//! if the kernel has no futex for us (a sandbox) or if the page cannot be touched any more.

use std::error::Error;
use std::fmt;

use rustix::fs::SealFlags;
use rustix::io::Errno;

use super::Segment;

/// Why a segment was not created or not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentError {
    /// The length is zero or no multiple of a word.
    Length {
        /// The length asked for in bytes.
        len: usize,
    },
    /// The descriptor's size can still change under us, or it is no shared memory at all.
    Unsealed {
        /// The seals it lacks.
        missing: SealFlags,
    },
    /// The descriptor's memory is shorter or longer than agreed.
    WrongSize {
        /// The length agreed on in bytes.
        expected: usize,
        /// Its size in bytes.
        found: u64,
    },
    /// Not as many descriptors as the layout calls for.
    Count {
        /// As the layout says.
        expected: usize,
        /// As received.
        found: usize,
    },
    /// A system call that failed.
    Os {
        /// The system call.
        call: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
}

impl SegmentError {
    /// Names the call for an errno, to be used with `map_err`.
    pub(super) fn os(call: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Os { call, errno }
    }
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { len } => {
                let word = Segment::WORD_LEN;
                write!(f, "segment: length {len} is not a positive multiple of {word}")
            }
            Self::Unsealed { missing } => {
                write!(f, "map: shared memory lacks the seals {missing:?}")
            }
            Self::WrongSize { expected, found } => {
                write!(f, "map: shared memory of {found} bytes where {expected} were agreed")
            }
            Self::Count { expected, found } => {
                write!(f, "map: {found} descriptors where the layout has {expected}")
            }
            Self::Os { call, errno } => write!(f, "{call}: {errno}"),
        }
    }
}

impl Error for SegmentError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Os { errno, .. } => Some(errno),
            Self::Length { .. }
            | Self::Unsealed { .. }
            | Self::WrongSize { .. }
            | Self::Count { .. } => None,
        }
    }
}

/// A bell that could not be rung or waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BellError {
    /// The sleeper could not be woken.
    Wake(Errno),
    /// The waiter could not go to sleep.
    Sleep(Errno),
}

impl fmt::Display for BellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wake(errno) => write!(f, "futex wake: {errno}"),
            Self::Sleep(errno) => write!(f, "futex wait: {errno}"),
        }
    }
}

impl Error for BellError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Wake(errno) | Self::Sleep(errno) => Some(errno),
        }
    }
}

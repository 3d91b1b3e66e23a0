//! What is posted and what comes back.

use core::fmt;

use bitflags::bitflags;

use super::{Access, INLINE_LEN, Layout, Region, RegionSpec};
use crate::ids::Peer;

/// The poster's own name for a work, handed back in its [`Completion`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WorkId(pub u64);

impl WorkId {
    /// No work: the peer of this completion has ended (F-6).
    pub const GONE: Self = Self::new(u8::MAX, 0);

    /// A name that says which machine posted the work: `machine` in the high byte, the
    /// machine's own `detail` in the low 56 bits.
    #[must_use]
    pub const fn new(machine: u8, detail: u64) -> Self {
        Self((machine as u64) << 56 | detail & (u64::MAX >> 8))
    }

    /// Which machine posted the work.
    #[must_use]
    pub const fn machine(self) -> u8 {
        (self.0 >> 56) as u8
    }

    /// The machine's own part.
    #[must_use]
    pub const fn detail(self) -> u64 {
        self.0 & (u64::MAX >> 8)
    }
}

/// An address in an endpoint: a region and a byte offset into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct At {
    /// Which region.
    pub region: Region,
    /// How many bytes into it.
    pub offset: u32,
}

bitflags! {
    /// How a work ends, and whom it concerns.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct CompletionFlags: u8 {
        /// Success is not reported by a completion of its own; failure always is.
        const QUIET = 1;
        /// When the work is done, wake the peer's loop if it sleeps. Without it a sleeping peer
        /// sees the bytes when it next wakes for another reason.
        const WAKE = 2;
        /// A write that asks for no order against earlier reads and atomics to the same peer: it
        /// may take effect before they have. Earlier writes stay before it, and all later work
        /// stays behind it and behind them (F-1). On other work it changes nothing.
        ///
        /// A device may begin a write while an earlier read is under way, so a fabric over verbs
        /// keeps other writes back until such reads have ended. A small write that no read must
        /// precede need not wait for a long one.
        const APART = 4;
    }
}

/// One operation on a peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Copies `bytes`, at most [`super::INLINE_LEN`], to `to`. Copied before `post` returns.
    Write {
        /// Where in the peer.
        to: At,
        /// What.
        bytes: &'a [u8],
    },
    /// Copies `len` bytes of my own region to `to`. They must stay untouched until completion.
    WriteFrom {
        /// Where in the peer.
        to: At,
        /// Where in me.
        from: At,
        /// How many bytes.
        len: u32,
    },
    /// Copies `len` bytes of the peer into my own region.
    Read {
        /// Where in the peer.
        from: At,
        /// Where in me.
        into: At,
        /// How many bytes.
        len: u32,
    },
    /// Adds to the word at `at`, wrapping; the completion carries the old value.
    FetchAdd {
        /// Which word of the peer.
        at: At,
        /// How much.
        add: u64,
    },
    /// Sets the word at `at` to `new` if it is `expected`; the completion carries the old value.
    CompareSwap {
        /// Which word of the peer.
        at: At,
        /// What it must be.
        expected: u64,
        /// What it becomes.
        new: u64,
    },
}

impl Op<'_> {
    /// The address in the peer and the number of bytes it reaches there.
    #[inline]
    #[must_use]
    pub fn target(&self) -> (At, usize) {
        match *self {
            Self::Write { to, bytes } => (to, bytes.len()),
            Self::WriteFrom { to, len, .. } => (to, len as usize),
            Self::Read { from, len, .. } => (from, len as usize),
            Self::FetchAdd { at, .. } | Self::CompareSwap { at, .. } => (at, 8),
        }
    }

    /// The right that the peer must grant for it.
    #[inline]
    #[must_use]
    pub const fn needs(&self) -> Access {
        match self {
            Self::Write { .. } | Self::WriteFrom { .. } => Access::REMOTE_WRITE,
            Self::Read { .. } => Access::REMOTE_READ,
            Self::FetchAdd { .. } | Self::CompareSwap { .. } => Access::REMOTE_ATOMIC,
        }
    }

    /// Whether a work for `peer` can succeed at all under `layout`, rights aside (F-11); returns
    /// the region that it is for, whose rights [`RegionSpec::allows`] judges.
    ///
    /// # Errors
    /// The [`Reject`] to refuse the post with.
    #[inline]
    pub fn check(&self, layout: &Layout, peer: Peer) -> Result<RegionSpec, Reject> {
        if peer.0 >= layout.peers() {
            return Err(Reject::UnknownPeer);
        }
        let (target, len) = self.target();
        let spec = within(layout, target, len)?;
        match *self {
            Self::Write { bytes, .. } if bytes.len() > INLINE_LEN => Err(Reject::TooLong),
            Self::WriteFrom { from: mine, len, .. } | Self::Read { into: mine, len, .. } => {
                within(layout, mine, len as usize).map(|_| spec)
            }
            Self::FetchAdd { at, .. } | Self::CompareSwap { at, .. }
                if !at.offset.is_multiple_of(8) =>
            {
                Err(Reject::Misaligned)
            }
            Self::Write { .. } | Self::FetchAdd { .. } | Self::CompareSwap { .. } => Ok(spec),
        }
    }
}

#[inline]
fn within(layout: &Layout, at: At, len: usize) -> Result<RegionSpec, Reject> {
    let spec = layout.spec(at.region).ok_or(Reject::UnknownRegion)?;
    match (at.offset as usize).checked_add(len) {
        Some(end) if end <= spec.len as usize => Ok(spec),
        Some(_) | None => Err(Reject::OutOfBounds),
    }
}

/// An operation with its name and its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work<'a> {
    /// The poster's name for it.
    pub id: WorkId,
    /// What to do.
    pub op: Op<'a>,
    /// How it ends.
    pub flags: CompletionFlags,
}

/// The end of a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The name under which it was posted.
    pub id: WorkId,
    /// To whom it was posted.
    pub peer: Peer,
    /// The old value of an atomic (0 for other work), or why the work failed.
    pub outcome: Result<u64, Failure>,
}

impl Completion {
    /// A placeholder to fill arrays for `poll` with.
    pub const NONE: Self = Self { id: WorkId(u64::MAX), peer: Peer(u16::MAX), outcome: Ok(0) };
}

/// What became of a work that [`super::Fabric::post_now`] accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// It ends later, and a completion reports how.
    Pending,
    /// It has ended, with this outcome of a [`Completion`]; no completion comes.
    Ended(Result<u64, Failure>),
}

/// How the bytes of a write appear at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Byte by byte, in any order (F-3): a message needs a checksum.
    Bytes,
    /// Aligned words at once, and the last one behind all others (F-14): a message whose last word
    /// has arrived is whole.
    WholeWords,
}

/// Why an accepted work failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Failure {
    /// The peer does not grant that right there. No byte was changed. The fabric may have lost
    /// the pair with it (F-6).
    AccessDenied,
    /// The peer was lost or fenced. Whether the work took effect is not known.
    Gone,
    /// The work passed its deadline and the pair was failed for it. Whether it took effect is
    /// not known.
    DeadlinePassed,
}

/// Why a work was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PostError {
    /// The queue is full: poll, then post again.
    Full,
    /// The peer is lost or fenced and was not admitted since.
    Gone,
    /// The work can never succeed.
    Rejected(Reject),
}

/// What is wrong with a work that no fabric accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Reject {
    /// There is no such peer.
    UnknownPeer,
    /// There is no such region.
    UnknownRegion,
    /// The range leaves its region.
    OutOfBounds,
    /// An atomic whose offset is no multiple of 8.
    Misaligned,
    /// A write from bytes longer than [`super::INLINE_LEN`].
    TooLong,
}

/// Why a peer could not be fenced or admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FenceError {
    /// There is no such peer.
    UnknownPeer,
    /// The peer could not be stopped from reaching this memory.
    StillReaching,
    /// The incarnation is earlier than the last admitted one or was fenced, or nothing of that
    /// incarnation can be reached yet.
    NotReady,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AccessDenied => "the peer does not grant this access",
            Self::Gone => "the peer is gone",
            Self::DeadlinePassed => "the operation passed its deadline",
        })
    }
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the queue is full"),
            Self::Gone => f.write_str("the peer is gone and was not admitted again"),
            Self::Rejected(reject) => reject.fmt(f),
        }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownPeer => "there is no such peer",
            Self::UnknownRegion => "there is no such region",
            Self::OutOfBounds => "the range leaves its region",
            Self::Misaligned => "an atomic needs an offset that is a multiple of 8",
            Self::TooLong => "a write from bytes is too long",
        })
    }
}

impl fmt::Display for FenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownPeer => "there is no such peer",
            Self::StillReaching => "the peer could not be stopped from reaching this memory",
            Self::NotReady => "that incarnation cannot be admitted now",
        })
    }
}

impl core::error::Error for Failure {}
impl core::error::Error for PostError {}
impl core::error::Error for Reject {}
impl core::error::Error for FenceError {}

//! Memory that the processes of one host share, and the bell that wakes who waits for it.
//!
//! ```text
//!   owner                                     peer
//!   Segment (memfd, allocated, sealed) ─fd──▶ Mapping or ReadOnlyMapping
//!   Waiter  ◀───────── rings ──────────────── Bell
//! ```
//!
//! A segment is one memory object with one kind of right for each descriptor that is passed on:
//! a peer that got a read-only descriptor cannot map it for writing. Segments have no name in
//! any file system: when the last descriptor and mapping are gone, so is the memory, no matter
//! how its processes ended. Nothing ever appears in /dev/shm.
//!
//! Memory that others write is never lent as `&[u8]`; it is seen as atomic words or copied out.
//!
//! [`NodeMemory`] is the memory of a node laid out in segments, [`ShmFabric`] the port over it;
//! [`meet`] has two processes share theirs without a node, and [`FanWriter`] sends to many readers.
//!
//! What this does not do: rights hold against
//! mistakes and against processes of other users; a process of the same user that means harm
//! can reach any of this through ptrace or /proc anyway.

mod bell;
mod bulk;
mod checksum;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod fabric;
mod fan;
mod flag;
mod mapping;
mod mask;
mod meet;
mod node_memory;
mod pages;
mod sealed_bytes;
mod segment;
mod two_slots;
mod wait;
mod waiter;

pub use bell::{Bell, Ring};
pub(crate) use checksum::crc32c;
pub use error::{BellError, SegmentError};
pub use fabric::ShmFabric;
pub use fan::{FanError, FanPlan, FanReader, FanWriter};
pub use flag::Flag;
pub use mapping::{Mapping, ReadOnlyMapping};
pub(crate) use mask::MaskPage;
pub use mask::{Mask, Shown};
pub use meet::{MeetError, meet};
pub use node_memory::{Grant, NodeMemory, OwnMemory, RemoteMemory};
pub use sealed_bytes::{SealedBytes, SealedDraft};
pub use segment::Segment;
pub use two_slots::TwoSlots;
pub use wait::Wait;
pub(crate) use waiter::{IdleStep, Pause};
pub use waiter::{Idled, Waiter};

#[cfg(test)]
mod tests;

//! The port: one-sided operations on registered memory.
//!
//! A [`Fabric`] is the whole outside world of a mover. Peers are endpoints; memory is in regions
//! that every endpoint lays out in the same way from the same [`Layout`], so an address is
//! (peer, region, offset), and only base addresses and keys travel at bootstrap. Remote-writable
//! memory is never borrowed: [`Memory`] copies it, and only copies are believed.
//!
//! ```text
//!   machine ── post(peer, Work) ──▶ fabric ──▶ the peer's region      its process takes no part
//!   machine ◀─ poll(now) ─ Completion ─ fabric
//!   machine ◀─▶ memory() ◀──────────────────── what peers wrote here
//! ```
//!
//! # The contract
//!
//! | # | rule |
//! |---|---|
//! | F-1 | Work posted to one peer takes effect in posting order, except that a write with [`CompletionFlags::APART`] may take effect before reads and atomics posted earlier. Between peers there is no order. |
//! | F-2 | Every accepted work completes exactly once; [`CompletionFlags::QUIET`] work that succeeds completes silently, with the next success to the same peer. Success of a write: the bytes are in the peer's memory; of a read: they are in mine; of an atomic: I have the old value. The answer of [`Fabric::post_now`] is such a completion. |
//! | F-3 | Within one write or read, bytes arrive in any order: a concurrent observer may see any subset of its bytes. Not even an aligned word is indivisible under a plain write; only the words of remote atomics are. |
//! | F-4 | Remote atomics are atomic only among themselves. The owner of such a word touches it through its own fabric too (peer = self), or with plain loads. |
//! | F-5 | Rights are per region and per peer. Work without the right changes no byte and completes with [`Failure::AccessDenied`]. |
//! | F-6 | When a peer is gone, all work outstanding to it completes with an error, each exactly once, and later posts fail at once until `admit`. A fabric that notices by itself adds a completion of [`WorkId::GONE`], once for each admission and not after a fence. |
//! | F-7 | `post` never blocks; a full queue gives the work back. |
//! | F-8 | `poll` never blocks. |
//! | F-9 | After `fence(peer)` returns, nothing that peer posted or will post changes a byte here. Idempotent. `admit` re-opens with a new incarnation. |
//! | F-10 | A write from bytes copies before `post` returns; a write from a region does not, and the region must stay untouched until completion. |
//! | F-11 | An address learned at run time is checked against the layout before it is posted. |
//! | F-12 | No work stays open forever: past its deadline the fabric fails the pair itself, and F-6 follows. |
//! | F-13 | A successful completion says that the memory was reached, not that the peer's process runs. Liveness is what a peer *writes*, never what it lets be written. |
//! | F-14 | A fabric of [`Placement::WholeWords`] promises more than F-3. Of a write from bytes, each aligned word of 8 bytes that it covers wholly appears at once, and its last word behind all others: who has loaded that ([`Memory::load`]) finds them. A read of one aligned word takes it whole. |
//! | F-15 | Work may end while it is posted; [`Fabric::post_now`] then returns its outcome, and no completion follows. |
//!
//! `conformance` (a feature) is the suite that checks the contract on any fabric; [`loopback`]
//! is the fabric of doc examples, fuzzing and bare-metal programs; [`arm`] is for fabrics whose
//! waiting endpoints sleep.

pub mod arm;
#[cfg(feature = "conformance")]
pub mod conformance;
mod layout;
pub mod loopback;
pub mod memory;
mod work;

pub(crate) use layout::FOREIGN_WRITER;
pub use layout::{Access, Inbound, Layout, LayoutError, REGIONS_MAX, Region, RegionSpec};
pub use memory::{Memory, WordMemory, Words};
pub use work::{
    At, Completion, CompletionFlags, Failure, FenceError, Op, Placement, PostError, Posted, Reject,
    Work, WorkId,
};

use crate::ids::{Incarnation, Peer};
use crate::time::Instant;

/// The longest write from bytes that every fabric accepts.
pub const INLINE_LEN: usize = 4096;

/// One endpoint's view of the fabric. See the [module](self) for the contract.
pub trait Fabric {
    /// How this endpoint's own regions are reached.
    type Memory: Memory + ?Sized;

    /// Which endpoint this is. Work posted to it stays on this endpoint (F-4).
    fn me(&self) -> Peer;

    /// The regions, the same at every endpoint.
    fn layout(&self) -> &Layout;

    /// How the bytes of a write appear, from and to any peer of this fabric.
    fn placement(&self) -> Placement;

    /// Hands `work` for `peer` to the fabric.
    ///
    /// # Errors
    /// [`PostError`]; nothing was accepted, nothing will complete, and since `Work` is `Copy`
    /// the caller still has it.
    fn post(&mut self, peer: Peer, work: Work<'_>) -> Result<(), PostError>;

    /// As [`Self::post`], for a caller that can go on at once: a fabric on which work ends while it
    /// is posted says how it ended, and needs no room in its queue for that.
    ///
    /// # Errors
    /// As [`Self::post`].
    #[inline]
    fn post_now(&mut self, peer: Peer, work: Work<'_>) -> Result<Posted, PostError> {
        self.post(peer, work).map(|()| Posted::Pending)
    }

    /// Moves completions into `done`, as many as there are and fit; returns how many.
    fn poll(&mut self, now: Instant, done: &mut [Completion]) -> usize;

    /// This endpoint's own regions.
    fn memory(&self) -> &Self::Memory;

    /// Shuts `peer` out (F-9). Outstanding work to it completes with [`Failure::Gone`].
    ///
    /// # Errors
    /// [`FenceError`]; the peer may still reach this memory, and its words must not be believed.
    fn fence(&mut self, peer: Peer) -> Result<(), FenceError>;

    /// Admits `incarnation` of `peer`, which is later than any fenced one.
    ///
    /// # Errors
    /// [`FenceError`]; the peer stays shut out.
    fn admit(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), FenceError>;

    /// CRC-32C of `bytes`. A fabric whose platform has an instruction for it overrides this.
    fn crc32c(&self, bytes: &[u8]) -> u32 {
        crate::checksum::crc32c(bytes)
    }
}

/// Within an implementation of [`Fabric`] that wraps another: what it leaves as it is. Its machines
/// must seal messages as those of the fabric that it stands for.
#[macro_export]
macro_rules! delegate_fabric {
    ($self:ident => $inner:expr) => {
        fn me(&$self) -> $crate::ids::Peer {
            $inner.me()
        }

        fn layout(&$self) -> &$crate::fabric::Layout {
            $inner.layout()
        }

        fn placement(&$self) -> $crate::fabric::Placement {
            $inner.placement()
        }
    };
}

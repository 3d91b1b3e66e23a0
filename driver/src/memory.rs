//! The memory that is registered: whoever owns it implements one safe trait.
//!
//! The driver neither maps nor allocates regions: over verbs a node's memory is the same segments
//! as over shared memory, owned by its supervisor, so that it outlives the component.
//!
//! Why a safe trait is enough. The driver holds its memory in an `Arc` and never takes it out, so
//! a slice that [`HostMemory::words`] lends from `&self` stays where it is for as long as the
//! `Arc` does: no safe type can move or free what it lent out while it is borrowed, and the
//! driver's share of the `Arc`, which each registration has, is such a borrow. What devices and
//! peers do to the words meanwhile is what other threads may do to atomics.

use std::sync::atomic::AtomicU64;

use weft_core::fabric::{Memory, Region};

/// An endpoint's own regions, addressable as words.
pub trait HostMemory: Memory + Send + Sync + 'static {
    /// All words of `region`: as many as its length in the layout says, the same at each call.
    ///
    /// Memory that a child process shares by copy-on-write must be mapped shared, or the child
    /// keep its hands off it: the device goes on writing to the pages that were registered.
    ///
    /// # Panics
    /// When there is no such region.
    fn words(&self, region: Region) -> &[AtomicU64];
}

//! The memory that is registered: its owner implements one safe trait.
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

use weft_core::fabric::{Layout, Memory, Region, WordMemory, Words};

/// An endpoint's own regions, addressable as words.
pub trait HostMemory: Memory + Send + Sync + 'static {
    /// All words of `region`: as many as its length in the layout says, the same at each call.
    ///
    /// Memory that a child process shares by copy-on-write must be mapped shared, or the child
    /// keep its hands off it: the device goes on writing to the pages that were registered.
    ///
    /// # Panics
    /// When there is no such region; or there are none, and each access to one panics.
    fn words(&self, region: Region) -> &[AtomicU64];
}

/// Zeroed regions on the heap, for an endpoint whose memory need not outlive its process.
#[derive(Debug)]
pub struct Heap {
    regions: Vec<Box<[AtomicU64]>>,
}

impl Heap {
    /// The regions of `layout`.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        let zeros = |len| (0..len / 8).map(|_| AtomicU64::new(0)).collect();
        Self { regions: layout.regions().iter().map(|spec| zeros(spec.len)).collect() }
    }
}

impl HostMemory for Heap {
    fn words(&self, region: Region) -> &[AtomicU64] {
        &self.regions[usize::from(region.0)]
    }
}

impl WordMemory for Heap {
    fn words(&self, region: Region) -> Words<'_> {
        Words(HostMemory::words(self, region))
    }
}

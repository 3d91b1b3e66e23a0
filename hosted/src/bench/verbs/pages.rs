//! The memory of an endpoint under measurement: words that nobody else has.

use std::sync::atomic::AtomicU64;

use weft_core::fabric::{Layout, Memory, Region, Words};
use weft_driver::HostMemory;

/// Zeroed regions of a layout.
#[derive(Debug)]
pub(super) struct Pages {
    regions: Vec<Box<[AtomicU64]>>,
}

impl Pages {
    pub(super) fn new(layout: &Layout) -> Self {
        let zeros = |len| (0..len / 8).map(|_| AtomicU64::new(0)).collect();
        Self { regions: layout.regions().iter().map(|spec| zeros(spec.len)).collect() }
    }

    fn region(&self, region: Region) -> Words<'_> {
        Words(HostMemory::words(self, region))
    }
}

impl HostMemory for Pages {
    fn words(&self, region: Region) -> &[AtomicU64] {
        &self.regions[usize::from(region.0)]
    }
}

impl Memory for Pages {
    fn load(&self, region: Region, offset: u32) -> u64 {
        self.region(region).load(offset as usize)
    }

    fn store(&self, region: Region, offset: u32, value: u64) {
        self.region(region).store(offset as usize, value);
    }

    fn copy_out(&self, region: Region, offset: u32, into: &mut [u8]) {
        self.region(region).copy_out(offset as usize, into);
    }

    fn copy_in(&self, region: Region, offset: u32, bytes: &[u8]) {
        self.region(region).copy_in(offset as usize, bytes);
    }
}

//! The regions of one endpoint, and what an operation does to those of two.

use std::sync::atomic::AtomicU64;

use weft::core::fabric::{At, Layout, Memory, Op, Region, WordMemory, Words};

/// Regions one after the other: 8-byte words that peers may change at any time.
pub(crate) struct Regions {
    layout: Layout,
    words: Vec<AtomicU64>,
}

impl Regions {
    pub(crate) fn new(layout: &Layout) -> Self {
        let words = (0..layout.total_len() / 8).map(|_| AtomicU64::new(0)).collect();
        Self { layout: layout.clone(), words }
    }
}

impl WordMemory for Regions {
    fn words(&self, region: Region) -> Words<'_> {
        let len = self.layout.spec(region).map_or(0, |spec| spec.len as usize);
        Words(&self.words).range(self.layout.offset(region) as usize, len)
    }
}

/// Carries out `op`, which was checked against the layout; the old value of an atomic.
pub(crate) fn carry_out(mine: &Regions, theirs: &Regions, op: &Op<'_>) -> u64 {
    match *op {
        Op::Write { to, bytes } => theirs.copy_in(to.region, to.offset, bytes),
        Op::WriteFrom { to, from, len } => copy((mine, from), (theirs, to), len),
        Op::Read { from, into, len } => copy((theirs, from), (mine, into), len),
        Op::FetchAdd { at, add } => {
            return theirs.words(at.region).fetch_add(at.offset as usize, add);
        }
        Op::CompareSwap { at, expected, new } => {
            return theirs.words(at.region).compare_swap(at.offset as usize, expected, new);
        }
    }
    0
}

fn copy(from: (&Regions, At), to: (&Regions, At), len: u32) {
    let mut bytes = vec![0; len as usize];
    from.0.copy_out(from.1.region, from.1.offset, &mut bytes);
    to.0.copy_in(to.1.region, to.1.offset, &bytes);
}

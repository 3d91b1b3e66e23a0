//! Counts what a thread allocates, so that "no allocation" is measured and not claimed.
//!
//! The program installs [`CountingAllocator`], which is the system's with one addition to a
//! thread's own counter. A library user installs nothing, and then nothing is counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counted by thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

/// How often this thread has allocated or grown memory; does not move without the
/// [`CountingAllocator`].
#[must_use]
pub fn allocations() -> u64 {
    COUNT.get()
}

/// Whether allocations are counted in this program.
#[must_use]
pub fn are_counted() -> bool {
    let before = allocations();
    drop(std::hint::black_box(Box::new(before)));
    allocations() != before
}

fn count() {
    COUNT.set(COUNT.get() + 1);
}

// SAFETY: every call goes to the system's allocator with its arguments as they came; counting
// neither allocates (the counter is constant-initialised and has no destructor) nor panics.
unsafe impl GlobalAlloc for CountingAllocator {
    // SAFETY: the contract of the trait, handed on to the system as it is.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the system's.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the contract of the trait, handed on to the system as it is.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the system's.
        unsafe { System.alloc_zeroed(layout) }
    }

    // SAFETY: the contract of the trait, handed on to the system as it is.
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_len: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the system's.
        unsafe { System.realloc(memory, layout, new_len) }
    }

    // SAFETY: the contract of the trait, handed on to the system as it is.
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, and the memory came from the system's.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_moves_with_each_call_and_not_with_frees() {
        let before = allocations();
        let layout = Layout::new::<u64>();
        // SAFETY: the layout has a size.
        let memory = unsafe { CountingAllocator.alloc(layout) };
        // SAFETY: the memory was allocated above with this layout.
        let memory = unsafe { CountingAllocator.realloc(memory, layout, 16) };
        let layout = Layout::new::<[u64; 2]>();
        // SAFETY: the memory has this layout since it was grown.
        unsafe { CountingAllocator.dealloc(memory, layout) };
        assert_eq!(allocations() - before, 2);
    }

    #[test]
    fn a_program_without_the_allocator_says_so() {
        assert!(!are_counted());
    }
}

//! Long copies between two mappings, by the processor's own instruction.
//!
//! Relaxed loads and stores move eight bytes each, and no compiler joins them: a third of memcpy's
//! speed at 4 KiB and three quarters at 1 MiB. A block of a group, or a part of a tensor, is as
//! long as that. A reader judges what it has copied by a completion, never by its own look at bytes
//! that are still arriving (F-3), so the order within the copy is free.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// From how many words on the instruction is faster than a loop: below, its start costs as much.
const WORDS_MIN: usize = 256;

/// Copies `from` to `to`, words that others may read and write meanwhile; whether it did.
///
/// It does not where the copy is short, or the processor is of another family: then the caller
/// copies word by word. Ordered as `Words::copy_from`: a release before, an acquire behind.
///
/// # Panics
/// When the runs differ in length.
#[inline]
pub(super) fn copy(to: &[AtomicU64], from: &[AtomicU64]) -> bool {
    assert_eq!(to.len(), from.len(), "a copy has one length");
    if to.len() < WORDS_MIN {
        return false;
    }
    // SYNC: words-publish. What was stored before is seen no later than what is copied here.
    fence(Ordering::Release);
    let is_copied = copy_string(to, from);
    // SYNC: words-publish. What is loaded behind this is at least as new as what was copied.
    fence(Ordering::Acquire);
    is_copied
}

#[cfg(target_arch = "x86_64")]
fn copy_string(to: &[AtomicU64], from: &[AtomicU64]) -> bool {
    // SAFETY: both runs are mapped and at least `size_of_val(to)` bytes long while they are
    // borrowed, and `to` is writable, since it was lent as atomics. Other threads and processes
    // may write both meanwhile: Rust's memory model makes that undefined for its own non-atomic
    // accesses, of which there is none here. The instruction's accesses are the processor's, each
    // of at least a byte, which is all that F-3 promises of a write or read. As assembly that may
    // touch any memory it is not moved over the fences around it, and the processor lets no store
    // behind it overtake its stores (Intel SDM 3A, 9.2.4: fast strings). The direction flag is
    // clear at every entry of assembly (Rust reference).
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") size_of_val(to) => _,
            inout("rdi") to.as_ptr() => _,
            inout("rsi") from.as_ptr() => _,
            options(nostack, preserves_flags),
        );
    }
    true
}

#[cfg(not(target_arch = "x86_64"))]
const fn copy_string(_to: &[AtomicU64], _from: &[AtomicU64]) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn long_copies_move_each_word_and_no_neighbour() {
        let from: Vec<_> = (0..2 * WORDS_MIN as u64).map(AtomicU64::new).collect();
        let to: Vec<_> = from.iter().map(|_| AtomicU64::new(u64::MAX)).collect();
        let range = 3..3 + WORDS_MIN;
        if !copy(&to[range.clone()], &from[range.clone()]) {
            // Another processor family: nothing may have moved.
            assert!(to.iter().all(|word| word.load(Ordering::Relaxed) == u64::MAX));
            return;
        }
        for (at, word) in (0..).zip(&to) {
            let expected = if range.contains(&(at as usize)) { at } else { u64::MAX };
            assert_eq!(word.load(Ordering::Relaxed), expected);
        }
    }

    #[test]
    fn a_short_copy_is_left_to_the_caller() {
        let (to, from) = ([const { AtomicU64::new(0) }; 8], [const { AtomicU64::new(7) }; 8]);
        assert!(!copy(&to, &from));
        assert!(to.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }
}

//! Long copies between mappings and private memory, by the processor's own instruction.
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
    // SAFETY: both runs are mapped and as long while they are borrowed, and `to` is writable, since
    // it was lent as atomics.
    unsafe { move_words(to.as_ptr().cast_mut().cast(), from.as_ptr().cast(), to.len()) }
}

/// As [`copy`], to private bytes.
///
/// # Panics
/// When the two differ in length.
#[inline]
pub(super) fn copy_out(into: &mut [u8], from: &[AtomicU64]) -> bool {
    assert_eq!(into.len(), size_of_val(from), "a copy has one length");
    // SAFETY: `from` is mapped while it is borrowed, and `into` is borrowed alone and as long.
    unsafe { move_words(into.as_mut_ptr(), from.as_ptr().cast(), from.len()) }
}

/// As [`copy`], from private bytes.
///
/// # Panics
/// When the two differ in length.
#[inline]
pub(super) fn copy_in(to: &[AtomicU64], bytes: &[u8]) -> bool {
    assert_eq!(bytes.len(), size_of_val(to), "a copy has one length");
    // SAFETY: `to` is mapped while it is borrowed and writable, since it was lent as atomics, and
    // `bytes` are as long.
    unsafe { move_words(to.as_ptr().cast_mut().cast(), bytes.as_ptr(), to.len()) }
}

/// Copies `count` words, unless they are few; whether it did.
///
/// # Safety
/// So many words must be mapped at both places during the call, and be writable at `to`. Bytes that
/// Rust reads or writes meanwhile must be atomics.
#[inline]
unsafe fn move_words(to: *mut u8, from: *const u8, count: usize) -> bool {
    if count < WORDS_MIN {
        return false;
    }
    // SYNC: words-publish. What was stored before is seen no later than what is copied here.
    fence(Ordering::Release);
    // SAFETY: as this function demands.
    let is_copied = unsafe { move_string(to, from, count * size_of::<u64>()) };
    // SYNC: words-publish. What is loaded behind this is at least as new as what was copied.
    fence(Ordering::Acquire);
    is_copied
}

/// # Safety
/// `len` bytes must be mapped at both places during the call, and be writable at `to`. Bytes that
/// Rust reads or writes meanwhile must be atomics.
#[cfg(target_arch = "x86_64")]
unsafe fn move_string(to: *mut u8, from: *const u8, len: usize) -> bool {
    // SAFETY: the bytes are mapped and writable, as demanded. Other threads and processes may write
    // shared ones meanwhile: Rust's memory model makes that undefined for its own non-atomic
    // accesses, of which there is none here. The instruction's accesses are the processor's, each
    // of at least a byte, which is all that F-3 promises of a write or read. As assembly that may
    // touch any memory it is not moved over the fences around it, and the processor lets no store
    // behind it overtake its stores (Intel SDM 3A, 9.2.4: fast strings). The direction flag is
    // clear at every entry of assembly (Rust reference).
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
    true
}

/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
const unsafe fn move_string(_to: *mut u8, _from: *const u8, _len: usize) -> bool {
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
    fn long_runs_of_private_bytes_go_in_and_come_out() {
        let bytes: Vec<u8> = (0..8 * WORDS_MIN).map(|at| at as u8).collect();
        let words: Vec<_> = (0..WORDS_MIN + 2).map(|_| AtomicU64::new(u64::MAX)).collect();
        let (range, mut out) = (1..=WORDS_MIN, vec![0; bytes.len()]);
        let is_copied = copy_in(&words[range.clone()], &bytes);
        assert_eq!(copy_out(&mut out, &words[range]), is_copied);
        assert_eq!(out == bytes, is_copied);
        let ends = [&words[0], &words[WORDS_MIN + 1]];
        assert!(ends.iter().all(|word| word.load(Ordering::Relaxed) == u64::MAX));
    }

    #[test]
    fn a_short_copy_is_left_to_the_caller() {
        let (to, from) = ([const { AtomicU64::new(0) }; 8], [const { AtomicU64::new(7) }; 8]);
        assert!(!copy(&to, &from));
        assert!(to.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }
}

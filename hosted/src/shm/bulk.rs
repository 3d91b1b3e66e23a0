//! Long copies between mappings and private memory, by vector registers or string move.
//!
//! Relaxed loads and stores move eight bytes each, and no compiler joins them: 30 GB/s, where
//! vector registers move 49 within a cache. The processor's string move replaces whole lines
//! without reading them first. That matters where the target was read last by another processor
//! that shares no cache with this one, from where vectors of any width fetch each line. But it is
//! many times slower where the target lies some bytes behind the source in its page (Zen 3 and
//! 4), as a payload behind a header does. The order within the copy is free: a reader copies what a
//! completion or the end of a write (F-14) has shown to be there, and a write that others look at
//! while it arrives, one from bytes, is not copied by this.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// From how many words on it is worth a call.
const WORDS_MIN: usize = 32;
/// Words that the loop moves at a time.
#[cfg(target_arch = "x86_64")]
const LINE_WORDS: usize = 8;

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
    let is_copied = unsafe { move_long(to, from, count) };
    // SYNC: words-publish. What is loaded behind this is at least as new as what was copied.
    fence(Ordering::Acquire);
    is_copied
}

/// # Safety
/// So many words must be mapped at both places during the call, and be writable at `to`. Bytes that
/// Rust reads or writes meanwhile must be atomics.
#[cfg(target_arch = "x86_64")]
unsafe fn move_long(to: *mut u8, from: *const u8, count: usize) -> bool {
    if moves_lines_whole(to.addr(), from.addr(), 8 * count) {
        // SAFETY: the words are mapped and writable, as demanded. Other threads and processes may
        // write shared ones meanwhile: Rust's memory model makes that undefined for its own
        // non-atomic accesses, of which there is none here. The accesses are the processor's, each
        // of at least a byte, which is all that F-3 promises of a write or read. As assembly that
        // may touch any memory it is not moved over the fences around it. Its stores are in any
        // order among themselves, and all are seen before each store that follows. Rust has the
        // direction flag clear.
        unsafe {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") 8 * count => _,
                inout("rdi") to => _,
                inout("rsi") from => _,
                options(nostack, preserves_flags),
            );
        }
        return true;
    }
    // SAFETY: as for the string move; the processor keeps the order of these stores.
    unsafe {
        std::arch::asm!(
            "test {lines}, {lines}",
            "jz 3f",
            "2:",
            "movdqu {a}, [{from}]",
            "movdqu {b}, [{from} + 16]",
            "movdqu {c}, [{from} + 32]",
            "movdqu {d}, [{from} + 48]",
            "movdqu [{to}], {a}",
            "movdqu [{to} + 16], {b}",
            "movdqu [{to} + 32], {c}",
            "movdqu [{to} + 48], {d}",
            "add {from}, 64",
            "add {to}, 64",
            "sub {lines}, 1",
            "jnz 2b",
            "3:",
            "test {words}, {words}",
            "jz 5f",
            "4:",
            "mov {word}, [{from}]",
            "mov [{to}], {word}",
            "add {from}, 8",
            "add {to}, 8",
            "sub {words}, 1",
            "jnz 4b",
            "5:",
            lines = inout(reg) count / LINE_WORDS => _,
            words = inout(reg) count % LINE_WORDS => _,
            to = inout(reg) to => _,
            from = inout(reg) from => _,
            word = out(reg) _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
    true
}

/// Whether the string move of this processor replaces lines of `to` whole, and has no slow form for
/// these addresses.
#[cfg(target_arch = "x86_64")]
fn moves_lines_whole(to: usize, from: usize, len: usize) -> bool {
    /// From how many bytes on it is at least as fast as vectors.
    const LEN_MIN: usize = 4096;
    /// A line of the caches.
    const LINE: usize = 64;
    /// Addresses that differ by a multiple of this look alike to it.
    const PAGE: usize = 4096;
    let ahead = to.wrapping_sub(from) % PAGE;
    let is_behind_closely = ahead != 0 && ahead < LINE;
    len >= LEN_MIN
        && to.is_multiple_of(LINE)
        && !is_behind_closely
        && std::is_x86_feature_detected!("ermsb")
}

/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
const unsafe fn move_long(_to: *mut u8, _from: *const u8, _count: usize) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn long_runs_of_private_bytes_go_in_and_come_out() {
        // Whole lines, and up to seven words behind them.
        for count in WORDS_MIN..WORDS_MIN + 8 {
            let bytes: Vec<u8> = (0..8 * count).map(|at| (at % 251) as u8).collect();
            let words: Vec<_> = (0..count + 2).map(|_| AtomicU64::new(u64::MAX)).collect();
            let (range, mut out) = (1..=count, vec![0; bytes.len()]);
            let is_copied = copy_in(&words[range.clone()], &bytes);
            assert_eq!(copy_out(&mut out, &words[range]), is_copied);
            assert_eq!(out == bytes, is_copied);
            let ends = [&words[0], &words[count + 1]];
            assert!(ends.iter().all(|word| word.load(Ordering::Relaxed) == u64::MAX));
        }
    }

    #[test]
    fn runs_of_all_alignments_arrive_whole() {
        // Whole lines and some words, longer than where the string move begins.
        let count = (1 << 10) + 7;
        for (to_at, from_at) in (0..16).flat_map(|to| (0..16).map(move |from| (to, from))) {
            let from: Vec<_> = (0..count + 16).map(AtomicU64::new).collect();
            let to: Vec<_> = from.iter().map(|_| AtomicU64::new(u64::MAX)).collect();
            let len = count as usize;
            // Another family of processors moves nothing.
            let is_copied = copy(&to[to_at..to_at + len], &from[from_at..from_at + len]);
            for (at, word) in to.iter().enumerate() {
                let is_within = is_copied && (to_at..to_at + len).contains(&at);
                let expected = if is_within { at + from_at - to_at } else { usize::MAX };
                assert_eq!(word.load(Ordering::Relaxed), expected as u64, "{to_at}, {from_at}");
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_string_move_is_for_whole_lines_that_are_not_closely_behind_their_source() {
        let page = 1 << 20;
        let moves = |to, from| moves_lines_whole(to, from, 4096);
        let has_it = std::is_x86_feature_detected!("ermsb");
        assert_eq!(moves(page, page), has_it);
        assert_eq!(moves(page, 2 * page + 16), has_it, "closely before it");
        assert_eq!(moves(page + 64, 2 * page), has_it);
        assert!(!moves(page + 8, 2 * page), "a line in part");
        assert!(!moves(page + 64, 2 * page + 8), "closely behind it");
        assert!(!moves_lines_whole(page, 2 * page, 4088));
    }

    #[test]
    fn a_short_copy_is_left_to_the_caller() {
        let (to, from) = ([const { AtomicU64::new(0) }; 8], [const { AtomicU64::new(7) }; 8]);
        assert!(!copy(&to, &from));
        assert!(to.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }
}

//! The border between C and Rust: panics end here, pointers are checked here, and nowhere else is
//! a pointer of the caller followed.
//!
//! ```text
//!   C ── pointers, numbers ──▶ bytes text out buffer ──▶ safe Rust ──▶ code, last error
//!                                └ null, not aligned, not UTF-8: a refusal
//! ```
//!
//! No reference to the caller's memory for results is made: that memory may be uninitialized, and
//! is written by pointer.

use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::code::{WEFT_FOREVER, weft_code};
use crate::error::{Refusal, keep};

/// Calls `act`; a refusal becomes its code and the last error of this thread, and so does a panic.
pub(crate) fn call(act: impl FnOnce() -> Result<weft_code, Refusal>) -> weft_code {
    // What a panic leaves is not used again: `handle` refuses a member in which one has happened,
    // and a mask or a watcher is taken out of its table for a call.
    let done = catch_unwind(AssertUnwindSafe(act)).unwrap_or(Err(Refusal::Panicked));
    done.unwrap_or_else(keep)
}

/// Calls `act` where the result is a number or a text, with `otherwise` for a panic.
pub(crate) fn call_or<T>(otherwise: T, act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or(otherwise)
}

/// A timeout in microseconds.
pub(crate) const fn timeout(timeout_us: u64) -> Duration {
    if timeout_us == WEFT_FOREVER { Duration::MAX } else { Duration::from_micros(timeout_us) }
}

/// Whether something came.
pub(crate) const fn ok_or_none(came: bool) -> weft_code {
    if came { weft_code::WEFT_OK } else { weft_code::WEFT_NONE }
}

/// The caller's memory for a result.
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// The memory at `pointer`.
    ///
    /// # Safety
    /// If `pointer` is neither null nor misaligned, a `T` may be written there during this call.
    pub(crate) unsafe fn new(pointer: *mut T, name: &'static str) -> Result<Self, Refusal> {
        if pointer.is_null() || !pointer.is_aligned() {
            return Err(Refusal::Null(name));
        }
        Ok(Self(pointer))
    }

    pub(crate) fn set(self, value: T) {
        // SAFETY: aligned and not null, as `new` has checked; writable by its contract. What was
        // there is C's, and needs no drop.
        unsafe { self.0.write(value) }
    }
}

/// The caller's memory for bytes.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    start: *mut u8,
    capacity: usize,
    len: Out<usize>,
}

impl Buffer {
    /// The memory of `capacity` bytes at `start`; `len` receives how many it holds, or needs.
    ///
    /// # Safety
    /// If `start` is not null, `capacity` bytes may be written there during this call; `len` as for
    /// [`Out::new`].
    pub(crate) unsafe fn new(
        start: *mut u8,
        capacity: usize,
        len: *mut usize,
    ) -> Result<Self, Refusal> {
        if start.is_null() && capacity > 0 {
            return Err(Refusal::Null("buffer"));
        }
        // SAFETY: the contract of this function.
        let len = unsafe { Out::new(len, "len")? };
        Ok(Self { start, capacity, len })
    }

    /// Whether `needed` bytes have room; says how many are needed where not.
    pub(crate) fn admit(&self, needed: usize) -> Result<(), Refusal> {
        if needed <= self.capacity {
            return Ok(());
        }
        self.len.set(needed);
        Err(Refusal::Buffer { needed, capacity: self.capacity })
    }

    /// Writes `bytes` to the start.
    pub(crate) fn fill(&self, bytes: &[u8]) -> Result<(), Refusal> {
        self.fill_with(bytes.len(), |into| into.copy_from_slice(bytes))
    }

    /// Has `write` write `len` bytes to the start.
    pub(crate) fn fill_with(
        &self,
        len: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Refusal> {
        self.admit(len)?;
        if len > 0 {
            // SAFETY: `len` bytes are writable there, by the contract of `new`.
            unsafe { self.start.write_bytes(0, len) };
            // SAFETY: as above, and they are initialized now; the caller does not use them during
            // the call, and `len` is at most an allocation's.
            write(unsafe { std::slice::from_raw_parts_mut(self.start, len) });
        }
        self.len.set(len);
        Ok(())
    }
}

/// The value at `pointer`; none if it is null.
///
/// # Safety
/// If `pointer` is neither null nor misaligned, it points to a `T` of C for as long as `'a`.
pub(crate) unsafe fn optional<'a, T: Copy>(
    pointer: *const T,
    name: &'static str,
) -> Result<Option<&'a T>, Refusal> {
    if !pointer.is_null() && !pointer.is_aligned() {
        return Err(Refusal::Null(name));
    }
    // SAFETY: null, or aligned and readable by the contract.
    Ok(unsafe { pointer.as_ref() })
}

/// The `len` bytes at `pointer`.
///
/// # Safety
/// If `pointer` is not null, it points to `len` bytes that no other thread writes for as long as
/// `'a`.
pub(crate) unsafe fn bytes<'a>(
    pointer: *const u8,
    len: usize,
    name: &'static str,
) -> Result<&'a [u8], Refusal> {
    // SAFETY: the contract.
    unsafe { values(pointer, len, name) }
}

/// The `count` values at `pointer`.
///
/// # Safety
/// If `pointer` is neither null nor misaligned, it points to as many values of C that no other
/// thread writes for as long as `'a`.
pub(crate) unsafe fn values<'a, T: Copy>(
    pointer: *const T,
    count: usize,
    name: &'static str,
) -> Result<&'a [T], Refusal> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(Refusal::Null(name));
    }
    let len = count.checked_mul(size_of::<T>());
    if len.is_none_or(|len| isize::try_from(len).is_err()) {
        let cure = "pass that of what is there";
        return Err(Refusal::Argument("a length is longer than any memory", cure));
    }
    // SAFETY: the contract; aligned, not null, and no longer than an allocation can be.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// The caller's memory for several results.
#[derive(Clone, Copy)]
pub(crate) struct Outs<T> {
    start: *mut T,
    pub(crate) capacity: usize,
}

impl<T> Outs<T> {
    /// The memory for `capacity` values at `start`.
    ///
    /// # Safety
    /// If `start` is neither null nor misaligned, as many may be written there during this call.
    pub(crate) unsafe fn new(
        start: *mut T,
        capacity: usize,
        name: &'static str,
    ) -> Result<Self, Refusal> {
        if capacity > 0 && (start.is_null() || !start.is_aligned()) {
            return Err(Refusal::Null(name));
        }
        Ok(Self { start, capacity })
    }

    /// Writes `values` from the start on, as far as there is room; how many.
    pub(crate) fn fill(self, values: impl Iterator<Item = T>) -> usize {
        let mut written = 0;
        for value in values.take(self.capacity) {
            // SAFETY: within the memory that `new` was promised.
            let place = unsafe { self.start.add(written) };
            // SAFETY: as above, and aligned; what was there is C's, and needs no drop.
            unsafe { place.write(value) };
            written += 1;
        }
        written
    }
}

/// The text at `pointer`.
///
/// # Safety
/// If `pointer` is not null, it points to bytes up to a 0 that no other thread writes for as long
/// as `'a`.
pub(crate) unsafe fn text<'a>(
    pointer: *const c_char,
    name: &'static str,
) -> Result<&'a str, Refusal> {
    if pointer.is_null() {
        return Err(Refusal::Null(name));
    }
    // SAFETY: the contract.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Refusal::Utf8(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_code() {
        assert_eq!(call(|| panic!("planted by a test")), weft_code::WEFT_PANIC);
        assert_eq!(call_or(7, || panic!("planted by a test")), 7);
    }

    #[test]
    fn null_and_what_is_not_aligned_is_refused() {
        let mut words = [0_u64; 2];
        let odd = words.as_mut_ptr().cast::<u8>().wrapping_add(1).cast::<u64>();
        // SAFETY: refused before it is followed.
        assert!(matches!(unsafe { Out::new(odd, "odd") }, Err(Refusal::Null("odd"))));
        // SAFETY: as above.
        assert!(matches!(unsafe { optional(odd, "odd") }, Err(Refusal::Null("odd"))));
        let none = std::ptr::null();
        // SAFETY: null is refused, or has no bytes.
        assert!(matches!(unsafe { bytes(none, 1, "b") }, Err(Refusal::Null("b"))));
        // SAFETY: as above.
        assert!(matches!(unsafe { bytes(none, 0, "b") }, Ok([])));
        // SAFETY: a length that no memory has is refused before it is followed.
        let endless = unsafe { bytes(words.as_ptr().cast(), usize::MAX, "b") };
        assert!(matches!(endless, Err(Refusal::Argument(..))));
        // SAFETY: as above.
        let endless = unsafe { values(words.as_ptr(), usize::MAX / 8, "w") };
        assert!(matches!(endless, Err(Refusal::Argument(..))));
        // SAFETY: refused before it is followed.
        assert!(matches!(unsafe { values(odd.cast_const(), 1, "odd") }, Err(Refusal::Null("odd"))));
        // SAFETY: as above.
        assert!(matches!(unsafe { Outs::new(odd, 1, "odd") }, Err(Refusal::Null("odd"))));
    }

    #[test]
    fn results_are_written_as_far_as_there_is_room() {
        let mut memory = [7_u32; 4];
        // SAFETY: memory for three of the four.
        let Ok(outs) = (unsafe { Outs::new(memory.as_mut_ptr(), 3, "o") }) else {
            panic!("it is memory")
        };
        assert_eq!(outs.fill([1, 2].into_iter()), 2);
        assert_eq!(memory, [1, 2, 7, 7]);
        // SAFETY: as above.
        let Ok(outs) = (unsafe { Outs::new(memory.as_mut_ptr(), 3, "o") }) else {
            panic!("it is memory")
        };
        assert_eq!(outs.fill([3, 4, 5, 6].into_iter()), 3);
        assert_eq!(memory, [3, 4, 5, 7]);
    }

    #[test]
    fn a_buffer_that_is_too_small_says_how_much_it_takes() {
        let (mut memory, mut len) = ([7_u8; 4], 0);
        // SAFETY: four bytes, and a length.
        let buffer = unsafe { Buffer::new(memory.as_mut_ptr(), 4, &raw mut len) };
        let Ok(buffer) = buffer else { panic!("it is memory") };
        let refused = buffer.fill(b"five!");
        assert!(matches!(refused, Err(Refusal::Buffer { needed: 5, capacity: 4 })));
        assert_eq!((memory, len), ([7; 4], 5));
        assert!(buffer.fill(b"two").is_ok());
        assert_eq!((&memory[..3], len), (&b"two"[..], 3));
    }

    #[test]
    fn a_text_that_is_not_utf_8_is_refused() {
        // SAFETY: both end with a 0.
        let refused = unsafe { text(c"\xff".as_ptr(), "group") };
        assert!(matches!(refused, Err(Refusal::Utf8("group"))));
        // SAFETY: as above.
        assert!(matches!(unsafe { text(c"all".as_ptr(), "group") }, Ok("all")));
    }
}

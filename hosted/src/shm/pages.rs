//! Mapped pages: where a descriptor becomes addresses, after it has been checked.
//!
//! A peer may hand us any descriptor. What is mapped here has its size sealed for good and is as
//! long as agreed, so that touching it cannot raise SIGBUS however the peer behaves: a seal that
//! is there cannot be taken away again, and so the size that is read after it cannot change.
//!
//! Pages know nothing of what is in them. Each of their owners ([`super::Mapping`],
//! [`super::ReadOnlyMapping`], [`super::Bell`], [`super::SealedBytes`]) looks at them in one way
//! only, because atomic accesses of different sizes to the same bytes must not be mixed.

use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::segment::SEALS;
use super::{Segment, SegmentError};

/// What keeps the bytes of a file as they are, and its size.
const IMMUTABLE: SealFlags = SEALS.union(SealFlags::WRITE);

/// A shared mapping of a sealed segment, unmapped on drop, and not handed down to a forked child.
#[derive(Debug)]
pub(super) struct Pages {
    base: NonNull<u8>,
    /// Length in words, which is what each access looks at.
    words: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and unmapping works from any.
unsafe impl Send for Pages {}
// SAFETY: through `&Pages` only the address and length can be had, which never change. Owners
// look at the bytes as atomics alone, or at bytes that never change.
unsafe impl Sync for Pages {}

impl Pages {
    /// Nothing mapped: no words.
    pub(super) const NONE: Self = Self { base: NonNull::<u64>::dangling().cast(), words: 0 };

    /// Maps `len` bytes for reading and writing.
    pub(super) fn writable(fd: BorrowedFd<'_>, len: usize) -> Result<Self, SegmentError> {
        Self::map(fd, len, (ProtFlags::READ | ProtFlags::WRITE, SEALS))
    }

    /// Maps `len` bytes for reading; a store to them is a fault.
    pub(super) fn read_only(fd: BorrowedFd<'_>, len: usize) -> Result<Self, SegmentError> {
        Self::map(fd, len, (ProtFlags::READ, SEALS))
    }

    /// Maps `len` bytes that no process can change any more.
    pub(super) fn immutable(fd: BorrowedFd<'_>, len: usize) -> Result<Self, SegmentError> {
        Self::map(fd, len, (ProtFlags::READ, IMMUTABLE))
    }

    /// Whether [`Self::immutable`] would map them, as far as that is their maker's fault.
    pub(super) fn check_immutable(fd: BorrowedFd<'_>, len: usize) -> Result<(), SegmentError> {
        check(fd, len, IMMUTABLE)
    }

    /// First byte, mapped for `len` bytes as long as `self` lives: aligned to a page, or to a word
    /// if nothing is mapped.
    #[inline]
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length in words, which is positive unless nothing is mapped.
    #[inline]
    pub(super) fn word_count(&self) -> usize {
        self.words
    }

    /// Length in bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.words * Segment::WORD_LEN
    }

    fn map(
        fd: BorrowedFd<'_>,
        len: usize,
        (prot, seals): (ProtFlags, SealFlags),
    ) -> Result<Self, SegmentError> {
        if len == 0 || !len.is_multiple_of(Segment::WORD_LEN) {
            return Err(SegmentError::Length { len });
        }
        check(fd, len, seals)?;
        // What never changes is mapped as it is looked at: no wait for a tensor of any length. All
        // else is there from the start, so that no message waits for the kernel.
        let flags = match seals.contains(IMMUTABLE) {
            true => MapFlags::SHARED,
            false => MapFlags::SHARED | MapFlags::POPULATE,
        };
        // SAFETY: without MAP_FIXED and with a null hint, the kernel chooses addresses that
        // nothing else in this process uses.
        let address = unsafe { mmap(ptr::null_mut(), len, prot, flags, fd, 0) }
            .map_err(SegmentError::os("mmap"))?;
        let base = NonNull::new(address.cast())
            .ok_or(SegmentError::Os { call: "mmap", errno: Errno::FAULT })?;
        let pages = Self { base, words: len / Segment::WORD_LEN };
        // A fork of a member would write on after the member was fenced by its death.
        // SAFETY: the range is this mapping; its contents and this process' view do not change.
        unsafe { madvise(address, len, Advice::LinuxDontFork) }
            .map_err(SegmentError::os("madvise"))?;
        Ok(pages)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.words == 0 {
            return;
        }
        // SAFETY: this is exactly the range that `map` got, unmapped once; everything that was
        // lent from it borrowed `self`.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len()) };
        debug_assert_eq!(unmapped, Ok(()), "a whole mapping can always be unmapped");
    }
}

fn check(fd: BorrowedFd<'_>, len: usize, seals: SealFlags) -> Result<(), SegmentError> {
    check_seals(fd, seals)?;
    let stat = fstat(fd).map_err(SegmentError::os("fstat"))?;
    let found = stat.st_size.cast_unsigned();
    if found == len as u64 { Ok(()) } else { Err(SegmentError::WrongSize { expected: len, found }) }
}

fn check_seals(fd: BorrowedFd<'_>, seals: SealFlags) -> Result<(), SegmentError> {
    let found = match fcntl_get_seals(fd) {
        Ok(found) => found,
        // Not a memfd: no seal can ever be on it.
        Err(Errno::INVAL) => SealFlags::empty(),
        Err(errno) => {
            return Err(SegmentError::Os { call: "fcntl F_GET_SEALS", errno });
        }
    };
    if found.contains(seals) {
        Ok(())
    } else {
        Err(SegmentError::Unsealed { missing: seals.difference(found) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};
    use std::os::fd::{AsFd, OwnedFd};

    fn memfd(len: u64, seals: SealFlags) -> OwnedFd {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create("weft-test", flags).unwrap();
        ftruncate(&fd, len).unwrap();
        fcntl_add_seals(&fd, seals).unwrap();
        fd
    }

    #[test]
    fn memory_whose_size_may_change_is_refused() {
        for missing in [SealFlags::SHRINK, SealFlags::GROW, SealFlags::SEAL, SEALS] {
            let fd = memfd(4096, SEALS.difference(missing));
            let refused = Pages::read_only(fd.as_fd(), 4096).map(drop);
            assert_eq!(refused, Err(SegmentError::Unsealed { missing }));
        }
    }

    #[test]
    fn files_and_pipes_are_refused() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let (pipe, _writer) = std::io::pipe().unwrap();
        for fd in [file.as_fd(), pipe.as_fd()] {
            let refused = Pages::read_only(fd, 4096).map(drop);
            assert_eq!(refused, Err(SegmentError::Unsealed { missing: SEALS }));
        }
    }

    #[test]
    fn memory_of_another_length_is_refused() {
        for found in [0, 4088, 8192] {
            let fd = memfd(found, SEALS);
            let refused = Pages::writable(fd.as_fd(), 4096).map(drop);
            assert_eq!(refused, Err(SegmentError::WrongSize { expected: 4096, found }));
        }
        let refused = Pages::writable(memfd(0, SEALS).as_fd(), 0).map(drop);
        assert_eq!(refused, Err(SegmentError::Length { len: 0 }));
    }

    #[test]
    fn read_only_descriptor_cannot_be_mapped_writable() {
        let segment = Segment::create("weft-test", 4096).unwrap();
        let fd = segment.read_only_fd().unwrap();
        let refused = Pages::writable(fd.as_fd(), 4096).map(drop);
        assert_eq!(refused, Err(SegmentError::Os { call: "mmap", errno: Errno::ACCESS }));
        Pages::read_only(fd.as_fd(), 4096).unwrap();
    }
}

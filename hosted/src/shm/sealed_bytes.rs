//! Memory that is written once and never again: the only shared memory that is lent as bytes.
//!
//! ```text
//!   SealedDraft::create ── write ──▶ finish: sealed ──▶ descriptor ──▶ any process: SealedBytes
//! ```
//!
//! With the seal WRITE the kernel refuses every write to the memory, by whatever descriptor, and it
//! grants the seal only where no process has a writable mapping. The seal FUTURE_WRITE does not do:
//! older mappings still write then. The file has whole words, and one at least, so that it can be
//! mapped; what is behind the bytes is zero.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::slice;

use rustix::fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate};
use rustix::io::Errno;

use super::pages::Pages;
use super::segment::{SEALS, create_memfd};
use super::{Segment, SegmentError};

/// Memory that is being written.
#[derive(Debug)]
pub struct SealedDraft {
    file: File,
}

/// Bytes that no process can change any more, mapped.
#[derive(Debug)]
pub struct SealedBytes {
    pages: Pages,
    len: usize,
}

/// The length of the file that holds `len` bytes; none if no address space holds them.
fn file_len(len: u64) -> Result<usize, SegmentError> {
    let len = usize::try_from(len).ok().filter(|len| *len <= isize::MAX as usize - 8);
    let too_long = SegmentError::Os { call: "mmap", errno: Errno::NOMEM };
    Ok(len.ok_or(too_long)?.max(1).next_multiple_of(Segment::WORD_LEN))
}

impl SealedDraft {
    /// Memory for `len` bytes, all of which is allocated now; its name is shown in /proc alone.
    ///
    /// # Errors
    /// [`SegmentError::Os`], with ENOSPC or ENOMEM if there is not enough memory.
    pub fn create(name: &str, len: u64) -> Result<Self, SegmentError> {
        let draft = Self::sparse(name, len)?;
        fallocate(&draft.file, FallocateFlags::empty(), 0, file_len(len)? as u64)
            .map_err(SegmentError::os("fallocate"))?;
        Ok(draft)
    }

    /// As [`Self::create`], but memory is taken as it is written, and a write fails where there is
    /// not enough. Each byte is to be written: a page that is not there cannot be mapped.
    ///
    /// # Errors
    /// [`SegmentError::Os`].
    pub fn sparse(name: &str, len: u64) -> Result<Self, SegmentError> {
        let len = file_len(len)?;
        let fd = create_memfd(name).map_err(SegmentError::os("memfd_create"))?;
        ftruncate(&fd, len as u64).map_err(SegmentError::os("ftruncate"))?;
        // What is written past the end fails from now on.
        let size = SealFlags::SHRINK | SealFlags::GROW;
        fcntl_add_seals(&fd, size).map_err(SegmentError::os("fcntl F_ADD_SEALS"))?;
        Ok(Self { file: File::from(fd) })
    }

    /// Ends the writing, for all processes.
    ///
    /// # Errors
    /// [`SegmentError::Os`].
    pub fn finish(self) -> Result<OwnedFd, SegmentError> {
        let seals = SEALS | SealFlags::WRITE;
        fcntl_add_seals(&self.file, seals).map_err(SegmentError::os("fcntl F_ADD_SEALS"))?;
        Ok(self.file.into())
    }
}

impl Write for SealedDraft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for SealedDraft {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl AsFd for SealedDraft {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl SealedBytes {
    /// Maps the `len` bytes behind `fd`, which any process may have made.
    ///
    /// # Errors
    /// [`SegmentError`] if they can still change, or are fewer or more.
    pub fn open(fd: BorrowedFd<'_>, len: u64) -> Result<Self, SegmentError> {
        let pages = Pages::immutable(fd, file_len(len)?)?;
        // As checked above.
        Ok(Self { pages, len: len as usize })
    }

    /// Checks the `len` bytes behind `fd` as [`Self::open`] does, and maps nothing.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn check(fd: BorrowedFd<'_>, len: u64) -> Result<(), SegmentError> {
        Pages::check_immutable(fd, file_len(len)?)
    }

    /// The bytes; they begin at a page.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the pages are mapped for at least `len` bytes as long as `self` lives, and their
        // file can be neither written nor shortened, which `Pages::immutable` has checked: these
        // bytes never change.
        unsafe { slice::from_raw_parts(self.pages.base().as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    #[test]
    fn rz17_what_is_sealed_is_lent_as_bytes_and_changes_no_more() {
        for bytes in [&b""[..], b"x", b"12345678", &[7; 5000]] {
            let mut draft = SealedDraft::create("weft-test", bytes.len() as u64).unwrap();
            draft.write_all(bytes).unwrap();
            let fd = draft.finish().unwrap();
            let lent = SealedBytes::open(fd.as_fd(), bytes.len() as u64).unwrap();
            assert_eq!(lent.bytes(), bytes);
            assert_eq!(rustix::io::pwrite(&fd, b"y", 0), Err(Errno::PERM));
            assert_eq!(ftruncate(&fd, 1 << 20), Err(Errno::PERM));
            let other = SealedBytes::open(fd.as_fd(), bytes.len() as u64 + 9).map(drop);
            assert!(matches!(other, Err(SegmentError::WrongSize { .. })), "{other:?}");
        }
    }

    #[test]
    fn rz17_what_could_still_be_written_is_refused() {
        let write = SealFlags::WRITE;
        for (seals, missing) in [
            (SEALS, write),
            (SEALS | SealFlags::FUTURE_WRITE, write),
            (SealFlags::empty(), SEALS | write),
        ] {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let fd = memfd_create("weft-test", flags).unwrap();
            ftruncate(&fd, 8).unwrap();
            fcntl_add_seals(&fd, seals).unwrap();
            let refused = SealedBytes::open(fd.as_fd(), 8).map(drop);
            assert_eq!(refused, Err(SegmentError::Unsealed { missing }));
        }
        let file = File::open("/proc/self/exe").unwrap();
        assert!(SealedBytes::open(file.as_fd(), 8).is_err());
    }

    #[test]
    fn a_length_that_no_memory_has_is_refused() {
        for len in [u64::MAX, i64::MAX as u64] {
            let refused = SealedDraft::create("weft-test", len).map(drop);
            assert!(matches!(refused, Err(SegmentError::Os { .. })), "{refused:?}");
        }
    }
}

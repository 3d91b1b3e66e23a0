//! A piece of memory that can be passed to other processes.
//!
//! All pages are allocated at creation and the size is sealed, so that no process which maps the
//! segment can be hit by SIGBUS because another one has shortened the file or because memory ran
//! out later. (A process that may write may also punch holes; a hole reads as zeros and is filled
//! on touch, which is no more than writing zeros, short of the host itself being out of memory.)
//!
//! The read-only descriptor is a second opening of the same memory, without the right to write.
//! Its holder cannot map it writable. Opening it again through /proc is refused by the mode of
//! the file, except to root and to a process of the same user that first changes that mode.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fchmod, fcntl_add_seals,
    memfd_create, open,
};
use rustix::io::Errno;

use super::SegmentError;

/// What keeps the size of a segment, and this list itself, as they are.
pub(super) const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Shared memory of a fixed size.
#[derive(Debug)]
pub struct Segment {
    fd: OwnedFd,
    len: usize,
}

#[expect(clippy::len_without_is_empty, reason = "a segment has at least one word")]
impl Segment {
    /// The unit of length in bytes: one atomic word.
    pub const WORD_LEN: usize = size_of::<u64>();

    /// Creates a zeroed segment of `len` bytes, all of which are allocated now. The name is
    /// shown in /proc/PID/maps and serves nothing else; it need not be unique.
    ///
    /// # Errors
    /// [`SegmentError::Length`] unless `len` is a positive multiple of [`Segment::WORD_LEN`],
    /// [`SegmentError::Os`] otherwise, with ENOSPC or ENOMEM if there is not enough memory.
    pub fn create(name: &str, len: usize) -> Result<Self, SegmentError> {
        if len == 0 || !len.is_multiple_of(Self::WORD_LEN) {
            return Err(SegmentError::Length { len });
        }
        let fd = create_memfd(name).map_err(SegmentError::os("memfd_create"))?;
        // Applies to later openings through /proc; descriptors keep the rights they have.
        fchmod(&fd, Mode::RUSR).map_err(SegmentError::os("fchmod"))?;
        fallocate(&fd, FallocateFlags::empty(), 0, len as u64)
            .map_err(SegmentError::os("fallocate"))?;
        fcntl_add_seals(&fd, SEALS).map_err(SegmentError::os("fcntl F_ADD_SEALS"))?;
        Ok(Self { fd, len })
    }

    /// Length in bytes, which a process needs to map the segment.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The descriptor to pass to a peer that may write.
    #[must_use]
    pub fn writable_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A descriptor to pass to a peer that may only read.
    ///
    /// # Errors
    /// [`SegmentError::Os`], with ENOENT if /proc is not mounted.
    pub fn read_only_fd(&self) -> Result<OwnedFd, SegmentError> {
        let path = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(SegmentError::os("open /proc/self/fd"))
    }
}

/// Sealed against being made executable too, if the kernel knows how (Linux 6.3).
pub(super) fn create_memfd(name: &str) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, flags),
        created => created,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{fcntl_get_seals, fstat, ftruncate};

    #[test]
    fn all_pages_are_allocated_and_the_size_is_final() {
        let segment = Segment::create("weft-test", 3 * 4096 + 8).unwrap();
        let fd = segment.writable_fd();
        let stat = fstat(fd).unwrap();
        assert_eq!(stat.st_size, 3 * 4096 + 8);
        assert!(stat.st_blocks * 512 >= 4 * 4096);
        assert!(fcntl_get_seals(fd).unwrap().contains(SEALS));
        assert_eq!(ftruncate(fd, 4096), Err(Errno::PERM));
        assert_eq!(ftruncate(fd, 5 * 4096), Err(Errno::PERM));
        assert_eq!(fcntl_add_seals(fd, SealFlags::WRITE), Err(Errno::PERM));
    }

    #[test]
    fn read_only_descriptor_refuses_a_write() {
        let segment = Segment::create("weft-test", 4096).unwrap();
        let fd = segment.read_only_fd().unwrap();
        assert_eq!(rustix::io::pwrite(&fd, b"x", 0), Err(Errno::BADF));
        assert_eq!(fstat(&fd).unwrap().st_mode & 0o777, 0o400);
    }

    #[test]
    fn lengths_that_are_no_words_are_refused() {
        for len in [0, 1, 7, 4097] {
            let refused = Segment::create("weft-test", len);
            assert_eq!(refused.map(drop), Err(SegmentError::Length { len }));
        }
        assert_eq!(Segment::create("weft-test", 8).unwrap().len(), 8);
    }

    #[test]
    fn bad_name_and_lack_of_memory_are_named() {
        let bad_name = Segment::create(&"n".repeat(300), 8).unwrap_err();
        assert_eq!(bad_name, SegmentError::Os { call: "memfd_create", errno: Errno::INVAL });
        let too_long = Segment::create("weft-test", usize::MAX - 7).unwrap_err();
        assert!(matches!(too_long, SegmentError::Os { call: "fallocate", .. }), "{too_long}");
    }

    #[test]
    fn nothing_appears_in_dev_shm() {
        let name = format!("weft-test-{}", std::process::id());
        let _segment = Segment::create(&name, 4096).unwrap();
        let listing = std::fs::read_dir("/dev/shm").into_iter().flatten();
        let mut names = listing.map(|entry| entry.unwrap().file_name());
        assert!(!names.any(|entry| entry.to_string_lossy().contains(&name)));
    }
}

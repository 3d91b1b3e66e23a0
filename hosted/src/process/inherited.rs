//! The child's side of inheritance: from a number to an owned descriptor.
//!
//! Everything this program opens is close-on-exec; what [`Spawn`](super::Spawn) handed down is
//! not. The missing mark is therefore the evidence that a number was inherited, and setting it
//! uses the evidence up: nothing can be adopted twice, and nothing opened here can be adopted
//! from under its owner. (Code that opens descriptors without the mark would defeat this; no
//! part of std or of this crate does.)

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;

use super::ProcessError;

/// Held from the look at the mark until it is set, so that two threads cannot both see it clear.
static ADOPTION: Mutex<()> = Mutex::new(());

/// Takes over the descriptor that the parent process put at `number`, once.
///
/// # Errors
/// [`ProcessError::NotInherited`] if nothing is open there, if it was opened by this process,
/// or if it has been adopted before.
pub fn adopt_inherited(number: RawFd) -> Result<OwnedFd, ProcessError> {
    if number <= libc::STDERR_FILENO {
        return Err(ProcessError::ReservedNumber { number });
    }
    // The lock guards no data, so a panic elsewhere has left nothing broken behind.
    let _adoption = ADOPTION.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: F_GETFD takes no pointer and changes nothing; on a closed number it is EBADF.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 || flags & libc::FD_CLOEXEC != 0 {
        return Err(ProcessError::NotInherited { number });
    }
    // SAFETY: F_SETFD takes no pointer. The descriptor is open and, for want of the mark, not
    // owned in this process yet.
    let status = unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    if status < 0 {
        let errno = Errno::from_io_error(&std::io::Error::last_os_error());
        let errno = errno.expect("last_os_error carries an errno");
        return Err(ProcessError::Os { call: "fcntl F_SETFD", errno });
    }
    // SAFETY: the descriptor is open, and by the mark just set, under the lock, this is the only
    // time that it is turned into an owned one.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, IntoRawFd};

    #[test]
    fn unmarked_descriptor_is_adopted_once() {
        let (reader, _writer) = std::io::pipe().unwrap();
        // dup leaves the mark clear, as inheritance does.
        let number = rustix::io::dup(&reader).unwrap().into_raw_fd();
        let adopted = adopt_inherited(number).unwrap();
        assert_eq!(adopted.as_raw_fd(), number);
        let again = adopt_inherited(number).unwrap_err();
        assert!(matches!(again, ProcessError::NotInherited { number: n } if n == number));
    }

    #[test]
    fn closed_own_and_standard_numbers_are_refused() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let own = adopt_inherited(reader.as_raw_fd());
        assert!(matches!(own, Err(ProcessError::NotInherited { .. })));
        let closed = adopt_inherited(RawFd::MAX);
        assert!(matches!(closed, Err(ProcessError::NotInherited { number: RawFd::MAX })));
        for number in [-1, 0, 2] {
            let reserved = adopt_inherited(number);
            assert!(matches!(reserved, Err(ProcessError::ReservedNumber { .. })));
        }
    }
}

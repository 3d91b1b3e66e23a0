//! Why a process was not started, watched or signalled.
//!
//! A process that is already dead is not among the reasons: every caller wants to go on in that
//! case, so it is an ordinary answer of [`Pidfd`](super::Pidfd).

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::explain::{Code, Explain};

/// A failed operation on a process.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProcessError {
    /// The descriptor does not refer to a process.
    NotPidfd,
    /// The number belongs to standard input, output or error, or is no descriptor number.
    ReservedNumber {
        /// The number asked for.
        number: RawFd,
    },
    /// Two inherited descriptors were given the same number.
    NumberTwice {
        /// The number asked for.
        number: RawFd,
    },
    /// Nothing was inherited under this number, or it was adopted before.
    NotInherited {
        /// The number asked for.
        number: RawFd,
    },
    /// The program could not be started.
    Spawn(io::Error),
    /// A thread could not be started.
    Thread(io::Error),
    /// Any other system call that failed.
    Os {
        /// The system call.
        call: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
}

impl ProcessError {
    /// Names the call for an errno, to be used with `map_err`.
    pub(crate) fn os(call: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Os { call, errno }
    }
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPidfd => f.write_str("adopt: the descriptor does not refer to a process"),
            Self::ReservedNumber { number } => {
                write!(f, "inherit: descriptor number {number} is not above standard error")
            }
            Self::NumberTwice { number } => {
                write!(f, "spawn: descriptor number {number} is given twice")
            }
            Self::NotInherited { number } => {
                write!(f, "adopt: no inherited descriptor has number {number}")
            }
            Self::Spawn(error) => write!(f, "spawn: {error}"),
            Self::Thread(error) => write!(f, "no thread can be started: {error}"),
            Self::Os { call, errno } => write!(f, "{call}: {errno}"),
        }
    }
}

impl Error for ProcessError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Spawn(error) | Self::Thread(error) => Some(error),
            Self::Os { errno, .. } => Some(errno),
            Self::NotPidfd
            | Self::ReservedNumber { .. }
            | Self::NumberTwice { .. }
            | Self::NotInherited { .. } => None,
        }
    }
}

impl Explain for ProcessError {
    fn code(&self) -> Code {
        Code::Internal
    }

    fn cure(&self) -> String {
        match self {
            Self::Spawn(error) | Self::Thread(error)
                if error.kind() == io::ErrorKind::WouldBlock =>
            {
                // What a stack cannot be mapped for is the same error to who starts a thread.
                if getrlimit(Resource::As).current.is_some() {
                    "raise the limits on address space (`ulimit -v`) and on processes (`ulimit -u`)"
                        .to_owned()
                } else {
                    "raise the limit of this user's processes and threads (`ulimit -u`)".to_owned()
                }
            }
            Self::Spawn(error)
                if error.kind() == io::ErrorKind::NotFound
                    && !Path::new("/proc/self/exe").exists() =>
            {
                "run `mount -t proc proc /proc`".to_owned()
            }
            _ => "`weft doctor` shows what the machine lacks".to_owned(),
        }
    }
}

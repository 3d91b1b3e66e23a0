//! Why a process was not started, watched or signalled.
//!
//! A process that is already dead is not among the reasons: every caller wants to go on in that
//! case, so it is an ordinary answer of [`Pidfd`](super::Pidfd).

use std::io;
use std::os::fd::RawFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::explain::{Code, Explain};

/// A failed operation on a process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The descriptor does not refer to a process.
    #[error("adopt: the descriptor does not refer to a process")]
    NotPidfd,
    /// The number belongs to standard input, output or error, or is no descriptor number.
    #[error("inherit: descriptor number {number} is not above standard error")]
    ReservedNumber {
        /// The number asked for.
        number: RawFd,
    },
    /// Two inherited descriptors were given the same number.
    #[error("spawn: descriptor number {number} is given twice")]
    NumberTwice {
        /// The number asked for.
        number: RawFd,
    },
    /// Nothing was inherited under this number, or it was adopted before.
    #[error("adopt: no inherited descriptor has number {number}")]
    NotInherited {
        /// The number asked for.
        number: RawFd,
    },
    /// The program could not be started.
    #[error("spawn: {0}")]
    Spawn(#[source] io::Error),
    /// A thread could not be started.
    #[error("no thread can be started: {0}")]
    Thread(#[source] io::Error),
    /// A process whose instructions are counted did not come to its end.
    #[error("the process whose instructions are counted {what}")]
    Stepped {
        /// What it did.
        what: String,
    },
    /// Any other system call that failed.
    #[error("{call}: {errno}")]
    Os {
        /// The system call.
        call: &'static str,
        /// What the kernel said.
        #[source]
        errno: Errno,
    },
}

impl ProcessError {
    /// Names the call for an errno, to be used with `map_err`.
    pub(crate) fn os(call: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Os { call, errno }
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
            Self::Stepped { .. } => "run it again, and leave its process alone".to_owned(),
            Self::Os { call, .. } if call.starts_with("ptrace") => {
                "run it below no debugger, and where the filter of system calls allows ptrace"
                    .to_owned()
            }
            _ => "`weft doctor` shows what the machine lacks".to_owned(),
        }
    }
}

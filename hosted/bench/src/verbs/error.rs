//! Why a benchmark over RDMA has no result.

use std::fmt;
use std::time::Duration;

use weft_core::endpoint::{Event, PutError};
use weft_core::fabric::{Failure, PostError};

#[cfg(feature = "verbs")]
use super::perftest::RivalError;
use weft::explain::{Code, Explain};
use weft::packet::PacketError;
use weft::process::ProcessError;

/// Why a benchmark over RDMA has no result.
#[derive(Debug)]
pub enum VerbsBenchError {
    /// This program was built without the driver.
    NotBuilt,
    /// There is no device, or it cannot do what is needed.
    #[cfg(feature = "verbs")]
    Driver(weft_driver::Error),
    /// A tool to compare with.
    #[cfg(feature = "verbs")]
    Rival(RivalError),
    /// A process could not be started or watched.
    Process(ProcessError),
    /// The socket between the two processes failed.
    Packet(PacketError),
    /// A thread could not be started.
    Thread(std::io::Error),
    /// A thread could not be tied to a processor.
    Processors(rustix::io::Errno),
    /// The other process has ended in the middle of it.
    PeerLost {
        /// What is known of it.
        words: String,
    },
    /// Nothing moved for too long.
    Stuck {
        /// How long it was waited for.
        patience: Duration,
    },
    /// Work was refused.
    Refused(PostError),
    /// Work failed.
    Failed(Failure),
    /// The endpoint refused a message.
    PutRefused(PutError),
    /// A put ended in a way that it must not end in here.
    Ended(Event),
    /// Something came back that was not there.
    Wrong {
        /// What.
        what: &'static str,
        /// What should have come.
        expected: u64,
        /// What did.
        found: u64,
    },
    /// The two processes do not agree on what comes next.
    OutOfStep(&'static str),
}

impl fmt::Display for VerbsBenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => f.write_str("this program was built without the RDMA driver"),
            #[cfg(feature = "verbs")]
            Self::Driver(error) => error.fmt(f),
            #[cfg(feature = "verbs")]
            Self::Rival(error) => error.fmt(f),
            Self::Process(error) => error.fmt(f),
            Self::Packet(error) => write!(f, "the processes cannot talk to each other: {error}"),
            Self::Thread(error) => write!(f, "thread of the benchmark: {error}"),
            Self::Processors(errno) => write!(f, "no processor can be chosen: {errno}"),
            Self::PeerLost { words } => write!(f, "the other process is gone: {words}"),
            Self::Stuck { patience } => write!(f, "nothing moved for {} s", patience.as_secs()),
            Self::Refused(error) => write!(f, "the fabric refused work: {error}"),
            Self::Failed(failure) => write!(f, "work failed: {failure}"),
            Self::PutRefused(error) => write!(f, "the endpoint refused a message: {error}"),
            Self::Ended(event) => write!(f, "a put ended with {event:?}"),
            Self::Wrong { what, expected, found } => {
                write!(f, "{what} is {found}, not {expected}")
            }
            Self::OutOfStep(what) => write!(f, "the processes are out of step: {what}"),
        }
    }
}

impl std::error::Error for VerbsBenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            #[cfg(feature = "verbs")]
            Self::Driver(error) => Some(error),
            #[cfg(feature = "verbs")]
            Self::Rival(error) => Some(error),
            Self::Process(error) => Some(error),
            Self::Packet(error) => Some(error),
            Self::Thread(error) => Some(error),
            Self::Processors(errno) => Some(errno),
            Self::Refused(error) => Some(error),
            Self::PutRefused(error) => Some(error),
            Self::NotBuilt
            | Self::PeerLost { .. }
            | Self::Stuck { .. }
            | Self::Failed(_)
            | Self::Ended(_)
            | Self::Wrong { .. }
            | Self::OutOfStep(_) => None,
        }
    }
}

impl Explain for VerbsBenchError {
    fn code(&self) -> Code {
        match self {
            Self::NotBuilt => Code::Rdma,
            #[cfg(feature = "verbs")]
            Self::Driver(_) | Self::Rival(_) => Code::Rdma,
            Self::PeerLost { .. } => Code::ComponentLost,
            Self::Stuck { .. } => Code::Timeout,
            Self::Wrong { .. } => Code::Verification,
            Self::OutOfStep(_) => Code::Protocol,
            Self::Refused(_) | Self::Failed(_) => Code::NodeUnreachable,
            Self::Process(_)
            | Self::Packet(_)
            | Self::Thread(_)
            | Self::Processors(_)
            | Self::PutRefused(_)
            | Self::Ended(_) => Code::Internal,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::NotBuilt => {
                "build it with `cargo build --release --features weft/verbs`, or run \
                 `ci/rxe bench`, which does"
            }
            #[cfg(feature = "verbs")]
            Self::Driver(error) => error.cure(),
            #[cfg(feature = "verbs")]
            Self::Rival(error) => error.cure(),
            Self::Process(_) | Self::Packet(_) | Self::Processors(_) => {
                "`weft doctor` shows which kernel feature is missing"
            }
            Self::Thread(_) => "free memory; `weft doctor` shows the limits",
            Self::PeerLost { .. } | Self::Stuck { .. } | Self::Refused(_) | Self::Failed(_) => {
                "run it again, and leave its processes and the device alone"
            }
            Self::PutRefused(_) | Self::Ended(_) | Self::Wrong { .. } | Self::OutOfStep(_) => {
                "this is a bug in weft, or in the device: please report it with this line"
            }
        }
        .to_owned()
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident),* $(,)?) => {$(
        impl From<$source> for VerbsBenchError {
            fn from(error: $source) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from! {
    ProcessError => Process,
    PacketError => Packet,
    PostError => Refused,
    Failure => Failed,
    PutError => PutRefused,
}

#[cfg(feature = "verbs")]
from! {
    weft_driver::Error => Driver,
    RivalError => Rival,
}

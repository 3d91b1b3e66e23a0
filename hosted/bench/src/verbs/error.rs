//! Why a benchmark over RDMA has no result.

use std::time::Duration;

use weft_core::endpoint::{Event, PutError};
use weft_core::fabric::{Failure, PostError};

#[cfg(feature = "verbs")]
use super::perftest::RivalError;
use weft::explain::{Code, Explain};
use weft::packet::PacketError;
use weft::process::ProcessError;

/// Why a benchmark over RDMA has no result.
#[derive(Debug, thiserror::Error)]
pub enum VerbsBenchError {
    /// This program was built without the driver.
    #[error("this program was built without the RDMA driver")]
    NotBuilt,
    /// There is no device, or it cannot do what is needed.
    #[cfg(feature = "verbs")]
    #[error("{0}")]
    Driver(#[from] weft_driver::Error),
    /// A tool to compare with.
    #[cfg(feature = "verbs")]
    #[error("{0}")]
    Rival(#[from] RivalError),
    /// A process could not be started or watched.
    #[error("{0}")]
    Process(#[from] ProcessError),
    /// The socket between the two processes failed.
    #[error("the processes cannot talk to each other: {0}")]
    Packet(#[from] PacketError),
    /// A thread could not be started.
    #[error("thread of the benchmark: {0}")]
    Thread(#[source] std::io::Error),
    /// A thread could not be tied to a processor.
    #[error("no processor can be chosen: {0}")]
    Processors(#[source] rustix::io::Errno),
    /// The other process has ended in the middle of it.
    #[error("the other process is gone: {words}")]
    PeerLost {
        /// What is known of it.
        words: String,
    },
    /// Nothing moved for too long.
    #[error("nothing moved for {} s", .patience.as_secs())]
    Stuck {
        /// How long it was waited for.
        patience: Duration,
    },
    /// Work was refused.
    #[error("the fabric refused work: {0}")]
    Refused(#[from] PostError),
    /// Work failed.
    #[error("work failed: {0}")]
    Failed(#[from] Failure),
    /// The endpoint refused a message.
    #[error("the endpoint refused a message: {0}")]
    PutRefused(#[from] PutError),
    /// A put ended in a way that it must not end in here.
    #[error("a put ended with {0:?}")]
    Ended(Event),
    /// Something came back that was not there.
    #[error("{what} is {found}, not {expected}")]
    Wrong {
        /// What.
        what: &'static str,
        /// What should have come.
        expected: u64,
        /// What did.
        found: u64,
    },
    /// The two processes do not agree on what comes next.
    #[error("the processes are out of step: {0}")]
    OutOfStep(&'static str),
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

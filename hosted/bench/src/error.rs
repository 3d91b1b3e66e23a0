//! Why a benchmark has no result.

use std::io;
use std::time::Duration;

use weft_core::endpoint::{Event, PutError};
use weft_core::ids::Peer;

use super::ucx::UcxError;
use super::wheel;
use weft::client::ClientError;
use weft::explain::{Code, Explain};
use weft::launch::LaunchError;
use weft::packet::PacketError;
use weft::process::ProcessError;
use weft::runtime_dir::RuntimeDirError;
use weft::shm::{BellError, SegmentError};

/// Why a benchmark has no result.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// No memory layout follows from the cell.
    #[error("no memory layout: {0}")]
    Plan(String),
    /// Memory could not be made or mapped.
    #[error("memory of the benchmark: {0}")]
    Memory(#[from] SegmentError),
    /// A process could not be started or watched.
    #[error("writer's process: {0}")]
    Process(#[from] ProcessError),
    /// The socket between owner and writer failed.
    #[error("socket between owner and writer: {0}")]
    Packet(#[from] PacketError),
    /// The cluster that is measured did not start.
    #[error("{0}")]
    Launch(#[source] LaunchError),
    /// One of its nodes did not do what it was asked.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// What it leaves behind could not be removed.
    #[error("{0}")]
    Directory(#[source] RuntimeDirError),
    /// A note that a fault makes unreadable could not be moved.
    #[error("the note of a node's last term: {0}")]
    Note(#[source] io::Error),
    /// Waiting failed.
    #[error("waiting: {0}")]
    Bell(#[from] BellError),
    /// A thread, or what it stands on, could not be made.
    #[error("thread of the benchmark: {0}")]
    Thread(#[source] io::Error),
    /// This keeper lost a timer, or let one expire too soon.
    #[error("{0} lost a timer, or let it expire too soon")]
    Timer(wheel::TimerKeeper),
    /// A writer's process has ended in the middle of it.
    #[error("the process of writer {writer} ended in the middle of it: {words}")]
    WriterLost {
        /// Which.
        writer: Peer,
        /// What is known of it.
        words: String,
    },
    /// A program that is measured as a member has failed.
    #[error("the program of member {rank}: {cause}")]
    Program {
        /// Which.
        rank: u16,
        /// What it has printed.
        cause: String,
    },
    /// Nothing moved for too long: a process is stopped, or a message is lost.
    #[error("nothing moved for {patience:?}")]
    Stuck {
        /// How long it was waited for.
        patience: Duration,
    },
    /// The endpoint refused what it must accept.
    #[error("a put was refused: {0}")]
    Refused(#[from] PutError),
    /// A put ended in a way that it must not end in here.
    #[error("a put ended unexpectedly: {0:?}")]
    Ended(Event),
    /// A message is not the one that was due.
    #[error(
        "message {expected} of writer {writer} was due, {} came",
        found.map_or_else(|| "other bytes".to_owned(), |found| found.to_string())
    )]
    WrongMessage {
        /// Who sent it.
        writer: Peer,
        /// The number that was due.
        expected: u64,
        /// The number that came; none when the bytes are not a message of ours.
        found: Option<u64>,
    },
    /// A script that is measured is refused, or orders what it must not.
    #[error("the script that is measured: {cause}")]
    Script {
        /// Why.
        cause: String,
    },
    /// A rival has no figure.
    #[error("{0}")]
    Rival(#[from] UcxError),
    /// The two ends of the socket do not agree on what comes next.
    #[error("owner and writer disagree: {0}")]
    OutOfStep(&'static str),
}

impl Explain for BenchError {
    fn code(&self) -> Code {
        match self {
            Self::Memory(_) => Code::Memory,
            Self::Launch(error) => error.code(),
            Self::Client(error) => error.code(),
            Self::Directory(error) => error.code(),
            Self::WriterLost { .. } | Self::Program { .. } => Code::ComponentLost,
            Self::Stuck { .. } => Code::Timeout,
            Self::WrongMessage { .. } | Self::Timer(_) | Self::Script { .. } => Code::Verification,
            Self::OutOfStep(_) => Code::Protocol,
            Self::Rival(UcxError::Missing { .. }) => Code::Usage,
            Self::Rival(_) => Code::ComponentLost,
            Self::Plan(_)
            | Self::Process(_)
            | Self::Packet(_)
            | Self::Bell(_)
            | Self::Thread(_)
            | Self::Note(_)
            | Self::Refused(_)
            | Self::Ended(_) => Code::Internal,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Launch(error) => return error.cure(),
            Self::Client(error) => return error.cure(),
            Self::Directory(error) => return error.cure(),
            Self::Rival(error) => error.cure(),
            Self::Memory(_) | Self::Thread(_) => "free memory; `weft doctor` shows the limits",
            Self::Process(_) | Self::Packet(_) | Self::Bell(_) => {
                "`weft doctor` shows which kernel feature is missing"
            }
            Self::WriterLost { .. } | Self::Program { .. } | Self::Stuck { .. } | Self::Note(_) => {
                "run it again, and leave its processes alone; WEFT_LOG=debug shows more"
            }
            Self::Plan(_)
            | Self::Timer(_)
            | Self::Refused(_)
            | Self::Ended(_)
            | Self::WrongMessage { .. }
            | Self::Script { .. }
            | Self::OutOfStep(_) => "this is a bug in weft: please report it with this line",
        }
        .to_owned()
    }
}

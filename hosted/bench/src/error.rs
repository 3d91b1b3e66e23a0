//! Why a benchmark has no result.

use std::fmt;
use std::io;
use std::time::Duration;

use weft_core::endpoint::{Event, PutError};
use weft_core::ids::Peer;

use super::wheel;
use weft::client::ClientError;
use weft::explain::{Code, Explain};
use weft::launch::LaunchError;
use weft::packet::PacketError;
use weft::process::ProcessError;
use weft::runtime_dir::RuntimeDirError;
use weft::shm::{BellError, SegmentError};

/// Why a benchmark has no result.
#[derive(Debug)]
pub enum BenchError {
    /// No memory layout follows from the cell.
    Plan(String),
    /// Memory could not be made or mapped.
    Memory(SegmentError),
    /// A process could not be started or watched.
    Process(ProcessError),
    /// The socket between owner and writer failed.
    Packet(PacketError),
    /// The cluster that is measured did not start.
    Launch(LaunchError),
    /// One of its nodes did not do what it was asked.
    Client(ClientError),
    /// What it leaves behind could not be removed.
    Directory(RuntimeDirError),
    /// Waiting failed.
    Bell(BellError),
    /// A thread, or what it stands on, could not be made.
    Thread(io::Error),
    /// This keeper lost a timer, or let one expire too soon.
    Timer(wheel::Keeper),
    /// A writer's process has ended in the middle of it.
    WriterLost {
        /// Which.
        writer: Peer,
        /// What is known of it.
        words: String,
    },
    /// Nothing moved for too long: a process is stopped, or a message is lost.
    Stuck {
        /// How long it was waited for.
        patience: Duration,
    },
    /// The endpoint refused what it must accept.
    Refused(PutError),
    /// A put ended in a way that it must not end in here.
    Ended(Event),
    /// A message is not the one that was due.
    WrongMessage {
        /// Who sent it.
        writer: Peer,
        /// The number that was due.
        expected: u64,
        /// The number that came; none when the bytes are not a message of ours.
        found: Option<u64>,
    },
    /// The two ends of the socket do not agree on what comes next.
    OutOfStep(&'static str),
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(reason) => write!(f, "no memory layout: {reason}"),
            Self::Memory(error) => write!(f, "memory of the benchmark: {error}"),
            Self::Process(error) => write!(f, "writer's process: {error}"),
            Self::Packet(error) => write!(f, "socket between owner and writer: {error}"),
            Self::Launch(error) => error.fmt(f),
            Self::Client(error) => error.fmt(f),
            Self::Directory(error) => error.fmt(f),
            Self::Bell(error) => write!(f, "waiting: {error}"),
            Self::Thread(error) => write!(f, "thread of the benchmark: {error}"),
            Self::Timer(keeper) => write!(f, "{keeper} lost a timer, or let it expire too soon"),
            Self::WriterLost { writer, words } => {
                write!(f, "the process of writer {writer} ended in the middle of it: {words}")
            }
            Self::Stuck { patience } => write!(f, "nothing moved for {patience:?}"),
            Self::Refused(error) => write!(f, "a put was refused: {error}"),
            Self::Ended(event) => write!(f, "a put ended unexpectedly: {event:?}"),
            Self::WrongMessage { writer, expected, found } => {
                write!(f, "message {expected} of writer {writer} was due, ")?;
                match found {
                    Some(found) => write!(f, "{found} came"),
                    None => f.write_str("other bytes came"),
                }
            }
            Self::OutOfStep(what) => write!(f, "owner and writer disagree: {what}"),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory(error) => Some(error),
            Self::Process(error) => Some(error),
            Self::Packet(error) => Some(error),
            Self::Launch(error) => Some(error),
            Self::Client(error) => Some(error),
            Self::Directory(error) => Some(error),
            Self::Bell(error) => Some(error),
            Self::Thread(error) => Some(error),
            Self::Refused(error) => Some(error),
            Self::Plan(_)
            | Self::Timer(_)
            | Self::WriterLost { .. }
            | Self::Stuck { .. }
            | Self::Ended(_)
            | Self::WrongMessage { .. }
            | Self::OutOfStep(_) => None,
        }
    }
}

impl Explain for BenchError {
    fn code(&self) -> Code {
        match self {
            Self::Memory(_) => Code::Memory,
            Self::Launch(error) => error.code(),
            Self::Client(error) => error.code(),
            Self::Directory(error) => error.code(),
            Self::WriterLost { .. } => Code::ComponentLost,
            Self::Stuck { .. } => Code::Timeout,
            Self::WrongMessage { .. } | Self::Timer(_) => Code::Verification,
            Self::OutOfStep(_) => Code::Protocol,
            Self::Plan(_)
            | Self::Process(_)
            | Self::Packet(_)
            | Self::Bell(_)
            | Self::Thread(_)
            | Self::Refused(_)
            | Self::Ended(_) => Code::Internal,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Launch(error) => return error.cure(),
            Self::Client(error) => return error.cure(),
            Self::Directory(error) => return error.cure(),
            Self::Memory(_) | Self::Thread(_) => "free memory; `weft doctor` shows the limits",
            Self::Process(_) | Self::Packet(_) | Self::Bell(_) => {
                "`weft doctor` shows which kernel feature is missing"
            }
            Self::WriterLost { .. } | Self::Stuck { .. } => {
                "run it again, and leave its processes alone; WEFT_LOG=debug shows more"
            }
            Self::Plan(_)
            | Self::Timer(_)
            | Self::Refused(_)
            | Self::Ended(_)
            | Self::WrongMessage { .. }
            | Self::OutOfStep(_) => "this is a bug in weft: please report it with this line",
        }
        .to_owned()
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident),* $(,)?) => {$(
        impl From<$source> for BenchError {
            fn from(error: $source) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from! {
    SegmentError => Memory,
    ProcessError => Process,
    PacketError => Packet,
    BellError => Bell,
    PutError => Refused,
    ClientError => Client,
}

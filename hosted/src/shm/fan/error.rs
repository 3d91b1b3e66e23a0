//! Why a message did not go out to the readers, or did not come in.

use std::io;
use std::path::PathBuf;

use super::{MESSAGE_LEN_MAX, NAME_MAX, READERS_MAX, SLOTS_MAX};
use crate::explain::{Code, Explain};
use crate::packet::PacketError;
use crate::process::ProcessError;
use crate::shm::SegmentError;

/// Why a call of a [`FanWriter`](super::FanWriter) or a [`FanReader`](super::FanReader) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FanError {
    /// No ring has these sizes.
    #[error("a ring of {slots} slots of {message_len} bytes cannot be made")]
    Plan {
        /// As asked for.
        slots: usize,
        /// As asked for.
        message_len: usize,
    },
    /// A process answers at the path.
    #[error("another writer has {}", path.display())]
    PathInUse {
        /// The path.
        path: PathBuf,
    },
    /// What is at the path is no socket, and stays.
    #[error("{} is there, and is no socket", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The directory of the path cannot be used.
    #[error("the directory of {}: {error}", path.display())]
    Directory {
        /// The path.
        path: PathBuf,
        /// The error.
        #[source]
        error: io::Error,
    },
    /// No process answers at the path, or not in time.
    #[error("no writer answers at {}", path.display())]
    NoWriter {
        /// The path.
        path: PathBuf,
    },
    /// The other side has another layout.
    #[error("the writer has version {version} of the ring")]
    OtherVersion {
        /// The writer's.
        version: u32,
    },
    /// No reader can have this name.
    #[error("a reader cannot be called {name:?}")]
    Name {
        /// As asked for.
        name: String,
    },
    /// A living reader has this name.
    #[error("another reader is called {name:?}")]
    NameInUse {
        /// As asked for.
        name: String,
    },
    /// There are as many readers as there may be.
    #[error("the writer has {READERS_MAX} readers, and takes no more")]
    ReadersFull,
    /// The message is longer than a slot. Nothing was sent.
    #[error("the message has {len} bytes, and a slot {limit}")]
    TooLong {
        /// Its length.
        len: usize,
        /// The length of a slot.
        limit: usize,
    },
    /// A living reader has not read what was sent a whole ring ago. Nothing was sent.
    #[error("reader {name:?} (process {process}) has not read message {message}")]
    Full {
        /// The reader that is furthest behind.
        name: String,
        /// Its process; 0 if that is not visible from here.
        process: i32,
        /// The number of the message, from 0.
        message: u64,
    },
    /// The writer's process has ended, and all that it had published was read.
    #[error("the writer (process {process}) has ended")]
    WriterEnded {
        /// Its process; 0 if that is not visible from here.
        process: i32,
    },
    /// The writer has closed the ring, and all that it had published was read.
    #[error("the writer has closed the ring")]
    Closed,
    /// The ring holds what no writer writes.
    #[error("the ring is damaged at message {message}")]
    Damaged {
        /// The number of the message, from 0.
        message: u64,
    },
    /// Memory could not be shared.
    #[error("memory of the ring: {0}")]
    Memory(#[from] SegmentError),
    /// The socket failed.
    #[error("socket of the ring: {0}")]
    Socket(#[from] PacketError),
    /// A process cannot be watched.
    #[error("{0}")]
    Process(#[from] ProcessError),
}

impl Explain for FanError {
    fn code(&self) -> Code {
        match self {
            Self::Plan { .. } | Self::Name { .. } => Code::Usage,
            Self::PathInUse { .. } | Self::NotASocket { .. } | Self::NameInUse { .. } => {
                Code::NameInUse
            }
            Self::Directory { .. } => Code::RuntimeDir,
            Self::NoWriter { .. } => Code::NodeUnreachable,
            Self::OtherVersion { .. } | Self::Damaged { .. } | Self::Socket(_) => Code::Protocol,
            Self::ReadersFull => Code::Busy,
            Self::TooLong { .. } => Code::MessageTooLong,
            Self::Full { .. } => Code::WindowFull,
            Self::WriterEnded { .. } => Code::ComponentLost,
            Self::Closed => Code::Abandoned,
            Self::Memory(_) => Code::Memory,
            Self::Process(error) => error.code(),
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Plan { .. } => {
                let slots = format!("1 to {SLOTS_MAX} slots");
                return format!("take {slots} of at most {MESSAGE_LEN_MAX} bytes");
            }
            Self::PathInUse { .. } => "end that writer and its children, or choose another path",
            Self::NotASocket { .. } => "choose another path",
            Self::Directory { .. } => "name a path in a directory that is there and yours",
            Self::NoWriter { .. } => "start the writer, and have it admit its readers",
            Self::OtherVersion { .. } => "run both sides with one version of Weft",
            Self::Name { .. } => return format!("name it with 1 to {NAME_MAX} bytes"),
            Self::NameInUse { .. } => "choose another name",
            Self::ReadersFull => "close a reader, or fan out in two steps",
            Self::TooLong { .. } => "split it, or make the ring with longer slots",
            Self::Full { .. } => "have it read, or end it; then send again",
            Self::WriterEnded { .. } => "end, or join again once the next writer has started",
            Self::Closed => "end, or join another writer",
            Self::Damaged { .. } => "join again; report it if no process but the writer wrote it",
            Self::Memory(_) => "free memory, or make a smaller ring",
            Self::Socket(_) => "join again; `ulimit -n` shows how many descriptors are left",
            Self::Process(error) => return error.cure(),
        }
        .to_owned()
    }
}

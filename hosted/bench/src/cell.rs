//! One cell of the table: so many bytes from so many writers.

use weft_core::endpoint;

use super::error::BenchError;
use weft::cluster::{self, Cluster};
use weft::node;
use weft::shm::Wait;

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Length of a message.
    pub bytes: usize,
    /// Processes that put into the one mailbox.
    pub writers: u16,
}

impl Cell {
    /// The messages measured.
    pub const BYTES: [usize; 3] = [8, 64, 256];
    /// The writers measured.
    pub const WRITERS: [u16; 3] = [1, 2, 3];

    /// Every pair of the two.
    pub fn all() -> impl Iterator<Item = Self> {
        let bytes = Self::BYTES.into_iter();
        bytes.flat_map(|bytes| Self::WRITERS.map(|writers| Self { bytes, writers }))
    }

    /// Owner and writers as a cluster file would describe them: all defaults, with slots as long
    /// as the message.
    pub(super) fn cluster(self, wait: Wait) -> Cluster {
        let mailbox = cluster::Mailbox { message_len: self.bytes, ..cluster::Mailbox::default() };
        Cluster { nodes: usize::from(self.writers) + 1, wait, mailbox, ..Cluster::default() }
    }

    /// The memory of owner and writers.
    pub(super) fn plan(self) -> Result<endpoint::Plan, BenchError> {
        node::plan(&self.cluster(Wait::Spin)).map_err(|error| BenchError::Plan(error.to_string()))
    }

    /// Spin while every process can have a processor, else let others have theirs.
    pub(super) fn wait(self, processors: usize) -> Wait {
        if usize::from(self.writers) < processors { Wait::Spin } else { Wait::Yield }
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { bytes, writers } = self;
        write!(f, "{bytes} bytes, {writers} writer{}", if *writers == 1 { "" } else { "s" })
    }
}

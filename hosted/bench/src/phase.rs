//! Messages between owner and writers, over their socket.

use std::os::fd::RawFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use weft::shm::Wait;

/// Where a writer finds its socket.
pub(super) const SOCKET_FD: RawFd = 3;
/// How long a process may take to answer beyond the length of a phase. Far above any stall of a
/// host, so that only a process that is stopped or broken meets it.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// One thing that is measured with the writers taking part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Words go back and forth in cache lines of their own.
    Exchange,
    /// Messages go back and forth.
    Latency,
    /// Messages go one way, as fast as they are taken.
    Rate,
}

/// From the owner.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToWriter {
    /// Be this writer. With it come the writer's own memory, what it may reach of the owner, the
    /// lines of the exchange, and the owner's process.
    Start { rank: u16, writers: u16, bytes: usize, wait: Strategy },
    /// Take part until the owner ends it in band.
    Run { phase: Phase, millis: u64 },
}

/// From a writer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromWriter {
    /// Its endpoint is made and lets the owner in.
    Ready,
    /// It ends, and this is why.
    Failed { words: String },
}

/// The wait strategies of a benchmark; no process sleeps.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Strategy {
    Spin,
    Yield,
}

impl From<Strategy> for Wait {
    fn from(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Spin => Self::Spin,
            Strategy::Yield => Self::Yield,
        }
    }
}

impl From<Wait> for Strategy {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::Spin => Self::Spin,
            Wait::Yield | Wait::Futex => Self::Yield,
        }
    }
}

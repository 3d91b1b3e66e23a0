//! Messages between the two processes, over their socket.

use std::os::fd::RawFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::subject::VerbsSubject;

/// Where the peer finds its socket.
pub(super) const SOCKET_FD: RawFd = 3;
/// How long a process may take to answer, and a turn to move on: far above any stall of a host.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What is done in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum VerbsTurn {
    /// Our side of a subject.
    Subject(VerbsSubject),
    /// The bare operations of a mailbox's put.
    AddAndWrite,
    /// Nothing is left to do but to see that the last of a stream's writes is there. The follower
    /// of a stream has nothing to look at meanwhile, and looking would cost the leader.
    Arrived { bytes: u32 },
}

/// From the process that measures.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToPeer {
    /// Be the peer: at this processor, on this device, with these ends.
    Meet { device: String, port: u8, processor: usize, yield_every: u32, ends: EncodedEnds },
    /// Take part in a turn whose writes are numbered from `first` on.
    Run { turn: VerbsTurn, iterations: u32, first: u64 },
}

/// From the peer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromPeer {
    /// It is connected, and these are its ends.
    Met { ends: EncodedEnds },
    /// It has done its part of the turn.
    Done,
    /// It ends, and this is why.
    Failed { words: String },
}

/// The ends of both pairs, as the driver encodes them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EncodedEnds {
    pub(super) bare: Vec<u8>,
    pub(super) mail: Vec<u8>,
}

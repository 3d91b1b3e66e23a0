//! A frame of the DIR net on its way through the supervisors, to or from an I'm-Alive Task; or an
//! entry of the sender's chronicle; or a part of a recovery script.
//!
//! Components write to each other's memory. An I'm-Alive Task must be heard when its component is
//! gone, so its frames travel in the sessions in which nodes meet. A `Datagram` that cannot be sent
//! at once is dropped: its sender repeats it if it still matters.

use serde::{Deserialize, Serialize};

use crate::payload::Payload;

/// The longest encoded entry of a chronicle: those with an error text of the operating system are
/// the longest.
pub const NOTE_LEN_MAX: usize = 2_048;
/// The longest part of a recovery script.
pub const SCRIPT_LEN_MAX: usize = 4_112;

/// The endpoint of a node that a `Datagram` is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DatagramPort {
    /// Its component.
    Component,
    /// Its I'm-Alive Task.
    ImAliveTask,
    /// Its supervisor, which keeps the entries of other nodes.
    Chronicle,
    /// Its supervisor, which holds recovery scripts: a part of one, or the question for one.
    Script,
}

/// One frame, or one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagram {
    /// The endpoint at the receiving node.
    pub to: DatagramPort,
    /// The frame or the entry; its receiver validates it.
    pub bytes: Payload,
}

/// Sends each `Datagram`, from any thread.
pub trait DatagramSender: Send {
    /// Sends `datagram` to the node of `peer`, or drops it.
    fn send(&self, peer: weft_core::ids::Peer, datagram: &Datagram);
}

//! A frame of the DIR net on its way through the supervisors, to or from an I'm-Alive Task; or an
//! entry of the sender's chronicle.
//!
//! Components write to each other's memory. An I'm-Alive Task must be heard when its component is
//! gone, so its frames travel in the sessions in which nodes meet. A `Letter` that cannot be sent
//! at once is dropped: its sender repeats it if it still matters.

use serde::{Deserialize, Serialize};

use crate::payload::Payload;

/// The longest encoded entry of a chronicle: those with an error text of the operating system are
/// the longest.
pub const NOTE_LEN_MAX: usize = 2_048;

/// The endpoint of a node that a `Letter` is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Desk {
    /// Its component.
    Component,
    /// Its I'm-Alive Task.
    ImAliveTask,
    /// Its supervisor, which keeps the entries of other nodes.
    Chronicle,
}

/// One frame, or one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// The endpoint at the receiving node.
    pub to: Desk,
    /// The frame or the entry; its receiver validates it.
    pub bytes: Payload,
}

/// Sends each `Letter`, from any thread.
pub trait Courier: Send {
    /// Sends `letter` to the node of `peer`, or drops it.
    fn send(&self, peer: weft_core::ids::Peer, letter: &Letter);
}

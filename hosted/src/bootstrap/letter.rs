//! A frame of the DIR net on its way through the supervisors, to or from an I'm-Alive Task; or an
//! entry of the sender's chronicle.
//!
//! Components write to each other's memory; an I'm-Alive Task must be heard when its component is
//! gone, so it has its own way, the sessions in which nodes meet. A letter that cannot be handed
//! over at once is dropped: whoever sent it sends it again if it still matters.

use serde::{Deserialize, Serialize};

use crate::node::control::Payload;

/// Which endpoint of a node a letter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Desk {
    /// Its component.
    Component,
    /// Its I'm-Alive Task.
    ImAliveTask,
    /// Its supervisor, which keeps what others have noted.
    Chronicle,
}

/// One frame, or one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// For whom at the node that it is sent to.
    pub to: Desk,
    /// The frame or the entry; judged by whoever it is for.
    pub bytes: Payload,
}

/// Hands letters over, from any thread.
pub trait Courier: Send {
    /// Hands `letter` to the node of `peer`, or drops it.
    fn send(&self, peer: weft_core::ids::Peer, letter: &Letter);
}

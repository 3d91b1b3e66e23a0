//! Bootstrap: which nodes take part, how their memory is reached, and which incarnation of each
//! runs.
//!
//! ```text
//!   node A                                   node B
//!   Hello {version, cluster, instance, layout, dirnet, rank} ─▶ checked; refused with a reason, or
//!        ◀─ Hello, and what A may reach of B
//!   Alive {incarnation, key} + its process ─▶ B's component admits that incarnation of A
//!   Offer {from, to, end} ──────────────────▶ over verbs: A's end of the pair of two incarnations
//!   Dead {incarnation} ─────────────────────▶ B's component fences it
//!   Fenced {incarnation} ───────────────────▶ B ends that incarnation of its own: A has fenced it
//!   Isolated, Released {boot} ──────────────▶ B runs no component until it is released
//!   Free {boot} ────────────────────────────▶ A was released: what B knows is older
//!   AskForRelease {boot} ───────────────────▶ A is isolated, also if B has forgotten that
//!   TensorWanted, TensorHanded {number} ────▶ on one host: the memory of a tensor, as descriptor
//!   Datagram {to, frame} ─────────────────────▶ the DIR net, to or from an I'm-Alive Task; scripts
//! ```
//!
//! A node sends `Alive` when its component has made its endpoint and `Dead` when it has seen the
//! component's process end, so what follows from either is certain. A session that breaks proves
//! less: the peer is fenced, and if the same incarnation connects again later, it receives
//! `Fenced` and the next one is started. Of two nodes that have fenced each other, as the sides of
//! a partition do, only one has to start its next incarnation: see [`Fenced`].
//!
//! [`Bootstrap`] is the part that differs between one host ([`LocalBootstrap`]: descriptors over
//! Unix sockets, same user checked by the kernel) and several ([`NetworkBootstrap`]: TCP inside a
//! channel that takes the cluster's key). Events arrive as [`BootstrapEvent`].

mod audience;
mod datagram;
mod hello;
mod local;
mod network;
mod offer;
mod session;
mod session_message;

pub use datagram::{Datagram, DatagramPort, DatagramSender, NOTE_LEN_MAX, SCRIPT_LEN_MAX};
pub use hello::{Hello, Refusal, VERSION};
pub use local::{LocalBootstrap, LocalError};
pub use network::{
    Addresses, DirectoryFault, Frame, Frames, Key, KeyError, Kind, LinkError, Meeting,
    NetworkBootstrap, NetworkError, Timing,
};
pub use offer::{Offer, PairEnd};
pub use session_message::SessionMessage;

use std::os::fd::{BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};
pub use weft_core::dirnet::Fenced;
use weft_core::ids::{Incarnation, Peer};

use crate::process::Pidfd;
use crate::shm::Grant;
use crate::signing::PublicKey;

/// One incarnation of a node's component.
#[derive(Debug)]
pub struct AnnouncedIncarnation {
    /// Its number.
    pub incarnation: Incarnation,
    /// Its boot: the number of the boot's first incarnation.
    pub boot: Incarnation,
    /// Its process, for fencing; none when it runs on another host.
    pub process: Option<Pidfd>,
    /// The name of its memory: another number is another memory, which holds none of the former
    /// state.
    pub memory: u64,
    /// The public key of its broadcasts, if they are signed.
    pub key: Option<PublicKey>,
}

/// A tensor that one node hands over to another of its host (RZ-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOver {
    /// The number that the source keeps it under.
    pub number: u64,
    /// The incarnation of the source that has lent it: a number names another tensor in another.
    pub lent_by: u32,
    /// The incarnation of the destination that fetches it, and its number for that.
    pub fetched_by: (u32, u64),
}

/// An event of the bootstrap.
#[derive(Debug)]
pub enum BootstrapEvent {
    /// An event of a peer.
    Heard {
        /// The peer.
        peer: Peer,
        /// Its session. Later sessions have higher numbers; an event of an earlier session that
        /// arrives after a later one has begun is stale.
        session: u64,
        /// The event.
        news: News,
    },
    /// A peer was refused, or refused this node.
    Refused {
        /// The peer, for people.
        who: String,
        /// The reason.
        reason: Refusal,
    },
}

/// An event of one peer.
#[derive(Debug)]
pub enum News {
    /// It was met, and may be reached by these descriptors; over verbs there are none.
    Met(Grant),
    /// An incarnation of it has started.
    Alive(AnnouncedIncarnation),
    /// An incarnation of it has made its end of the pair with an incarnation of this node.
    Offered(Offer),
    /// An incarnation of it has ended: its process is confirmed dead.
    Dead(Incarnation),
    /// A frame of the DIR net.
    Datagram(Datagram),
    /// It has fenced this incarnation of this node, and will not admit it again.
    Fenced(Fenced),
    /// It has met this node with another memory, whose promises this node does not know.
    OtherMemory,
    /// By decision it admits no incarnation of this node.
    Isolated(Incarnation),
    /// By decision it admits later incarnations of this node again.
    Released(Incarnation),
    /// It is no longer isolated, whatever was known here, since this incarnation of it or before.
    Free(Incarnation),
    /// It is isolated since its boot that began with this incarnation, and asks for its release.
    AskedForRelease(Incarnation),
    /// It wants the memory of a tensor that is handed over.
    TensorWanted(HandOver),
    /// The memory of a tensor that this node wanted; none if it is not kept there.
    TensorHanded(HandOver, Option<OwnedFd>),
    /// The session with the node has ended.
    Parted,
}

/// Meets the peers of one node and reports its incarnations to them.
///
/// A message that cannot be sent to a peer ends the session with it, at both ends; the next session
/// begins with the incarnation that runs then.
pub trait Bootstrap {
    /// Announces to every peer, met now or later, that this incarnation of the own component runs.
    fn announce(&mut self, announced: AnnouncedIncarnation);

    /// Reports to every peer that this incarnation has ended.
    fn retract(&mut self, incarnation: Incarnation);

    /// Sends `peer` the own end of a pair.
    fn offer(&mut self, peer: Peer, offer: &Offer);

    /// Reports to `peer` that this incarnation of it is fenced here for good.
    fn refuse(&mut self, peer: Peer, fenced: Fenced);

    /// Reports to `peer` that it is isolated since its boot that began with incarnation `boot`.
    fn isolate(&mut self, peer: Peer, boot: Incarnation);

    /// Reports to `peer` that this node has met it with another memory.
    fn note_other_memory(&mut self, peer: Peer);

    /// Reports to `peer` that isolations of it since `boot` or before are over.
    fn release(&mut self, peer: Peer, boot: Incarnation);

    /// Reports to `peer`, which knows the own node as isolated, that isolations since `boot` or
    /// before are over.
    fn contradict(&mut self, peer: Peer, boot: Incarnation);

    /// Reports to `peer` that this node is isolated since `boot`, and asks for its release.
    fn ask_for_release(&mut self, peer: Peer, boot: Incarnation);

    /// Asks `peer` for the memory of a tensor that it hands over.
    fn want_tensor(&mut self, peer: Peer, which: HandOver);

    /// Hands `peer` the memory of the tensor that it wanted; none if it cannot have it.
    fn hand_tensor(&mut self, peer: Peer, which: HandOver, memory: Option<BorrowedFd<'_>>);

    /// Sends frames of the DIR net, and entries of the chronicle, to the peers that are met.
    fn datagrams(&self) -> Box<dyn DatagramSender>;
}

//! Bootstrap: who takes part, how its memory is reached, and which life of it is running.
//!
//! ```text
//!   node A                                   node B
//!   Hello {version, cluster, instance, layout, dirnet, rank} ─▶ checked; refused with a reason, or
//!        ◀─ Hello, and what A may reach of B
//!   Alive {incarnation, key} + its process ─▶ B's component admits that life of A
//!   Offer {from, to, end} ──────────────────▶ over verbs: A's end of the pair of these two lives
//!   Dead {incarnation} ─────────────────────▶ B's component fences it
//!   ShutOut {incarnation} ──────────────────▶ B ends that life of its own: A has fenced it
//!   Isolated, Released {boot} ──────────────▶ B keeps quiet until it is released
//!   Free {boot} ────────────────────────────▶ A was released: what B knows is older
//!   Letter {to, frame} ─────────────────────▶ the DIR net, to or from an I'm-Alive Task
//! ```
//!
//! A node says `Alive` when its component has made its endpoint and `Dead` when it has seen the
//! component's process end, so what follows from either is certain. A session that breaks says
//! less: the peer is fenced for it, and should the same life be heard again later, it is told
//! that it was shut out and begins its next life. Two that have shut each other out, as the sides
//! of a partition do, need only one of them to begin anew: see [`ShutOut`].
//!
//! [`Bootstrap`] is the part that differs between one host ([`LocalBootstrap`]: descriptors over
//! Unix sockets, same user checked by the kernel) and several ([`NetworkBootstrap`]: TCP inside a
//! channel that takes the cluster's key); what is learned arrives as [`Tidings`].

mod audience;
mod hello;
mod letter;
mod local;
mod network;
mod offer;
mod session;
mod word;

pub use hello::{Hello, Refusal, VERSION};
pub use letter::{Courier, Desk, Letter};
pub use local::{LocalBootstrap, LocalError};
pub use network::{
    Frame, Frames, Key, KeyError, Kind, LinkError, Meeting, NetworkBootstrap, NetworkError, Timing,
};
pub use offer::{Offer, PairEnd};
pub use word::Word;

use weft_core::dirnet::Term;
use weft_core::ids::{Incarnation, Peer};

use crate::process::Pidfd;
use crate::shm::Grant;
use crate::signing::PublicKey;

/// One life of a node's component.
#[derive(Debug)]
pub struct Life {
    /// Which life.
    pub incarnation: Incarnation,
    /// The first life of the same supervisor.
    pub boot: Incarnation,
    /// Its process, to be fenced with; none when it runs on another host.
    pub process: Option<Pidfd>,
    /// Names its memory: another number is another memory, which remembers nothing.
    pub memory: u64,
    /// What its broadcasts are signed with, if they are.
    pub key: Option<PublicKey>,
}

/// What a node learns.
#[derive(Debug)]
pub enum Tidings {
    /// News of a peer.
    Heard {
        /// Who.
        peer: Peer,
        /// In which session; later ones have higher numbers, and news of an earlier session
        /// that arrive after a later one has begun are stale.
        session: u64,
        /// What.
        news: News,
    },
    /// Somebody was refused, or refused this node.
    Refused {
        /// Who, in words.
        who: String,
        /// Why.
        reason: Refusal,
    },
}

/// News of one peer.
#[derive(Debug)]
pub enum News {
    /// It was met, and may be reached by these descriptors; over verbs there are none.
    Met(Grant),
    /// A life of it has begun.
    Alive(Life),
    /// A life of it has made its end of the pair with a life of this node.
    Offered(Offer),
    /// A life of it has ended: its process is confirmed dead.
    Dead(Incarnation),
    /// A frame of the DIR net.
    Letter(Letter),
    /// It has fenced this life of this node, and will not let it in again.
    ShutOut(ShutOut),
    /// It has met this node with another memory, whose promises this node does not know.
    OtherMemory,
    /// By decision it lets no life of this node in.
    Isolated(Incarnation),
    /// By decision it lets later lives of this node in again.
    Released(Incarnation),
    /// It is isolated no longer, whatever was known here, since this life of it or before.
    Free(Incarnation),
    /// The node itself cannot be heard any more.
    Parted,
}

/// A life that is shut out by a peer, for good.
///
/// It ends and the next one begins, unless it has said the same to that peer with more right: by a
/// decision, where the other has none and only lost the connection; by the decision of a later
/// reign, where both have one; or as the higher rank, where neither has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutOut {
    /// The life, and all before it.
    pub life: Incarnation,
    /// The term of the decision; none where a connection was lost and no manager has decided.
    pub decided: Option<Term>,
}

/// Meets the peers of one node and tells them of its lives.
///
/// What cannot be said to a peer ends the session with it, at both ends; the next one begins
/// with the life that runs then.
pub trait Bootstrap {
    /// Tells every peer that is met, now or later, that this life of the own component runs.
    fn announce(&mut self, life: Life);

    /// Tells every peer that this life has ended.
    fn retract(&mut self, incarnation: Incarnation);

    /// Hands `peer` the own end of a pair.
    fn offer(&mut self, peer: Peer, offer: &Offer);

    /// Tells `peer` that this life of it is shut out here for good.
    fn shut_out(&mut self, peer: Peer, word: ShutOut);

    /// Tells `peer` that it is isolated since its life that began with `boot`.
    fn isolate(&mut self, peer: Peer, boot: Incarnation);

    /// Reports to `peer` that this node has met it with another memory.
    fn note_other_memory(&mut self, peer: Peer);

    /// Tells `peer` that isolations of it since `boot` or before are over.
    fn release(&mut self, peer: Peer, boot: Incarnation);

    /// Tells `peer`, which knows the own node as isolated, that this is over: since `boot` or
    /// before.
    fn contradict(&mut self, peer: Peer, boot: Incarnation);

    /// Whoever hands over letters to the peers that are met.
    fn courier(&self) -> Box<dyn Courier>;
}

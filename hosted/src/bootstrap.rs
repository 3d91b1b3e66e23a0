//! Bootstrap: who takes part, how its memory is reached, and which life of it is running.
//!
//! ```text
//!   node A                                   node B
//!   Hello {version, cluster, layout, rank} ─▶ checked; refused with a reason, or
//!        ◀─ Hello, and what A may reach of B
//!   Alive {incarnation} + its process ──────▶ B's component admits that life of A
//!   Dead {incarnation} ─────────────────────▶ B's component fences it
//! ```
//!
//! A node says `Alive` when its component has made its endpoint and `Dead` when it has seen the
//! component's process end, so what follows from either is certain. [`Bootstrap`] is the part
//! that differs between one host ([`LocalBootstrap`]: descriptors over Unix sockets, same user
//! checked by the kernel) and several; what is learned arrives as [`Tidings`].

mod hello;
mod local;
mod session;

pub use hello::{Hello, Refusal, VERSION};
pub use local::{LocalBootstrap, LocalError};

use weft_core::ids::{Incarnation, Peer};

use crate::process::Pidfd;
use crate::shm::Grant;

/// One life of a node's component.
#[derive(Debug)]
pub struct Life {
    /// Which life.
    pub incarnation: Incarnation,
    /// Its process, to be fenced with.
    pub process: Pidfd,
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
    Refused(Refusal),
}

/// News of one peer.
#[derive(Debug)]
pub enum News {
    /// It was met, and may be reached by these descriptors.
    Met(Grant),
    /// A life of it has begun.
    Alive(Life),
    /// A life of it has ended: its process is confirmed dead.
    Dead(Incarnation),
    /// The node itself cannot be heard any more.
    Parted,
}

/// Meets the peers of one node and tells them of its lives.
pub trait Bootstrap {
    /// Tells every peer that is met, now or later, that this life of the own component runs.
    fn announce(&mut self, life: Life);

    /// Tells every peer that this life has ended.
    fn retract(&mut self, incarnation: Incarnation);
}

//! The simulator: the shipped machines on a hostile fabric, in virtual time, from one seed.
//!
//! ```text
//!   seed ─▶ swarm: which faults, how often ─▶ World: memory, work in flight, virtual time
//!                                               ▲ │ SimFabric
//!   Protocol: sizes, machines, promises ─▶ Run ─┘ ▼
//!                                           history ─▶ judge ─▶ Violation, its seed, its faults
//! ```
//!
//! One seed is one run on one thread, the same on every machine. A [`Protocol`] brings its
//! machines and states its promises over the history of a run; everything that goes wrong is
//! brought by the [`World`]. When faults end, everything must finish within a bound.
//!
//! The same world without a clock is what the explorer walks: depth-first over everything that
//! may happen next, for small configurations.
//!
//! Protocols that are not Weft's run here, too: implement [`Protocol`] over the port of
//! `weft_core::fabric`, make it a [`Subject`] with [`Subject::of`], and give that to [`run_seeds`],
//! [`Replay`] or its explorer. The example `ticket_fifo` does so for a FIFO as in UCX, and finds
//! that a sender which dies with a ticket stops all others; `permission_switch` for consensus by
//! permissions to write as in Mu, and finds why a permission is revoked before the next is given.

pub mod dirnet;
pub mod draws;
pub mod endpoint;
mod explore;
mod fabric;
pub mod fault;
mod flight;
mod fold;
pub mod group;
mod liar;
pub mod mailbox;
pub mod memory;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod neb;
mod panics;
mod protocol;
pub mod rendezvous;
mod replay;
mod run;
mod seeds;
mod shrink;
mod subject;
mod supervisor;
pub mod toy;
mod trace;
mod world;

pub use explore::{Bounds, Findings, Found, Move, Unexplored, explore};
pub use fabric::SimFabric;
pub use protocol::{
    Entry, Fencing, Forgery, Membership, Opening, Pace, Protocol, Seat, Small, Supervision,
    Violation, What,
};
pub use replay::Replay;
pub use run::{Outcome, Plan, run};
pub use seeds::{Failed, Tally, run_seeds};
pub use shrink::{Shrunk, shrink};
pub use subject::{Expected, Explorer, SUBJECTS, Subject};
pub use trace::Trace;
pub use world::{Choice, World};

#[cfg(test)]
mod tests;

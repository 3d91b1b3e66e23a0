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
//! # Protocols that are not Weft's
//!
//! 1. A package of yours depends on this one and on `weft-core`, by the path of a checkout or by
//!    its git address.
//! 2. Its machine does one-sided work through `weft_core::fabric::Fabric`, and polls: no threads,
//!    no clock of its own.
//! 3. [`Protocol`] says what a run consists of: how many peers, which memory, what they do next,
//!    what goes into the history, and which promises are judged over it.
//! 4. [`Subject::of`] makes it one of [`run_seeds`], which tries seeds; [`Replay`], which repeats a
//!    seed with as few faults as still break the promise, and shows it; and the explorer, which
//!    walks every state of a small configuration.
//!
//! `examples/ticket_fifo.rs` is the one to copy: a FIFO as in UCX, in 240 lines. It finds that a
//! sender which dies with a ticket stops all others. `examples/permission_switch.rs` is consensus
//! by permissions to write, as in Mu, and finds why a permission is revoked before the next is
//! given.

pub mod dirnet;
pub mod draws;
pub mod endpoint;
mod explore;
mod fabric;
pub mod fault;
mod flight;
pub mod group;
mod liar;
pub mod mailbox;
pub mod member;
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
mod shared;
mod shrink;
mod subject;
mod supervisor;
pub mod toy;
mod trace;
mod world;

pub use explore::{Bounds, Exploration, Findings, Move, Unexplored, explore};
pub use fabric::SimFabric;
pub use protocol::{
    Fencing, Forgery, HistoryEntry, HistoryEvent, MembershipNews, Opening, Pace, Protocol, Seat,
    Small, Supervision, Violation,
};
pub use replay::Replay;
pub use run::{RunOutcome, RunPlan, run};
pub use seeds::{Failed, SeedTally, run_seeds};
pub use shrink::{Shrunk, shrink};
pub use subject::{Expected, Explorer, SUBJECTS, Subject};
pub use trace::Trace;
pub use world::{Choice, Promises, World};

#[cfg(test)]
mod tests;

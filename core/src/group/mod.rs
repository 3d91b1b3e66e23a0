//! Groups and tree broadcast: any member sends a message of any length to all members of a group,
//! and whatever dies, the survivors deliver the same messages of each root, in its order.
//!
//! ```text
//!  root 0                       member 1                      member 2
//!  user bytes ─▶ hold[0]        hold[0]                       hold[0]          hold[r]: the window
//!    │ FORWARD entry ──lane──▶  next? store ────FORWARD────▶  …                of root r's stream,
//!    │ HOLD k ─────────lane──▶  read block k ═══▶ hold[0]                      the same offsets at
//!    │                          note, HOLD k ─────lane────▶   read block k     every member
//!    ◀────────── ACK (what the subtree has released) ◀── ACK ◀──┘
//! ```
//!
//! Small messages are *pushed* down a tree over lanes; long ones are *announced* and *pulled*: each
//! member reads each block by itself from a member that holds it, straight into the place where it
//! is used. What a member believes came over a lane, whose slots have a checksum, or by a read of
//! its own that completed; nothing else.
//!
//! Promise, per root: *agreement* (what one survivor delivers, every survivor delivers, the same
//! bytes), *order* (first in, first out, no gap, no repetition), *integrity* (only what the root
//! sent), *verdict* (of a message that a removed root left incomplete all survivors have all, or
//! all abandon it). No order between roots, and nothing against liars: for those there is
//! [`neb`](crate::neb).
//!
//! ```text
//!  plan, pure:   tree (who forwards)   pipeline (who reads what from whom)   seats (who is who)
//!  transport:    machine ─▶ member (one group) ─▶ stream (one root) ─▶ note, sources, closing
//! ```
//!
//! Barriers and all-gathers are what all members do together. A member that was removed comes back
//! in a new epoch, and receives what is sent from then on. It does not offer total order.
//! Behaviours GT-1 to GT-21: `SPEC.md` beside this file.

mod barrier;
mod calls;
mod closing;
mod config;
mod machine;
mod member;
mod mutants;
mod note;
mod outcome;
mod pipeline;
mod seats;
mod sources;
mod stream;
mod tree;
mod turn;
mod work;

pub use calls::Calls;
pub use config::{
    BLOCK_LEN_MAX, BLOCKS_MAX, Config, ConfigError, ENTRIES_MAX, GROUPS_MAX, Regions, Sizes,
};
pub use machine::Groups;
pub use member::Group;
pub use mutants::MUTANTS;
pub use note::Position;
pub use outcome::{
    Chunk, Counters, Delivery, Gathered, GroupId, OpenError, Receipt, SendError, Standing,
    UnknownReceipt,
};
pub use pipeline::{Pipeline, Step, Transfer};
pub use seats::{Grank, Seats};
pub use tree::{Class, Costs, Place, Tree};

pub use crate::wire::group::Spread;

/// The machine number in the names of a [`Groups`]' works.
pub const GROUP_WORK: u8 = 5;

#[cfg(test)]
mod tests;

//! NEB, non-equivocating broadcast: no two correct members deliver different messages for the same
//! slot, even if the origin is faulty.
//!
//! ```text
//!  origin o              member p                                  member q
//!  ring of W slots       bcast[o]   replay[o]   landing            replay[o]
//!     │ write ─────────────▶ copy once
//!     │                        └─ judge ─▶ expose ═ barrier ═▶ read ──────▶ (what q exposed)
//!     │                                                   ◀── nothing, older, same: a vote
//!     │                                                   ◀── different: conflict, forever
//!     └ write ──────────────────────────────────────────────────▶ bcast[o] … the same at q
//! ```
//!
//! Why two correct members agree: each exposes its copy before it reads the other's. The read that
//! was posted later returns what the other member exposed, and a different value is never a vote.
//! The types enforce that order: posting a read takes an `Exposed`, which exists only after the
//! copy was exposed and the barrier passed.
//!
//! Promise, per origin and slot: *validity* (what a correct origin broadcasts every correct
//! member delivers), *agreement* (two correct members that deliver a slot deliver the same
//! bytes), *integrity* (a slot is delivered at most once, in order, and only what its origin
//! wrote). It is neither reliable broadcast nor total order. The promise does not cover deliveries
//! of a member that was removed by a decision. In the unsigned form one lying replayer can prevent
//! the delivery of a slot and of all later messages of its origin.
//!
//! A message costs n-1 writes by its origin and n-2 reads by each of the n-1 others: (n-1)²
//! operations, fewer for a batch. In addition every member reads every other's progress once per
//! half window, to learn which slots may be reused.
//!
//! Memory: n rings that origins write, each writable by its origin alone; one region of n rings
//! that this member exposes; landings for the reads under way; and the progress. All state that
//! must survive the process is there: [`Neb::attach`] continues where the earlier incarnation
//! stopped. It delivers nothing twice and broadcasts no second message under a number in use. A
//! member whose memory is new, or that was removed, returns with a new *epoch* ([`begin_epoch`],
//! [`Neb::handle_epoch`]): other numbers, and deliveries from where all others count it.
//!
//! Behaviours N-1 to N-19: `SPEC.md` beside this file.

mod aside;
#[cfg(feature = "signed")]
mod authority;
mod ballot;
mod config;
mod epoch;
#[cfg(feature = "signed")]
mod equivocation;
mod exposed;
mod judge;
mod machine;
mod map;
mod membership;
pub mod mutants;
mod origin;
mod outcome;
mod own_copy;
#[cfg(feature = "signed")]
mod proof;
#[cfg(feature = "signed")]
mod statement;
mod stream;
mod window;
mod work;

#[cfg(feature = "signed")]
pub use authority::{KeyError, Keys, PublicKey};
pub use config::{
    Config, ConfigError, DEPTH_MAX, MESSAGE_LEN_MAX, Retry, SIGNAL_EVERY, SLOT_LEN_MAX, SLOTS_MAX,
    Sizes,
};
pub use epoch::{EPOCH_MAX, EpochError, begin_epoch, number_before, number_in_epoch};
#[cfg(feature = "signed")]
pub use equivocation::{Equivocation, ProofError};
pub use machine::Neb;
pub use map::Regions;
pub use membership::Membership;
pub use outcome::{BroadcastError, Conflict, Counters, Message, Outcome, Standing};
#[cfg(feature = "signed")]
pub use proof::{PROOF_LEN_MAX, Proof};
#[cfg(feature = "signed")]
pub use statement::Statement;

/// The keys of the signed form.
#[cfg(feature = "signed")]
pub use ed25519_dalek::{SigningKey, VerifyingKey};

/// The machine number in the names of a [`Neb`]'s works.
pub const NEB_WORK: u8 = 4;

#[cfg(test)]
mod tests;

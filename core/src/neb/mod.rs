//! NEB, non-equivocating broadcast: no two correct members ever deliver different messages for
//! the same slot, whatever the origin does.
//!
//! ```text
//!  origin o              member p                                  member q
//!  ring of W slots       bcast[o]   replay[o]   landing            replay[o]
//!     │ write ─────────────▶ copy once
//!     │                        └─ judge ─▶ expose ═ barrier ═▶ read ──────▶ (what q exposed)
//!     │                                                   ◀── nothing, older, same: a vote
//!     │                                                   ◀── different: conflict, for ever
//!     └ write ──────────────────────────────────────────────────▶ bcast[o] … the same at q
//! ```
//!
//! Why two correct members agree: each exposes its copy before it reads the other's. Whichever
//! of the two reads was posted later sees what the other exposed, and a different value there is
//! never a vote. That order is in the types: posting a read takes an `Exposed`, and the only way
//! to one is to have exposed the copy and passed the barrier.
//!
//! Promise, per origin and slot: *validity* (what a correct origin broadcasts every correct
//! member delivers), *agreement* (two correct members that deliver a slot deliver the same
//! bytes), *integrity* (a slot is delivered at most once, in order, and only what its origin
//! wrote). It is neither reliable broadcast nor total order. A member that was removed by a
//! decision is no longer one whose deliveries the promise speaks of. In the unsigned form one
//! lying replayer can keep a slot from being delivered, and with it what its origin says later.
//!
//! A message costs n-1 writes of its origin and n-2 reads of each of the n-1 others: (n-1)²
//! operations, of which a batch saves some. Beside them every member reads every other's
//! progress once in half a window, to know which slots may be used again.
//!
//! Memory: n rings for what origins write, each writable by that origin alone, one region of n
//! rings for what this member exposes, landings for the reads under way, and the progress. All
//! that must outlive the process is in there: [`Neb::attach`] goes on where an earlier life
//! stopped, neither delivering again nor broadcasting anything else under a number in use. A
//! member that lost its memory has lost its promise too, and must not come back as the same one.
//!
//! Source: NEB pseudocode (`seeds/000`), behaviours N-1 to N-11 of `spec/neb.md`.

mod aside;
#[cfg(feature = "signed")]
mod authority;
mod ballot;
mod config;
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
#[cfg(feature = "signed")]
pub use equivocation::{Equivocation, ProofError};
pub use machine::Neb;
pub use map::Regions;
pub use membership::{Decision, Membership, RemoveError};
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

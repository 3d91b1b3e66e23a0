//! The mailbox: many writers put small messages into one owner's memory.
//!
//! ```text
//!  writer                                  owner's memory
//!  claim := Reserving                     ┌──────────────────────────┐
//!  fetch_add(word, k) ───────────────────▶│ word = epoch │ count     │  alone in its region
//!        ◀── (epoch, ticket) ─────────────│                          │
//!  claim := Holding(epoch, ticket)        │ half 0 │ half 1          │
//!  write k sealed slots ─────────────────▶│ slots of half epoch & 1  │
//!  claim := Idle                          └──────────────────────────┘
//!                                           owner: copy, judge, deliver; close a half
//!                                           by compare-swap (epoch+1, 0)
//! ```
//!
//! A put takes two one-sided operations ([`Outbox`]); a take is local to the owner ([`Mailbox`]).
//! Neither side waits for the other: a writer that dies or stalls between its two operations leaves
//! a ticket whose message is missing, and the owner *questions* that ticket by reading every
//! sender's claim. It skips a ticket only if no admitted sender can still write it, so no message
//! of a live sender is lost and a dead sender blocks nothing.
//!
//! The owner keeps its progress in a region of its own beside the slots. After an owner dies, the
//! next one begins with [`Mailbox::attach`] on the same memory: released messages are not delivered
//! again, all others are.
//!
//! Order: the messages of one sender arrive in its order; a missing ticket delays only its own
//! sender. A mailbox trusts its admitted members: each can write every slot and the reservation
//! word. A member that breaks the protocol is detected ([`Forgery`]) but not prevented from doing
//! harm; a [`lane`](crate::lane) needs no such trust.
//!
//! A slot is sealed by its stamp alone where the fabric promises that the last word of a write
//! appears last (F-14), and by a checksum elsewhere, or everywhere if the [`Config`] says so.
//!
//! Behaviours MB-1 to MB-15: `SPEC.md` beside this file.

mod config;
mod half;
mod inquiry;
mod mutants;
mod outbox;
mod owner;
mod watch;

pub use config::{Config, ConfigError, MESSAGE_LEN_MAX, Regions, SLOTS_MAX};
pub use mutants::MUTANTS;
pub use outbox::{Outbox, PutEvent, StageError};
pub use owner::{Counters, Mailbox, Message, Receipt, Run, UnknownReceipt};
pub use watch::Forgery;

/// The machine number in the names of an [`Outbox`]'s works.
pub const OUTBOX_WORK: u8 = 1;
/// The machine number in the names of a [`Mailbox`]'s works.
pub const OWNER_WORK: u8 = 2;

#[cfg(test)]
mod tests;

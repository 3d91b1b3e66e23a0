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
//! A put is two one-sided operations ([`Outbox`]); taking is the owner's own affair
//! ([`Mailbox`]). Nobody waits for anybody: a writer that dies or stalls between the two leaves
//! a ticket that has not landed, and the owner *questions* it by reading every sender's claim.
//! Only a ticket that no admitted sender may still write is skipped, so nothing of a live
//! sender is lost and nothing of a dead one blocks.
//!
//! The owner's progress lies in its own region beside the slots. An owner that dies is
//! succeeded by [`Mailbox::attach`] on the same memory: what was released is not delivered
//! again, what was not is.
//!
//! Order: messages of one sender arrive in its order; a missing ticket holds up only its own
//! sender. A mailbox trusts its admitted members: each can write every slot and the reservation
//! word. One that writes what the protocol does not is noticed ([`Forgery`]) and not prevented; a
//! [`lane`](crate::lane) needs no such trust.
//!
//! Source: MPI-3 RMA buffer (`seeds/001`), behaviours MB-1 to MB-10 of `spec/mailbox.md`.

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
pub use owner::{Counters, Mailbox, Message, Receipt, UnknownReceipt};
pub use watch::Forgery;

/// The machine number in the names of an [`Outbox`]'s works.
pub const OUTBOX_WORK: u8 = 1;
/// The machine number in the names of a [`Mailbox`]'s works.
pub const OWNER_WORK: u8 = 2;

#[cfg(test)]
mod tests;

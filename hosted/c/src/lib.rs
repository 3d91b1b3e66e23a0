//! Weft for C: the member of [`weft::member`], the watcher and the mask of [`weft::client`], as
//! functions of `weft.h`.
//!
//! ```text
//!   C ─▶ border ─▶ handle ─▶ lifecycle mailbox batch broadcast group
//!          │          │       tensor state task                        a member
//!          │          └────▶ mask watch                               a cluster from outside
//!          └ checks pointers, catches panics, keeps the last error of each thread
//! ```
//!
//! `weft.h` is made from this crate by cbindgen, committed, and compared by `tests/header.rs`: what
//! stands above a function here is its contract there. Names are those of the header, so that a
//! reader finds both ends of a call by one word.
//!
//! A handle is a number and never an address: no stale pointer can be followed. What C passes is
//! checked in `border`, once for each kind of argument, and everything else is safe Rust.

#![expect(non_camel_case_types, reason = "the names of the header")]

pub mod batch;
pub mod border;
pub mod broadcast;
pub mod code;
pub mod error;
pub mod event;
pub mod group;
mod handle;
pub mod lifecycle;
pub mod mailbox;
pub mod mask;
pub mod membership;
pub mod state;
pub mod task;
pub mod tensor;
pub mod watch;

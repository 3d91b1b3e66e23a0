//! Every order of the shared-memory fabric's atomics, tried by a model checker.
//!
//! ```sh
//! RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom \
//!     cargo test --package weft-core --test loom --features mutants --release
//! ```
//!
//! | file | claims |
//! |---|---|
//! | `publication.rs` | who sees a published word sees all that was copied in before it (F-1) |
//! | `wake_up.rs` | no wake-up is lost between a waiter and its ringers, killed ones included |
//! | `exposure.rs` | of two members that expose and then read, one sees the other (N-3, N-4) |
//! | `weakened.rs` | each fence is needed: without it, the checker finds the failure |
//!
//! Two threads are tried exhaustively, three with a bounded number of preemptions. What loom does
//! not model: that a kernel may be entered in between, and torn words; `Words` has none.
#![cfg(loom)]

mod exposure;
mod publication;
mod wake_up;
mod weakened;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time, for `weakened` leaves out a fence of the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

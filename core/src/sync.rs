//! The atomics of the core, in one place, so that a model checker can stand in for them.
//!
//! | build | atomics |
//! |---|---|
//! | a target with 64-bit compare-and-swap | the processor's own |
//! | any other with compare-and-swap | 64-bit words of `portable-atomic`, behind short locks |
//! | `--cfg loom` | loom's, for `core/tests/loom.rs` alone |
//!
//! On the second row a word is indivisible only for those who use this type, which suffices for
//! the in-memory fabric; a device that writes memory by itself keeps to rule F-4 all the same.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU32, Ordering, fence};

#[cfg(all(not(loom), target_has_atomic = "64"))]
pub use core::sync::atomic::AtomicU64;
#[cfg(all(not(loom), not(target_has_atomic = "64")))]
pub use portable_atomic::AtomicU64;

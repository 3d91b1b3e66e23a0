//! Weft on a hosted system: processes, threads, sockets and shared memory around the core.
//!
//! The library that systems programmers link, and the floor under the `weft` program. Linux
//! only, on 64-bit processors: shared memory is handed out as atomic words, and reading those
//! from a read-only page is guaranteed for pointer-sized loads alone.
//!
//! Everything that can block takes a timeout, and every failure of the operating system arrives
//! as a typed error with its errno as source. Unsafe code is confined to mapped memory and the
//! checksum instruction in `shm`, to fork and inherited descriptors in `process`, to one socket
//! option in `packet`, and to the program's allocator in `allocations`.
//!
//! Around it stand packages of their own: `weft-sim` runs protocols on a hostile fabric and needs
//! the core alone, `weft-bench` measures, `weft-program` is the program.

pub mod allocations;
pub mod bootstrap;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod explain;
pub mod launch;
pub mod member;
pub mod node;
pub mod packet;
pub mod payload;
pub mod process;
pub mod readiness;
pub mod regular_file;
pub mod runtime_dir;
mod sealed;
pub mod shm;
pub mod signing;
pub mod task;
mod words;

pub use allocations::CountingAllocator;
pub use member::Member;

/// The protocol core, so that a program needs one dependency.
pub use weft_core as core;

#[cfg(test)]
mod scratch;

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

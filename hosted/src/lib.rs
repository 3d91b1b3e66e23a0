//! Group communication over one-sided memory access that survives its members' failures.
//!
//! # Start here
//! There are three ways in. Most programs want the first.
//!
//! **A member**: your program is started by a node (`weft run -n 4 -- ./app`), sends and receives
//! in its own memory, and is started again when it fails. See [`member`].
//! ```no_run
//! let mut member = weft::Member::join()?;
//! member.put(weft::member::Rank(0), b"hello")?;
//! while !member.is_stopping() {
//!     member.wait(std::time::Duration::from_secs(1))?;
//!     member.events().for_each(|event| println!("{event:?}"));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **A client**: your program speaks to a running cluster, watches its members, and may come and
//! go; each call crosses a socket. See [`client`].
//! ```no_run
//! # use std::time::Duration;
//! let second = Duration::from_secs(1);
//! let (dir, cluster) = weft::client::find(&"weft".parse()?, second)?;
//! let mut node = weft::client::Client::connect(&dir, &cluster, 0, second)?;
//! node.put(1, &[b"hello"], second)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Your own loop**: no node and no process of Weft: you own the memory, decide about membership
//! and poll an [`Endpoint`](weft_core::endpoint::Endpoint). [`shm::meet`] is the one call by which
//! two processes share memory (example `own_loop`); `own_fabric` brings its own transport.
//!
//! What each machine promises, by number, stands in its module: [`weft_core::mailbox`],
//! [`weft_core::neb`] (broadcast), [`weft_core::group`], [`weft_core::dirnet`] (membership),
//! [`weft_core::lane`]; the contract of the transport in [`weft_core::fabric`].
//!
//! # The library
//! Processes, threads, sockets and shared memory around the core, and the floor under the `weft`
//! program. Linux only, on 64-bit processors: shared memory is handed out as atomic words, and
//! reading those from a read-only page is guaranteed for pointer-sized loads alone.
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
pub mod tensor;
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

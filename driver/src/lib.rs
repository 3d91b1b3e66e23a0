//! The verbs driver of Weft: the port over RC queue pairs of rdma-core, and the only FFI.
//!
//! It knows verbs and the port of [`weft_core::fabric`], and nothing of any protocol.
//!
//! ```text
//!   everywhere           config   error   exchange   gid   memory   status
//!   feature `verbs`      device ▶ region ▶ completion ▶ queue_pair ▶ scratch   event
//!                          └────────▶ pair: one peer, one incarnation ◀─────────┘
//!                                        └▶ VerbsFabric: weft_core::fabric::Fabric
//! ```
//!
//! Without the feature the crate is plain Rust and builds everywhere: what two nodes must agree
//! on, and all that can be decided without a device, is there and tested. With it the system's
//! libibverbs is opened at run time: on a machine without RDMA the program starts, and
//! [`Error::NoRdma`] says so.
//!
//! A pair of endpoints comes to be in three steps, of which bootstrap carries the middle one:
//!
//! ```text
//!   one.prepare(other, theirs) ─ LocalEnd ─▶ bytes ─▶ RemoteEnd ─ other.connect(one, …)
//!   one.connect(other, …) ◀─ RemoteEnd ◀─ bytes ◀─ LocalEnd ─ other.prepare(one, mine)
//!   one.admit(other, theirs)                                    other.admit(one, mine)
//! ```
//!
//! What it does not do: wake a sleeping peer ([`CompletionFlags::WAKE`] is ignored, so peers over
//! verbs poll), shared receive queues, two-sided messages. Memory windows are measured
//! (`Revocation`) and not used.
//!
//! [`CompletionFlags::WAKE`]: weft_core::fabric::CompletionFlags::WAKE

mod config;
mod error;
mod exchange;
mod gid;
mod memory;
mod status;
mod verb;

#[cfg(any(feature = "verbs", test))]
mod send_queue;

#[cfg(feature = "verbs")]
mod completion;
#[cfg(all(feature = "verbs", feature = "conformance"))]
pub mod conformance;
#[cfg(feature = "verbs")]
mod device;
#[cfg(feature = "verbs")]
mod event;
#[cfg(feature = "verbs")]
mod fabric;
#[cfg(feature = "verbs")]
mod ffi;
#[cfg(feature = "verbs")]
mod pair;
#[cfg(feature = "verbs")]
mod queue_pair;
#[cfg(feature = "verbs")]
mod region;
#[cfg(feature = "verbs")]
mod revocation;
#[cfg(feature = "verbs")]
mod scratch;

pub use config::{Config, ConfigError};
pub use error::Error;
pub use exchange::{End, EndError, Grant, LocalEnd, RemoteEnd};
pub use gid::{Gid, GidEntry, GidKind, LinkLayer};
pub use memory::{Heap, HostMemory};
pub use status::{STATUSES, Status, failure_of};
pub use verb::{Errno, Verb};

#[cfg(feature = "verbs")]
pub use device::{Device, DeviceChoice, Limits};
#[cfg(feature = "verbs")]
pub use fabric::VerbsFabric;
#[cfg(feature = "verbs")]
pub use revocation::{Revocation, Way};
#[cfg(feature = "verbs")]
pub use scratch::RESULT_UNTOUCHED;

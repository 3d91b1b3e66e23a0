//! The verbs driver of Weft: the port over RC queue pairs of rdma-core, and the only FFI.
//!
//! A seed: nothing is here yet but the place. The crate builds without RDMA, without system
//! libraries and without anything but [`weft_core`], whose [`fabric::Fabric`] it will implement:
//!
//! ```text
//!   device   region   queue_pair   completion   →   VerbsFabric: weft_core::fabric::Fabric
//! ```
//!
//! Until then a cluster runs over shared memory, on one host.

pub use weft_core::fabric;

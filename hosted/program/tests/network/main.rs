//! Bootstrap over TCP, between nodes on one host: which peers are met, and which are refused and
//! why.
//!
//! ```text
//!   meeting    two nodes that belong together, and one that returns
//!   refusals   wrong key, cluster, layout, fabric, version, rank
//!   discovery  addresses that nodes register with etcd
//!   strangers  garbage, silence, floods: bounded, and no other node is harmed
//!   replay     what was recorded on the way, sent again
//!      │
//!   node       one node, and its events
//!   etcd       a server of etcd, and one that only claims to be
//!   relay      a wire that records, and that can be cut
//! ```

mod discovery;
mod etcd;
mod meeting;
mod node;
mod refusals;
mod relay;
mod replay;
mod strangers;

use std::time::Duration;

/// How long a test waits before it counts as hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

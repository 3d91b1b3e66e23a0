//! Bootstrap over TCP, between ends on one host: who is met, who is refused and with which reason.
//!
//! ```text
//!   meeting    two nodes that belong together, and one that returns
//!   refusals   wrong key, cluster, layout, fabric, version, rank
//!   strangers  garbage, silence, floods: bounded, and nobody else is harmed
//!   replay     what was recorded on the way, said again
//!      │
//!   node       one end, and what it learns
//!   relay      a wire that remembers, and that can be cut
//! ```

mod meeting;
mod node;
mod refusals;
mod relay;
mod replay;
mod strangers;

use std::time::Duration;

/// How long anything may take before it counts as hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

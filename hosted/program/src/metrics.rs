//! The counters of a node as OpenMetrics, at a socket in the cluster's directory and, if the file
//! says so, at a port of 127.0.0.1.
//!
//! ```text
//!   scraper ── GET /metrics ──▶ thread of the supervisor ── Status ──▶ supervisor ──▶ component
//!           ◀── text, # EOF ──                           ◀── counters that exist anyway ──
//! ```
//!
//! The thread is a client of its own node, as `weft status` is: the data path knows nothing of it.
//! It serves one scraper at a time, each within a deadline, and asks its node at most four times a
//! second. A node that does not answer is `weft_up 0`.
//!
//! [`table`] says what is exported, [`exposition`] how it is written, `grafana.json` draws it.

mod exposition;
mod request;
mod serve;
mod table;

pub(crate) use serve::{Sockets, check_ports, fetch};

/// A dashboard for Grafana over these metrics.
pub(crate) const DASHBOARD: &str = include_str!("metrics/grafana.json");

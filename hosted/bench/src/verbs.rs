//! Measurements over RDMA: what the driver costs, beside perftest on the same device.
//!
//! ```text
//!   one round            A             B                 A             B
//!   this process ── weft ──▶ peer │ ib_write_lat ──▶ │ weft ──▶ peer │ ib_read_lat ──▶ │ …
//! ```
//!
//! | row | ours | its rival, or its limit |
//! |---|---|---|
//! | `write` | half of a ping-pong of writes, detected by the bytes themselves | `ib_write_lat` |
//! | `read` | a read, posted to completed | `ib_read_lat` |
//! | `fetch_add` | an addition, posted to completed | `ib_atomic_lat` |
//! | `bandwidth` | writes from a region, as many under way as the queue takes | `ib_write_bw` |
//! | `mailbox` | half of a ping-pong of messages, mailbox to mailbox | the same two operations, bare |
//! | `broadcast` | among three threads, call to last delivery | a write and a read; beside it its own operations, bare, among the same threads |
//! | `tree` | among the same three, a message of 1 MiB along the tree of their group, as a rate: call to last delivery, in place | `ib_read_bw`, one reader |
//! | `tensor_read` | a tensor of 1 MiB, named, sent and read in place, as a rate: call to the end of its receive | `ib_read_bw` |
//! | `tensor_write` | the same, written by its sender | `ib_write_bw` |
//! | `fence` | an incarnation fenced, from the call to its return | |
//! | `revoke` | one right granted and taken back, in both ways that verbs have | |
//!
//! Both ends of either are processes on one device, each with a processor of its own if there are
//! two. A rival's run and ours alternate, and are compared within a round; what is said is the
//! median of all rounds, with the best round beside it. Every byte and count that comes back is
//! checked, so that a benchmark of broken code fails.
//!
//! On an emulated machine the figures say what the software costs, and the ratios what the driver
//! adds; neither says what a network does.

#[cfg(feature = "verbs")]
mod bare;
#[cfg(feature = "verbs")]
mod circle;
#[cfg(feature = "verbs")]
mod companion;
#[cfg(feature = "verbs")]
mod end;
mod error;
#[cfg(feature = "verbs")]
mod fence;
#[cfg(feature = "verbs")]
mod mail;
#[cfg(feature = "verbs")]
mod peer;
#[cfg(any(feature = "verbs", test))]
mod perftest;
#[cfg(feature = "verbs")]
mod pins;
#[cfg(any(feature = "verbs", test))]
mod report;
#[cfg(feature = "verbs")]
mod run;
#[cfg(any(feature = "verbs", test))]
mod subject;
#[cfg(feature = "verbs")]
mod word;

pub use error::VerbsBenchError;
#[cfg(feature = "verbs")]
pub use peer::run as run_peer;
#[cfg(any(feature = "verbs", test))]
pub use perftest::RivalError;
#[cfg(any(feature = "verbs", test))]
pub use report::{BareBroadcast, Fence, VerbsReport, VerbsRow};
#[cfg(feature = "verbs")]
pub use run::{VerbsPlan, run};
#[cfg(any(feature = "verbs", test))]
pub use subject::{VerbsOp, VerbsSubject};

//! Measurements: what the shipped path costs, beside what the machine itself costs.
//!
//! ```text
//!   one cell (bytes, writers)          each round: A B A B, so that noise hits rivals alike
//!     owner: this process ───────────▶ exchange │ latency │ memcpy │ rate
//!     writers: a process each          busy     │ busy    │ asleep │ busy
//! ```
//!
//! | what | measures | its limit |
//! |---|---|---|
//! | `exchange` | half a round trip of one word in a cache line of its own, nothing around it | itself |
//! | `latency` | half a round trip of a message, mailbox to mailbox | `exchange` |
//! | `memcpy` | copying a message within one process | itself |
//! | `rate` | messages that the owner took, checked and released | `memcpy` |
//!
//! Owner and writers are what an integrator would write: [`NodeMemory`](weft::shm::NodeMemory)
//! by descriptor, [`ShmFabric`](weft::shm::ShmFabric), a node's endpoint, and a wait strategy:
//! spin while every process has a processor of its own, else yield. Every message is checked for
//! its number and its sender, so that a benchmark of broken code fails. Figures are medians, and
//! the host's own stall is measured in the same run: how long a process that does nothing but
//! read the clock does not get to read it. Rivals are compared within a round, and the ratio is
//! the median of all rounds, because a host may run two processes near to each other in one round
//! and far apart in the next.
//!
//! A round trip ends where one process reads the clock, behind the next word or message, and a
//! message is released behind the answer to it. Messages are looked for at each turn; a poll comes
//! at each sixteenth, with a look at the clock that the bare line does without.
//!
//! `--rivals` adds UCX ([`Ucx`]) to each round with one writer: an active message and a tagged one,
//! one way, of the same length.
//!
//! Broadcasts are measured in [`neb`], groups in [`group`], tensors in [`rendezvous`], timers in
//! [`wheel`], programs as members in [`member`], the DIR net in [`detect`], recovery scripts in
//! [`recovery`]; over RDMA other things are rivals: [`verbs`].
//!
//! What this does not measure: several hosts, mailboxes that overflow, messages per batch other
//! than what one write carries. Instructions are counted by [`count`](count()), since no noise can
//! move them.

mod cell;
mod count;
mod crew;
pub mod detect;
mod error;
mod exchange;
mod figure;
pub mod group;
mod host;
pub mod member;
pub mod neb;
mod owner;
mod parcel;
mod phase;
pub mod recovery;
pub mod rendezvous;
mod report;
mod run;
mod seat;
mod table;
mod tool;
mod ucx;
pub mod verbs;
mod verdict;
pub mod wheel;
mod writer;

pub use cell::Cell;
pub use count::{CountReport, CountedRow, CountedWhat, count, do_counted_work, put_and_take};
pub use error::BenchError;
pub use report::{MailboxReport, MeasuredHost, RivalRound, RivalRow, Row, RowKind};
pub use run::{MailboxPlan, run};
pub use ucx::{Ucx, UcxError};
pub use writer::run as run_writer;

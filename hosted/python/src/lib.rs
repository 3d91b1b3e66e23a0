//! Weft for Python: the module `weft._weft` under the package `weft`.
//!
//! ```text
//!   import weft; member = weft.join()          a program of `weft run -- python3 app.py`
//!     └ Member ─▶ weft::member::MemberHandle   its loop has a thread: Python need not poll
//!        ├ Message ─▶ bytes ◀─ memoryview      until `release`: then no view of it is left
//!        ├ Tensor ◀─ NumPy, DLPack             the arrays keep it
//!        └ Inbox                               events, for those who ask and for `receive`
//!   weft.watch() ─▶ Watcher                    by a descriptor, without being a member
//!   weft.Broadcast ─▶ weft::shm::FanWriter     one writer, many readers, without a cluster
//! ```
//!
//! - A call that waits does so without the interpreter's lock, has a timeout in seconds, and looks
//!   for signals every 50 ms.
//! - Every failure is a `weft.Error` with `code`, `cause` and `cure`: those of `weft`'s own errors,
//!   or of a wrong use (`misuse`).
//! - What belongs to a process is used and freed in that process alone (`home`): a child that was
//!   forked gets an error, and ends without touching the memory that it does not have.
//!
//! The module is built for the stable ABI of Python 3.11, so it needs neither headers nor libpython
//! to be built, and one wheel serves every later version. `hosted/python/check` tests it.
//!
//! What this does not do: it polls no member in the program's own loop, as `weft::Member` does in
//! Rust, for an interpreter stops for longer than a member may.

mod broadcast;
mod dlpack;
mod error;
mod event;
mod group;
mod home;
mod inbox;
mod member;
mod message;
mod misuse;
mod task;
mod tensor;
mod tensor_bytes;
mod waiting;
mod watcher;

use pyo3::prelude::*;

/// The native part of `weft`.
#[pymodule]
mod _weft {
    #[pymodule_export]
    use crate::broadcast::{Broadcast, BroadcastReader};
    #[pymodule_export]
    use crate::event::{Event, View};
    #[pymodule_export]
    use crate::group::{Group, GroupDelivery};
    #[pymodule_export]
    use crate::member::{Member, join};
    #[pymodule_export]
    use crate::message::{Delivery, Message};
    #[pymodule_export]
    use crate::task::Notice;
    #[pymodule_export]
    use crate::tensor::{Offer, Tensor};
    #[pymodule_export]
    use crate::watcher::Watcher;
}

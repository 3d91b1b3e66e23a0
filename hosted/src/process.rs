//! Processes of one host: starting them, noticing their death, ending them.
//!
//! ```text
//!   supervisor ── Spawn ──▶ child          fd 3: what the parent gave it, adopt_inherited(3)
//!       │                     │
//!       └── Pidfd ────────────┘            readable once the child is dead, wherever it is sent
//! ```
//!
//! A process is held by pidfd, never by number: a number is reused, a pidfd is not, and it can
//! be passed to another process in a packet. A child dies with the parent that started it, and
//! it inherits the descriptors it was given and no others.
//!
//! What this does not do: it does not reap ([`std::process::Child`] does), restart, or count
//! restarts; that is the node's policy.

mod descendants;
mod ending;
mod error;
mod inherited;
mod pidfd;
mod program;
mod remains;
mod spawn;
mod standard;
mod stepped;
mod thread;

pub use descendants::StillRuns;
pub use ending::how_ended;
pub use error::ProcessError;
pub use inherited::adopt_inherited;
pub use pidfd::{Liveness, Pidfd, Signalled};
pub use program::{ProgramError, find_program};
pub use remains::Remains;
pub use spawn::{Spawn, Spawned};
pub use standard::has_stdout;
pub use stepped::{begin_to_be_stepped, count_instructions, mark};
pub use thread::start_thread;

pub use rustix::process::{Pid, Signal};

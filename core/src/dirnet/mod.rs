//! The DIR net: detection, isolation, recovery. Deciders only.
//!
//! ```text
//!            ┌───────────── MIA, TAIA: heartbeat cells, every S ─────────────┐
//!   manager ─┤                                                               ├─ backups
//!            ├─ suspects n: WITNESS ▶ all, PROBE ▶ n, ALIVE ◀, TESTIMONY ◀ ──┤
//!   TEIF  ▶ ─┤  from n's I'm-Alive Task: the component is down, not the node │
//!            ├─ agent down: SPAN ▶ n's I'm-Alive Task, which spawns a clone  │
//!            ├─ node down: ANID ▶ all, each fences, FENCED ◀, then reset     │
//!            ├─ WITM ◀ a joiner, NMI ▶, its TAIA ◀, NIUA ▶ all               │
//!            └─ DB both ways; REQUEST_DB, REPLY_DB when a digest differs ────┘
//!   a backup ── ENIA ▶ a component reported too early; ROUSE ▶ its own task
//!   manager lost: the next in the ring claims term + 1 and sends NMI; the others wait MID for it
//! ```
//!
//! | machine | runs in | inputs |
//! |---|---|---|
//! | [`Component`] | the component process | `handle_message`, `handle_heartbeat`, `handle_timeout`, `handle_carried_out`, `handle_fenced`, `handle_gone`, `handle_parted`, `handle_change`; orders `isolate`, `release` |
//! | [`ImAliveTask`] | the supervisor, with an endpoint of its own | `handle_message`, `handle_timeout`, `handle_ended`, `handle_alone`, `handle_spawned` |
//! | [`Supervision`] | the supervisor | `handle_met`, `handle_alive`, `handle_removed` and the other events of peers, of the component and of the host |
//! | [`Starts`] | the supervisor | what became of starts, ends of the component, orders of the I'm-Alive Task, the host's clock |
//! | [`Launcher`] | the process that started the nodes | reports of their supervisors, ends of their processes |
//!
//! After each input the caller drains `poll_output` and carries out each [`Output`]. At
//! `poll_timeout` it first hands over what has arrived, then calls `handle_timeout`. The
//! component's [`Progress`] goes into memory that its I'm-Alive Task reads. A [`Frame`] is 64 bytes
//! over a lane, a [`Beat`] 32 bytes written into the receiver's cell for that sender.
//!
//! **Safety does not depend on timeouts.** Timeouts raise suspicions. A member is removed by a
//! decision in the current [`Term`], which every member follows with a fence. A removed incarnation
//! never returns; a later one may. A node is reset after every live member has fenced it, and in a
//! cluster of three or more only if a second observer has probed it in vain.
//!
//! Behaviours D-1 to D-59, the original's traps G-1 to G-33, and the additions X-1 to X-16:
//! `SPEC.md` beside this file; tests and mutants carry these numbers. Not here: the recovery
//! language (the caller evaluates a script, [`strategy`] is built in), a clock, bytes on a wire,
//! and a quorum: two sides of a partition that have two nodes each go on and remove each other,
//! unless `min_alive` says otherwise (G-11).
//!
//! Source: V. De Florio, The DIR net, ESAT/ACCA/1998/1.

mod backoff;
mod beat;
mod component;
mod config;
mod database;
mod explanation;
mod frame;
mod health;
mod im_alive;
mod image;
mod intensity;
mod launcher;
mod members;
mod message;
mod mutants;
mod output;
mod profile;
mod record;
mod reject;
mod replay;
mod resets;
mod snapshot;
mod standing;
pub mod strategy;
mod supervision;
mod view;

pub use crate::ids::Term;
pub use beat::{BEAT_LEN, Beat};
pub use component::{Component, LargestComponent, Role};
pub use config::{Config, ConfigError, Limits, Part, RestartLimit};
pub use database::{Database, Version};
pub use explanation::{EXPLANATIONS, Evidence, Explanation, News, Rule, Testimonies, Verdict};
pub use frame::{FRAME_LEN, Frame, FrameError};
pub use im_alive::{ImAliveTask, Post, Progress, Spawned};
pub use image::{Assembly, Image, ImageError, PARTS_MAX, TASKS_MAX};
pub use launcher::Launcher;
pub use members::{ComponentIncarnation, Members};
pub use message::{
    Alarm, Change, ImagePart, Level, Message, Question, ScriptOrder, ScriptVersion, Seat, Seen,
    TaskAction,
};
pub use mutants::MUTANTS;
pub use output::Output;
pub use profile::{BrokenRule, Profile, Timing};
pub use record::{ChangeError, ERRORS, Record, Task, TaskError};
pub use reject::{Reject, Rejects};
pub use snapshot::{Kept, SNAPSHOT_LEN_MAX};
pub use standing::Standing;
pub use supervision::{Announcement, End, Fenced, Greeted, Order, Starts, Step, Supervision};
pub use view::{View, ViewNumber, ViewTag};

use mutants::*;

#[cfg(test)]
mod tests;

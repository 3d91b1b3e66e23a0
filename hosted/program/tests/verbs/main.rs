//! The program over verbs: real processes, real queue pairs.
//!
//! ```text
//!   broadcast  files to all nodes; an equivocation and its proof
//!   cluster    `weft up --fabric verbs`: put, get, status, inject, down
//!   conform    `weft conform`: the contract of the fabric, over a device
//!   group      files along trees, barriers, and a node that returns
//!   hosts      `weft node` as on several hosts: a runtime directory each, met over TCP
//!   member     `weft run`: a program is the member
//!   tensors    files of tensors, read and written
//!      │
//!   device     which devices there are to use
//!   place      one test's own runtime directory, and every process that was started in it
//! ```
//!
//! Where there is no device, each test says so and passes; with `REQUIRE_RXE=1` it fails.

mod broadcast;
mod cluster;
mod conform;
mod device;
mod group;
mod hosts;
mod member;
#[expect(dead_code, reason = "shared with the tests over shared memory, which use all of it")]
#[path = "../cluster/place.rs"]
mod place;
#[expect(dead_code, reason = "as above")]
#[path = "../cluster/said.rs"]
mod said;
mod tensors;

use std::time::Duration;

/// How long anything may take before it counts as hung. The machine may be an emulated one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

//! The protocol core of Weft: machines that exchange messages through one-sided memory
//! operations and keep working when members crash, hang or lie.
//!
//! No `std`, no `alloc`, no `unsafe`, no clock, no panic on a peer's input. Time and bytes come
//! in as arguments, work leaves through the [`fabric::Fabric`] port, events leave by polling.
//! Floors, from the ground up; imports only point down:
//!
//! ```text
//! ids time fmt checksum mutant sync
//!                         words everyone uses, and guards that tests may leave out
//! wheel                   every deadline of an owner, in a static slab
//! fabric                  the port: one-sided operations on registered memory
//! wire decision           byte layouts: encode, decode, nothing else; the removal of a member
//! lane                    one writer, one reader: carries the machines' messages
//! mailbox neb group rendezvous dirnet recovery
//!                         machines; none imports another
//! endpoint                composes the machines over one fabric
//! ```
//!
//! Two kinds of machine live here. A *decider* is pure: input, state, output. A *mover* owns
//! regions and moves bytes: its methods take `&mut impl Fabric` and post directly, so that the
//! fast path has no queue in between. Neither allocates, blocks, logs on the data path or calls
//! back. Start at [`endpoint::Endpoint`]; bring your own [`fabric::Fabric`] and prove it with the
//! suite in `fabric::conformance` (feature `conformance`).
//!
//! # Memory
//!
//! Nothing is allocated, so this is all a machine needs beside its regions; capacities are const
//! generics, and these are examples (64-bit processors; `core/tests/sizes.rs` holds the table).
//! The windows of broadcasts and groups lie in their regions: see [`neb`] and
//! [`group`].
//!
//! | machine | bytes | with `signed` |
//! |---|---:|---:|
//! | `Wheel<64>` | 5520 | 5520 |
//! | `Wheel<1024>` | 43920 | 43920 |
//! | `Layout` | 1560 | 1560 |
//! | `Mailbox<1024, 4>` | 6592 | 6592 |
//! | `Outbox` | 4208 | 4208 |
//! | `LaneWriter` | 48 | 48 |
//! | `LaneReader` | 1072 | 1072 |
//! | `Neb<4, 1>` | 9768 | 10800 |
//! | `Neb<4, BROADCAST_DEPTH>` | 16968 | 18000 |
//! | `Neb<7, BROADCAST_DEPTH>` | 23304 | 24936 |
//! | `Groups<4, 1>` | 10680 | 10680 |
//! | `Groups<32, 8>` | 1326792 | 1326792 |
//! | `Adapter<4, 16>` | 48680 | 48680 |
//! | `Adapter<32, 64>` | 195944 | 195944 |
//! | `Component<4, 2>` | 11848 | 11848 |
//! | `LargestComponent` | 65368 | 65368 |
//! | `Member<4, 2>` | 12016 | 12016 |
//! | `ImAliveTask` | 4440 | 4440 |
//! | `Program<'static>` | 9480 | 9480 |
//! | `Rint<64, 16>` | 5552 | 5552 |
//! | `Rint<64, 256>` | 15152 | 15152 |
//! | `Plan` | 1752 | 1752 |
//! | `Endpoint<Loopback<'static, 4, 1024>, 1024, 4>` | 55720 | 56752 |
//!
//! # Features
//!
//! `defmt` or `log` carry transition and reject messages (`defmt` wins when both are
//! on); `conformance` compiles the suite; `signed` compiles the signed form of [`neb`], and
//! `signed-tables` adds tables of 30 KiB with which it signs several times as fast; `mutants` is
//! for proving the tests, never for a shipped build: see [`mutant`].
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

#[macro_use]
mod fmt;

pub mod checksum;
pub mod decision;
pub mod dirnet;
pub mod endpoint;
pub mod fabric;
pub mod group;
pub mod ids;
pub mod lane;
pub mod mailbox;
pub mod mutant;
pub mod neb;
pub mod recovery;
pub mod rendezvous;
pub mod script;
pub mod sync;
pub mod time;
pub mod vote;
pub mod wheel;
pub mod wire;

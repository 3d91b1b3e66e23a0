//! The mailbox against the faults of its members and its fabric.

mod crash;
mod garbage;
mod harness;
mod interleavings;
mod ledger;
mod model;
mod order;
mod owner;
mod questions;
mod runs;
mod stepped;
mod wrap;
mod writer;

use crate::fabric::loopback::Net;
use crate::ids::Peer;
use crate::time::Duration;

/// Endpoints: one owner, up to three writers.
const PEERS: usize = 4;
/// The most slots that a half has in any test.
const SLOTS: usize = 8;
/// Words of memory of an endpoint.
const WORDS: usize = 192;

const OWNER: Peer = Peer(0);
const A: Peer = Peer(1);
const B: Peer = Peer(2);
const STALL: Duration = Duration::from_millis(1);

type TestNet = Net<PEERS, WORDS>;

//! The contract as tests: one suite that any fabric can be run through, an integrator's included.
//!
//! A fabric brings a [`Harness`] that holds all [`PEERS`] endpoints in one program; the suite
//! posts, polls and looks into memory through it, and panics with the number of the rule that
//! does not hold.
//!
//! ```text
//!   fabric_conformance!(harness)      one #[test] a case
//!     └ case                          posts, waits, compares: one behaviour of one rule
//!         └ Trial                     checks every completion of every case against F-2
//!             └ Harness               your endpoints: at, now, lose, revive
//! ```
//!
//! ```text
//! weft_core::fabric_conformance!(MyHarness::new());    in a test of yours
//! ```
//!
//! What a fabric must bring for the suite, beyond the contract: room for [`BATCH`] works that
//! were not polled, and a refusal of more within [`POSTS_MAX`]. Every wait ends after
//! [`POLLS_MAX`] polls, so a fabric whose work takes milliseconds lets [`Harness::now`] wait a
//! little; the product has to exceed the deadline of F-12.
//!
//! What no suite can show: F-3, since it permits and does not promise; F-12, since losing a work
//! without a trace needs a fault below the fabric, which each fabric makes in tests of its own;
//! that `post` and `poll` never block (F-7, F-8), since there is no clock here: a fabric that
//! blocks hangs the suite.

mod atomics;
mod bytes;
mod cases;
mod complete;
mod fence;
mod gone;
mod memory;
mod order;
mod placement;
mod queue;
mod regions;
mod reject;
mod rights;
mod trial;

pub use atomics::*;
pub use bytes::*;
pub use cases::{Case, cases};
pub use complete::*;
pub use fence::*;
pub use gone::*;
pub use memory::*;
pub use order::*;
pub use placement::*;
pub use queue::*;
pub use regions::{OPEN, OPEN_LEN, WORDS, layout};
pub use reject::*;
pub use rights::*;

use crate::fabric::Fabric;
use crate::ids::{Incarnation, Peer};
use crate::time::Instant;

/// How many endpoints the suite uses: `Peer(0)`, `Peer(1)` and `Peer(2)`.
pub const PEERS: usize = 3;
/// The most works that the suite leaves unpolled at one endpoint, the case of F-7 aside.
pub const BATCH: usize = 16;
/// Within how many unpolled posts a fabric must report that it is full.
pub const POSTS_MAX: u32 = 100_000;
/// After how many polls the suite gives up waiting.
pub const POLLS_MAX: u32 = 200_000;

/// The endpoints of a fabric under test, all in one program.
///
/// A new harness holds [`PEERS`] endpoints over [`layout()`], each in its incarnation
/// `Incarnation(1)`, each admitted by every other, their memory zeroed or not.
pub trait Harness {
    /// The fabric under test.
    type Fabric: Fabric;

    /// Whether [`Fabric::fence`] ends the incarnation of the fenced peer, so that its handle must
    /// not be used until it is revived. Where it may live on, leave this `false`: the suite then
    /// posts from behind the fence.
    const FENCE_ENDS_LIFE: bool = false;

    /// The running endpoint `peer`.
    fn at(&mut self, peer: Peer) -> &mut Self::Fabric;

    /// The time, called before each poll. It may wait a little for real work to come through,
    /// and a simulator lets its world take a step.
    fn now(&mut self) -> Instant;

    /// Calls `act` on the first of `pair` so many times, each with the time, and `look` on the
    /// second as often or more, by turns. A fabric whose endpoints may be used from several threads
    /// calls the two from a thread each: what a write passes through while it is posted is seen in
    /// no other way.
    fn observe(
        &mut self,
        pair: (Peer, Peer),
        times: u32,
        mut act: impl FnMut(&mut Self::Fabric, Instant) + Send,
        mut look: impl FnMut(&mut Self::Fabric) + Send,
    ) {
        for _ in 0..times {
            let now = self.now();
            act(self.at(pair.0), now);
            look(self.at(pair.1));
        }
    }

    /// Ends the incarnation of `peer` as abruptly as the fabric knows how. Its handle is not used
    /// again until it is revived.
    fn lose(&mut self, peer: Peer);

    /// Starts a later incarnation of `peer`, over memory of any content; no peer has admitted it,
    /// and it has admitted none. Ends the incarnation before if that still runs.
    fn revive(&mut self, peer: Peer) -> Incarnation;
}

//! Two processes share memory without a node: one call at each end of a socket.
//!
//! ```text
//!   meet(plan, Peer(0), socket) ── layout, segments, process ──▶ meet(plan, Peer(1), socket)
//!                               ◀───────────────────────────────
//!        admits the other ─────────────── ready ─────────────▶     admits the other
//!                               ◀───────────────────────────────
//! ```
//!
//! When both calls have returned, each end can put to the other. No process watches them: the end
//! of the other is an event ([`Event::Gone`]), and what follows from it is the caller's.
//!
//! [`Event::Gone`]: weft_core::endpoint::Event::Gone

use std::os::fd::AsFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_core::endpoint::{Endpoint, Plan};
use weft_core::fabric::FenceError;
use weft_core::ids::{Incarnation, Peer};

use super::{Grant, NodeMemory, OwnMemory, RemoteMemory, SegmentError, ShmFabric, Wait};
use crate::clock::Deadline;
use crate::packet::{PacketError, Socket};
use crate::process::{Pidfd, ProcessError};

/// Why two processes did not meet. Nothing is shared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeetError {
    /// Two meet, and no more.
    #[error("there is no peer {0}: one process is peer 0, the other peer 1")]
    NoSuchPeer(Peer),
    /// The other end has made the same choice, or another plan.
    #[error(
        "the other process is peer {peer} of another plan: use one plan, and both peers 0 and 1"
    )]
    OtherPlan {
        /// What it says to be.
        peer: u16,
    },
    /// The socket failed, or the other process did not call in time.
    #[error("the other process did not call: {0}")]
    Socket(#[from] PacketError),
    /// The memory cannot be shared.
    #[error("{0}")]
    Memory(#[from] SegmentError),
    /// This process cannot be named to the other, or the other not to this.
    #[error("{0}")]
    Process(#[from] ProcessError),
    /// The other cannot be admitted.
    #[error("the other process cannot be admitted: {0:?}")]
    Admit(FenceError),
}

/// What each end sends first, with the descriptors of its memory and of its process.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MeetGreeting {
    layout: u64,
    peer: u16,
}

/// The endpoint of this process, which is `me` of the two, after both have called this with one
/// `plan` at the two ends of a `socket`, within `timeout`.
///
/// # Errors
/// [`MeetError`].
///
/// # Panics
/// When the plan is larger than `SLOTS` or `PEERS`, as [`Endpoint::new`].
pub fn meet<const SLOTS: usize, const PEERS: usize>(
    plan: &Plan,
    me: Peer,
    socket: &Socket,
    wait: Wait,
    timeout: Duration,
) -> Result<Box<Endpoint<ShmFabric, SLOTS, PEERS>>, MeetError> {
    let (layout, first, deadline) = (plan.layout(), Incarnation(1), Deadline::after(timeout));
    let other = match me {
        Peer(0) => Peer(1),
        Peer(1) => Peer(0),
        peer => return Err(MeetError::NoSuchPeer(peer)),
    };
    let (memory, process) = (NodeMemory::create("weft-met", layout)?, Pidfd::of_self()?);
    let grant = memory.grant(layout, other)?;
    let mut fds = grant.borrow();
    fds.push(process.as_fd());
    let greeting = |peer: Peer| MeetGreeting { layout: layout.digest(), peer: peer.0 };
    socket.send(&greeting(me), &fds, deadline.remaining())?;
    let (heard, mut fds) = socket.recv::<MeetGreeting>(deadline.remaining())?;
    let process = fds.pop().filter(|_| heard == greeting(other));
    let Some(process) = process else { return Err(MeetError::OtherPlan { peer: heard.peer }) };
    let own = OwnMemory::map(layout, &memory.grant_owner()?)?;
    let mut fabric = ShmFabric::new(me, first, layout.clone(), own, wait);
    let theirs = RemoteMemory::map(layout, me, &Grant(fds))?;
    fabric.connect(other, theirs, Some(Pidfd::from_fd(process)?));
    let mut endpoint = Box::new(Endpoint::new(fabric, plan, first));
    // No process had this memory before.
    endpoint.handle_all_named();
    endpoint.admit(other, first).map_err(MeetError::Admit)?;
    socket.send(&(), &[], deadline.remaining())?;
    socket.recv::<()>(deadline.remaining())?;
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::cluster::Cluster;
    use weft_core::endpoint::Event;
    use weft_core::time::Instant;

    const SOON: Duration = Duration::from_secs(20);

    type Met = Result<Box<Endpoint<ShmFabric, 1024, 2>>, MeetError>;

    fn plan(nodes: usize) -> Plan {
        crate::node::plan(&Cluster { nodes, ..Cluster::default() }).unwrap()
    }

    /// What both ends come to when they call as these peers with these plans.
    fn call(plans: [&Plan; 2], peers: [u16; 2]) -> [Met; 2] {
        let (left, right) = Socket::pair().unwrap();
        thread::scope(|scope| {
            let end = |plan, peer, socket: Socket| {
                scope.spawn(move || meet(plan, Peer(peer), &socket, Wait::Yield, SOON))
            };
            let ends = [end(plans[0], peers[0], left), end(plans[1], peers[1], right)];
            ends.map(|end| end.join().unwrap())
        })
    }

    #[test]
    fn both_can_put_once_both_have_met() {
        let plan = plan(2);
        let [mut alice, mut bob] = call([&plan; 2], [0, 1]).map(Result::unwrap);
        alice.put(Peer(1), 7, b"hello").unwrap();
        while alice.poll_event() != Some(Event::Put { to: Peer(1), count: 1, left: 0 }) {
            alice.poll(Instant(1));
        }
        bob.poll(Instant(1));
        let message = bob.take(Instant(1)).unwrap();
        assert_eq!((message.sender, message.kind, message.payload), (Peer(0), 7, &b"hello"[..]));
    }

    #[test]
    fn ends_that_do_not_fit_refuse_each_other() {
        let (two, three) = (plan(2), plan(3));
        for (plans, peers) in [([&two, &two], [1, 1]), ([&two, &three], [0, 1])] {
            for met in call(plans, peers) {
                assert!(matches!(met, Err(MeetError::OtherPlan { .. })), "{met:?}");
            }
        }
        let (socket, _other) = Socket::pair().unwrap();
        let met: Met = meet(&two, Peer(2), &socket, Wait::Yield, SOON);
        assert!(matches!(met, Err(MeetError::NoSuchPeer(Peer(2)))), "{met:?}");
        let met: Met = meet(&two, Peer(0), &socket, Wait::Yield, Duration::ZERO);
        assert!(matches!(met, Err(MeetError::Socket(_))), "no other calls: {met:?}");
    }
}

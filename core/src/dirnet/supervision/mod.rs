//! The decisions of a supervisor about its peers and its own boot: which incarnation of each peer
//! its component admits, and when its own boot is over.
//!
//! ```text
//!   peers' supervisors ── met, alive, dead, parted, fenced, isolated, released ──┐
//!   own component ─────── removed, lost, joined, isolation ─────────────────────┼─▶ Supervision
//!   host ──────────────── started, ready, entered, ended, time ──────────────────┘        │
//!                                                                                       Order
//!   component: Connect, Fence, Acknowledge, Parted, LearnIsolation, LearnRelease ◀────────┤
//!   peer:      Refuse, Isolate, Release, Contradict, AskForRelease ◀──────────────────────┤
//!   launcher:  Report, Reset                                     ◀────────────────────────┤
//!   host:      Keep, Halt, Resume, Reboot                        ◀────────────────────────┘
//! ```
//!
//! X-14. Two incarnations of a peer must not be confused: frames, writes and heartbeats carry no
//! name of the one that sent them that a receiver could trust. So an incarnation is admitted once
//! at most, and an incarnation that this node has fenced learns so and ends. Of two nodes that have
//! fenced each other, as the sides of a partition do, exactly one must start its next incarnation:
//! [`Fenced::outranks`].
//!
//! Removals, isolations and releases come in any order, from several nodes, in several terms. A
//! peer's [`Standing`] merges them, and nothing else is asked whether an incarnation may be
//! admitted: `Standing::admission`.
//!
//! **Order of outputs.** The component fences a removed boot before it reports the removal. The
//! supervisor admits no incarnation of that boot from then on, and acknowledges. The link between
//! them keeps the order of messages, so once the component has the acknowledgement, no
//! [`Order::Connect`] of that boot is under way, and FENCED may go to the manager.
//!
//! Not here: processes, descriptors, keys and files, which the host keeps by peer and incarnation.
//! When components are started and killed is decided by [`Starts`].

mod order;
mod own;
mod peers;
mod starts;
mod startup_watchdog;

pub use order::{Announcement, Fenced, Order};
pub use starts::{End, Starts, Step};
pub use startup_watchdog::Greeted;

use super::{Level, Standing, Term};
use crate::ids::{Incarnation, Peer, PeerSet, Rank};
use crate::time::{Duration, Instant};
use order::Orders;
use own::Own;
use peers::Neighbour;

/// How long an incarnation for which work was lost may take to be confirmed dead, before it is
/// fenced. The lower rank waits twice as long, so that the two do not fence each other.
const LOSS_GRACE: Duration = Duration::from_millis(2_000);

/// How long a removed incarnation may run on before it is refused: its reset usually ends it
/// before. Two halves of a net that remove each other also have this time to learn of both
/// decisions, so that only one half ends.
const REMOVAL_GRACE: Duration = Duration::from_millis(1_000);

/// What one supervisor knows of its peers and of itself, for clusters of at most `NODES` nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Supervision<const NODES: usize> {
    me: Rank,
    own: Own,
    peers: [Neighbour; NODES],
    orders: Orders,
}

impl<const NODES: usize> Supervision<NODES> {
    /// The supervisor of node `me`, which has met no peer and runs no component.
    #[must_use]
    pub fn new(me: Rank) -> Self {
        const { assert!(NODES <= PeerSet::CAPACITY) };
        Self {
            me,
            own: Own::default(),
            peers: [Neighbour::default(); NODES],
            orders: Orders::default(),
        }
    }

    /// Returns the next order, if any. Orders are carried out in this sequence.
    pub fn poll_order(&mut self) -> Option<Order> {
        self.orders.pop()
    }

    /// When to call [`Self::handle_time`] if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let of_peers = self.peers.iter().flat_map(|peer| [peer.lost_at, peer.refuse_at]);
        of_peers.flatten().min()
    }

    /// Time has passed: an incarnation that counts as lost and still runs is fenced, and receives
    /// that; one that was removed and still runs receives that.
    ///
    /// # Panics
    /// When [`Self::poll_order`] was not drained: a bug of the caller.
    pub fn handle_time(&mut self, now: Instant) {
        self.begin();
        for (known, peer) in self.peers.iter_mut().zip((0..).map(Peer)) {
            if known.lost_at.is_some_and(|at| at <= now) && known.fence() {
                self.orders.push(Order::Fence(peer));
                let fenced = known.refuse(known.fenced, None);
                self.orders.push(Order::Refuse(peer, fenced));
            }
        }
        let is_isolated = self.is_isolated();
        for (known, peer) in self.peers.iter_mut().zip((0..).map(Peer)) {
            let pending = known.pending();
            if known.refuse_at.take_if(|at| *at <= now).is_some()
                && let Some(fenced) = pending.filter(|_| !is_isolated)
            {
                let fenced = known.refuse(fenced.up_to, fenced.decided);
                self.orders.push(Order::Refuse(peer, fenced));
            }
        }
    }

    /// The incarnation of `peer` that is admitted.
    #[must_use]
    pub fn admitted(&self, peer: Peer) -> Option<Announcement> {
        self.peers.get(peer.index())?.admitted
    }

    /// The peers of which an incarnation is admitted.
    #[must_use]
    pub fn running(&self) -> PeerSet {
        self.select(|known| known.admitted.is_some())
    }

    /// The peers whose admitted incarnation has exchanged messages with the own component.
    #[must_use]
    pub fn joined(&self) -> PeerSet {
        self.select(|known| known.has_joined)
    }

    /// Whether an event of this session of `peer` about this incarnation concerns the admitted one.
    #[must_use]
    pub fn is_admitted(&self, peer: Peer, session: u64, incarnation: Incarnation) -> bool {
        let known = self.peers.get(peer.index()).filter(|known| known.session == session);
        known.and_then(|known| known.admitted).is_some_and(|it| it.incarnation == incarnation)
    }

    /// Removals, isolations and releases of `node`, as far as they are known here.
    #[must_use]
    pub fn standing(&self, node: Rank) -> Standing {
        match self.peers.get(usize::from(node.0)) {
            _ if node == self.me => self.own.standing,
            Some(known) => known.standing,
            None => Standing::default(),
        }
    }

    /// Whether this node is isolated: it runs no component until it is released.
    #[must_use]
    pub fn is_isolated(&self) -> bool {
        self.own_isolation().is_some()
    }

    fn select(&self, is_meant: impl Fn(&Neighbour) -> bool) -> PeerSet {
        let mut set = PeerSet::EMPTY;
        let peers = (0..).map(Peer).zip(&self.peers);
        peers.filter(|(_, known)| is_meant(known)).for_each(|(peer, _)| set.insert(peer));
        set
    }

    /// Runs at the start of every input.
    fn begin(&self) {
        assert!(self.orders.is_empty(), "drain poll_order before the next input");
    }

    fn report(&mut self, node: Rank, boot: Incarnation, level: Level) {
        self.orders.push(Order::Report { node, boot, level });
    }
}

#[cfg(test)]
pub(super) mod tests;

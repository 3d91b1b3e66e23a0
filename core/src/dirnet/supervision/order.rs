//! What supervisors say about incarnations, and what a supervisor orders.

use crate::dirnet::{Level, TERMS_ARE_CONFUSED, Term};
use crate::ids::{Incarnation, Peer, Rank};

/// An incarnation of a node's component, as its supervisor announces it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Announcement {
    /// Its number, which grows over all boots of the node.
    pub incarnation: Incarnation,
    /// Its boot: the number of the boot's first incarnation.
    pub boot: Incarnation,
}

/// An incarnation that a node has fenced for good: it ends, and the next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fenced {
    /// The incarnation; all before it are fenced, too.
    pub up_to: Incarnation,
    /// The term of the decision; none where a connection was lost and no manager has decided.
    pub decided: Option<Term>,
}

impl Fenced {
    /// Whether this message, sent by `by`, takes precedence over `theirs`, which `peer` sends to
    /// `by` about it. Where two nodes have fenced each other, a decision precedes a lost
    /// connection, the decision of a later term that of an earlier one, and where neither has
    /// decided, the higher rank. Of two different nodes exactly one therefore ends its incarnation.
    #[must_use]
    pub fn outranks(self, by: Peer, theirs: Self, peer: Peer) -> bool {
        if TERMS_ARE_CONFUSED.is_planted() {
            return (self.decided.is_some(), by) > (theirs.decided.is_some(), peer);
        }
        (self.decided, by) > (theirs.decided, peer)
    }
}

/// One thing to do. A message that has no receiver by then is dropped: a component that is not
/// ready has connected no peer, and a peer that is not met receives this when it is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Component: admit this incarnation of the peer.
    Connect(Peer, Announcement),
    /// Component: fence the peer; its incarnation has ended.
    Fence(Peer),
    /// Component: no incarnation of the peer's boots up to this one is admitted any more. It may
    /// report the fence to the manager.
    Acknowledge(Peer, Incarnation),
    /// Component: the session with the peer's node has ended.
    Parted(Peer),
    /// Component: the node is isolated since this boot, whatever the component has restored.
    LearnIsolation(Rank, Incarnation),
    /// Component: isolations of this node up to this boot are over.
    LearnRelease(Rank, Incarnation),
    /// Peer: this incarnation of it is fenced here for good.
    Refuse(Peer, Fenced),
    /// Peer: it is isolated since this boot.
    Isolate(Peer, Incarnation),
    /// Peer: its isolations up to this boot are over.
    Release(Peer, Incarnation),
    /// Peer, which believes that this node is isolated: its isolations up to this boot are over.
    Contradict(Peer, Incarnation),
    /// Peer: this node is isolated since this boot, and asks for its release.
    AskForRelease(Peer, Incarnation),
    /// Launcher: by decision of a manager, the node is down, isolated or released as of this boot.
    Report {
        /// The node.
        node: Rank,
        /// The boot.
        boot: Incarnation,
        /// What was decided.
        level: Level,
    },
    /// Launcher: end this boot of the node and start the next.
    Reset(Rank, Incarnation),
    /// Host: save the boot since which this node is isolated, or that it is not, before anything
    /// after this is done. The next supervisor of this node knows only what is saved.
    Keep(Option<Incarnation>),
    /// Host: this node is isolated. End everything below the supervisor and start nothing.
    Halt,
    /// Host: this node is released. Begin its next boot.
    Resume,
    /// Host: this boot of the node is over. End everything below the supervisor and begin the next.
    Reboot,
}

/// The most orders of one input: two for each peer when time has passed, and one more for each that
/// is fenced again.
const ORDERS: usize = 200;

/// The pending orders, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Orders(heapless::Deque<Order, ORDERS>);

impl core::hash::Hash for Orders {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|order| order.hash(state));
    }
}

impl Orders {
    pub(super) fn push(&mut self, order: Order) {
        let accepted = self.0.push_back(order);
        debug_assert!(accepted.is_ok(), "more orders than an input can have");
    }

    pub(super) fn pop(&mut self) -> Option<Order> {
        self.0.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

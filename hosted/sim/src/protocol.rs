//! A protocol in the simulator: its machines, their work, and its promises.
//!
//! ```text
//!   draw ─▶ sizes        start ─▶ Node ◀─ step, membership        record ─▶ judge, goal
//! ```
//!
//! A value of a [`Protocol`] is one run: its sizes, and the ledger in which it keeps what its
//! promises are about. A [`Protocol::Node`] is one incarnation of one peer: its machines and what
//! they were asked to do. The node acts through its [`Seat`] and records what it observes; the
//! ledger judges every record. Nothing else connects the two, so a node that dies takes its state
//! along.

use std::fmt;
use std::hash::Hash;

use weft_core::fabric::{At, Fabric, Layout, Region};
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::Instant;

use super::draws::Draws;
use super::explore::Unexplored;
use super::fabric::SimFabric;
use super::world::{Promises, World};

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{checker}: {what}")]
pub struct Violation {
    /// Which promise, as the tables call it.
    pub checker: &'static str,
    /// What happened instead.
    pub what: String,
}

impl Violation {
    /// The promise `checker` was broken: `what`.
    pub fn new(checker: &'static str, what: impl Into<String>) -> Self {
        Self { checker, what: what.into() }
    }
}

/// One line of the history of a run.
#[derive(Clone, Debug)]
pub struct HistoryEntry<E> {
    /// The virtual time.
    pub at: Instant,
    /// The peer.
    pub peer: Peer,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The event.
    pub what: HistoryEvent<E>,
}

/// An event of a history.
#[derive(Clone, Debug)]
pub enum HistoryEvent<E> {
    /// The peer begins this incarnation.
    Began,
    /// The peer's incarnation ended.
    Died,
    /// Its node recorded something.
    Recorded(E),
    /// The peer, a liar, is about to write what no correct member would to that one: the promises
    /// do not cover what this can spoil.
    Lied(Peer),
    /// Faults are over: from now on the protocol must make progress.
    Calm,
}

/// What a node learns about others, by decision of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembershipNews {
    /// That incarnation of the peer has ended and must be fenced.
    Ended(Peer, Incarnation),
    /// That incarnation of the peer has begun and must be admitted.
    Began(Peer, Incarnation),
}

/// Where a node sits while it acts: its fabric, its clock, its orders.
#[derive(Debug)]
pub struct Seat<'a, E> {
    /// The node's fabric.
    pub fabric: SimFabric<&'a mut World>,
    /// The time on the node's clock.
    pub now: Instant,
    /// The incarnation of the peer.
    pub incarnation: Incarnation,
    pub(super) orders: &'a mut u32,
    /// Random numbers for the node's work; an explorer's seat always gives 0.
    pub(super) draws: Option<&'a mut Draws>,
    pub(super) records: Vec<E>,
    pub(super) exits: bool,
}

impl<E> Seat<'_, E> {
    /// The peer.
    #[must_use]
    pub fn me(&self) -> Peer {
        self.fabric.me()
    }

    /// Whether the node begins one more piece of its work now. Counts it.
    pub fn is_ordered(&mut self) -> bool {
        let ordered = *self.orders > 0 && self.draw(4) == 0;
        *self.orders -= u32::from(ordered);
        ordered
    }

    /// A number below `end` that decides what the node does; 0 for an explorer.
    pub fn draw(&mut self, end: u64) -> u64 {
        self.draws.as_mut().map_or(0, |draws| draws.below(end))
    }

    /// The process ends itself behind this round, as one that finds itself fenced may. It begins
    /// again as after a crash.
    pub const fn exit(&mut self) {
        self.exits = true;
    }

    /// Adds an observation of the node to the history. A dead process records nothing.
    pub fn record(&mut self, event: E) {
        if !self.fabric.memory().fuse.is_burnt() {
            self.records.push(event);
        }
    }
}

/// A protocol under test: one run of it.
pub trait Protocol: Clone + Hash {
    /// What `--protocol` and the tables call it.
    const NAME: &'static str;

    /// One incarnation of a peer.
    type Node: Clone + Hash;

    /// What a node records.
    type Event: Clone + fmt::Debug;

    /// The sizes and roles of one run.
    fn draw(draws: &mut Draws) -> Self;

    /// What the fabric of one run promises: more than the least where the machines make use of it.
    fn promises(_draws: &mut Draws) -> Promises {
        Promises::LEAST
    }

    /// The configurations that the explorer walks: each as small as it can be.
    fn small() -> Vec<Small<Self>> {
        Vec::new()
    }

    /// Configurations that a reader may miss among those, and that are too large.
    fn unexplored() -> Vec<Unexplored> {
        Vec::new()
    }

    /// When to step the node if no event comes before; only the explorer asks.
    fn deadline(&self, _node: &Self::Node) -> Option<Instant> {
        None
    }

    /// Whether the two communicate; the explorer neither joins nor fences peers that do not.
    fn talk(&self, _one: Peer, _other: Peer) -> bool {
        true
    }

    /// Regions that a new incarnation overwrites before it reads them: the explorer erases them at
    /// death, so that deaths that differ in nothing else are one.
    fn forgotten(&self) -> Vec<Region> {
        Vec::new()
    }

    /// Whether the content that the peer shows at `at` is permanent while no peer fails, and
    /// whether it makes no difference to any peer when a reader handles it: the peer has `orders`
    /// left.
    fn stands(&self, (_peer, _at): (Peer, At), _orders: u32, _world: &World) -> bool {
        false
    }

    /// The regions of every peer.
    fn layout(&self) -> &Layout;

    /// The liars of this run: their machines do not run, and they write anything wherever the
    /// layout gives them the right to.
    fn liars(&self) -> PeerSet {
        PeerSet::EMPTY
    }

    /// Liars that stay when faults are over: their processes lie no more, and their memory can
    /// still be read. The others are found out and end.
    fn silent(&self) -> PeerSet {
        PeerSet::EMPTY
    }

    /// What a liar writes when it chooses its bytes: a place that it may write to in `to`, and
    /// the bytes. It knows all of `world`.
    fn forge(&self, _draws: &mut Draws, _liar: Peer, _to: Peer, _world: &World) -> Option<Forgery> {
        None
    }

    /// Whether a liar does nothing but what [`Self::forge`] says.
    fn lies_by_forgery_alone(&self) -> bool {
        false
    }

    /// Peers that die together with `peer`, when a whole node fails.
    fn node_of(&self, peer: Peer) -> PeerSet {
        PeerSet::only(peer)
    }

    /// Whether the cluster's supervisor decides who is fenced and admitted. A protocol that
    /// decides that itself says no and never receives a [`MembershipNews`].
    fn supervision(&self) -> Supervision {
        Supervision::ByOracle
    }

    /// An incarnation of `seat.me()` begins, over the memory of the last one.
    fn start(&self, seat: &mut Seat<'_, Self::Event>) -> Self::Node;

    /// One round of the node's loop.
    fn step(&self, node: &mut Self::Node, seat: &mut Seat<'_, Self::Event>);

    /// Handles a decision of the cluster about a peer.
    fn membership(
        &self,
        node: &mut Self::Node,
        seat: &mut Seat<'_, Self::Event>,
        change: MembershipNews,
    );

    /// Checks an entry of the history against the promises.
    ///
    /// # Errors
    /// The promise that it breaks.
    fn judge(&mut self, entry: &HistoryEntry<Self::Event>) -> Result<(), Violation>;

    /// Whether everything that was begun has finished, as it must some time after faults end.
    ///
    /// # Errors
    /// What has not.
    fn goal(&self, nodes: &[Option<&Self::Node>]) -> Result<(), Violation>;
}

/// A configuration small enough to be explored.
#[derive(Clone, Debug)]
pub struct Small<P> {
    /// Its name.
    pub name: String,
    /// Its sizes.
    pub protocol: P,
    /// Orders of each peer.
    pub orders: Vec<u32>,
    /// Rounds of each peer's loop that change something, unless the explorer's bounds say
    /// otherwise; `None` for no limit.
    pub steps: Option<Vec<u32>>,
    /// Crashes, unless the explorer's bounds are lower.
    pub crashes: u32,
    /// Restarts while others go on, unless the explorer's bounds say otherwise.
    pub starts: u32,
    /// Torn works, lost pairs, lost and repeated messages, unless the explorer's bounds say
    /// otherwise.
    pub faults: u32,
    /// Posts that are refused as if the queue were full.
    pub refusals: u32,
    /// Peers that may be removed: fenced while they are alive, and never admitted again.
    pub removable: PeerSet,
    /// A peer may stall inside each post that changes bytes of another: it looks at the gate when
    /// it posts, the bytes change later, and between the two it does nothing.
    pub stalls: bool,
    /// What the fabric promises.
    pub promises: Promises,
    /// How often time passes to the next deadline, unless the explorer's bounds say otherwise.
    pub waits: u32,
    /// Peers that differ in nothing but their number: they can be exchanged on every path. They
    /// write nothing before another peer writes to them.
    pub alike: PeerSet,
    /// Where its paths begin.
    pub opening: Opening,
    /// When peers handle completions.
    pub pace: Pace,
    /// What a node does when it learns that an incarnation has ended.
    pub fencing: Fencing,
}

impl<P> Small<P> {
    /// One in which any peer may crash and stays dead, nothing else fails, no time passes and no
    /// two peers are alike.
    pub fn of(name: impl Into<String>, protocol: P, orders: Vec<u32>) -> Self {
        Self {
            name: name.into(),
            protocol,
            orders,
            steps: None,
            crashes: u32::MAX,
            starts: 0,
            faults: 0,
            refusals: 0,
            removable: PeerSet::EMPTY,
            stalls: false,
            promises: Promises::LEAST,
            waits: 0,
            alike: PeerSet::EMPTY,
            opening: Opening::Explored,
            pace: Pace::AtWill,
            fencing: Fencing::Acts,
        }
    }
}

/// Where the paths of a configuration begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// When all peers have admitted each other.
    Explored,
    /// When what peers then exchange before their first order has been exchanged, in one order.
    Passed,
}

/// What a node does when it learns that an incarnation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fencing {
    /// It acts: what it does may depend on what it knows, and on what has come to its memory.
    Acts,
    /// It fences that incarnation and does nothing else: neither its state nor its memory changes,
    /// it posts nothing and records nothing.
    FencesOnly,
}

/// When the peers of a configuration that is explored handle works that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At any later time, one or several in a round.
    AtWill,
    /// Each as it ends, before anything else happens.
    AtOnce,
}

/// Who decides about fences and restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervision {
    /// The run: it detects deaths and losses, restarts peers, and informs every node after a delay.
    ByOracle,
    /// The protocol: the run only restarts what died.
    ByProtocol,
}

/// Bytes of a liar, and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgery {
    /// Where in the target.
    pub at: At,
    /// What; where only atomics reach, the number that is added to the word.
    pub bytes: Vec<u8>,
    /// The bytes that replace them at once, while a peer may be reading.
    pub then: Option<Vec<u8>>,
}

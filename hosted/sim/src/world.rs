//! The world as one value: every peer's memory and gates, all work in flight, time and faults.
//!
//! ```text
//!   post ─▶ pair (from, to): Posted ─▶ Landing ─▶ Landed ─▶ completion ─▶ poll
//!              │                                       in order; between pairs there is none
//!              └─ pair lost ─▶ stale: may land late, until the target's gate is closed (F-9)
//! ```
//!
//! Timed, the world orders what happens in virtual time and draws faults at every opportunity.
//! Untimed, nothing happens by itself: an explorer [chooses](choices). Either way the rules of
//! the fabric are the same code.

mod choices;
mod events;
mod incarnations;
mod messages;
mod work;

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use weft_core::fabric::{Completion, Layout, Placement};
use weft_core::ids::{Incarnation, Peer};
use weft_core::time::Duration;

use super::draws::{Draws, Purpose};
use super::fault::Faults;
use super::flight::{Flight, PairFlights};
use super::memory::SimMemory;
use super::shared::CopyOnWrite;
use super::trace::Trace;

pub use choices::Choice;
pub(super) use events::{DueEvent, RunnerTimer};
pub(super) use messages::PortMessage;

use events::EventQueue;

/// Works that a peer may have open, unpolled completions included (F-7).
const ROOM: usize = 64;

/// Which incarnations of the others one peer admits and posts to.
#[derive(Clone, Debug, Hash)]
struct Admissions {
    /// By peer: the incarnation that may change bytes here.
    admitted: Vec<Incarnation>,
    /// By peer: the earliest incarnation that may be admitted.
    earliest: Vec<Incarnation>,
    /// By peer: the incarnation that posts go to; 0 when there is none.
    open: Vec<Incarnation>,
}

/// What the world keeps for one peer.
#[derive(Clone, Debug)]
struct PeerState {
    memory: SimMemory,
    alive: bool,
    incarnation: Incarnation,
    /// When it died, for peers that have not noticed.
    died_at: u64,
    admissions: CopyOnWrite<Admissions>,
    done: VecDeque<Completion>,
    inbox: VecDeque<(Peer, Vec<u8>)>,
    /// How far its clock is ahead.
    ahead: u64,
}

impl Hash for PeerState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.memory.hash(state);
        (self.alive, self.incarnation, &self.admissions).hash(state);
        for done in &self.done {
            (done.id, done.peer, done.outcome).hash(state);
        }
        self.inbox.hash(state);
    }
}

/// What the fabric of a world promises beyond what every fabric does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Promises {
    /// How the bytes of a write appear (F-14).
    pub placement: Placement,
    /// Whether work may end while it is posted (F-15).
    pub answers: bool,
}

impl Promises {
    /// Nothing.
    pub const LEAST: Self = Self { placement: Placement::Bytes, answers: false };
    /// What shared memory promises.
    pub const MOST: Self = Self { placement: Placement::WholeWords, answers: true };

    /// Nothing in half of all draws.
    #[must_use]
    pub fn draw(draws: &mut Draws) -> Self {
        let whole = Self { answers: false, ..Self::MOST };
        let answered = Self { answers: true, ..Self::LEAST };
        draws.pick(&[Self::LEAST, Self::LEAST, Self::LEAST, answered, whole, Self::MOST])
    }
}

/// A fabric of simulated peers.
#[derive(Clone, Debug)]
pub struct World {
    layout: Arc<Layout>,
    now: u64,
    places: Vec<PeerState>,
    /// By poster, then by target.
    pairs: Vec<CopyOnWrite<PairFlights>>,
    stale: CopyOnWrite<Vec<Flight>>,
    messages: Vec<PortMessage>,
    timing: Option<EventQueue>,
    faults: Faults,
    /// Pairs that the fabric lost since they were last asked for: poster and target.
    losses: Vec<(Peer, Peer)>,
    flights: u64,
    pub(super) promises: Promises,
    /// A poster looks at its target's gate when it posts, and the bytes change later.
    stalling: bool,
    /// So many posts later one is refused.
    refusal: Option<u32>,
    trace: Trace,
}

impl Hash for World {
    /// Everything that decides what may happen next in an untimed world.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.places.hash(state);
        self.pairs.hash(state);
        self.stale.hash(state);
        self.messages.hash(state);
    }
}

impl World {
    /// All that a round of the loop of `peer` depends on, but for the time.
    pub(super) fn hash_outlook<H: Hasher>(&self, peer: Peer, state: &mut H) {
        self.places[peer.index()].hash(state);
        state.write_usize(self.outstanding(peer));
    }

    /// A world in virtual time over `layout`, in which no peer has started yet. Work that is
    /// open for longer than `deadline` costs its pair (F-12).
    #[must_use]
    pub fn timed(
        layout: Layout,
        seed: u64,
        deadline: Duration,
        faults: Faults,
        trace: Trace,
    ) -> Self {
        let timing = EventQueue::new(seed, deadline.0);
        let races = |peer| Some(Draws::numbered(seed, Purpose::Races, peer << 32));
        Self::new(layout, Some(timing), races, faults, trace)
    }

    /// A world in which nothing happens that is not chosen. With `stalling`, a peer may stall
    /// inside each post, between its look at the gate and the copy, as one over shared memory may.
    #[must_use]
    pub fn untimed(layout: Layout, stalling: bool) -> Self {
        Self { stalling, ..Self::new(layout, None, |_| None, Faults::none(), Trace::off()) }
    }

    /// The same world over a fabric that promises more.
    #[must_use]
    pub const fn with_promises(mut self, promises: Promises) -> Self {
        self.promises = promises;
        self
    }

    fn new(
        layout: Layout,
        timing: Option<EventQueue>,
        races: impl Fn(u64) -> Option<Draws>,
        faults: Faults,
        trace: Trace,
    ) -> Self {
        let peers = usize::from(layout.peers());
        let layout = Arc::new(layout);
        let place = |peer| PeerState {
            memory: SimMemory::new(&layout, races(peer)),
            alive: false,
            incarnation: Incarnation(0),
            died_at: 0,
            admissions: CopyOnWrite::new(Admissions {
                admitted: vec![Incarnation(0); peers],
                earliest: vec![Incarnation(1); peers],
                open: vec![Incarnation(0); peers],
            }),
            done: VecDeque::new(),
            inbox: VecDeque::new(),
            ahead: 0,
        };
        Self {
            now: 0,
            places: (0..peers as u64).map(place).collect(),
            pairs: vec![CopyOnWrite::default(); peers * peers],
            stale: CopyOnWrite::default(),
            messages: Vec::new(),
            timing,
            faults,
            losses: Vec::new(),
            flights: 0,
            promises: Promises::LEAST,
            stalling: false,
            refusal: None,
            trace,
            layout,
        }
    }

    /// The regions of every peer.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Virtual time in nanoseconds, which no peer's clock shows.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// What `peer`'s own clock shows.
    pub(super) fn clock(&self, peer: Peer) -> u64 {
        self.now + self.places[peer.index()].ahead
    }

    /// The post after that many others is refused as if the queue were full. Returns how many were
    /// left of the last such order, if it was not executed.
    pub(super) const fn refuse(&mut self, post: Option<u32>) -> Option<u32> {
        std::mem::replace(&mut self.refusal, post)
    }

    /// The faults of this run.
    pub const fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }

    pub(super) const fn trace(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// A line of the trace, if there is one.
    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        self.trace.note(self.now, line);
    }

    /// The regions of `peer`.
    pub(super) fn memory(&self, peer: Peer) -> &SimMemory {
        &self.places[peer.index()].memory
    }

    /// All peers.
    pub(super) fn peers(&self) -> impl Iterator<Item = Peer> + use<> {
        (0..self.layout.peers()).map(Peer)
    }

    /// `peer`'s clock jumps.
    pub(super) fn jump(&mut self, peer: Peer, by: u64) {
        self.places[peer.index()].ahead += by;
    }

    /// It is `at` nanoseconds now.
    pub(super) fn pass_to(&mut self, at: u64) {
        self.now = self.now.max(at);
    }

    /// The pairs that were lost, poster and target, since this was last called.
    pub(super) fn take_losses(&mut self) -> Vec<(Peer, Peer)> {
        std::mem::take(&mut self.losses)
    }

    fn pair(&mut self, from: Peer, to: Peer) -> &mut PairFlights {
        let peers = self.places.len();
        self.pairs[from.index() * peers + to.index()].change()
    }

    fn pair_ref(&self, from: Peer, to: Peer) -> &PairFlights {
        &self.pairs[from.index() * self.places.len() + to.index()]
    }
}

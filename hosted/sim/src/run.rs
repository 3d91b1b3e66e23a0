//! One run: the nodes of a protocol, stepped in virtual time, and their history judged.
//!
//! ```text
//!   start, faults, orders ──▶ calm: faults end, orders go on ──▶ the goal, within a bound
//! ```
//!
//! An idle node is stepped ever more rarely, so that long silences cost little.

use std::panic::{AssertUnwindSafe, catch_unwind};

use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::{Duration, Instant};

use super::draws::{Draws, Purpose};
use super::fabric::SimFabric;
use super::fault::{Faults, Keep, SimFault};
use super::panics;
use super::protocol::{HistoryEntry, HistoryEvent, Protocol, Seat, Violation};
use super::trace::Trace;
use super::world::{DueEvent, RunnerTimer, World};

/// Virtual time after the end of faults within which everything must finish.
const CALM_NS_MAX: u64 = 3_000_000_000;
/// And the events it may take.
const CALM_EVENTS_MAX: u64 = 600_000;
/// Events with faults, at most.
const STORM_EVENTS_MAX: u64 = 25_000;
/// How long after the end of faults all peers get work once more.
const MENDING_NS: u64 = 40_000_000;
/// Orders of each peer after the end of faults: the protocol must still work.
const LAST_ORDERS: u32 = 2;

/// Which run, and how much of it.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The seed that everything follows from.
    pub seed: u64,
    /// Which of its faults may happen.
    pub keep: Keep,
    /// The most orders of each peer.
    pub orders_max: u32,
    /// Whether a trace is kept.
    pub trace: Trace,
}

impl RunPlan {
    /// The whole run of `seed`, without a trace.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        Self { seed, keep: Keep::All, orders_max: u32::MAX, trace: Trace::off() }
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The promise that was broken, if any.
    pub violation: Option<Violation>,
    /// The faults that happened, by number.
    pub faults: Vec<u32>,
    /// The most orders that a peer had.
    pub orders: u32,
    /// How many events it took.
    pub events: u64,
    /// How much virtual time it took.
    pub took: Instant,
    /// The trace, if it was kept.
    pub trace: String,
}

/// Runs `plan` to its end.
#[must_use]
pub fn run<P: Protocol>(plan: &RunPlan) -> RunOutcome {
    let mut run = Run::<P>::new(plan);
    let panic = panics::quietly(|| catch_unwind(AssertUnwindSafe(|| run.go())));
    if let Err(message) = panic {
        run.violation.get_or_insert_with(|| Violation::new("panic", message));
    }
    if let Some(violation) = run.violation.clone() {
        run.world.note(|| format!("VIOLATION of {violation}"));
    }
    RunOutcome {
        violation: run.violation,
        faults: run.world.faults().happened().to_vec(),
        orders: run.orders_first,
        events: run.events,
        took: Instant(run.world.now()),
        trace: run.world.trace().take(),
    }
}

/// A run under way.
pub(super) struct Run<P: Protocol> {
    pub(super) world: World,
    pub(super) protocol: P,
    pub(super) nodes: Vec<Option<P::Node>>,
    pub(super) liars: PeerSet,
    pub(super) recovery: Draws,
    pub(super) lies: Draws,
    /// The time until which a process is stopped.
    pub(super) stopped: Vec<u64>,
    /// The incarnations that each node was ordered to admit, and those it was last ordered to
    /// fence.
    pub(super) known: Vec<Vec<Incarnation>>,
    pub(super) shut: Vec<Vec<Incarnation>>,
    orders: Vec<u32>,
    orders_first: u32,
    work: Vec<Draws>,
    /// The period of a node's loop in nanoseconds.
    pace: Vec<u64>,
    idle: Vec<u32>,
    events: u64,
    /// When and at which event faults ended.
    pub(super) calm: Option<(u64, u64)>,
    mended: bool,
    violation: Option<Violation>,
}

impl<P: Protocol> Run<P> {
    fn new(plan: &RunPlan) -> Self {
        let seed = plan.seed;
        let mut setup = Draws::new(seed, Purpose::Setup);
        let protocol = P::draw(&mut setup);
        let faults = Faults::swarm(seed, plan.keep.clone());
        let (layout, trace) = (protocol.layout().clone(), plan.trace.clone());
        let deadline = Duration::from_micros(setup.between(4_000, 24_000));
        let promises = P::promises(&mut Draws::new(seed, Purpose::Promises));
        let world = World::timed(layout, seed, deadline, faults, trace).with_promises(promises);
        let peers = usize::from(protocol.layout().peers());
        let orders_first = u32::try_from(setup.between(2, 30)).unwrap_or(2).min(plan.orders_max);
        let pace = (0..peers).map(|_| setup.magnitude(500, 16_000)).collect();
        let mut run = Self {
            liars: protocol.liars(),
            nodes: vec![None; peers],
            recovery: Draws::new(seed, Purpose::Recovery),
            lies: Draws::new(seed, Purpose::Lies),
            stopped: vec![0; peers],
            known: vec![vec![Incarnation(0); peers]; peers],
            shut: vec![vec![Incarnation(0); peers]; peers],
            orders: vec![orders_first; peers],
            orders_first,
            work: (0..peers as u64)
                .map(|n| Draws::numbered(seed, Purpose::Work, n << 32))
                .collect(),
            pace,
            idle: vec![0; peers],
            events: 0,
            calm: None,
            mended: false,
            violation: None,
            world,
            protocol,
        };
        for peer in run.world.peers() {
            let after = setup.below(20_000);
            run.world.schedule(after, DueEvent::Timer(RunnerTimer::Birth { peer }));
        }
        run.world.schedule(setup.between(500_000, 60_000_000), DueEvent::Timer(RunnerTimer::Calm));
        run
    }

    fn go(&mut self) {
        while self.violation.is_none() && !self.is_finished() {
            self.events += 1;
            match self.world.advance() {
                Some(Some(timer)) => self.on(timer),
                Some(None) => {}
                None => break,
            }
            for (poster, target) in self.world.take_losses() {
                self.handle_loss(poster, target);
            }
            if self.calm.is_none() && self.events > STORM_EVENTS_MAX {
                self.be_calm();
            }
        }
    }

    fn on(&mut self, timer: RunnerTimer) {
        match timer {
            RunnerTimer::Step { peer, incarnation } => self.step(peer, incarnation),
            RunnerTimer::Kill { peer, incarnation } => self.end_incarnation(peer, incarnation),
            RunnerTimer::Fence { by, peer, incarnation } => self.fence(by, peer, incarnation),
            RunnerTimer::Birth { peer } => self.start_peer(peer),
            RunnerTimer::Join { one, other } => self.join(one, other),
            RunnerTimer::Lie { peer, incarnation } => self.lie(peer, incarnation),
            RunnerTimer::Calm => self.be_calm(),
            RunnerTimer::LastOrders => self.give_last_orders(),
        }
    }

    /// Whether the goal was reached in time, or was not.
    fn is_finished(&mut self) -> bool {
        let Some((since, first_event)) = self.calm else {
            return false;
        };
        if !self.events.is_multiple_of(16) {
            return false;
        }
        let goal = self.reached();
        let (took, events) = (self.world.now() - since, self.events - first_event);
        if let Err(missing) = &goal
            && (took > CALM_NS_MAX || events > CALM_EVENTS_MAX)
        {
            self.violation = Some(missing.clone());
        }
        goal.is_ok()
    }

    fn reached(&self) -> Result<(), Violation> {
        let fail = |what: String| Err(Violation::new("liveness", what));
        if !self.mended {
            return fail("faults were not mended".into());
        }
        for peer in self.world.peers().filter(|&peer| !self.liars.contains(peer)) {
            if self.nodes[peer.index()].is_none() {
                return fail(format!("{peer} does not live again"));
            }
            if self.orders[peer.index()] > 0 {
                return fail(format!("{peer} has orders it does not carry out"));
            }
        }
        self.all_joined()?;
        let nodes: Vec<_> = self.nodes.iter().map(Option::as_ref).collect();
        self.protocol.goal(&nodes)?;
        if self.world.is_quiet() { Ok(()) } else { fail("work is under way without end".into()) }
    }

    /// Faults end, and their effects are repaired.
    fn be_calm(&mut self) {
        if self.calm.is_some() {
            return;
        }
        self.calm = Some((self.world.now(), self.events));
        self.world.faults().end();
        self.world.note(|| "faults are over".into());
        self.world.heal_all();
        self.mend();
        self.world.schedule(MENDING_NS, DueEvent::Timer(RunnerTimer::LastOrders));
        self.judge(Peer(0), HistoryEvent::Calm);
    }

    fn give_last_orders(&mut self) {
        self.mended = true;
        for peer in self.world.peers().filter(|&peer| !self.liars.contains(peer)) {
            self.orders[peer.index()] += LAST_ORDERS;
        }
    }

    /// One round of the loop of `peer`, if that incarnation of it still runs.
    fn step(&mut self, peer: Peer, incarnation: Incarnation) {
        if self.world.incarnation(peer) != incarnation || !self.world.is_alive(peer) {
            return;
        }
        let stopped = self.stopped[peer.index()];
        if stopped > self.world.now() {
            // The supervisor ends a process that is stopped forever.
            if stopped != u64::MAX {
                let after = stopped - self.world.now();
                self.world
                    .schedule(after, DueEvent::Timer(RunnerTimer::Step { peer, incarnation }));
            }
            return;
        }
        self.strike(peer, incarnation);
        let before = self.world.memory(peer).fuse.used();
        self.act(peer, |protocol, node, seat| protocol.step(node, seat));
        let idle = &mut self.idle[peer.index()];
        *idle = if self.world.memory(peer).fuse.used() == before { *idle + 1 } else { 0 };
        let after = self.pace[peer.index()] << (*idle / 4).min(6);
        self.world.schedule(after, DueEvent::Timer(RunnerTimer::Step { peer, incarnation }));
    }

    /// What may happen to a process between two rounds of its loop.
    fn strike(&mut self, peer: Peer, incarnation: Incarnation) {
        let now = self.world.now();
        if let Some(strike) = self.world.faults().strikes(SimFault::Crash) {
            let left = strike.amount(0, 30);
            self.world.note(|| {
                format!("fault {}: {peer}.{incarnation} ends in {left} operations", strike.number)
            });
            self.world.memory(peer).fuse.set(u32::try_from(left).ok());
        }
        if let Some(strike) = self.world.faults().strikes(SimFault::Stall) {
            let span = strike.amount(1_000_000, 200_000_000);
            self.world.note(|| {
                format!(
                    "fault {}: {peer}.{incarnation} stalls for {} us",
                    strike.number,
                    span / 1_000
                )
            });
            self.stopped[peer.index()] = now + span;
        }
        if let Some(strike) = self.world.faults().strikes(SimFault::Hang) {
            self.world.note(|| format!("fault {}: {peer}.{incarnation} hangs", strike.number));
            self.stopped[peer.index()] = u64::MAX;
            let noticed = strike.amount(500_000, 40_000_000);
            self.world.schedule(noticed, DueEvent::Timer(RunnerTimer::Kill { peer, incarnation }));
        }
        if let Some(strike) = self.world.faults().strikes(SimFault::ClockJump) {
            let by = strike.amount(1_000, 2_000_000_000);
            self.world.note(|| {
                format!("fault {}: {peer}'s clock jumps by {} us", strike.number, by / 1_000)
            });
            self.world.jump(peer, by);
        }
        if let Some(strike) = self.world.faults().strikes(SimFault::Cut) {
            let others = u64::from(self.protocol.layout().peers()) - 1;
            let step = strike.amount(1, others.max(1));
            let to = Peer(((u64::from(peer.0) + step) % (others + 1)) as u16);
            let (span, both) = (strike.other_amount(10_000, 60_000_000), strike.amount(0, 1) == 1);
            self.world.note(|| {
                let ways = if both { "and back" } else { "one way" };
                format!("fault {}: {peer} to {to} is cut, {ways}", strike.number)
            });
            self.world.cut(peer, to, span);
            if both {
                self.world.cut(to, peer, span);
            }
        }
        if let Some(strike) = self.world.faults().strikes(SimFault::Suspicion) {
            self.world
                .note(|| format!("fault {}: {peer}.{incarnation} is suspected", strike.number));
            self.suspect(peer);
        }
    }

    /// Lets the node of `peer` act, and judges what it records.
    pub(super) fn act(
        &mut self,
        peer: Peer,
        action: impl FnOnce(&P, &mut P::Node, &mut Seat<'_, P::Event>),
    ) {
        // In its place: a node is far larger than what a round of it touches.
        let Some(node) = &mut self.nodes[peer.index()] else { return };
        let mut seat = Self::seat(
            &mut self.world,
            &mut self.orders[peer.index()],
            &mut self.work[peer.index()],
            peer,
        );
        action(&self.protocol, node, &mut seat);
        let (records, exits) = (seat.records, seat.exits);
        self.judge_all(peer, records);
        if exits {
            let incarnation = self.world.incarnation(peer);
            self.end_incarnation(peer, incarnation);
        }
    }

    /// The node of a new incarnation of `peer`.
    pub(super) fn begin(&mut self, peer: Peer) {
        let mut seat = Self::seat(
            &mut self.world,
            &mut self.orders[peer.index()],
            &mut self.work[peer.index()],
            peer,
        );
        let node = self.protocol.start(&mut seat);
        let records = seat.records;
        self.nodes[peer.index()] = Some(node);
        self.idle[peer.index()] = 0;
        self.judge_all(peer, records);
        let incarnation = self.world.incarnation(peer);
        let after = self.recovery.below(5_000);
        self.world.schedule(after, DueEvent::Timer(RunnerTimer::Step { peer, incarnation }));
    }

    fn seat<'a>(
        world: &'a mut World,
        orders: &'a mut u32,
        draws: &'a mut Draws,
        peer: Peer,
    ) -> Seat<'a, P::Event> {
        let (now, incarnation) = (Instant(world.clock(peer)), world.incarnation(peer));
        let fabric = SimFabric::new(world, peer);
        let draws = Some(draws);
        Seat { fabric, now, incarnation, orders, draws, records: Vec::new(), exits: false }
    }

    fn judge_all(&mut self, peer: Peer, records: Vec<P::Event>) {
        for record in records {
            self.judge(peer, HistoryEvent::Recorded(record));
        }
        if self.world.memory(peer).fuse.is_burnt() {
            let incarnation = self.world.incarnation(peer);
            self.end_incarnation(peer, incarnation);
        }
    }

    pub(super) fn judge(&mut self, peer: Peer, what: HistoryEvent<P::Event>) {
        let incarnation = self.world.incarnation(peer);
        if let HistoryEvent::Recorded(event) = &what {
            self.world.note(|| format!("{peer}.{incarnation} {event:?}"));
        }
        let entry = HistoryEntry { at: Instant(self.world.now()), peer, incarnation, what };
        if let Err(violation) = self.protocol.judge(&entry) {
            self.violation.get_or_insert(violation);
        }
    }
}

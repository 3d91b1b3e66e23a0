//! One state of the explorer, and its successors.

mod mishaps;

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::FixedState;
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::time::Instant;

use super::{Bounds, Move, Seen};
use crate::fabric::SimFabric;
use crate::protocol::{
    Fencing, HistoryEntry, HistoryEvent, MembershipNews, Opening, Pace, Protocol, Seat, Small,
    Supervision, Violation,
};
use crate::shared::{CopyOnWrite, fingerprint};
use crate::world::{Choice, World};

/// Rounds of fairness within which the goal must be reached.
const SETTLE_ROUNDS: u32 = 400;

/// The world, the nodes, the ledger, and how much may still happen.
#[derive(Clone)]
pub(super) struct ExploredState<P: Protocol> {
    world: World,
    protocol: CopyOnWrite<P>,
    nodes: Vec<Option<CopyOnWrite<P::Node>>>,
    orders: Vec<u32>,
    /// By node: the incarnations that it was ordered to admit.
    known: CopyOnWrite<Vec<Vec<Incarnation>>>,
    /// Rounds that may still do something; nothing where they are not counted.
    steps: Option<Vec<u32>>,
    crashes: u32,
    starts: u32,
    faults: u32,
    refusals: u32,
    waits: u32,
    /// Peers that may still be removed, and those that were.
    removable: PeerSet,
    removed: PeerSet,
    /// Peers that differ in nothing but their number.
    alike: PeerSet,
    pace: Pace,
    fencing: Fencing,
    /// Whether what a dead poster left behind waits for the moves of its target.
    late: Late,
    settled: Settled,
    /// The peer that moves before all others: work that only it can see has just landed in its
    /// memory, it has fenced a peer, which no other peer can see either, or it handles a completion
    /// at once.
    struck: Option<Peer>,
    pub(super) violation: Option<Violation>,
}

/// When writes of a dead poster land that only their target can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    #[cfg(test)]
    AtWill,
    /// Right before a move of the target.
    BeforeItsTurn,
}

/// When a poster handles what it reads of what stands for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    #[cfg(any(test, feature = "mutants"))]
    AtWill,
    /// Before anything else.
    First,
}

impl<P: Protocol> ExploredState<P> {
    /// A small configuration: all peers in their first incarnation, all joined.
    pub(super) fn small(small: Small<P>, bounds: &Bounds) -> Self {
        let Small { protocol, orders, steps, alike, opening, pace, fencing, .. } = small;
        let peers = usize::from(protocol.layout().peers());
        let mut state = Self {
            world: World::untimed(protocol.layout().clone(), small.stalls)
                .with_promises(small.promises),
            nodes: vec![None; peers],
            orders,
            known: CopyOnWrite::new(vec![vec![Incarnation(0); peers]; peers]),
            steps: bounds.steps.map(|steps| vec![steps; peers]).or(steps),
            crashes: bounds.crashes.min(small.crashes),
            starts: bounds.starts.unwrap_or(small.starts),
            faults: bounds.faults.unwrap_or(small.faults),
            refusals: small.refusals,
            removable: small.removable,
            removed: PeerSet::EMPTY,
            waits: bounds.waits.unwrap_or(small.waits),
            alike,
            pace,
            fencing,
            late: Late::BeforeItsTurn,
            settled: Settled::First,
            struck: None,
            violation: None,
            protocol: CopyOnWrite::new(protocol),
        };
        for peer in state.world.peers() {
            state.start_peer(peer);
        }
        for (one, other) in state.unjoined() {
            state.join(one, other);
        }
        if opening == Opening::Passed {
            state.pass_opening();
        }
        state
    }

    /// Lets everything go on in fairness without orders until nothing changes.
    fn pass_opening(&mut self) {
        let orders = self.orders.clone();
        self.orders.fill(0);
        for _ in 0..SETTLE_ROUNDS {
            let before = self.fingerprint();
            self.choose_all();
            self.world.peers().for_each(|peer| self.step(peer));
            if self.world.is_quiet() && self.fingerprint() == before {
                break;
            }
        }
        self.orders = orders;
    }

    /// Whatever can happen does, or one that is read again and again would starve the rest.
    fn choose_all(&mut self) {
        for choice in self.world.choices() {
            if self.world.choices().contains(&choice) {
                self.choose(choice);
            }
        }
    }

    /// The same configuration, with what is done about the dead at any time.
    #[cfg(test)]
    pub(super) fn at_will(self) -> Self {
        Self { fencing: Fencing::Acts, late: Late::AtWill, ..self }
    }

    /// The same configuration, with reads of what stands for good handled at any time.
    #[cfg(any(test, feature = "mutants"))]
    pub(super) fn read_at_will(self) -> Self {
        Self { settled: Settled::AtWill, ..self }
    }

    /// Whether no move is left: not even after a round that changes nothing, before which a fence
    /// or the landing of a write may have been put.
    #[cfg(test)]
    pub(super) fn is_end(&self) -> bool {
        let over = Self { struck: None, ..self.clone() };
        over.successors(&mut Seen::default()).is_empty()
    }

    /// A number that differs, all but certainly, when nodes or history do.
    #[cfg(test)]
    pub(super) fn observed(&self) -> u64 {
        fingerprint(&(&self.protocol, &self.nodes))
    }

    /// A number that differs, all but certainly, when what may happen next does.
    pub(super) fn fingerprint(&self) -> u64 {
        let all = (&self.world, self.world.now(), &self.protocol, &self.nodes);
        let peers = (&self.orders, &self.known, &self.steps, self.removable, self.removed);
        let left = (self.crashes, self.starts, self.faults, self.waits, self.refusals);
        fingerprint(&(all, peers, left, self.struck))
    }

    /// Everything that may happen next, and where it leads. A round that `idle` knows to change
    /// nothing is left out; what waits in [`Self::struck`] or [`Self::alike`] for its turn, too;
    /// and everything else where a read may be put first.
    pub(super) fn successors(&self, idle: &mut Seen) -> Vec<(Move, Self)> {
        if let Some((from, to)) = self.read_first() {
            let choice = Choice::Land(from, to);
            return vec![self.after(Move::Fabric(choice), |state| {
                state.choose(choice);
                state.struck = Some(from);
            })];
        }
        let mut next = Vec::new();
        let concerns = |peer: Peer| self.struck.is_none_or(|struck| struck == peer);
        let living = |&peer: &Peer| self.world.is_alive(peer) && concerns(peer);
        for peer in self.world.peers().filter(living) {
            self.step_and_crash(peer, idle, &mut next);
        }
        self.fabric_goes_on(&mut next);
        for (by, peer) in self.unfenced() {
            if (concerns(by) || concerns(peer)) && !self.world.is_stalled(by) {
                next.extend(self.after_fence((by, peer), idle));
            }
        }
        self.remove(&mut next);
        let waits = |peer| self.world.is_alive(peer) || self.removed.contains(peer);
        let dead = |&peer: &Peer| self.starts > 0 && !waits(peer) && concerns(peer);
        for peer in self.world.peers().filter(dead) {
            next.push(self.after(Move::Birth(peer), |state| {
                state.starts -= 1;
                state.start_peer(peer);
            }));
        }
        for (one, other) in self.unjoined() {
            if concerns(one) || concerns(other) {
                next.push(self.after(Move::Join(one, other), |state| state.join(one, other)));
            }
        }
        let may_wait = self.waits > 0 && self.struck.is_none();
        if let (true, Some(at)) = (may_wait, self.next_deadline()) {
            next.push(self.after(Move::Wait, |state| {
                state.waits -= 1;
                state.world.pass_to(at);
            }));
        }
        next
    }

    /// The fabric's part of what may happen next.
    fn fabric_goes_on(&self, next: &mut Vec<(Move, Self)>) {
        for choice in self.world.choices() {
            let unseen = match choice {
                Choice::Land(from, to) if self.world.lands_unseen(from, to) => Some(to),
                Choice::Overtake(from, to) if self.world.overtakes_unseen(from, to) => Some(to),
                Choice::LandLate(index) => self.lands_late_unseen(index),
                _ => None,
            };
            let struck = unseen.or(match choice {
                Choice::Land(from, to) if self.world.reports(from, to) => match self.pace {
                    Pace::AtWill => None,
                    Pace::AtOnce => Some(from),
                },
                _ => None,
            });
            let waits = self.struck.is_some() && self.struck != unseen;
            if !waits && !self.is_before_its_turn(choice) {
                next.push(self.after(Move::Fabric(choice), |state| {
                    state.choose(choice);
                    state.struck = struck;
                }));
            }
        }
        if self.faults == 0 {
            return;
        }
        for choice in self.world.fault_choices() {
            let concerns = |struck| matches!(choice, Choice::Lose(_, to) if to == struck);
            if self.struck.is_none_or(concerns) {
                next.extend(self.lose_for_the_target(choice));
                // With the end of its poster, that is work that lands, and then a crash.
                if !matches!(choice, Choice::LandLost(..)) {
                    next.push(self.after(Move::Fabric(choice), |state| {
                        state.faults -= 1;
                        state.choose(choice);
                    }));
                }
            }
        }
    }

    /// Who reads of whom what stands for good, so that nothing is lost when that happens next.
    fn read_first(&self) -> Option<(Peer, Peer)> {
        let waits = self.settled != Settled::First || self.struck.is_some();
        let may_fail = self.crashes > 0 || self.starts > 0 || self.faults > 0;
        let is_bounded = self.steps.is_some() || self.waits > 0 || self.pace == Pace::AtWill;
        if waits || may_fail || is_bounded {
            return None;
        }
        let all = || self.world.peers();
        let mut pairs = all().flat_map(|from| all().map(move |to| (from, to)));
        pairs.find(|&(from, to)| {
            let orders = self.orders[to.index()];
            let stands = |at| self.protocol.stands((to, at), orders, &self.world);
            self.world.reads_next(from, to).is_some_and(stands)
        })
    }

    /// The peer whose move the stale work waits for; none if others can see whether it has landed.
    fn lands_late_unseen(&self, index: usize) -> Option<Peer> {
        let (_, to) = self.world.stale_between(index);
        let is_unseen = self.world.is_alive(to) && self.world.lands_late_unseen(index);
        (self.late == Late::BeforeItsTurn && is_unseen).then_some(to)
    }

    /// `by` fences the dead incarnation of `peer`. If that is all it does, it moves next; the fence
    /// is skipped if its next round is known to change nothing and no other peer must be fenced.
    fn after_fence(&self, (by, peer): (Peer, Peer), idle: &Seen) -> Option<(Move, Self)> {
        let (last, mut state) = self.after(Move::Fence(by, peer), |state| state.fence(by, peer));
        if self.fencing == Fencing::FencesOnly {
            state.struck = Some(by);
            let is_last = !state.unfenced().iter().any(|(who, _)| *who == by);
            if is_last && idle.contains(&state.outlook(by)) {
                return None;
            }
        }
        Some((last, state))
    }

    /// Whether the first work lands in one of those that are alike, and one that comes before it
    /// has got none.
    fn is_before_its_turn(&self, choice: Choice) -> bool {
        let to = match choice {
            Choice::Land(_, to) | Choice::Overtake(_, to) => to,
            Choice::LandLate(index) if self.late == Late::BeforeItsTurn => {
                self.world.stale_between(index).1
            }
            _ => return false,
        };
        let waits = |peer: Peer| peer < to && self.world.memory(peer).is_blank();
        self.alike.contains(to)
            && self.world.is_alive(to)
            && self.world.memory(to).is_blank()
            && self.alike.iter().any(waits)
    }

    /// Whether `peer` may die now: of those that are alike and have got nothing, the last does.
    fn may_die(&self, peer: Peer) -> bool {
        let follows = |other: Peer| other > peer;
        let is_stand_in = self.alike.contains(peer)
            && self.world.memory(peer).is_blank()
            && self.alike.iter().any(follows);
        (self.crashes > 0 && !is_stand_in) || self.removed.contains(peer)
    }

    fn after(&self, last: Move, action: impl FnOnce(&mut Self)) -> (Move, Self) {
        let mut state = self.clone();
        state.struck = None;
        action(&mut state);
        (last, state)
    }

    /// All that a round of the loop of `peer` depends on. Where posts are answered at once a round
    /// that posts depends on its targets, too; each counts its posts, so none of those is repeated.
    fn outlook(&self, peer: Peer) -> u64 {
        let mut hasher = FixedState::default().build_hasher();
        (peer, self.world.now(), self.orders[peer.index()]).hash(&mut hasher);
        self.nodes[peer.index()].hash(&mut hasher);
        self.world.hash_outlook(peer, &mut hasher);
        hasher.finish()
    }

    /// A round of the loop of `peer`, and its end at each operation of that round.
    fn step_and_crash(&self, peer: Peer, idle: &mut Seen, next: &mut Vec<(Move, Self)>) {
        if self.world.is_stalled(peer) {
            return self.crash(peer, 1, next);
        }
        let mut operations = 0;
        let outlook = self.outlook(peer);
        if !idle.contains(&outlook) {
            let mut stepped = self.clone();
            stepped.struck = None;
            let before = stepped.fingerprint();
            stepped.world.memory(peer).fuse.set(None);
            stepped.step(peer);
            operations = stepped.world.memory(peer).fuse.used();
            let left = self.steps.as_ref().map(|steps| steps[peer.index()]);
            if operations > 0 && left == Some(0) {
                return;
            }
            if stepped.violation.is_none() && stepped.fingerprint() == before {
                idle.insert(outlook);
            } else {
                // A round that touches nothing remote or shared may be repeated at will.
                if let Some(steps) = &mut stepped.steps {
                    steps[peer.index()] -= u32::from(operations > 0);
                }
                next.push((Move::Step(peer), stepped));
                self.refuse(peer, next);
            }
        }
        self.crash(peer, operations.max(1), next);
    }

    /// The end of `peer` at each of the `operations` of its round.
    fn crash(&self, peer: Peer, operations: u32, next: &mut Vec<(Move, Self)>) {
        if !self.may_die(peer) {
            return;
        }
        for after in 0..operations {
            next.push(self.after(Move::Crash(peer, after), |state| {
                state.crashes -= u32::from(!state.removed.contains(peer));
                state.world.memory(peer).fuse.set(Some(after));
                state.step(peer);
                state.die(peer);
            }));
        }
    }

    fn choose(&mut self, choice: Choice) {
        self.choose_and_restart(choice, None);
    }

    /// Does it; for a pair that is lost, `suspect` is restarted, or its poster.
    fn choose_and_restart(&mut self, choice: Choice, suspect: Option<Peer>) {
        self.world.choose(choice);
        if let Choice::Land(from, to) = choice {
            // No peer sees a completion before the poster's next step, which may come at any time.
            while self.world.completes(from, to) {
                self.world.choose(Choice::Complete(from, to));
            }
        }
        // A lost pair is repaired by a restart, which is a crash that the supervisor decides on.
        let by_oracle = self.protocol.supervision() == Supervision::ByOracle;
        for (poster, target) in self.world.take_losses() {
            let current =
                self.known[poster.index()][target.index()] == self.world.incarnation(target);
            if by_oracle && current && self.world.is_alive(target) {
                self.die(suspect.unwrap_or(poster));
            }
        }
    }

    fn die(&mut self, peer: Peer) {
        if self.world.is_alive(peer) {
            self.world.kill(peer);
            for region in self.protocol.forgotten() {
                self.world.memory(peer).erase(region);
            }
            self.drop_bouncing();
            self.nodes[peer.index()] = None;
            self.judge(peer, HistoryEvent::Died);
        }
    }

    fn start_peer(&mut self, peer: Peer) {
        self.world.start_peer(peer);
        self.known.change()[peer.index()].fill(Incarnation(0));
        self.judge(peer, HistoryEvent::Began);
        let mut seat = Self::seat(&mut self.world, &mut self.orders[peer.index()], peer);
        let node = self.protocol.start(&mut seat);
        let records = seat.records;
        self.nodes[peer.index()] = Some(CopyOnWrite::new(node));
        self.judge_all(peer, records);
    }

    fn step(&mut self, peer: Peer) {
        if self.world.is_stalled(peer) {
            return;
        }
        self.act(peer, |protocol, node, seat| protocol.step(node, seat));
    }

    /// Pairs of a peer and another one whose ended incarnation it still knows.
    fn unfenced(&self) -> Vec<(Peer, Peer)> {
        let ended = |by: Peer, peer: Peer| {
            let known = self.known[by.index()][peer.index()];
            let is_current = self.world.is_alive(peer) && self.world.incarnation(peer) == known;
            let ended = !is_current || self.removed.contains(peer);
            known != Incarnation(0) && ended
        };
        self.living_pairs(ended)
    }

    /// Living peers that have not admitted each other, each pair once.
    fn unjoined(&self) -> Vec<(Peer, Peer)> {
        if self.protocol.supervision() == Supervision::ByProtocol {
            return Vec::new();
        }
        let knows = |one: Peer, other: Peer| {
            self.known[one.index()][other.index()] == self.world.incarnation(other)
        };
        self.living_pairs(|one, other| {
            let is_out = self.removed.contains(one) || self.removed.contains(other);
            let joined = knows(one, other) && knows(other, one);
            one < other && self.world.is_alive(other) && !joined && !is_out
        })
    }

    fn living_pairs(&self, wanted: impl Fn(Peer, Peer) -> bool) -> Vec<(Peer, Peer)> {
        let living = self.world.peers().filter(|&peer| self.world.is_alive(peer));
        let pairs = living.flat_map(|one| self.world.peers().map(move |other| (one, other)));
        let talk = |one, other| one != other && self.protocol.talk(one, other);
        pairs.filter(|&(one, other)| talk(one, other) && wanted(one, other)).collect()
    }

    fn fence(&mut self, by: Peer, peer: Peer) {
        let incarnation = std::mem::take(&mut self.known.change()[by.index()][peer.index()]);
        let change = MembershipNews::Ended(peer, incarnation);
        self.act(by, |protocol, node, seat| protocol.membership(node, seat, change));
        self.drop_bouncing();
    }

    /// What bounces whenever it lands need not wait for that.
    fn drop_bouncing(&mut self) {
        if self.late == Late::BeforeItsTurn {
            self.world.drop_bouncing();
        }
    }

    /// The two admit each other; one that stalls inside a post does so after it.
    fn join(&mut self, one: Peer, other: Peer) {
        let mut pairs = vec![(one, other), (other, one)];
        pairs.retain(|(who, peer)| {
            let knows = self.known[who.index()][peer.index()] == self.world.incarnation(*peer);
            !knows && !self.world.is_stalled(*who)
        });
        for &(who, peer) in &pairs {
            if self.known[who.index()][peer.index()] != Incarnation(0) {
                self.fence(who, peer);
            }
        }
        for (who, peer) in pairs {
            let incarnation = self.world.incarnation(peer);
            self.known.change()[who.index()][peer.index()] = incarnation;
            let change = MembershipNews::Began(peer, incarnation);
            self.act(who, |protocol, node, seat| protocol.membership(node, seat, change));
        }
    }

    fn next_deadline(&self) -> Option<u64> {
        let nodes = self.nodes.iter().flatten();
        let deadlines = nodes.filter_map(|node| self.protocol.deadline(node)).map(|at| at.0);
        deadlines.filter(|&at| at > self.world.now()).min()
    }

    /// Lets everything go on in fairness: the goal must be reached. From states in `settled` it
    /// has been.
    pub(super) fn settle(&self, settled: &mut Seen) -> Result<(), Violation> {
        let mut state = self.clone();
        (state.steps, state.struck) = (None, None);
        (state.crashes, state.starts, state.faults, state.waits) = (0, 0, 0, 0);
        (state.refusals, state.removable) = (0, PeerSet::EMPTY);
        state.end_removed();
        let mut goal = Ok(());
        let mut way = HashSet::new();
        for _ in 0..SETTLE_ROUNDS {
            let here = state.fingerprint();
            if settled.contains(&here) {
                settled.extend(way);
                return Ok(());
            }
            way.insert(here);
            state.choose_all();
            for peer in state.world.peers() {
                if state.world.is_alive(peer) {
                    state.step(peer);
                } else if !state.removed.contains(peer) {
                    state.start_peer(peer);
                }
            }
            for (one, other) in state.unjoined() {
                state.join(one, other);
            }
            if let Some(violation) = state.violation {
                return Err(violation);
            }
            let nodes: Vec<_> = state.nodes.iter().map(Option::as_deref).collect();
            goal = state.protocol.goal(&nodes);
            if goal.is_ok() && state.world.is_quiet() {
                settled.extend(way);
                return goal;
            }
            if state.world.choices().is_empty()
                && let Some(at) = state.next_deadline()
            {
                state.world.pass_to(at);
            }
        }
        goal
    }

    fn act(&mut self, peer: Peer, action: impl FnOnce(&P, &mut P::Node, &mut Seat<'_, P::Event>)) {
        let Some(mut node) = self.nodes[peer.index()].take() else {
            return;
        };
        let mut seat = Self::seat(&mut self.world, &mut self.orders[peer.index()], peer);
        action(&self.protocol, node.change(), &mut seat);
        let (records, exits) = (seat.records, seat.exits);
        self.nodes[peer.index()] = Some(node);
        self.judge_all(peer, records);
        if exits {
            self.die(peer);
        }
    }

    fn seat<'a>(world: &'a mut World, orders: &'a mut u32, peer: Peer) -> Seat<'a, P::Event> {
        let (now, incarnation) = (Instant(world.clock(peer)), world.incarnation(peer));
        let fabric = SimFabric::new(world, peer);
        let (draws, records) = (None, Vec::new());
        Seat { fabric, now, incarnation, orders, draws, records, exits: false }
    }

    fn judge_all(&mut self, peer: Peer, records: Vec<P::Event>) {
        for record in records {
            self.judge(peer, HistoryEvent::Recorded(record));
        }
    }

    fn judge(&mut self, peer: Peer, what: HistoryEvent<P::Event>) {
        let incarnation = self.world.incarnation(peer);
        let entry = HistoryEntry { at: Instant(self.world.now()), peer, incarnation, what };
        if let Err(violation) = self.protocol.change().judge(&entry) {
            self.violation.get_or_insert(violation);
        }
    }
}

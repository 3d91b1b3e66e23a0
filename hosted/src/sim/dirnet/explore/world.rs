//! One state of the explorer: components, what is under way between them, what may still happen.

use std::collections::{BTreeMap, VecDeque};

use weft_core::dirnet::{
    Beat, Component, Config, Frame, Kept, Level, Life, Limits, Message, Output, Part, Profile,
    RestartLimit, Role, Seat, Term, Timing,
};
use weft_core::ids::{Incarnation, Rank};
use weft_core::time::{Duration, Instant};

use super::{Bounds, Lane, Move, Violation, faults_of};
use crate::sim::dirnet::strike::MS;
use crate::sim::explore::shared::Shared;

/// So long a cluster is let settle.
const SETTLING_MS: u64 = 200;
/// Deadlines in a row at which nothing but a heartbeat is due.
const IDLE_MAX: u32 = 64;

type Small = Component<4, 1>;

const FIRST: Life = Life { boot: Incarnation(1), generation: 0 };
const SECOND: Life = Life { boot: Incarnation(2), generation: 0 };

#[derive(Clone, Hash)]
pub(super) struct World {
    nodes: Vec<Option<Shared<Small>>>,
    /// In flight, lane by lane and in order; none is empty.
    lanes: BTreeMap<Lane, VecDeque<Frame>>,
    reigns: BTreeMap<Term, Rank>,
    crashes: u32,
    losses: u32,
    repeats: u32,
    deadlines: u32,
}

impl World {
    /// A cluster that has started and heard of each other, and may suffer what `bounds` allow.
    pub(super) fn settled(count: u16, deadlines: u32, bounds: &Bounds) -> Self {
        let mut world = Self::begun(count, FIRST, deadlines, bounds);
        (0..SETTLING_MS).for_each(|ms| world.tick(Instant(ms * MS)));
        for component in world.nodes.iter_mut().flatten().map(Shared::change) {
            component.rebase(Duration(SETTLING_MS * MS));
        }
        world.note_reigns();
        world
    }

    /// Two managers in their second lives, each of which holds the other's first one for removed,
    /// and says that it reigns.
    pub(super) fn rivals(deadlines: u32, bounds: &Bounds) -> Self {
        let mut world = Self::begun(2, SECOND, deadlines, bounds);
        for (node, other) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
            let component = world.node(node).expect("nobody has crashed yet");
            let beat = Beat {
                term: component.term(),
                life: FIRST,
                sequence: 1,
                digest: 0,
                echo: 0,
                is_heard: true,
            };
            component.handle_heartbeat(Instant(0), other, &beat).expect("it is a member's");
            world.collect(node);
            while !world.has_removed(node, other) {
                assert!(world.expire(node), "silence comes to a verdict");
            }
        }
        world.note_reigns();
        world.lanes.clear();
        for (node, other) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
            let term = world.node(node).expect("nobody has crashed yet").term();
            let (seat, message, sequence) = (Seat::Component, Message::Nmi, 1);
            let claim = Frame { sender: node, seat, term, life: SECOND, sequence, message };
            world.lanes.insert((node, other), VecDeque::from([claim]));
        }
        world
    }

    fn has_removed(&self, node: Rank, other: Rank) -> bool {
        let component = self.nodes[usize::from(node.0)].as_ref();
        component.is_some_and(|it| it.database().standing(other).level == Level::Down)
    }

    /// Nodes that have just begun that life.
    fn begun(count: u16, life: Life, deadlines: u32, bounds: &Bounds) -> Self {
        let parts: Vec<_> =
            (0..count).map(|n| if n == 0 { Part::Manager } else { Part::Backup }).collect();
        let profile = Profile::new(Timing::LAN).expect("the profile keeps its rules");
        let limit = |s: u64| RestartLimit { max: 3, within: Duration(s * 1_000 * MS) };
        let limits = Limits { restarts: limit(10), resets: limit(100) };
        let start = |node| {
            let config = Config::new(Rank(node), &parts, profile, 1, limits);
            let component =
                Small::new(Instant(0), config.expect("one manager"), life, 0, Kept::default());
            Some(Shared::new(component))
        };
        let mut world = Self {
            nodes: (0..count).map(start).collect(),
            lanes: BTreeMap::new(),
            reigns: BTreeMap::new(),
            crashes: bounds.crashes,
            losses: faults_of(bounds),
            repeats: faults_of(bounds),
            deadlines,
        };
        (0..count).map(Rank).for_each(|node| drop(world.collect(node)));
        world
    }

    fn note_reigns(&mut self) {
        for component in self.nodes.iter().flatten().filter(|it| it.role() == Role::Manager) {
            self.reigns.insert(component.term(), component.me());
        }
    }

    /// How many reign.
    #[cfg(test)]
    pub(super) fn managers(&self) -> usize {
        self.nodes.iter().flatten().filter(|it| it.role() == Role::Manager).count()
    }

    fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.nodes.len() as u16).map(Rank)
    }

    fn node(&mut self, node: Rank) -> Option<&mut Small> {
        self.nodes[usize::from(node.0)].as_mut().map(Shared::change)
    }

    /// Fair weather: what is due happens, what is said is heard.
    fn tick(&mut self, now: Instant) {
        for node in self.ranks() {
            let Some(component) = self.node(node) else { continue };
            if component.poll_timeout().is_some_and(|due| due <= now) {
                component.handle_timeout(now);
            }
            for (to, beat) in self.collect(node) {
                let component = self.node(to).expect("nobody has crashed yet");
                component.handle_heartbeat(now, node, &beat).expect("it is a member's");
                self.collect(to);
            }
        }
        while let Some(lane) = self.lanes.keys().next().copied() {
            self.deliver(lane, now);
        }
    }

    /// Takes what `node` wants done; heartbeats are the caller's. Fencing takes no time here.
    fn collect(&mut self, node: Rank) -> Vec<(Rank, Beat)> {
        let (mut beats, mut fences) = (Vec::new(), Vec::new());
        while let Some(output) = self.node(node).and_then(Small::poll_output) {
            match output {
                Output::Send { to, seat: Seat::Component, frame } => {
                    for to in to.iter().filter(|to| self.nodes[usize::from(to.0)].is_some()) {
                        self.lanes.entry((node, to)).or_default().push_back(frame);
                    }
                }
                Output::Beat { to, beat } => beats.push((to, beat)),
                Output::Fence { node, boot } => fences.push((node, boot)),
                Output::Send { seat: Seat::ImAliveTask, .. }
                | Output::Keep(_)
                | Output::Reset { .. }
                | Output::Spawn { .. }
                | Output::Task { .. }
                | Output::Verdict(_)
                | Output::Tell(_) => {}
            }
        }
        for (fenced, boot) in fences {
            if let Some(component) = self.node(node) {
                component.handle_fenced(Instant(0), fenced, boot);
            }
            beats.extend(self.collect(node));
        }
        beats
    }

    /// Takes the first message off a lane.
    fn take(&mut self, lane: Lane) -> Option<Frame> {
        let waiting = self.lanes.get_mut(&lane)?;
        let frame = waiting.pop_front();
        if waiting.is_empty() {
            self.lanes.remove(&lane);
        }
        frame
    }

    fn deliver(&mut self, lane: Lane, now: Instant) {
        let (from, to) = lane;
        let frame = self.take(lane);
        if let (Some(frame), Some(component)) = (frame, self.node(to)) {
            // What is refused is counted by the component; the walk goes on either way.
            let _ = component.handle_message(now, from, &frame);
        }
        self.collect(to);
    }

    fn crash(&mut self, node: Rank) {
        self.nodes[usize::from(node.0)] = None;
        self.lanes.retain(|(_, to), _| *to != node);
        self.crashes -= 1;
    }

    /// The next deadline of `node` at which it does more than count and beat, if there is one.
    fn expire(&mut self, node: Rank) -> bool {
        let (before, under_way) = (self.judgement(node), self.under_way());
        for _ in 0..IDLE_MAX {
            let Some(component) = self.node(node) else { return false };
            let Some(due) = component.poll_timeout() else { return false };
            component.handle_timeout(due);
            component.rebase(Duration(due.0));
            self.collect(node);
            if self.under_way() != under_way || self.judgement(node) != before {
                return true;
            }
        }
        false
    }

    /// What `node` is, and whom it suspects.
    fn judgement(&self, node: Rank) -> Option<(Role, Term, Vec<Rank>)> {
        let component = self.nodes[usize::from(node.0)].as_ref()?;
        let suspects = self.ranks().filter(|other| component.suspects(*other)).collect();
        Some((component.role(), component.term(), suspects))
    }

    fn under_way(&self) -> usize {
        self.lanes.values().map(VecDeque::len).sum()
    }

    /// Everything that may happen next, and where it leads.
    pub(super) fn successors(&self) -> Vec<(Move, Self)> {
        let mut next = Vec::new();
        for (lane, waiting) in &self.lanes {
            let (lane, first) = (*lane, waiting[0]);
            let what = first.message.name();
            let mut delivered = self.clone();
            delivered.deliver(lane, Instant(0));
            next.push((Move::Deliver(lane, what), delivered));
            if self.losses > 0 {
                let mut lost = self.clone();
                lost.take(lane);
                lost.losses -= 1;
                next.push((Move::Lose(lane, what), lost));
            }
            if self.repeats > 0 {
                let mut repeated = self.clone();
                repeated.lanes.entry(lane).or_default().push_front(first);
                repeated.repeats -= 1;
                next.push((Move::Repeat(lane, what), repeated));
            }
        }
        for node in self.ranks() {
            if self.crashes > 0 && self.nodes[usize::from(node.0)].is_some() {
                let mut crashed = self.clone();
                crashed.crash(node);
                next.push((Move::Crash(node), crashed));
            }
        }
        next.extend(self.expiries());
        next
    }

    /// The deadlines that may come next, and where they lead.
    pub(super) fn expiries(&self) -> impl Iterator<Item = (Move, Self)> {
        let nodes = self.ranks().filter(|_| self.deadlines > 0);
        nodes.filter_map(|node| {
            let mut expired = self.clone();
            expired.deadlines -= 1;
            expired.expire(node).then_some((Move::Expire(node), expired))
        })
    }

    /// Reigns there were so far.
    #[cfg(test)]
    pub(super) fn reigns(&self) -> usize {
        self.reigns.len()
    }

    /// Holds the promises against a step from here to `next`, and notes its reigns.
    pub(super) fn check(&self, next: &mut Self) -> Result<(), Violation> {
        for (before, after) in self.nodes.iter().zip(&next.nodes) {
            let (Some(before), Some(after)) = (before, after) else { continue };
            let (me, was, term) = (after.me(), before.term(), after.term());
            if term < was {
                let what = format!("node {me} went from term {was} to {term}");
                return Err(Violation::new("terms", what));
            }
            if after.role() != Role::Manager {
                continue;
            }
            let owner = *next.reigns.entry(term).or_insert(me);
            if owner != me || term.claimant != me {
                let what = format!("term {term} of node {owner} is reigned by {me}");
                return Err(Violation::new("one-manager", what));
            }
            let is_claim = before.role() != Role::Manager || was != term;
            if is_claim && term <= was {
                let what = format!("node {me} claims {term} and knew {was}");
                return Err(Violation::new("terms", what));
            }
        }
        Ok(())
    }
}

//! Every interleaving of a small cluster in trouble, without a clock: any deadline may come
//! before any message, so nothing that is proven here rests on a timeout.
//!
//! From a settled cluster, depth-first: deliver any message in flight, lose one, repeat one,
//! crash up to two nodes, let any node's next deadline that does something come. No heartbeat is
//! ever delivered, the worst there is. How many deadlines come is bounded, and with it the depth.
//!
//! Held at every state: no term has two reigns, none is reigned by another than its claimant, no
//! node's term goes down, and a claim is above all terms its claimant knew.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::println;
use std::vec::Vec;

use super::net::{MS, timing};
use crate::dirnet::*;
use crate::ids::{Incarnation, Rank};
use crate::time::{Duration, Instant};

type Small = Component<4, 1>;

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    nodes: Vec<Option<Small>>,
    /// In flight, sorted: which is delivered next is the explorer's choice.
    flights: Vec<(u16, u16, Frame64)>,
    reigns: BTreeMap<Term, Rank>,
    crashes: u8,
    losses: u8,
    repeats: u8,
    deadlines: u8,
}

type Frame64 = [u8; FRAME_LEN];

impl World {
    fn settled(count: u16, deadlines: u8) -> Self {
        let parts: Vec<_> =
            (0..count).map(|n| if n == 0 { Part::Manager } else { Part::Backup }).collect();
        let profile = Profile::new(timing()).unwrap();
        let restarts = RestartLimit { max: 3, within: Duration(10_000 * MS) };
        let start = |node| {
            let config = Config::new(Rank(node), &parts, profile, 1, restarts).unwrap();
            let life = Life { boot: Incarnation(1), generation: 0 };
            Some(Component::new(Instant(0), config, life, 0, None))
        };
        let nodes = (0..count).map(start).collect();
        let (flights, reigns) = (Vec::new(), BTreeMap::new());
        let mut world =
            Self { nodes, flights, reigns, crashes: 0, losses: 0, repeats: 0, deadlines: 0 };
        for node in 0..world.nodes.len() {
            world.collect(node);
        }
        for ms in 0..200 {
            world.tick(Instant(ms * MS));
        }
        assert!(world.flights.is_empty());
        for node in world.nodes.iter_mut().flatten() {
            node.rebase(Duration(200 * MS));
        }
        (world.crashes, world.losses, world.repeats, world.deadlines) = (2, 1, 1, deadlines);
        world
    }

    /// Fair weather: what is due happens, what is said is heard.
    fn tick(&mut self, now: Instant) {
        for node in 0..self.nodes.len() {
            let component = self.nodes[node].as_mut().unwrap();
            if component.poll_timeout().is_some_and(|due| due <= now) {
                component.handle_timeout(now);
            }
            for (to, beat) in self.collect(node) {
                let from = Rank(u16::try_from(node).unwrap());
                let component = self.nodes[usize::from(to.0)].as_mut().unwrap();
                let _ = component.handle_heartbeat(now, from, &beat);
                self.collect(usize::from(to.0));
            }
        }
        while !self.flights.is_empty() {
            self.deliver(0, now);
        }
    }

    /// Takes what `node` wants done; heartbeats are the caller's.
    fn collect(&mut self, node: usize) -> Vec<(Rank, Beat)> {
        let from = u16::try_from(node).unwrap();
        let (mut beats, mut fences) = (Vec::new(), Vec::new());
        let Some(component) = &mut self.nodes[node] else { return beats };
        while let Some(output) = component.poll_output() {
            match output {
                Output::Send { to, seat: Seat::Component, frame } => {
                    let copies = to.iter().map(|to| (from, to.0, frame.encode()));
                    self.flights.extend(copies);
                }
                Output::Beat { to, beat } => beats.extend(to.iter().map(|to| (to, beat))),
                Output::Fence { node, boot } => fences.push((node, boot)),
                _ => {}
            }
        }
        for (fenced, boot) in fences {
            let component = self.nodes[node].as_mut().unwrap();
            component.handle_fenced(Instant(0), fenced, boot);
            beats.extend(self.collect(node));
        }
        self.flights.sort_unstable();
        beats
    }

    fn deliver(&mut self, index: usize, now: Instant) {
        let (from, to, bytes) = self.flights.remove(index);
        let frame = Frame::decode(&bytes).unwrap();
        if let Some(component) = &mut self.nodes[usize::from(to)] {
            let _ = component.handle_message(now, Rank(from), &frame);
        }
        self.collect(usize::from(to));
    }

    /// The next deadline of `node` at which it does more than count and beat.
    fn expire(&mut self, node: usize) -> bool {
        for _ in 0..64 {
            let Some(component) = &mut self.nodes[node] else { return false };
            let Some(due) = component.poll_timeout() else { return false };
            let before = (component.role(), component.term());
            component.handle_timeout(due);
            component.rebase(Duration(due.0));
            let suspected = (0..4).filter(|n| component.suspects(Rank(*n))).count();
            let (flights, role) = (self.flights.len(), (component.role(), component.term()));
            self.collect(node);
            if self.flights.len() != flights || role != before || suspected > 0 {
                return true;
            }
        }
        false
    }

    fn next(&self) -> Vec<Self> {
        let mut next = Vec::new();
        for index in 0..self.flights.len() {
            if index > 0 && self.flights[index] == self.flights[index - 1] {
                continue;
            }
            let mut delivered = self.clone();
            delivered.deliver(index, Instant(0));
            next.push(delivered);
            if self.losses > 0 {
                let mut lost = self.clone();
                lost.flights.remove(index);
                lost.losses -= 1;
                next.push(lost);
            }
            if self.repeats > 0 {
                let mut repeated = self.clone();
                repeated.flights.insert(index, self.flights[index]);
                repeated.repeats -= 1;
                next.push(repeated);
            }
        }
        for node in 0..self.nodes.len() {
            if self.crashes > 0 && self.nodes[node].is_some() {
                let mut crashed = self.clone();
                crashed.nodes[node] = None;
                crashed.flights.retain(|(_, to, _)| usize::from(*to) != node);
                crashed.crashes -= 1;
                next.push(crashed);
            }
            let mut expired = self.clone();
            if self.deadlines > 0 && expired.expire(node) {
                expired.deadlines -= 1;
                next.push(expired);
            }
        }
        next
    }

    /// Holds the promises against a step from `self` to `next`.
    fn check(&self, next: &mut Self) {
        for (before, after) in self.nodes.iter().zip(&next.nodes) {
            let (Some(before), Some(after)) = (before, after) else { continue };
            assert!(after.term() >= before.term(), "node {} forgot a term", after.me());
            if after.role() == Role::Manager {
                let (me, term) = (after.me(), after.term());
                assert_eq!(term.claimant, me, "it reigns in another's name");
                let owner = *next.reigns.entry(term).or_insert(me);
                assert_eq!(owner, me, "two reigns of term {term}");
                let claims = before.role() != Role::Manager || before.term() != term;
                assert!(!claims || term > before.term(), "no claim above what was known");
            }
        }
    }
}

/// States seen and steps taken.
fn explore(count: u16, deadlines: u8, states_max: usize) -> (usize, usize) {
    let first = World::settled(count, deadlines);
    let mark = |world: &World| {
        let mut hasher = DefaultHasher::new();
        world.hash(&mut hasher);
        hasher.finish()
    };
    let mut seen = HashSet::from([mark(&first)]);
    let (mut stack, mut steps) = (Vec::from([first]), 0);
    while let Some(world) = stack.pop() {
        for mut next in world.next() {
            steps += 1;
            world.check(&mut next);
            if seen.insert(mark(&next)) {
                stack.push(next);
            }
        }
        assert!(seen.len() <= states_max, "more than {states_max} states");
    }
    (seen.len(), steps)
}

#[test]
fn x7_no_interleaving_breaks_a_term() {
    // One more deadline multiplies the states by twenty or so; `WEFT_DIRNET_DEADLINES` adds some.
    let more = std::env::var("WEFT_DIRNET_DEADLINES").map_or(0, |text| text.parse().unwrap());
    for (count, deadlines) in [(2, 5), (3, 2), (4, 1)] {
        let deadlines = deadlines + more;
        let (states, steps) = explore(count, deadlines, 10_000_000);
        println!("{count} nodes, {deadlines} deadlines: {states} states, {steps} steps");
        assert!(states > 20);
    }
}

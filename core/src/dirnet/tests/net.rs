//! A small deterministic network of components and I'm-Alive Tasks: messages in virtual time.
//!
//! Every delivery and every deadline happens at its time, in the order of (time, posting). A test
//! states what is lost, late or dead; nothing else goes wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

use crate::dirnet::*;
use crate::ids::{Incarnation, Peer, Rank};
use crate::time::{Duration, Instant};

pub(super) const MS: u64 = 1_000_000;
/// The delay of a message.
const DELAY: u64 = MS;
/// The time that a node takes to reboot.
const REBOOT: u64 = 500 * MS;
const KNOCK: u64 = 250 * MS;
/// A limit on the steps of a run, which no test reaches.
const STEPS_MAX: u32 = 200_000;

pub(super) type Part4 = Component<8, 2>;

#[derive(Clone, Copy, Debug)]
enum Flight {
    Frame {
        from: u16,
        to: u16,
        seat: Seat,
        frame: Frame,
    },
    Beat {
        from: u16,
        to: u16,
    },
    Fenced {
        at: u16,
        node: Rank,
        boot: Incarnation,
    },
    Spawned {
        at: u16,
        generation: u32,
    },
    Boot {
        node: u16,
    },
    Refused {
        at: u16,
        incarnation: u32,
        by: u16,
        boot: Incarnation,
        term: Term,
    },
    /// Every transport tries to reach all others, as at bootstrap.
    Knock,
}

pub(super) struct Node {
    pub(super) component: Option<Part4>,
    pub(super) task: Option<ImAliveTask>,
    boot: u32,
    pub(super) kept: Option<Term>,
    /// The last two snapshots, newest first.
    pub(super) saved: [Vec<u8>; 2],
    digest: u32,
    progress: Progress,
    /// Until when the component does not run, and until when its task does not.
    component_stalls: u64,
    task_stalls: u64,
    /// The component answers, but its timers are dead (D-56).
    pub(super) has_dead_timers: bool,
    pub(super) cannot_spawn: bool,
    /// The last boot that other nodes have removed, as the supervisor remembers it.
    removed: Incarnation,
    /// The boot up to which it has fenced each node.
    pub(super) fenced: BTreeMap<u16, u32>,
    cells: BTreeMap<u16, Beat>,
}

pub(super) struct Net {
    pub(super) now: u64,
    pub(super) nodes: Vec<Node>,
    pub(super) parts: Vec<Part>,
    pub(super) min_alive: u16,
    flights: BTreeMap<(u64, u64), Flight>,
    posted: u64,
    /// Directed links (from, to) whose frames and heartbeats are lost.
    pub(super) cuts: BTreeSet<(u16, u16)>,
    /// Messages of these names are lost.
    pub(super) lost: Vec<&'static str>,
    pub(super) log: Vec<(u64, u16, Output)>,
    pub(super) sent: BTreeMap<&'static str, usize>,
    pub(super) resets_work: bool,
    /// The time that a process takes to start.
    pub(super) spawn: u64,
}

pub(super) fn timing() -> Timing {
    Timing { delay: Duration(2 * MS), ..Timing::LAN }
}

impl Net {
    /// Nodes that have never run; the first is the manager.
    pub(super) fn new(count: u16) -> Self {
        let mut parts = Vec::from([Part::Backup; 8]);
        parts[0] = Part::Manager;
        parts.truncate(usize::from(count));
        let mut net = Self {
            now: 0,
            nodes: (0..count).map(|_| Node::new()).collect(),
            parts,
            min_alive: 1,
            flights: BTreeMap::new(),
            posted: 0,
            cuts: BTreeSet::new(),
            lost: Vec::new(),
            log: Vec::new(),
            sent: BTreeMap::new(),
            resets_work: true,
            spawn: 50 * MS,
        };
        net.post_at(KNOCK, Flight::Knock);
        net
    }

    /// A cluster that has run for a second: all nodes are up and synchronised.
    pub(super) fn settled(count: u16) -> Self {
        Self::settled_with(count, 1)
    }

    /// As [`Self::settled`], where decisions need so many members.
    pub(super) fn settled_with(count: u16, min_alive: u16) -> Self {
        let mut net = Self::new(count);
        net.min_alive = min_alive;
        net.boot_all();
        net.run(1_000);
        net.log.clear();
        net.sent.clear();
        net
    }

    pub(super) fn boot_all(&mut self) {
        for node in 0..self.nodes.len() {
            self.boot(u16::try_from(node).unwrap());
        }
    }

    pub(super) fn boot(&mut self, node: u16) {
        let others = self.config(node).others();
        let profile = *self.config(node).profile();
        let it = &mut self.nodes[usize::from(node)];
        it.boot += 1;
        let (me, boot) = (Rank(node), Incarnation(it.boot));
        it.task = Some(ImAliveTask::new(Post { me, boot, others, profile }));
        it.fenced.clear();
        it.has_dead_timers = false;
        self.start_component(node, 0);
    }

    fn start_component(&mut self, node: u16, generation: u32) {
        let config = self.config(node);
        let it = &mut self.nodes[usize::from(node)];
        let incarnation = ComponentIncarnation { boot: Incarnation(it.boot), generation };
        it.cells.clear();
        it.has_dead_timers = false;
        // The stalls were those of another process.
        it.component_stalls = 0;
        let snapshots = [&it.saved[0][..], &it.saved[1][..]];
        let kept = Kept { term: it.kept, snapshots, removed: it.removed };
        it.component = Some(Component::new(Instant(self.now), config, incarnation, 2, kept));
        self.drain(node);
        // It is in the database now.
        self.nodes[usize::from(node)].removed = Incarnation(0);
    }

    pub(super) fn config(&self, node: u16) -> Config<8> {
        let profile = Profile::new(timing()).unwrap();
        let limit = |s: u64| RestartLimit { max: 3, within: Duration::from_millis(s * 1_000) };
        let limits = Limits { restarts: limit(10), resets: limit(100) };
        Config::new(Rank(node), &self.parts, profile, self.min_alive, limits).unwrap()
    }

    /// Cuts every link of `node`.
    pub(super) fn cut_off(&mut self, node: u16) {
        let others = (0..self.nodes.len()).map(|other| u16::try_from(other).unwrap());
        let others = others.filter(|other| *other != node);
        self.cuts.extend(others.flat_map(|other| [(node, other), (other, node)]));
    }

    pub(super) fn crash(&mut self, node: u16) {
        self.nodes[usize::from(node)].component = None;
        self.nodes[usize::from(node)].task = None;
    }

    /// The node is gone, and every transport reports it.
    pub(super) fn part(&mut self, node: u16) {
        self.crash(node);
        for other in 0..u16::try_from(self.nodes.len()).unwrap() {
            if self.nodes[usize::from(other)].component.is_some() {
                self.input(other, |it, now| it.handle_parted(now, Rank(node)));
            }
        }
    }

    /// The component hangs forever; no node sees its process end.
    pub(super) fn hang(&mut self, node: u16) {
        self.nodes[usize::from(node)].component = None;
    }

    /// The saved state of the node's component is lost.
    pub(super) fn forget_saved(&mut self, node: u16) {
        self.nodes[usize::from(node)].saved = Default::default();
    }

    pub(super) fn stall(&mut self, node: u16, ms: u64) {
        self.stall_component(node, ms);
        self.nodes[usize::from(node)].task_stalls = self.now + ms * MS;
    }

    pub(super) fn stall_component(&mut self, node: u16, ms: u64) {
        self.nodes[usize::from(node)].component_stalls = self.now + ms * MS;
    }

    pub(super) fn component(&self, node: u16) -> &Part4 {
        self.nodes[usize::from(node)].component.as_ref().expect("it runs")
    }

    pub(super) fn input<T>(&mut self, node: u16, act: impl FnOnce(&mut Part4, Instant) -> T) -> T {
        let now = Instant(self.now);
        let out = act(self.nodes[usize::from(node)].component.as_mut().expect("it runs"), now);
        self.drain(node);
        out
    }

    /// Delivers a frame as if its sender had sent it.
    pub(super) fn deliver(&mut self, to: u16, frame: Frame) -> Result<(), Reject> {
        self.input(to, |component, now| component.handle_message(now, frame.sender, &frame))
    }

    /// A frame as `from` would send it.
    pub(super) fn frame(&self, from: u16, message: Message) -> Frame {
        let component = self.component(from);
        Frame {
            sender: Rank(from),
            seat: Seat::Component,
            term: component.term(),
            incarnation: component.incarnation(),
            sequence: 1_000_000 + u32::try_from(self.now / MS).unwrap(),
            view: ViewTag::default(),
            message,
        }
    }

    /// Runs for that many milliseconds.
    pub(super) fn run(&mut self, ms: u64) {
        let end = self.now + ms * MS;
        self.run_until(end, |_| false);
        self.now = end;
    }

    /// Runs until `done`, for at most `ms` milliseconds; returns how many it took.
    pub(super) fn run_while(&mut self, ms: u64, done: impl Fn(&Self) -> bool) -> u64 {
        let begin = self.now;
        self.run_until(begin + ms * MS, done);
        (self.now - begin).div_ceil(MS)
    }

    fn run_until(&mut self, end: u64, done: impl Fn(&Self) -> bool) {
        let mut steps = 0;
        while !done(self) {
            steps += 1;
            assert!(steps < STEPS_MAX, "it goes on and on at {} ms", self.now / MS);
            let flight = self.flights.first_key_value().map(|((at, _), _)| *at);
            let deadline = self.next_deadline();
            let next = flight.into_iter().chain(deadline.map(|(at, ..)| at)).min();
            let Some(next) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(next);
            match deadline {
                Some((at, node, seat)) if flight.is_none_or(|flight| at < flight) => {
                    self.expire(node, seat);
                }
                _ => {
                    let (_, flight) = self.flights.pop_first().unwrap();
                    self.land(flight);
                }
            }
        }
    }

    fn next_deadline(&self) -> Option<(u64, u16, Seat)> {
        let nodes = self.nodes.iter().zip(0..);
        nodes
            .flat_map(|(it, node)| {
                let component = it.component.as_ref().filter(|_| !it.has_dead_timers);
                let component = component.and_then(Component::poll_timeout);
                let task = it.task.as_ref().and_then(ImAliveTask::poll_timeout);
                [
                    component.map(|at| (at.0.max(it.component_stalls), node, Seat::Component)),
                    task.map(|at| (at.0.max(it.task_stalls), node, Seat::ImAliveTask)),
                ]
            })
            .flatten()
            .map(|(at, node, seat)| (at.max(self.now), node, seat))
            .min_by_key(|(at, ..)| *at)
    }

    fn expire(&mut self, node: u16, seat: Seat) {
        let now = Instant(self.now);
        let it = &mut self.nodes[usize::from(node)];
        match seat {
            Seat::Component => {
                let component = it.component.as_mut().unwrap();
                if component.poll_timeout() == Some(now) && now.0 > 0 {
                    let mut early = component.clone();
                    early.handle_timeout(Instant(now.0 - 1));
                    assert_eq!(early.poll_output(), None, "nothing is due before that");
                }
                component.handle_timeout(now);
            }
            Seat::ImAliveTask => it.task.as_mut().unwrap().handle_timeout(now, it.progress),
        }
        self.drain(node);
    }

    fn land(&mut self, flight: Flight) {
        let now = Instant(self.now);
        match flight {
            Flight::Frame { from, to, seat, frame } => {
                let it = &mut self.nodes[usize::from(to)];
                let stalls =
                    if seat == Seat::Component { it.component_stalls } else { it.task_stalls };
                if stalls > self.now {
                    return self.post_at(stalls, Flight::Frame { from, to, seat, frame });
                }
                if it.fenced.get(&from).is_some_and(|boot| frame.incarnation.boot.0 <= *boot) {
                    return;
                }
                match (seat, &mut it.component, &mut it.task) {
                    (Seat::Component, Some(component), _) => {
                        let _ = component.handle_message(now, Rank(from), &frame);
                    }
                    (Seat::ImAliveTask, _, Some(task)) => {
                        let _ = task.handle_message(now, Rank(from), &frame, it.progress);
                    }
                    _ => {}
                }
                self.drain(to);
            }
            Flight::Beat { from, to } => self.land_beat(from, to),
            Flight::Fenced { at, node, boot } => {
                let it = &mut self.nodes[usize::from(at)];
                it.fenced.insert(node.0, boot.0);
                if it.component.is_some() {
                    self.input(at, |component, now| component.handle_fenced(now, node, boot));
                }
            }
            Flight::Spawned { at, generation } => self.land_spawned(at, generation),
            Flight::Boot { node } => self.boot(node),
            Flight::Knock => self.knock(),
            Flight::Refused { at, incarnation, by, boot, term } => {
                self.refuse(at, incarnation, (by, boot), term);
            }
        }
    }

    fn land_beat(&mut self, from: u16, to: u16) {
        let it = &mut self.nodes[usize::from(to)];
        if it.component_stalls > self.now {
            let stalls = it.component_stalls;
            return self.post_at(stalls, Flight::Beat { from, to });
        }
        let Some(beat) = it.cells.get(&from).copied() else { return };
        if it.fenced.get(&from).is_some_and(|boot| beat.incarnation.boot.0 <= *boot) {
            return;
        }
        if it.component.is_some() {
            let _ = self.input(to, |c, now| c.handle_heartbeat(now, Rank(from), &beat));
        }
    }

    fn land_spawned(&mut self, at: u16, generation: u32) {
        let now = Instant(self.now);
        let it = &mut self.nodes[usize::from(at)];
        let Some(task) = it.task.as_mut() else { return };
        let spawned = if it.cannot_spawn { Spawned::Failed } else { Spawned::Runs };
        task.handle_spawned(now, spawned);
        self.drain(at);
        if spawned == Spawned::Runs {
            self.start_component(at, generation);
        }
    }

    /// Boot `incarnation` of `at` learns that it is fenced, in `term`. It ends, unless it has
    /// fenced that boot of `by` with precedence.
    pub(super) fn refuse(
        &mut self,
        at: u16,
        incarnation: u32,
        (by, boot): (u16, Incarnation),
        term: Term,
    ) {
        let it = &mut self.nodes[usize::from(at)];
        let Some(component) = it.component.as_ref().filter(|_| it.boot == incarnation) else {
            return;
        };
        let fenced = |up_to, term| Fenced { up_to: Incarnation(up_to), decided: Some(term) };
        let ours = it.fenced.get(&by).filter(|up_to| boot.0 <= **up_to);
        let ours = ours.map(|up_to| fenced(*up_to, component.term()));
        if !ours.is_some_and(|ours| ours.outranks(Peer(at), fenced(incarnation, term), Peer(by))) {
            it.removed = Incarnation(incarnation);
            self.log.push((self.now, at, Output::Tell(News::Excluded)));
            self.perform(at, Output::Tell(News::Excluded));
        }
    }

    /// A fenced incarnation learns that it is fenced, and from which term.
    fn knock(&mut self) {
        for (node, at) in self.nodes.iter().zip(0..) {
            for (other, by) in self.nodes.iter().zip(0..) {
                let is_fenced = other.fenced.get(&at).is_some_and(|boot| node.boot <= *boot);
                let is_cut = self.cuts.contains(&(at, by)) || self.cuts.contains(&(by, at));
                if let Some(component) = &other.component
                    && is_fenced
                    && !is_cut
                {
                    let boot = Incarnation(other.boot);
                    let (incarnation, term) = (node.boot, component.term());
                    let refused = Flight::Refused { at, incarnation, by, boot, term };
                    self.flights
                        .insert((self.now + DELAY, u64::from(at) << 32 | u64::from(by)), refused);
                }
            }
        }
        self.post_at(self.now + KNOCK, Flight::Knock);
    }

    fn post_at(&mut self, at: u64, flight: Flight) {
        self.posted += 1;
        self.flights.insert((at, self.posted), flight);
    }

    fn drain(&mut self, node: u16) {
        let it = &mut self.nodes[usize::from(node)];
        let mut outputs = Vec::new();
        if let Some(component) = &mut it.component {
            outputs.extend(core::iter::from_fn(|| component.poll_output()));
            it.progress = component.progress();
            let db = component.database();
            if db.digest() != it.digest {
                it.digest = db.digest();
                it.saved.swap(0, 1);
                let count = u16::try_from(self.parts.len()).unwrap();
                it.saved[0] = db.save(count, &mut [0; SNAPSHOT_LEN_MAX]).to_vec();
            }
        }
        if let Some(task) = &mut it.task {
            outputs.extend(core::iter::from_fn(|| task.poll_output()));
        }
        for output in outputs {
            self.log.push((self.now, node, output));
            self.perform(node, output);
        }
    }

    fn perform(&mut self, node: u16, output: Output) {
        let soon = self.now + DELAY;
        match output {
            Output::Send { to, seat, frame } => {
                for to in to.iter() {
                    *self.sent.entry(frame.message.name()).or_default() += 1;
                    let is_cut = self.cuts.contains(&(node, to.0));
                    if !is_cut && !self.lost.contains(&frame.message.name()) {
                        self.post_at(soon, Flight::Frame { from: node, to: to.0, seat, frame });
                    }
                }
            }
            Output::Beat { to, beat } => {
                *self.sent.entry("BEAT").or_default() += 1;
                if !self.cuts.contains(&(node, to.0)) && !self.lost.contains(&"BEAT") {
                    self.nodes[usize::from(to.0)].cells.insert(node, beat);
                    self.post_at(soon, Flight::Beat { from: node, to: to.0 });
                }
            }
            Output::Keep(term) => self.nodes[usize::from(node)].kept = Some(term),
            Output::Fence { node: fenced, boot } => {
                self.post_at(soon, Flight::Fenced { at: node, node: fenced, boot });
            }
            Output::Reset { node, boot } => {
                if self.resets_work && self.nodes[usize::from(node.0)].boot == boot.0 {
                    self.crash(node.0);
                    self.post_at(self.now + REBOOT, Flight::Boot { node: node.0 });
                }
            }
            Output::Spawn { generation } => {
                self.nodes[usize::from(node)].component = None;
                self.post_at(self.now + self.spawn, Flight::Spawned { at: node, generation });
            }
            Output::Tell(News::Excluded) => {
                self.crash(node);
                self.post_at(self.now + REBOOT, Flight::Boot { node });
            }
            Output::Task { .. } | Output::Vote { .. } | Output::Verdict(_) | Output::Tell(_) => {}
        }
    }

    pub(super) fn verdicts(&self) -> Vec<Explanation> {
        let verdict = |output: &Output| match output {
            Output::Verdict(explanation) => Some(*explanation),
            _ => None,
        };
        self.log.iter().filter_map(|(_, _, output)| verdict(output)).collect()
    }

    /// The rules of the verdicts of one kind on one node.
    pub(super) fn rules(&self, node: u16, verdict: Verdict) -> Vec<Rule> {
        let of = |e: &Explanation| e.node == Rank(node) && e.verdict == verdict;
        self.verdicts().into_iter().filter(of).map(|e| e.rule).collect()
    }

    pub(super) fn reported(&self, news: News) -> usize {
        self.log.iter().filter(|(_, _, output)| *output == Output::Tell(news)).count()
    }

    pub(super) fn resets(&self) -> Vec<(u64, Rank)> {
        let reset = |output: &Output| match output {
            Output::Reset { node, .. } => Some(*node),
            _ => None,
        };
        self.log.iter().filter_map(|(at, _, output)| Some((*at, reset(output)?))).collect()
    }

    /// The manager that every running component agrees on.
    pub(super) fn manager(&self) -> Option<u16> {
        let running = || self.nodes.iter().filter_map(|node| node.component.as_ref());
        let mut terms: Vec<_> = running().map(Component::term).collect();
        terms.dedup();
        let managers: Vec<_> = running().filter(|c| c.role() == Role::Manager).collect();
        match (&terms[..], &managers[..]) {
            ([term], [manager]) if term.claimant == manager.me() => Some(manager.me().0),
            _ => None,
        }
    }

    /// Whether all nodes run, agree, and hold the same database.
    pub(super) fn is_whole(&self) -> bool {
        let components: Vec<_> = self.nodes.iter().flat_map(|node| &node.component).collect();
        let digests: BTreeSet<_> = components.iter().map(|c| c.database().digest()).collect();
        let all = (0..self.nodes.len()).map(|node| Rank(u16::try_from(node).unwrap()));
        let is_up = |node| components.iter().all(|c| c.database().standing(node).is_up());
        components.len() == self.nodes.len()
            && self.manager().is_some()
            && digests.len() == 1
            && all.into_iter().all(is_up)
    }
}

impl Node {
    fn new() -> Self {
        Self {
            component: None,
            task: None,
            boot: 0,
            kept: None,
            saved: [Vec::new(), Vec::new()],
            digest: 0,
            progress: Progress::default(),
            component_stalls: 0,
            task_stalls: 0,
            has_dead_timers: false,
            cannot_spawn: false,
            removed: Incarnation(0),
            fenced: BTreeMap::new(),
            cells: BTreeMap::new(),
        }
    }
}

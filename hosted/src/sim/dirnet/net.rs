//! The network and the processes of a run, in virtual time.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::dirnet::{
    Beat, Component, Config, Frame, ImAliveTask, Level, Life, News, Output, Part, Post, Profile,
    Progress, RestartLimit, Role, Seat, Spawned, Term, Timing,
};
use weft_core::ids::{Incarnation, Rank};
use weft_core::time::{Duration, Instant};

use super::ledger::Ledger;
use super::strike::{self, MS, STORM_MS, Strike, Weather};
use crate::sim::draws::{Draws, Purpose};
use crate::sim::fault::Keep;
use crate::sim::run::Plan;
use crate::sim::trace::Trace;

/// Everybody is a member again within so long after the last fault.
const CALM_MS_MAX: u64 = 90_000;
/// How often an operator looks, and a transport knocks.
const LOOK_MS: u64 = 500;
const EVENTS_MAX: u64 = 3_000_000;

/// A component as it is run here.
pub(super) type Machine = Component<8, 2>;

#[derive(Clone, Copy, Debug)]
enum Flight {
    Frame { from: u16, to: u16, seat: Seat, frame: Frame },
    Beat { from: u16, to: u16 },
    Fenced { at: u16, life: u32, node: Rank, boot: Incarnation },
    Spawned { at: u16, life: u32, generation: u32 },
    Boot { node: u16, life: u32 },
    Ended { at: u16, life: u32 },
    Refused { at: u16, by: u16, life: u32, term: Term },
    Strike { number: u32, strike: Strike },
    Heal { cut: (u16, u16) },
    Look,
}

struct Node {
    component: Option<Machine>,
    task: Option<ImAliveTask>,
    boot: u32,
    born: u64,
    kept: Option<Term>,
    progress: Progress,
    component_stalls: u64,
    task_stalls: u64,
    refuses_spawns: u64,
    has_dead_timers: bool,
    /// Up to which life of each node it has fenced.
    fenced: BTreeMap<u16, u32>,
    cells: BTreeMap<u16, Beat>,
}

/// A run under way.
pub(super) struct Net {
    pub(super) now: u64,
    pub(super) events: u64,
    pub(super) happened: Vec<u32>,
    pub(super) trace: Trace,
    pub(super) ledger: Ledger,
    nodes: Vec<Node>,
    parts: Vec<Part>,
    flights: BTreeMap<(u64, u64), Flight>,
    posted: u64,
    cuts: BTreeSet<(u16, u16)>,
    draws: Draws,
    /// Out of a thousand messages.
    lost: u64,
    repeated: u64,
    delay_max: u64,
    resets_work: bool,
}

impl Net {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut draws = Draws::new(plan.seed, Purpose::Setup);
        let count = draws.between(2, 7) as u16;
        let weather = if draws.chance(1, 4) { Weather::Stalls } else { Weather::Storm };
        let is_rough = weather == Weather::Storm && plan.keep == Keep::All;
        let mut parts = vec![Part::Backup; usize::from(count)];
        let manager = draws.index(parts.len());
        parts[manager] = Part::Manager;
        let agent = draws.index(parts.len());
        if draws.chance(1, 4) && count > 2 && agent != manager {
            parts[agent] = Part::Agent;
        }
        let delay_max = draws.magnitude(MS / 10, 20 * MS);
        let mut net = Self {
            now: 0,
            events: 0,
            happened: Vec::new(),
            trace: plan.trace.clone(),
            ledger: Ledger::new(parts.len(), weather),
            nodes: (0..count).map(|_| Node::new()).collect(),
            parts,
            flights: BTreeMap::new(),
            posted: 0,
            cuts: BTreeSet::new(),
            lost: if is_rough { draws.pick(&[0, 0, 10, 100]) } else { 0 },
            repeated: if is_rough { draws.pick(&[0, 10, 100]) } else { 0 },
            delay_max,
            resets_work: draws.chance(3, 4),
            draws: Draws::new(plan.seed, Purpose::Work),
        };
        let spread = draws.pick(&[0, 0, 50, 800]);
        for node in 0..count {
            let at = draws.below(spread + 1) * MS;
            net.post_at(at, Flight::Boot { node, life: 0 });
        }
        for ((at, strike), number) in strike::draw(&mut draws, count, weather).iter().zip(0..) {
            if is_kept(&plan.keep, number) {
                net.post_at(*at, Flight::Strike { number, strike: *strike });
            }
        }
        net.post_at(LOOK_MS * MS, Flight::Look);
        net
    }

    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        self.trace.note(self.now, line);
    }

    /// Runs until everything is well again, or something is broken.
    pub(super) fn go(&mut self) {
        while self.ledger.violation.is_none() {
            let is_calm = self.now > STORM_MS * MS;
            if is_calm && self.events.is_multiple_of(64) {
                let missing = self.missing();
                if missing.is_none() {
                    return;
                }
                let is_late = self.now > (STORM_MS + CALM_MS_MAX) * MS;
                if let Some(what) = missing.filter(|_| is_late || self.events > EVENTS_MAX) {
                    return self.ledger.broken("progress", what);
                }
            }
            self.step();
        }
    }

    fn step(&mut self) {
        self.events += 1;
        let flight = self.flights.first_key_value().map_or(u64::MAX, |((at, _), _)| *at);
        match self.next_deadline() {
            Some((at, node, seat)) if at < flight => {
                self.now = self.now.max(at);
                self.expire(node, seat);
            }
            _ => {
                if let Some(((at, _), flight)) = self.flights.pop_first() {
                    self.now = self.now.max(at);
                    self.land(flight);
                }
            }
        }
    }

    fn next_deadline(&self) -> Option<(u64, u16, Seat)> {
        let both = self.nodes.iter().zip(0..).flat_map(|(it, node)| {
            let component = it.component.as_ref().filter(|_| !it.has_dead_timers);
            let component = component.and_then(Component::poll_timeout);
            let task = it.task.as_ref().and_then(ImAliveTask::poll_timeout);
            [
                component.map(|at| (at.0.max(it.component_stalls), node, Seat::Component)),
                task.map(|at| (at.0.max(it.task_stalls), node, Seat::ImAliveTask)),
            ]
        });
        both.flatten()
            .map(|(at, node, seat)| (at.max(self.now), node, seat))
            .min_by_key(|due| due.0)
    }

    fn node(&mut self, node: u16) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    fn config(&self, node: u16) -> Config<8> {
        let profile = Profile::new(Timing::LAN).expect("the profile keeps its rules");
        let restarts = RestartLimit { max: 5, within: Duration(20_000 * MS) };
        Config::new(Rank(node), &self.parts, profile, 1, restarts).expect("one manager")
    }

    fn boot(&mut self, node: u16) {
        let config = self.config(node);
        let now = self.now;
        let it = self.node(node);
        it.boot += 1;
        let (me, boot) = (Rank(node), Incarnation(it.boot));
        let (others, profile) = (config.others(), *config.profile());
        it.task = Some(ImAliveTask::new(Post { me, boot, others, profile }));
        it.fenced.clear();
        it.born = now;
        (it.component_stalls, it.task_stalls, it.refuses_spawns) = (0, 0, 0);
        self.start_component(node, 0);
    }

    fn start_component(&mut self, node: u16, generation: u32) {
        let (config, now) = (self.config(node), Instant(self.now));
        let it = self.node(node);
        let life = Life { boot: Incarnation(it.boot), generation };
        it.cells.clear();
        it.component_stalls = 0;
        it.has_dead_timers = false;
        it.component = Some(Component::new(now, config, life, 2, it.kept));
        self.note(|| format!("{node} begins life {life}"));
        self.drain(node);
    }

    fn crash(&mut self, node: u16) {
        let it = self.node(node);
        (it.component, it.task) = (None, None);
    }

    fn expire(&mut self, node: u16, seat: Seat) {
        let now = Instant(self.now);
        let it = self.node(node);
        match (seat, &mut it.component, &mut it.task) {
            (Seat::Component, Some(component), _) => component.handle_timeout(now),
            (Seat::ImAliveTask, _, Some(task)) => task.handle_timeout(now, it.progress),
            _ => {}
        }
        self.drain(node);
    }

    fn land(&mut self, flight: Flight) {
        let now = Instant(self.now);
        match flight {
            Flight::Frame { from, to, seat, frame } => self.land_frame(from, to, seat, frame),
            Flight::Beat { from, to } => self.land_beat(from, to),
            Flight::Fenced { at, life, node, boot } if self.node(at).boot == life => {
                let known = self.node(at).fenced.entry(node.0).or_default();
                *known = boot.0.max(*known);
                if let Some(component) = &mut self.node(at).component {
                    component.handle_fenced(now, node, boot);
                }
                self.drain(at);
            }
            Flight::Spawned { at, life, generation } if self.node(at).boot == life => {
                self.land_spawned(at, generation);
            }
            Flight::Boot { node, life } if self.node(node).boot == life => self.boot(node),
            Flight::Ended { at, life } if self.node(at).boot == life => {
                if let Some(task) = &mut self.node(at).task {
                    task.handle_ended(now);
                }
                self.drain(at);
            }
            Flight::Refused { at, by, life, term } if self.node(at).boot == life => {
                if let Some(component) = &mut self.node(at).component {
                    component.handle_refused(now, Rank(by), term);
                }
                self.drain(at);
            }
            Flight::Fenced { .. }
            | Flight::Spawned { .. }
            | Flight::Boot { .. }
            | Flight::Ended { .. }
            | Flight::Refused { .. } => {}
            Flight::Strike { number, strike } => self.strike(number, strike),
            Flight::Heal { cut } => {
                self.cuts.remove(&cut);
            }
            Flight::Look => self.look_after(),
        }
    }

    fn land_frame(&mut self, from: u16, to: u16, seat: Seat, frame: Frame) {
        let now = Instant(self.now);
        let it = self.node(to);
        let stalls = if seat == Seat::Component { it.component_stalls } else { it.task_stalls };
        if stalls > now.0 {
            return self.post_at(stalls, Flight::Frame { from, to, seat, frame });
        }
        if it.fenced.get(&from).is_some_and(|boot| frame.life.boot.0 <= *boot) {
            return;
        }
        let handled = match (seat, &mut it.component, &mut it.task) {
            (Seat::Component, Some(component), _) => {
                component.handle_message(now, Rank(from), &frame)
            }
            (Seat::ImAliveTask, _, Some(task)) => {
                task.handle_message(now, Rank(from), &frame, it.progress)
            }
            _ => return,
        };
        let name = frame.message.name();
        self.note(|| format!("{to} hears {name} of {from}: {handled:?}"));
        self.drain(to);
    }

    fn land_beat(&mut self, from: u16, to: u16) {
        let now = Instant(self.now);
        let it = self.node(to);
        let (stalls, beat) = (it.component_stalls, it.cells.get(&from).copied());
        if stalls > now.0 {
            return self.post_at(stalls, Flight::Beat { from, to });
        }
        let Some(beat) = beat else { return };
        if it.fenced.get(&from).is_some_and(|boot| beat.life.boot.0 <= *boot) {
            return;
        }
        if let Some(component) = &mut it.component {
            // A refusal is counted by the component; the run goes on either way.
            let _ = component.handle_heartbeat(now, Rank(from), &beat);
        }
        self.drain(to);
    }

    fn land_spawned(&mut self, at: u16, generation: u32) {
        let now = Instant(self.now);
        let it = self.node(at);
        let refuses = it.refuses_spawns > now.0;
        let Some(task) = &mut it.task else { return };
        let spawned = if refuses { Spawned::Failed } else { Spawned::Runs };
        task.handle_spawned(now, spawned);
        self.drain(at);
        if spawned == Spawned::Runs {
            self.start_component(at, generation);
        }
    }

    fn strike(&mut self, number: u32, strike: Strike) {
        self.happened.push(number);
        self.note(|| format!("fault {number}: {strike:?}"));
        let now = self.now;
        match strike {
            Strike::Crash(node) => self.crash(node),
            Strike::Restart(node) => {
                self.crash(node);
                self.boot(node);
            }
            Strike::Hang(node) => self.node(node).component = None,
            Strike::End(node) => {
                self.node(node).component = None;
                let life = self.node(node).boot;
                self.post_at(now + MS, Flight::Ended { at: node, life });
            }
            Strike::StopTimers(node) => self.node(node).has_dead_timers = true,
            Strike::Stall(node, ms) => {
                self.node(node).component_stalls = now + ms * MS;
                self.node(node).task_stalls = now + ms * MS;
            }
            Strike::StallComponent(node, ms) => self.node(node).component_stalls = now + ms * MS,
            Strike::Cut(from, to, ms) if from != to => self.cut((from, to), ms),
            Strike::Cut(..) => {}
            Strike::RefuseSpawns(node, ms) => self.node(node).refuses_spawns = now + ms * MS,
            Strike::Partition(ms) => {
                let count = self.nodes.len() as u16;
                for (one, other) in
                    (0..count / 2).flat_map(|a| (count / 2..count).map(move |b| (a, b)))
                {
                    self.cut((one, other), ms);
                    self.cut((other, one), ms);
                }
            }
        }
    }

    fn cut(&mut self, cut: (u16, u16), ms: u64) {
        self.cuts.insert(cut);
        self.post_at(self.now + ms * MS, Flight::Heal { cut });
    }

    fn post_at(&mut self, at: u64, flight: Flight) {
        self.posted += 1;
        self.flights.insert((at, self.posted), flight);
    }

    /// Sends over a network that loses, repeats and reorders.
    fn post(&mut self, from: u16, to: u16, flight: Flight) {
        // Within a node nothing is lost.
        let is_calm = self.now > STORM_MS * MS || from == to;
        let is_lost = !is_calm && self.draws.chance(self.lost, 1000);
        if self.cuts.contains(&(from, to)) || is_lost {
            return;
        }
        let copies = 1 + u32::from(!is_calm && self.draws.chance(self.repeated, 1000));
        for _ in 0..copies {
            let at = self.now + 1 + self.draws.below(self.delay_max);
            self.post_at(at, flight);
        }
    }

    fn drain(&mut self, node: u16) {
        let it = &mut self.nodes[usize::from(node)];
        let mut outputs = Vec::new();
        if let Some(component) = &mut it.component {
            outputs.extend(std::iter::from_fn(|| component.poll_output()));
            it.progress = component.progress();
            self.ledger.look(component);
        }
        if let Some(task) = &mut it.task {
            outputs.extend(std::iter::from_fn(|| task.poll_output()));
        }
        for output in outputs {
            self.perform(node, output);
        }
    }

    fn perform(&mut self, node: u16, output: Output) {
        let (now, life) = (self.now, self.node(node).boot);
        match output {
            Output::Send { to, seat, frame } => {
                for to in to.iter() {
                    self.post(node, to.0, Flight::Frame { from: node, to: to.0, seat, frame });
                }
            }
            Output::Beat { to, beat } => {
                for to in to.iter() {
                    self.node(to.0).cells.insert(node, beat);
                    self.post(node, to.0, Flight::Beat { from: node, to: to.0 });
                }
            }
            Output::Keep(term) => self.node(node).kept = Some(term),
            Output::Fence { node: other, boot } => {
                let after = self.draws.between(1, 5 * MS);
                self.post_at(now + after, Flight::Fenced { at: node, life, node: other, boot });
            }
            Output::Reset { node: other, boot } => self.reset(node, other, boot),
            Output::Spawn { generation } => {
                self.node(node).component = None;
                self.post_at(now + 30 * MS, Flight::Spawned { at: node, life, generation });
            }
            Output::Verdict(why) => {
                let name = why.rule.name();
                self.note(|| format!("{node}: {:?} {} {name}", why.verdict, why.node));
                self.ledger.handle_verdict(now, &why);
            }
            Output::Tell(News::Excluded) => {
                self.crash(node);
                self.post_at(now + 300 * MS, Flight::Boot { node, life });
            }
            Output::Tell(news) => self.note(|| format!("{node} tells {news:?}")),
            Output::Task { .. } => {}
        }
    }

    fn reset(&mut self, by: u16, node: Rank, boot: Incarnation) {
        self.note(|| format!("{by} resets {node} in life {boot}"));
        self.check_fences(by, node, boot);
        let life = self.node(node.0).boot;
        if self.resets_work && life == boot.0 {
            self.crash(node.0);
            self.post_at(self.now + 400 * MS, Flight::Boot { node: node.0, life });
        }
    }

    /// Every live member that the manager knows in its current life has fenced that life, unless
    /// it was born after the verdict and never admitted it.
    fn check_fences(&mut self, by: u16, node: Rank, boot: Incarnation) {
        let removed = self.ledger.removed_at(node, boot.0).unwrap_or(u64::MAX);
        let manager = self.nodes[usize::from(by)].component.as_ref();
        let Some(manager) = manager else { return };
        let missing = self.nodes.iter().zip(0..).find(|(it, at)| {
            let standing = manager.database().standing(Rank(*at));
            let is_member = *at != node.0 && standing.is_up() && standing.life.boot.0 == it.boot;
            let has_fenced = it.fenced.get(&node.0).is_some_and(|up_to| boot.0 <= *up_to);
            it.component.is_some() && is_member && it.born < removed && !has_fenced
        });
        if let Some((_, at)) = missing {
            self.ledger.broken("fence", format!("{node} is reset and {at} has not fenced it"));
        }
    }

    /// What transports and operators do every now and then: a life that was fenced learns it, a
    /// node that nobody resets is started, an isolated one is released.
    fn look_after(&mut self) {
        self.post_at(self.now + LOOK_MS * MS, Flight::Look);
        for at in 0..self.nodes.len() as u16 {
            self.knock(at);
        }
        let is_time = self.now > (STORM_MS + 1_000) * MS;
        for node in 0..self.nodes.len() as u16 {
            let it = self.node(node);
            let is_dead = it.task.is_none();
            let life = it.boot;
            let is_old = (it.born + 5_000 * MS) < self.now;
            if is_dead && is_time && is_old && !self.is_booting(node) {
                self.post_at(self.now + MS, Flight::Boot { node, life });
            }
        }
        if is_time {
            self.release_isolated();
        }
    }

    fn is_booting(&self, node: u16) -> bool {
        self.flights
            .values()
            .any(|flight| matches!(flight, Flight::Boot { node: n, .. } if *n == node))
    }

    fn knock(&mut self, at: u16) {
        let (boot, soon) = (self.node(at).boot, self.now + MS);
        for by in 0..self.nodes.len() as u16 {
            let is_cut = self.cuts.contains(&(at, by)) || self.cuts.contains(&(by, at));
            let other = self.node(by);
            let is_fenced = other.fenced.get(&at).is_some_and(|up_to| boot <= *up_to);
            let term = other.component.as_ref().map(Component::term);
            if let Some(term) = term.filter(|_| is_fenced && !is_cut) {
                self.post_at(soon, Flight::Refused { at, by, life: boot, term });
            }
        }
    }

    fn release_isolated(&mut self) {
        let now = Instant(self.now);
        for by in 0..self.nodes.len() as u16 {
            for node in (0..self.nodes.len() as u16).map(Rank) {
                let Some(component) = &mut self.node(by).component else { break };
                let standing = component.database().standing(node);
                if component.role() == Role::Manager && standing.level == Level::Isolated {
                    let _ = component.release(now, node);
                    self.drain(by);
                }
            }
        }
    }

    /// What is not well, if anything.
    fn missing(&self) -> Option<String> {
        let mut components = Vec::new();
        for (it, node) in self.nodes.iter().zip(0..) {
            match &it.component {
                Some(component) => components.push(component),
                None => return Some(format!("node {node} has no component")),
            }
        }
        let managers = components.iter().filter(|c| c.role() == Role::Manager).count();
        if managers != 1 {
            return Some(format!("{managers} managers"));
        }
        let first = components[0];
        for component in &components {
            let me = component.me();
            if component.term() != first.term() {
                return Some(format!("node {me} is in term {}", component.term()));
            }
            if component.database().digest() != first.database().digest() {
                return Some(format!("node {me} has another database"));
            }
            let removed = components.iter().find(|c| {
                let standing = component.database().standing(c.me());
                !standing.is_up() || standing.life != c.life()
            });
            if let Some(removed) = removed {
                return Some(format!("node {} is no member at {me}", removed.me()));
            }
        }
        None
    }
}

impl Node {
    fn new() -> Self {
        Self {
            component: None,
            task: None,
            boot: 0,
            born: 0,
            kept: None,
            progress: Progress::default(),
            component_stalls: 0,
            task_stalls: 0,
            refuses_spawns: 0,
            has_dead_timers: false,
            fenced: BTreeMap::new(),
            cells: BTreeMap::new(),
        }
    }
}

fn is_kept(keep: &Keep, number: u32) -> bool {
    match keep {
        Keep::All => true,
        Keep::Only(numbers) => numbers.contains(&number),
    }
}

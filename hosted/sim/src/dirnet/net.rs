//! The network and the processes of a run, in virtual time.
//!
//! A [`Setting`] states the size, the timing and the faults of a run; `new` draws one, and the
//! strikes that happen in it.

mod admissions;
mod calm;
mod launcher;
mod links;
mod orders;
mod outputs;
mod resets;
mod saved;
mod setting;
mod starts;
mod strikes;
mod supervisors;

use std::collections::{BTreeMap, BTreeSet};

use weft_core::dirnet::{
    Beat, Component, ComponentIncarnation, Config, Frame, ImAliveTask, Launcher, Limits, Output,
    Profile, Progress, RestartLimit, Seat, TASKS_MAX, Term,
};
use weft_core::ids::{Incarnation, Rank};
use weft_core::time::{Duration, Instant};

use super::admission::{Between, Down, Up};
use super::ledger::NetLedger;
use super::strike::{self, NetStrike};
use crate::draws::{Draws, Purpose};
use crate::fault::Keep;
use crate::run::RunPlan;
use crate::trace::Trace;
use launcher::LaunchReport;
use saved::SavedSnapshots;
pub use setting::Setting;
use supervisors::{ComponentProcess, SupervisorProcess};

/// The most ends and clones of a component, and resets of a node, within a while.
pub(super) const ENDS_MAX: u16 = 5;
/// Events at one moment, after which a deadline is taken to come again and again.
const AT_ONCE_MAX: u64 = 20_000;
/// How often an operator checks, and a transport retries.
const LOOK_MS: u64 = 500;

/// The component as it is run here.
pub(super) type Machine = Component<8, TASKS_MAX>;

#[derive(Clone, Copy, Debug)]
enum NetFlight {
    /// `is_lane`: from a component to one that must have connected it.
    Frame {
        from: u16,
        to: u16,
        seat: Seat,
        is_lane: bool,
        frame: Frame,
    },
    Beat {
        from: u16,
        to: u16,
    },
    Fenced {
        at: u16,
        number: u64,
        node: Rank,
        boot: Incarnation,
    },
    Spawn {
        at: u16,
        boot: u32,
        generation: u32,
    },
    Boot {
        node: u16,
    },
    Ready {
        at: u16,
        number: u64,
    },
    Report {
        from: u16,
        run: u64,
        report: LaunchReport,
    },
    LauncherWake,
    Between {
        from: u16,
        to: u16,
        run: u64,
        session: u64,
        message: Between,
    },
    Up {
        at: u16,
        number: u64,
        message: Up,
    },
    Down {
        at: u16,
        number: u64,
        sent: u64,
        message: Down,
    },
    Wake {
        at: u16,
        run: u64,
    },
    Parted {
        at: u16,
        incarnation: u32,
        node: u16,
        boot: u32,
        is_whole: bool,
    },
    Strike {
        number: u32,
        strike: NetStrike,
    },
    Heal {
        cut: (u16, u16),
    },
    Look,
}

struct NetNode {
    supervisor: Option<SupervisorProcess>,
    /// The process of the component, in the DIR net or not.
    process: Option<ComponentProcess>,
    /// Since when it is isolated, as saved.
    isolation_note: Option<Incarnation>,
    /// It crashes after this many outputs.
    outputs_left: Option<u32>,
    component: Option<Machine>,
    task: Option<ImAliveTask>,
    /// The number of its present boot: that of the boot's first incarnation.
    boot: u32,
    /// The number of its last incarnation.
    incarnation: u32,
    /// When its supervisor was last started, and when it was last gone.
    began: u64,
    died: u64,
    /// The last boot of it that a manager has ordered to reset.
    reset_up_to: Incarnation,
    kept: Option<Term>,
    saved: SavedSnapshots,
    progress: Progress,
    /// The start and the end of its component's stall.
    component_stalls: Option<(u64, u64)>,
    task_stalls: u64,
    /// The start and the end of the supervisor's stall.
    supervisor_stalls: Option<(u64, u64)>,
    refuses_spawns: u64,
    has_dead_timers: bool,
    cells: BTreeMap<u16, Beat>,
}

/// A run in progress.
pub(super) struct Net {
    pub(super) now: u64,
    pub(super) events: u64,
    pub(super) happened: Vec<u32>,
    pub(super) trace: Trace,
    pub(super) ledger: NetLedger,
    pub(super) said: NetOutputs,
    setting: Setting,
    nodes: Vec<NetNode>,
    launcher: Option<Launcher<8>>,
    flights: BTreeMap<(u64, u64), NetFlight>,
    posted: u64,
    /// The number of the one that lands.
    landing: u64,
    /// Processes of supervisors and components so far, and sessions.
    runs: u64,
    sessions: u64,
    /// When the last message arrives on each way that loses none.
    ways: BTreeMap<(u16, u16), u64>,
    cuts: BTreeSet<(u16, u16)>,
    /// Cuts that are permanent.
    severed: BTreeSet<(u16, u16)>,
    /// Since when operators wait for all to be well.
    waits_since: u64,
    /// When a frame was last sent to another node.
    last_frame: u64,
    /// Since when all is well, and in which term.
    well: Option<(u64, Term)>,
    draws: Draws,
    /// Consecutive heartbeats that each link has lost.
    lost_in_a_row: BTreeMap<(u16, u16), u32>,
}

/// The outputs of the machines.
#[derive(Debug, Default)]
pub(super) struct NetOutputs {
    /// Heartbeats, counted once for each receiver.
    pub(super) beats: u64,
    /// All outputs but heartbeats, with the time and the node, if they are recorded.
    pub(super) log: Option<Vec<(u64, Rank, Output)>>,
}

impl Net {
    /// The run of `plan`.
    pub(super) fn new(plan: &RunPlan) -> Self {
        let mut draws = Draws::new(plan.seed, Purpose::Setup);
        // Apart from the others: what a seed had before, it still has.
        let mut orders = Draws::new(plan.seed, Purpose::Faults);
        let mut setting = Setting::draw(&mut draws);
        setting.first_boot = orders.pick(&[0, 0, (1 << 31) - 3]);
        setting.boots_begin_early = Draws::new(plan.seed, Purpose::Recovery).chance(1, 2);
        let (count, weather) = (setting.parts.len() as u16, setting.weather);
        let spread = draws.pick(&[0, 0, 50, 800]);
        let mut net = Self::set_up(setting, plan.seed);
        net.trace = plan.trace.clone();
        for node in 0..count {
            let at = draws.below(spread + 1) * net.setting.unit;
            net.post_at(at, NetFlight::Boot { node });
        }
        let strikes = strike::draw(&mut draws, &mut orders, count, weather);
        for ((at, strike), number) in strikes.iter().zip(0..) {
            if !matches!(&plan.keep, Keep::Only(numbers) if !numbers.contains(&number)) {
                net.post_at(*at * net.setting.unit, NetFlight::Strike { number, strike: *strike });
            }
        }
        net
    }

    /// Nodes that have not been started yet, in a network without faults of its own.
    pub(super) fn set_up(setting: Setting, seed: u64) -> Self {
        let mut net = Self {
            now: 0,
            events: 0,
            happened: Vec::new(),
            trace: Trace::off(),
            ledger: NetLedger::new(setting.parts.len(), setting.weather),
            said: NetOutputs::default(),
            nodes: setting.parts.iter().map(|_| NetNode::new(setting.first_boot)).collect(),
            launcher: setting
                .resets_work
                .then(|| Self::new_launcher(setting.timing.clone, setting.unit)),
            setting,
            flights: BTreeMap::new(),
            posted: 0,
            landing: 0,
            runs: 0,
            sessions: 0,
            ways: BTreeMap::new(),
            cuts: BTreeSet::new(),
            severed: BTreeSet::new(),
            waits_since: 0,
            last_frame: 0,
            well: None,
            draws: Draws::new(seed, Purpose::Work),
            lost_in_a_row: BTreeMap::new(),
        };
        net.post_at(LOOK_MS * net.setting.unit, NetFlight::Look);
        net
    }

    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        self.trace.note(self.now, line);
    }

    /// Starts every node now.
    pub(super) fn boot_all(&mut self) {
        (0..self.nodes.len() as u16).for_each(|node| self.start_node(node));
    }

    /// Runs until `at`.
    pub(super) fn run_until(&mut self, at: u64) {
        let next = |net: &Self| {
            let flight = net.flights.first_key_value().map(|((at, _), _)| *at);
            let deadline = net.next_deadline().map(|(at, _, _)| at);
            flight.into_iter().chain(deadline).min()
        };
        let (mut moment, mut at_once) = (self.now, 0);
        while next(self).is_some_and(|next| next <= at) {
            self.step();
            at_once = if self.now == moment { at_once + 1 } else { 0 };
            moment = self.now;
            let due = self.next_deadline();
            assert!(at_once < AT_ONCE_MAX, "time stands still: what is due next is {due:?}");
        }
        self.now = self.now.max(at);
    }

    /// Runs until everything is well again, or an invariant is violated.
    pub(super) fn go(&mut self) {
        while self.ledger.violation.is_none() {
            let is_calm = self.now > self.setting.calm_from;
            if is_calm && self.events.is_multiple_of(64) && self.is_over() {
                return;
            }
            if !is_calm {
                self.check_events();
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
                if let Some(((at, number), flight)) = self.flights.pop_first() {
                    self.now = self.now.max(at);
                    self.landing = number;
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
                component.map(|at| {
                    let until = it.component_stalls.map_or(0, |(_, until)| until);
                    (at.0.max(until), node, Seat::Component)
                }),
                task.map(|at| (at.0.max(it.task_stalls), node, Seat::ImAliveTask)),
            ]
        });
        both.flatten()
            .map(|(at, node, seat)| (at.max(self.now), node, seat))
            .min_by_key(|due| due.0)
    }

    /// The running components.
    pub(super) fn components(&self) -> impl Iterator<Item = &Machine> {
        self.nodes.iter().filter_map(|it| it.component.as_ref())
    }

    fn node(&mut self, node: u16) -> &mut NetNode {
        &mut self.nodes[usize::from(node)]
    }

    fn config(&self, node: u16) -> Config<8> {
        let profile = Profile::new(self.setting.timing).expect("the profile keeps its rules");
        let limit = |within| RestartLimit { max: ENDS_MAX, within };
        // As long as six resets of a node that never comes back take.
        let resets = limit(Duration(6 * profile.timing().reset_period().0));
        let limits = Limits { restarts: Self::restarts(self.setting.unit), resets };
        Config::new(Rank(node), &self.setting.parts, profile, self.setting.min_alive, limits)
            .expect("one manager")
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

    fn land(&mut self, flight: NetFlight) {
        let now = Instant(self.now);
        // Work of a stalled supervisor waits until it continues.
        if let NetFlight::Spawn { at, .. }
        | NetFlight::Between { to: at, .. }
        | NetFlight::Up { at, .. }
        | NetFlight::Wake { at, .. } = flight
            && let Some(until) = self.node(at).stopped_until(now.0)
        {
            return self.postpone(until, flight);
        }
        if let NetFlight::Fenced { at, .. }
        | NetFlight::Down { at, .. }
        | NetFlight::Ready { at, .. } = flight
            && let Some(until) = self.node(at).component_stalls_until(now.0)
        {
            return self.postpone(until, flight);
        }
        match flight {
            NetFlight::Frame { .. } => self.land_frame(flight),
            NetFlight::Between { from, to, run, session, message } => {
                self.land_between((from, to), (run, session), message);
            }
            NetFlight::Up { at, number, message } => self.land_up(at, number, message),
            NetFlight::Down { at, number, sent, message } => {
                self.land_down(at, number, (sent, message));
            }
            NetFlight::Wake { at, run } => self.land_wake(at, run),
            NetFlight::Ready { at, number } => self.land_ready(at, number),
            NetFlight::Report { from, run, report } => self.land_report(from, run, report),
            NetFlight::LauncherWake => self.land_launcher_wake(),
            NetFlight::Beat { from, to } => self.land_beat(from, to),
            NetFlight::Fenced { at, number, node, boot } if self.node(at).runs(number) => {
                self.note_fenced(at, node, boot);
            }
            NetFlight::Spawn { at, boot, generation }
                if self.node(at).boot == boot && self.node(at).task.is_some() =>
            {
                self.land_spawn(at, generation);
            }
            NetFlight::Boot { node } => self.start_node(node),
            NetFlight::Parted { at, incarnation, node, boot, is_whole }
                if self.node(at).boot == incarnation && self.node(node).boot == boot =>
            {
                match &mut self.node(at).component {
                    Some(component) if is_whole => component.handle_parted(now, Rank(node)),
                    Some(component) => component.handle_gone(now, Rank(node)),
                    None => {}
                }
                self.check_doubts(at, Rank(node));
                self.drain(at);
            }
            NetFlight::Parted { .. } | NetFlight::Fenced { .. } | NetFlight::Spawn { .. } => {}
            NetFlight::Strike { number, strike } => self.strike(number, strike),
            NetFlight::Heal { cut } => {
                self.cuts.remove(&cut);
            }
            NetFlight::Look => self.look_after(),
        }
    }

    /// If no other node that the supervisor of `node` has met runs a component, none can answer the
    /// alarm of its task.
    fn tell_alone(&mut self, node: u16) {
        let it = self.node(node);
        let is_alone = it
            .supervisor
            .as_ref()
            .is_some_and(|it| it.decider.running().is_empty() && !it.starts.has_given_up());
        if is_alone && it.process.is_none() {
            it.task.iter_mut().for_each(ImAliveTask::handle_alone);
            self.drain(node);
        }
    }

    /// What lands waits until its receiver goes on. It keeps its place, for a stall may be
    /// prolonged, and what one way carries arrives in order.
    fn postpone(&mut self, until: u64, flight: NetFlight) {
        self.flights.insert((until, self.landing), flight);
    }

    fn post_at(&mut self, at: u64, flight: NetFlight) {
        self.posted += 1;
        self.flights.insert((at, self.posted), flight);
    }

    /// Sends over a network that loses, duplicates and reorders.
    fn post(&mut self, from: u16, to: u16, flight: NetFlight) {
        // Nothing is lost within a node.
        let is_calm = self.now > self.setting.calm_from || from == to;
        let is_lost = !is_calm && self.draws.chance(self.setting.lost, 1000);
        if self.is_cut(from, to) || (is_lost && self.may_lose(from, to, &flight)) {
            if let NetFlight::Frame { frame, .. } = flight {
                self.note(|| format!("{} of {from} to {to} is lost", frame.message.name()));
            }
            return;
        }
        self.lost_in_a_row.remove(&(from, to));
        let copies = 1 + u32::from(!is_calm && self.draws.chance(self.setting.repeated, 1000));
        for _ in 0..copies {
            let at = self.now + 1 + self.draws.below(self.setting.delay_max);
            self.post_at(at, flight);
        }
    }
}

impl NetNode {
    /// Whether its component has connected this boot of `peer`.
    fn connects(&self, peer: u16, boot: Incarnation) -> bool {
        let connected = self.process.as_ref().and_then(|it| it.connections.connected(peer));
        connected.is_some_and(|it| it.boot == boot)
    }

    /// Whether this incarnation of its component runs.
    fn is_component(&self, incarnation: ComponentIncarnation) -> bool {
        self.process.as_ref().is_some_and(|it| {
            (it.own.boot, it.generation) == (incarnation.boot, incarnation.generation)
        })
    }

    /// Whether this process of its component runs.
    fn runs(&self, number: u64) -> bool {
        self.process.as_ref().is_some_and(|it| it.number == number)
    }

    fn new(boot: u32) -> Self {
        Self {
            supervisor: None,
            process: None,
            isolation_note: None,
            outputs_left: None,
            component: None,
            task: None,
            boot,
            incarnation: boot,
            began: 0,
            died: 0,
            reset_up_to: Incarnation(0),
            kept: None,
            saved: SavedSnapshots::default(),
            progress: Progress::default(),
            component_stalls: None,
            task_stalls: 0,
            supervisor_stalls: None,
            refuses_spawns: 0,
            has_dead_timers: false,
            cells: BTreeMap::new(),
        }
    }
}

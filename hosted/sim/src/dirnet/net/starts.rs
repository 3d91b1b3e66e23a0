//! Starts and ends of a node's processes: its supervisor, and the component as core decides
//! ([`Starts`]).
//!
//! ```text
//!   launcher or operator ── launch ──▶ supervisor ── Start, Kill ──▶ component
//!                                      task ── Spawn ──┘   ▲            │
//!                                                          └─ Ready, Ended, behind all it has sent
//! ```

use weft_core::dirnet::{
    Announcement, Component, ComponentIncarnation, End, Greeted, ImAliveTask, Post, Progress,
    RestartLimit, Role, Standing, Starts, Step, Supervision,
};
use weft_core::ids::{Incarnation, Rank};
use weft_core::time::{Duration, Instant};

use super::launcher::LaunchReport;
use super::supervisors::{ComponentProcess, SupervisorProcess};
use super::{ENDS_MAX, Net, NetFlight, NetNode};
use crate::dirnet::admission::{Between, Connections, Down, Up};
use crate::dirnet::strike::MS;

/// The window of the limit of ends and of clones, in units.
const WITHIN_MS: u64 = 20_000;

impl Net {
    /// The limit of restarts of a component, on a clock of that unit.
    pub(super) const fn restarts(unit: u64) -> RestartLimit {
        RestartLimit { max: ENDS_MAX, within: Duration(WITHIN_MS * unit) }
    }

    /// Starts the supervisor of `node`, and its component, unless it is isolated; whether it could.
    pub(super) fn launch(&mut self, node: u16) -> bool {
        let now = self.now;
        let it = self.node(node);
        if it.refuses_spawns > now {
            return false;
        }
        if it.supervisor.is_some() {
            return true;
        }
        (it.component_stalls, it.task_stalls, it.supervisor_stalls) = (None, 0, None);
        let clone = Duration(self.setting.timing.clone.0 / self.setting.unit * MS);
        self.start_supervisor(node, Starts::new(Self::restarts(MS), clone));
        let supervisor = self.node(node).supervisor.as_ref();
        // It may have crashed between two outputs.
        if supervisor.is_some_and(|it| !it.decider.is_isolated()) {
            self.start_process(node);
        }
        true
    }

    /// Carries out what follows from the last input to the starts of `node`.
    pub(super) fn take_steps(&mut self, node: u16) {
        let run = |it: &Self| it.nodes[usize::from(node)].supervisor.as_ref().map(|it| it.run);
        let Some(own) = run(self) else { return };
        while run(self) == Some(own) {
            let supervisor = self.node(node).supervisor.as_mut();
            let Some(step) = supervisor.and_then(|it| it.starts.poll_step()) else { break };
            self.take_step(node, step);
        }
        self.keep_deadline(node);
    }

    fn take_step(&mut self, node: u16, step: Step) {
        self.note(|| format!("{node}'s supervisor: {step:?}"));
        let (now, clock) = (Instant(self.now), self.supervisor_clock());
        let it = self.node(node);
        let Some(supervisor) = &mut it.supervisor else { return };
        match step {
            Step::Start { .. } if it.refuses_spawns > now.0 => {
                supervisor.starts.handle_start_failed(clock);
                // What fails may be found before the boot has begun, or only as the process starts.
                if self.setting.boots_begin_early {
                    self.number_incarnation(node);
                }
            }
            Step::Start { .. } => self.start_process(node),
            Step::Enter => self.order_to_enter(node),
            Step::Kill => self.end_process(node, End::Killed),
            Step::Cloned => {
                let spawned = supervisor.starts.spawned();
                it.task.iter_mut().for_each(|task| task.handle_spawned(now, spawned));
                self.drain(node);
            }
            Step::Alarm | Step::GiveUp => {
                it.task.iter_mut().for_each(|task| task.handle_ended(now));
                self.drain(node);
                self.tell_alone(node);
            }
            Step::Hangs(_) | Step::TryAgain => {}
        }
    }

    /// The task of `at` orders a clone.
    pub(super) fn land_spawn(&mut self, at: u16, generation: u32) {
        if let Some(supervisor) = &mut self.node(at).supervisor {
            supervisor.generation = generation;
            supervisor.starts.handle_clone();
            self.take_steps(at);
        }
    }

    /// The supervisor of `node` looks at the clock, at its component's flag and at its peers.
    pub(super) fn pass_starts(&mut self, node: u16) {
        let (clock, others) = (self.supervisor_clock(), self.nodes.len() as u32 - 1);
        let flag = self.nodes[usize::from(node)].flag(self.now, self.setting.unit);
        let Some(supervisor) = &mut self.node(node).supervisor else { return };
        let (joined, running) = (supervisor.decider.joined(), supervisor.decider.running());
        let greeted = match joined == running {
            true if joined.count() == others => Greeted::All,
            true => Greeted::Living,
            false => Greeted::Few,
        };
        supervisor.starts.handle_time(clock, flag, greeted);
        self.take_steps(node);
    }

    /// The next incarnation of `node` has its number, and begins a boot unless one runs; whether it
    /// does.
    fn number_incarnation(&mut self, node: u16) -> bool {
        let config = self.config(node);
        let it = self.node(node);
        it.incarnation += 1;
        let Some(supervisor) = it.supervisor.as_mut().filter(|it| !it.has_begun) else {
            return false;
        };
        (supervisor.has_begun, supervisor.generation) = (true, 0);
        it.boot = it.incarnation;
        let (me, boot) = (Rank(node), Incarnation(it.boot));
        let (others, profile) = (config.others(), *config.profile());
        it.task = Some(ImAliveTask::new(Post { me, boot, others, profile }));
        self.report(node, LaunchReport::Began(boot));
        true
    }

    /// The process of a component starts.
    fn start_process(&mut self, node: u16) {
        let is_first = self.nodes[usize::from(node)].incarnation == self.setting.first_boot;
        let begins = self.number_incarnation(node);
        let (clock, now, unit) = (self.supervisor_clock(), self.now, self.setting.unit);
        let wait = match begins {
            true if is_first && self.setting.has_booted => 0,
            true => self.setting.reboot,
            false => self.setting.spawn,
        };
        self.runs += 1;
        let number = self.runs;
        let it = self.node(node);
        (it.component_stalls, it.has_dead_timers) = (None, false);
        it.cells.clear();
        let boot = Incarnation(it.boot);
        let own = Announcement { incarnation: Incarnation(it.incarnation), boot };
        let flag = it.flag(now, unit);
        let Some(supervisor) = &mut it.supervisor else { return };
        it.process = Some(ComponentProcess {
            number,
            own,
            generation: supervisor.generation,
            hangs_since: None,
            ready_at: None,
            has_entered: false,
            connections: Connections::default(),
            removed: supervisor.decider.removed(),
            standings: [Standing::default(); 8],
        });
        supervisor.child = Some(number);
        // A boot may have begun although no process of it could be started.
        let is_first = supervisor.last.replace(own.boot) != Some(own.boot);
        supervisor.decider.handle_started(own);
        supervisor.starts.handle_started(clock, flag);
        self.check_standings(node, is_first);
        self.post_at(now + wait, NetFlight::Ready { at: node, number });
        self.keep_deadline(node);
    }

    /// The endpoint of the component is made, unless it hangs.
    pub(super) fn land_ready(&mut self, at: u16, number: u64) {
        let process = self.node(at).process.as_ref();
        let is_it = |it: &&ComponentProcess| it.number == number && it.hangs_since.is_none();
        if let Some(own) = process.filter(is_it).map(|it| it.own) {
            self.up(at, Up::Ready(own));
        }
    }

    pub(super) fn handle_ready(&mut self, at: u16, own: Announcement) {
        let (now, clock) = (self.now, self.supervisor_clock());
        let it = self.node(at);
        let Some(process) = it.process.as_mut().filter(|process| process.own == own) else {
            return;
        };
        process.ready_at = Some(now);
        if let Some(supervisor) = &mut it.supervisor {
            supervisor.announced = Some(own);
            supervisor.starts.handle_ready(clock);
        }
        self.announce(at, Between::Alive(own));
        self.decide(at, Supervision::handle_ready);
        self.pass_starts(at);
    }

    /// The process of the component of `node` hangs: it handles nothing any more.
    pub(super) fn hang(&mut self, node: u16) {
        let now = self.now;
        let it = self.node(node);
        it.component = None;
        if let Some(process) = &mut it.process {
            process.hangs_since.get_or_insert(now);
        }
    }

    /// The process of the component of `node` ends, if there is one.
    pub(super) fn end_process(&mut self, node: u16, end: End) {
        self.up(node, Up::Ended(end));
        let it = self.node(node);
        (it.component, it.process) = (None, None);
    }

    /// The supervisor of `node` notices the end of its component, behind all that it has sent.
    pub(super) fn reap(&mut self, node: u16, end: End) {
        let clock = self.supervisor_clock();
        let Some(supervisor) = &mut self.node(node).supervisor else { return };
        if supervisor.child.take().is_none() {
            return;
        }
        if let Some(announced) = supervisor.announced.take() {
            self.announce(node, Between::Dead(announced.incarnation));
        }
        self.decide(node, Supervision::handle_ended);
        if let Some(supervisor) = &mut self.node(node).supervisor {
            supervisor.starts.handle_ended(clock, end);
            self.take_steps(node);
        }
    }

    fn order_to_enter(&mut self, node: u16) {
        let it = self.node(node);
        let Some(process) = &mut it.process else { return };
        process.has_entered = true;
        if it.isolation_note.is_some() {
            self.ledger.broken("admission", format!("{node} is isolated, and runs a component"));
        }
        self.report(node, LaunchReport::Entered);
        self.down(node, Down::Enter);
        self.decide(node, Supervision::handle_entered);
    }

    /// The component of `node` enters the DIR net.
    pub(super) fn enter(&mut self, node: u16) {
        let (config, now) = (self.config(node), Instant(self.now));
        let tasks = self.setting.tasks;
        let it = self.node(node);
        let Some(ComponentProcess { generation, removed, own, .. }) = it.process else { return };
        let incarnation = ComponentIncarnation { boot: own.boot, generation };
        let kept = it.saved.kept(it.kept, removed);
        let component = Component::new(now, config, incarnation, tasks, kept);
        let wrong = it.saved.judge(config.nodes(), &component);
        let is_memory_lost = it.saved.is_newest_damaged();
        let is_joining = component.role() == Role::Joining;
        it.component = Some(component);
        if is_joining {
            self.ledger.handle_joining(Rank(node));
        }
        if is_memory_lost {
            self.ledger.handle_memory_lost(Rank(node));
        }
        wrong.into_iter().for_each(|what| self.ledger.broken("snapshots", what));
        self.note(|| format!("{node} begins incarnation {incarnation}"));
        self.drain(node);
    }

    /// This boot of `node` is over; its supervisor goes on.
    pub(super) fn end_boot(&mut self, node: u16, input: impl FnOnce(&mut Starts)) {
        let now = self.now;
        let it = self.node(node);
        (it.task, it.died) = (None, now);
        if let Some(supervisor) = &mut it.supervisor {
            supervisor.has_begun = false;
            supervisor.heard.handle_over();
            input(&mut supervisor.starts);
            self.take_steps(node);
        }
    }

    /// The whole node is gone.
    pub(super) fn crash(&mut self, node: u16) {
        let now = self.now;
        let it = self.node(node);
        (it.component, it.task, it.supervisor_stalls) = (None, None, None);
        it.died = now;
        it.outputs_left = None;
        self.end_supervisor(node);
    }

    /// The supervisor of `node` ends, and its component with it.
    fn end_supervisor(&mut self, node: u16) {
        let Some(supervisor) = self.node(node).supervisor.take() else { return };
        self.node(node).process = None;
        self.report_from(node, supervisor.run, LaunchReport::Gone);
        self.lose_supervisor(node, supervisor);
    }

    fn lose_supervisor(&mut self, node: u16, supervisor: SupervisorProcess) {
        if supervisor.decider.removed() != Incarnation(0) {
            // No other process of the node may know of the removal.
            self.ledger.handle_memory_lost(Rank(node));
        }
        for (peer, session) in supervisor.sessions {
            // A host that loses its power closes no connection: the session lasts until the next.
            if !self.draws.chance(self.setting.noticed, 1_000) {
                continue;
            }
            let Some(other) = &mut self.node(peer).supervisor else { continue };
            other.sessions.remove(&node);
            let run = other.run;
            let message = Between::Parted;
            self.post_late(
                node,
                peer,
                NetFlight::Between { from: node, to: peer, run, session, message },
            );
        }
    }
}

impl NetNode {
    /// Until when its component stalls, if it does.
    pub(super) fn component_stalls_until(&self, now: u64) -> Option<u64> {
        self.component_stalls.map(|(_, until)| until).filter(|until| now < *until)
    }

    /// The flag that the loop of its component has moved until now, unless it hangs or stalls.
    fn flag(&self, now: u64, unit: u64) -> Progress {
        let stalls = self.component_stalls.filter(|(_, until)| now < *until);
        let hangs = self.process.as_ref().and_then(|it| it.hangs_since);
        let last = stalls.map(|(since, _)| since).into_iter().chain(hangs).fold(now, u64::min);
        Progress { timers: (last / unit) as u32, ..Progress::default() }
    }
}

//! Supervisors: what core decides for them, and the links between them and to their components.
//!
//! ```text
//!   supervisor ══ Between ══ supervisor      lossless, in order, late
//!     Up ║ Down
//!   component                                lossless, in order, late
//! ```
//!
//! A link between two supervisors is a session. It ends with the next one, often with either
//! process and, in some runs, with a cut of the link; what was sent before its end arrives before
//! that is noticed. What a component has sent arrives although the component has ended; what a
//! supervisor has sent to it does not.

use std::collections::BTreeMap;

use weft_core::dirnet::{Announcement, Level, Order, Standing, Starts, Supervision};
use weft_core::ids::{Incarnation, Peer, Rank};
use weft_core::time::Instant;

use super::launcher::LaunchReport;
use super::{Net, NetFlight};
use crate::dirnet::admission::{Between, Connections, Down, OrderRoute, SupervisorHeard, Up};
use crate::dirnet::strike::MS;

/// The process of one supervisor.
pub(super) struct SupervisorProcess {
    pub(super) decider: Supervision<8>,
    pub(super) starts: Starts,
    /// Distinguishes it from earlier ones of its node.
    pub(super) run: u64,
    /// Whether a boot has begun and is not over.
    pub(super) has_begun: bool,
    /// The last boot of which a process was started.
    pub(super) last: Option<Incarnation>,
    /// Of the component that is started next, unless it begins a boot.
    pub(super) generation: u32,
    /// When it is woken for the decider's deadline.
    wakes_at: Option<u64>,
    pub(super) sessions: BTreeMap<u16, u64>,
    /// The process of the component, until its end is noticed.
    pub(super) child: Option<u64>,
    /// The component that is announced.
    pub(super) announced: Option<Announcement>,
    pub(super) heard: SupervisorHeard,
    pub(super) standings: [Standing; 8],
}

/// The process of one component; it enters the DIR net later.
#[derive(Debug)]
pub(super) struct ComponentProcess {
    pub(super) number: u64,
    pub(super) own: Announcement,
    pub(super) generation: u32,
    /// Since when it hangs, if it does.
    pub(super) hangs_since: Option<u64>,
    pub(super) ready_at: Option<u64>,
    pub(super) has_entered: bool,
    pub(super) connections: Connections,
    /// The boot of its node that its supervisor knew as removed when it started.
    pub(super) removed: Incarnation,
    pub(super) standings: [Standing; 8],
}

impl Net {
    /// Starts a supervisor on `node`.
    pub(super) fn start_supervisor(&mut self, node: u16, starts: Starts) {
        self.runs += 1;
        let run = self.runs;
        let decider = Supervision::new(Rank(node));
        let now = self.now;
        let it = self.node(node);
        let note = it.isolation_note;
        it.began = now;
        it.supervisor = Some(SupervisorProcess {
            decider,
            starts,
            run,
            has_begun: false,
            last: None,
            generation: 0,
            wakes_at: None,
            sessions: BTreeMap::new(),
            child: None,
            announced: None,
            heard: SupervisorHeard::default(),
            standings: [Standing::default(); 8],
        });
        if let Some(since) = note {
            self.decide(node, |it| it.handle_isolated(Rank(node), since));
        }
        self.meet_all(node);
    }

    /// Begins a session with every supervisor that is reached and has none with `node`.
    pub(super) fn meet_all(&mut self, node: u16) {
        for other in 0..self.nodes.len() as u16 {
            let is_cut = self.setting.cuts_sessions
                && (self.is_cut(node, other) || self.is_cut(other, node));
            let runs = |it: &super::NetNode| it.supervisor.is_some();
            let both = [node, other].map(|at| &self.nodes[usize::from(at)]);
            if other == node || is_cut || !both.iter().all(|it| runs(it)) {
                continue;
            }
            if self.session(node, other).is_some() {
                continue;
            }
            self.sessions += 1;
            let session = self.sessions;
            for (at, peer) in [(node, other), (other, node)] {
                if let Some(supervisor) = &mut self.node(at).supervisor {
                    supervisor.sessions.insert(peer, session);
                }
                self.between(peer, at, Between::Met);
            }
            for (at, peer) in [(node, other), (other, node)] {
                let announced = self.node(at).supervisor.as_ref().and_then(|it| it.announced);
                if let Some(announced) = announced {
                    self.between(at, peer, Between::Alive(announced));
                }
            }
        }
    }

    fn session(&self, at: u16, peer: u16) -> Option<u64> {
        self.nodes[usize::from(at)].supervisor.as_ref()?.sessions.get(&peer).copied()
    }

    /// The session of two supervisors ends, for each end that still runs.
    pub(super) fn part_supervisors(&mut self, one: u16, other: u16) {
        for (at, peer) in [(one, other), (other, one)] {
            self.between(peer, at, Between::Parted);
        }
        for (at, peer) in [(one, other), (other, one)] {
            if let Some(supervisor) = &mut self.node(at).supervisor {
                supervisor.sessions.remove(&peer);
            }
        }
    }

    fn between(&mut self, from: u16, to: u16, message: Between) {
        let Some(session) = self.session(to, from) else { return };
        let Some(run) = self.node(to).supervisor.as_ref().map(|it| it.run) else { return };
        self.post_late(from, to, NetFlight::Between { from, to, run, session, message });
    }

    pub(super) fn up(&mut self, at: u16, message: Up) {
        let Some(number) = self.node(at).process.as_ref().map(|it| it.number) else { return };
        self.post_late(at, at, NetFlight::Up { at, number, message });
    }

    pub(super) fn down(&mut self, at: u16, message: Down) {
        let Some(number) = self.node(at).process.as_ref().map(|it| it.number) else { return };
        // Not the way of `up`: neither end waits for the other.
        let sent = self.now;
        self.post_late(at + 100, at, NetFlight::Down { at, number, sent, message });
    }

    /// Delivers after everything that was sent on this way before.
    pub(super) fn post_late(&mut self, from: u16, to: u16, flight: NetFlight) {
        let after = self.draws.between(1, self.setting.late_max);
        let last = self.ways.get(&(from, to)).copied().unwrap_or_default();
        let at = last.max(self.now + after);
        self.ways.insert((from, to), at);
        self.post_at(at, flight);
    }

    pub(super) fn land_between(
        &mut self,
        (from, to): (u16, u16),
        (run, session): (u64, u64),
        message: Between,
    ) {
        let Some(supervisor) = &mut self.node(to).supervisor else { return };
        if supervisor.run != run {
            return;
        }
        supervisor.heard.handle_between(from, message);
        let (has_begun, may_end) =
            (supervisor.has_begun, supervisor.heard.may_end(to, from, message));
        self.note(|| format!("{to}'s supervisor hears of {from}: {message:?}"));
        self.decide(to, |it| message.arrive(it, Peer(from), session));
        let it = self.node(to).supervisor.as_ref().filter(|it| it.run == run && !it.has_begun);
        if has_begun && it.is_some() {
            may_end.unwrap_or_else(|what| self.ledger.broken("admission", what));
        }
    }

    pub(super) fn land_up(&mut self, at: u16, number: u64, message: Up) {
        let child = self.node(at).supervisor.as_ref().and_then(|it| it.child);
        if child != Some(number) {
            return;
        }
        self.note(|| format!("{at}'s supervisor hears of its component: {message:?}"));
        let now = self.supervisor_clock();
        let Some(supervisor) = &mut self.node(at).supervisor else { return };
        supervisor.heard.handle_up(message);
        match message {
            Up::Ready(own) => self.handle_ready(at, own),
            Up::Ended(end) => self.reap(at, end),
            Up::Reset(node, boot) => self.order_reset(at, node, boot),
            Up::Removed(..) | Up::Isolated(..) | Up::Released(..) | Up::Excluded => {
                self.decide(at, |it| message.arrive(it, now));
            }
        }
    }

    pub(super) fn announce(&mut self, at: u16, message: Between) {
        let sessions = self.node(at).supervisor.as_ref().map(|it| it.sessions.clone());
        for peer in sessions.unwrap_or_default().into_keys() {
            self.between(at, peer, message);
        }
    }

    /// Hands an input to the supervisor of `node`, and carries out what follows.
    pub(super) fn decide(&mut self, node: u16, input: impl FnOnce(&mut Supervision<8>)) {
        let Some(supervisor) = &mut self.node(node).supervisor else { return };
        let (run, had_begun) = (supervisor.run, supervisor.has_begun);
        input(&mut supervisor.decider);
        let mut has_fenced = false;
        loop {
            let it = self.node(node).supervisor.as_mut().filter(|it| it.run == run);
            let Some(order) = it.and_then(|it| it.decider.poll_order()) else { break };
            if self.spends(node) {
                return;
            }
            has_fenced |= matches!(order, Order::Fence(_));
            self.obey(node, order);
        }
        let has_begun = self.node(node).supervisor.as_ref().is_some_and(|it| it.has_begun);
        self.check_standings(node, had_begun && !has_begun);
        self.keep_deadline(node);
        // Not between two orders: what the task does then is an input to the supervisor.
        if has_fenced {
            self.tell_alone(node);
        }
    }

    /// The decider's clock, whose deadlines are of a host: a unit of the run is a millisecond.
    pub(super) fn supervisor_clock(&self) -> Instant {
        Instant(self.now / self.setting.unit * MS)
    }

    pub(super) fn keep_deadline(&mut self, node: u16) {
        let (now, unit) = (self.now, self.setting.unit);
        let Some(supervisor) = &mut self.node(node).supervisor else { return };
        let deadlines = [supervisor.decider.poll_timeout(), supervisor.starts.poll_timeout()];
        let due = deadlines.into_iter().flatten().min();
        let due = due.map(|at| (at.0.div_ceil(MS) * unit).max(now + 1));
        if due.is_some() && supervisor.wakes_at != due {
            supervisor.wakes_at = due;
            let (run, at) = (supervisor.run, due.unwrap_or(now));
            self.post_at(at, NetFlight::Wake { at: node, run });
        }
    }

    pub(super) fn land_wake(&mut self, at: u16, run: u64) {
        let now = self.supervisor_clock();
        let Some(supervisor) = &mut self.node(at).supervisor else { return };
        if supervisor.run == run {
            supervisor.wakes_at = None;
            self.decide(at, |it| it.handle_time(now));
            self.pass_starts(at);
        }
    }

    /// Whether the node crashes before its next output.
    pub(super) fn spends(&mut self, node: u16) -> bool {
        let left = &mut self.node(node).outputs_left;
        let is_last = *left == Some(0);
        *left = left.and_then(|left| left.checked_sub(1));
        if is_last {
            self.note(|| format!("{node} crashes between two outputs"));
            self.crash(node);
        }
        is_last
    }

    fn obey(&mut self, node: u16, order: Order) {
        self.note(|| format!("{node}'s supervisor orders {order:?}"));
        if let Some(supervisor) = &mut self.node(node).supervisor {
            let checked = supervisor.heard.handle_order(node, order);
            checked.unwrap_or_else(|what| self.ledger.broken("admission", what));
        }
        match OrderRoute::from(order) {
            OrderRoute::Component(message) => self.down(node, message),
            OrderRoute::Peer(peer, message) => {
                if let Between::Fenced(fenced) = message {
                    self.check_refusal(node, peer, fenced);
                }
                self.between(node, peer, message);
            }
            OrderRoute::Report(_, _, Level::Up) => {}
            OrderRoute::Report(of, boot, Level::Down) => {
                self.report(node, LaunchReport::Removed(of, boot));
            }
            OrderRoute::Report(of, boot, Level::Isolated) => {
                self.report(node, LaunchReport::Isolated(of, boot));
            }
            OrderRoute::Report(of, boot, Level::Released) => {
                self.report(node, LaunchReport::Released(of, boot));
            }
            OrderRoute::Reset(of, boot) => self.order_reset(node, of, boot),
            OrderRoute::Keep(isolation) => self.node(node).isolation_note = isolation,
            OrderRoute::Halt => self.end_boot(node, Starts::handle_halt),
            OrderRoute::Resume => self.end_boot(node, Starts::handle_resume),
            OrderRoute::Reboot => {
                let it = self.node(node);
                let removed = it.supervisor.as_ref().map(|it| it.decider.removed().0);
                if removed == Some(it.boot) {
                    self.ledger.handle_excluded(Rank(node));
                }
                self.end_boot(node, Starts::handle_reboot);
            }
        }
    }

    pub(super) fn land_down(&mut self, at: u16, number: u64, (sent, message): (u64, Down)) {
        let now = Instant(self.now);
        let it = self.node(at);
        let Some(process) = it.process.as_mut().filter(|it| it.number == number) else { return };
        match message {
            // A component that is not ready has connected no peer, and is sent all that run once it
            // is: what was ordered before has no receiver.
            Down::Connect(..) | Down::Fence(_)
                if process.ready_at.is_none_or(|ready| sent < ready) =>
            {
                return;
            }
            _ if process.hangs_since.is_some() => return,
            Down::Connect(peer, announced) => {
                return match process.connections.connect(at, peer, announced) {
                    Ok(true) => self.greet(at, peer),
                    Ok(false) => {}
                    Err(what) => self.ledger.broken("admission", what),
                };
            }
            Down::Fence(peer) => {
                process.connections.fence(peer);
                it.component.iter_mut().for_each(|it| it.handle_gone(now, Rank(peer)));
            }
            Down::Acknowledged(node, boot) => {
                process.connections.acknowledge(node.0, boot);
                it.component.iter_mut().for_each(|it| it.handle_fenced(now, node, boot));
            }
            Down::Parted(node) => {
                it.component.iter_mut().for_each(|it| it.handle_parted(now, node));
            }
            Down::Isolated(node, boot) => {
                it.component.iter_mut().for_each(|it| it.learn_isolation(now, node, boot));
            }
            Down::Enter => return self.enter(at),
            Down::Released(node, boot) => {
                it.component.iter_mut().for_each(|it| it.learn_release(now, node, boot));
            }
        }
        self.drain(at);
    }

    /// The components of two nodes have joined if each has connected the other.
    fn greet(&mut self, one: u16, other: u16) {
        if !self.are_connected(one, other) || !self.are_connected(other, one) {
            return;
        }
        for (at, peer) in [(one, other), (other, one)] {
            let Some(theirs) = self.node(peer).process.as_ref().map(|it| it.own) else { return };
            if let Some(supervisor) = &mut self.node(at).supervisor {
                supervisor.decider.handle_joined(Peer(peer), theirs.incarnation);
            }
        }
        self.pass_starts(one);
        self.pass_starts(other);
    }

    /// Whether the component of `at` has connected the present one of `peer`.
    pub(super) fn are_connected(&self, at: u16, peer: u16) -> bool {
        let [own, other] = [at, peer].map(|it| self.nodes[usize::from(it)].process.as_ref());
        let (Some(own), Some(other)) = (own, other) else { return false };
        own.connections.connected(peer) == Some(other.own)
    }
}

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

use weft_core::dirnet::{
    Announcement, End, Fenced, Level, Order, Standing, Starts, Supervision, Term,
};
use weft_core::ids::{Incarnation, Peer, Rank};
use weft_core::time::Instant;

use super::launcher::Report;
use super::{Flight, Net};
use crate::dirnet::strike::MS;

/// From one supervisor to another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Between {
    Met,
    Alive(Announcement),
    Dead(Incarnation),
    Fenced(Fenced),
    Isolated(Incarnation),
    Released(Incarnation),
    Free(Incarnation),
    AskForRelease(Incarnation),
    Parted,
}

/// From a component to its supervisor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Up {
    Ready(Announcement),
    Ended(End),
    Removed(u16, Incarnation, Term),
    Isolated(Rank, Incarnation),
    Released(Rank, Incarnation),
    Reset(Rank, Incarnation),
    Excluded,
}

/// From a supervisor to its component.
#[derive(Clone, Copy, Debug)]
pub(super) enum Down {
    Connect(u16, Announcement),
    Fence(u16),
    Acknowledged(Rank, Incarnation),
    Parted(Rank),
    Isolated(Rank, Incarnation),
    Released(Rank, Incarnation),
    Enter,
}

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
    /// By definition: the boots of which a removal was acknowledged, the last isolations and the
    /// last releases that were received.
    pub(super) acknowledged: BTreeMap<u16, Incarnation>,
    pub(super) isolated: BTreeMap<u16, Incarnation>,
    pub(super) released: BTreeMap<u16, Incarnation>,
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
    /// The boot of each peer that it has connected.
    pub(super) connected: BTreeMap<u16, Announcement>,
    /// The boots that it has fenced by decision.
    pub(super) removals: BTreeMap<u16, Incarnation>,
    /// Those of them that its supervisor has acknowledged.
    pub(super) acknowledged: BTreeMap<u16, Incarnation>,
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
            acknowledged: BTreeMap::new(),
            isolated: BTreeMap::new(),
            released: BTreeMap::new(),
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
            let runs = |it: &super::Node| it.supervisor.is_some();
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
        self.post_late(from, to, Flight::Between { from, to, run, session, message });
    }

    pub(super) fn up(&mut self, at: u16, message: Up) {
        let Some(number) = self.node(at).process.as_ref().map(|it| it.number) else { return };
        self.post_late(at, at, Flight::Up { at, number, message });
    }

    pub(super) fn down(&mut self, at: u16, message: Down) {
        let Some(number) = self.node(at).process.as_ref().map(|it| it.number) else { return };
        // Not the way of `up`: neither end waits for the other.
        self.post_late(at + 100, at, Flight::Down { at, number, message });
    }

    /// Delivers after everything that was sent on this way before.
    pub(super) fn post_late(&mut self, from: u16, to: u16, flight: Flight) {
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
        if let Between::Free(boot) = message {
            let released = supervisor.released.entry(from).or_default();
            *released = boot.max(*released);
        }
        let peer = Peer(from);
        self.note(|| format!("{to}'s supervisor hears of {from}: {message:?}"));
        self.decide(to, |it| match message {
            Between::Met => it.handle_met(peer, session),
            Between::Alive(announced) => it.handle_alive(peer, session, announced),
            Between::Dead(incarnation) => it.handle_dead(peer, session, incarnation),
            Between::Fenced(fenced) => it.handle_refused(peer, fenced),
            Between::Isolated(boot) => it.handle_isolated_by(peer, boot),
            Between::Released(boot) => it.handle_released_by(boot),
            Between::Free(boot) => it.handle_free(peer, boot),
            Between::AskForRelease(boot) => it.handle_asked_for_release(peer, boot),
            Between::Parted => it.handle_parted(peer, session),
        });
    }

    pub(super) fn land_up(&mut self, at: u16, number: u64, message: Up) {
        let child = self.node(at).supervisor.as_ref().and_then(|it| it.child);
        if child != Some(number) {
            return;
        }
        self.note(|| format!("{at}'s supervisor hears of its component: {message:?}"));
        let now = self.supervisor_clock();
        let Some(supervisor) = &mut self.node(at).supervisor else { return };
        let (list, node, boot) = match message {
            Up::Isolated(node, boot) => (&mut supervisor.isolated, node, boot),
            Up::Released(node, boot) => (&mut supervisor.released, node, boot),
            _ => (&mut supervisor.isolated, Rank(at), Incarnation(0)),
        };
        let last = list.entry(node.0).or_default();
        *last = boot.max(*last);
        match message {
            Up::Ready(own) => self.handle_ready(at, own),
            Up::Ended(end) => self.reap(at, end),
            Up::Removed(node, boot, term) => {
                self.decide(at, |it| it.handle_removed(now, Peer(node), boot, term));
            }
            Up::Isolated(node, boot) => self.decide(at, |it| it.handle_isolated(node, boot)),
            Up::Released(node, boot) => self.decide(at, |it| it.handle_released(node, boot)),
            Up::Reset(node, boot) => self.order_reset(at, node, boot),
            Up::Excluded => self.decide(at, Supervision::handle_over),
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
        let run = supervisor.run;
        input(&mut supervisor.decider);
        self.check_standings(node);
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
            self.post_at(at, Flight::Wake { at: node, run });
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
        match order {
            Order::Connect(Peer(peer), announced) => {
                self.check_admission(node, peer, announced);
                self.down(node, Down::Connect(peer, announced));
            }
            Order::Fence(Peer(peer)) => self.down(node, Down::Fence(peer)),
            Order::Acknowledge(Peer(peer), boot) => {
                if let Some(supervisor) = &mut self.node(node).supervisor {
                    let last = supervisor.acknowledged.entry(peer).or_default();
                    *last = boot.max(*last);
                }
                self.down(node, Down::Acknowledged(Rank(peer), boot));
            }
            Order::Parted(Peer(peer)) => self.down(node, Down::Parted(Rank(peer))),
            Order::LearnIsolation(of, boot) => self.down(node, Down::Isolated(of, boot)),
            Order::LearnRelease(of, boot) => self.down(node, Down::Released(of, boot)),
            Order::Refuse(Peer(peer), fenced) => {
                self.check_refusal(node, peer, fenced);
                self.between(node, peer, Between::Fenced(fenced));
            }
            Order::Isolate(Peer(peer), boot) => self.between(node, peer, Between::Isolated(boot)),
            Order::Release(Peer(peer), boot) => self.between(node, peer, Between::Released(boot)),
            Order::Contradict(Peer(peer), boot) => self.between(node, peer, Between::Free(boot)),
            Order::AskForRelease(Peer(peer), boot) => {
                self.between(node, peer, Between::AskForRelease(boot));
            }
            Order::Report { level: Level::Up, .. } => {}
            Order::Report { node: of, boot, level: Level::Down } => {
                self.report(node, Report::Removed(of, boot));
            }
            Order::Report { node: of, boot, level: Level::Isolated } => {
                self.report(node, Report::Isolated(of, boot));
            }
            Order::Report { node: of, boot, level: Level::Released } => {
                self.report(node, Report::Released(of, boot));
            }
            Order::Reset(of, boot) => self.order_reset(node, of, boot),
            Order::Keep(isolation) => self.node(node).isolation_note = isolation,
            Order::Halt => self.end_boot(node, Starts::handle_halt),
            Order::Resume => self.end_boot(node, Starts::handle_resume),
            Order::Reboot => {
                let it = self.node(node);
                let removed = it.supervisor.as_ref().map(|it| it.decider.removed().0);
                if removed == Some(it.boot) {
                    self.ledger.handle_excluded(Rank(node));
                }
                self.end_boot(node, Starts::handle_reboot);
            }
        }
    }

    pub(super) fn land_down(&mut self, at: u16, number: u64, message: Down) {
        let now = Instant(self.now);
        let it = self.node(at);
        let Some(process) = it.process.as_mut().filter(|it| it.number == number) else { return };
        match message {
            // A component that is not ready has connected no peer, and is sent all that run.
            Down::Connect(..) | Down::Fence(_) if process.ready_at.is_none() => return,
            _ if process.hangs_since.is_some() => return,
            Down::Connect(peer, announced) => {
                let ends = |boots: &BTreeMap<u16, Incarnation>| {
                    boots.get(&peer).is_some_and(|boot| announced.boot <= *boot)
                };
                if ends(&process.acknowledged) {
                    let boot = announced.boot;
                    let what = format!("{at} admits boot {boot} of {peer} after its FENCED");
                    return self.ledger.broken("admission", what);
                }
                // Decided before the removal was known to the supervisor.
                if !ends(&process.removals) {
                    process.connected.insert(peer, announced);
                    self.greet(at, peer);
                }
                return;
            }
            Down::Fence(peer) => {
                process.connected.remove(&peer);
                it.component.iter_mut().for_each(|it| it.handle_gone(now, Rank(peer)));
            }
            Down::Acknowledged(node, boot) => {
                let last = process.acknowledged.entry(node.0).or_default();
                *last = boot.max(*last);
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
        own.connected.get(&peer) == Some(&other.own)
    }
}

//! The component's side of the DIR net: core's machine, driven by this process.
//!
//! ```text
//!   pulses in own memory ─▶ heartbeats ─┐                ┌─▶ pulses, lanes   to other components
//!   lanes, supervisor ─────▶ frames ────┼─▶ Component ───┼─▶ frames          to I'm-Alive Tasks
//!   clock ─────────────────▶ timeouts ──┘                ├─▶ fences          here, at once
//!                                                        └─▶ messages        to the supervisor
//! ```
//!
//! Heartbeats and frames that cannot be posted are dropped: the net tolerates losses. A fence that
//! fails is tried again until it holds; until then it is not acknowledged to any node.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use weft_core::dirnet::{
    self as dirnet, Beat, Change, Component, ComponentIncarnation, FRAME_LEN, Frame, FrameError,
    Kept, Output, Progress, Reject, Role, Seat, Standing, TASKS_MAX, Term, ViewNumber,
};
use weft_core::ids::{Incarnation, Peer, Rank};
use weft_core::lane::PULSE_LEN;
use weft_core::time::Instant;

pub(in crate::node) use self::config::{config, profile};
use self::script::Script;
use self::votes::Votes;
use super::Identity;
use super::leavers;
use super::overseer::Overseer;
use super::removals::Removals;
use crate::cluster::Cluster;
use crate::node::chronicle::{Entry as Noted, What};
use crate::node::control::{NodeOrder, Outcome, Payload, Refused, TimingStatus};
use crate::node::faults::Timers;
use crate::node::kept::{KeptTerm, KeptVotes};
use crate::node::link::{FromComponent, TaskChange};
use crate::node::membership::{FRAME, Membership};
use crate::node::saved::SavedDatabase;
use crate::node::{NodeEndpoint, NodeError, PEERS};
use crate::shm::Flag;

/// How often a fence that failed is tried again.
const FENCE_EVERY_NS: u64 = 100_000_000;

/// The database that an earlier component has saved is missing.
const IMAGE_MISSING: &str = "image-missing";

/// A frame was dropped unread: its component has not entered the DIR net yet.
pub(in crate::node) const NOT_ENTERED: &str = "not-entered";

pub(super) type Machine = Component<PEERS, TASKS_MAX>;

/// The DIR net at this component.
pub(super) struct DirNet {
    machine: Box<Machine>,
    timing: TimingStatus,
    /// Whether this node may be manager.
    may_manage: bool,
    flag: Flag,
    overseer: Overseer,
    kept: KeptTerm,
    saved: SavedDatabase,
    /// The last pulse of each peer that was handled.
    seen: Vec<[u8; PULSE_LEN]>,
    look_every_ns: u64,
    look_at_ns: u64,
    /// Before it no step is due, unless an input comes.
    idle_until_ns: u64,
    /// For each node, the standing that was last reported to the supervisor.
    reported: Vec<Standing>,
    reported_view: ViewNumber,
    /// Whether the supervisor has the tasks' history of earlier incarnations from the database.
    past_told: bool,
    /// When the fences that failed are tried again.
    fence_at_ns: u64,
    words: Vec<FromComponent>,
    /// The recovery script, if the cluster has one.
    script: Option<Script>,
    votes: Votes,
    /// How many frames did not reach the machine, by reason.
    unread: BTreeMap<&'static str, u32>,
}

/// What entering the net takes, besides an incarnation.
pub(super) struct Entry {
    flag: Flag,
    kept: KeptTerm,
    term: Option<Term>,
    votes: OwnedFd,
    saved: SavedDatabase,
    snapshots: [Vec<u8>; 2],
    passes: u32,
    /// Frames that arrived before it entered.
    early: u32,
}

impl Entry {
    /// Takes it from the end of the descriptors that came with `Start`.
    pub(super) fn adopt(fds: &mut Vec<OwnedFd>) -> Result<Self, NodeError> {
        let mut next = || fds.pop().ok_or(NodeError::Link("a start too short"));
        let (saved, snapshots) = SavedDatabase::adopt(next()?)?;
        let (kept, term) = KeptTerm::adopt(next()?)?;
        let votes = next()?;
        let flag = Flag::open(next()?.as_fd())?;
        Ok(Self { flag, kept, term, votes, saved, snapshots, passes: 0, early: 0 })
    }

    /// Counts frames that arrived before the machine exists.
    pub(super) fn note_early(&mut self, frames: usize) {
        self.early = self.early.saturating_add(u32::try_from(frames).unwrap_or(u32::MAX));
    }

    /// Records a pass of the loop, in the net or not: the flag shows it to the supervisor.
    pub(super) fn note_pass(&mut self, incarnation: ComponentIncarnation) {
        self.passes = self.passes.wrapping_add(1);
        let (generation, timers) = (incarnation.generation, self.passes);
        self.flag.store(Progress { generation, timers, ..Progress::default() });
    }
}

/// What a step works on besides its own state.
pub(super) struct Ground<'a> {
    pub(super) endpoint: &'a mut NodeEndpoint,
    pub(super) membership: &'a mut Membership,
    /// The boot of each peer's admitted incarnation.
    pub(super) boots: &'a [Incarnation],
    /// The incarnations whose end of a pair is awaited; over verbs only.
    pub(super) expected: &'a mut [Option<Incarnation>],
    pub(super) removals: &'a mut Removals,
}

impl super::Component {
    /// Hands the DIR net, once there is one, what it acts on.
    pub(super) fn with_dirnet(
        &mut self,
        act: impl FnOnce(&mut DirNet, &mut Ground<'_>) -> Result<(), NodeError>,
    ) -> Result<(), NodeError> {
        let Some(dirnet) = &mut self.dirnet else { return Ok(()) };
        dirnet.wake();
        let mut ground = Ground {
            endpoint: &mut self.endpoint,
            membership: &mut self.membership,
            boots: &self.boots,
            expected: &mut self.expected,
            removals: &mut self.removals,
        };
        act(dirnet, &mut ground)
    }
}

impl DirNet {
    /// Enters the net as the component `identity`. Step it before it is handed any input.
    pub(super) fn enter(
        cluster: &Cluster,
        identity: Identity,
        entry: Entry,
        now_ns: u64,
    ) -> Result<Self, NodeError> {
        let Identity { me: Peer(me), component, removed, tasks, .. } = identity;
        let me = Rank(me);
        let config = config(cluster, me)?;
        let timing = TimingStatus::new(cluster.dirnet.profile.as_str(), config.profile().timing());
        let overseer = Overseer::new(now_ns, config.profile(), entry.flag.supervision());
        let may_manage = config.may_manage(me);
        let look_every_ns = config.profile().timing().send.0 / 8;
        let Entry { flag, kept, term, votes, saved, snapshots, early, .. } = entry;
        let (kept_votes, voter) = KeptVotes::adopt(votes, component.boot)?;
        let early = (early > 0).then_some((NOT_ENTERED, early));
        let [newest, before] = &snapshots;
        let past = Kept { term, snapshots: [newest, before], removed };
        let mut machine = Box::new(Machine::new(Instant(now_ns), config, component, tasks, past));
        let script = Script::new(cluster, me)?;
        script.iter().for_each(|script| script.declare(&mut machine));
        // A node that has known a term has saved a database.
        let is_gone = term.is_some() && snapshots.iter().all(Vec::is_empty);
        let is_damaged = machine.rejects().iter().next().is_some();
        let lost = match (is_gone, is_damaged) {
            (true, _) => Some("the database that it had saved is empty or gone"),
            (false, true) => Some("a database that it had saved is damaged"),
            (false, false) => None,
        };
        let gone = is_gone.then_some((IMAGE_MISSING, 1));
        let reported = lost.map(|lost| {
            let words = format!("{lost}: what is missing is asked of the others");
            let (at_ns, observer, what) = (now_ns, me.0, What::Noted { words });
            FromComponent::Note(Noted { at_ns, observer, node: me.0, what })
        });
        Ok(Self {
            machine,
            timing,
            may_manage,
            flag,
            overseer,
            kept,
            saved,
            seen: vec![[0; PULSE_LEN]; cluster.nodes],
            look_every_ns,
            look_at_ns: now_ns,
            idle_until_ns: 0,
            reported: vec![Standing::default(); cluster.nodes],
            reported_view: ViewNumber::default(),
            past_told: false,
            script,
            votes: Votes::new(cluster, me, voter, kept_votes),
            fence_at_ns: u64::MAX,
            words: reported.into_iter().collect(),
            unread: early.into_iter().chain(gone).collect(),
        })
    }

    /// Handles pulses and deadlines; returns what the supervisor must be sent.
    pub(super) fn step(
        &mut self,
        now_ns: u64,
        timers: Timers,
        ground: &mut Ground<'_>,
    ) -> Result<Vec<FromComponent>, NodeError> {
        self.drain(now_ns, ground)?;
        if now_ns >= self.look_at_ns {
            self.look_at_ns = now_ns + self.look_every_ns;
            self.look(now_ns, ground)?;
            if self.overseer.handle_time(now_ns, self.flag.supervision()) {
                self.machine.handle_supervisor_hung(Instant(now_ns));
                self.drain(now_ns, ground)?;
            }
            self.tell_standings();
            self.tell_past();
        }
        if now_ns >= self.fence_at_ns {
            self.fence_at_ns = u64::MAX;
            for (node, boot) in self.machine.unfenced().collect::<Vec<_>>() {
                self.fence(now_ns, node, boot, ground);
            }
            self.drain(now_ns, ground)?;
        }
        let is_due = self.machine.poll_timeout().is_some_and(|due| due.0 <= now_ns);
        if is_due && timers == Timers::Running {
            self.machine.handle_timeout(Instant(now_ns));
            self.drain(now_ns, ground)?;
        }
        if timers == Timers::Running {
            self.agree_on_script(now_ns, ground)?;
            self.run_script(now_ns, ground)?;
            self.run_votes(now_ns, ground)?;
        }
        self.report_view();
        self.flag.store(self.machine.progress());
        let is_running = timers == Timers::Running;
        self.idle_until_ns = if is_running { self.next_ns(timers) } else { 0 };
        Ok(std::mem::take(&mut self.words))
    }

    /// Whether a step would do nothing: none is due, and no input came since the last one.
    pub(super) const fn is_idle(&self, now_ns: u64) -> bool {
        now_ns < self.idle_until_ns
    }

    /// An input follows: the next step is due.
    pub(super) const fn wake(&mut self) {
        self.idle_until_ns = 0;
    }

    /// When to step again if no input comes before.
    pub(super) fn next_ns(&self, timers: Timers) -> u64 {
        let due = self.machine.poll_timeout().filter(|_| timers == Timers::Running);
        let script = self.script.as_ref().map_or(u64::MAX, Script::next_ns);
        due.map_or(u64::MAX, |due| due.0)
            .min(self.look_at_ns)
            .min(self.fence_at_ns)
            .min(script)
            .min(self.votes.next_ns())
    }

    /// Handles a frame from `from`.
    pub(super) fn handle_frame(
        &mut self,
        now_ns: u64,
        from: Rank,
        bytes: &[u8],
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        let frame = match Frame::decode(bytes) {
            Ok(frame) => frame,
            Err(error) => {
                tracing::debug!(%error, from = from.0, "no frame");
                *self.unread.entry(no_frame(error)).or_default() += 1;
                return Ok(());
            }
        };
        if let Err(reason) = self.machine.handle_message(Instant(now_ns), from, &frame) {
            tracing::debug!(%reason, from = from.0, message = frame.message.name(), "refused");
        }
        self.drain(now_ns, ground)
    }

    /// Handles the loss of `peer` that the transport reports.
    pub(super) fn handle_gone(
        &mut self,
        now_ns: u64,
        peer: Peer,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        self.note(now_ns, Rank(peer.0), What::Gone);
        self.machine.handle_gone(Instant(now_ns), Rank(peer.0));
        self.drain(now_ns, ground)
    }

    /// Handles the loss of the whole node of `peer` that the transport reports.
    pub(super) fn handle_parted(
        &mut self,
        now_ns: u64,
        peer: Peer,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        self.machine.handle_parted(Instant(now_ns), Rank(peer.0));
        self.drain(now_ns, ground)
    }

    /// Has the machine learn an isolation or a release that the supervisor knows.
    pub(super) fn learn(
        &mut self,
        now_ns: u64,
        ground: &mut Ground<'_>,
        fact: impl FnOnce(&mut Machine, Instant),
    ) -> Result<(), NodeError> {
        fact(&mut self.machine, Instant(now_ns));
        self.drain(now_ns, ground)
    }

    /// Handles an operator's order about a node.
    pub(super) fn handle_order(
        &mut self,
        now_ns: u64,
        node: Rank,
        order: NodeOrder,
        ground: &mut Ground<'_>,
    ) -> Result<Outcome, NodeError> {
        let done = match order {
            NodeOrder::Isolate => self.machine.isolate(Instant(now_ns), node),
            NodeOrder::Release => self.machine.release(Instant(now_ns), node),
            NodeOrder::HandOver => self.machine.hand_over(Instant(now_ns), node),
        };
        self.drain(now_ns, ground)?;
        Ok(match done {
            Ok(()) => Outcome::Done,
            Err(Reject::NotManager) => Outcome::Refused(Refused::NotManager),
            Err(_) => Outcome::Refused(Refused::Unfit { node: node.0 }),
        })
    }

    /// Reports isolations and releases to the supervisor, which admits peers.
    fn tell_standings(&mut self) {
        for (rank, reported) in (0..).map(Rank).zip(&mut self.reported) {
            let standing = self.machine.database().standing(rank);
            let before = std::mem::replace(reported, standing);
            let node = rank.0;
            if let Some(Incarnation(boot)) = standing.isolation()
                && before.isolation() != standing.isolation()
            {
                self.words.push(FromComponent::Isolated { node, boot });
            }
            let Incarnation(boot) = standing.released();
            if before.released().0 < boot {
                self.words.push(FromComponent::Released { node, boot });
            }
        }
    }

    /// Reports once to the supervisor what earlier incarnations have saved about its tasks.
    fn tell_past(&mut self) {
        if self.past_told {
            return;
        }
        let Some(past) = self.machine.past() else { return };
        let tasks = past.iter().map(|task| (task.status, task.errors, task.answered)).collect();
        self.words.push(FromComponent::Past { tasks });
        self.past_told = true;
    }

    /// Records a change at one of the node's own tasks.
    pub(super) fn handle_change(
        &mut self,
        now_ns: u64,
        change: TaskChange,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        let change = match change {
            TaskChange::Status { task, status } => Change::TaskStatus { task, status },
            TaskChange::Phase { task, phase } => Change::TaskPhase { task, phase },
            TaskChange::Error { task, kind, at_us, last_us, .. } => {
                let own = self.machine.database().record(self.machine.me());
                let alpha =
                    own.and_then(|own| self.script.as_ref()?.alpha(own, task, (last_us, at_us)));
                Change::TaskError { task, kind, at_us, alpha }
            }
            TaskChange::Answered { task, mark, judged, is_cleared } => {
                let judged = judged.into();
                Change::TaskAnswered { task, mark, judged, is_cleared }
            }
        };
        if let Err(reason) = self.machine.handle_change(Instant(now_ns), change) {
            tracing::debug!(%reason, ?change, "a change of a task is refused");
        }
        self.drain(now_ns, ground)
    }

    /// The part that this component takes in the net.
    pub(super) fn role(&self) -> Role {
        self.machine.role()
    }

    /// The term that is known.
    pub(super) fn term(&self) -> Term {
        self.machine.term()
    }

    /// Hands every new heartbeat to the machine.
    fn look(&mut self, now_ns: u64, ground: &mut Ground<'_>) -> Result<(), NodeError> {
        for index in 0..self.seen.len() {
            let peer = Peer(u16::try_from(index).unwrap_or(u16::MAX));
            let Some(copy) = ground.endpoint.pulse_of(peer) else { continue };
            if copy == self.seen[index] {
                continue;
            }
            let beat = Beat::decode(&copy, |bytes| ground.endpoint.crc32c(bytes));
            // A torn one is read again.
            let Some(beat) = beat else { continue };
            self.seen[index] = copy;
            let from = Rank(peer.0);
            if let Err(reason) = self.machine.handle_heartbeat(Instant(now_ns), from, &beat) {
                tracing::debug!(%reason, from = from.0, "a heartbeat is refused");
            }
            self.drain(now_ns, ground)?;
        }
        Ok(())
    }

    /// Carries out the machine's outputs until there are none. The database is saved before any
    /// other node learns of its content.
    fn drain(&mut self, now_ns: u64, ground: &mut Ground<'_>) -> Result<(), NodeError> {
        let nodes = u16::try_from(self.seen.len()).unwrap_or(u16::MAX);
        loop {
            self.saved.save(nodes, self.machine.database())?;
            let mut fences = Vec::new();
            while let Some(output) = self.machine.poll_output() {
                match output {
                    Output::Fence { node, boot } => fences.push((node, boot)),
                    other => self.carry_out(now_ns, other, ground)?,
                }
            }
            if fences.is_empty() {
                return Ok(());
            }
            for (node, boot) in fences {
                self.fence(now_ns, node, boot, ground);
            }
        }
    }

    fn carry_out(
        &mut self,
        now_ns: u64,
        output: Output,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        match output {
            Output::Send { to, seat, frame } => {
                let bytes: [u8; FRAME_LEN] = frame.encode();
                match seat {
                    Seat::Component => {
                        for rank in to.iter() {
                            // A failed send is a lost frame, as any may be.
                            let _ = ground.endpoint.send(Peer(rank.0), FRAME, &bytes);
                        }
                    }
                    Seat::ImAliveTask => {
                        let to = to.iter().map(|rank| rank.0).collect();
                        let bytes = Payload(bytes.to_vec());
                        self.words.push(FromComponent::Letters { to, bytes });
                    }
                }
            }
            Output::Beat { to, beat } => {
                let cell = beat.encode(|bytes| ground.endpoint.crc32c(bytes));
                let _ = ground.endpoint.pulse(Peer(to.0), &cell);
            }
            Output::Keep(term) => self.kept.keep(term)?,
            Output::Fence { .. } | Output::Spawn { .. } => {}
            Output::Reset { node, boot } => {
                self.words.push(FromComponent::Reset { node: node.0, boot: boot.0 });
            }
            Output::Task { task, action, order } => {
                self.words.push(script::guard_word(task, action, order));
            }
            Output::Vote { from, incarnation, message } => {
                self.handle_vote(now_ns, (from, incarnation), &message)?;
            }
            Output::Verdict(explanation) => {
                self.note(now_ns, explanation.node, What::verdict(&explanation));
            }
            Output::Tell(news) => {
                let (node, what) = What::news(news, self.machine.me());
                self.note(now_ns, node, what);
                if news == dirnet::News::Excluded {
                    // Isolated, it waits for its release instead of the next boot.
                    self.tell_standings();
                    self.words.push(FromComponent::Excluded);
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, at_ns: u64, node: Rank, what: What) {
        let observer = self.machine.me().0;
        self.words.push(FromComponent::Note(Noted { at_ns, observer, node: node.0, what }));
    }

    /// Fences the incarnations of `node` up to `boot`: here, and with the supervisor, which admits
    /// peers. Once that holds, no broadcast waits for it.
    fn fence(&mut self, now_ns: u64, node: Rank, boot: Incarnation, ground: &mut Ground<'_>) {
        let peer = Peer(node.0);
        let lives = ground.boots.get(peer.index()).copied().unwrap_or_default();
        if lives <= boot
            && let Some(expected) = ground.expected.get_mut(peer.index())
        {
            // Its end of the pair may still be on its way.
            *expected = None;
        }
        let is_let_in = ground.endpoint.admitted().contains(peer);
        if is_let_in && lives <= boot {
            ground.membership.handle_fenced(peer);
            if ground.endpoint.fence(peer).is_err() {
                return self.fence_later(now_ns);
            }
        }
        if leavers::remove(ground.endpoint, self.machine.term(), (peer, boot)).is_err() {
            return self.fence_later(now_ns);
        }
        let Term { epoch, claimant: Rank(claimant) } = self.machine.term();
        let is_new = ground.removals.admits(peer, boot);
        ground.removals.handle_fenced(peer, boot);
        // An admission that is under way is refused here: no view waits for the supervisor.
        self.machine.handle_carried_out(node, boot);
        self.words.push(FromComponent::Removed { peer: node.0, boot: boot.0, epoch, claimant });
        // A removal that waits for the fence of another member is repeated.
        if is_new {
            self.note(now_ns, node, What::Fenced { boot: boot.0 });
        }
    }

    /// The supervisor knows of that removal as well: it holds for the whole node, and may be
    /// acknowledged to the manager.
    pub(super) fn handle_acknowledged(
        &mut self,
        now_ns: u64,
        node: Rank,
        boot: Incarnation,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        self.machine.handle_fenced(Instant(now_ns), node, boot);
        self.drain(now_ns, ground)
    }

    fn fence_later(&mut self, now_ns: u64) {
        self.fence_at_ns = self.fence_at_ns.min(now_ns + FENCE_EVERY_NS);
    }
}

/// Why a message is not a frame, for people and scripts.
pub(in crate::node) const fn no_frame(error: FrameError) -> &'static str {
    match error {
        FrameError::Length => "frame-length",
        FrameError::Kind(_) => "frame-kind",
        FrameError::Field => "frame-field",
        FrameError::Padding => "frame-padding",
    }
}

mod config;
mod reload;
mod script;
mod status;
mod views;
mod votes;

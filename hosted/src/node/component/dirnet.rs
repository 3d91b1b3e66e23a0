//! The component's side of the DIR net: core's [`Member`] over the endpoint of this process.
//!
//! ```text
//!   pulses, lanes, clock ─┐             ┌─▶ pulses, lanes, fences    by core, over the endpoint
//!   supervisor ───────────┼─▶ Member ───┼─▶ frames                   to I'm-Alive Tasks
//!   clients ──────────────┘             └─▶ messages, notes          to the supervisor
//! ```

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use weft_core::dirnet::{
    self as dirnet, Change, Component, ComponentIncarnation, FRAME_LEN, FrameError, Kept, Output,
    Progress, Reject, Role, Standing, TASKS_MAX, Term, ViewNumber,
};
use weft_core::endpoint::{Boots, Member, MemberOutput, Plan};
use weft_core::ids::{Incarnation, Peer, Rank};
use weft_core::time::Instant;

pub(in crate::node) use self::config::{config, profile};
use self::script::ClusterScript;
use self::votes::Votes;
use super::Identity;
use super::overseer::Overseer;
use crate::cluster::Cluster;
use crate::node::chronicle::{Entry as Noted, What};
use crate::node::control::{NodeOrder, Outcome, Payload, Refused, TimingStatus};
use crate::node::faults::Timers;
use crate::node::kept::{KeptTerm, KeptVotes};
use crate::node::link::{FromComponent, TaskChange};
use crate::node::membership::Greetings;
use crate::node::saved::SavedDatabase;
use crate::node::{NodeEndpoint, NodeError, PEERS};
use crate::shm::Flag;

/// The database that an earlier component has saved is missing.
const IMAGE_MISSING: &str = "image-missing";

/// A frame was dropped unread: its component has not entered the DIR net yet.
pub(in crate::node) const NOT_ENTERED: &str = "not-entered";

pub(super) type Machine = Component<PEERS, TASKS_MAX>;

/// The DIR net at this component.
pub(super) struct ComponentDirNet {
    member: Box<Member<PEERS, TASKS_MAX>>,
    timing: TimingStatus,
    /// Whether this node may be manager.
    may_manage: bool,
    flag: Flag,
    overseer: Overseer,
    kept: KeptTerm,
    saved: SavedDatabase,
    nodes: u16,
    look_every_ns: u64,
    /// Before it no step is due, unless an input comes.
    idle_until_ns: u64,
    /// For each node, the standing that was last reported to the supervisor.
    reported: Vec<Standing>,
    reported_view: ViewNumber,
    /// Whether the supervisor has the tasks' history of earlier incarnations from the database.
    past_told: bool,
    words: Vec<FromComponent>,
    /// The recovery script, if the cluster has one.
    script: Option<ClusterScript>,
    votes: Votes,
    /// How many frames did not reach the machine, by reason.
    unread: BTreeMap<&'static str, u32>,
}

/// What entering the net takes, besides an incarnation.
pub(super) struct NetEntry {
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

impl NetEntry {
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
    pub(super) membership: &'a mut Greetings,
    pub(super) boots: &'a mut Boots<PEERS>,
    /// The incarnations whose end of a pair is awaited; over verbs only.
    pub(super) expected: &'a mut [Option<Incarnation>],
}

impl Ground<'_> {
    /// Drops what is under way with the boots of `node` up to `boot`, which are fenced next.
    fn drop_pairs(&mut self, node: Rank, boot: Incarnation) {
        let peer = Peer(node.0);
        if self.boots.admitted(peer) > boot {
            return;
        }
        if let Some(expected) = self.expected.get_mut(peer.index()) {
            // Its end of the pair may still be on its way.
            *expected = None;
        }
        if self.endpoint.admitted().contains(peer) {
            self.membership.handle_fenced(peer);
        }
    }
}

impl super::Component {
    /// Hands the DIR net, once there is one, what it acts on.
    pub(super) fn with_dirnet(
        &mut self,
        act: impl FnOnce(&mut ComponentDirNet, &mut Ground<'_>) -> Result<(), NodeError>,
    ) -> Result<(), NodeError> {
        let Some(dirnet) = &mut self.dirnet else { return Ok(()) };
        dirnet.wake();
        let mut ground = Ground {
            endpoint: &mut self.endpoint,
            membership: &mut self.membership,
            boots: &mut self.boots,
            expected: &mut self.expected,
        };
        act(dirnet, &mut ground)
    }
}

impl ComponentDirNet {
    /// Enters the net as the component `identity`. Step it before it is handed any input.
    pub(super) fn enter(
        (cluster, plan): (&Cluster, &Plan),
        identity: Identity,
        entry: NetEntry,
        now_ns: u64,
    ) -> Result<Self, NodeError> {
        let Identity { me: Peer(me), component, removed, tasks, .. } = identity;
        let me = Rank(me);
        let config = config(cluster, me)?;
        let timing = TimingStatus::new(cluster.dirnet.profile.as_str(), config.profile().timing());
        let overseer = Overseer::new(now_ns, config.profile(), entry.flag.supervision());
        let may_manage = config.may_manage(me);
        let (profile, look_every_ns) = (*config.profile(), config.profile().timing().send.0 / 8);
        let NetEntry { flag, kept, term, votes, saved, snapshots, early, .. } = entry;
        let (kept_votes, voter) = KeptVotes::adopt(votes, component.boot)?;
        let early = (early > 0).then_some((NOT_ENTERED, early));
        let [newest, before] = &snapshots;
        let past = Kept { term, snapshots: [newest, before], removed };
        let mut machine = Machine::new(Instant(now_ns), config, component, tasks, past);
        let script = ClusterScript::new(cluster, me)?;
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
            member: Box::new(Member::new(Instant(now_ns), machine, profile, plan)),
            timing,
            may_manage,
            flag,
            overseer,
            kept,
            saved,
            nodes: u16::try_from(cluster.nodes).unwrap_or(u16::MAX),
            look_every_ns,
            idle_until_ns: 0,
            reported: vec![Standing::default(); cluster.nodes],
            reported_view: ViewNumber::default(),
            past_told: false,
            script,
            votes: Votes::new(cluster, me, voter, kept_votes),
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
        let now = Instant(now_ns);
        self.drain(now_ns, ground)?;
        if now >= self.member.next_look() {
            while self.member.look(ground.endpoint, now) {
                self.drain(now_ns, ground)?;
            }
            if self.overseer.handle_time(now_ns, self.flag.supervision()) {
                self.member.machine_mut().handle_supervisor_hung(now);
                self.drain(now_ns, ground)?;
            }
            self.tell_standings();
            self.tell_past();
        }
        if timers == Timers::Running {
            self.member.handle_timeout(now);
            self.drain(now_ns, ground)?;
        }
        if timers == Timers::Running {
            self.agree_on_script(now_ns, ground)?;
            self.run_script(now_ns, ground)?;
            self.run_votes(now_ns, ground)?;
        }
        self.report_view();
        self.flag.store(self.member.machine().progress());
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
        let due = match timers {
            Timers::Running => self.member.poll_timeout(),
            _ => self.member.next_look(),
        };
        let script = self.script.as_ref().map_or(u64::MAX, ClusterScript::next_ns);
        due.0.min(script).min(self.votes.next_ns())
    }

    /// Handles a frame from `from`.
    pub(super) fn handle_frame(
        &mut self,
        now_ns: u64,
        from: Rank,
        bytes: &[u8],
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        if let Err(error) = self.member.handle_frame(Instant(now_ns), from, bytes) {
            tracing::debug!(%error, from = from.0, "no frame");
            *self.unread.entry(no_frame(error)).or_default() += 1;
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
        self.member.machine_mut().handle_gone(Instant(now_ns), Rank(peer.0));
        self.drain(now_ns, ground)
    }

    /// Handles the loss of the whole node of `peer` that the transport reports.
    pub(super) fn handle_parted(
        &mut self,
        now_ns: u64,
        peer: Peer,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        self.member.machine_mut().handle_parted(Instant(now_ns), Rank(peer.0));
        self.drain(now_ns, ground)
    }

    /// Has the machine learn an isolation or a release that the supervisor knows.
    pub(super) fn learn(
        &mut self,
        now_ns: u64,
        ground: &mut Ground<'_>,
        fact: impl FnOnce(&mut Machine, Instant),
    ) -> Result<(), NodeError> {
        fact(self.member.machine_mut(), Instant(now_ns));
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
            NodeOrder::Isolate => self.member.machine_mut().isolate(Instant(now_ns), node),
            NodeOrder::Release => self.member.machine_mut().release(Instant(now_ns), node),
            NodeOrder::HandOver => self.member.machine_mut().hand_over(Instant(now_ns), node),
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
            let standing = self.member.machine().database().standing(rank);
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
        let Some(past) = self.member.machine().past() else { return };
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
                let own = self.member.machine().database().record(self.member.machine().me());
                let alpha =
                    own.and_then(|own| self.script.as_ref()?.alpha(own, task, (last_us, at_us)));
                Change::TaskError { task, kind, at_us, alpha }
            }
            TaskChange::Answered { task, mark, judged, is_cleared } => {
                let judged = judged.into();
                Change::TaskAnswered { task, mark, judged, is_cleared }
            }
        };
        if let Err(reason) = self.member.machine_mut().handle_change(Instant(now_ns), change) {
            tracing::debug!(%reason, ?change, "a change of a task is refused");
        }
        self.drain(now_ns, ground)
    }

    /// The part that this component takes in the net.
    pub(super) fn role(&self) -> Role {
        self.member.machine().role()
    }

    /// The term that is known.
    pub(super) fn term(&self) -> Term {
        self.member.machine().term()
    }

    /// Carries out the member's outputs until there are none.
    fn drain(&mut self, now_ns: u64, ground: &mut Ground<'_>) -> Result<(), NodeError> {
        loop {
            let Self { member, saved, nodes, .. } = self;
            let save = |database: &_| saved.save(*nodes, database);
            let (endpoint, boots) = (&mut *ground.endpoint, &mut *ground.boots);
            match member.poll_output(endpoint, boots, save)? {
                None => return Ok(()),
                Some(MemberOutput::Order(order)) => self.carry_out(now_ns, order)?,
                Some(MemberOutput::Fencing { node, boot }) => ground.drop_pairs(node, boot),
                Some(MemberOutput::Removed { node, boot, is_new }) => {
                    self.report_removal(node, boot);
                    if is_new {
                        self.note(now_ns, node, What::Fenced { boot: boot.0 });
                    }
                }
            }
        }
    }

    /// Reports a removal to the supervisor, which admits peers.
    fn report_removal(&mut self, node: Rank, boot: Incarnation) {
        let Term { epoch, claimant: Rank(claimant) } = self.member.machine().term();
        let (peer, boot) = (node.0, boot.0);
        self.words.push(FromComponent::Removed { peer, boot, epoch, claimant });
    }

    fn carry_out(&mut self, now_ns: u64, output: Output) -> Result<(), NodeError> {
        match output {
            // Those to components are the member's.
            Output::Send { to, frame, .. } => {
                let to = to.iter().map(|rank| rank.0).collect();
                let bytes: [u8; FRAME_LEN] = frame.encode();
                let bytes = Payload(bytes.to_vec());
                self.words.push(FromComponent::Letters { to, bytes });
            }
            Output::Keep(term) => self.kept.keep(term)?,
            Output::Beat { .. } | Output::Fence { .. } | Output::Spawn { .. } => {}
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
                let (node, what) = What::news(news, self.member.machine().me());
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
        let observer = self.member.machine().me().0;
        self.words.push(FromComponent::Note(Noted { at_ns, observer, node: node.0, what }));
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
        self.member.handle_acknowledged(Instant(now_ns), node, boot);
        self.drain(now_ns, ground)
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

//! The processes of a member: its component, and its supervisor with the I'm-Alive Task.

use std::cell::RefMut;
use std::convert::Infallible;
use std::hash::{Hash, Hasher};

use weft_core::dirnet::{
    Component as Machine, ComponentIncarnation, FRAME_LEN, Frame, ImAliveTask, Members as Nodes,
    News, Output, Post, Role, Seat as Endpoint, Spawned, TASKS_MAX, Term, ViewNumber,
};
use weft_core::endpoint::{Boots, Member, MemberOutput};
use weft_core::fabric::Fabric;
use weft_core::ids::{Incarnation, Peer, Rank};
use weft_core::time::Instant;

use super::files::NodeFiles;
use super::{LANE_LEN, MemberEvent, Members, NODES};
use crate::endpoint::{self as endpoints, EndpointTurn, PEERS};
use crate::protocol::{MembershipNews, Seat};
use crate::world::World;

/// How many rounds pass between two notices that repeat.
const REPEAT_EVERY: u32 = 64;
/// One in so many rounds, a manager isolates a node, and releases one.
const ISOLATE_IN: u64 = 4_000;
const RELEASE_IN: u64 = 40;

/// How often a fence by decision fails, at most: the endpoint tries again every 100 ms.
const REFUSALS_MAX: u64 = 5;

const _: () = assert!(LANE_LEN as usize >= FRAME_LEN);

/// A message between processes that is not the endpoint's.
#[derive(Clone, Copy, Debug)]
enum SideMessage {
    /// A frame of the DIR net, to or from a task.
    Frame([u8; FRAME_LEN]),
    /// To a supervisor: the boots of its node up to this one are over.
    Over(Incarnation),
    /// To a component: its node is released from isolations up to this one.
    Released(Incarnation),
    /// To a component: its supervisor ends it, unless its generation is this one or later.
    End(u32),
}

impl SideMessage {
    fn encode(self) -> Vec<u8> {
        let (kind, rest) = match self {
            Self::Frame(bytes) => (0, bytes.to_vec()),
            Self::Over(Incarnation(boot)) => (1, boot.to_le_bytes().to_vec()),
            Self::Released(Incarnation(boot)) => (2, boot.to_le_bytes().to_vec()),
            Self::End(generation) => (3, generation.to_le_bytes().to_vec()),
        };
        [vec![kind], rest].concat()
    }

    fn decode(bytes: &[u8]) -> Self {
        let (kind, rest) = bytes.split_first().expect("a kind");
        let number = || u32::from_le_bytes(rest.try_into().expect("a number"));
        match kind {
            0 => Self::Frame(rest.try_into().expect("a frame")),
            1 => Self::Over(Incarnation(number())),
            2 => Self::Released(Incarnation(number())),
            _ => Self::End(number()),
        }
    }
}

/// A process.
#[derive(Clone, Debug)]
pub enum MemberProcess {
    /// Of a component.
    Component(Box<ComponentPeer>),
    /// Of a component without a supervisor: it ends.
    Orphan,
    /// Of a supervisor.
    Supervisor(Box<SupervisorPeer>),
}

impl Hash for MemberProcess {
    /// Members are not explored: no state is distinguished by its nodes.
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The process of a component.
#[derive(Clone, Debug)]
pub struct ComponentPeer {
    inner: endpoints::EndpointNode,
    member: Member<NODES, TASKS_MAX>,
    boots: Boots<PEERS>,
    /// For each node that is refused: the boot that is over.
    refused: Vec<Option<Incarnation>>,
    /// Removals that its supervisor does not know of yet.
    unacknowledged: Vec<(Rank, Incarnation)>,
    /// Its own boot is over.
    is_over: bool,
    shown: (Term, Role, ViewNumber),
    rounds: u32,
}

/// The process of a supervisor.
#[derive(Clone, Debug)]
pub struct SupervisorPeer {
    task: ImAliveTask,
    boot: Incarnation,
    /// The generation that it was ordered to start.
    spawning: Option<u32>,
}

impl MemberProcess {
    pub(super) fn start(run: &Members, seat: &mut Seat<'_, MemberEvent>) -> Self {
        let (node, is_component) = run.place(seat.me());
        if is_component {
            let supervisor = run.supervisor(node);
            if !seat.fabric.world().is_alive(supervisor) {
                return Self::Orphan;
            }
            return Self::Component(Box::new(ComponentPeer::start(run, node, seat)));
        }
        let boot = seat.incarnation;
        run.files_of(node).begin_boot();
        let others = (0..run.nodes).map(Rank).filter(|other| *other != node);
        let others: Nodes = others.collect();
        let post = Post { me: node, boot, others, profile: run.profile() };
        let task = ImAliveTask::new(post);
        Self::Supervisor(Box::new(SupervisorPeer { task, boot, spawning: None }))
    }

    pub(super) fn component(&self) -> Option<&ComponentPeer> {
        match self {
            Self::Component(component) => Some(component),
            Self::Orphan | Self::Supervisor(_) => None,
        }
    }

    pub(super) fn step(&mut self, run: &Members, seat: &mut Seat<'_, MemberEvent>) {
        match self {
            Self::Component(component) => component.step(run, seat),
            Self::Orphan => seat.exit(),
            Self::Supervisor(supervisor) => supervisor.step(run, seat),
        }
    }

    pub(super) fn handle_membership(
        &mut self,
        run: &Members,
        seat: &mut Seat<'_, MemberEvent>,
        change: MembershipNews,
    ) {
        let (MembershipNews::Ended(peer, _) | MembershipNews::Began(peer, _)) = change;
        let (node, is_component) = run.place(peer);
        if !is_component {
            return;
        }
        match (self, change) {
            (Self::Component(it), MembershipNews::Ended(..)) => it.handle_ended(run, seat, node),
            (Self::Component(it), MembershipNews::Began(_, incarnation)) => {
                it.handle_began(run, seat, (node, incarnation));
            }
            (Self::Supervisor(it), MembershipNews::Ended(..)) if it.is_of(run, seat.me(), node) => {
                it.task.handle_ended(seat.now);
                it.drain(run, seat);
            }
            (Self::Orphan | Self::Supervisor(_), _) => {}
        }
    }
}

impl Members {
    fn files_of(&self, Rank(node): Rank) -> RefMut<'_, NodeFiles> {
        RefMut::map(self.files.borrow_mut(), |files| &mut files[usize::from(node)])
    }
}

/// Whether nothing that the process does has any effect.
fn is_dead(seat: &Seat<'_, MemberEvent>) -> bool {
    seat.fabric.memory().fuse.is_burnt()
}

fn post(world: &mut World, from: Peer, to: Peer, notice: SideMessage) {
    world.send_datagram(from, to, &notice.encode());
}

impl ComponentPeer {
    fn start(run: &Members, node: Rank, seat: &mut Seat<'_, MemberEvent>) -> Self {
        let now = seat.now;
        let boot = seat.fabric.world().incarnation(run.supervisor(node));
        let is_next_boot = boot > run.files_of(node).incarnation().boot;
        if is_next_boot && seat.draw(4) == 0 {
            run.files_of(node).lose_newest();
        }
        let mut files = run.files_of(node);
        let incarnation = files.begin_component(seat.incarnation, boot);
        let machine = Machine::new(now, run.config(node), incarnation, 1, files.kept());
        drop(files);
        let shown = (machine.term(), machine.role(), machine.view().number());
        let mut component = Self {
            inner: endpoints::EndpointNode::new(run.endpoints.plan(), seat),
            member: Member::new(now, machine, run.profile(), run.endpoints.plan()),
            boots: Boots::default(),
            refused: vec![None; usize::from(run.nodes)],
            unacknowledged: Vec::new(),
            is_over: false,
            shown,
            rounds: 0,
        };
        component.act(run, seat, |_, _, _| {});
        component
    }

    pub(super) const fn endpoint(&self) -> &endpoints::EndpointNode {
        &self.inner
    }

    pub(super) const fn machine(&self) -> &Machine<NODES, TASKS_MAX> {
        self.member.machine()
    }

    /// Lets the member act on its endpoint, and carries out what follows.
    fn act(
        &mut self,
        run: &Members,
        seat: &mut Seat<'_, MemberEvent>,
        input: impl FnOnce(
            &mut Member<NODES, TASKS_MAX>,
            &mut EndpointTurn<'_, '_, MemberEvent>,
            Instant,
        ),
    ) {
        let now = seat.now;
        let Self { inner, member, .. } = self;
        let mut turn = inner.turn(seat, MemberEvent::Endpoint);
        input(member, &mut turn, now);
        drop(turn);
        self.drain(run, seat);
    }

    fn drain(&mut self, run: &Members, seat: &mut Seat<'_, MemberEvent>) {
        let me = self.machine().me();
        loop {
            let Self { inner, member, boots, .. } = self;
            let mut turn = inner.turn(seat, MemberEvent::Endpoint);
            let acts = !turn.is_dead();
            let save = |database: &_| {
                if acts {
                    run.files_of(me).save(run.nodes, database);
                }
                Ok::<(), Infallible>(())
            };
            let output = member.poll_output(turn.endpoint(), boots, save);
            let Ok(Some(output)) = output else { break };
            match output {
                MemberOutput::Fencing { node, boot } => {
                    if boots.admitted(Peer(node.0)) <= boot {
                        turn.begin_fence(Peer(node.0), REFUSALS_MAX);
                    }
                }
                MemberOutput::Removed { node, boot, .. } => {
                    let peer = Peer(node.0);
                    let is_theirs = boots.admitted(peer) <= boot;
                    let reaches = is_theirs && turn.endpoint().admitted().contains(peer);
                    turn.record(MemberEvent::Removed(node, boot, reaches));
                    if is_theirs {
                        turn.finish_fence(peer);
                    }
                    self.unacknowledged.push((node, boot));
                }
                MemberOutput::Order(order) => {
                    drop(turn);
                    self.carry_out(run, seat, order);
                }
            }
        }
        if !is_dead(seat) {
            run.files_of(me).progress = self.machine().progress();
        }
        self.show(seat);
    }

    /// Records term, role and view if they have changed.
    fn show(&mut self, seat: &mut Seat<'_, MemberEvent>) {
        let machine = self.member.machine();
        let shows = (machine.term(), machine.role(), machine.view().number());
        if std::mem::replace(&mut self.shown, shows) != shows {
            let (of, view) = (machine.incarnation(), *machine.view());
            seat.record(MemberEvent::State(of, shows.0, shows.1, view));
        }
    }

    fn carry_out(&mut self, run: &Members, seat: &mut Seat<'_, MemberEvent>, order: Output) {
        let (me, own) = (self.machine().me(), seat.me());
        match order {
            Output::Send { to, seat: Endpoint::ImAliveTask, frame } => {
                let world = seat.fabric.world();
                for node in to.iter() {
                    post(world, own, run.supervisor(node), SideMessage::Frame(frame.encode()));
                }
            }
            Output::Keep(term) => {
                if !is_dead(seat) {
                    run.files_of(me).keep(term);
                }
            }
            Output::Reset { node, boot } => {
                let database = self.machine().database();
                let members = (0..run.nodes).map(Rank).filter(|member| *member != node);
                let members = members.map(|member| (member, database.standing(member)));
                let members = members.filter(|(_, standing)| standing.is_up());
                let members = members.map(|(at, standing)| (at, standing.incarnation.boot));
                seat.record(MemberEvent::Reset(node, boot, members.collect()));
                post(seat.fabric.world(), own, run.supervisor(node), SideMessage::Over(boot));
            }
            Output::Tell(News::Excluded) => self.is_over = true,
            Output::Send { .. } | Output::Beat { .. } | Output::Fence { .. } => {
                unreachable!("the member does that")
            }
            Output::Spawn { .. } => unreachable!("of a task"),
            Output::Tell(_) | Output::Verdict(_) | Output::Task { .. } | Output::Vote { .. } => {}
        }
    }

    /// The cluster has found that the admitted incarnation of `node` has ended.
    fn handle_ended(&mut self, run: &Members, seat: &mut Seat<'_, MemberEvent>, node: Rank) {
        self.refused[usize::from(node.0)] = None;
        self.act(run, seat, |member, turn, now| {
            turn.fence(Peer(node.0));
            member.machine_mut().handle_gone(now, node);
        });
    }

    /// That incarnation of `node` wants to be admitted.
    fn handle_began(
        &mut self,
        run: &Members,
        seat: &mut Seat<'_, MemberEvent>,
        (node, incarnation): (Rank, Incarnation),
    ) {
        let (me, peer) = (self.machine().me(), Peer(node.0));
        // If it is not the last one any more, the next one comes.
        let Some(boot) = run.files_of(node).boot_of(incarnation) else { return };
        let released = run.files_of(node).released;
        if self.machine().database().standing(node).isolation().is_some_and(|it| it <= released) {
            // As its supervisor contradicts one that has not learned of the release.
            self.act(run, seat, |member, _, now| {
                member.machine_mut().learn_release(now, node, released);
            });
        }
        let standing = self.machine().database().standing(node);
        let is_admitted = self.boots.admits(peer, boot) && run.files_of(me).admits(node, boot);
        if !is_admitted || standing.isolation().is_some() {
            self.refused[usize::from(node.0)] = Some(boot);
            post(seat.fabric.world(), Peer(me.0), run.supervisor(node), SideMessage::Over(boot));
            return;
        }
        self.refused[usize::from(node.0)] = None;
        if standing.released() > Incarnation(0) {
            let notice = SideMessage::Released(standing.released());
            post(seat.fabric.world(), Peer(me.0), peer, notice);
        }
        let Self { inner, boots, .. } = self;
        let mut turn = inner.turn(seat, MemberEvent::Endpoint);
        // Behind the fence of the one before, which may be removed meanwhile.
        if turn.admit((peer, incarnation)) {
            boots.handle_admitted(peer, boot);
            turn.record(MemberEvent::Admitted(node, boot));
        }
    }

    fn step(&mut self, run: &Members, seat: &mut Seat<'_, MemberEvent>) {
        self.rounds += 1;
        let mut frames = Vec::new();
        let mut turn = self.inner.turn(seat, MemberEvent::Endpoint);
        turn.retry_fences();
        let mut fenced: Vec<_> = std::iter::from_fn(|| turn.take_awaited()).collect();
        drop(turn);
        for (Peer(node), incarnation) in fenced.drain(..) {
            self.handle_began(run, seat, (Rank(node), incarnation));
        }
        let mut turn = self.inner.turn(seat, MemberEvent::Endpoint);
        turn.step();
        frames.append(&mut turn.take_frames());
        drop(turn);
        for (from, bytes) in frames {
            self.handle_frame(run, seat, Rank(from.0), &bytes);
        }
        while let Some((from, bytes)) = seat.fabric.receive() {
            let (node, _) = run.place(from);
            match SideMessage::decode(&bytes) {
                SideMessage::Frame(bytes) => self.handle_frame(run, seat, node, &bytes),
                SideMessage::Released(boot) => {
                    run.files_of(self.machine().me()).handle_released(boot);
                    let was = self.is_isolated();
                    self.act(run, seat, |member, _, now| {
                        let me = member.machine().me();
                        member.machine_mut().learn_release(now, me, boot);
                    });
                    self.is_over |= was && !self.is_isolated();
                }
                SideMessage::End(generation) => {
                    if self.machine().incarnation().generation < generation {
                        return seat.exit();
                    }
                }
                SideMessage::Over(_) => {}
            }
        }
        let mut is_beating = true;
        while is_beating {
            self.act(run, seat, |member, turn, now| is_beating = member.look(turn.endpoint(), now));
        }
        self.act(run, seat, |member, _, now| member.handle_timeout(now));
        self.acknowledge(run, seat);
        self.operate(run, seat);
        if self.rounds % REPEAT_EVERY == 1 {
            self.notify(run, seat);
        }
    }

    fn is_isolated(&self) -> bool {
        let machine = self.machine();
        machine.database().standing(machine.me()).isolation().is_some()
    }

    fn handle_frame(
        &mut self,
        run: &Members,
        seat: &mut Seat<'_, MemberEvent>,
        from: Rank,
        bytes: &[u8],
    ) {
        let name = |frame: Frame| frame.message.name();
        let (me, name) = (self.machine().me(), Frame::decode(bytes).map_or("no frame", name));
        seat.fabric.world().note(|| format!("component {me} receives {name} of {from}"));
        self.act(run, seat, |member, _, now| {
            member.handle_frame(now, from, bytes).expect("whole frames arrive");
        });
    }

    /// The supervisor learns of removals, later than the component.
    fn acknowledge(&mut self, run: &Members, seat: &mut Seat<'_, MemberEvent>) {
        if self.unacknowledged.is_empty() || seat.draw(4) > 0 || is_dead(seat) {
            return;
        }
        let (node, boot) = self.unacknowledged.remove(0);
        run.files_of(self.machine().me()).acknowledge(node, boot);
        seat.record(MemberEvent::Acknowledged(node, boot));
        self.act(run, seat, |member, _, now| member.handle_acknowledged(now, node, boot));
    }

    /// What an operator orders at the manager.
    fn operate(&mut self, run: &Members, seat: &mut Seat<'_, MemberEvent>) {
        if self.machine().role() != Role::Manager {
            return;
        }
        let node = Rank(seat.draw(u64::from(run.nodes)) as u16);
        if !run.is_calm && seat.draw(ISOLATE_IN) == 0 {
            self.act(run, seat, |member, _, now| {
                // It may be refused, and is drawn again.
                let _ = member.machine_mut().isolate(now, node);
            });
        }
        let is_isolated = self.machine().database().standing(node).isolation().is_some();
        if is_isolated && seat.draw(RELEASE_IN) == 0 {
            self.act(run, seat, |member, _, now| {
                let _ = member.machine_mut().release(now, node);
            });
        }
    }

    /// Repeats what must arrive.
    fn notify(&mut self, run: &Members, seat: &mut Seat<'_, MemberEvent>) {
        let (me, own) = (self.machine().me(), seat.me());
        let world = seat.fabric.world();
        for (node, boot) in (0..).map(Rank).zip(&self.refused) {
            if let Some(boot) = boot {
                post(world, own, run.supervisor(node), SideMessage::Over(*boot));
            }
        }
        if self.is_over {
            let ComponentIncarnation { boot, .. } = self.machine().incarnation();
            post(world, own, run.supervisor(me), SideMessage::Over(boot));
        }
    }
}

impl SupervisorPeer {
    fn is_of(&self, run: &Members, me: Peer, node: Rank) -> bool {
        run.place(me).0 == node
    }

    fn step(&mut self, run: &Members, seat: &mut Seat<'_, MemberEvent>) {
        let (node, _) = run.place(seat.me());
        // No work is ordered at a supervisor.
        seat.is_ordered();
        while let Some((from, bytes)) = seat.fabric.receive() {
            let (from, _) = run.place(from);
            match SideMessage::decode(&bytes) {
                SideMessage::Frame(bytes) => {
                    let frame = Frame::decode(&bytes).expect("whole frames arrive");
                    let progress = run.files_of(node).progress;
                    let handled = self.task.handle_message(seat.now, from, &frame, progress);
                    seat.fabric.world().note(|| {
                        let name = frame.message.name();
                        format!("task {node} receives {name} of {from}: {handled:?}")
                    });
                    self.drain(run, seat);
                }
                SideMessage::Over(boot) if self.boot <= boot => {
                    run.files_of(node).handle_removed(boot);
                    return seat.exit();
                }
                SideMessage::Over(_) | SideMessage::Released(_) | SideMessage::End(_) => {}
            }
        }
        if self.task.poll_timeout().is_some_and(|due| due <= seat.now) {
            let progress = run.files_of(node).progress;
            self.task.handle_timeout(seat.now, progress);
            self.drain(run, seat);
        }
        let component = Peer(node.0);
        if let Some(generation) = self.spawning {
            let is_alive = seat.fabric.world().is_alive(component);
            let last = run.files_of(node).incarnation();
            if is_alive && last.boot == self.boot && last.generation >= generation {
                self.spawning = None;
                self.task.handle_spawned(seat.now, Spawned::Runs);
                self.drain(run, seat);
            } else if is_alive {
                let own = seat.me();
                post(seat.fabric.world(), own, component, SideMessage::End(generation));
            }
        }
    }

    fn drain(&mut self, run: &Members, seat: &mut Seat<'_, MemberEvent>) {
        let own = seat.me();
        while let Some(output) = self.task.poll_output() {
            match output {
                Output::Send { to, seat: Endpoint::Component, frame } => {
                    for to in to.iter() {
                        post(
                            seat.fabric.world(),
                            own,
                            Peer(to.0),
                            SideMessage::Frame(frame.encode()),
                        );
                    }
                }
                Output::Spawn { generation } => {
                    let node = run.place(own).0;
                    seat.fabric.world().note(|| format!("task {node} starts {generation}"));
                    self.spawning = Some(generation);
                    run.files_of(run.place(own).0).wanted = generation;
                }
                _ => {}
            }
        }
    }
}

//! The supervisor process: it is the node.
//!
//! One thread owns all state and acts on one event after another; other threads only turn
//! sockets, signals and the component's end into events. The component is started from that
//! thread, which lives as long as the process, because the kernel ties the child to it.

mod broadcasts;
mod clients;
mod deadlines;
mod event;
mod floor;
mod guarded;
mod infancy;
mod isolation;
mod lives;
mod meet;
mod recovery;
mod requests;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use rustix::process::Signal;
use weft_core::ids::{Incarnation, Peer, PeerSet};

use broadcasts::Broadcasts;
use clients::Clients;
use deadlines::{Deadlines, Timer};
use event::Event;
use infancy::Infancy;
use lives::{Due, Lives};

use super::NodeError;
use super::chronicle::{Chronicle, What};
use super::component::dirnet_profile;
use super::control::{NodeState, Outcome, Refused, Reply};
use super::fabric;
use super::im_alive::{Cut, ImAlive};
use super::incarnation::Incarnations;
use super::intensity::Intensity;
use super::kept;
use super::link::{FromComponent, LINK_FD, Ticket, ToComponent};
use super::reset::ResetNode;
use super::tasks::Tasks;
use crate::bootstrap::{Bootstrap, Courier, Life, Meeting, News, Offer, Tidings};
use crate::clock::now_ns;
use crate::cluster::{Cluster, Form};
use crate::explain::Explain;
use crate::packet::{PacketError, Socket};
use crate::process::{Spawn, Spawned};
use crate::runtime_dir::ClusterDir;
use crate::shm::{Flag, NodeMemory, Segment};
use crate::signing::SecretKey;

/// Events that wait for the main thread.
const EVENTS: usize = 1024;
/// Requests that wait for a component to be ready.
const PARKED_MAX: usize = 1024;
/// The longest sleep of the loop, deadlines or not.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// How long a component may leave the link full.
const LINK_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a peer that could not be fenced is fenced again.
const FENCE_EVERY_NS: u64 = 1_000_000_000;
/// How long a life that work was lost for may take to turn out dead, before it is given up.
const LOSS_GRACE_NS: u64 = 2_000_000_000;
/// How long a component may take to end in order.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs node `rank` of `cluster` in `dir` until it is told to stop. It meets its peers at this
/// host, or over the network when there is a `meeting`; `reset` brings back nodes that the cluster
/// has given up.
///
/// # Errors
/// [`NodeError`]. The component is gone in every case.
pub fn run(
    cluster: &Cluster,
    dir: &ClusterDir,
    rank: u16,
    meeting: Option<Meeting>,
    reset: Box<dyn ResetNode>,
) -> Result<(), NodeError> {
    if usize::from(rank) >= cluster.nodes {
        return Err(NodeError::OutOfRange { rank, nodes: cluster.nodes });
    }
    let (sender, events) = sync_channel(EVENTS);
    event::listen_for_signals(sender.clone())?;
    let mut supervisor = Supervisor::new(cluster, dir, rank, meeting, reset, sender.clone())?;
    event::listen_for_clients(&dir.node_socket(usize::from(rank))?, sender)?;
    supervisor.start_component()?;
    supervisor.tasks.start_all(now_ns());
    let ended = supervisor.run(&events);
    supervisor.tasks.end_all();
    supervisor.stop_component();
    ended
}

/// The component that was started last.
struct Component {
    incarnation: Incarnation,
    spawned: Spawned,
    link: Socket,
    ready: bool,
    /// The time before its I'm-Alive Task watches it.
    infancy: Infancy,
    /// It was told to take part in the DIR net.
    entered: bool,
    /// Its I'm-Alive Task was told to watch it.
    roused: bool,
}

struct Supervisor {
    rank: u16,
    cluster: Cluster,
    memory: Arc<NodeMemory>,
    bootstrap: Box<dyn Bootstrap>,
    incarnations: Incarnations,
    intensity: Intensity,
    events: SyncSender<Event>,
    component: Option<Component>,
    lives: Lives,
    clients: Clients,
    tasks: Tasks,
    reset: Box<dyn ResetNode>,
    /// The first life of this supervisor's component; those that follow are clones of it.
    boot: Option<Incarnation>,
    /// What the components sign broadcasts with, where they are signed.
    signing: Option<SecretKey>,
    /// What components leave behind about broadcasts.
    broadcasts: Broadcasts,
    /// Which component of that life is the present one; one that ends before it has taken part in
    /// the DIR net does not count.
    generation: u32,
    im_alive: Option<ImAlive>,
    courier: Box<dyn Courier>,
    /// The ways that an injected partition has cut.
    cut: Cut,
    cut_off: PeerSet,
    flag: Segment,
    /// The same, mapped.
    progress: Flag,
    term_file: PathBuf,
    database_file: PathBuf,
    chronicle: Chronicle,
    /// Requests that came while no component was ready.
    parked: VecDeque<(Ticket, ToComponent)>,
    restarts: u64,
    given_up: bool,
    /// The cluster has shut this node out, until it is released.
    isolated: bool,
    lost_at_ns: Option<u64>,
    last_recovery_us: Option<u64>,
    /// Peers whose process did not die when it was fenced, and when to try again.
    unfenced: PeerSet,
    fence_again_at_ns: Option<u64>,
    deadlines: Deadlines,
}

/// Whether the node goes on.
#[derive(PartialEq, Eq)]
enum Flow {
    On,
    End,
}

impl Supervisor {
    fn new(
        cluster: &Cluster,
        dir: &ClusterDir,
        rank: u16,
        meeting: Option<Meeting>,
        reset: Box<dyn ResetNode>,
        events: SyncSender<Event>,
    ) -> Result<Self, NodeError> {
        let incarnations = Incarnations::open(&dir.incarnation_file(usize::from(rank)));
        let incarnations = incarnations.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => NodeError::RankTaken { rank },
            _ => NodeError::Incarnation(error),
        })?;
        let plan = super::plan(cluster)?;
        let name = format!("weft-{}-{rank}", cluster.name);
        let memory = Arc::new(NodeMemory::create(&name, plan.layout())?);
        fabric::rehearse(cluster, rank, &plan, &memory)?;
        let tasks = guarded::tasks(cluster, dir, rank, &events)?;
        let sink = events.clone();
        let sink = move |tidings| {
            // The main thread is gone only when the process is about to end.
            let _ = sink.send(Event::Tidings(tidings));
        };
        let me = meet::Member { cluster, dir, rank, layout: plan.layout() };
        let bootstrap = me.begin(&memory, meeting, sink)?;
        let courier = bootstrap.courier();
        let flag = Flag::segment(&format!("{name}-flag"))?;
        let progress = Flag::open(flag.writable_fd())?;
        let signing = (cluster.neb.form == Form::Signed).then(SecretKey::draw).transpose();
        let signing = signing.map_err(NodeError::Signing)?;
        Ok(Self {
            rank,
            memory,
            bootstrap,
            incarnations,
            intensity: Intensity::new(&cluster.restart),
            events,
            component: None,
            lives: Lives::new(cluster.nodes),
            clients: Clients::default(),
            tasks,
            reset,
            boot: None,
            signing,
            broadcasts: Broadcasts::new(cluster.nodes),
            generation: 0,
            im_alive: None,
            courier,
            cut: Cut::default(),
            cut_off: PeerSet::EMPTY,
            flag,
            progress,
            term_file: dir.term_file(usize::from(rank)),
            database_file: dir.database_file(usize::from(rank)),
            chronicle: Chronicle::default(),
            parked: VecDeque::new(),
            restarts: 0,
            given_up: false,
            isolated: false,
            lost_at_ns: None,
            last_recovery_us: None,
            unfenced: PeerSet::EMPTY,
            fence_again_at_ns: None,
            deadlines: Deadlines::new(),
            cluster: cluster.clone(),
        })
    }

    fn run(&mut self, events: &Receiver<Event>) -> Result<(), NodeError> {
        loop {
            let flow = match events.recv_timeout(self.timeout()) {
                Ok(event) => self.handle(event)?,
                Err(RecvTimeoutError::Timeout) => Flow::On,
                Err(RecvTimeoutError::Disconnected) => Flow::End,
            };
            let now_ns = now_ns();
            self.deadlines.pass(now_ns);
            if self.fence_again_at_ns.is_some_and(|at| now_ns >= at) {
                self.fence_again();
            }
            while let Some((peer, life)) = self.lives.handle_time(now_ns) {
                self.act(Some(Due::Fence(peer)));
                self.act(Some(Due::ShutOut(peer, life)));
            }
            self.intensity.handle_time(now_ns);
            self.tasks.handle_time(now_ns);
            self.look_after_infant(now_ns);
            self.enter_dirnet(now_ns);
            self.give_floor(now_ns);
            let status = self.status();
            self.clients.answer_awaits(&status, now_ns);
            if flow == Flow::End {
                return Ok(());
            }
        }
    }

    /// How long the loop may sleep: until the earliest deadline in its wheel.
    fn timeout(&mut self) -> Duration {
        self.deadlines.keep(Timer::Fence, self.fence_again_at_ns);
        self.deadlines.keep(Timer::CutOff, self.lives.next_deadline_ns());
        self.deadlines.keep(Timer::Clients, self.clients.next_deadline_ns());
        self.deadlines.keep(Timer::Floor, self.broadcasts.floor.next_deadline_ns());
        self.deadlines.keep(Timer::Tasks, self.tasks.next_deadline_ns());
        self.deadlines.keep(Timer::Restarts, self.intensity.next_deadline_ns());
        let infant = self.component.as_ref().and_then(|it| it.infancy.next_deadline_ns());
        self.deadlines.keep(Timer::Infancy, infant);
        self.deadlines.sleep(now_ns(), SLEEP_MAX)
    }

    /// Has every peer fenced that could not be fenced before; one that lives again is then let in.
    fn fence_again(&mut self) {
        self.fence_again_at_ns = None;
        let living = self.lives.alive();
        for peer in std::mem::take(&mut self.unfenced).iter() {
            let due = if living.contains(&peer) { Due::Connect(peer) } else { Due::Fence(peer) };
            self.act(Some(due));
        }
    }

    fn handle(&mut self, event: Event) -> Result<Flow, NodeError> {
        match event {
            Event::Stop => return Ok(Flow::End),
            Event::Tidings(tidings) => self.handle_tidings(tidings)?,
            Event::Said { incarnation, word } => self.handle_word(incarnation, word)?,
            Event::Order { boot, order } => self.handle_order(boot, order)?,
            Event::Ended { incarnation } => self.handle_end(incarnation)?,
            Event::TaskEnded(run) => self.tasks.handle_ended(run, now_ns()),
            Event::Came { client, socket } => self.clients.add(client, socket),
            Event::Left { client } => {
                self.clients.remove(client);
                self.broadcasts.floor.forget(client);
                self.parked.retain(|(ticket, _)| ticket.client != client);
                self.tell(&ToComponent::Left { client }, &[]);
            }
            Event::Wants { client, request } => return Ok(self.handle_request(client, request)),
            Event::Nonsense { client, error } => {
                let what = Outcome::Refused(Refused::Malformed(error));
                self.clients.reply(client, &Reply { id: 0, what });
            }
        }
        Ok(Flow::On)
    }

    /// Starts the next life of the component.
    fn start_component(&mut self) -> Result<(), NodeError> {
        let incarnation = self.incarnations.next().map_err(NodeError::Incarnation)?;
        let boot = match self.boot {
            Some(boot) => boot,
            None => {
                self.begin_life(incarnation)?;
                incarnation
            }
        };
        let (link, theirs) = Socket::pair()?;
        let spawned = Spawn::own_program()
            .arg("component")
            .parent_death_signal(Signal::KILL)
            .inherit(LINK_FD, OwnedFd::from(theirs))
            .start()?;
        let start = ToComponent::Start {
            rank: self.rank,
            incarnation: incarnation.0,
            boot: boot.0,
            generation: self.generation,
            tasks: self.tasks.count(),
            cluster: self.cluster.to_toml(),
            dealt_with: self.broadcasts.dealt_with(),
        };
        let mut grant = self.memory.grant_owner()?;
        let flag = self.flag.writable_fd().try_clone_to_owned().map_err(NodeError::Kept)?;
        let term = kept::open(&self.term_file).map_err(NodeError::Kept)?;
        let database = kept::open(&self.database_file).map_err(NodeError::Kept)?;
        grant.0.extend([flag, term.into(), database.into()]);
        let signing = self.signing.as_ref().map(SecretKey::grant).transpose();
        grant.0.extend(signing.map_err(NodeError::Signing)?);
        event::listen_to_component(incarnation, &link, &spawned.pidfd, &self.events)?;
        tracing::info!(rank = self.rank, incarnation = incarnation.0, "component started");
        self.note(self.rank, What::Started { incarnation: incarnation.0 });
        let profile = dirnet_profile(&self.cluster)?;
        let infancy = Infancy::new(now_ns(), &profile, self.progress.load());
        let (ready, entered, roused) = (false, false, false);
        let component = Component { incarnation, spawned, link, ready, infancy, entered, roused };
        self.component = Some(component);
        // One that was killed before it could listen is started again, like any other.
        self.tell(&start, &grant.borrow());
        Ok(())
    }

    fn stop_component(&mut self) {
        self.tell(&ToComponent::Stop, &[]);
        let Some(mut component) = self.component.take() else { return };
        component.spawned.end(STOP_TIMEOUT);
    }

    /// The component's process has ended: its memory stays, its peers are told, and its I'm-Alive
    /// Task raises the alarm. A life of the node that was removed ends with it.
    fn handle_end(&mut self, incarnation: Incarnation) -> Result<(), NodeError> {
        let Some(roused) = self.bury_component(incarnation) else { return Ok(()) };
        match &self.im_alive {
            _ if self.isolated => {}
            Some(im_alive) if roused => im_alive.handle_ended(),
            // Nobody has heard of it but its supervisor, which tries again.
            Some(_) | None if !self.given_up => {
                self.restarts += 1;
                self.start_component()?;
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    fn handle_tidings(&mut self, tidings: Tidings) -> Result<(), NodeError> {
        match tidings {
            Tidings::Refused { who, reason } => {
                let (rank, cure) = (self.rank, reason.cure());
                tracing::error!(rank, who, %reason, cure, "not met");
            }
            Tidings::Heard { peer, session, news } => {
                tracing::debug!(rank = self.rank, peer = peer.0, ?news, "news of a peer");
                let due = match news {
                    News::Letter(letter) => {
                        self.handle_letter(peer, letter);
                        return Ok(());
                    }
                    News::Offered(offer) => {
                        self.handle_offer(peer, session, &offer);
                        return Ok(());
                    }
                    News::ShutOut(incarnation) => return self.handle_shut_out(peer, incarnation),
                    News::Isolated => {
                        self.be_isolated();
                        return Ok(());
                    }
                    News::Released => return self.be_released(),
                    News::Met(grant) => self.lives.handle_met(peer, session, grant),
                    News::Alive(life) => self.lives.handle_alive(peer, session, life),
                    News::Dead(incarnation) => self.lives.handle_dead(peer, session, incarnation),
                    News::Parted => self.lives.handle_parted(peer, session),
                };
                self.act(due);
            }
        }
        Ok(())
    }

    /// Carries out what a change of a peer's life calls for, if there is a component to tell.
    fn act(&mut self, due: Option<Due>) {
        match due {
            Some(Due::ShutOut(peer, incarnation)) => {
                return self.bootstrap.shut_out(peer, incarnation);
            }
            Some(Due::Isolate(peer)) => return self.bootstrap.isolate(peer),
            None | Some(Due::Fence(_) | Due::Connect(_)) => {}
        }
        if !self.component.as_ref().is_some_and(|component| component.ready) {
            return;
        }
        match due {
            None | Some(Due::ShutOut(..) | Due::Isolate(_)) => self.note_recovery(),
            Some(Due::Fence(peer)) => {
                self.tell(&ToComponent::Fence { peer: peer.0 }, &[]);
                self.note_recovery();
            }
            Some(Due::Connect(peer)) => self.connect(peer),
        }
    }

    fn connect(&mut self, peer: Peer) {
        let Some((life, grant)) = self.lives.reach(peer) else { return };
        let (incarnation, boot) = (life.incarnation.0, life.boot.0);
        self.tell_keys();
        let word = ToComponent::Connect { peer: peer.0, incarnation, boot };
        let mut fds = grant.borrow();
        fds.extend(life.process.as_ref().map(AsFd::as_fd));
        self.tell(&word, &fds);
    }

    /// Tells the component what the peers sign with; what it knows already changes nothing.
    fn tell_keys(&self) {
        for (peer, key) in self.lives.keys() {
            self.tell(&ToComponent::Key { peer: peer.0, key }, &[]);
        }
    }

    /// A peer's end of a pair: for the component, if both lives of the pair are the present ones.
    fn handle_offer(&mut self, peer: Peer, session: u64, offer: &Offer) {
        let is_mine = |component: &Component| component.ready && component.incarnation == offer.to;
        let is_present = self.component.as_ref().is_some_and(is_mine)
            && self.lives.is_alive(peer, session, offer.from);
        if is_present {
            let (incarnation, end) = (offer.from.0, offer.end.clone());
            self.tell(&ToComponent::Offer { peer: peer.0, incarnation, end }, &[]);
        }
    }

    /// A life that was fenced by a peer is of no use any more: it ends, and the next one begins.
    fn handle_shut_out(&mut self, peer: Peer, incarnation: Incarnation) -> Result<(), NodeError> {
        self.incarnations.raise(incarnation);
        let is_mine = |component: &Component| component.incarnation <= incarnation;
        if self.component.as_ref().is_some_and(is_mine) {
            tracing::warn!(rank = self.rank, peer = peer.0, "shut out; the next life begins");
            self.be_reborn()?;
        }
        Ok(())
    }

    fn handle_word(
        &mut self,
        incarnation: Incarnation,
        word: FromComponent,
    ) -> Result<(), NodeError> {
        if self.component.as_ref().is_none_or(|component| component.incarnation != incarnation) {
            return Ok(());
        }
        match word {
            FromComponent::Ready => self.handle_ready(incarnation),
            FromComponent::Joined { peer, incarnation } => {
                self.lives.handle_joined(Peer(peer), Incarnation(incarnation));
                self.note_recovery();
            }
            FromComponent::Reply { ticket, mut what } => {
                self.broadcasts.handle_outcome(&mut what);
                self.clients.finish(ticket, what);
            }
            FromComponent::Offer { peer, incarnation: theirs, end } => {
                let offer = Offer { from: incarnation, to: Incarnation(theirs), end };
                self.bootstrap.offer(Peer(peer), &offer);
            }
            FromComponent::Letters { to, bytes } => self.post_letters(&to, bytes),
            FromComponent::Removed { peer, boot } => {
                self.lives.handle_removed(Peer(peer), Incarnation(boot));
            }
            FromComponent::Isolated { peer, boot } => {
                self.isolate_peer(Peer(peer), Incarnation(boot));
            }
            FromComponent::Released { peer, boot } => {
                self.release_peer(Peer(peer), Incarnation(boot));
            }
            FromComponent::Reset { node, boot } => self.reset_node(node, boot),
            FromComponent::Guard { task, action } => {
                self.tasks.handle_guard(task, action, now_ns());
            }
            FromComponent::Recorded { number } => self.tasks.handle_recorded(number),
            FromComponent::Excluded => self.be_reborn()?,
            FromComponent::Note(entry) => self.chronicle.note(entry),
            FromComponent::Disputed(conflict) => self.broadcasts.note_conflict(conflict),
            FromComponent::Proven(proof) => self.note_proof(proof),
            FromComponent::Unreachable { peer, error } => {
                tracing::error!(peer, error, "a peer's memory cannot be reached");
            }
            FromComponent::Lost { peer, incarnation } => {
                // The lower rank waits longer, so that not both give each other up.
                let grace = if peer < self.rank { LOSS_GRACE_NS } else { 2 * LOSS_GRACE_NS };
                self.lives.handle_lost(Peer(peer), Incarnation(incarnation), now_ns() + grace);
            }
            FromComponent::StillReaching { peer } => {
                tracing::error!(peer, "a fenced process does not die; its tickets are waited for");
                self.unfenced.insert(Peer(peer));
                self.fence_again_at_ns = Some(now_ns() + FENCE_EVERY_NS);
            }
        }
        Ok(())
    }

    /// The component's endpoint is made: peers are told of this life, it is told of theirs, and
    /// what waited for it is handed over.
    fn handle_ready(&mut self, incarnation: Incarnation) {
        let boot = self.boot.unwrap_or(incarnation);
        let Some(component) = &mut self.component else { return };
        component.ready = true;
        component.infancy.handle_ready(now_ns());
        match component.spawned.pidfd.try_clone() {
            Ok(process) => {
                let key = self.signing.as_ref().map(SecretKey::public);
                let process = Some(process);
                self.bootstrap.announce(Life { incarnation, boot, process, key });
            }
            Err(error) => tracing::error!(%error, "peers cannot be told of this life"),
        }
        // Those who are dead may have signed something before.
        self.tell_keys();
        for peer in self.lives.alive() {
            self.connect(peer);
        }
        self.tell_cut();
        for (ticket, word) in std::mem::take(&mut self.parked) {
            self.forward(ticket, word);
        }
        self.note_recovery();
    }

    /// Notes how long the node was away, once it is back.
    fn note_recovery(&mut self) {
        if self.state() == NodeState::Running
            && let Some(lost_at) = self.lost_at_ns.take()
        {
            self.last_recovery_us = Some((now_ns() - lost_at) / 1_000);
            let incarnation = self.component.as_ref().map_or(0, |own| own.incarnation.0);
            self.note(self.rank, What::Running { incarnation });
        }
    }

    fn tell(&self, word: &ToComponent, fds: &[BorrowedFd<'_>]) {
        if let Err(error) = self.send(word, fds) {
            tracing::debug!(%error, "the component does not listen");
        }
    }

    /// Sends `word` to the component. One that leaves its link full hangs, and is killed.
    fn send(&self, word: &ToComponent, fds: &[BorrowedFd<'_>]) -> Result<(), PacketError> {
        let component = self.component.as_ref().ok_or(PacketError::Closed)?;
        let sent = component.link.send(word, fds, LINK_TIMEOUT);
        if matches!(sent, Err(PacketError::TimedOut { .. })) {
            tracing::error!(rank = self.rank, "the component hangs, and is killed");
            // One that is dead by now is what was wanted.
            let _ = component.spawned.pidfd.kill();
        }
        sent
    }
}

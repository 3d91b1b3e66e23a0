//! The component process: the endpoint, its loop, and the requests that come over the link.
//!
//! It is what is inside [`Member`](crate::member::Member). The program's thread runs the loop, by
//! polling, and does everything. A second one only reads the link, queues what arrives, control
//! apart from requests, and rings the loop's bell; it waits for the ends of the peers' processes as
//! well. The loop never waits for the link, and makes no system call while there is work. The
//! process ends on the supervisor's order, when the link closes, or with the supervisor itself (the
//! kernel kills it then).

mod dirnet;
mod equivocate;
mod events;
mod finish;
mod forgeries;
mod group_clients;
mod groups;
mod hand_over;
mod idle_backoff;
mod inputs;
mod inquiries;
mod join;
mod leavers;
mod messages;
mod naming;
pub(super) mod overseer;
mod own_tasks;
mod pairs;
mod parts;
mod rendezvous;
mod requests;
mod signing;
mod status;
mod tensor_clients;

pub(super) use dirnet::{
    NOT_ENTERED, config as dirnet_config, no_frame, profile as dirnet_profile,
};
pub(crate) use events::Events;
pub use events::{Event, Verdict};
pub use groups::GroupError;
pub use join::JoinError;
pub use messages::BroadcastError;
pub use own_tasks::TaskRefused;
pub use rendezvous::TensorError;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use weft_core::dirnet::ComponentIncarnation;
use weft_core::endpoint::{self, Boots, Plan};
use weft_core::ids::{Incarnation, Peer, PeerSet, Rank};
use weft_core::time::Instant;

use super::casts::{self, Casts};
use super::deliveries::DeliveryLine;
use super::fabric::NodeFabric;
use super::faults::{CutFabric, FaultPlan};
use super::link::{CONTROL_MAX, FromComponent, Outgoing, REQUESTS_MAX, TaskChange, ToComponent};
use super::membership::{Greetings, LaneArrivals};
use super::own_puts::OwnPuts;
use super::places::Places;
use super::puts::Puts;
use super::takes::Takes;
use super::{NodeEndpoint, NodeError, PEERS};
use crate::clock::{Deadline, now_ns, unix_ms};
use crate::cluster::Cluster;
use crate::packet::Socket;
use crate::process::start_thread;
use crate::shm::{Bell, Grant, OwnMemory, TwoSlots, Waiter};
use dirnet::{ComponentDirNet, NetEntry};
use finish::Finish;
use forgeries::Forgeries;
use group_clients::GroupClients;
use groups::OwnGroup;
use hand_over::Fetches;
use idle_backoff::IdleBackoff;
use inputs::{LinkInput, LinkReader};
use inquiries::Inquiries;
use naming::Naming;
use own_tasks::OwnTasks;
use pairs::Connection;
use parts::PartSource;
use signing::KeyBook;
use tensor_clients::TensorClients;

/// How often the loop checks for room on the link.
const ROOM_EVERY: Duration = Duration::from_millis(1);

/// The identity of this component: its node and its incarnation.
#[derive(Clone, Copy)]
struct Identity {
    me: Peer,
    incarnation: Incarnation,
    component: ComponentIncarnation,
    /// The first incarnation of its supervisor, whose memory it has taken over.
    memory_since: Incarnation,
    /// The last boot of this node that its peers have removed.
    removed: Incarnation,
    tasks: u8,
    /// Whether the mailbox and the broadcasts are a program's, and no client's.
    owned: bool,
    /// Whether it stands in for a program that has finished.
    finished: bool,
}

/// What its supervisor has kept for it.
struct Handed {
    fds: Vec<OwnedFd>,
    places: Places,
}

/// A component; one in a process.
pub(crate) struct Component {
    cluster: Cluster,
    identity: Identity,
    /// What it needs to enter the DIR net, until it has entered.
    entry: Option<NetEntry>,
    dirnet: Option<ComponentDirNet>,
    /// The boots of each peer that are admitted and removed.
    boots: Boots<PEERS>,
    socket: Socket,
    outgoing: Outgoing,
    control: Receiver<LinkInput>,
    requests: Receiver<LinkInput>,
    plan: Plan,
    endpoint: Box<NodeEndpoint>,
    waiter: Option<Waiter>,
    membership: Greetings,
    keys: KeyBook,
    /// The incarnations that are admitted as soon as their end of the pair arrives; over verbs
    /// only.
    expected: Vec<Option<Incarnation>>,
    /// The connections that wait for the fence of the incarnation before.
    behind_fence: BTreeMap<Peer, Connection>,
    /// The peers whose pair is lost, as last reported to the supervisor.
    told_lost: PeerSet,
    events: Events,
    /// The time of the last pass, for what the program does between two: a look at the clock costs
    /// as much as a message.
    passed_ns: u64,
    /// Since when it counts.
    since_unix_ms: u64,
    /// A client waits for something, or holds it.
    serves: bool,
    /// Its supervisor has ordered it to end.
    stopping: bool,
    finish: Finish,
    own_puts: OwnPuts,
    /// The program's record.
    state: Option<TwoSlots>,
    /// The origin whose broadcasts the program is given first.
    deliver_turn: u16,
    /// By their numbers.
    groups: Vec<OwnGroup>,
    group_clients: GroupClients,
    tensor_clients: TensorClients,
    fetches: Fetches,
    parts: PartSource,
    puts: Puts,
    takes: Takes,
    casts: Casts,
    deliveries: DeliveryLine,
    inquiries: Inquiries,
    faults: FaultPlan,
    idle_backoff: IdleBackoff,
    forgeries: Forgeries,
    naming: Naming,
    own_tasks: OwnTasks,
    /// What has ended it between two passes; the next one returns it.
    failed: Option<NodeError>,
}

/// What a pass of the loop came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// There was nothing to do.
    Idle,
    /// Something was done.
    Progress,
    /// The link is closed: the node is gone.
    End,
}

impl Component {
    fn new(
        socket: Socket,
        cluster: Cluster,
        identity: Identity,
        handed: Handed,
    ) -> Result<Self, NodeError> {
        let Handed { mut fds, places } = handed;
        let Identity { me, incarnation, .. } = identity;
        let plan = super::plan(&cluster)?;
        let state = cluster.component.as_ref().map(|program| program.state).filter(|len| *len > 0);
        let state = state.map(|len| {
            let fd = fds.pop().ok_or(NodeError::Link("a start without the state"))?;
            TwoSlots::open(fd.as_fd(), len).map_err(NodeError::from)
        });
        let state = state.transpose()?;
        let signing = signing::adopt(&cluster, plan.layout(), &mut fds)?;
        let entry = NetEntry::adopt(&mut fds)?;
        let grant = Grant(fds);
        let own = OwnMemory::map(plan.layout(), &grant)?;
        let bell = || Bell::open(grant.bell().as_fd());
        let (waiter, reader_bell) = (Waiter::new(cluster.wait, bell()?), bell()?);
        let fabric =
            CutFabric::new(NodeFabric::open(&cluster, me, incarnation, plan.layout(), own)?);
        leavers::begin_epoch(&fabric, &plan, cluster.neb.membership, &identity)?;
        let mut endpoint = Box::new(match signing {
            Some(keys) => NodeEndpoint::signing(fabric, &plan, incarnation, keys),
            None => NodeEndpoint::new(fabric, &plan, incarnation),
        });
        let groups = OwnGroup::all(&cluster);
        groups::begin(&mut endpoint, &plan, &groups, identity.component.boot)?;
        rendezvous::begin(&mut endpoint, &plan);
        let own_puts = OwnPuts::new(plan.mailbox().batch());
        let (control_sender, control) = sync_channel(CONTROL_MAX);
        let (request_sender, requests) = sync_channel(REQUESTS_MAX);
        let reading = LinkReader {
            socket: socket.try_clone()?,
            control: control_sender,
            requests: request_sender,
            bell: reader_bell,
            fabric: cluster.fabric,
            processes: Vec::new(),
        };
        start_thread("weft-link", move || reading.run())?;
        Ok(Self {
            identity,
            entry: Some(entry),
            dirnet: None,
            boots: Boots::default(),
            socket,
            outgoing: Outgoing::default(),
            control,
            requests,
            plan,
            endpoint,
            waiter: Some(waiter),
            membership: Greetings::new(cluster.nodes, incarnation, identity.finished),
            keys: KeyBook::new(cluster.nodes),
            puts: Puts::new(cluster.nodes),
            expected: vec![None; cluster.nodes],
            behind_fence: BTreeMap::new(),
            told_lost: PeerSet::EMPTY,
            events: Events::new(cluster.nodes),
            passed_ns: now_ns(),
            since_unix_ms: unix_ms(),
            serves: false,
            stopping: false,
            finish: Finish::default(),
            own_puts,
            state,
            deliver_turn: 0,
            groups,
            group_clients: GroupClients::default(),
            tensor_clients: TensorClients::default(),
            fetches: Fetches::default(),
            parts: PartSource::default(),
            takes: Takes::new(cluster.mailbox.hold()),
            casts: Casts::default(),
            deliveries: DeliveryLine::new(places),
            inquiries: Inquiries::default(),
            faults: FaultPlan::default(),
            idle_backoff: IdleBackoff::new(cluster.fabric, now_ns()),
            forgeries: Forgeries::default(),
            naming: Naming::default(),
            own_tasks: OwnTasks::new(&cluster, me.0),
            failed: None,
            cluster,
        })
    }

    /// Passes until one makes progress, or the program has something to take; at most for
    /// `timeout`. Between empty passes it spins, yields or sleeps as the cluster file says.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<Flow, NodeError> {
        let Some(mut waiter) = self.waiter.take() else { return Ok(Flow::End) };
        let waited = self.wait_with(&mut waiter, Deadline::after(timeout));
        self.waiter = Some(waiter);
        waited
    }

    fn wait_with(&mut self, waiter: &mut Waiter, deadline: Deadline) -> Result<Flow, NodeError> {
        loop {
            let mut last = self.look();
            if matches!(last, Ok(Flow::Idle)) && !deadline.has_passed() {
                // The deadlines of all machines cost as much as a pass: only a sleep needs them.
                if waiter.step() {
                    continue;
                }
                let timeout = self.timeout().min(deadline.remaining());
                let again = || {
                    last = self.look();
                    !matches!(last, Ok(Flow::Idle))
                };
                waiter.sleep(again, timeout)?;
                if matches!(last, Ok(Flow::Idle)) {
                    continue;
                }
            }
            if matches!(last, Ok(Flow::Progress)) {
                waiter.progress();
            }
            return last;
        }
    }

    /// A pass, and a look at what it leaves to the program.
    fn look(&mut self) -> Result<Flow, NodeError> {
        let flow = self.pass()?;
        let is_due = flow == Flow::Idle && self.is_due();
        Ok(if is_due { Flow::Progress } else { flow })
    }

    /// One pass of the loop over all inputs and deadlines.
    pub(crate) fn pass(&mut self) -> Result<Flow, NodeError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let now_ns = now_ns();
        if self.faults.is_hung(now_ns) {
            return Ok(Flow::Idle);
        }
        self.passed_ns = now_ns;
        if let Some(entry) = &mut self.entry {
            entry.note_pass(self.identity.component);
        }
        let mut progress = self.own_puts.flush(&mut self.endpoint, now_ns);
        progress |= self.endpoint.poll(Instant(now_ns)) > 0;
        progress |= self.drain_events(now_ns)?;
        self.note_losses()?;
        if let Some(note) = self.forgeries.look(&self.endpoint, now_ns) {
            self.tell(&note)?;
        }
        self.outgoing.flush(&self.socket)?;
        match self.take_inputs(now_ns)? {
            Flow::Idle => {}
            Flow::Progress => progress = true,
            Flow::End => return Ok(Flow::End),
        }
        self.membership.speak(&mut self.endpoint, |owner| self.keys.held(owner));
        let heard = self.membership.listen(&mut self.endpoint);
        let frames = match heard {
            Some(heard) => self.note_heard(heard, &mut progress)?,
            None => Vec::new(),
        };
        self.learn_keys();
        self.report_finish()?;
        progress |= self.step_dirnet(&frames, now_ns)?;
        casts::deliver_own(&mut self.endpoint);
        self.casts.followed().look(&mut self.endpoint, now_ns);
        // A client that learns of a conflict finds its evidence already here.
        if self.deliveries.note_conflicts(&mut self.endpoint) {
            self.tell_conflicts()?;
        }
        progress |= self.serves && self.serve(now_ns)?;
        progress |= self.step_tensors(now_ns)?;
        if !progress {
            return Ok(Flow::Idle);
        }
        self.idle_backoff.note_progress(now_ns);
        Ok(Flow::Progress)
    }

    /// Handles what arrived over the lanes, and returns the frames of the DIR net among it.
    fn note_heard(
        &mut self,
        heard: LaneArrivals,
        progress: &mut bool,
    ) -> Result<Vec<(Peer, Vec<u8>)>, NodeError> {
        self.note_keys(heard.keys);
        *progress |= !heard.joined.is_empty() || !heard.frames.is_empty();
        for (peer, incarnation, finished) in heard.joined {
            self.broadcast_again(peer);
            self.events.handle_joined(peer, incarnation, finished);
            self.tell(&FromComponent::Joined { peer: peer.0, incarnation: incarnation.0 })?;
        }
        self.finish.note_heard(heard.finished);
        Ok(heard.frames)
    }

    fn tell_conflicts(&mut self) -> Result<(), NodeError> {
        for conflict in self.deliveries.take_disputes() {
            self.tell(&FromComponent::Disputed(conflict))?;
        }
        for proof in self.deliveries.take_proofs() {
            self.tell(&FromComponent::Proven(proof))?;
        }
        Ok(())
    }

    /// Advances what clients have asked for; whether any was answered.
    fn serve(&mut self, now_ns: u64) -> Result<bool, NodeError> {
        let mut answers = self.puts.step(&mut self.endpoint, self.own_puts.held(), now_ns);
        answers.extend(self.takes.step(&mut self.endpoint, now_ns));
        answers.extend(self.casts.step(&mut self.endpoint, now_ns));
        answers.extend(self.deliveries.step(&mut self.endpoint, now_ns));
        answers.extend(self.step_groups(now_ns));
        answers.extend(self.answer_inquiries(now_ns));
        for number in self.casts.take_executed() {
            self.tell(&FromComponent::Executed { number })?;
        }
        let has_answered = !answers.is_empty();
        for (ticket, what) in answers {
            self.answer(ticket, what)?;
        }
        // The next request sets it again.
        self.serves = !(self.puts.is_empty()
            && self.takes.is_empty()
            && self.casts.is_empty()
            && self.deliveries.is_empty()
            && self.group_clients.is_idle()
            && self.inquiries.is_empty());
        Ok(has_answered)
    }

    /// Handles the completions of puts; whether there were any.
    fn drain_events(&mut self, now_ns: u64) -> Result<bool, NodeError> {
        let mut drained = false;
        while let Some(event) = self.endpoint.poll_event() {
            drained = true;
            if let endpoint::Event::Fenced { peer } = event {
                self.handle_fence_held(peer)?;
                continue;
            }
            if self.own_puts.handle_event(event, now_ns) {
                continue;
            }
            let ended = self.puts.handle_event(&mut self.endpoint, event, now_ns);
            if let Some((ticket, what)) = ended {
                self.answer(ticket, what)?;
            }
        }
        Ok(drained)
    }

    /// What the loop waits with, for another loop over this component; none while one has it.
    pub(crate) const fn take_waiter(&mut self) -> Option<Waiter> {
        self.waiter.take()
    }

    /// Gives back what [`Self::take_waiter`] took.
    pub(crate) fn return_waiter(&mut self, waiter: Waiter) {
        self.waiter = Some(waiter);
    }

    /// How long the loop may sleep: until the earliest deadline in the endpoint's wheel.
    pub(crate) fn timeout(&mut self) -> Duration {
        let dirnet = self.dirnet.as_ref().map(|dirnet| dirnet.next_ns(self.faults.timers()));
        // The place of each is its timer in the endpoint's wheel.
        let deadlines = [
            self.puts.next_retry_ns(),
            self.takes.next_deadline_ns(),
            self.casts.next_deadline_ns(),
            self.deliveries.next_deadline_ns(),
            dirnet,
            self.inquiries.next_deadline_ns(),
            self.own_puts.next_retry_ns(),
            self.group_clients.next_deadline_ns(),
            self.tensor_clients.next_deadline_ns(),
        ];
        for (timer, deadline_ns) in (0..).zip(deadlines) {
            let kept = self.endpoint.wake_at(timer, deadline_ns.map(Instant));
            debug_assert!(kept.is_ok(), "the endpoint has timers for its owner");
        }
        let next = self.endpoint.poll_timeout();
        let now_ns = now_ns();
        let left = next.map(|at| Duration::from_nanos(at.0.saturating_sub(now_ns)));
        let longest = self.idle_backoff.longest(now_ns);
        let longest = if self.outgoing.is_empty() { longest } else { longest.min(ROOM_EVERY) };
        left.unwrap_or(longest).min(longest)
    }

    fn handle(
        &mut self,
        word: ToComponent,
        fds: Vec<OwnedFd>,
        now_ns: u64,
    ) -> Result<Flow, NodeError> {
        match word {
            ToComponent::Start { .. } => return Err(NodeError::Link("a second start")),
            ToComponent::Acknowledged { peer, boot } => {
                let (node, boot) = (Rank(peer), Incarnation(boot));
                self.with_dirnet(|dirnet, ground| {
                    dirnet.handle_acknowledged(now_ns, node, boot, ground)
                })?;
            }
            ToComponent::Connect { peer, incarnation, boot } => {
                self.connect(Peer(peer), (Incarnation(incarnation), Incarnation(boot)), fds)?;
            }
            ToComponent::Offer { peer, incarnation, end } => {
                self.handle_offer(Peer(peer), Incarnation(incarnation), &end)?;
            }
            ToComponent::Fence { peer } => {
                self.fence(Peer(peer));
                self.with_dirnet(|dirnet, ground| dirnet.handle_gone(now_ns, Peer(peer), ground))?;
            }
            ToComponent::Isolated { peer, boot } => {
                let (node, boot) = (Rank(peer), Incarnation(boot));
                self.with_dirnet(|dirnet, ground| {
                    dirnet.learn(now_ns, ground, |it, now| it.learn_isolation(now, node, boot))
                })?;
            }
            ToComponent::Released { peer, boot } => {
                let (node, boot) = (Rank(peer), Incarnation(boot));
                self.with_dirnet(|dirnet, ground| {
                    dirnet.learn(now_ns, ground, |it, now| it.learn_release(now, node, boot))
                })?;
            }
            ToComponent::Script { image } => self.with_dirnet(|dirnet, _| {
                dirnet.hold_script(image.0);
                Ok(())
            })?,
            ToComponent::Parted { peer } => {
                let peer = Peer(peer);
                self.with_dirnet(|dirnet, ground| dirnet.handle_parted(now_ns, peer, ground))?;
            }
            ToComponent::Key { peer, key } => self.hold_key(Peer(peer), key),
            ToComponent::AllNamed => self.handle_all_named(),
            ToComponent::Enter => self.enter(now_ns)?,
            ToComponent::Datagram { from, bytes } => {
                let from = Rank(from);
                self.with_dirnet(|dirnet, ground| {
                    dirnet.handle_frame(now_ns, from, &bytes.0, ground)
                })?;
            }
            ToComponent::Change(change) => {
                self.with_dirnet(|dirnet, ground| dirnet.handle_change(now_ns, change, ground))?;
                if let TaskChange::Error { number, .. } = change {
                    self.tell(&FromComponent::Recorded { number })?;
                }
            }
            ToComponent::Request { ticket, what } => {
                self.serves = true;
                self.request(ticket, (what, fds), now_ns)?;
            }
            ToComponent::Execute { number, marker } => {
                self.serves = true;
                self.execute(number, marker);
            }
            ToComponent::Tensor { number, key, shape, timeout_ms } => {
                let deadline_ns = now_ns.saturating_add(timeout_ms.saturating_mul(1_000_000));
                self.begin_tensor((number, key), (shape, fds), deadline_ns)?;
            }
            ToComponent::HandedOver { fetch, refused } => {
                self.handle_handed_over(fetch, refused, fds);
            }
            ToComponent::Left { client } => self.forget(client)?,
            ToComponent::Notices { task, notices } => self.own_tasks.handle_notices(task, notices),
            ToComponent::Stop => {
                self.stopping = true;
                self.events.push(Event::Stop);
            }
        }
        Ok(Flow::Progress)
    }

    /// Steps the DIR net with `frames` and the time; whether it had any effect.
    fn step_dirnet(&mut self, frames: &[(Peer, Vec<u8>)], now_ns: u64) -> Result<bool, NodeError> {
        // Nearly every pass of a busy loop: the deadlines of the DIR net cost more than the rest.
        if frames.is_empty() && self.dirnet.as_ref().is_some_and(|dirnet| dirnet.is_idle(now_ns)) {
            return Ok(false);
        }
        let timers = self.faults.timers();
        let mut words = Vec::new();
        if let Some(entry) = &mut self.entry {
            entry.note_early(frames.len());
        }
        self.with_dirnet(|dirnet, ground| {
            for (peer, bytes) in frames {
                dirnet.handle_frame(now_ns, Rank(peer.0), bytes, ground)?;
            }
            words = dirnet.step(now_ns, timers, ground)?;
            Ok(())
        })?;
        for word in &words {
            if let (FromComponent::View(_), Some(view)) = (word, self.view()) {
                let (number, members) = (view.number(), view.members());
                self.events.push(Event::View { number, members });
            }
            // Frames may be lost; with a supervisor that reads slowly they are dropped before
            // anything else.
            if !matches!(word, FromComponent::Letters { .. }) || !self.outgoing.is_crowded() {
                self.tell(word)?;
            }
        }
        Ok(!words.is_empty())
    }
}

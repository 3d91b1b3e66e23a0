//! The supervisor process: it is the node.
//!
//! One thread owns all state, and waits for all of its sockets at once. What the node needs comes
//! first in every pass: events, orders of the I'm-Alive Task, messages of the component; then a
//! bounded number of requests of clients. It never waits for the component, nor for a client. The
//! component is started from that thread, which ends with the process, because the kernel ties the
//! child to its parent thread.

mod broadcasts;
mod calls;
mod clients;
mod component;
mod deadlines;
mod event;
mod evidence;
mod guarded;
mod hooks;
mod isolation;
mod meet;
mod peers;
mod program;
mod reach;
mod recovery;
mod requests;
mod scripts;
mod send_queue;
mod starts;
mod tensors;
mod turn;
mod watch;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::{Resource, getrlimit};
use rustix::rand::{GetRandomFlags, getrandom};
use weft_core::dirnet::{Starts, Supervision};
use weft_core::ids::{Incarnation, PeerSet, Rank};

use broadcasts::BroadcastState;
use calls::Calls;
use clients::Clients;
use component::StartedComponent;
use deadlines::Deadlines;
use event::{SupervisorEvent, SupervisorQueues};
use hooks::HookRuns;
pub(crate) use isolation::IsolationNote;
pub use program::ProgramRun;
use reach::Reach;
use tensors::{Places, TensorStore};
use watch::WatchFeed;

use super::NodeError;
use super::chronicle::Chronicle;
use super::control::Latency;
use super::evidence::Evidence;
use super::fabric;
use super::im_alive::{Cut, ImAlive};
use super::incarnation::Incarnations;
use super::link::{Ticket, ToComponent};
use super::refusals::Refusals;
use super::reset::ResetNode;
use super::scripts::Scripts;
use super::tasks::Tasks;
use crate::bootstrap::{Bootstrap, DatagramSender, Meeting};
use crate::clock::{now_ns, unix_ms};
use crate::cluster::{Cluster, Form};
use crate::process::ProcessError;
use crate::runtime_dir::ClaimedDir;
use crate::shm::{Flag, NodeMemory, Segment};
use crate::signing::SecretKey;

/// Runs node `rank` of `cluster` in `home` until it is ordered to stop, or `home` no longer belongs
/// to it. It meets its peers at this host, or over the network when there is a `meeting`; `reset`
/// brings back nodes that the cluster has given up; `program` says how the program of the cluster
/// file is run.
///
/// # Errors
/// [`NodeError`]. The component is gone in every case.
pub fn run(
    cluster: &Cluster,
    home: &ClaimedDir,
    rank: u16,
    meeting: Option<Meeting>,
    reset: Box<dyn ResetNode>,
    program: ProgramRun,
) -> Result<(), NodeError> {
    if usize::from(rank) >= cluster.nodes {
        return Err(NodeError::OutOfRange { rank, nodes: cluster.nodes });
    }
    let (events, inbox) = event::queues()?;
    event::listen_for_signals(events.clone())?;
    let mut supervisor = Supervisor::new(cluster, home, rank, meeting, reset, events)?;
    supervisor.program = program;
    supervisor.tell_forgotten();
    supervisor.recall_isolation();
    if !supervisor.supervision.is_isolated() {
        supervisor.start_component()?;
    }
    supervisor.tasks.begin(now_ns());
    let ended = supervisor.run(&inbox, home);
    supervisor.stop_hooks();
    supervisor.calls.stop();
    supervisor.tasks.end_all();
    supervisor.stop_component();
    ended
}

struct Supervisor {
    rank: u16,
    cluster: Cluster,
    memory: Arc<NodeMemory>,
    bootstrap: Box<dyn Bootstrap>,
    incarnations: Incarnations,
    events: SupervisorQueues,
    component: Option<StartedComponent>,
    /// What is decided about peers, and about this node's boots.
    supervision: Supervision<{ PeerSet::CAPACITY }>,
    reach: Reach,
    program: ProgramRun,
    clients: Clients,
    tasks: Tasks,
    /// The recovery scripts that it holds.
    scripts: Scripts,
    tensors: TensorStore,
    /// The tasks' history that the present component knows from the database: status, errors, and
    /// how many of them a script has answered.
    past: Option<Vec<(u8, u16, u16)>>,
    reset: Box<dyn ResetNode>,
    /// The first component of all: the promises in the memory date from it.
    memory_since: Option<Incarnation>,
    /// The name of the memory for peers: drawn with it.
    memory_name: u64,
    /// The key that the components sign broadcasts with, where they are signed.
    signing: Option<SecretKey>,
    /// The broadcast state that outlives components.
    broadcasts: BroadcastState,
    /// The number of the present component in that boot; one that ends before it has taken part in
    /// the DIR net does not count.
    generation: u32,
    im_alive: Option<ImAlive>,
    datagrams: Box<dyn DatagramSender>,
    /// The transports that an injected partition has cut.
    cut: Cut,
    cut_off: PeerSet,
    flag: Segment,
    /// The flag, mapped.
    progress: Flag,
    term_file: PathBuf,
    votes_file: PathBuf,
    database_file: PathBuf,
    chronicle: Chronicle,
    evidence: Evidence,
    watch: WatchFeed,
    hooks: Option<HookRuns>,
    calls: Calls,
    /// Whether all nodes read the same clock.
    is_on_one_host: bool,
    /// Frames and entries that had no receiver at this node.
    refusals: Refusals,
    /// Requests that arrived while no component was ready.
    parked: VecDeque<(Ticket, ToComponent, Vec<OwnedFd>)>,
    restarts: u64,
    starts: Starts,
    isolation_note: IsolationNote,
    lost_at_ns: Option<u64>,
    last_recovery_us: Option<u64>,
    recovery: Latency,
    /// Since when it counts.
    since_unix_ms: u64,
    deadlines: Deadlines,
}

/// Whether the node goes on.
#[derive(PartialEq, Eq)]
enum SupervisorFlow {
    On,
    End,
}

/// A name that no other memory has.
fn draw_name() -> Result<u64, ProcessError> {
    let mut name = [0; 8];
    getrandom(&mut name[..], GetRandomFlags::empty()).map_err(ProcessError::os("getrandom"))?;
    Ok(u64::from_le_bytes(name))
}

impl Supervisor {
    fn new(
        cluster: &Cluster,
        home: &ClaimedDir,
        rank: u16,
        meeting: Option<Meeting>,
        reset: Box<dyn ResetNode>,
        events: SupervisorQueues,
    ) -> Result<Self, NodeError> {
        let dir = home.dir();
        let path = dir.incarnation_file(usize::from(rank));
        let incarnations = Incarnations::open(&path).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => NodeError::RankTaken { rank },
            _ => NodeError::Incarnation { path, error },
        })?;
        let plan = super::plan(cluster)?;
        let name = format!("weft-{}-{rank}", cluster.name);
        let memory = Arc::new(NodeMemory::create(&name, plan.layout())?);
        fabric::rehearse(cluster, rank, &plan, &memory)?;
        let path = dir.scripts_file(usize::from(rank));
        let scripts = Scripts::open(path, cluster.recovery.image.as_ref());
        // Peers meet by the script that the cluster began with; the tasks follow the one in force.
        let mut running = cluster.clone();
        running.recovery.image = scripts.in_force().cloned();
        let tasks = guarded::tasks(&running, dir, rank, &events)?;
        let sink = events.clone();
        let sink = move |event| sink.bring(SupervisorEvent::Bootstrap(event));
        let me = meet::MeetContext { cluster, home, rank, layout: plan.layout() };
        let is_on_one_host = meeting.is_none();
        let bootstrap = me.begin(&memory, meeting, sink)?;
        let datagrams = bootstrap.datagrams();
        let flag = Flag::segment(&format!("{name}-flag"))?;
        let progress = Flag::open(flag.writable_fd())?;
        let signing = (cluster.neb.form == Form::Signed).then(SecretKey::draw).transpose();
        let signing = signing.map_err(NodeError::Signing)?;
        Ok(Self {
            rank,
            memory,
            bootstrap,
            incarnations,
            events,
            component: None,
            supervision: Supervision::new(Rank(rank)),
            reach: Reach::new(cluster.nodes, cluster.neb.membership),
            program: ProgramRun::default(),
            clients: Clients::listen(&dir.node_socket(usize::from(rank))?)?,
            tasks,
            scripts,
            tensors: TensorStore::new(
                cluster.rendezvous.store_len(),
                Places::beside(cluster.nodes, getrlimit(Resource::Nofile).current),
            ),
            past: None,
            reset,
            memory_since: None,
            memory_name: draw_name()?,
            signing,
            broadcasts: BroadcastState::new(cluster.nodes),
            generation: 0,
            im_alive: None,
            datagrams,
            cut: Cut::default(),
            cut_off: PeerSet::EMPTY,
            flag,
            progress,
            term_file: dir.term_file(usize::from(rank)),
            votes_file: dir.votes_file(usize::from(rank)),
            database_file: dir.database_file(usize::from(rank)),
            chronicle: Chronicle::default(),
            evidence: Evidence::default(),
            watch: WatchFeed::new()?,
            hooks: HookRuns::new(&cluster.hooks, rank)?,
            calls: Calls::new(),
            is_on_one_host,
            refusals: Refusals::default(),
            parked: VecDeque::new(),
            restarts: 0,
            starts: starts::starts(cluster),
            isolation_note: IsolationNote::new(dir.isolation_file(usize::from(rank))),
            lost_at_ns: None,
            last_recovery_us: None,
            recovery: Latency::default(),
            since_unix_ms: unix_ms(),
            deadlines: Deadlines::new(),
            cluster: running,
        })
    }
}

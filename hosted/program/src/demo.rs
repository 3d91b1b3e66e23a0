//! The demonstration: a cluster works, loses members in mid-stream in every way there is, gets them
//! back, and proves that nothing was lost, repeated or altered.
//!
//! ```text
//!   node 0 ─┐ every line of the input, numbered and hashed, round after round
//!   node 1 ─┼──────────────▶ mailbox of node 3 ──▶ collector: numbers, hashes, digests
//!   node 2 ─┘      ▲
//!                  └─ director: kills a task, kills a component, has one hang, kills the
//!                     manager's node; each comes back, asks how far its stream came, and goes on
//!                     behind that
//! ```
//!
//! Before that every node broadcasts to all others at once, and one of them lies:
//! `demo/broadcast.rs`. The manager's node dies while it forwards a broadcast along a tree:
//! `demo/tree.rs`. A task fails, and a recovery script has it restarted, once under all managers:
//! `demo/script.rs`. What is done to the nodes, and what must come of it: `demo/act.rs`.
//!
//! The nodes are real processes, started by [`Launched`]; the streams, the director and the
//! collector are clients of theirs. Every figure in the [`Summary`] is counted, none is assumed: a
//! digest that differs, a number twice or missing, or a step of a recovery that no node has noted
//! makes it fail.

mod act;
mod broadcast;
mod collector;
mod director;
mod drawing;
mod frame;
mod input;
mod nodes;
mod script;
mod stream;
mod summary;
mod timeline;
mod traffic;
mod tree;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

pub use act::{Milestone, Survivor};
pub use input::{InputError, TextInput};
pub use script::{SCRIPT, ScriptSummary};
pub use summary::{DemoStep, StreamSummary, Summary};
pub use timeline::{BlowRecovery, Moment, MomentKind};
pub use tree::{TreeReceived, TreeSummary};

use act::{Act, Strike};
use collector::Collector;
use director::Director;
use frame::StreamFrame;
use nodes::Nodes;
use stream::{ANSWERS_MAX, MessageStream, StreamEnd};
use traffic::{ArrivalCounts, DemoTraffic};
use weft::client::{ClientError, Inbox};
use weft::clock::now_ns;
use weft::cluster::{Cluster, ClusterName, Part};
use weft::explain::{Code, Explain};
use weft::launch::{LaunchError, Launched};
use weft::process::start_thread;
use weft::runtime_dir::{Liveness, RuntimeDir};

/// Nodes of the demonstration; the last one collects.
pub const NODES: usize = 4;
const COLLECTOR: u16 = 3;
/// How long anything may take that does not depend on the length of the input.
const PATIENCE: Duration = Duration::from_secs(60);
/// Called with the progress: faults survived, faults in all, and messages that have arrived.
pub const STRIKES: u64 = Strike::ALL.len() as u64;

/// Why the demonstration could not be given. A demonstration that was given and failed its own
/// checks is no error but a [`Summary`] that says so.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The cluster did not start.
    #[error("{0}")]
    Launch(#[from] LaunchError),
    /// A node did not do what it was asked.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// A stream stopped before its end.
    #[error("{0}")]
    Stopped(String),
    /// Ctrl-C or SIGTERM.
    #[error("the demo was interrupted")]
    Interrupted,
}

impl Explain for DemoError {
    fn code(&self) -> Code {
        match self {
            Self::Launch(error) => error.code(),
            Self::Client(error) => error.code(),
            Self::Stopped(_) => Code::Verification,
            Self::Interrupted => Code::Interrupted,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Launch(error) => error.cure(),
            Self::Client(error) => error.cure(),
            Self::Stopped(_) => "set WEFT_LOG=debug, run it again and look at the end".to_owned(),
            Self::Interrupted => "run it again".to_owned(),
        }
    }
}

/// What the demonstration showed.
#[derive(Clone, Debug)]
pub struct Demonstration {
    /// The figures.
    pub summary: Summary,
    /// The story as a drawing: a document in SVG.
    pub svg: String,
}

/// Gives the demonstration on a new `cluster` of [`NODES`] nodes with `input`; `progress` hears
/// how many of [`STRIKES`] have been survived and how many messages have arrived, `interrupted`
/// ends it early.
///
/// # Errors
/// [`DemoError`]. No process is left behind.
pub fn run(
    cluster: &Cluster,
    input: &TextInput,
    interrupted: &Arc<AtomicBool>,
    progress: impl FnMut(u64, u64),
) -> Result<Demonstration, DemoError> {
    let began_ns = now_ns();
    let mut summary = Summary::new(input);
    clear_dead_demos();
    let mut launched = Launched::start(cluster)?;
    launched.await_running(PATIENCE)?;
    summary.note_started(cluster, now_ns() - began_ns);
    summary.note_broadcasts(&broadcast::show(&launched, input)?);

    let frames: Arc<[StreamFrame]> = frame::split(input, cluster.mailbox.message_len).into();
    let traffic = Arc::new(DemoTraffic::new(interrupted));
    let text = input.lines().join("\n").into_bytes().into();
    let story = Story { nodes: Nodes::of(&launched), frames, text, traffic };
    let flow = story.run(&mut summary, began_ns, progress)?;

    let stopped = launched.stop();
    summary.note_stopped(stopped.map_err(|error| error.to_string()));
    summary.finish((now_ns() - began_ns) / 1_000_000);
    let svg = drawing::draw(&summary, &flow, began_ns);
    Ok(Demonstration { summary, svg })
}

/// The default sizes under a name of its own, so that demos do not meet. The node that collects
/// never becomes the manager, whose node is going to die.
#[must_use]
pub fn cluster() -> Cluster {
    let name = format!("demo-{}", std::process::id());
    let name = name.parse::<ClusterName>().unwrap_or_default();
    let mut cluster = Cluster { name, nodes: NODES, ..Cluster::default() };
    cluster.group.count = 1;
    cluster.tasks = script::tasks();
    let mut parts = cluster.dirnet.parts(NODES);
    parts[usize::from(COLLECTOR)] = Part::Agent;
    cluster.dirnet.roles = Some(parts);
    cluster
}

/// Removes the files of demos that were killed: no later demo has their name.
fn clear_dead_demos() {
    let Ok(runtime_dir) = RuntimeDir::open() else { return };
    let clusters = runtime_dir.list().unwrap_or_default().into_iter();
    let dead = clusters.filter(|(_, liveness)| *liveness == Liveness::Dead);
    for (name, _) in dead.filter(|(name, _)| name.as_str().starts_with("demo-")) {
        if let Err(error) = runtime_dir.clear(&name) {
            tracing::debug!(%error, %name, "a dead demo is not cleared away");
        }
    }
}

/// The part between start and stop.
struct Story {
    nodes: Nodes,
    frames: Arc<[StreamFrame]>,
    /// The input as one text.
    text: Arc<[u8]>,
    traffic: Arc<DemoTraffic>,
}

impl Story {
    fn run(
        &self,
        summary: &mut Summary,
        began_ns: u64,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<ArrivalCounts, DemoError> {
        let mut inbox = Inbox::new(self.nodes.connect(COLLECTOR)?);
        let mut resumes = Vec::new();
        let mut streams = Vec::new();
        for rank in self.nodes.ranks().filter(|rank| *rank != COLLECTOR) {
            let (resume, resumed_at) = sync_channel(ANSWERS_MAX);
            let (nodes, client) = (self.nodes.clone(), self.nodes.connect(rank)?);
            let (frames, traffic) = (Arc::clone(&self.frames), Arc::clone(&self.traffic));
            let stream = MessageStream::new(nodes, client, frames, traffic, resumed_at);
            streams.push(self.start(move || stream.run())?);
            resumes.push(resume);
        }
        let (text, traffic) = (Arc::clone(&self.text), Arc::clone(&self.traffic));
        let director = Director { nodes: self.nodes.clone(), text, traffic };
        let director = self.start(move || director.direct())?;
        let mut collector = Collector::new(resumes, Arc::clone(&self.traffic));
        collector.collect(&mut inbox, |traffic| {
            progress(traffic.survived() as u64, traffic.arrived());
        })?;
        let ends = streams.into_iter().map(join).collect::<Result<Vec<StreamEnd>, _>>()?;
        let (acts, script): (Vec<Act>, ScriptSummary) = join(director)?;
        for act in &acts {
            summary.note_recovery(act, BlowRecovery::new(act, &collector.flow, began_ns));
        }
        summary.note_script(script);
        summary.note_survivors(&acts);
        if self.nodes.cluster().group.count > 0 {
            summary.note_tree(acts.into_iter().find_map(|act| act.tree));
        }
        summary.note_streams(&collector, &ends, inbox.redelivered());
        Ok(collector.flow)
    }

    /// Starts a thread; the others do not wait for one that cannot go on.
    fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, DemoError> + Send + 'static,
    ) -> Result<JoinHandle<Result<T, DemoError>>, DemoError> {
        let traffic = Arc::clone(&self.traffic);
        let started = start_thread("weft-demo", move || traffic.note_end(work()));
        started.map_err(|error| DemoError::Stopped(error.to_string()))
    }
}

fn join<T>(handle: JoinHandle<Result<T, DemoError>>) -> Result<T, DemoError> {
    handle.join().unwrap_or_else(|_| Err(DemoError::Stopped("a thread panicked".to_owned())))
}

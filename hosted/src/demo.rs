//! The demonstration: a cluster works, loses a member in mid-stream, gets it back, and proves
//! that nothing of the survivors was lost.
//!
//! ```text
//!   node 0 ─┐ every line of the input, numbered and hashed
//!   node 1 ─┼──────────────▶ mailbox of node 3 ──▶ collector: numbers, hashes, digests
//!   node 2 ─┘      ▲
//!                  └─ node 1's component is killed (kill -9) at two fifths of its lines; the
//!                     next one asks how far the first came, and goes on behind that
//! ```
//!
//! Then every node broadcasts to all others at once, and one of them lies: `demo/broadcast.rs`.
//!
//! The nodes are real processes, started by [`Launched`]; the streams
//! and the collector are clients of theirs. Every figure in the [`Summary`] is counted, none is
//! assumed: a digest that differs, a number twice or a number missing makes it fail.

mod broadcast;
mod collector;
mod frame;
mod input;
mod stream;
mod summary;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

pub use input::{Input, InputError};
pub use summary::{Step, StreamSummary, Summary};

use crate::client::{Client, ClientError, Inbox};
use crate::clock::now_ns;
use crate::cluster::{Cluster, ClusterName};
use crate::explain::{Code, Explain};
use crate::launch::{LaunchError, Launched};
use crate::runtime_dir::{Liveness, RuntimeDir};
use collector::Collector;
use frame::Frame;
use stream::{Stream, StreamEnd};

/// Nodes of the demonstration; the last one collects.
pub const NODES: usize = 4;
/// The node that is killed.
const VICTIM: u16 = 1;
const COLLECTOR: u16 = 3;
/// How long anything may take that does not depend on the length of the input.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why the demonstration could not be given. A demonstration that was given and failed its own
/// checks is no error but a [`Summary`] that says so.
#[derive(Debug)]
pub enum DemoError {
    /// The cluster did not start.
    Launch(LaunchError),
    /// A node did not do what it was asked.
    Client(ClientError),
    /// A stream stopped before its end.
    Stopped(String),
    /// Ctrl-C or SIGTERM.
    Interrupted,
}

impl std::fmt::Display for DemoError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Launch(error) => error.fmt(f),
            Self::Client(error) => error.fmt(f),
            Self::Stopped(what) => f.write_str(what),
            Self::Interrupted => f.write_str("the demo was interrupted"),
        }
    }
}

impl std::error::Error for DemoError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Launch(error) => Some(error),
            Self::Client(error) => Some(error),
            Self::Stopped(_) | Self::Interrupted => None,
        }
    }
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

impl From<LaunchError> for DemoError {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl From<ClientError> for DemoError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

/// Gives the demonstration on a new `cluster` of [`NODES`] nodes with `input`; `progress` hears
/// how many messages have arrived of how many, `interrupted` ends it early.
///
/// # Errors
/// [`DemoError`]. No process is left behind.
pub fn run(
    cluster: &Cluster,
    input: &Input,
    interrupted: &Arc<AtomicBool>,
    progress: impl FnMut(u64, u64),
) -> Result<Summary, DemoError> {
    let began_ns = now_ns();
    let mut summary = Summary::new(input);
    clear_dead_demos();
    let mut launched = Launched::start(cluster)?;
    launched.await_running(PATIENCE)?;
    summary.note_started(cluster, now_ns() - began_ns);

    let limit = cluster.mailbox.message_len;
    let frames: Arc<[Frame]> = frame::split(input, limit).into();
    let story = Story { launched: &launched, frames: &frames, interrupted };
    story.tell(&mut summary, progress)?;
    summary.note_broadcasts(&broadcast::show(&launched, input)?);

    let stopped = launched.stop();
    summary.note_stopped(stopped.map_err(|error| error.to_string()));
    summary.finish((now_ns() - began_ns) / 1_000_000);
    Ok(summary)
}

/// The default sizes under a name of its own, so that demos do not meet.
#[must_use]
pub fn cluster() -> Cluster {
    let name = format!("demo-{}", std::process::id());
    let name = name.parse::<ClusterName>().unwrap_or_default();
    Cluster { name, nodes: NODES, ..Cluster::default() }
}

/// Clears away what demos left behind that were killed: nobody starts one of that name again.
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
struct Story<'a> {
    launched: &'a Launched,
    frames: &'a Arc<[Frame]>,
    interrupted: &'a Arc<AtomicBool>,
}

impl Story<'_> {
    fn tell(&self, summary: &mut Summary, progress: impl FnMut(u64, u64)) -> Result<(), DemoError> {
        let senders = self.launched.ranks().filter(|rank| *rank != COLLECTOR);
        let (kill, kills) = sync_channel(1);
        let mut inbox = Inbox::new(self.connect(COLLECTOR)?);
        let mut resumes = Vec::new();
        let mut streams = Vec::new();
        for rank in senders {
            let (resume, resumed_at) = sync_channel(1);
            let kill_at = (rank == VICTIM).then(|| (self.frames.len() * 2 / 5, kill.clone()));
            streams.push(self.start_stream(rank, kill_at, resumed_at)?);
            resumes.push(resume);
        }
        let mut victim = self.connect(VICTIM)?;
        let alive = victim.status()?.incarnation;
        let killer = thread::spawn(move || {
            kills.recv().map_err(|_| DemoError::Interrupted)?;
            kill_and_await(&mut victim, alive)
        });
        // The stream holds the other end: without it the killer waits for nobody.
        drop(kill);
        let mut collector = Collector::new(self.frames, resumes);
        collector.collect(&mut inbox, self.interrupted, progress)?;
        let ends = streams.into_iter().map(join).collect::<Result<Vec<_>, _>>()?;
        let recovery = join(killer)?;
        summary.note_streams(&collector, &ends, inbox.redelivered());
        summary.note_recovery(VICTIM, &recovery);
        Ok(())
    }

    fn connect(&self, rank: u16) -> Result<Client, DemoError> {
        Ok(self.launched.connect(rank, PATIENCE)?)
    }

    fn start_stream(
        &self,
        rank: u16,
        kill_at: Option<(usize, SyncSender<()>)>,
        resumed_at: std::sync::mpsc::Receiver<usize>,
    ) -> Result<thread::JoinHandle<Result<StreamEnd, DemoError>>, DemoError> {
        let client = self.connect(rank)?;
        let frames = Arc::clone(self.frames);
        let interrupted = Arc::clone(self.interrupted);
        Ok(thread::spawn(move || {
            let ended =
                Stream::new(client, COLLECTOR, frames, kill_at, resumed_at).run(&interrupted);
            if ended.is_err() {
                // The collector waits for a stream that will not end.
                interrupted.store(true, Ordering::Relaxed);
            }
            ended
        }))
    }
}

/// The victim's way back.
pub(crate) struct Recovery {
    /// The life that was killed.
    pub(crate) killed: u32,
    /// The life that runs.
    pub(crate) incarnation: u32,
    /// From the kill until the node had exchanged greetings with every peer.
    pub(crate) took_us: u64,
}

fn kill_and_await(victim: &mut Client, killed: u32) -> Result<Recovery, DemoError> {
    let killed_at = now_ns();
    victim.kill()?;
    let status = victim.await_running(killed + 1, PATIENCE)?;
    let took_us = (now_ns() - killed_at) / 1_000;
    Ok(Recovery { killed, incarnation: status.incarnation, took_us })
}

fn join<T>(handle: thread::JoinHandle<Result<T, DemoError>>) -> Result<T, DemoError> {
    handle.join().unwrap_or_else(|_| Err(DemoError::Stopped("a thread panicked".to_owned())))
}

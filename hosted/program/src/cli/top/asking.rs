//! Who asks the nodes: a thread for each, so that one that hangs delays no figure but its own.
//!
//! ```text
//!   terminal thread ── a round ──▶ thread of node N ── status, then what it has noted ──▶ replies
//!                   └─ a round ──▶ thread of the cluster: does it still run, with which file?
//! ```
//!
//! A thread that is still busy is not asked again, so at most one round waits for each; the queue
//! of replies is bounded, and a thread that finds it full waits for the terminal thread alone.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use crate::cli::cluster_choice::Running;
use crate::cli::failure::Failure;
use crate::cli::survey::{NodeAnswer, ask};
use weft::client::{self, Client, ClientError};
use weft::clock::now_ns;
use weft::cluster::Cluster;
use weft::node::evidence::Copied;
use weft::process::start_thread;
use weft::runtime_dir::FindError;

/// What a thread has found.
#[derive(Debug)]
pub(super) enum PollReply {
    /// The cluster runs, with this file.
    Runs(Box<Cluster>),
    /// It does not, or cannot be found, for this reason.
    Ended(String),
    /// The answer of a node, or that there is none.
    Answer {
        /// When it came.
        at_ns: u64,
        answer: NodeAnswer,
        resident: Resident,
    },
    /// What a node has noted since its last reply, or keeps of what others have.
    Notes(Vec<Copied>),
}

/// The memory of a node's processes that is resident, in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resident {
    pub(super) supervisor: Option<u64>,
    pub(super) component: Option<u64>,
}

/// The threads that ask.
pub(super) struct Asking {
    rounds: Vec<SyncSender<()>>,
    replies: Receiver<PollReply>,
}

impl Asking {
    /// Starts a thread for each node of `running`, and one for the cluster.
    pub(super) fn start(running: &Arc<Running>) -> Result<Self, Failure> {
        // An answer and the notes of each node, and one of the cluster.
        let (replies, received) = sync_channel(2 * running.cluster.nodes + 1);
        let mut rounds = Vec::new();
        let mut start = |name: &str, mut act: Act| {
            let (round, rounds_due) = sync_channel::<()>(1);
            rounds.push(round);
            let replies = replies.clone();
            let work = move || while rounds_due.recv().is_ok() && act(&replies) {};
            start_thread(name, work).map(drop).map_err(Failure::new)
        };
        for rank in running.ranks() {
            let (running, mut after_ns) = (Arc::clone(running), None);
            let act = move |replies: &_| ask_node(&running, rank, &mut after_ns, replies);
            start(&format!("weft-ask-{rank}"), Box::new(act))?;
        }
        let running = Arc::clone(running);
        start("weft-find", Box::new(move |replies| replies.send(find(&running)).is_ok()))?;
        Ok(Self { rounds, replies: received })
    }

    /// Begins a round; returns whether all threads are there.
    pub(super) fn begin_round(&self) -> bool {
        let is_gone =
            |round: &SyncSender<()>| round.try_send(()) == Err(TrySendError::Disconnected(()));
        !self.rounds.iter().any(is_gone)
    }

    /// The next reply, if there is one.
    pub(super) fn poll_reply(&self) -> Option<PollReply> {
        self.replies.try_recv().ok()
    }
}

/// What a thread does in a round; it returns whether anyone still reads its replies.
type Act = Box<dyn FnMut(&SyncSender<PollReply>) -> bool + Send>;

fn ask_node(
    running: &Running,
    rank: u16,
    after_ns: &mut Option<u64>,
    replies: &SyncSender<PollReply>,
) -> bool {
    let (answer, client) = ask(running, rank);
    let resident = match &answer {
        NodeAnswer::Answered(node) => Resident {
            supervisor: resident_kib(node.supervisor_pid),
            component: node.component_pid.and_then(resident_kib),
        },
        NodeAnswer::Silent { .. } => Resident::default(),
    };
    // First, so that a node that hangs now withholds its notes alone.
    if replies.send(PollReply::Answer { at_ns: now_ns(), answer, resident }).is_err() {
        return false;
    }
    match client.and_then(|mut client| notes(&mut client, after_ns).ok()) {
        Some(notes) if !notes.is_empty() => replies.send(PollReply::Notes(notes)).is_ok(),
        Some(_) | None => true,
    }
}

/// What the node has noted after that time; if it was never asked, all that it keeps, also of what
/// others have noted.
fn notes(client: &mut Client, after_ns: &mut Option<u64>) -> Result<Vec<Copied>, ClientError> {
    let mut notes = match after_ns {
        None => client.whole_evidence(None)?.0,
        Some(_) => Vec::new(),
    };
    let own = client.whole_chronicle(None, after_ns.unwrap_or(0))?;
    *after_ns = Some(own.last().map_or(after_ns.unwrap_or(0), |last| last.at_ns));
    notes.extend(own.into_iter().map(|entry| Copied { noted_ns: entry.at_ns, entry }));
    Ok(notes)
}

fn find(running: &Running) -> PollReply {
    match client::find(&running.cluster.name, Duration::ZERO) {
        Ok((_, cluster)) => PollReply::Runs(Box::new(cluster)),
        Err(ClientError::Find(FindError::NotRunning { .. })) => {
            PollReply::Ended("the cluster has ended".to_owned())
        }
        Err(ClientError::Find(FindError::Dead { .. })) => {
            PollReply::Ended("the cluster is dead: all of its processes have ended".to_owned())
        }
        Err(error) => PollReply::Ended(error.to_string()),
    }
}

/// The resident memory of a process of this host, as the kernel shows it.
fn resident_kib(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_process_is_found_and_that_of_none_is_not() {
        let own = i32::try_from(std::process::id()).expect("a process number");
        assert!(resident_kib(own).is_some_and(|kib| kib > 0));
        assert_eq!(resident_kib(i32::MAX), None);
    }
}

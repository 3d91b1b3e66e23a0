//! `weft status`: every node of a running cluster.

use std::thread;

use clap::Args;
use serde::Serialize;

use super::cluster_choice::{ClusterChoice, Running};
use super::failure::Failure;
use super::output::Output;
use crate::node::control::{NodeState, NodeStatus, TaskStatus};

/// Arguments of `weft status`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    cluster: ClusterChoice,
}

#[derive(Debug, Serialize)]
struct ClusterStatus {
    name: String,
    nodes: Vec<Entry>,
}

/// A node that answered, or one that did not.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Entry {
    Answered(Box<NodeStatus>),
    Silent { rank: u16, state: &'static str, incarnation: Option<u32> },
}

impl Entry {
    const fn silent(rank: u16) -> Self {
        Self::Silent { rank, state: "unreachable", incarnation: None }
    }
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let running = arguments.cluster.find()?;
    let nodes = ask_all(&running);
    let status = ClusterStatus { name: running.cluster.name.to_string(), nodes };
    output.finish(&status, &render(&status));
    Ok(())
}

/// Asks every node at once, so that one that hangs costs its own deadline and nobody else's.
fn ask_all(running: &Running) -> Vec<Entry> {
    thread::scope(|scope| {
        let asked: Vec<_> =
            running.ranks().map(|rank| (rank, scope.spawn(move || entry(running, rank)))).collect();
        let answer = |(rank, asked): (u16, thread::ScopedJoinHandle<'_, Entry>)| {
            asked.join().unwrap_or_else(|_| Entry::silent(rank))
        };
        asked.into_iter().map(answer).collect()
    })
}

fn entry(running: &Running, rank: u16) -> Entry {
    let answered =
        running.connect(rank).and_then(|mut client| client.status().map_err(Failure::new));
    answered.map_or_else(|_| Entry::silent(rank), |status| Entry::Answered(Box::new(status)))
}

fn render(status: &ClusterStatus) -> String {
    let mut text = format!(
        "cluster {}\n{:>4}  {:<11} {:>11} {:>8} {:>9}  {:>9} {:>9} {:>6} {:>7}  peers\n",
        status.name,
        "node",
        "state",
        "incarnation",
        "restarts",
        "component",
        "put",
        "taken",
        "full",
        "skipped",
    );
    for entry in &status.nodes {
        text.push_str(&match entry {
            Entry::Silent { rank, state, .. } => format!("{rank:>4}  {state}\n"),
            Entry::Answered(node) => row(node),
        });
    }
    let answered = status.nodes.iter().filter_map(|entry| match entry {
        Entry::Answered(node) => Some(node),
        Entry::Silent { .. } => None,
    });
    let tasks: String =
        answered.flat_map(|node| node.tasks.iter().map(|task| task_row(node.rank, task))).collect();
    if !tasks.is_empty() {
        text.push_str(&format!(
            "\n{:>4}  {:<11} {:>11} {:>8} {:>9}  task, last error\n{tasks}",
            "node", "task is", "errors", "restarts", "process"
        ));
    }
    text
}

fn task_row(rank: u16, task: &TaskStatus) -> String {
    let pid = task.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
    let last = task
        .last_errors
        .last()
        .map_or_else(String::new, |last| format!(", {} {} s ago", last.fault, last.ago_ms / 1_000));
    format!(
        "{rank:>4}  {:<11} {:>11} {:>8} {pid:>9}  {}{last}\n",
        task.state.as_str(),
        task.errors,
        task.restarts,
        task.name,
    )
}

fn row(node: &NodeStatus) -> String {
    let state = match node.state {
        NodeState::Starting => "starting",
        NodeState::Joining => "joining",
        NodeState::Running => "running",
        NodeState::GivenUp => "given up",
    };
    let pid = node.component_pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
    let counters = node.counters.unwrap_or_default();
    let peers = node.peers.iter().map(|peer| match (peer.incarnation, peer.joined) {
        (Some(incarnation), true) => format!("{}:{incarnation}", peer.rank),
        (Some(incarnation), false) => format!("{}:{incarnation}?", peer.rank),
        (None, _) => format!("{}:-", peer.rank),
    });
    format!(
        "{:>4}  {state:<11} {:>11} {:>8} {pid:>9}  {:>9} {:>9} {:>6} {:>7}  {}\n",
        node.rank,
        node.incarnation,
        node.restarts,
        counters.put,
        counters.taken,
        counters.full,
        counters.skipped,
        peers.collect::<Vec<_>>().join(" "),
    )
}

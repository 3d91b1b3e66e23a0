//! `weft status`: every node of a running cluster.

use clap::Args;
use serde::Serialize;

use super::cluster_choice::{ClusterChoice, Running};
use super::failure::Failure;
use super::output::Output;
use crate::node::control::{NodeState, NodeStatus};

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

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let running = arguments.cluster.find()?;
    let nodes = running.ranks().map(|rank| entry(&running, rank)).collect();
    let status = ClusterStatus { name: running.cluster.name.to_string(), nodes };
    output.finish(&status, &render(&status));
    Ok(())
}

fn entry(running: &Running, rank: u16) -> Entry {
    let answered =
        running.connect(rank).and_then(|mut client| client.status().map_err(Failure::new));
    answered.map_or(Entry::Silent { rank, state: "unreachable", incarnation: None }, |status| {
        Entry::Answered(Box::new(status))
    })
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
    text
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

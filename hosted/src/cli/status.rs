//! `weft status`: every node of a running cluster.

use clap::Args;

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::output::Output;
use super::survey::{Entry, Survey};
use crate::node::control::{NodeStatus, OriginStatus, TaskStatus};

/// Arguments of `weft status`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let running = arguments.cluster.find()?;
    let survey = Survey::take(&running);
    output.finish(&survey, &render(&survey));
    Ok(())
}

fn render(status: &Survey) -> String {
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
    let tasks: String = status.tasks().map(|(rank, task)| task_row(rank, task)).collect();
    if !tasks.is_empty() {
        text.push_str(&format!(
            "\n{:>4}  {:<11} {:>11} {:>8} {:>9}  task, last error\n{tasks}",
            "node", "task is", "errors", "restarts", "process"
        ));
    }
    text.push_str(&broadcasts(status));
    text
}

/// Who has broadcast, and how every node stands with it.
fn broadcasts(status: &Survey) -> String {
    let rows = status.answered().flat_map(|node| {
        let is_used = |row: &&OriginStatus| row.broadcast > 0;
        node.broadcasts.iter().filter(is_used).map(|row| broadcast_row(node.rank, row))
    });
    let rows: String = rows.collect();
    if rows.is_empty() {
        return rows;
    }
    let (node, origin, broadcast, delivered) = ("node", "origin", "broadcast", "delivered");
    format!(
        "\n{node:>4}  {origin:>6} {broadcast:>11} {delivered:>11} {:>11} {:>9}\n{rows}",
        "by all", "conflicts"
    )
}

fn broadcast_row(rank: u16, row: &OriginStatus) -> String {
    let OriginStatus { origin, broadcast, delivered, settled, conflicts, first_conflict } = row;
    let conflict = first_conflict.map_or_else(String::new, |first| {
        format!(", the first at {} with node {}", first.seq, first.replayer)
    });
    format!(
        "{rank:>4}  {origin:>6} {broadcast:>11} {delivered:>11} {settled:>11} \
         {conflicts:>9}{conflict}\n"
    )
}

fn task_row(rank: u16, task: &TaskStatus) -> String {
    let last = task
        .last_errors
        .last()
        .map_or_else(String::new, |last| format!(", {} {} s ago", last.fault, last.ago_ms / 1_000));
    format!(
        "{rank:>4}  {:<11} {:>11} {:>8} {:>9}  {}{last}\n",
        task.state.as_str(),
        task.errors,
        task.restarts,
        pid(task.pid),
        task.name,
    )
}

fn row(node: &NodeStatus) -> String {
    let state = node.state.words();
    let counters = node.counters.unwrap_or_default();
    format!(
        "{:>4}  {state:<11} {:>11} {:>8} {:>9}  {:>9} {:>9} {:>6} {:>7}  {}\n",
        node.rank,
        node.incarnation,
        node.restarts,
        pid(node.component_pid),
        counters.put,
        counters.taken,
        counters.full,
        counters.skipped,
        peers(node),
    )
}

/// A process number, if there is one.
pub(super) fn pid(pid: Option<i32>) -> String {
    pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string())
}

/// The peers of a node: each with its incarnation, `?` before it is greeted, `-` if it does not
/// live.
pub(super) fn peers(node: &NodeStatus) -> String {
    let peers = node.peers.iter().map(|peer| match (peer.incarnation, peer.joined) {
        (Some(incarnation), true) => format!("{}:{incarnation}", peer.rank),
        (Some(incarnation), false) => format!("{}:{incarnation}?", peer.rank),
        (None, _) => format!("{}:-", peer.rank),
    });
    peers.collect::<Vec<_>>().join(" ")
}

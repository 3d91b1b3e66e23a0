//! `weft inject`: break something in a running cluster.

mod equivocate;

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::cluster_choice::{ClusterChoice, Running, seconds};
use super::failure::Failure;
use super::output::Output;
use super::survey::Survey;
use weft::client::{Client, ClientError};
use weft::clock::now_ns;
use weft::explain::{self, Code};
use weft::node::control::{Fault, NodeState};
use weft::packet::PacketError;

/// The longest stall, an hour.
const STALL_MS_MAX: u64 = 3_600_000;

/// Arguments of `weft inject`.
#[derive(Debug, Args)]
pub(super) struct InjectArguments {
    #[command(subcommand)]
    what: InjectCommand,
}

#[derive(Debug, Subcommand)]
enum InjectCommand {
    /// Kill a node's component process with SIGKILL; the node starts the next one.
    Kill(Struck),
    /// Hang a node's component: the process stays alive and makes no progress.
    Hang(Struck),
    /// Stop the timers of a node's component: it sends no heartbeats but still answers.
    Silence(Struck),
    /// Kill a node with SIGKILL: its supervisor and all of its processes.
    Node(Struck),
    /// Pause a node's component for a while.
    Stall(StallArguments),
    /// Have a node equivocate: one broadcast of which every second peer receives another message.
    Equivocate(Equivocate),
    /// Cut the links between a node and others.
    Partition(Partition),
    /// End a node's injected faults: hang, stall, silence, partition.
    Heal(Heal),
}

#[derive(Debug, Args)]
struct Struck {
    /// The node's rank.
    node: u16,

    #[command(flatten)]
    cluster: ClusterChoice,

    /// Wait up to this many seconds until the node runs again in a later incarnation; 0 does not
    /// wait.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS", allow_negative_numbers = true)]
    wait: f64,
}

#[derive(Debug, Args)]
struct StallArguments {
    /// The node's rank.
    node: u16,

    /// For this many milliseconds; `weft inject hang` has no end.
    #[arg(long, default_value_t = 160, value_name = "MILLISECONDS",
        value_parser = clap::value_parser!(u64).range(1..=STALL_MS_MAX))]
    ms: u64,

    #[command(flatten)]
    cluster: ClusterChoice,
}

#[derive(Debug, Args)]
struct Equivocate {
    /// The node's rank.
    node: u16,

    /// How long to wait, in seconds, until another node has seen the conflict.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", allow_negative_numbers = true)]
    wait: f64,

    #[command(flatten)]
    cluster: ClusterChoice,
}

#[derive(Debug, Args)]
struct Partition {
    /// The node's rank.
    node: u16,

    /// From these nodes, with commas between them; may be repeated. From all others if not given.
    #[arg(long, value_name = "RANK", value_delimiter = ',')]
    from: Vec<u16>,

    /// One way: the others still reach the node.
    #[arg(long)]
    one_way: bool,

    #[command(flatten)]
    cluster: ClusterChoice,
}

#[derive(Debug, Args)]
struct Heal {
    /// The node's rank: all its links are restored in both directions; every node's if not given.
    node: Option<u16>,

    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &InjectArguments, output: Output) -> Result<(), Failure> {
    match &arguments.what {
        InjectCommand::Kill(struck) => strike(struck, output, "killed", Client::kill),
        InjectCommand::Hang(struck) => {
            strike(struck, output, "hung", |client| client.inject(Fault::Hang))
        }
        InjectCommand::Silence(struck) => {
            strike(struck, output, "silenced", |client| client.inject(Fault::Silence))
        }
        InjectCommand::Node(struck) => strike(struck, output, "node_killed", Client::kill_node),
        InjectCommand::Stall(stall) => run_stall(stall, output),
        InjectCommand::Equivocate(equivocate) => equivocate::run(equivocate, output),
        InjectCommand::Partition(partition) => run_partition(partition, output),
        InjectCommand::Heal(heal) => run_heal(heal, output),
    }
}

/// Does `harm` to a node, and waits for its next incarnation.
fn strike(
    struck: &Struck,
    output: Output,
    done: &str,
    harm: impl FnOnce(&mut Client) -> Result<(), ClientError>,
) -> Result<(), Failure> {
    let wait = seconds("--wait", struck.wait)?;
    let running = struck.cluster.find()?;
    let node = struck.node;
    let absent = |failure| absent(&running, node, failure);
    let mut client = running.connect(node).map_err(absent)?;
    // One that was killed just now may still have had a socket.
    let status = client.status().map_err(Failure::new).map_err(absent)?;
    let before = status.incarnation;
    let joined = status.peers.iter().filter(|peer| peer.incarnation.is_some()).count();
    let struck_at_ns = now_ns();
    harm(&mut client).map_err(Failure::new)?;
    if status.state == NodeState::Isolated {
        let object = json!({ "ok": true, "node": node, done: before, "isolated": true });
        let text = format!("node {node}: killed; it is isolated; {}", cure(node));
        output.finish(&object, &format!("{text}\n"));
        return Ok(());
    }
    let what = match (done, status.component_pid) {
        ("node_killed", None) => format!("node {node}: killed, before it had a component"),
        ("node_killed", Some(_)) => {
            format!("node {node}: killed, with the component of incarnation {before}")
        }
        (done, _) => format!("node {node}: component of incarnation {before} {done}"),
    };
    if wait == Duration::ZERO {
        let object = json!({ "ok": true, "node": node, done: before });
        output.finish(&object, &format!("{what}\n"));
        return Ok(());
    }
    let after = running.await_return(node, before + 1, joined, wait)?;
    // From the fault: one that hangs or keeps quiet has first to be found.
    let recovery_us = (now_ns() - struck_at_ns) / 1_000;
    let object = json!({
        "ok": true,
        "node": node,
        done: before,
        "incarnation": after.incarnation,
        "recovery_us": recovery_us,
    });
    let text = format!(
        "{what}; incarnation {} runs {} ms later\n",
        after.incarnation,
        recovery_us / 1_000,
    );
    output.finish(&object, &text);
    Ok(())
}

/// The command that admits an isolated node again.
fn cure(node: u16) -> String {
    format!("`weft release {node}` admits it again")
}

/// The error for a node that does not answer: whether it comes back by itself.
fn absent(running: &Running, node: u16, failure: Failure) -> Failure {
    if failure.code() != Code::NodeUnreachable {
        return failure;
    }
    let knows = |rank: u16| {
        let standing = running.connect_now(rank).ok()?.status().ok()?.dirnet?;
        standing.isolated.contains(&node).then_some(())
    };
    let cause = format!("node {node} does not run: its supervisor does not answer");
    if running.ranks().any(|rank| knows(rank).is_some()) {
        let cause = format!("{cause}, and it is isolated");
        return Failure::of(Code::Isolated, cause, cure(node));
    }
    let cure = format!(
        "wait until it is started again; `weft status --why {node}` shows what it waits for"
    );
    Failure::of(Code::NodeUnreachable, cause, cure)
}

fn run_stall(stall: &StallArguments, output: Output) -> Result<(), Failure> {
    let StallArguments { node, ms, cluster } = stall;
    let mut client = cluster.find()?.connect(*node)?;
    client.inject(Fault::Stall { ms: *ms }).map_err(Failure::new)?;
    let object = json!({ "ok": true, "node": node, "stalled_ms": ms });
    output.finish(&object, &format!("node {node}: component stalls for {ms} ms\n"));
    Ok(())
}

fn run_partition(partition: &Partition, output: Output) -> Result<(), Failure> {
    let running = partition.cluster.find()?;
    let node = partition.node;
    let from = beyond(partition, &running)?;
    let cut = |rank: u16, from: Vec<u16>| running.order_lasting(rank, &Fault::Partition { from });
    if !partition.one_way {
        from.iter().try_for_each(|other| cut(*other, vec![node]))?;
    }
    let from: Vec<u16> = from.into_iter().collect();
    cut(node, from.clone())?;
    let object = json!({ "ok": true, "node": node, "from": from, "one_way": partition.one_way });
    let others = explain::nodes(&from);
    let text = match partition.one_way {
        true => format!("link from node {node} to {others} cut\n"),
        false => format!("link between node {node} and {others} cut\n"),
    };
    output.finish(&object, &text);
    Ok(())
}

/// The nodes on the other side of the cut: each is checked before the first cut is ordered.
fn beyond(partition: &Partition, running: &Running) -> Result<BTreeSet<u16>, Failure> {
    let node = partition.node;
    let from: BTreeSet<u16> = if partition.from.is_empty() {
        running.ranks().filter(|rank| *rank != node).collect()
    } else {
        partition.from.iter().copied().collect()
    };
    let cure = "name other nodes of the cluster";
    if from.contains(&node) {
        let cause = format!("node {node} cannot be cut off from itself");
        return Err(Failure::of(Code::Usage, cause, cure));
    }
    if from.is_empty() {
        let cause = format!("node {node} has no peer to be cut off from");
        return Err(Failure::of(Code::Usage, cause, cure));
    }
    // A node that does not exist is refused as everywhere.
    let strangers = from.iter().filter(|rank| usize::from(**rank) >= running.cluster.nodes);
    strangers.copied().try_for_each(|rank| running.connect(rank).map(drop))?;
    Ok(from)
}

/// Restores the links from other nodes to `node`.
fn mend(running: &Running, node: u16) -> Vec<Result<(), Failure>> {
    let survey = Survey::take(running);
    let cut = survey.answered().filter(|other| other.cut.contains(&node));
    let fault = Fault::Mend { with: vec![node] };
    cut.map(|other| running.order_lasting(other.rank, &fault)).collect()
}

fn run_heal(heal: &Heal, output: Output) -> Result<(), Failure> {
    let running = heal.cluster.find()?;
    let is_down = |rank: &u16| {
        let source = running.connect_now(*rank).map(drop);
        matches!(source, Err(ClientError::Unreachable { source: PacketError::Connect { .. }, .. }))
    };
    // A cut ends with its node.
    let (down, nodes): (Vec<u16>, Vec<u16>) = match heal.node {
        Some(node) => (Vec::new(), vec![node]),
        None => running.ranks().partition(is_down),
    };
    // A node that does not answer must not keep the others cut.
    let healed = nodes.iter().map(|node| running.order_lasting(*node, &Fault::Heal));
    let mended = heal.node.into_iter().flat_map(|node| mend(&running, node));
    let outcomes: Vec<_> = healed.chain(mended).collect();
    outcomes.into_iter().collect::<Result<(), Failure>>()?;
    let mut text = format!("healed: {}\n", explain::nodes(&nodes));
    if !down.is_empty() {
        text.push_str(&format!(
            "not running, so nothing is cut there: {}\n",
            explain::nodes(&down)
        ));
    }
    output.finish(&json!({ "ok": true, "nodes": nodes, "down": down }), &text);
    Ok(())
}

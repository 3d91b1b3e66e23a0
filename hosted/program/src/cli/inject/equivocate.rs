//! `weft inject equivocate`: a node sends two messages under one number; the others detect it.

use std::time::Duration;

use serde_json::json;

use super::Equivocate;
use crate::cli::cluster_choice::{Running, seconds};
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::survey::Survey;
use weft::client::ClientError;
use weft::clock::Deadline;
use weft::explain::{Code, nodes};
use weft::node::control::{ConflictStatus, Equivocation, Refused};

/// A receiver needs another one to compare with.
const NODES_MIN: usize = 3;
/// How often the nodes are asked what they have seen.
const ASK_EVERY: Duration = Duration::from_millis(20);

pub(super) fn run(arguments: &Equivocate, output: Output) -> Result<(), Failure> {
    let deadline = Deadline::after(seconds("--wait", arguments.wait)?);
    let running = arguments.cluster.find()?;
    let node = arguments.node;
    if running.cluster.nodes < NODES_MIN {
        let cause = "with two nodes no two receivers can be sent different messages";
        return Err(Failure::of(Code::Usage, cause, "start a cluster of three nodes or more"));
    }
    if let Some(failure) = disputed(&Survey::take(&running), node) {
        return Err(failure);
    }
    let lie = equivocate(&running, node, deadline)?;
    let Equivocation { seq, original, altered } = &lie;
    if original.is_empty() || altered.is_empty() {
        let reached: Vec<_> = original.iter().chain(altered).copied().collect();
        let cause = format!("node {node} reached too few nodes: {}", nodes(&reached));
        let cure = "wait until `weft status` shows that all nodes run, and try again";
        return Err(Failure::of(Code::NodeUnreachable, cause, cure));
    }
    let seen = await_conflict(&running, (node, *seq), deadline);
    let rows: Vec<_> = seen
        .iter()
        .map(|(rank, conflict)| {
            json!({ "node": rank, "seq": conflict.seq, "replayer": conflict.replayer })
        })
        .collect();
    let object = json!({
        "ok": !seen.is_empty(),
        "node": node,
        "seq": seq,
        "original": original,
        "altered": altered,
        "conflicts": rows,
    });
    let mut text = format!(
        "node {node} sent one message to {} and another to {} as number {seq}\n",
        nodes(original),
        nodes(altered)
    );
    for (rank, conflict) in &seen {
        let ConflictStatus { seq, replayer, .. } = conflict;
        text.push_str(&format!(
            "node {rank}: conflict about number {seq} with the copy of node {replayer}\n"
        ));
    }
    output.finish(&object, &text);
    if seen.is_empty() {
        // An earlier conflict may have been detected only now.
        if let Some(failure) = disputed(&Survey::take(&running), node) {
            return Err(failure);
        }
        let cause = format!("no node has seen the conflict within {} s", arguments.wait);
        let cure = "receive what was broadcast before it with `weft bcast --neb --receive`, or \
                    look again with `weft status`";
        return Err(Failure::of(Code::Timeout, cause, cure));
    }
    Ok(())
}

/// Why no node could detect an equivocation of `node`: a conflict ends what they receive of it.
fn disputed(survey: &Survey, node: u16) -> Option<Failure> {
    let other = survey.disputing(node)?;
    let first = survey.row(other, node)?.first_conflict?.seq;
    let cause = format!(
        "node {other} saw a conflict about number {first} of node {node} before, and ignores \
         nothing behind it"
    );
    let cure = format!("have another node lie; {}", survey.clears(node));
    Some(Failure::of(Code::Conflict, cause, cure))
}

/// Has `node` lie, once its window has room.
fn equivocate(running: &Running, node: u16, deadline: Deadline) -> Result<Equivocation, Failure> {
    let mut client = running.connect(node)?;
    loop {
        match client.equivocate() {
            Err(ClientError::Refused { reason: Refused::WindowFull, .. })
                if !deadline.has_passed() =>
            {
                std::thread::park_timeout(ASK_EVERY);
            }
            sent => return sent.map_err(Failure::new),
        }
    }
}

/// Waits until some other node has a conflict about this number of the origin; all that have one by
/// then.
fn await_conflict(
    running: &Running,
    (origin, seq): (u16, u64),
    deadline: Deadline,
) -> Vec<(u16, ConflictStatus)> {
    loop {
        let survey = Survey::take(running);
        let seen = survey.answered().filter_map(|node| {
            let first = survey.row(node.rank, origin)?.first_conflict?;
            (first.seq == seq).then_some((node.rank, first))
        });
        let seen: Vec<_> = seen.collect();
        if !seen.is_empty() || deadline.has_passed() {
            return seen;
        }
        std::thread::park_timeout(ASK_EVERY);
    }
}

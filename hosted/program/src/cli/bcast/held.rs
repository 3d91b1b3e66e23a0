//! Why the window of an origin stays full, and which nodes it waits for.

use crate::cli::failure::Failure;
use crate::cli::survey::Survey;
use weft::explain::{Code, nodes};
use weft::node::control::DirNetStatus;
use weft_core::neb::number_in_epoch;

/// How far a file came before the window was full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Full {
    /// The last message that every node has received, if the node reported it.
    pub(super) settled: Option<u64>,
    /// Bytes of the file that went out.
    pub(super) bytes: u64,
    /// The last message before the file, where it has begun.
    pub(super) before: Option<u64>,
}

/// The error for the window of `from`, which stayed full past the deadline or can never drain: it
/// names the nodes that it waits for.
pub(super) fn window_full(survey: &Survey, from: u16, full: Full) -> Failure {
    if let Some(failure) = hopeless(survey, from) {
        return failure;
    }
    let Full { settled, bytes, before } = full;
    let known = survey.row(from, from).map_or(0, |row| row.settled);
    let settled = settled.unwrap_or(known);
    let lost: Vec<u16> = survey.lost().into_iter().filter(|node| *node != from).collect();
    let (gone, behind) = (gone(survey, from), behind(survey, from, settled));
    // Without their votes the others deliver nothing either.
    let holding = [&lost, &gone, &behind].into_iter().find(|nodes| !nodes.is_empty());
    let cause = format!(
        "the window of node {from} is full, {}: {} not taken message {}{}",
        match bytes {
            0 => "and nothing of this file was sent".to_owned(),
            bytes => format!("after {bytes} bytes of this"),
        },
        match holding.map_or(&[][..], |nodes| &nodes[..]) {
            [] => "some node has".to_owned(),
            [one] => format!("node {one} has"),
            several => format!("{} have", nodes(several)),
        },
        number_in_epoch(settled + 1),
        match before {
            Some(before) if settled >= before => "",
            Some(_) | None => ", which was broadcast before this",
        },
    );
    let cure = if let Some(node) = lost.first() {
        restart_cure(*node)
    } else if let Some(node) = gone.first() {
        format!(
            "node {node} was removed, and with `membership = \"fixed\"` broadcasts wait for it: \
             start it again, or restart the cluster with \"decided\""
        )
    } else if let Some(damage) = survey.damage(from).next() {
        damage.to_string()
    } else if let Some(node) = behind.iter().find(|node| survey.complaint(**node, from).is_some()) {
        complains(*node, from)
    } else {
        let node = behind.first().map_or_else(|| "RANK".to_owned(), u16::to_string);
        format!(
            "receive at every other node, with `weft bcast --neb --receive --node {node}`; `weft \
             status` shows who has taken how much"
        )
    };
    Failure::of(Code::WindowFull, cause, cure)
}

/// The cure where broadcasts wait for `node`, which has lost its broadcast memory.
pub(super) fn restart_cure(node: u16) -> String {
    format!(
        "node {node} has lost its broadcast memory, and with `membership = \"fixed\"` \
         broadcasts wait for it: restart the cluster"
    )
}

/// The cure where `node` delivers nothing more from `from`, for a conflict that it cannot prove.
fn complains(node: u16, from: u16) -> String {
    format!(
        "node {node} is in conflict about node {from} and has no proof: one of the two is faulty. \
         Find out which from `weft status --why`, and remove it with `weft isolate`; with the \
         membership \"fixed\", start the cluster again"
    )
}

/// Why a broadcast of `from` can never arrive, if something decides that.
pub(super) fn hopeless(survey: &Survey, from: u16) -> Option<Failure> {
    if let Some(failure) = disputed(survey, from, u64::MAX) {
        return Some(failure);
    }
    let left = &standing(survey, from)?.left_broadcasts;
    let others = || survey.ranks().filter(|rank| *rank != from);
    if left.contains(&from) || others().any(|rank| !left.contains(&rank)) {
        // The node itself says why it does not broadcast.
        return None;
    }
    Some(alone(survey.cluster.nodes))
}

/// The error if a conflict about `from` keeps its messages up to `last` from arriving everywhere.
pub(super) fn disputed(survey: &Survey, from: u16, last: u64) -> Option<Failure> {
    let (rank, _) = survey.dispute(from).filter(|(_, conflict)| conflict.seq <= last)?;
    let cause = format!(
        "node {rank} saw a conflict about node {from}, and delivers nothing more that node {from} \
         broadcasts"
    );
    let cure = format!(
        "broadcast from another node; `weft status` shows the conflict, {}",
        survey.clears(from)
    );
    Some(Failure::of(Code::Conflict, cause, cure))
}

/// The error where there is no node to broadcast to.
pub(super) fn alone(nodes: usize) -> Failure {
    let (cause, cure) = match nodes {
        1 => ("the cluster has no other node", "start one of several nodes"),
        _ => (
            "no other node takes part in broadcasts: all were removed",
            "run `weft status` to see the removed nodes; release those that are isolated",
        ),
    };
    Failure::of(Code::NodeUnreachable, cause, cure)
}

/// The origin's own status in the DIR net.
fn standing(survey: &Survey, from: u16) -> Option<&DirNetStatus> {
    survey.answered().find(|node| node.rank == from)?.dirnet.as_ref()
}

/// The removed nodes that broadcasts still wait for.
fn gone(survey: &Survey, from: u16) -> Vec<u16> {
    let Some(standing) = standing(survey, from) else { return Vec::new() };
    let is_waited_for = |rank: &&u16| !standing.left_broadcasts.contains(rank);
    standing.removed.iter().filter(is_waited_for).copied().collect()
}

/// The nodes that have received no more than `settled` messages of `from`, and are waited for.
fn behind(survey: &Survey, from: u16, settled: u64) -> Vec<u16> {
    let heard = survey.answered().filter(|node| {
        let row = node.broadcasts.iter().find(|row| row.origin == from);
        row.is_some_and(|row| row.delivered > settled)
    });
    let heard: Vec<u16> = heard.map(|node| node.rank).collect();
    let left = standing(survey, from).map(|standing| &standing.left_broadcasts);
    let is_waited_for = |rank: &u16| !left.is_some_and(|left| left.contains(rank));
    let others = survey.ranks().filter(|rank| *rank != from && !heard.contains(rank));
    others.filter(is_waited_for).collect()
}

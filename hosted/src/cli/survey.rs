//! Every node of a cluster asked at once, each with a deadline of its own.
//!
//! A node that hangs costs its own deadline and hides nobody else's answer.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::cluster_choice::Running;
use super::failure::Failure;
use crate::node::control::{NodeStatus, OriginStatus, TaskStatus};

/// How long a node that accepts a connection may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// A cluster as its nodes see themselves.
#[derive(Debug, Serialize)]
pub(super) struct Survey {
    pub(super) name: String,
    pub(super) nodes: Vec<Answer>,
}

/// A node that answered, or one that did not.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Answer {
    Answered(Box<NodeStatus>),
    Silent { rank: u16, state: &'static str, incarnation: Option<u32> },
}

impl Answer {
    const fn silent(rank: u16) -> Self {
        Self::Silent { rank, state: "unreachable", incarnation: None }
    }
}

impl Survey {
    /// Asks every node of `running`.
    pub(super) fn take(running: &Running) -> Self {
        let nodes = thread::scope(|scope| {
            let ask = |rank| (rank, scope.spawn(move || entry(running, rank)));
            let asked: Vec<_> = running.ranks().map(ask).collect();
            let answer = |(rank, asked): (u16, thread::ScopedJoinHandle<'_, Answer>)| {
                asked.join().unwrap_or_else(|_| Answer::silent(rank))
            };
            asked.into_iter().map(answer).collect()
        });
        Self { name: running.cluster.name.to_string(), nodes }
    }

    /// The nodes that answered.
    pub(super) fn answered(&self) -> impl Iterator<Item = &NodeStatus> {
        self.nodes.iter().filter_map(|entry| match entry {
            Answer::Answered(node) => Some(&**node),
            Answer::Silent { .. } => None,
        })
    }

    /// Who takes no part in broadcasts any more, as any node knows.
    pub(super) fn left_broadcasts(&self) -> BTreeSet<u16> {
        let known = self.answered().filter_map(|node| node.dirnet.as_ref());
        known.flat_map(|dirnet| dirnet.left_broadcasts.iter().copied()).collect()
    }

    /// Whether no other node goes on in broadcasts without `node`.
    pub(super) fn is_waited_for(&self, node: u16) -> bool {
        let others = self.answered().filter(|other| other.rank != node);
        let mut standings = others.filter_map(|other| other.dirnet.as_ref());
        !standings.any(|standing| standing.left_broadcasts.contains(&node))
    }

    /// A node that saw a conflict about `origin`, and delivers nothing more of it.
    pub(super) fn disputing(&self, origin: u16) -> Option<u16> {
        let disputes = |node: &&NodeStatus| row(node, origin).is_some_and(|row| row.conflicts > 0);
        self.answered().find(disputes).map(|node| node.rank)
    }

    /// How `node` stands with `origin`, if it answered.
    pub(super) fn row(&self, node: u16, origin: u16) -> Option<&OriginStatus> {
        row(self.answered().find(|answered| answered.rank == node)?, origin)
    }

    /// A node that the full window of `origin` waits for, and that has taken less than `node`.
    pub(super) fn behind(&self, origin: u16, node: u16) -> Option<u16> {
        let (window, taken) = (self.row(origin, origin)?.window, self.row(node, origin)?.delivered);
        let is_behind = |other: &&NodeStatus| {
            other.rank != origin && row(other, origin).is_some_and(|row| row.delivered < taken)
        };
        let is_full = window.is_full();
        is_full.then(|| self.answered().find(is_behind).map(|other| other.rank))?
    }

    /// Every task, with its node.
    pub(super) fn tasks(&self) -> impl Iterator<Item = (u16, &TaskStatus)> {
        self.answered().flat_map(|node| node.tasks.iter().map(|task| (node.rank, task)))
    }
}

/// How `node` stands with `origin`.
fn row(node: &NodeStatus, origin: u16) -> Option<&OriginStatus> {
    node.broadcasts.iter().find(|row| row.origin == origin)
}

fn entry(running: &Running, rank: u16) -> Answer {
    let ask = |mut client: crate::client::Client| client.status_within(ANSWER_TIMEOUT);
    let answered = running.connect(rank).and_then(|client| ask(client).map_err(Failure::new));
    answered.map_or_else(|_| Answer::silent(rank), |status| Answer::Answered(Box::new(status)))
}

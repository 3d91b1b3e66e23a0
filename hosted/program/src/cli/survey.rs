//! Every node of a cluster asked at once, each with a deadline of its own.
//!
//! A node that hangs costs its own deadline; the others' answers do not wait for it.

use std::collections::BTreeSet;
use std::fmt;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::cluster_choice::Running;
use weft::client::Client;
use weft::cluster::{Cluster, Form, Membership};
use weft::explain::{Code, Explain};
use weft::node::control::{ConflictStatus, NodeStatus, OriginStatus, TaskStatus};

/// How long a node that accepts a connection may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// A cluster as its nodes see themselves.
#[derive(Debug, Serialize)]
pub(super) struct Survey {
    pub(super) name: String,
    pub(super) nodes: Vec<NodeAnswer>,
    /// What its file says.
    #[serde(skip)]
    pub(super) cluster: Cluster,
}

/// A node that answered, or one that did not.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum NodeAnswer {
    Answered(Box<NodeStatus>),
    Silent {
        rank: u16,
        /// `unreachable`: it has no process; `hangs`: it has one, which does not answer.
        state: &'static str,
        incarnation: Option<u32>,
        /// The process that hangs.
        supervisor_pid: Option<i32>,
    },
}

impl NodeAnswer {
    const fn silent(rank: u16) -> Self {
        Self::Silent { rank, state: "unreachable", incarnation: None, supervisor_pid: None }
    }

    /// A node whose supervisor takes connections, as the kernel does for it, and answers none.
    const fn hangs(rank: u16, supervisor_pid: Option<i32>) -> Self {
        Self::Silent { rank, state: "hangs", incarnation: None, supervisor_pid }
    }
}

impl Survey {
    /// Asks every node of `running`.
    pub(super) fn take(running: &Running) -> Self {
        let nodes = thread::scope(|scope| {
            let ask = |rank| (rank, scope.spawn(move || ask(running, rank).0));
            let asked: Vec<_> = running.ranks().map(ask).collect();
            let answer = |(rank, asked): (u16, thread::ScopedJoinHandle<'_, NodeAnswer>)| {
                asked.join().unwrap_or_else(|_| NodeAnswer::silent(rank))
            };
            asked.into_iter().map(answer).collect()
        });
        Self::of(running.cluster.clone(), nodes)
    }

    /// What these answers say of `cluster`.
    pub(super) fn of(cluster: Cluster, nodes: Vec<NodeAnswer>) -> Self {
        Self { name: cluster.name.to_string(), nodes, cluster }
    }

    /// The ranks of all nodes, whether they answered or not.
    pub(super) fn ranks(&self) -> impl Iterator<Item = u16> + use<> {
        0..u16::try_from(self.cluster.nodes).unwrap_or(u16::MAX)
    }

    /// The nodes that answered.
    pub(super) fn answered(&self) -> impl Iterator<Item = &NodeStatus> {
        self.nodes.iter().filter_map(|entry| match entry {
            NodeAnswer::Answered(node) => Some(&**node),
            NodeAnswer::Silent { .. } => None,
        })
    }

    /// What ends a conflict about `node`, for a cure: its next boot has messages of its own.
    pub(super) fn clears(&self, node: u16) -> String {
        match self.cluster.neb.membership {
            Membership::Decided => format!(
                "`weft isolate {node}`, then `weft release {node}`, begin its broadcasts again"
            ),
            Membership::Fixed => "it stays while the membership is \"fixed\"".to_owned(),
        }
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

    /// Whether `node` itself knows that `other` takes no part in broadcasts any more.
    pub(super) fn goes_on_without(&self, node: u16, other: u16) -> bool {
        let standing = self.answered().find(|answered| answered.rank == node);
        let standing = standing.and_then(|node| node.dirnet.as_ref());
        standing.is_some_and(|standing| standing.left_broadcasts.contains(&other))
    }

    /// The nodes that have lost their broadcast memory and that broadcasts wait for nevertheless.
    pub(super) fn lost(&self) -> BTreeSet<u16> {
        let mut lost = self.left_broadcasts();
        lost.retain(|node| {
            self.cluster.neb.membership == Membership::Fixed && self.is_waited_for(*node)
        });
        lost
    }

    /// A node with a conflict about `origin` that ends its broadcasts for all.
    pub(super) fn disputing(&self, origin: u16) -> Option<u16> {
        self.dispute(origin).map(|(node, _)| node)
    }

    /// The first conflict about `origin` that ends its broadcasts for all, and who saw it. Where
    /// they are signed, only a proof does: a conflict that a node cannot prove is its own affair.
    pub(super) fn dispute(&self, origin: u16) -> Option<(u16, ConflictStatus)> {
        let ending = |node: &NodeStatus| {
            let first = row(node, origin)?.first_conflict?;
            let proven = node.proofs.iter().find(|proof| proof.origin == origin);
            let seq = match node.form {
                Form::Signed => proven?.seq,
                Form::Unsigned => first.seq,
            };
            Some((node.rank, ConflictStatus { seq, ..first }))
        };
        self.answered().filter_map(ending).min_by_key(|(_, conflict)| conflict.seq)
    }

    /// The first conflict of `node` about `origin`, if it is one of the signed form that the node
    /// cannot prove: it delivers nothing more of that origin, and the others go on.
    pub(super) fn complaint(&self, node: u16, origin: u16) -> Option<ConflictStatus> {
        let node = self.answered().find(|answered| answered.rank == node)?;
        let is_proven = node.proofs.iter().any(|proof| proof.origin == origin);
        let is_complaint = node.form == Form::Signed && !is_proven;
        row(node, origin)?.first_conflict.filter(|_| is_complaint)
    }

    /// The nodes whose memory holds garbage where the next message of `origin` is due.
    pub(super) fn damage(&self, origin: u16) -> impl Iterator<Item = DamagedMessage> {
        let membership = self.cluster.neb.membership;
        self.answered().filter_map(move |node| {
            let counters = node.counters.unwrap_or_default();
            let (by, places) = (node.rank, counters.broadcast_unfit);
            let damaged = row(node, origin)?.damaged?;
            Some(DamagedMessage { by, damaged, origin, places, membership })
        })
    }

    /// How `node` stands with `origin`, if it answered.
    pub(super) fn row(&self, node: u16, origin: u16) -> Option<&OriginStatus> {
        row(self.answered().find(|answered| answered.rank == node)?, origin)
    }

    /// A node that the full window of `origin` waits for, and that has taken less than `node`; and
    /// how much.
    pub(super) fn behind(&self, origin: u16, node: u16) -> Option<(u16, u64)> {
        let (window, taken) = (self.row(origin, origin)?.window, self.row(node, origin)?.delivered);
        let behind = |other: &NodeStatus| {
            let delivered = row(other, origin)?.delivered;
            (other.rank != origin && delivered < taken).then_some((other.rank, delivered))
        };
        window.is_full().then(|| self.answered().find_map(behind))?
    }

    /// Every task, with its node.
    pub(super) fn tasks(&self) -> impl Iterator<Item = (u16, &TaskStatus)> {
        self.answered().flat_map(|node| node.tasks.iter().map(|task| (node.rank, task)))
    }
}

/// Garbage where a message is due, which is not delivered. Displayed
/// with what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DamagedMessage {
    /// The node that found it.
    by: u16,
    /// The node whose memory it is.
    damaged: u16,
    /// Whose message is due.
    origin: u16,
    /// Damaged places that `by` has counted in its own memory.
    places: u64,
    membership: Membership,
}

impl fmt::Display for DamagedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, damaged, origin, places, membership } = *self;
        write!(
            f,
            "the memory of node {damaged} holds garbage where a message of node {origin} is due"
        )?;
        let remove = match membership {
            Membership::Decided => format!("remove it with `weft isolate {damaged}`"),
            Membership::Fixed => "restart the cluster".to_owned(),
        };
        if damaged == origin {
            // Its next component would broadcast other messages under numbers that are in use.
            write!(f, " (damaged places: {places}): broadcast from another node, and {remove}")
        } else if damaged == by {
            write!(
                f,
                " (damaged places: {places}): replace its component with `weft inject kill \
                 {damaged}`, and the next one receives the message again; if the damage comes \
                 back, {remove}"
            )
        } else {
            write!(f, ", and node {by} cannot deliver without it: {remove}")
        }
    }
}

/// How `node` stands with `origin`.
fn row(node: &NodeStatus, origin: u16) -> Option<&OriginStatus> {
    node.broadcasts.iter().find(|row| row.origin == origin)
}

/// The answer of one node, and the client that it gave it to.
pub(super) fn ask(running: &Running, rank: u16) -> (NodeAnswer, Option<Client>) {
    // One without a process is known to be down at once.
    let Ok(mut client) = running.connect_now(rank) else { return (NodeAnswer::silent(rank), None) };
    match client.status_within(ANSWER_TIMEOUT) {
        Ok(status) => (NodeAnswer::Answered(Box::new(status)), Some(client)),
        Err(error) if error.code() == Code::Timeout => {
            (NodeAnswer::hangs(rank, client.supervisor_pid()), None)
        }
        Err(_) => (NodeAnswer::silent(rank), None),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use weft::node::control::{
        DirNetStatus, Latency, NodeState, ProofStatus, TimingStatus, ViewStatus, WindowStatus,
    };

    /// Slots of a window.
    const SLOTS: u32 = 16;

    /// How a node stands with every origin.
    #[derive(Clone, Copy, Default)]
    pub(in crate::cli) struct Seen {
        pub(in crate::cli) broadcast: u64,
        pub(in crate::cli) delivered: u64,
        pub(in crate::cli) used: u64,
        /// With the origin that it names.
        pub(in crate::cli) conflict: Option<ConflictStatus>,
        /// Who has left the broadcasts.
        pub(in crate::cli) without: &'static [u16],
        /// The node whose memory is damaged.
        pub(in crate::cli) damaged: Option<u16>,
        /// Broadcasts are signed, and the conflict is proven or not; else they are not signed.
        pub(in crate::cli) is_proven: Option<bool>,
    }

    impl Seen {
        pub(in crate::cli) fn at(broadcast: u64, delivered: u64) -> Self {
            Self { broadcast, delivered, ..Self::default() }
        }

        fn proofs(self) -> Vec<ProofStatus> {
            let proven = self.conflict.filter(|_| self.is_proven == Some(true));
            let status = |it: ConflictStatus| ProofStatus { origin: it.origin, seq: it.seq };
            proven.map(status).into_iter().collect()
        }

        fn row(self, origin: u16) -> OriginStatus {
            let first_conflict = self.conflict.filter(|conflict| conflict.origin == origin);
            OriginStatus {
                origin,
                broadcast: self.broadcast,
                delivered: self.delivered,
                settled: 0,
                window: WindowStatus { used: self.used, slots: SLOTS },
                conflicts: first_conflict.is_some().into(),
                first_conflict,
                damaged: self.damaged,
                key: None,
            }
        }
    }

    /// A cluster of four, of which these answer.
    pub(in crate::cli) fn survey(membership: Membership, nodes: &[(u16, Seen)]) -> Survey {
        let mut cluster = Cluster { nodes: 4, ..Cluster::default() };
        cluster.neb.membership = membership;
        let answer = |rank| {
            let seen = nodes.iter().find(|(it, _)| *it == rank).map(|(_, seen)| *seen);
            seen.map_or_else(|| NodeAnswer::silent(rank), |seen| answer(rank, seen))
        };
        Survey::of(cluster, (0..4).map(answer).collect())
    }

    fn answer(rank: u16, seen: Seen) -> NodeAnswer {
        NodeAnswer::Answered(Box::new(node_status(rank, seen)))
    }

    /// The status of a node in such a cluster.
    pub(in crate::cli) fn node_status(rank: u16, seen: Seen) -> NodeStatus {
        NodeStatus {
            rank,
            state: NodeState::Running,
            incarnation: 1,
            restarts: 0,
            supervisor_pid: 1,
            since_unix_ms: 0,
            component_pid: Some(2),
            last_recovery_us: None,
            recovery: Latency::default(),
            cut: Vec::new(),
            peers: Vec::new(),
            tasks: Vec::new(),
            hooks: None,
            dirnet: Some(DirNetStatus {
                role: "backup".to_owned(),
                epoch: 1,
                manager: 0,
                boot: 1,
                generation: 0,
                timing: TimingStatus::new("lan", &weft_core::dirnet::Timing::LAN),
                suspects: Vec::new(),
                removed: Vec::new(),
                isolated: Vec::new(),
                left_broadcasts: seen.without.to_vec(),
                view: ViewStatus::default(),
                stale: false,
                database: Vec::new(),
                script: None,
                refused: BTreeMap::new(),
            }),
            counters: None,
            form: seen.is_proven.map_or(Form::Unsigned, |_| Form::Signed),
            holders: Vec::new(),
            broadcasts: (0..4).map(|origin| seen.row(origin)).collect(),
            groups: Vec::new(),
            tensors: None,
            proofs: seen.proofs(),
            refused_by_supervisor: BTreeMap::new(),
            refused_by_task: BTreeMap::new(),
        }
    }

    #[test]
    fn damage_is_displayed_with_what_to_do_about_it() {
        let displayed = |membership, by, damaged| {
            let seen = Seen { damaged: Some(damaged), ..Seen::at(9, 4) };
            survey(membership, &[(by, seen)]).damage(0).next().expect("a finding").to_string()
        };
        let own = displayed(Membership::Fixed, 1, 1);
        assert!(own.starts_with("the memory of node 1 holds garbage where a message of node 0"));
        assert!(
            own.contains("`weft inject kill 1`") && own.ends_with("restart the cluster"),
            "{own}"
        );
        let replayer = displayed(Membership::Decided, 2, 1);
        assert!(
            replayer.ends_with("node 2 cannot deliver without it: remove it with `weft isolate 1`")
        );
        // The next component of an origin would broadcast other messages under numbers in use.
        let origin = displayed(Membership::Decided, 0, 0);
        assert!(origin.contains("broadcast from another node") && !origin.contains("inject kill"));
    }

    #[test]
    fn of_what_is_signed_only_a_proof_ends_broadcasts() {
        let conflict = ConflictStatus { origin: 0, seq: 5, replayer: 1 };
        let seen = |is_proven| Seen { conflict: Some(conflict), is_proven, ..Seen::at(9, 4) };
        let of = |is_proven| {
            let survey = survey(Membership::Decided, &[(2, seen(is_proven))]);
            (survey.dispute(0), survey.complaint(2, 0))
        };
        assert_eq!(of(None), (Some((2, conflict)), None));
        assert_eq!(of(Some(true)), (Some((2, conflict)), None));
        assert_eq!(of(Some(false)), (None, Some(conflict)));
    }
}

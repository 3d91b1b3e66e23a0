//! Every small graph of links: which nodes a cluster removes when links are cut permanently.
//!
//! For 3 to 6 nodes and each set of at most three cut links that leaves the graph connected, a
//! settled cluster with `min_alive` = 1 loses those links and continues. No process fails, or one
//! node stalls for longer than a removal takes, or one node is killed; each node in turn.
//!
//! A removal is false if a quorum reaches the node: the node and the running nodes that reach it
//! are a majority of all. The struck node itself may be removed. A kill must be decided: where the
//! running nodes stay connected, the killed node is removed within a bounded time.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use weft_core::dirnet::{Members, Output, Timing, Verdict};
use weft_core::ids::Rank;

use super::lab::Lab;
use super::net::Setting;
use super::strike::{MS, NetStrike};

/// The maximum number of links that are cut.
const CUTS_MAX: usize = 3;
const NODES: std::ops::RangeInclusive<u16> = 3..=6;
const SETTLED_MS: u64 = 1_000;
/// How long after the cut one node is struck.
const STRUCK_AFTER_MS: u64 = 1_000;
const STALL_MS: u64 = 1_500;
/// Longer than it takes to lose a manager, to pass over every candidate and to remove one more.
const STEADY_MS: u64 = 5_000;

/// The false removals of each row of [`table`] by the earlier rule that the first witness that does
/// not reach a suspect removes it: those of the planted bug `one-witness-removes`, which a test of
/// ci/mutants counts again.
pub const FALSE_REMOVALS_BEFORE: [u32; 12] = [0, 0, 0, 0, 0, 0, 28, 57, 57, 55, 111, 111];

/// The failure beside the cut links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphFailure {
    /// None.
    Nothing,
    /// One node stalls for 1.5 s, 1 s after the cut.
    Stall,
    /// One node is killed, 1 s after the cut.
    Kill,
}

impl GraphFailure {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Stall, Self::Kill];

    /// The failure's name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Stall => "stall",
            Self::Kill => "kill",
        }
    }
}

/// The results for all graphs of one size with one kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphRow {
    /// The number of nodes.
    pub nodes: u16,
    /// The failure.
    pub failure: GraphFailure,
    /// The number of connected graphs with one to three cut links, times the nodes that fail.
    pub runs: u32,
    /// How many of them lead to the removal of a node that did not fail.
    pub removing: u32,
    /// How many of them lead to the removal of a node that a quorum reaches.
    pub removing_falsely: u32,
    /// The maximum number of terms claimed in any of them.
    pub terms: u32,
    /// How many kills no node decides, although the running nodes stay connected.
    pub undecided: u32,
    /// The longest time from a kill to the removal of the killed node, of those.
    pub decided_ms_max: u64,
}

type Link = (u16, u16);

/// One cluster: its links that are cut, and the node that fails.
#[derive(Clone, Debug)]
struct GraphCase {
    nodes: u16,
    cut: Vec<Link>,
    failure: GraphFailure,
    struck: Option<u16>,
}

/// Runs all sizes on all cores; calls `on_run` after each run.
#[must_use]
pub fn table(on_run: impl Fn() + Sync) -> Vec<GraphRow> {
    let kinds = NODES.flat_map(|nodes| GraphFailure::ALL.map(|failure| (nodes, failure)));
    rows(kinds, on_run)
}

/// The number of clusters that [`table`] runs.
#[must_use]
pub fn count() -> u64 {
    NODES.map(|nodes| cuts(nodes).len() as u64 * (1 + 2 * u64::from(nodes))).sum()
}

/// The same for these sizes and failures alone.
pub fn rows(
    kinds: impl Iterator<Item = (u16, GraphFailure)>,
    on_run: impl Fn() + Sync,
) -> Vec<GraphRow> {
    let row = |(nodes, failure)| {
        let cases = cases(nodes, failure);
        let empty = GraphRow {
            nodes,
            failure,
            runs: 0,
            removing: 0,
            removing_falsely: 0,
            terms: 0,
            undecided: 0,
            decided_ms_max: 0,
        };
        let (next, row) = (AtomicUsize::new(0), Mutex::new(empty));
        let work = || {
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                let outcome = run(case);
                row.lock().unwrap_or_else(PoisonError::into_inner).add(case, &outcome);
                on_run();
            }
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        row.into_inner().unwrap_or_else(PoisonError::into_inner)
    };
    kinds.map(row).collect()
}

impl GraphRow {
    fn add(&mut self, case: &GraphCase, outcome: &GraphOutcome) {
        let quorum = u32::from(self.nodes) / 2 + 1;
        let is_false = |node: Rank| quorum <= case.met_by(node.0);
        self.runs += 1;
        self.terms = self.terms.max(outcome.terms);
        self.removing += u32::from(!outcome.removed.is_empty());
        self.removing_falsely += u32::from(outcome.removed.iter().any(is_false));
        if case.failure == GraphFailure::Kill && case.is_connected() {
            self.undecided += u32::from(outcome.decided_ms.is_none());
            self.decided_ms_max = self.decided_ms_max.max(outcome.decided_ms.unwrap_or(0));
        }
    }
}

fn cases(nodes: u16, failure: GraphFailure) -> Vec<GraphCase> {
    let struck = match failure {
        GraphFailure::Nothing => vec![None],
        GraphFailure::Stall | GraphFailure::Kill => (0..nodes).map(Some).collect(),
    };
    let of = |cut: Vec<Link>| {
        let case = move |struck: &Option<u16>| GraphCase {
            nodes,
            cut: cut.clone(),
            failure,
            struck: *struck,
        };
        struck.iter().map(case).collect::<Vec<_>>()
    };
    cuts(nodes).into_iter().flat_map(of).collect()
}

/// Every set of at most three links that can be cut and leave the graph connected.
fn cuts(nodes: u16) -> Vec<Vec<Link>> {
    let links: Vec<Link> =
        (0..nodes).flat_map(|one| (one + 1..nodes).map(move |other| (one, other))).collect();
    let sets = (1..1_u32 << links.len()).filter(|set| set.count_ones() as usize <= CUTS_MAX);
    let cut = |set: u32| {
        let is_in = |(index, _): &(usize, &Link)| set >> index & 1 == 1;
        links.iter().enumerate().filter(is_in).map(|(_, link)| *link).collect::<Vec<_>>()
    };
    let is_connected = |cut: &Vec<Link>| {
        let (failure, struck) = (GraphFailure::Nothing, None);
        GraphCase { nodes, cut: cut.clone(), failure, struck }.is_connected()
    };
    sets.map(cut).filter(is_connected).collect()
}

/// Whether each of the nodes `all` is reached from `first`, one of them, over some of them.
pub(super) fn reaches_all(first: u16, all: &[u16], is_cut: impl Fn(u16, u16) -> bool) -> bool {
    let (mut reached, mut at) = (vec![first], 0);
    while let Some(from) = reached.get(at).copied() {
        let is_next = |to: &&u16| !is_cut(from, **to) && !reached.contains(to);
        let next: Vec<u16> = all.iter().filter(is_next).copied().collect();
        reached.extend(next);
        at += 1;
    }
    reached.len() == all.len()
}

impl GraphCase {
    fn is_cut(&self, one: u16, other: u16) -> bool {
        self.cut.contains(&(one.min(other), one.max(other)))
    }

    /// The nodes that do not fail.
    fn running(&self) -> impl Iterator<Item = u16> {
        (0..self.nodes).filter(|node| Some(*node) != self.struck)
    }

    /// Whether the running nodes are connected.
    fn is_connected(&self) -> bool {
        let all: Vec<u16> = self.running().collect();
        reaches_all(all[0], &all, |one, other| self.is_cut(one, other))
    }

    /// The number of running nodes that reach `node`, itself included.
    fn met_by(&self, node: u16) -> u32 {
        self.running().map(|other| u32::from(!self.is_cut(node, other))).sum()
    }
}

/// The outcome of one cluster.
struct GraphOutcome {
    /// Nodes that were removed, without the one that failed.
    removed: Members,
    /// The number of terms claimed.
    terms: u32,
    /// The time from the failure to the removal of the node that failed.
    decided_ms: Option<u64>,
}

/// Runs a cluster that loses these links.
fn run(case: &GraphCase) -> GraphOutcome {
    let setting = Setting::fair(case.nodes, Timing::LAN, 5 * MS);
    let mut lab = Lab::settled(setting, 1, SETTLED_MS * MS);
    for (one, other) in &case.cut {
        lab.strike(NetStrike::Sever(*one, *other));
        lab.strike(NetStrike::Sever(*other, *one));
    }
    if let Some(node) = case.struck {
        lab.run_for(STRUCK_AFTER_MS * MS);
        lab.strike(match case.failure {
            GraphFailure::Kill => NetStrike::Crash(node),
            GraphFailure::Stall | GraphFailure::Nothing => NetStrike::Stall(node, STALL_MS),
        });
    }
    let failed_at = lab.now().0;
    lab.run_for(STEADY_MS * MS);
    let mut outcome = GraphOutcome { removed: Members::NONE, terms: 0, decided_ms: None };
    for (at, _, output) in lab.take_events() {
        let Output::Verdict(why) = output else { continue };
        match why.verdict {
            Verdict::NodeDown | Verdict::Isolated if Some(why.node.0) == case.struck => {
                outcome.decided_ms.get_or_insert(at.saturating_sub(failed_at) / MS);
            }
            Verdict::NodeDown | Verdict::Isolated => outcome.removed.insert(why.node),
            Verdict::TookOver => outcome.terms += 1,
            Verdict::AgentDown | Verdict::Admitted => {}
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manager that fails is succeeded, and may have to be outbid; a race of terms claims one
    /// with each message that passes between two managers.
    const TERMS_MAX: u32 = 2;

    #[test]
    fn x8_no_node_is_removed_as_long_as_none_fails() {
        let quiet = NODES.map(|nodes| (nodes, GraphFailure::Nothing));
        let struck = [GraphFailure::Stall, GraphFailure::Kill].map(|failure| (4, failure));
        for row in rows(quiet.chain(struck), || ()) {
            assert_eq!((row.removing_falsely, row.undecided), (0, 0), "{row:?}");
            assert!(row.removing == 0 || row.failure != GraphFailure::Nothing, "{row:?}");
            assert!(row.terms <= TERMS_MAX, "{row:?}");
        }
    }

    #[test]
    fn every_connected_graph_with_up_to_three_cut_links_is_run() {
        let graphs = [3, 4, 5, 6].map(|nodes| cuts(nodes).len());
        assert_eq!(graphs, [3, 37, 175, 575]);
    }
}

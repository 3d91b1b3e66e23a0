//! Every small graph of links: which nodes a cluster removes when links are cut permanently.
//!
//! For 3 to 6 nodes and each set of at most three cut links that leaves the graph connected, a
//! settled cluster with `min_alive` = 1 loses those links and continues; no process fails. A
//! removal is false if the node and the nodes that reach it are a majority.

use weft_core::dirnet::{Members, Output, Timing, Verdict};
use weft_core::ids::Rank;

use super::lab::Lab;
use super::net::Setting;
use super::strike::{MS, Strike};

/// The maximum number of links that are cut.
const CUTS_MAX: usize = 3;
const NODES: std::ops::RangeInclusive<u16> = 3..=6;
const SETTLED_MS: u64 = 1_000;
/// Longer than it takes to lose a manager, to pass over every candidate and to remove one more.
const STEADY_MS: u64 = 5_000;

/// The results for all graphs of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The number of nodes.
    pub nodes: u16,
    /// The number of connected graphs with one to three cut links.
    pub graphs: u32,
    /// How many of them lead to the removal of a node.
    pub removing: u32,
    /// How many of them lead to the removal of a node that a quorum reaches.
    pub removing_falsely: u32,
    /// The maximum number of terms claimed in any of them.
    pub terms: u32,
}

type Link = (u16, u16);

/// Runs all sizes, one after the other; calls `on_graphs` with the number of further graphs run.
#[must_use]
pub fn table(on_graphs: impl Fn(u64)) -> Vec<Row> {
    NODES.map(|nodes| row(nodes, &on_graphs)).collect()
}

/// The number of graphs that [`table`] runs.
#[must_use]
pub fn count() -> u64 {
    NODES.map(|nodes| cuts(nodes).len() as u64).sum()
}

fn row(nodes: u16, on_graphs: &impl Fn(u64)) -> Row {
    let mut row = Row { nodes, ..Row::default() };
    for cut in cuts(nodes) {
        let Outcome { removed, terms } = run(nodes, &cut);
        row.graphs += 1;
        row.terms = row.terms.max(terms);
        row.removing += u32::from(!removed.is_empty());
        let is_false = |node: &Rank| u32::from(nodes) / 2 < met_by(nodes, &cut, *node);
        row.removing_falsely += u32::from(removed.iter().any(|node| is_false(&node)));
        on_graphs(1);
    }
    row
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
    sets.map(cut).filter(|cut| is_connected(nodes, cut)).collect()
}

fn is_cut(cut: &[Link], one: u16, other: u16) -> bool {
    cut.contains(&(one.min(other), one.max(other)))
}

fn is_connected(nodes: u16, cut: &[Link]) -> bool {
    let mut reached = vec![0];
    let mut at = 0;
    while let Some(one) = reached.get(at).copied() {
        for other in 0..nodes {
            if other != one && !is_cut(cut, one, other) && !reached.contains(&other) {
                reached.push(other);
            }
        }
        at += 1;
    }
    reached.len() == usize::from(nodes)
}

/// The number of nodes that reach `node`, itself included.
fn met_by(nodes: u16, cut: &[Link], node: Rank) -> u32 {
    (0..nodes).map(|other| u32::from(!is_cut(cut, node.0, other))).sum()
}

/// The outcome of one cluster.
struct Outcome {
    removed: Members,
    /// The number of terms claimed.
    terms: u32,
}

/// Runs a cluster that loses these links.
fn run(nodes: u16, cut: &[Link]) -> Outcome {
    let setting = Setting::fair(nodes, Timing::LAN, 5 * MS);
    let mut lab = Lab::settled(setting, 1, SETTLED_MS * MS);
    for (one, other) in cut {
        lab.strike(Strike::Sever(*one, *other));
        lab.strike(Strike::Sever(*other, *one));
    }
    lab.run_for(STEADY_MS * MS);
    let mut outcome = Outcome { removed: Members::NONE, terms: 0 };
    for (_, _, output) in lab.take_events() {
        let Output::Verdict(why) = output else { continue };
        match why.verdict {
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

    /// Two managers at the ends of a path may each claim a higher term once in a while; a race of
    /// terms claims one with each message that passes between them.
    const TERMS_MAX: u32 = 8;

    #[test]
    fn x8_no_node_is_removed_that_a_quorum_meets() {
        for row in table(|_| ()) {
            assert_eq!(row.removing_falsely, 0, "{row:?}");
            assert!(row.terms <= TERMS_MAX, "{row:?}");
        }
    }

    #[test]
    fn every_connected_graph_with_up_to_three_cut_links_is_run() {
        let graphs = [3, 4, 5, 6].map(|nodes| cuts(nodes).len());
        assert_eq!(graphs, [3, 37, 175, 575]);
    }
}

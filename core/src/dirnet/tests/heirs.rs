//! A new manager continues what the previous one knew and had begun: no dead node is forgotten.

use super::net::{MS, Net, timing};
use crate::dirnet::*;
use crate::ids::Rank;
use std::vec::Vec;

fn level(net: &Net, at: u16, of: u16) -> Level {
    net.component(at).database().standing(Rank(of)).level
}

/// A manager removes a node and dies before the reset, which is ordered once all have fenced.
#[test]
pub(in crate::dirnet) fn g18_a_reset_that_a_manager_owed_is_its_successors() {
    let mut net = Net::settled(4);
    net.lost.push("FENCED");
    net.crash(2);
    net.run_while(5_000, |net| [1, 3].iter().all(|node| level(net, *node, 2) == Level::Down));
    assert_eq!(net.resets().len(), 0, "no member has confirmed its fence");
    net.crash(0);
    net.lost.clear();
    net.run_while(9_000, |net| net.resets().iter().any(|(_, node)| *node == Rank(2)));
    assert_eq!(net.manager(), Some(1));
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
}

/// Found by the swarm: a manager learned from a member's database that a node was removed, held it
/// removed as well, and never reset it.
#[test]
pub(in crate::dirnet) fn g18_a_manager_resets_a_node_of_whose_removal_it_learns() {
    let mut net = Net::settled(4);
    net.crash(2);
    let (node, level) = (Rank(2), Level::Down);
    let incarnation = net.component(0).database().standing(node).incarnation;
    let copy = net.frame(3, Message::Anid { node, incarnation, level });
    assert_eq!(net.deliver(1, copy), Ok(()));
    net.run_while(9_000, |net| !net.resets().is_empty());
    assert_eq!((net.resets().len(), net.rules(2, Verdict::NodeDown)), (1, Vec::new()));
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
}

/// A node that was reset and is coming back is not reset again.
#[test]
pub(in crate::dirnet) fn g8_a_reset_that_was_done_hits_no_later_life() {
    let mut net = Net::settled(4);
    net.crash(2);
    net.run_while(5_000, |net| !net.resets().is_empty());
    net.crash(0);
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
    let incarnation = net.component(2).incarnation();
    net.run(9_000);
    assert_eq!(net.component(2).incarnation(), incarnation);
}

/// All components end together with the manager that would have noticed a dead node: their
/// successors have only what was saved.
#[test]
pub(in crate::dirnet) fn d58_a_node_that_died_before_all_components_did_is_missed() {
    let mut net = Net::settled(4);
    net.crash(2);
    for node in [0, 1, 3] {
        net.crash(node);
    }
    for node in [0, 1, 3] {
        net.boot(node);
    }
    net.run_while(9_000, |net| !net.rules(2, Verdict::NodeDown).is_empty());
    assert_eq!(net.rules(2, Verdict::NodeDown), [Rule::Silence]);
    net.run_while(9_000, Net::is_whole);
    assert!(net.is_whole());
}

/// A node that never started is reported by whichever node is manager when that is due.
#[test]
pub(in crate::dirnet) fn g24_an_absent_node_is_told_of_by_the_next_manager() {
    let mut net = Net::new(4);
    net.resets_work = false;
    [0, 1, 2].into_iter().for_each(|node| net.boot(node));
    net.run(500);
    assert_eq!(net.reported(News::Absent(Rank(3))), 0);
    net.crash(0);
    net.run(5_000 + timing().clone.0 / MS);
    assert_eq!((net.manager(), net.reported(News::Absent(Rank(3)))), (Some(1), 1));
}

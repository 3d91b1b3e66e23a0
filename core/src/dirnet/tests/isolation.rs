//! isolation is a standing of the node, and a release alone ends it.

use std::vec::Vec;

use super::net::Net;
use crate::dirnet::*;
use crate::ids::{Incarnation, Rank};

const LOST: Rank = Rank(3);

fn level(net: &Net, at: u16) -> Level {
    net.component(at).database().standing(LOST).level
}

/// Whether these nodes take part and hold the last node isolated.
fn hold(net: &Net, nodes: &[u16]) -> bool {
    nodes.iter().all(|at| {
        let component = net.nodes[usize::from(*at)].component.as_ref();
        let holds = |it: &super::net::Part4| {
            it.database().standing(LOST).level == Level::Isolated && it.role() != Role::Joining
        };
        component.is_some_and(holds)
    })
}

fn isolate(net: &mut Net) {
    let manager = net.manager().expect("there is one");
    assert_eq!(net.input(manager, |it, now| it.isolate(now, LOST)), Ok(()));
}

/// RL-6: it is fenced and reset, counted, and isolated when that is one reset too many.
#[test]
fn a_node_that_is_ordered_to_restart_is_reset_and_rejoins() {
    let mut net = Net::settled(4);
    let manager = net.manager().expect("there is one");
    let boot = |net: &Net| net.component(manager).database().standing(LOST).incarnation.boot;
    let before = boot(&net);
    assert_eq!(net.input(manager, |it, now| it.restart(now, LOST)), Ok(()));
    assert_eq!(level(&net, manager), Level::Down);
    assert_eq!(net.input(manager, |it, now| it.restart(now, LOST)), Err(Reject::BadSubject));
    net.run_while(20_000, Net::is_whole);
    assert!(net.is_whole() && boot(&net) > before);
    let backup = if manager == 0 { 1 } else { 0 };
    assert_eq!(net.input(backup, |it, now| it.restart(now, LOST)), Err(Reject::NotManager));
    while level(&net, manager) != Level::Isolated {
        assert_eq!(net.input(manager, |it, now| it.restart(now, LOST)), Ok(()));
        net.run_while(20_000, Net::is_whole);
    }
    assert!(boot(&net) > before.next(), "it was reset more than once");
}

/// The manager releases the node, and all are members again.
fn assert_released(net: &mut Net) {
    let is_manager = |at: &u16| net.component(*at).role() == Role::Manager;
    let manager = [0, 1, 2].into_iter().find(is_manager).expect("three are members");
    assert_eq!(net.input(manager, |it, now| it.release(now, LOST)), Ok(()));
    net.run_while(20_000, Net::is_whole);
    assert!(net.is_whole(), "the release ends it");
}

/// Nodes 0 and 1 isolate node 3 while a partition keeps it with node 2, which admits its next
/// incarnation. Afterwards all nodes restart, one after the other.
#[test]
pub(in crate::dirnet) fn x11_no_later_incarnation_ends_an_isolation() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    for (one, other) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        net.cuts.extend([(one, other), (other, one)]);
    }
    isolate(&mut net);
    net.run(3_000);
    net.crash(3);
    net.run(100);
    net.boot(3);
    net.run_while(5_000, |net| level(net, 2) == Level::Up);
    assert_eq!([0, 1, 2].map(|at| level(&net, at)), [Level::Isolated, Level::Isolated, Level::Up]);
    net.cuts.clear();
    net.run_while(20_000, |net| hold(net, &[0, 1, 2]));
    assert!(hold(&net, &[0, 1, 2]), "a later incarnation has ended it");
    for node in [0, 1, 2] {
        net.crash(node);
        net.boot(node);
        net.run(3_000);
        assert!(hold(&net, &[0, 1, 2]), "the restart of node {node} has ended it");
    }
    assert_released(&mut net);
}

/// Node 1 does not receive the isolation, and receives the release.
#[test]
pub(in crate::dirnet) fn x11_a_release_is_the_first_that_a_member_learns_of_an_isolation() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.cuts.insert((0, 1));
    isolate(&mut net);
    net.run(100);
    assert_eq!(level(&net, 1), Level::Up);
    net.cuts.clear();
    assert_eq!(net.input(0, |it, now| it.release(now, LOST)), Ok(()));
    net.run_while(2, |net| level(net, 1) == Level::Released);
    assert_eq!(level(&net, 1), Level::Released);
    let fences = |output: &Output| matches!(output, Output::Fence { node: LOST, .. });
    assert!(net.log.iter().any(|(_, at, output)| *at == 1 && fences(output)));
}

/// The node comes back and is isolated again; then a delayed frame of the first release arrives.
#[test]
pub(in crate::dirnet) fn x11_a_release_that_is_late_ends_no_later_isolation() {
    let mut net = Net::settled(4);
    isolate(&mut net);
    net.run(3_000);
    let first = net.component(1).database().standing(LOST).isolation().expect("it is isolated");
    assert_released(&mut net);
    isolate(&mut net);
    net.run(3_000);
    assert!(hold(&net, &[0, 1, 2]), "it can be isolated again");
    let incarnation = ComponentIncarnation { boot: first, generation: 0 };
    let late = net.frame(1, Message::Anid { node: LOST, incarnation, level: Level::Released });
    for at in [0, 2] {
        let _ = net.deliver(at, late);
        net.input(at, |it, now| it.learn_release(now, LOST, first));
    }
    net.run(3_000);
    assert!(hold(&net, &[0, 1, 2]), "a release that is older than the isolation has ended it");
    assert_released(&mut net);
}

/// Node 1 follows a later manager; what the one before has decided is a fact all the same.
#[test]
pub(in crate::dirnet) fn x11_an_isolation_by_an_earlier_manager_holds() {
    let mut net = Net::settled(4);
    let incarnation = ComponentIncarnation { boot: Incarnation(1), generation: 0 };
    let order = net.frame(0, Message::Anid { node: LOST, incarnation, level: Level::Isolated });
    let term = Term { epoch: 9, claimant: Rank(2) };
    let claim = Frame { term, ..net.frame(2, Message::Nmi) };
    assert_eq!(net.deliver(1, claim), Ok(()));
    let _ = net.deliver(1, order);
    assert!(hold(&net, &[1]) && net.component(1).term() == term);
}

/// The manager learns late that an earlier boot of a member was isolated: the release must name the
/// present one, which is fenced.
#[test]
fn x11_an_isolation_that_a_manager_learns_of_is_one_of_the_present_boot() {
    let mut net = Net::settled(4);
    net.crash(3);
    net.run_while(20_000, Net::is_whole);
    let standing = |net: &Net| net.component(0).database().standing(LOST);
    let present = standing(&net).incarnation;
    let incarnation = ComponentIncarnation { boot: Incarnation(1), generation: 0 };
    assert!(net.is_whole() && incarnation < present);
    let late = net.frame(1, Message::Anid { node: LOST, incarnation, level: Level::Isolated });
    assert_eq!(net.deliver(0, late), Ok(()));
    assert_eq!(standing(&net).isolation(), Some(present.boot));
    assert_eq!(net.deliver(3, late), Ok(()));
    assert_eq!(net.reported(News::Excluded), 1, "the node itself learns of it");
}

/// All other nodes have lost their saved state; the isolated node has not.
#[test]
pub(in crate::dirnet) fn x11_an_isolated_node_remembers_it_where_all_others_forgot() {
    let mut net = Net::settled(4);
    isolate(&mut net);
    net.run(3_000);
    (0..4).for_each(|node| net.crash(node));
    (0..3).for_each(|node| net.forget_saved(node));
    net.log.clear();
    net.boot_all();
    net.run_while(9_000, |net| hold(net, &[0, 1, 2]));
    assert!(hold(&net, &[0, 1, 2]));
    net.run(9_000);
    assert!(hold(&net, &[0, 1, 2]));
    assert!(net.rules(3, Verdict::Admitted).is_empty(), "it was a member meanwhile");
    assert_released(&mut net);
}

/// Found by the swarm: node 2, which only nodes 1 and 3 reach, has saved that node 3 is isolated.
/// No manager that it could follow knows of that.
#[test]
pub(in crate::dirnet) fn x11_an_isolation_is_believed_whichever_node_reports_it() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    let before = net.nodes[2].saved.clone();
    isolate(&mut net);
    net.run(3_000);
    let isolated = net.nodes[2].saved.clone();
    assert_ne!(isolated, before);
    (0..4).for_each(|node| net.crash(node));
    (0..4).for_each(|node| net.forget_saved(node));
    [0, 1, 3].into_iter().for_each(|node| net.boot(node));
    net.run_while(20_000, |net| [0, 1].iter().all(|at| level(net, *at) == Level::Up));
    assert_eq!([0, 1].map(|at| level(&net, at)), [Level::Up; 2], "all that knew of it are gone");
    net.cuts.extend([(0, 2), (2, 0)]);
    net.nodes[2].saved = isolated;
    net.boot(2);
    net.run_while(9_000, |net| hold(net, &[0, 1]));
    assert!(hold(&net, &[0, 1]), "the manager has learned of it");
}

/// Found by the swarm: each of two nodes holds the other out, one as removed and one as isolated.
#[test]
pub(in crate::dirnet) fn x11_a_removed_node_does_not_wait_for_an_isolated_one() {
    let mut net = Net::settled(2);
    net.cuts.extend([(0, 1), (1, 0)]);
    assert_eq!(net.input(0, |it, now| it.isolate(now, Rank(1))), Ok(()));
    net.run_while(9_000, |net| net.nodes[0].component.is_none());
    net.crash(0);
    net.cuts.clear();
    net.run_while(1_000, |net| !net.rules(0, Verdict::NodeDown).is_empty());
    net.run(9_000);
    let manager = net.nodes[0].component.as_ref().map(Component::role);
    assert_eq!(manager, Some(Role::Manager));
    assert_eq!(net.input(0, |it, now| it.release(now, Rank(1))), Ok(()));
    net.run_while(20_000, Net::is_whole);
    assert!(net.is_whole(), "the release ends it");
}

/// The next incarnation asks to join while some nodes have not learned of the release.
#[test]
pub(in crate::dirnet) fn x11_a_released_node_brings_its_release_along() {
    let mut net = Net::settled(4);
    isolate(&mut net);
    net.run(3_000);
    let isolated: Vec<_> = net.nodes.iter().map(|node| node.saved.clone()).collect();
    assert_released(&mut net);
    for node in [0, 1, 2] {
        net.crash(node);
        net.nodes[usize::from(node)].saved = isolated[usize::from(node)].clone();
        net.boot(node);
    }
    net.run_while(20_000, Net::is_whole);
    assert!(net.is_whole(), "an old database isolates no node again");
    let standing = net.component(0).database().standing(LOST);
    assert!(Incarnation(0) < standing.released());
}

/// Found by the swarm: while the link is cut, the manager isolates and releases the other node,
/// which takes over and learns of neither. The manager restarts.
#[test]
pub(in crate::dirnet) fn x11_a_removal_that_a_release_followed_is_not_restored() {
    let mut net = Net::settled(2);
    net.resets_work = false;
    net.cuts.extend([(0, 1), (1, 0)]);
    assert_eq!(net.input(0, |it, now| it.isolate(now, Rank(1))), Ok(()));
    assert_eq!(net.input(0, |it, now| it.release(now, Rank(1))), Ok(()));
    net.run_while(9_000, |net| net.component(1).role() == Role::Manager);
    assert_eq!(net.component(1).role(), Role::Manager);
    net.crash(0);
    net.cuts.clear();
    net.boot(0);
    net.run_while(20_000, Net::is_whole);
    assert!(net.is_whole(), "node 1 is heard again");
}

/// Found by the swarm: what a component saves before it hears of a node whose removal it has
/// forgotten was refused, and with it every isolation.
#[test]
pub(in crate::dirnet) fn x11_an_isolation_is_restored_without_the_boot_that_it_ended() {
    let mut net = Net::settled(4);
    isolate(&mut net);
    net.run(3_000);
    assert_released(&mut net);
    net.resets_work = false;
    net.crash(3);
    net.run(3_000);
    assert_eq!(level(&net, 2), Level::Down);
    for _ in 0..2 {
        net.crash(2);
        net.boot(2);
        assert_eq!(net.component(2).rejects().of(Reject::ImageField), 0);
    }
}

/// All databases are older than the isolation, and a supervisor still knows it.
#[test]
pub(in crate::dirnet) fn x11_a_manager_learns_an_isolation_from_its_supervisor() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    let boot = Incarnation(1);
    net.input(0, |it, now| it.learn_isolation(now, LOST, boot));
    net.run_while(5_000, |net| hold(net, &[0, 1, 2]));
    assert!(hold(&net, &[0, 1, 2]), "it holds, and every member learns it");
    assert_released(&mut net);
    net.input(0, |it, now| it.learn_isolation(now, LOST, boot));
    assert_eq!(level(&net, 0), Level::Up, "a release is later than the isolation that it ends");
    let present = net.component(0).database().standing(LOST).incarnation.boot;
    net.input(0, |it, now| it.learn_release(now, LOST, present));
    net.input(0, |it, now| it.learn_isolation(now, LOST, present));
    assert_eq!(level(&net, 0), Level::Up, "it may have been isolated twice");
}

//! Resets have a limit of their own, three in 100 s, and every next manager continues the count
//!

use super::net::Net;
use crate::dirnet::*;
use crate::ids::Rank;
use std::vec::Vec;

const LOST: Rank = Rank(2);

fn is_isolated(net: &Net) -> bool {
    net.reported(News::Isolated(LOST)) > 0
}

/// Node 2 fails whenever all are members again, `times` times or until it is isolated; returns how
/// often it failed.
fn fail(net: &mut Net, times: usize) -> usize {
    let mut failures = 0;
    while failures < times && !is_isolated(net) {
        failures += 1;
        net.crash(LOST.0);
        net.run_while(9_000, |net| is_isolated(net) || is_removed(net));
        net.run_while(9_000, |net| is_isolated(net) || net.is_whole());
        // Longer than the window of restarts.
        net.run(12_000);
    }
    failures
}

fn is_removed(net: &Net) -> bool {
    let running = net.nodes.iter().filter_map(|node| node.component.as_ref());
    running.into_iter().any(|it| !it.database().standing(LOST).is_up())
}

fn levels(net: &Net) -> Vec<Level> {
    let running = net.nodes.iter().filter_map(|node| node.component.as_ref());
    let others = running.filter(|it| it.me() != LOST);
    others.map(|it| it.database().standing(LOST).level).collect()
}

#[test]
pub(in crate::dirnet) fn x6_a_node_that_keeps_failing_is_isolated() {
    let mut net = Net::settled(3);
    assert_eq!(fail(&mut net, 9), 4);
    assert_eq!((net.resets().len(), net.reported(News::Isolated(LOST))), (3, 1));
    assert_eq!(net.rules(LOST.0, Verdict::Isolated), [Rule::Intensity]);
    assert_eq!(levels(&net), [Level::Isolated; 2]);
}

/// A node is reset whenever its time to come back has passed, and no more often.
#[test]
pub(in crate::dirnet) fn x6_a_node_that_never_comes_back_is_isolated() {
    let mut net = Net::settled(3);
    net.resets_work = false;
    net.crash(LOST.0);
    net.run_while(100_000, is_isolated);
    assert_eq!((net.resets().len(), net.reported(News::Isolated(LOST))), (3, 1));
    net.run(30_000);
    assert_eq!((net.resets().len(), levels(&net)), (3, [Level::Isolated; 2].into()));
}

/// Resets longer ago than the window no longer count.
#[test]
pub(in crate::dirnet) fn x6_a_node_that_fails_now_and_then_is_reset_each_time() {
    let mut net = Net::settled(3);
    for _ in 0..3 {
        assert_eq!(fail(&mut net, 2), 2);
        net.run(100_000);
    }
    assert!(net.is_whole() && !is_isolated(&net));
}

/// Two managers have reset the node once each before the third has to decide.
#[test]
pub(in crate::dirnet) fn x6_the_count_outlives_the_managers_that_it_brings_down() {
    let mut net = Net::settled(4);
    for _ in 0..3 {
        assert_eq!(fail(&mut net, 1), 1);
        let manager = net.manager().expect("there is one");
        net.hang(manager);
        net.run_while(9_000, |net| net.manager().is_some_and(|it| it != manager));
        net.run_while(9_000, Net::is_whole);
    }
    assert_eq!((net.resets().len(), is_isolated(&net)), (3, false));
    assert_eq!(fail(&mut net, 9), 1);
    assert!(is_isolated(&net));
}

/// A node that never comes back is also counted by its manager's successor.
#[test]
pub(in crate::dirnet) fn x6_the_heir_goes_on_with_a_node_that_never_comes_back() {
    let mut net = Net::settled(4);
    net.resets_work = false;
    net.crash(LOST.0);
    net.run_while(50_000, |net| net.resets().len() == 2);
    net.run(1_000);
    net.hang(0);
    net.run_while(9_000, |net| net.manager().is_some_and(|it| it != 0));
    let heir = net.now;
    net.run_while(100_000, is_isolated);
    assert!(is_isolated(&net));
    let took = (net.now - heir) / super::net::MS;
    assert!(took < 45_000, "a third reset and the time for it, not three: {took} ms");
}

/// All components end at once, and each continues with what it had saved.
#[test]
pub(in crate::dirnet) fn x6_the_count_outlives_all_components() {
    let mut net = Net::settled(3);
    assert_eq!(fail(&mut net, 2), 2);
    (0..3).for_each(|node| net.crash(node));
    net.boot_all();
    net.run_while(9_000, Net::is_whole);
    assert_eq!(fail(&mut net, 9), 2);
    assert_eq!((net.resets().len(), is_isolated(&net)), (3, true));
}

#[test]
pub(in crate::dirnet) fn x6_a_node_that_is_released_begins_anew() {
    let mut net = Net::settled(3);
    fail(&mut net, 9);
    assert!(is_isolated(&net));
    net.input(0, |component, now| component.release(now, LOST)).unwrap();
    net.boot(LOST.0);
    net.run_while(9_000, Net::is_whole);
    net.log.clear();
    assert_eq!(fail(&mut net, 9), 4);
    // The release starts a new count at the backup, too.
    net.input(0, |component, now| component.release(now, LOST)).unwrap();
    net.boot(LOST.0);
    net.run_while(9_000, Net::is_whole);
    net.hang(0);
    net.run_while(9_000, |net| net.manager() == Some(1));
    net.run_while(9_000, Net::is_whole);
    net.log.clear();
    assert_eq!(fail(&mut net, 9), 4);
}

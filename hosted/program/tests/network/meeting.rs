//! Nodes that belong together.

use weft::bootstrap::{Bootstrap, Fenced, Key, News, Offer, PairEnd, Timing};
use weft::core::ids::{Incarnation, Peer};

use std::time::Duration;

use crate::node::{Node, hello, key};
use crate::relay::Relay;

fn second(first: &Node, key: &Key) -> Node {
    Node::start(hello(1), &[first.address()], key.clone(), Timing::default())
}

#[test]
fn two_nodes_meet_and_hear_of_each_others_lives() {
    let key = key();
    let mut first = Node::first(&key);
    first.announce(3);
    let mut second = second(&first, &key);
    second.await_alive(3);
    assert!(matches!(first.news(), News::Met(_)));
    second.announce(8);
    assert!(
        matches!(first.news(), News::Alive(announced) if announced.incarnation == Incarnation(8))
    );

    let end = PairEnd::new(vec![5; 2000]).expect("short enough");
    let offer = Offer { from: Incarnation(8), to: Incarnation(3), end };
    second.bootstrap.offer(Peer(0), &offer);
    assert!(matches!(first.news(), News::Offered(heard) if heard == offer));
    let fenced = Fenced { up_to: Incarnation(8), decided: None };
    first.bootstrap.refuse(Peer(1), fenced);
    assert!(matches!(second.news(), News::Fenced(heard) if heard == fenced));
    second.bootstrap.retract(Incarnation(8));
    assert!(matches!(first.news(), News::Dead(Incarnation(8))));
}

#[test]
fn three_nodes_meet_in_pairs() {
    let key = key();
    let first = Node::first(&key);
    let second = second(&first, &key);
    let others = [first.address(), second.address()];
    let third = Node::start(hello(2), &others, key.clone(), Timing::default());
    for (node, peers) in [(&first, 2), (&second, 2), (&third, 2)] {
        for _ in 0..peers {
            assert!(matches!(node.news(), News::Met(_)));
        }
    }
}

#[test]
fn a_node_that_ends_parts_and_its_next_run_is_met_again() {
    let key = key();
    let first = Node::first(&key);
    let mut former = second(&first, &key);
    former.announce(1);
    first.await_alive(1);
    drop(former);
    assert!(matches!(first.news(), News::Parted));
    let mut next = second(&first, &key);
    next.announce(2);
    first.await_alive(2);
}

#[test]
fn a_connection_that_breaks_is_made_again_with_the_life_that_runs() {
    let key = key();
    let first = Node::first(&key);
    let relay = Relay::to(first.address(), usize::MAX);
    let mut second = Node::start(hello(1), &[relay.address], key, Timing::default());
    second.announce(1);
    first.await_alive(1);
    relay.cut();
    assert!(matches!(first.news(), News::Parted));
    first.await_alive(1);
}

/// A peer whose host is gone closes nothing: only its silence shows the loss.
#[test]
fn a_peer_that_falls_silent_is_gone() {
    let key = key();
    let short = Timing { silence: Duration::from_millis(300), ..Timing::default() };
    let first = Node::start(hello(0), &[], key.clone(), short);
    let relay = Relay::to(first.address(), usize::MAX);
    let pause = Duration::from_millis(20);
    let timing = Timing { pause, ..Timing::default() };
    let _second = Node::start(hello(1), &[relay.address], key, timing);
    assert!(matches!(first.news(), News::Met(_)));
    relay.hold();
    assert!(matches!(first.news(), News::Parted));
}

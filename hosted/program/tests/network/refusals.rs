//! Nodes that do not belong together: each reports the reason, on both sides.

use weft::bootstrap::{Hello, Key, Refusal, Timing, VERSION};
use weft::cluster::FabricKind;
use weft::explain::Explain;

use crate::node::{Node, hello, key};

/// Has a node with this hello and key call one with the right ones, and returns the refusals that
/// both report: the listener's first.
fn refusals(theirs: Hello, listeners: &Key, callers: &Key) -> (Refusal, Refusal) {
    let listener = Node::first(listeners);
    let others = vec![listener.address(); usize::from(theirs.rank)];
    let caller = Node::start(theirs, &others, callers.clone(), Timing::default());
    (listener.refusal(), caller.refusal())
}

#[test]
fn another_key_is_refused_on_both_sides() {
    let reply = refusals(hello(1), &key(), &key());
    assert_eq!(reply, (Refusal::Key, Refusal::Key));
    assert!(reply.0.cure().contains("key file"), "{}", reply.0.cure());
}

#[test]
fn who_does_without_a_key_meets_nobody_who_has_one() {
    let reply = refusals(hello(1), &key(), &Key::INSECURE);
    assert_eq!(reply, (Refusal::Key, Refusal::Key));
    let reply = refusals(hello(1), &Key::INSECURE, &key());
    assert_eq!(reply, (Refusal::Key, Refusal::Key));
}

#[test]
fn another_cluster_layout_net_and_fabric_are_refused_by_name() {
    let key = key();
    let other = Hello { cluster: "loom".to_owned(), ..hello(1) };
    let (ours, theirs) = ("weft".to_owned(), "loom".to_owned());
    let reason = Refusal::Cluster { ours, theirs };
    assert_eq!(refusals(other, &key, &key), (reason.clone(), reason));

    let other = Hello { layout: 8, ..hello(1) };
    let reason = Refusal::Layout { ours: 7, theirs: 8 };
    assert_eq!(refusals(other, &key, &key), (reason.clone(), reason));

    let other = Hello { dirnet: 6, ..hello(1) };
    let reason = Refusal::DirNet { ours: 5, theirs: 6 };
    assert_eq!(refusals(other, &key, &key), (reason.clone(), reason));

    let other = Hello { fabric: FabricKind::Shm, ..hello(1) };
    let (ours, theirs) = (FabricKind::Verbs, FabricKind::Shm);
    let reason = Refusal::Fabric { ours, theirs };
    assert_eq!(refusals(other, &key, &key), (reason.clone(), reason));
}

/// The version is sent in clear, before anything that depends on it.
#[test]
fn another_version_is_told_on_both_sides_each_in_its_own_view() {
    let key = key();
    let reply = refusals(Hello { version: 99, ..hello(1) }, &key, &key);
    let listener = Refusal::Version { ours: VERSION, theirs: 99 };
    assert_eq!(reply, (listener, Refusal::Version { ours: 99, theirs: VERSION }));
}

#[test]
fn a_rank_that_is_met_already_is_taken() {
    let key = key();
    let first = Node::first(&key);
    let _second = Node::start(hello(1), &[first.address()], key.clone(), Timing::default());
    first.news();
    let usurper = Node::start(hello(1), &[first.address()], key.clone(), Timing::default());
    assert_eq!(first.refusal(), Refusal::Rank { rank: 1 });
    assert_eq!(usurper.refusal(), Refusal::Rank { rank: 1 });
}

//! Nodes that find each other through etcd.

use weft::bootstrap::{DirectoryFault, Key, News, Refusal};

use crate::etcd::{Etcd, impostor};
use crate::node::{Node, hello, key};

fn node(rank: u16, etcd: &Etcd, key: &Key) -> Node {
    Node::registered(hello(rank), &etcd.endpoint(), key.clone())
}

#[track_caller]
fn fault(node: &Node) -> DirectoryFault {
    match node.refusal() {
        Refusal::Directory(fault) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nodes_that_register_with_etcd_meet_in_any_order() {
    let Some(etcd) = Etcd::start() else { return };
    let key = key();
    let nodes = [2, 0, 1].map(|rank| node(rank, &etcd, &key));
    for node in &nodes {
        for _ in 0..2 {
            assert!(matches!(node.news(), News::Met(_)));
        }
    }
}

#[test]
fn a_node_that_returns_at_another_address_is_met_there() {
    let Some(etcd) = Etcd::start() else { return };
    let key = key();
    let (first, second) = (node(0, &etcd, &key), node(1, &etcd, &key));
    assert!(matches!(first.news(), News::Met(_)) && matches!(second.news(), News::Met(_)));
    let former = first.address();
    drop(first);
    assert!(matches!(second.news(), News::Parted));
    let first = node(0, &etcd, &key);
    assert_ne!(first.address(), former);
    assert!(matches!(second.news(), News::Met(_)));
}

/// What has met stays connected; who comes later finds what was registered again.
#[test]
fn etcd_may_be_restarted_with_its_data_and_without() {
    let Some(mut etcd) = Etcd::start() else { return };
    let key = key();
    let mut first = node(0, &etcd, &key);
    first.announce(1);
    node(1, &etcd, &key).await_alive(1);
    etcd.restart();
    node(1, &etcd, &key).await_alive(1);
    etcd.restart_empty();
    node(1, &etcd, &key).await_alive(1);
}

#[test]
fn a_rank_that_another_node_keeps_registered_is_reported_until_that_one_ends() {
    let Some(etcd) = Etcd::start() else { return };
    let key = key();
    let mut first = node(0, &etcd, &key);
    first.announce(1);
    // Once it is met it is registered.
    node(1, &etcd, &key).await_alive(1);
    let mut usurper = node(0, &etcd, &key);
    usurper.announce(7);
    let address = first.address().to_string();
    assert_eq!(fault(&usurper), DirectoryFault::Registered { rank: 0, address });
    drop(first);
    node(1, &etcd, &key).await_alive(7);
}

#[test]
fn clusters_with_other_keys_do_not_see_each_other() {
    let Some(etcd) = Etcd::start() else { return };
    let (ours, theirs) = (key(), key());
    let mut pairs = [&ours, &theirs].map(|key| (node(0, &etcd, key), node(1, &etcd, key)));
    for (number, (first, second)) in (1..).zip(&mut pairs) {
        first.announce(number);
        second.await_alive(number);
    }
}

#[test]
fn what_is_no_etcd_is_reported_by_what_it_does() {
    let wrong = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    let failing = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let at = |answer| {
        let endpoint = impostor(answer);
        (fault(&Node::registered(hello(1), &endpoint, key())), endpoint)
    };
    let (found, endpoint) = at(wrong);
    assert_eq!(found, DirectoryFault::NotEtcd { endpoint });
    let (found, endpoint) = at(failing);
    assert_eq!(found, DirectoryFault::Status { endpoint, status: 503 });
    for answer in ["", "SSH-2.0-OpenSSH\r\n"] {
        let (found, endpoints) = at(answer);
        assert_eq!(found, DirectoryFault::Silent { endpoints });
    }
    let refused = Node::registered(hello(1), "127.0.0.1:1", key());
    let endpoints = "127.0.0.1:1".to_owned();
    assert_eq!(fault(&refused), DirectoryFault::Silent { endpoints });
}

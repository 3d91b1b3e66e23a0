//! Several nodes broadcast at once, and each other node receives from each: one listener an origin.

use std::time::Duration;

use weft::client::{ClientError, Listener};
use weft::node::control::{Deliveries, Refused};

use crate::broadcast::{FILE, digest, heard, listen};
use crate::place::{Nodes, Place, Running, eventually};

/// Starts senders of files longer than the window, one at each of `nodes`; with their digests.
fn send_long(place: &Place, nodes: &[u16]) -> (Vec<Running>, Vec<String>) {
    let send = |node: &u16| {
        let bytes = [format!("of node {node}: ").as_bytes(), &FILE.repeat(10)].concat();
        let file = place.file(&format!("{node}.bin"), &bytes);
        let line = format!("bcast --neb {file} --from {node} --timeout 60 --name t --json");
        (place.start(&line, ""), digest(&bytes))
    };
    nodes.iter().map(send).unzip()
}

fn listener(nodes: &Nodes, rank: u16) -> Listener {
    Listener::begin(nodes.client(rank), crate::PATIENCE).expect("it runs")
}

/// Asks for nothing of `origin`, and so holds it.
fn hold(listener: &mut Listener, origin: u16) -> Result<Deliveries, ClientError> {
    listener.listen(Some(origin), 0, Duration::ZERO)
}

fn is_held_by_this_process(answer: &Result<Deliveries, ClientError>, held: u16) -> bool {
    let Err(ClientError::Refused { reason, .. }) = answer else { return false };
    *reason == Refused::OtherReceiver { origin: held, process: std::process::id() }
}

#[test]
fn long_files_of_several_nodes_are_received_at_once_by_origin() {
    let place = Place::new();
    let (_up, _nodes) = place.up_calm(3);
    let (senders, digests) = send_long(&place, &[0, 2]);
    // At node 1 both at the same time; where they began first makes no difference.
    let late = [listen(&place, 2, &[0]), listen(&place, 0, &[2])];
    let early = [listen(&place, 0, &[1]), listen(&place, 2, &[1])];
    for (listeners, sent) in late.into_iter().zip([1, 0]).chain(early.into_iter().zip([0, 1])) {
        for heard in heard(listeners) {
            assert_eq!(heard["sha256"], digests[sent], "{heard}");
            assert_eq!((&heard["repeated"], &heard["passed_over"]), (&0.into(), &0.into()));
        }
    }
    senders.into_iter().for_each(|sender| drop(sender.wait().done()));
}

#[test]
fn receives_that_name_no_origin_share_what_several_nodes_broadcast() {
    let place = Place::new();
    let (_up, _nodes) = place.up_calm(3);
    let receive = |node: u16| {
        place
            .start(&format!("bcast --neb --receive --node {node} --timeout 60 --name t --json"), "")
    };
    let listeners = vec![receive(1), receive(1), receive(0), receive(2)];
    let (senders, mut digests) = send_long(&place, &[0, 2]);
    let heard = heard(listeners);
    let digest_of = |at: usize| heard[at]["sha256"].as_str().expect("a digest").to_owned();
    assert_eq!([digest_of(2), digest_of(3)], [digests[1].clone(), digests[0].clone()]);
    let mut shared = [digest_of(0), digest_of(1)];
    shared.sort();
    digests.sort();
    assert_eq!(shared[..], digests[..]);
    senders.into_iter().for_each(|sender| drop(sender.wait().done()));
}

#[test]
fn an_origin_is_received_by_one_client_and_others_are_told_by_whom() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    let mut first = listener(&nodes, 1);
    hold(&mut first, 0).expect("no other client does");
    let line = "bcast --neb --receive --node 1 --name t --json";
    let taken = place.weft(&format!("{line} --origin 0")).refused(26, "busy");
    let holder = format!("process {} already receives from node 0", std::process::id());
    assert!(taken.starts_with(&holder), "{taken}");
    // Who names no origin waits for those that are free, though this one came first.
    place.weft_with("bcast --neb --from 0 --name t", "held").done();
    place.weft_with("bcast --neb --from 2 --name t", "free").done();
    assert_eq!(place.weft(line).object()["sha256"], digest(b"free"));
    first.end().expect("it listens");
    assert_eq!(place.weft(line).object()["sha256"], digest(b"held"));
    let mut second = listener(&nodes, 1);
    hold(&mut second, 0).expect("it is free at once");
    drop(second);
    let mut third = listener(&nodes, 1);
    eventually("it is free again", || hold(&mut third, 0).is_ok());
}

#[test]
fn who_was_handed_something_holds_it_until_it_keeps_to_another_origin() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    for origin in [0, 2] {
        place.weft_with(&format!("bcast --neb --from {origin} --name t"), "a file").done();
    }
    let (mut any, mut other) = (listener(&nodes, 1), listener(&nodes, 1));
    let mut origins = Vec::new();
    eventually("it was handed something of both", || {
        let heard = any.listen(None, 16, crate::PATIENCE).expect("it goes on");
        origins.extend(heard.messages.iter().map(|message| message.origin));
        [0, 2].iter().all(|origin| origins.contains(origin))
    });
    assert!(is_held_by_this_process(&hold(&mut other, 0), 0));
    any.note_dealt_with(0, 1);
    let kept = any.listen(Some(2), 16, crate::PATIENCE).expect("it holds it");
    assert_eq!((kept.messages[0].origin, kept.messages[0].seq), (2, 1), "not dealt with");
    // The rest of what it gave back.
    let heard = other.listen(Some(0), 16, crate::PATIENCE).expect("it is free");
    assert_eq!((heard.messages[0].origin, heard.messages[0].seq), (0, 2));
    assert!(is_held_by_this_process(&hold(&mut other, 2), 2));
}

#[test]
fn who_receives_keeps_its_place_when_the_component_dies() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 2");
    place.weft_with("bcast --neb --from 0 --name t", "a file").done();
    let (mut first, mut second) = (listener(&nodes, 1), listener(&nodes, 1));
    let heard = first.listen(Some(0), 1, crate::PATIENCE).expect("no other client does");
    assert_eq!(heard.messages[0].seq, 1);
    first.note_dealt_with(0, 1);
    hold(&mut first, 0).expect("it holds it");
    nodes.client(1).kill().expect("it runs");
    nodes.await_joined();
    let answer = second.listen(Some(0), 1, Duration::ZERO);
    assert!(is_held_by_this_process(&answer, 0), "{answer:?}");
    let heard = first.listen(Some(0), 16, crate::PATIENCE).expect("it holds it");
    assert_eq!(heard.messages[0].seq, 2, "and goes on where it was");
    // A client that left while there was no component holds nothing.
    nodes.client(1).kill().expect("it runs");
    drop(first);
    eventually("it is free", || hold(&mut second, 0).is_ok());
}

#[test]
fn a_receive_that_is_held_up_elsewhere_names_where() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    let (_senders, _) = send_long(&place, &[0]);
    eventually("the window is full", || nodes.origin(0, 0).window.is_full());
    let line = "bcast --neb --receive --node 1 --timeout 0.5 --name t --json";
    let refused = place.weft(line).refused(30, "timeout");
    assert!(refused.contains("node 0 sent nothing for 0.5 s"), "{refused}");
    assert!(refused.contains("`weft bcast --neb --receive --node 2 --origin 0`"), "{refused}");
}

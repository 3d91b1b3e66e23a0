//! Files without an end: the sender gave up, and receivers get that error at once.

use weft::client::Speaker;
use weft::process::Signal;
use weft_program::transfer::Cutter;

use crate::broadcast::{FILE, digest, fill_window};
use crate::place::{Place, Running, eventually};

/// Starts a receive at `node` into a file.
fn receive(place: &Place, node: u16, to: &str) -> Running {
    let to = place.path_of(to);
    let line = format!("bcast --neb --receive --node {node} --timeout 60 --name t");
    place.start(&format!("{line} --output {to} --json"), "")
}

/// Asserts that `torso` ended because its sender gave up, and left no file.
fn assert_given_up(place: &Place, torso: Running) {
    let refused = torso.wait().refused(37, "abandoned");
    assert!(refused.starts_with("the sender at node 0 gave up after"), "{refused}");
    assert_eq!(place.files("torso"), [""; 0], "half a file is no file");
}

#[test]
fn a_sender_that_is_interrupted_ends_those_who_receive_at_once() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    let file = place.file("long.bin", FILE.repeat(10));
    // It is delayed by node 2, where no client receives.
    let sender = fill_window(&place, &nodes, &file);
    let torso = receive(&place, 1, "torso");
    // Not SIGINT, which a test run in a script's background inherits as ignored.
    sender.signal(Signal::TERM);
    assert_given_up(&place, torso);
    assert_given_up(&place, receive(&place, 2, "torso"));
}

#[test]
fn a_sender_that_gives_up_by_itself_says_so_too() {
    let place = Place::new();
    let (_up, _nodes) = place.up_calm(3);
    let file = place.file("long.bin", FILE.repeat(10));
    let line = format!("bcast --neb {file} --from 0 --timeout 0.3 --name t --json");
    place.weft(&line).refused(25, "window_full");
    // There is no room for anything of the next one, which has no will then.
    place.weft(&line).refused(25, "window_full");
    let second = place.start("bcast --neb --from 0 --name t --timeout 60", "the second");
    assert_given_up(&place, receive(&place, 1, "torso"));
    assert_given_up(&place, receive(&place, 2, "torso"));
    second.wait().done();
    for node in [1, 2] {
        assert_whole(&place, node, b"the second");
    }
}

/// Asserts that the next file at `node` is this one, and that nothing was lost before it.
fn assert_whole(place: &Place, node: u16, bytes: &[u8]) {
    let heard = receive(place, node, "whole").wait().object();
    let (sha256, passed_over) = (&heard["sha256"], &heard["passed_over"]);
    assert_eq!((sha256, passed_over), (&digest(bytes).into(), &0.into()));
}

#[test]
fn a_file_behind_one_that_was_given_up_is_not_lost() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    let file = place.file("long.bin", FILE.repeat(10));
    let first = fill_window(&place, &nodes, &file);
    let line = "bcast --neb --from 0 --name t --timeout";
    let refused = place.weft_with(&format!("{line} 0.1 --json"), "now").refused(30, "timeout");
    assert!(refused.contains("another client"), "{refused}");
    let second = place.start(&format!("{line} 60"), "the second");
    // The abort marker of a client that leaves while there is no component is sent by the next one.
    nodes.client(0).kill().expect("it runs");
    first.signal(Signal::KILL);
    drop(first);
    for node in [1, 2] {
        assert_given_up(&place, receive(&place, node, "torso"));
    }
    second.wait().done();
    // What was handed out and not dealt with is not lost with the component either.
    nodes.client(1).kill().expect("it runs");
    nodes.await_joined();
    for node in [1, 2] {
        assert_whole(&place, node, b"the second");
    }
    assert_eq!(place.files("whole"), ["whole"]);
}

#[test]
fn an_abort_marker_is_sent_once_and_only_by_a_sender_that_leaves_in_the_middle() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    let speak = |tag| Speaker::begin(nodes.client(0), tag, b"will", crate::PATIENCE);
    let mut first = speak(7).expect("no other client does");
    first.broadcast(&[b"one", b"two"], crate::PATIENCE).expect("there is room");
    drop(first);
    drop(speak(8).expect("it is the next, and says nothing"));
    let mut third = speak(9).expect("it is the next");
    third.broadcast(&[b"three"], crate::PATIENCE).expect("there is room");
    third.end(crate::PATIENCE).expect("it runs");
    for _ in 0..2 {
        eventually("it runs, and is killed", || nodes.client(0).kill().is_ok());
    }
    let mut fourth = speak(10).expect("it is the next");
    fourth.broadcast(&[b"four"], crate::PATIENCE).expect("there is room");
    let mut listener =
        weft::client::Listener::begin(nodes.client(1), crate::PATIENCE).expect("it runs");
    let mut heard = Vec::new();
    eventually("all has come", || {
        let more = listener.listen(Some(0), 16, crate::PATIENCE).expect("it goes on").messages;
        heard.extend(more.into_iter().map(|message| (message.seq, message.tag, message.payload.0)));
        heard.iter().for_each(|(seq, ..)| listener.note_dealt_with(0, *seq));
        heard.len() >= 5
    });
    let reply = [(7, "one"), (7, "two"), (7, "will"), (9, "three"), (10, "four")];
    let reply = (1..).zip(reply).map(|(seq, (tag, text))| (seq, tag, text.as_bytes().to_vec()));
    assert_eq!(heard, reply.collect::<Vec<_>>());
}

#[test]
fn an_abort_marker_follows_a_lie_that_was_sent_in_between() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    let mut speaker =
        Speaker::begin(nodes.client(0), 7, b"will", crate::PATIENCE).expect("it runs");
    speaker.broadcast(&[b"one"], crate::PATIENCE).expect("there is room");
    let lie = nodes.client(0).equivocate().expect("there is room");
    assert_eq!(lie.seq, 2);
    drop(speaker);
    eventually("it is said", || nodes.origin(0, 0).broadcast == 3);
}

#[test]
fn a_torso_that_nobody_owns_up_to_is_cut_short_by_the_next_file() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let part = Cutter::default().part(b"half");
    nodes.client(0).broadcast(7, &[&part], crate::PATIENCE).expect("there is room");
    place.weft_with("bcast --neb --from 0 --name t", "whole").done();
    let refused = receive(&place, 1, "torso").wait().refused(36, "cut_short");
    assert!(refused.starts_with("node 0 began another file after 4 bytes"), "{refused}");
    assert_whole(&place, 1, b"whole");
}

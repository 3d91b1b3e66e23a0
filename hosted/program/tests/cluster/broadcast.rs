//! Broadcasts across real processes: all nodes get the same bytes, whichever dies or lies.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _, pipe};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use weft::process::Signal;

use crate::place::{Nodes, Place, Running, eventually};

/// A real file: the longest source of the core.
pub(crate) const FILE: &[u8] = include_bytes!("../../../../core/src/mailbox/owner.rs");

pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Starts a listener at each of `nodes`, for one file of `origin`.
pub(crate) fn listen(place: &Place, origin: u16, nodes: &[u16]) -> Vec<Running> {
    let line = |node| format!("bcast --neb --receive --node {node} --origin {origin} --name t");
    nodes.iter().map(|node| place.start(&format!("{} --json", line(node)), "")).collect()
}

pub(crate) fn heard(listeners: Vec<Running>) -> Vec<Value> {
    listeners.into_iter().map(|listener| listener.wait().object()).collect()
}

#[test]
fn a_file_reaches_every_other_node_with_the_same_digest() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(4);
    // Longer than the window, so that the sender waits for the listeners.
    let long = FILE.repeat(20);
    let file = place.file("long.bin", &long);
    let listeners = listen(&place, 0, &[1, 2, 3]);
    let sent = place.weft(&format!("bcast --neb {file} --from 0 --name t --json")).object();
    assert_eq!((&sent["sha256"], &sent["bytes"]), (&digest(&long).into(), &long.len().into()));
    for heard in heard(listeners) {
        assert_eq!((&heard["sha256"], &heard["origin"]), (&sent["sha256"], &0.into()), "{heard}");
        assert_eq!((&heard["messages"], &heard["repeated"]), (&sent["messages"], &0.into()));
    }
    nodes.assert_unharmed();
}

#[test]
fn listeners_may_come_late_and_write_files() {
    let place = Place::new();
    let (_up, _nodes) = place.up_calm(3);
    for text in ["first\n", "", "third\n"] {
        place.weft_with("bcast --neb --from 2 --name t", text).done();
    }
    let out = place.file("out", "");
    for (node, text) in [(0, "first\n"), (0, ""), (0, "third\n"), (1, "first\n")] {
        let line = format!("bcast --neb --receive --node {node} --name t --output {out}");
        assert!(place.weft(&line).done().contains(&digest(text.as_bytes())));
        assert_eq!(std::fs::read_to_string(&out).expect("it was written"), text);
    }
    let second = place.weft("bcast --neb --receive --node 1 --name t").done();
    assert_eq!(second, "", "an empty file is a file");
    assert_eq!(place.weft("bcast --neb --receive --node 1 --name t").done(), "third\n");
}

#[test]
fn a_window_that_stays_full_names_the_node_that_delays_it() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    let file = place.file("long.bin", FILE.repeat(10));
    let listener = listen(&place, 0, &[1]);
    let line = format!("bcast --neb {file} --from 0 --timeout 0.3 --name t --json");
    place.weft(&line).refused(25, "window_full");
    eventually("it has taken a window, and that its sender has given up", || {
        nodes.origin(1, 0).delivered == 256
    });
    let refused = place.weft(&line).refused(25, "window_full");
    assert!(refused.contains("node 2 has not taken message"), "{refused}");
    drop(listener);
    nodes.assert_unharmed();
}

/// Starts a sender of `file` at node 0 and waits until it has filled the window.
pub(crate) fn fill_window(place: &Place, nodes: &Nodes, file: &str) -> Running {
    let line = format!("bcast --neb {file} --from 0 --timeout 60 --name t --json");
    let sender = place.start(&line, "");
    eventually("the window is full", || nodes.origin(0, 0).window.is_full());
    sender
}

#[test]
fn two_senders_at_one_node_do_not_mix_their_files() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    let texts = ["one ", "two "].map(|name| name.repeat(100_000));
    let send = |text: &String| {
        let file = place.file(&text[..3], text);
        place.start(&format!("bcast --neb {file} --from 0 --timeout 60 --name t --json"), "")
    };
    let senders = texts.each_ref().map(send);
    let mut digests = Vec::new();
    for _ in &texts {
        let files = heard(listen(&place, 0, &[1, 2]));
        assert_eq!(files[0]["sha256"], files[1]["sha256"]);
        assert_eq!((&files[0]["repeated"], &files[0]["passed_over"]), (&0.into(), &0.into()));
        digests.push(files[0]["sha256"].as_str().expect("a digest").to_owned());
    }
    let mut sent: Vec<String> = texts.iter().map(|text| digest(text.as_bytes())).collect();
    digests.sort();
    sent.sort();
    assert_eq!(digests, sent);
    senders.into_iter().for_each(|sender| drop(sender.wait().done()));
    nodes.assert_unharmed();
}

#[test]
fn a_receive_that_fails_leaves_no_file() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let old = place.file("copy", "old");
    let line = |to: &str| format!("bcast --neb --receive --node 1 --name t --json --output {to}");
    place.weft(&format!("{} --timeout 0.1", line(&old))).refused(30, "timeout");
    assert_eq!(std::fs::read_to_string(&old).expect("it is there"), "old");
    let new = place.path_of("new-copy");
    place.weft(&format!("{} --timeout 0.1", line(&new))).refused(30, "timeout");
    place.weft(&line("/no/such/folder/copy")).refused(44, "output");
    for (seq, signal) in [(1, Signal::TERM), (2, Signal::KILL)] {
        let receive = place.start(&line(&new), "");
        nodes.client(0).broadcast(7, &[b"no file"], crate::PATIENCE).expect("there is room");
        eventually("it receives", || nodes.origin(1, 0).delivered == seq);
        receive.signal(signal);
        assert_eq!(receive.wait().status, None, "as the signal does");
        assert_eq!(place.files("copy"), ["copy"]);
    }
    nodes.assert_unharmed();
}

#[test]
fn output_that_cannot_be_written_is_received_again_or_broadcast_again() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    place.weft_with("bcast --neb --from 0 --name t", "kept\n").done();
    let receive = "bcast --neb --receive --node 1 --name t";
    let full = OpenOptions::new().write(true).open("/dev/full").expect("there is one");
    let refused = place.start_changed(receive, "", |command| command.stdout(full)).wait();
    assert_eq!(refused.status, Some(44), "{refused:?}");
    assert!(refused.err.contains("and receive again, which gives the file again"), "{refused:?}");
    assert_eq!(place.weft(receive).done(), "kept\n");

    // The reader of the output leaves in the middle.
    let (mut read, output) = pipe().expect("a pipe");
    let torn = place.start_changed(receive, "", |command| command.stdout(output));
    let (input, mut write) = pipe().expect("a pipe");
    let send = "bcast --neb --from 0 --name t";
    let send = place.start_changed(send, "", |command| command.stdin(input));
    write.write_all(b"first\n").expect("it reads");
    read.read_exact(&mut [0; 6]).expect("it comes");
    drop(read);
    write.write_all(b"second\n").expect("it reads");
    drop(write);
    let refused = torn.wait();
    assert_eq!(refused.status, Some(44), "{refused:?}");
    assert!(refused.err.contains("and broadcast the file again"), "{refused:?}");
    send.wait().done();
    nodes.assert_unharmed();
}

#[test]
fn a_status_shows_the_progress_of_all_nodes() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    place.weft_with("bcast --neb --from 0 --name t", "a file").done();
    let look = |rank| {
        let row = nodes.origin(rank, 0);
        (row.broadcast, row.delivered, row.settled, row.window.used)
    };
    eventually("it has come", || [1, 2].iter().all(|rank| look(*rank) == (2, 0, 0, 2)));
    assert_eq!(look(0), (2, 2, 0, 2));
    place.weft("bcast --neb --receive --node 1 --name t").done();
    assert_eq!(look(0), (2, 2, 0, 2), "node 2 has not taken it");
    place.weft("bcast --neb --receive --node 2 --name t").done();
    eventually("all know", || nodes.ranks().all(|rank| look(rank) == (2, 2, 2, 0)));
    let text = place.weft("status --name t").done();
    assert!(text.contains("broadcasts, unsigned\n") && text.contains(" 0/256 "), "{text}");
    assert!(text.contains("  seen here   delivered "), "{text}");
    assert!(place.weft("status --help").done().contains("seen here  the last that the node"));
    assert!(!text.contains("\n\n\n") && !text.ends_with("\n\n"), "{text}");
}

#[test]
fn a_full_window_is_waited_for_across_restarts() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    let file = place.file("long.bin", FILE.repeat(10));
    let line = format!("bcast --neb {file} --from 0 --timeout 60 --name t --json");
    let sender = place.start(&line, "");
    for _ in 0..5 {
        eventually("it runs, and is killed", || nodes.client(0).kill().is_ok());
    }
    let listeners = listen(&place, 0, &[1, 2]);
    let sent = sender.wait().object();
    for heard in heard(listeners) {
        assert_eq!((&heard["sha256"], &heard["repeated"]), (&sent["sha256"], &0.into()));
    }
}

#[test]
fn components_killed_in_mid_broadcast_cost_nothing() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 4");
    let long = FILE.repeat(120);
    let file = place.file("long.bin", &long);
    let listeners = listen(&place, 0, &[1, 2, 3]);
    let sender = place.start(&format!("bcast --neb {file} --from 0 --name t --json"), "");
    for (victim, after) in [(2, 200), (0, 600), (1, 1200)] {
        eventually("the broadcast goes on", || nodes.origin(3, 0).delivered > after);
        nodes.client(victim).kill().expect("it runs");
    }
    let sent = sender.wait().object();
    assert_eq!(sent["sha256"], digest(&long));
    for heard in heard(listeners) {
        assert_eq!(heard["sha256"], sent["sha256"], "{heard}");
    }
    nodes.await_joined();
    assert_eq!(nodes.origin(3, 0).conflicts, 0);
    for victim in [0, 1, 2] {
        // More than once where the machine is so slow that a clone is taken for hung.
        assert!(nodes.client(victim).status().expect("a status").restarts >= 1);
    }
}

#[test]
fn a_stopped_component_is_waited_for() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    place.weft("inject stall 2 --ms 300 --name t").done();
    let listeners = listen(&place, 0, &[1, 2]);
    place.weft_with("bcast --neb --from 0 --name t", "patience").done();
    for heard in heard(listeners) {
        assert_eq!(heard["sha256"], digest(b"patience"));
    }
    nodes.assert_unharmed();
}

#[test]
fn a_partition_holds_a_broadcast_up_until_it_heals() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    // The manager still hears both, so that no node is removed.
    place.weft("inject partition 2 --from 1 --name t").done();
    let listeners = listen(&place, 0, &[1, 2]);
    place.weft_with("bcast --neb --from 0 --name t", "behind the cut").done();
    // A part and the end.
    eventually("the messages have come", || nodes.origin(1, 0).broadcast == 2);
    assert_eq!(nodes.origin(1, 0).delivered, 0, "the vote of node 2 has not come");
    place.weft("inject heal --name t").done();
    for heard in heard(listeners) {
        assert_eq!(heard["sha256"], digest(b"behind the cut"));
    }
    nodes.assert_unharmed();
}

#[test]
fn an_equivocation_is_reported_and_no_two_nodes_deliver_different_messages() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(4);
    place.weft_with("bcast --neb --from 1 --name t", "the truth").done();
    let lie = place.weft("inject equivocate 1 --name t --json").object();
    assert_eq!((&lie["original"], &lie["altered"]), (&vec![0, 3].into(), &vec![2].into()));
    let seq = lie["seq"].as_u64().expect("a number");
    let mut stories = Vec::new();
    let mut disputed = 0;
    for rank in [0, 2, 3] {
        let mut listener =
            weft::client::Listener::begin(nodes.client(rank), crate::PATIENCE).expect("it runs");
        let mut last = 0;
        loop {
            let heard = listener.listen(Some(1), 16, crate::PATIENCE).expect("it goes on");
            for message in heard.messages {
                assert_eq!(message.seq, last + 1, "once, in order");
                last = message.seq;
                listener.note_dealt_with(1, last);
                if last == seq {
                    stories.push(message.payload);
                }
            }
            disputed += heard.conflicts.iter().filter(|conflict| conflict.seq == seq).count();
            if last == seq || !heard.conflicts.is_empty() {
                break;
            }
        }
    }
    assert!(disputed > 0 && disputed + stories.len() == 3, "{disputed}, {stories:?}");
    assert!(stories.windows(2).all(|two| two[0] == two[1]), "{stories:?}");
    let status = place.weft("status --name t").done();
    assert!(status.contains("conflicts") && status.contains("the first at"), "{status}");
    let why = place.weft("status --name t --why 1").done();
    assert!(why.contains(&format!("show different messages as number {seq}")), "{why}");
    // All others still broadcast.
    let listeners = listen(&place, 0, &[1, 2, 3]);
    place.weft_with("bcast --neb --from 0 --name t", "still here").done();
    for heard in heard(listeners) {
        assert_eq!(heard["sha256"], digest(b"still here"));
    }
}

#[test]
fn a_listener_of_a_liar_gets_the_conflict() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    place.weft("inject equivocate 0 --name t").done();
    let disputed = |rank: &u16| nodes.origin(*rank, 0).conflicts > 0;
    let node = [1, 2].into_iter().find(disputed).expect("one of them has seen it");
    let line = format!("bcast --neb --receive --node {node} --name t --json");
    // No node votes on a second lie, and the error says so, not what was seen of the first.
    let refused = place.weft("inject equivocate 0 --name t --json").refused(34, "conflict");
    assert!(refused.contains("about number 1 of node 0 before"), "{refused}");
    // Nothing else comes, so the conflict is the error; at once if only the liar is asked for.
    for rest in ["--timeout 0.1", "--origin 0 --timeout 60"] {
        let refused = place.weft(&format!("{line} {rest}")).refused(34, "conflict");
        assert!(refused.starts_with("node 0 or node"), "{refused}");
        assert!(refused.contains("`--origin RANK`"), "{refused}");
    }
    // No more of the liar is delivered, and it gets that error.
    let refused = place.weft_with("bcast --neb --from 0 --name t --json", "more");
    assert!(refused.refused(34, "conflict").contains("saw a conflict about node 0"));
    // It does not delay messages of correct nodes.
    let receive = place.start(&line, "");
    place.weft_with(&format!("bcast --neb --from {} --name t", 3 - node), "honest").done();
    assert_eq!(receive.wait().object()["sha256"], digest(b"honest"));
    // What was seen is not forgotten with the component that saw it.
    nodes.client(node).kill().expect("it runs");
    let mut row = None;
    eventually("the next one reports it", || {
        let status = nodes.client(node).status().expect("a status");
        row = status.broadcasts.first().copied().filter(|_| status.restarts > 0);
        row.is_some()
    });
    let row = row.expect("it was reported");
    assert_eq!((row.conflicts, row.first_conflict.map(|first| first.seq)), (1, Some(1)));
}

#[test]
fn a_sender_that_waits_gets_the_conflict_at_once_and_an_idle_one_at_its_end() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    let line = "bcast --neb --from 0 --timeout 600 --name t --json";
    let send = |input| place.start_changed(line, "", |command| command.stdin(input));
    let (input, mut first) = pipe().expect("a pipe");
    let idle = send(input);
    first.write_all(b"a line\n").expect("it reads");
    eventually("the first has begun", || nodes.origin(0, 0).broadcast > 0);
    let (input, mut second) = pipe().expect("a pipe");
    let waiting = send(input);
    // It reads, for which the pipe is too small otherwise, once it has seen that no node lies yet.
    second.write_all(&[0; (1 << 16) + 1]).expect("it reads");
    place.weft("inject equivocate 0 --name t").done();
    assert!(waiting.wait().refused(34, "conflict").contains("saw a conflict about node 0"));
    // The rest of its file finds room in the window, and arrives nowhere.
    drop(first);
    assert!(idle.wait().refused(34, "conflict").contains("saw a conflict about node 0"));
}

#[test]
fn a_receiver_that_waits_for_a_liar_gets_the_conflict_whatever_it_received() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    place.weft("inject equivocate 0 --name t").done();
    let line = |node| format!("bcast --neb --receive --node {node} --origin 0 --name t --json");
    for node in [1, 2] {
        let refused = place.weft(&format!("{} --timeout 600", line(node)));
        refused.refused(34, "conflict");
    }
    nodes.assert_unharmed();
}

#[test]
fn a_lie_waits_until_the_window_has_room() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    let file = place.file("long.bin", FILE.repeat(10));
    // Who leaves then takes the last slot, to say so.
    drop(fill_window(&place, &nodes, &file));
    let window = || nodes.origin(0, 0).window;
    eventually("no slot is free", || window().used == u64::from(window().slots));
    let line = "inject equivocate 0 --name t --json --wait";
    place.weft(&format!("{line} 0.1")).refused(25, "window_full");
    let lie = place.start(&format!("{line} 60"), "");
    for torso in listen(&place, 0, &[1, 2]) {
        torso.wait().refused(37, "abandoned");
    }
    assert_eq!(lie.wait().object()["seq"], 257);
}

#[test]
fn each_typed_line_is_broadcast_at_once() {
    let place = Place::new();
    let (_up, _nodes) = place.up_calm(2);
    let receive = place.start("bcast --neb --receive --node 1 --timeout 60 --name t", "");
    let (reader, mut writer) = pipe().expect("a pipe");
    let send = "bcast --neb --from 0 --timeout 60 --name t --json";
    let send = place.start_changed(send, "", |command| command.stdin(reader));
    let mut typed = String::new();
    for piece in ["a line\n", "and half ", "of one\n"] {
        writer.write_all(piece.as_bytes()).expect("it reads");
        typed.push_str(piece);
        eventually("it has come", || receive.said("out") == typed);
    }
    drop(writer);
    assert_eq!(send.wait().object()["sha256"], digest(typed.as_bytes()));
    assert_eq!(receive.wait().done(), typed);
}

#[test]
fn wrong_broadcast_commands_are_refused() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let bcast = |rest: &str| place.weft(&format!("bcast --neb --name t --json {rest}"));
    bcast("/no/such/file --from 0").refused(22, "input_missing");
    let refused = bcast("/ --from 0").refused(24, "input_unreadable");
    assert!(refused.starts_with("/ cannot be read: "), "{refused}");
    let refused = bcast("- --from 0 --timeout -1").refused(2, "usage");
    assert!(refused.contains("-1, which is not a valid duration"), "{refused}");
    bcast("--receive --node 0 --origin 2").refused(15, "node_out_of_range");
    place.weft("neb proof --origin 2 --name t --json").refused(15, "node_out_of_range");
    bcast("--from 2").refused(15, "node_out_of_range");
    bcast("--receive --node 0 --origin 2").refused(15, "node_out_of_range");
    bcast("--receive --node 0 --origin 0").refused(2, "usage");
    bcast("--from 0 --origin 1").refused(2, "usage");
    bcast("--from 0 --output /dev/null").refused(2, "usage");
    bcast("--receive --node 0 --timeout 0.1").refused(30, "timeout");
    bcast("--receive").refused(2, "usage");
    bcast("").refused(2, "usage");
    place.weft("inject equivocate 0 --name t --json").refused(2, "usage");
    place.weft("bcast --from 0 --name t --json").refused(2, "usage");
    nodes.assert_unharmed();
}

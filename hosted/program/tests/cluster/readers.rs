//! Readers that pause, die or have no room: what was not written is not consumed, and one that
//! stops reading does not keep a mailbox from all others.

use std::fs::File;
use std::io::{PipeReader, Read as _, pipe};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use weft::node::control::{HolderStatus, TakenMessage};
use weft::process::Signal;

use crate::PATIENCE;
use crate::place::{Nodes, Place, Running, eventually};
use crate::said::objects;

/// A cluster of two whose mailboxes hold up to 32 messages of 4000 bytes, and clients what they
/// took for so long.
fn up_holding(place: &Place, hold_s: u64) -> (Running, Nodes) {
    let mailbox = format!("slots = 16\nmessage_len = 4000\nhold_s = {hold_s}\n");
    place.up(&place.file("t.toml", format!("name = \"t\"\nnodes = 2\n[mailbox]\n{mailbox}")))
}

/// Numbered lines, so long that 20 of them are more than a pipe holds.
fn long_lines(numbers: std::ops::Range<usize>) -> String {
    numbers.map(|number| format!("{number:04000}\n")).collect()
}

/// `weft get` at node 1 whose reader has stopped reading, and what it would read.
fn paused_get(place: &Place, count: usize) -> (Running, PipeReader) {
    let (reader, writer) = pipe().expect("a pipe");
    let get = format!("get --name t --node 1 --count {count} --timeout 60");
    (place.start_changed(&get, "", |command| command.stdout(writer)), reader)
}

/// Waits until a paused reader has lost what it holds; returns how many messages wait at node 1.
fn await_returned(nodes: &Nodes) -> u32 {
    let mut owed = 0;
    eventually("what it holds goes back", || {
        let status = nodes.client(1).status().expect("a status");
        let counters = status.counters.unwrap_or_default();
        owed = counters.owed;
        counters.returned > 0 && status.holders.is_empty()
    });
    owed
}

/// The clients that hold messages of node 1.
fn holders(nodes: &Nodes) -> Vec<HolderStatus> {
    nodes.client(1).status().expect("a status").holders
}

fn receipts(messages: &[TakenMessage]) -> Vec<u64> {
    messages.iter().map(|message| message.receipt).collect()
}

/// The bytes of the messages of some lines of JSON.
fn content(lines: &[Value]) -> Vec<u8> {
    let bytes = |line: &Value| match &line["base64"] {
        Value::String(base64) => STANDARD.decode(base64).expect("base64"),
        _ => line["text"].as_str().expect("a text").as_bytes().to_vec(),
    };
    lines.iter().flat_map(bytes).collect()
}

#[test]
fn json_that_cannot_be_written_consumes_nothing() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    place.weft_with("put --name t --from 0 --to 1", "kept\n").done();
    place.weft_with("bcast --neb --from 0 --name t", "kept\n").done();
    let get = "get --name t --node 1 --count 1 --json";
    let receive = "bcast --neb --receive --node 1 --name t --json";
    for command in [get, receive] {
        let full = File::create("/dev/full").expect("every Linux has it");
        let said = place.start_changed(command, "", |command| command.stdout(full)).wait();
        said.refused(44, "output");
        let (_, deaf) = pipe().expect("a pipe");
        let said = place.start_changed(command, "", |command| command.stdout(deaf)).wait();
        said.refused(44, "output");
    }
    for (command, text) in [(get, "kept"), (receive, "kept\n")] {
        let said = place.weft(command);
        let [message, summary] = &said.objects()[..] else { panic!("{said:?}") };
        assert_eq!((&message["text"], &summary["ok"]), (&text.into(), &true.into()), "{said:?}");
    }
}

#[test]
fn json_of_a_get_that_is_killed_while_it_waits_has_what_it_consumed() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    let get = place.start("get --name t --node 1 --count 3 --timeout 60 --json", "");
    place.weft_with("put --name t --from 0 --to 1", "one\n").done();
    eventually("it is written", || get.said("out").ends_with('\n'));
    // By now it has asked for more, and so released the first.
    place.weft_with("put --name t --from 0 --to 1", "two\n").done();
    eventually("it is written", || get.said("out").lines().count() == 2);
    let before = content(&objects(&get.said("out")));
    get.signal(Signal::KILL);
    get.wait();
    place.weft_with("put --name t --from 0 --to 1", "three\n").done();
    let said = place.weft("get --name t --node 1 --json");
    let lines = said.objects();
    let (_, after) = lines.split_last().expect("a summary");
    assert_eq!(before, b"onetwo");
    assert!([&b"three"[..], b"twothree"].contains(&&content(after)[..]), "{said:?}");
}

#[test]
fn json_has_every_byte_of_what_was_consumed() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    let wild: Vec<u8> = (0..=255).cycle().take(5_000).collect();
    let file = place.file("wild", &wild);
    let receive = place.start("bcast --neb --receive --node 1 --name t --json", "");
    place.weft(&format!("bcast --neb {file} --from 0 --name t")).done();
    let lines = receive.wait().objects();
    let (summary, lines) = lines.split_last().expect("a summary");
    assert_eq!((content(lines), &summary["bytes"]), (wild, &5_000.into()));
    assert!(lines.iter().all(|line| line["origin"] == 0 && line["seq"].is_u64()));
}

#[test]
fn who_stops_reading_is_named_to_the_operator_and_to_the_sender() {
    let place = Place::new();
    let (_up, nodes) = up_holding(&place, 0);
    // First: as they come, the reader would take them one by one.
    place.weft_with("put --name t --from 0 --to 1", &long_lines(0..20)).done();
    let (paused, _output) = paused_get(&place, 4000);
    eventually("it holds what the pipe has no room for", || {
        holders(&nodes).iter().any(|holder| holder.messages > 1 && holder.held_ms > 0)
    });
    let put = "put --name t --from 0 --to 1 --timeout 0.1 --json";
    let reply = place.weft_with(put, &long_lines(20..80)).refused(21, "mailbox_full");
    let [holder] = &holders(&nodes)[..] else { panic!("one client holds messages") };
    assert_eq!((holder.process, holder.program.as_deref()), (Some(paused.pid()), Some("weft")));
    let who = format!("process {} (weft)", paused.pid());
    assert!(reply.contains(&format!("{who} holds {} messages", holder.messages)), "{reply}");
    assert!(reply.contains(&format!("end {who} on the host of node 1")), "{reply}");
    eventually("it holds them for longer than any reader that reads", || {
        place.weft("status --name t").done().contains(&format!("node 1: {who} holds"))
    });
    let status = place.weft("status --name t --json").object();
    assert_eq!(status["nodes"][1]["holders"][0]["process"], paused.pid());
    paused.signal(Signal::KILL);
    paused.wait();
    eventually("what it held is back", || holders(&nodes).is_empty());
    assert!(place.weft("get --name t --node 1 --count 1").done().ends_with('\n'));
    nodes.assert_unharmed();
}

#[test]
fn what_a_paused_reader_holds_goes_to_others_after_a_while() {
    let place = Place::new();
    let (_up, nodes) = up_holding(&place, 1);
    let (paused, mut output) = paused_get(&place, 4000);
    place.weft_with("put --name t --from 0 --to 1", &long_lines(0..20)).done();
    // It cannot take more, nor release what it has taken.
    let owed = await_returned(&nodes);
    let other = place.weft(&format!("get --name t --node 1 --count {owed}")).done();
    // What the paused one has released was written, and lies in the pipe.
    paused.signal(Signal::KILL);
    paused.wait();
    let mut written = String::new();
    output.read_to_string(&mut written).expect("text");
    for line in long_lines(0..20).lines() {
        assert!(
            other.contains(line) || written.contains(line),
            "lost: {}",
            line.trim_start_matches('0')
        );
    }
    assert_eq!(nodes.client(1).take(1, Duration::ZERO).expect("an answer"), []);
    nodes.assert_unharmed();
}

#[test]
fn a_pause_costs_the_only_reader_nothing_and_repeats_nothing() {
    let place = Place::new();
    let (_up, nodes) = up_holding(&place, 1);
    let (paused, mut output) = paused_get(&place, 20);
    place.weft_with("put --name t --from 0 --to 1", &long_lines(0..20)).done();
    await_returned(&nodes);
    let mut written = String::new();
    output.read_to_string(&mut written).expect("text");
    assert_eq!(paused.wait().err, "");
    assert!(written == long_lines(0..20), "each of them once");
    assert_eq!(nodes.client(1).take(1, Duration::ZERO).expect("an answer"), []);
}

#[test]
fn a_late_release_leaves_what_another_client_holds_by_then() {
    let place = Place::new();
    let (_up, nodes) = up_holding(&place, 1);
    place.weft_with("put --name t --from 0 --to 1", "a\nb\n").done();
    let (mut late, mut next) = (nodes.client(1), nodes.client(1));
    let taken = late.take(2, PATIENCE).expect("two messages");
    let again = next.take(2, PATIENCE).expect("they come again");
    assert_eq!(receipts(&again), receipts(&taken), "under their receipts");
    assert_eq!(late.release(receipts(&taken)).expect("an answer"), 0, "too late");
    assert_eq!(next.release(vec![again[0].receipt]).expect("an answer"), 1);
    drop(next);
    let left = late.take(2, PATIENCE).expect("the other comes again");
    assert_eq!(receipts(&left), [again[1].receipt]);
    assert_eq!(late.release(receipts(&left)).expect("an answer"), 1, "held again");
}

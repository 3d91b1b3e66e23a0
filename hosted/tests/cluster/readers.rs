//! Readers that pause, die or have no room: what was not written is not consumed, and one that
//! stops reading does not keep a mailbox from all others.

use std::fs::File;
use std::io::pipe;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use weft::process::Signal;

use crate::place::{Place, eventually};
use crate::said::objects;

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

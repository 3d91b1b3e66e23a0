//! The timing of the cluster file: single values are in force, shown, and refused where they break
//! a rule.

use weft::node::chronicle::What;

use crate::isolation::await_manager;
use crate::place::{Place, eventually};

/// A verdict is far from what the profile alone gives: 2.2 s of silence, not 1.2 s.
const PATIENT: &str = "name = \"t\"\nnodes = 3\n[dirnet]\nprofile = \"host\"\n\
                       [dirnet.timing]\nwindow_us = 1_500_000\nlosses = 3\n";
const VERDICT_US: u64 = 2_200_000;

#[test]
fn values_that_are_set_are_told_and_kept_to() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", PATIENT));
    await_manager(&nodes);
    let status = place.weft("status --name t --json").object();
    for rank in 0..3 {
        let timing = &status["nodes"][rank]["dirnet"]["timing"];
        assert_eq!(timing["profile"], "host", "{status}");
        let reply = ["send_us", "receive_us", "window_us", "losses", "clone_ms"];
        let reply = reply.map(|value| timing[value].as_u64());
        let kept = [100_000, 700_000, 1_500_000, 3, 20_000].map(Some);
        assert_eq!(reply, kept, "{status}");
    }
    let shown = place.weft("status --name t").done();
    let line = "timing host: suspected after 700 ms of silence, removed after 2200 ms";
    assert!(shown.contains(line), "{shown}");

    place.weft("inject partition 2 --name t").done();
    let mut silent_us = None;
    eventually("node 2 is removed for its silence", || {
        let entries = nodes.client(0).whole_chronicle(Some(2), 0).expect("a chronicle");
        silent_us = entries.iter().find_map(|entry| match &entry.what {
            What::Verdict(note) if note.verdict == "node down" => note.silent_us,
            _ => None,
        });
        silent_us.is_some()
    });
    assert!(silent_us >= Some(VERDICT_US), "{silent_us:?}\n{}", nodes.state());
}

#[test]
fn a_timing_that_breaks_a_rule_starts_nothing() {
    let place = Place::new();
    let file = |line: &str| {
        let text = format!("name = \"t\"\nnodes = 3\n[dirnet.timing]\n{line}\n");
        place.file("t.toml", text)
    };
    let broken = file("window_us = 100_000");
    let said = place.weft(&format!("up {broken} --json")).refused(10, "cluster_file");
    let rule = "t.toml:4: dirnet.timing breaks rule window: receive + window >= send + 2 * alarm + \
                delay, which comes to 800000 us >= 850000 us";
    assert!(said.contains(rule) && said.contains("window_us to 150000 or more"), "{said}");
    let said =
        place.weft(&format!("up {} --json", file("clone_ms = 100"))).refused(10, "cluster_file");
    assert!(said.contains("clone_ms is 100, but must be 250 to 600000: a process"), "{said}");
    place.assert_nothing_left();
}

//! Commands for events: once each, by the manager's node, and repeated by its successor only where
//! the manager has not reported the end.

use std::fs;

use serde_json::Value;

use crate::isolation::await_manager;
use crate::place::{Nodes, Place, eventually};

const TOP: &str = "name = \"t\"\nnodes = 3\ndirnet.min_alive = 1\n[hooks]\n";
/// What a script finds in its environment.
const VARIABLES: &str = "$WEFT_EVENT $WEFT_RANK $WEFT_INCARNATION $WEFT_VIEW $WEFT_TERM";

pub(crate) fn manager(nodes: &Nodes) -> u16 {
    await_manager(nodes);
    let managers = nodes.ranks().filter(|rank| {
        let dirnet = nodes.client(*rank).status().expect("a status").dirnet;
        dirnet.is_some_and(|dirnet| dirnet.role == "manager")
    });
    managers.last().expect("there is one")
}

/// The lines about removals of `rank`.
fn removals(log: &str, rank: u16) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let start = format!("removed {rank} ");
    text.lines().filter(|line| line.starts_with(&start)).map(str::to_owned).collect()
}

#[test]
fn m13_a_hook_runs_once_for_each_event_also_when_the_manager_dies() {
    let place = Place::new();
    let log = place.path_of("log");
    let script = format!("#!/bin/sh\necho \"{VARIABLES} $(cat)\" >> {log}\n");
    let hooks = format!("removed = [{:?}]\n", place.program(&script));
    let (up, nodes) = place.up(&place.file("t.toml", format!("{TOP}{hooks}")));
    let first = manager(&nodes);
    let other = (first + 1) % 3;
    for rank in [other, first] {
        nodes.kill(rank);
        eventually("its hook has run", || !removals(&log, rank).is_empty());
        nodes.await_joined();
        manager(&nodes);
    }
    place.weft("down --name t").done();
    up.wait().done();
    for rank in [other, first] {
        let lines = removals(&log, rank);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let words: Vec<&str> = lines[0].splitn(6, ' ').collect();
        let [_, _, incarnation, view, term, json] = words[..] else { panic!("{lines:?}") };
        let event: Value = serde_json::from_str(json).expect(json);
        assert_eq!((&event["event"], &event["rank"]), (&"removed".into(), &rank.into()));
        assert_eq!((&event["incarnation"], &event["term"]), (&incarnation.into(), &term.into()));
        assert_eq!(event["view"].as_u64(), view.parse().ok());
        assert_eq!(event["verdict"], "node down", "{json}");
        let by_first = term.ends_with(&format!(".{first}"));
        assert_eq!(by_first, rank == other, "the manager that decides it runs it: {json}");
    }
}

#[test]
fn m13_a_successor_repeats_the_hook_that_died_with_the_manager() {
    let place = Place::new();
    let (log, begun) = (place.path_of("log"), place.path_of("begun"));
    let hang = format!("[ -e {begun} ] || {{ touch {begun}; sleep 1000; }}");
    let script = format!("#!/bin/sh\necho \"{VARIABLES}\" >> {log}\n{hang}\n");
    let hooks = format!("removed = [{:?}]\n", place.program(&script));
    let (_up, nodes) = place.up(&place.file("t.toml", format!("{TOP}{hooks}")));
    let first = manager(&nodes);
    let other = (first + 1) % 3;
    nodes.kill(other);
    eventually("its hook hangs", || fs::exists(&begun).expect("a path"));
    nodes.await_joined();
    nodes.kill(first);
    eventually("the hook of the manager itself has run", || !removals(&log, first).is_empty());
    let repeated = removals(&log, other);
    assert_eq!(repeated.len(), 2, "{repeated:?}");
    assert_eq!(repeated[0], repeated[1], "the view and the term are the same");
}

#[test]
fn m13_a_hook_that_hangs_or_fails_is_reported() {
    let place = Place::new();
    let hooks = "timeout_s = 1\nremoved = [\"sleep\", \"1234\"]\n\
                 joined = [\"sh\", \"-c\", \"exit 3\"]\n";
    let (_up, nodes) = place.up(&place.file("t.toml", format!("{TOP}{hooks}")));
    let rank = (manager(&nodes) + 1) % 3;
    place.weft(&format!("inject kill {rank} --name t --wait 60")).done();
    let why = || place.weft(&format!("status --name t --why {rank}")).done();
    eventually("both failures are noted", || {
        let why = why();
        why.contains(": killed: it took longer than 1 s")
            && why.contains(": ended with status 3")
            && why.contains("hook removed for view")
    });
    assert!(!place.processes().iter().any(|process| process.role == "1234"));
    let shown = place.weft("status --name t").done();
    assert!(shown.contains(" failed and 0 found no room; the last of them: "), "{shown}");
}

#[test]
fn m13_a_hook_that_cannot_run_is_refused_before_anything_starts() {
    let place = Place::new();
    let refused = |hooks: &str, status, code| {
        let file = place.file("t.toml", format!("{TOP}{hooks}"));
        let said = place.weft(&format!("up --json {file}")).refused(status, code);
        let node = place.weft(&format!("node --json {file} --rank 0")).refused(status, code);
        assert_eq!(said, node);
        said
    };
    let said = refused("removed = [\"/nowhere/program\"]\n", 22, "input_missing");
    assert!(said.contains("hooks.removed: the program /nowhere/program cannot be run"), "{said}");
    let said = refused("joined = [\"/etc/passwd\"]\n", 22, "input_missing");
    assert!(said.contains("hooks.joined: the program /etc/passwd is not an exec"), "{said}");
    let said = refused("remove = [\"curl\"]\n", 10, "cluster_file");
    assert!(said.contains("write hooks.removed if that is what you mean"), "{said}");
    let said = refused("removed = []\n", 10, "cluster_file");
    assert!(said.contains("hooks.removed is empty"), "{said}");
    place.assert_nothing_left();
}

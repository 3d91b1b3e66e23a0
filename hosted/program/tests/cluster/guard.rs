//! `weft guard`: any program is watched in a running cluster, and ends with what watches it.

use std::fs;

use serde_json::Value;
use weft::node::control::{TaskState, TaskStatus};
use weft::process::{Liveness, Pid, Pidfd, Signal};

use crate::PATIENCE;
use crate::place::{Nodes, Place, Running, eventually};

/// A cluster of two, and a watcher that asks node 0.
fn up(place: &Place) -> (Running, Nodes, Running) {
    let (up, nodes) = place.up(&place.file("t.toml", "name = \"t\"\nnodes = 2\n"));
    nodes.await_joined();
    let watch = place.start("watch --json --name t --only view,task", "");
    eventually("a view is printed", || watch.said("out").contains('\n'));
    (up, nodes, watch)
}

/// Guards a shell script at node 1 as `camera`.
fn guard(place: &Place, flags: &str, script: &str) -> Running {
    let program = place.program(&format!("#!/bin/sh\n{script}\n"));
    let named = "--task camera --name t --node 1";
    place.start(&format!("guard {named} {flags} -- {program} one two"), "of its input\n")
}

/// What has become of `camera`, as the events that were printed so far say.
fn steps(watch: &Running) -> Vec<String> {
    let out = watch.said("out");
    let whole = out.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let events = whole.map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    let of_it = events.filter(|it| (&it["task"], &it["rank"]) == (&"camera".into(), &1.into()));
    of_it.map(|event| event["verdict"].as_str().expect("a text").to_owned()).collect()
}

#[track_caller]
fn await_steps(watch: &Running, expected: &[&str]) {
    eventually("all is printed", || steps(watch).len() >= expected.len());
    assert_eq!(steps(watch), expected);
}

fn look(nodes: &Nodes) -> Option<TaskStatus> {
    nodes.client(1).status().expect("a status").tasks.pop()
}

/// The process of `camera`, once it runs.
fn process(nodes: &Nodes) -> Pidfd {
    let mut pid = None;
    eventually("it runs", || {
        pid = look(nodes).and_then(|task| task.pid);
        pid.is_some()
    });
    Pidfd::open(Pid::from_raw(pid.expect("a process")).expect("a number")).expect("it runs")
}

#[track_caller]
fn assert_ends(process: &Pidfd) {
    assert_eq!(process.wait_dead(PATIENCE).expect("a pidfd"), Liveness::Dead);
}

#[test]
fn m15_a_guarded_program_has_its_streams_and_its_status_and_its_end_is_an_event() {
    let place = Place::new();
    let (_up, nodes, watch) = up(&place);
    let done = guard(&place, "", "echo $1 $2 $WEFT_TASK $WEFT_NODE; cat; echo bad >&2").wait();
    assert_eq!(done.err, "bad\n");
    assert_eq!(done.done(), "one two camera 1\nof its input\n");
    await_steps(&watch, &["started", "finished"]);
    assert_eq!(look(&nodes), None, "the name is free");
    let failed = guard(&place, "--restart-max 0 --json", "exit 7").wait();
    assert_eq!(failed.status, Some(7), "{failed:?}");
    let object: Value = serde_json::from_str(&failed.out).expect("an object");
    assert_eq!((&object["state"], &object["status"]), (&"isolated".into(), &7.into()));
    await_steps(&watch, &["started", "finished", "started", "failed", "isolated"]);
    let why = place.weft("status --name t --why 1").done();
    assert!(why.contains("task camera failed: ended with status 7"), "{why}");
    nodes.assert_unharmed();
}

#[test]
fn m15_a_guarded_program_that_fails_is_started_again() {
    let place = Place::new();
    let (_up, _nodes, watch) = up(&place);
    let (weft, flag) = (env!("CARGO_BIN_EXE_weft"), place.path_of("flag"));
    let script =
        format!("{weft} report --beat || exit 9; [ -e {flag} ] || {{ touch {flag}; exit 3; }}");
    let object = guard(&place, "--beat-ms 2000 --json", &script).wait().object();
    assert_eq!((&object["restarts"], &object["status"]), (&1.into(), &0.into()), "{object}");
    await_steps(&watch, &["started", "failed", "restarted", "finished"]);
    assert!(watch.said("out").contains("ended with status 3"), "{}", watch.said("out"));
}

#[test]
fn m15_a_guarded_program_that_sends_no_beat_is_killed_and_started_again() {
    let place = Place::new();
    let (_up, _nodes, watch) = up(&place);
    let flag = place.path_of("flag");
    let script = format!("[ -e {flag} ] && exit 0; touch {flag}; sleep 1000 & sleep 1000");
    guard(&place, "--beat-ms 300", &script).wait().done();
    await_steps(&watch, &["started", "hung", "restarted", "finished"]);
}

#[test]
fn m15_a_guard_that_is_killed_is_an_event_and_takes_its_program_along() {
    let place = Place::new();
    let (up, nodes, watch) = up(&place);
    let guard = guard(&place, "", "setsid sleep 1000 & sleep 1000 & wait");
    let program = process(&nodes);
    guard.signal(Signal::KILL);
    assert_ends(&program);
    await_steps(&watch, &["started", "lost"]);
    eventually("it is forgotten", || look(&nodes).is_none());
    assert_eq!(guard.wait().status, None);
    drop(watch);
    up.signal(Signal::TERM);
    up.wait().done();
    place.assert_nothing_left();
}

#[test]
fn m15_when_the_node_is_gone_its_guest_is_asked_to_end_and_the_guard_says_why() {
    let place = Place::new();
    let (_up, nodes, _watch) = up(&place);
    let asked = place.path_of("asked");
    let guarded =
        guard(&place, "--json", &format!("trap 'echo > {asked}; exit' TERM; sleep 1000 & wait"));
    let program = process(&nodes);
    nodes.kill(1);
    let said = guarded.wait().refused(32, "node_unreachable");
    assert!(said.contains("camera was ended"), "{said}");
    assert!(program.is_dead().expect("a pidfd"));
    assert!(fs::exists(asked).expect("a path"), "it was killed without SIGTERM");
}

#[test]
fn m15_signals_are_passed_on_and_the_program_is_not_started_again() {
    let place = Place::new();
    let (_up, nodes, watch) = up(&place);
    let ready = place.path_of("ready");
    let script = format!("trap 'exit 5' TERM; echo > {ready}; sleep 1000 & wait");
    let guarded = guard(&place, "", &script);
    eventually("it runs", || fs::exists(&ready).expect("a path"));
    guarded.signal(Signal::TERM);
    assert_eq!(guarded.wait().status, Some(5));
    await_steps(&watch, &["started", "stopped"]);
    assert_eq!(look(&nodes), None);
}

#[test]
fn m15_a_guard_that_is_asked_to_end_between_two_starts_ends() {
    let place = Place::new();
    let (_up, nodes, watch) = up(&place);
    // The second failure is followed by a pause of a second.
    let guarded = guard(&place, "--restart-max 3 --restart-within-s 86400", "exit 4");
    eventually("it waits", || {
        look(&nodes).is_some_and(|it| it.state == TaskState::Waiting && it.restarts == 2)
    });
    guarded.signal(Signal::TERM);
    assert_eq!(guarded.wait().status, Some(4));
    await_steps(&watch, &["started", "failed", "restarted", "failed", "stopped"]);
}

#[test]
fn m15_a_guarded_program_ends_and_starts_with_the_isolation_of_its_node() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", "name = \"t\"\nnodes = 3\n"));
    nodes.await_joined();
    let guarded = guard(&place, "", "exec sleep 1000");
    let first = process(&nodes);
    place.weft("isolate 1 --name t").done();
    assert_ends(&first);
    eventually("it is held", || look(&nodes).is_some_and(|it| it.pid.is_none()));
    let refused = place.weft("guard --task other --name t --node 1 --json -- true");
    refused.refused(18, "isolated");
    place.weft("release 1 --name t").done();
    assert!(!process(&nodes).is_dead().expect("a pidfd"));
    drop(guarded);
}

#[test]
fn m15_a_guarded_program_is_restarted_reported_and_stopped_by_order() {
    let place = Place::new();
    let (_up, nodes, watch) = up(&place);
    let guarded = guard(&place, "", "exec sleep 1000");
    let named = "camera --node 1 --name t";
    let first = process(&nodes);
    place.weft(&format!("task restart {named}")).done();
    assert_ends(&first);
    await_steps(&watch, &["started", "stopped", "restarted"]);
    let second = process(&nodes);
    let report = place.weft("report --task camera --node 1 --name t --error 7 --json").object();
    assert_eq!(report["outcome"], "restarted", "{report}");
    assert_ends(&second);
    eventually("it runs", || look(&nodes).is_some_and(|it| it.state == TaskState::Running));
    let shown = place.weft("status --name t").done();
    assert!(shown.contains("camera"), "{shown}");
    place.weft(&format!("task stop {named}")).done();
    assert_eq!(guarded.wait().status, Some(128 + 9));
}

#[test]
fn m15_what_cannot_be_guarded_is_refused_before_it_starts() {
    let place = Place::new();
    let (_up, nodes, watch) = up(&place);
    let refused = |arguments: &str| place.weft(&format!("guard --json {arguments}"));
    let text = place.file("text", "not executable");
    for program in ["/no/such/program", "no-such-program", "/bin", &text] {
        refused(&format!("--task camera --name t -- {program}")).refused(22, "input_missing");
    }
    refused("--task camera --name u --patience 0 -- true").refused(13, "cluster_not_running");
    refused("--task camera --name t --node 2 -- true").refused(15, "node_out_of_range");
    for usage in [
        "--task camera --name t",
        "--name t -- true",
        "--task Camera! --name t -- true",
        "--task camera --name t --beat-ms 1 -- true",
        "--task camera --name t --beat-ms 9000 -- true",
        "--task camera --name t --restart-max 10001 -- true",
        "--task camera --name t --restart-within-s 0 -- true",
    ] {
        refused(usage).refused(2, "usage");
    }
    let first = guard(&place, "", "exec sleep 1000");
    drop(process(&nodes));
    let said = refused("--task camera --name t --node 1 -- true").refused(12, "name_in_use");
    assert!(said.contains("task camera") && said.contains("--node RANK"), "{said}");
    refused("--task camera --name t --node 0 -- true").done();
    let script = place.program("#!/no/such/interpreter\n");
    let refused = refused(&format!("--task other --name t --node 1 -- {script}"));
    refused.refused(22, "input_missing");
    assert_eq!(steps(&watch), ["started"]);
    drop(first);
}

#[test]
fn m15_a_node_has_a_bounded_number_of_guests() {
    let place = Place::new();
    let (_up, nodes, watch) = up(&place);
    drop(watch);
    let start = |at: u32| place.start(&format!("guard --task g{at} --name t -- sleep 1000"), "");
    let guests: Vec<Running> = (0..32).map(start).collect();
    eventually("all run", || nodes.client(0).status().expect("a status").tasks.len() == 32);
    let full = place.weft("guard --task more --name t --json -- true").refused(26, "busy");
    assert!(full.contains("32"), "{full}");
    place.weft("guard --task more --name t --node 1 -- true").done();
    drop(guests);
}

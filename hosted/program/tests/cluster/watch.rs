//! Those who only watch: every join and removal once, also while the nodes that they ask die.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use weft::client::{ClientError, Watcher, find_in};
use weft::cluster::Kind;
use weft::runtime_dir::RuntimeDir;
use weft::shm::Mask;

use crate::PATIENCE;
use crate::isolation::await_manager;
use crate::place::{Place, Running, eventually};
use crate::run::example;

/// The events that a watcher has printed so far, but for a line that is being written.
fn events(watch: &Running) -> Vec<Value> {
    let out = watch.said("out");
    let whole = out.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).expect("each line is an object")).collect()
}

fn of<'a>(events: &'a [Value], event: &str, rank: u16) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |it| it["event"] == event && it["rank"] == rank)
}

/// Asserts that views rise, that each contains what joined and was removed before it, and that
/// nothing joined or was removed twice.
#[track_caller]
fn assert_in_order(events: &[Value]) {
    let mut members: Option<BTreeMap<u64, String>> = None;
    let mut last = 0;
    for event in events {
        let rank = event["rank"].as_u64();
        let incarnation = event["incarnation"].as_str().unwrap_or_default();
        match (event["event"].as_str().expect("a kind"), &mut members, rank) {
            ("joined", Some(members), Some(rank)) => {
                assert_eq!(members.insert(rank, incarnation.to_owned()), None, "{event}");
            }
            ("removed", Some(members), Some(rank)) => {
                assert_eq!(members.remove(&rank).as_deref(), Some(incarnation), "{event}");
                assert_eq!(event["fenced"], true, "{event}");
            }
            ("view", known, None) => {
                let number = event["view"].as_u64().expect("a number");
                assert!(last < number, "{event}");
                last = number;
                let shown = event["members"].as_array().expect("members").iter().map(|it| {
                    let rank = it["rank"].as_u64().expect("a rank");
                    (rank, format!("{}/{}", it["boot"], it["generation"]))
                });
                let shown: BTreeMap<_, _> = shown.collect();
                assert_eq!(*known.get_or_insert_with(|| shown.clone()), shown, "{event}");
            }
            _ => {}
        }
    }
}

#[test]
fn m12_nothing_is_lost_when_the_node_that_is_watched_dies() {
    let place = Place::new();
    let (_up, nodes) = place.up("-n 3");
    await_manager(&nodes);
    let watch = place.start("watch --name t --json", "");
    eventually("a view is printed", || !events(&watch).is_empty());
    for rank in [0, 1, 2] {
        nodes.kill(rank);
        let joins = || of(&events(&watch), "joined", rank).count();
        eventually("the watcher sees it return", || joins() > 0);
        nodes.await_joined();
    }
    place.weft("inject kill 1 --name t --wait 60").done();
    eventually("its next component joins", || of(&events(&watch), "joined", 1).count() > 1);
    let events = events(&watch);
    assert_in_order(&events);
    for rank in [0, 1, 2] {
        let removed = of(&events, "removed", rank).next().expect("it was killed");
        assert_eq!(removed["verdict"], "node down", "{removed}");
        assert!(removed["evidence"].as_array().is_some_and(|it| !it.is_empty()), "{removed}");
    }
    let removed = of(&events, "removed", 1).last().expect("killed");
    assert_eq!(removed["verdict"], "component down");
    let failed: Vec<_> = events.iter().filter(|it| it["event"] == "failed").collect();
    for (at, event) in failed.iter().enumerate() {
        let again = |it: &&Value| it["incarnation"] == event["incarnation"];
        assert!(!failed[..at].iter().any(|it| it["rank"] == event["rank"] && again(it)), "{event}");
    }
    let decided = failed.iter().find(|it| it["incarnation"] == removed["incarnation"]);
    let decided = decided.expect("its manager has decided so");
    assert_eq!(
        (&decided["verdict"], &decided["evidence"]),
        (&removed["verdict"], &removed["evidence"])
    );
    assert!(decided["at"].as_u64() < removed["at"].as_u64(), "{decided} {removed}");
}

/// All supervisors die at once and are started again, and then the launcher dies with them.
#[test]
fn m12_a_cluster_whose_nodes_all_die_is_watched_on_and_one_that_is_killed_is_an_error() {
    let place = Place::new();
    let (up, nodes) = place.up("-n 2");
    await_manager(&nodes);
    let watch = place.start("watch --json --name t --only view", "");
    eventually("the first view", || !events(&watch).is_empty());
    place.kill(&["node"]);
    let second = |event: &Value| event["members"][0]["boot"].as_u64() > Some(1);
    eventually("a view of later boots", || events(&watch).iter().any(second));
    place.kill(&["up", "node", "component"]);
    assert_eq!(up.wait().status, None);
    watch.wait().refused(14, "cluster_dead");
}

/// Its views have the numbers of the first one's.
#[test]
fn m12_another_cluster_of_the_name_is_not_taken_for_the_one_that_is_watched() {
    let place = Place::new();
    let (up, nodes) = place.up("-n 2");
    await_manager(&nodes);
    let watch = place.start("watch --json --name t", "");
    eventually("the first view", || !events(&watch).is_empty());
    place.kill(&["up", "node", "component"]);
    assert_eq!(up.wait().status, None);
    let _again = place.up("-n 2");
    let said = watch.wait();
    assert!(said.refused(13, "cluster_not_running").contains("another one of its name"));
}

/// The watcher has heard nothing fail: all nodes of the second one answer when it first asks.
#[test]
fn m12_a_cluster_that_answers_in_place_of_the_one_that_is_watched_is_not_taken_for_it() {
    let place = Place::new();
    let (up, nodes) = place.up("-n 2");
    await_manager(&nodes);
    let mut watcher = Watcher::new(nodes.dir.clone(), nodes.cluster.clone());
    place.kill(&["up", "node", "component"]);
    assert_eq!(up.wait().status, None);
    let (_again, nodes) = place.up("-n 2");
    await_manager(&nodes);
    let answer = watcher.next(PATIENCE);
    assert!(matches!(answer, Err(ClientError::Replaced { .. })), "{answer:?}");
}

#[test]
fn m12_a_program_is_run_for_each_event_that_is_wanted() {
    let place = Place::new();
    let (up, nodes) = place.up("-n 2");
    nodes.await_joined();
    let log = place.path_of("log");
    let program = format!("#!/bin/sh\necho \"$WEFT_EVENT $WEFT_RANK $(cat)\" >> {log}\n");
    let program = place.program(&program);
    let only = "watch --json --name t --only view,joined";
    let watch = place.start(&format!("{only} --exec {program}"), "");
    eventually("a view is printed", || !events(&watch).is_empty());
    place.weft("inject kill 1 --name t --wait 60").done();
    let text = || fs::read_to_string(&log).unwrap_or_default();
    eventually("the program has run", || text().contains("joined 1"));
    place.weft("down --name t").done();
    up.wait().done();
    watch.wait().done();
    let text = text();
    let first = text.lines().find(|line| line.starts_with("joined")).expect("it is there");
    let json = first.strip_prefix("joined 1 ").expect(first);
    let event: Value = serde_json::from_str(json).expect(first);
    assert_eq!((&event["event"], &event["rank"]), (&Value::from("joined"), &Value::from(1)));
}

#[test]
fn m12_what_cannot_be_watched_or_run_is_refused() {
    let place = Place::new();
    place.weft("watch --json --name t --patience 0").refused(13, "cluster_not_running");
    place.weft("watch --json --name t --only deaths").refused(2, "usage");
    let (_up, _nodes) = place.up("-n 2");
    for program in ["/nowhere/program", "no-such-program", "/etc/passwd", "/bin"] {
        let said = place.weft(&format!("watch --json --name t --exec {program}"));
        let said = said.refused(2, "usage");
        assert!(said.contains(program) && said.contains("executable file"), "{said}");
    }
    place.weft("watch --json --name t --exec sh --exec-timeout -1").refused(2, "usage");
    place.weft("watch --json --name t --exec-timeout 1").refused(2, "usage");
    place.weft("watch --name t --seconds 0").done();
}

#[test]
fn m12_a_program_that_hangs_is_killed_after_its_limit() {
    let place = Place::new();
    let (_up, nodes) = place.up("-n 2");
    nodes.await_joined();
    let program = place.program("#!/bin/sh\nsleep 4321 & sleep 4321\n");
    let watch = "watch --json --name t --only view --exec-timeout 0.5";
    let watch = place.start(&format!("{watch} --exec {program}"), "");
    let limit = "killed: it took longer than 0.5 s";
    eventually("it is killed", || watch.said("err").contains(limit));
    place.weft("down --name t").done();
    let said = watch.wait().refused(1, "internal");
    assert!(said.contains(" runs failed, and 0 events found no room"), "{said}");
    assert!(!place.processes().iter().any(|process| process.role == "4321"));
}

/// While its program runs for the first event, 64 wait.
#[test]
fn m12_a_program_that_is_slow_is_reported_with_the_count_of_what_it_missed() {
    let place = Place::new();
    let (_up, nodes) = place.up("-n 2");
    nodes.await_joined();
    let other = (crate::hooks::manager(&nodes) + 1) % 2;
    let (begun, end) = (place.path_of("begun"), place.path_of("end"));
    let hang = format!("[ -e {begun} ] || {{ mkfifo {end}; touch {begun}; read x < {end}; }}");
    let program = place.program(&format!("#!/bin/sh\n{hang}\ntrue\n"));
    let watch = "watch --json --name t --exec-timeout 600";
    let watch = place.start(&format!("{watch} --exec {program}"), "");
    eventually("it runs for the first event", || fs::exists(&begun).expect("a path"));
    let is_full = || watch.said("err").contains("not run: 64 events wait already");
    while !is_full() {
        let joins = || of(&events(&watch), "joined", other).count();
        let before = joins();
        nodes.client(other).kill().expect("it runs");
        eventually("its next component joins", || before < joins());
        nodes.await_joined();
    }
    place.weft("down --name t").done();
    fs::write(&end, "\n").expect("it is read");
    let said = watch.wait();
    let (printed, cause) = (said.objects().len(), said.refused(1, "internal"));
    let missed = format!("0 runs failed, and {} events found no room", printed - 65);
    assert!(cause.contains(&missed), "{printed} events: {cause}");
}

#[test]
fn m5_a_release_by_an_operator_is_an_event() {
    let place = Place::new();
    let (_up, nodes) = place.up("-n 3");
    await_manager(&nodes);
    let watch = place.start("watch --json --name t --only view,isolated,released", "");
    eventually("a view is printed", || !events(&watch).is_empty());
    for order in ["isolate", "release"] {
        place.weft(&format!("{order} 2 --name t --wait 60")).done();
    }
    nodes.await_joined();
    place.weft("down --name t").done();
    let events = watch.wait().objects();
    let of_node: Vec<_> = events.iter().filter(|it| it["rank"] == 2).collect();
    let kinds: Vec<_> = of_node.iter().map(|it| it["event"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["isolated", "released"], "{of_node:?}");
}

/// An example that runs beside the cluster, and has printed the first view.
fn beside(place: &Place, name: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = Command::new(example(name));
    command.arg("t").env("WEFT_RUNTIME_DIR", place.runtime_dir());
    let mut child = command.stdout(Stdio::piped()).spawn().expect(name);
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let first = lines.next().expect(name).expect("text");
    assert!(first.contains("members [0, 1, 2]"), "{name}: {first}");
    (child, lines)
}

/// At each node, whose processes see no verdict before its watchers do.
#[test]
fn m14_a_component_that_has_ended_is_no_member_on_the_page_when_its_end_is_an_event() {
    let place = Place::new();
    let (_up, nodes) = place.up("-n 3");
    await_manager(&nodes);
    // The watcher asks node 0 as long as it runs.
    let mask = nodes.client(0).mask().expect("a node has a page");
    let runtime_dir = RuntimeDir::at(place.runtime_dir()).expect("the runtime directory");
    let name = "t".parse().expect("a name");
    let (dir, cluster) = find_in(&runtime_dir, &name, PATIENCE).expect("it runs");
    let mut watcher = Watcher::new(dir, cluster);
    for generation in 0..3 {
        let of_2 = || mask.load().and_then(|it| mask.incarnation(it.number, 2)).map(|it| it.1);
        eventually("it is a member", || of_2() == Some(generation));
        let before = mask.load().expect("a view");
        nodes.client(2).kill().expect("it runs");
        let failed = loop {
            let event = watcher.next(PATIENCE).expect("a node answers").expect("an event in time");
            if (event.event, event.rank) == (Kind::Failed, Some(2)) {
                break event;
            }
        };
        assert_ne!(mask.incarnation(before.number, 2).map(|it| it.1), Some(generation));
        assert_eq!(failed.incarnation, Some(format!("1/{generation}")));
    }
}

#[test]
fn m14_those_who_are_no_members_see_the_membership_change() {
    let place = Place::new();
    let (_up, nodes) = place.up("-n 3");
    await_manager(&nodes);
    let mask = nodes.client(1).mask().expect("a node has a page");
    let is_whole = |mask: &Mask| mask.load().is_some_and(|it| it.members == 0b111);
    for rank in nodes.ranks() {
        let mask = nodes.client(rank).mask().expect("a node has a page");
        eventually("all are members", || is_whole(&mask));
    }
    let first = mask.load().expect("a view that is being written hides none");
    let generation = |number| mask.incarnation(number, 2).map(|it| it.1);
    assert_eq!(generation(first.number), Some(0), "{first:?}");
    let examples = ["watch", "mask"].map(|name| beside(&place, name));
    place.weft("inject kill 2 --name t --wait 60").done();
    eventually("its next component is a member", || generation(mask.number()) > Some(0));
    assert!(is_whole(&mask) && first.number < mask.number());
    for (mut child, mut lines) in examples {
        let is_whole = |line: String| line.contains("members [0, 1, 2]");
        assert!(lines.any(|line| line.is_ok_and(is_whole)), "it ends before the next view");
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
    }
}

//! A cluster from start to end, and every way to end it.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use weft::process::{Liveness, Pid, Pidfd, Signal};

use crate::PATIENCE;
use crate::place::{Nodes, Place, Running, eventually};

/// Two nodes of cluster `t` with small mailboxes.
const SMALL: &str = "name = \"t\"\nnodes = 2\nmailbox.slots = 16\n";

fn incarnations(status: &Value) -> Vec<u64> {
    let nodes = status["nodes"].as_array().expect("an array");
    nodes.iter().map(|node| node["incarnation"].as_u64().expect("a number")).collect()
}

/// Starts every node of the small cluster by hand.
fn start_by_hand(place: &Place) -> (String, Vec<Running>, Nodes) {
    let file = place.file("cluster.toml", SMALL);
    let node = |rank| place.start(&format!("node {file} --rank {rank}"), "");
    let running = vec![node(0), node(1)];
    let nodes = place.find();
    nodes.await_joined();
    (file, running, nodes)
}

#[test]
fn a_cluster_works_loses_a_component_and_ends_without_a_trace() {
    let place = Place::new();
    let up = place.start("up --nodes 4 --name t", "");
    place.weft_with("put --name t --patience 60 --from 0 --to 2", "a\nb\n").done();
    assert_eq!(place.weft("get --name t --node 2 --count 2").done(), "a\nb\n");

    place.find().await_joined();
    let before = place.weft("status --name t --json").object();
    assert_eq!((before["name"].as_str(), incarnations(&before)), (Some("t"), vec![1; 4]));
    place.weft("inject kill 1 --name t --wait 60").done();
    let after = place.weft("status --name t --json").object();
    assert_eq!(incarnations(&after), [1, 2, 1, 1]);

    place.weft("down --name t").done();
    up.wait().done();
    place.assert_nothing_left();
}

#[test]
fn a_signal_ends_a_cluster_in_order() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let place = Place::new();
        let (up, _) = place.up("--nodes 2");
        up.signal(signal);
        up.wait().done();
        place.assert_nothing_left();
    }
}

#[test]
fn a_signal_ends_a_cluster_that_is_being_started() {
    let place = Place::new();
    let up = place.start("up --nodes 4 --name t", "");
    let lock = place.runtime_dir().join("t/lock");
    eventually("the name is taken", || lock.exists());
    up.signal(Signal::TERM);
    up.wait().done();
    place.assert_nothing_left();
}

#[test]
fn a_cluster_is_told_to_end_before_it_runs() {
    let place = Place::new();
    let up = place.start("up --nodes 4 --name t", "");
    place.weft("down --name t --patience 60").done();
    up.wait().done();
    place.assert_nothing_left();
}

#[test]
fn a_cluster_that_was_killed_is_dead_and_its_name_free() {
    let place = Place::new();
    let (up, _) = place.up("--nodes 3");
    place.kill(&["up", "node", "component"]);
    assert_eq!(up.wait().status, None);
    place.await_no_process();
    place.weft("status --name t --json").refused(14, "cluster_dead");

    let (up, nodes) = place.up("--nodes 2");
    let status = nodes.client(0).status().expect("a status");
    assert_eq!(status.incarnation, 1, "nothing of the cluster before is remembered");
    up.signal(Signal::TERM);
    up.wait().done();
    place.assert_nothing_left();
}

#[test]
fn a_dead_cluster_is_cleared_away_by_down() {
    let place = Place::new();
    let (up, _) = place.up("--nodes 2");
    place.kill(&["up", "node", "component"]);
    drop(up);
    place.await_no_process();
    place.weft("down --name t").done();
    place.assert_nothing_left();
}

#[test]
fn a_file_that_is_not_of_the_cluster_outlives_it_and_is_named() {
    let place = Place::new();
    let (up, _) = place.up("--nodes 2");
    fs::write(place.runtime_dir().join("t/thesis"), "").expect("a directory of this user");
    assert_eq!(place.weft("down --name t --json").object()["left"], json!(["thesis"]));
    up.wait().done();
}

#[test]
fn a_cluster_is_ended_while_nodes_are_dead_and_none_of_them_comes_back() {
    let place = Place::new();
    let (up, nodes) = place.up("--nodes 4");
    nodes.kill(1);
    // It cannot begin another incarnation.
    place.damage("t/node-2.term");
    nodes.kill(2);
    place.weft("down --name t").done();
    up.wait().done();
    place.assert_nothing_left();
}

#[test]
fn a_supervisor_that_hangs_hides_nobody_else() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    let status = nodes.client(1).status().expect("a status");
    let supervisor = Pid::from_raw(status.supervisor_pid).expect("a number");
    let supervisor = Pidfd::open(supervisor).expect("it runs");
    supervisor.signal(Signal::STOP).expect("a process of this user");
    let shown = place.weft("status --name t --json").object();
    let states: Vec<_> = (0..3).map(|rank| shown["nodes"][rank]["state"].clone()).collect();
    assert_eq!(states, ["running", "hangs", "running"]);
    supervisor.signal(Signal::CONT).expect("a process of this user");
    nodes.await_joined();
}

/// Found by a newcomer: the status waited for the component, and the kill for the status.
#[test]
fn a_component_that_hangs_can_be_looked_at_and_is_replaced() {
    let place = Place::new();
    let (up, nodes) = place.up("--nodes 2");
    let status = nodes.client(1).status().expect("a status");
    let component = Pid::from_raw(status.component_pid.expect("it runs")).expect("a number");
    let component = Pidfd::open(component).expect("it runs");
    component.signal(Signal::STOP).expect("a process of this user");
    let hung = nodes.client(1).status().expect("a status without counters");
    assert_eq!((hung.incarnation, hung.counters), (1, None));
    // Its I'm-Alive Task finds it, and a clone takes its place.
    nodes.client(1).await_joined(2, 1, PATIENCE).expect("it comes back");
    assert_eq!(component.wait_dead(PATIENCE).expect("a pidfd"), Liveness::Dead);
    up.signal(Signal::TERM);
    up.wait().done();
    place.assert_nothing_left();
}

#[test]
fn nodes_end_with_the_program_that_launched_them() {
    let place = Place::new();
    let (up, _) = place.up("--nodes 3");
    place.kill(&["up"]);
    drop(up);
    place.await_no_process();
    let (up, _) = place.up("--nodes 3");
    place.weft("down --name t").done();
    up.wait().done();
    place.assert_nothing_left();
}

#[test]
fn the_program_ends_when_its_last_node_has() {
    let place = Place::new();
    let (up, _) = place.up("--nodes 2");
    for process in place.processes().iter().filter(|process| process.role == "node") {
        process.pidfd.signal(Signal::TERM).expect("a process of this user");
    }
    up.wait().done();
    place.await_no_process();
    place.assert_nothing_left();
}

#[test]
fn a_cluster_with_a_dead_node_can_be_looked_at_and_ended() {
    let place = Place::new();
    let (_, running, nodes) = start_by_hand(&place);
    let [first, second] = <[Running; 2]>::try_from(running).ok().expect("two nodes");
    first.signal(Signal::KILL);
    assert_eq!(first.wait().status, None);
    let status = place.weft("status --name t --json").object();
    assert_eq!(status["nodes"][0]["state"], "unreachable");
    nodes.client(1).await_running(1, PATIENCE).expect("the survivor runs");
    place.weft("down --name t").done();
    second.wait().done();
    place.assert_nothing_left();
}

#[test]
fn nodes_started_by_hand_are_a_cluster() {
    let place = Place::new();
    let (_, running, _) = start_by_hand(&place);
    place.weft_with("put --name t --from 1 --to 0", "by hand").done();
    assert_eq!(place.weft("get --name t --node 0 --count 1").done(), "by hand\n");
    place.weft("down --name t").done();
    for node in running {
        let said = node.wait().done();
        assert!(said.contains("`weft status --name t`"), "{said}");
    }
    place.assert_nothing_left();
}

#[test]
fn a_node_that_was_killed_comes_back_in_a_later_incarnation() {
    let place = Place::new();
    let (file, mut running, nodes) = start_by_hand(&place);
    let killed = running.remove(1);
    killed.signal(Signal::KILL);
    killed.wait();
    let _again = place.start(&format!("node {file} --rank 1"), "");
    nodes.client(0).await_joined(0, 1, PATIENCE).expect("it is met again");
    let status = nodes.client(1).await_running(2, PATIENCE).expect("it runs");
    assert_eq!(status.peers[0].incarnation, Some(1));
    place.weft_with("put --name t --from 0 --to 1", "welcome back").done();
    assert_eq!(place.weft("get --name t --node 1 --count 1").done(), "welcome back\n");
}

#[test]
fn the_ends_of_put_and_get_are_ordinary() {
    let place = Place::new();
    let (_up, _) = place.up("--nodes 2");
    assert_eq!(place.weft("put --name t --from 0 --to 1 --json").object()["put"], 0);
    let none = place.weft("get --name t --node 1 --count 0 --json").object();
    assert_eq!((&none["ok"], &none["count"]), (&Value::Bool(true), &Value::from(0)));
    assert_eq!(place.weft("get --name t --node 1").done(), "");
    place.weft_with("put --name t --from 0 --to 0 --timeout 0", "\n\nto myself").done();
    assert_eq!(place.weft("get --name t --node 0 --count 3").done(), "\n\nto myself\n");
}

#[test]
fn as_many_messages_as_fit_are_taken_at_once() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 2");
    let lines: String = (0..1000).map(|number| format!("{number:060}\n")).collect();
    place.weft_with("put --name t --from 0 --to 1", &lines).done();
    assert_eq!(place.weft("get --name t --node 1 --count 1000").done(), lines);
    let status = nodes.client(1).status().expect("a status");
    assert_eq!(status.restarts, 0);
}

#[test]
fn a_killed_cluster_leaves_files_that_nobody_needs() {
    let place = Place::new();
    let (up, _) = place.up("--nodes 2");
    place.kill(&["up", "node", "component"]);
    drop(up);
    place.await_no_process();
    let dead = place.runtime_dir().join("t");
    assert!(fs::read_dir(&dead).expect("it was left").count() > 0);
    let (up, _) = place.up("--nodes 2");
    up.signal(Signal::INT);
    up.wait().done();
    assert!(!dead.exists());
}

/// Starts a benchmark, and ends it by `signal` while one of its processes sleeps.
#[track_caller]
fn assert_ended_benchmark_leaves_nothing(
    place: &Place,
    arguments: &str,
    path: &str,
    signal: Signal,
) {
    let bench = place.start_changed(arguments, "", |command| command.env("PATH", path));
    eventually("a process sleeps", || {
        bench.assert_goes_on();
        place.processes().iter().any(|process| process.role == "1000000")
    });
    bench.signal(signal);
    assert_eq!(bench.wait().status, None, "by the signal");
    place.await_no_process();
    place.assert_nothing_left();
}

/// By signals that it does not handle, one of which no process can. A task does not die with its
/// node.
#[test]
fn a_benchmark_that_is_ended_leaves_no_cluster_and_no_task() {
    let path = env::var("PATH").expect("it is set");
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let recovery = "bench recovery --rounds 1 --restarts 1000";
        assert_ended_benchmark_leaves_nothing(&Place::new(), recovery, &path, signal);
    }
}

#[test]
fn a_benchmark_that_is_ended_leaves_no_program_of_its_rival() {
    let place = Place::new();
    // An MPI whose compiler writes its program, which never ends.
    let script = "#!/bin/sh\ncase $0 in *mpicc) : >\"$3\" ;; *) exec sleep 1000000 ;; esac\n";
    let program = place.program(script);
    for tool in ["mpicc", "mpirun"] {
        symlink(&program, place.path_of(tool)).expect("a new path");
    }
    let path = format!("{}:{}", place.path_of(""), env::var("PATH").expect("it is set"));
    let group = "bench group --members 2 --bytes 8 --rounds 1";
    assert_ended_benchmark_leaves_nothing(&place, group, &path, Signal::KILL);
}

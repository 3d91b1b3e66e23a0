//! An isolated node is fenced, runs no component, and comes back as a later incarnation.

use std::fs;

use serde_json::Value;
use weft::node::control::{DirNetStatus, NodeOrder, NodeState, NodeStatus, TaskState};
use weft::process::{Liveness, Signal};
use weft::runtime_dir::RuntimeDir;

use crate::PATIENCE;
use crate::hung::stop_supervisor;
use crate::place::{Nodes, Place, eventually};

const TASK: &str = "name = \"t\"\nnodes = 3\n[[task]]\nname = \"job\"\nnodes = [2]\n\
                    program = \"sleep\"\nargs = [\"1000\"]\n";

fn look(nodes: &Nodes, rank: u16) -> NodeStatus {
    nodes.client(rank).status().expect("a status")
}

/// Waits until there is a manager that all nodes know as such.
pub(crate) fn await_manager(nodes: &Nodes) {
    eventually("there is a manager", || {
        let roles = nodes.ranks().map(|rank| look(nodes, rank).dirnet.map(|dirnet| dirnet.role));
        let roles: Option<Vec<String>> = roles.collect();
        roles.is_some_and(|roles| {
            roles.iter().filter(|role| *role == "manager").count() == 1
                && roles.iter().all(|role| role != "joining")
        })
    });
}

#[test]
fn an_isolated_node_is_shut_out_and_quiet_until_it_is_released() {
    let place = Place::new();
    let (_up, nodes) = place.up(&place.file("t.toml", TASK));
    await_manager(&nodes);
    let before = look(&nodes, 2);
    let reply = place.weft("isolate 2 --name t --wait 60 --json").object();
    assert_eq!((&reply["node"], &reply["isolated"]), (&2.into(), &true.into()));
    eventually("it is quiet", || {
        let status = look(&nodes, 2);
        status.state == NodeState::Isolated
            && status.component_pid.is_none()
            && status.tasks[0].state == TaskState::Killed
    });
    assert_eq!(look(&nodes, 2).supervisor_pid, before.supervisor_pid);
    place.weft_with("put --name t --from 2 --to 0 --json", "a\n").refused(18, "isolated");
    place.weft("inject kill 2 --name t --json").refused(18, "isolated");
    place.weft("inject equivocate 2 --name t --json").refused(18, "isolated");
    let alone = place.weft("inject equivocate 1 --name t --json");
    let alone = alone.refused(32, "node_unreachable");
    assert!(alone.contains("takes two to send them different messages"), "{alone}");
    let put = place.weft_with("put --name t --from 0 --to 2 --timeout 0.1 --json", "a\n");
    put.refused(32, "node_unreachable");
    let shown = place.weft("status --name t").done();
    assert!(shown.contains("node 2 is isolated; `weft status --why 2`"), "{shown}");
    let why: Value = place.weft("status --name t --why 2 --json").object();
    let noted = why["noted"].as_array().expect("a list");
    let by_order = |it: &Value| {
        it["text"].as_str().is_some_and(|text| text.contains("isolated by rule operator"))
    };
    assert_eq!(noted.iter().filter(|it| by_order(it)).count(), 1, "{why}");
    let again = place.weft("isolate 2 --name t --wait 60").done();
    assert!(again.contains("already isolated"), "{again}");
    let why: Value = place.weft("status --name t --why 2 --json").object();
    let noted = why["noted"].as_array().expect("a list");
    assert_eq!(noted.iter().filter(|it| by_order(it)).count(), 1, "{why}");

    let reply = place.weft("release 2 --name t --wait 60 --json").object();
    assert!(reply["incarnation"].as_u64() > Some(u64::from(before.incarnation)), "{reply}");
    nodes.await_joined();
    eventually("its task runs", || look(&nodes, 2).tasks[0].state == TaskState::Running);
    place.weft_with("put --name t --from 2 --to 0", "back\n").done();
    assert_eq!(place.weft("get --name t --node 0 --count 1").done(), "back\n");
}

/// it hangs and hears nothing of its isolation, and all others that knew of it are gone. Its
/// next supervisor knows it from the launcher.
/// Its supervisor is stopped, so that it does not come back between the two orders.
#[test]
fn a_release_that_another_order_undoes_says_so_at_once() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(3);
    await_manager(&nodes);
    let manager = look(&nodes, 0).dirnet.expect("it takes part").manager;
    let stopped = (manager + 1) % 3;
    let _stopped = stop_supervisor(&nodes, stopped);
    let isolate = || nodes.client(manager).order_node(stopped, NodeOrder::Isolate);
    isolate().expect("it is the manager");
    let release = place.start(&format!("release {stopped} --name t --wait 60 --json"), "");
    let isolated = || look(&nodes, manager).dirnet.expect("it takes part").isolated;
    eventually("it is released", || isolated().is_empty());
    isolate().expect("it is the manager");
    let said = release.wait();
    assert!(said.refused(17, "standing").contains("isolated since by another order"));
}

#[test]
fn a_node_that_hangs_while_it_is_isolated_is_started_and_stays_isolated() {
    let place = Place::new();
    let text = "name = \"t\"\nnodes = 3\ndirnet.timing.clone_ms = 4000\n";
    let (up, nodes) = place.up(&place.file("t.toml", text));
    await_manager(&nodes);
    let manager = look(&nodes, 0).dirnet.expect("it takes part").manager;
    let lost = (manager + 1) % 3;
    let stopped = stop_supervisor(&nodes, lost);
    nodes.client(manager).order_node(lost, NodeOrder::Isolate).expect("it is the manager");
    up.await_said(&format!("node {lost} is isolated"));
    for rank in [(manager + 2) % 3, manager] {
        nodes.kill(rank);
        fs::remove_file(nodes.dir.database_file(usize::from(rank))).expect("it has saved one");
    }
    assert_eq!(stopped.wait_dead(PATIENCE).expect("a pidfd"), Liveness::Dead);
    let manages = |rank: u16| {
        let standing = look(&nodes, rank).dirnet;
        standing.is_some_and(|standing| standing.role == "manager")
    };
    let others = || nodes.ranks().filter(|rank| *rank != lost);
    eventually("one of the others is manager", || others().any(manages));
    for dies in [true, false] {
        eventually("it is quiet", || look(&nodes, lost).state == NodeState::Isolated);
        assert_eq!(look(&nodes, lost).incarnation, 0, "no component of it was started since");
        if dies {
            nodes.kill(lost);
        }
    }
    place.weft(&format!("release {lost} --name t --wait 60")).done();
    nodes.await_joined();
}

/// All nodes that knew of it are gone: it knows from its own note, and only a release ends it.
#[test]
fn a_node_by_hand_that_is_isolated_stays_so_when_it_is_started_again() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 3\n");
    let node = |rank| place.start(&format!("node {file} --rank {rank}"), "");
    let (zero, one, two) = (node(0), node(1), node(2));
    let nodes = place.find();
    await_manager(&nodes);
    nodes.await_joined();
    place.weft("isolate 2 --name t --wait 60").done();
    eventually("it is quiet", || look(&nodes, 2).state == NodeState::Isolated);
    // The directory outlives all nodes.
    let dir = RuntimeDir::at(place.runtime_dir()).expect("it is private");
    let _held = dir.join(nodes.dir.name()).expect("shared");
    for running in [zero, one, two] {
        running.signal(Signal::KILL);
        drop(running);
    }
    place.await_no_process();
    let _two = node(2);
    nodes.client(2).status().expect("it runs");
    let _others = [node(0), node(1)];
    let manages = |rank| {
        let standing = nodes.client(rank).status().expect("a status").dirnet;
        standing.is_some_and(|standing| standing.role == "manager")
    };
    eventually("one of the others is manager", || manages(0) || manages(1));
    assert_eq!(look(&nodes, 2).state, NodeState::Isolated);
    assert_eq!(look(&nodes, 2).incarnation, 0, "no component of it was started since");
    place.weft("release 2 --name t --wait 60").done();
    nodes.await_joined();
}

/// Half of the cluster isolates a node that is cut off from it. Components and all supervisors are
/// killed, and the other half starts first: only the directory's files remain.
#[test]
fn x11_an_isolation_outlives_a_partition_and_all_processes() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 4\ndirnet.min_alive = 1\n");
    let node = |rank| place.start(&format!("node {file} --rank {rank}"), "");
    let running = [0, 1, 2, 3].map(node);
    let nodes = place.find();
    nodes.await_joined();
    await_manager(&nodes);
    let standing = |rank| nodes.client(rank).status().ok()?.dirnet;
    let manager = standing(0).expect("it takes part").manager;
    let [friend, other, lost] = [1, 2, 3].map(|after| (manager + after) % 4);
    for rank in [other, lost] {
        place.weft(&format!("inject partition {rank} --from {manager},{friend} --name t")).done();
    }
    nodes.client(manager).order_node(lost, NodeOrder::Isolate).expect("it is the manager");
    nodes.client(friend).kill().expect("it has a component");
    nodes.client(other).kill().expect("it has a component");
    // The directory outlives all nodes.
    let dir = RuntimeDir::at(place.runtime_dir()).expect("it is private");
    let _held = dir.join(nodes.dir.name()).expect("shared");
    for running in running {
        running.signal(Signal::KILL);
        drop(running);
    }
    place.await_no_process();

    let holds = |rank| {
        let stands = |it: DirNetStatus| it.is_member() && it.isolated == [lost];
        standing(rank).is_some_and(stands)
    };
    // A status that is asked for as the node becomes isolated is refused for that reason.
    let is_quiet = || {
        let status = nodes.client(lost).status().ok();
        status.is_some_and(|it| it.state == NodeState::Isolated)
    };
    let _half = [other, lost].map(node);
    eventually("one of that half is manager, or the isolated node remembers", || {
        let roles = [other, lost].map(|rank| standing(rank).map(|it| it.role));
        roles.contains(&Some("manager".to_owned())) || holds(other) || is_quiet()
    });
    let _other_half = [manager, friend].map(node);
    let is_isolated = || is_quiet() && [manager, friend, other].into_iter().all(holds);
    eventually("all nodes know that it is isolated", is_isolated);
    for rank in [manager, friend, other] {
        nodes.client(rank).kill().expect("it has a component");
        eventually("it is still isolated", is_isolated);
    }
    place.weft(&format!("release {lost} --name t --wait 60")).done();
    nodes.await_joined();
    eventually("it is a member", || standing(lost).is_some_and(|it| it.is_member()));
}

#[test]
fn whoever_strikes_an_isolated_node_is_told_what_brings_it_back() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    await_manager(&nodes);
    place.weft("isolate 2 --name t --wait 60").done();
    eventually("it is quiet", || look(&nodes, 2).state == NodeState::Isolated);
    place.weft("inject kill 2 --name t --json").refused(18, "isolated");
    let killed = place.weft("inject node 2 --name t").done();
    assert_eq!(killed, "node 2: killed; it is isolated; `weft release 2` admits it again\n");
    let again = place.weft("inject node 2 --name t --patience 0.1 --json").refused(18, "isolated");
    assert!(again.contains("does not run") && again.contains("weft release 2"), "{again}");
}

/// Of two isolated nodes, one's supervisor has outdated knowledge of the other.
#[test]
fn a_manager_that_nobody_can_follow_says_so_and_releases_one_that_was_killed() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    await_manager(&nodes);
    let manager = look(&nodes, 0).dirnet.expect("it takes part").manager;
    let [one, other] = [1, 2].map(|after| (manager + after) % 3);
    for node in [one, other] {
        place.weft(&format!("isolate {node} --name t --wait 60")).done();
        eventually("it is quiet", || look(&nodes, node).state == NodeState::Isolated);
    }
    let reply = place.weft(&format!("isolate {manager} --name t --json")).refused(17, "standing");
    assert!(reply.contains("no other node could take over now"), "{reply}");
    assert!(reply.contains(&format!("weft release {}", one.min(other))), "{reply}");
    nodes.kill(one);
    place.weft(&format!("release {one} --name t --wait 60")).done();
}

/// The second isolated node knows of the first, and not of its release meanwhile.
#[test]
fn two_that_were_isolated_and_released_one_after_the_other_meet() {
    let place = Place::new();
    let (_up, nodes) = place.up("--nodes 3");
    await_manager(&nodes);
    let manager = look(&nodes, 0).dirnet.expect("it takes part").manager;
    let [one, other] = [1, 2].map(|after| (manager + after) % 3);
    for order in ["isolate", "release"] {
        for node in [one, other] {
            place.weft(&format!("{order} {node} --name t --wait 60")).done();
        }
    }
    nodes.await_joined();
}

/// A released node is not fenced because of an old database: neither while the same node manages,
/// nor where the node with the old database manages itself. Without the isolated node and the lost
/// component the rest is not a majority.
#[test]
fn who_comes_back_with_an_old_database_isolates_nobody_who_was_released() {
    let place = Place::new();
    let text = "name = \"t\"\nnodes = 4\ndirnet.min_alive = 1\n";
    let (_up, nodes) = place.up(&place.file("t.toml", text));
    await_manager(&nodes);
    let manager = look(&nodes, 0).dirnet.expect("it takes part").manager;
    let [one, other] = [1, 2].map(|after| (manager + after) % 4);
    for takes_over in [false, true] {
        for node in [one, other] {
            place.weft(&format!("isolate {node} --name t --wait 60")).done();
            eventually("it is quiet", || look(&nodes, node).state == NodeState::Isolated);
        }
        // Its database holds the isolation of the other.
        nodes.kill(other);
        place.weft(&format!("release {one} --name t --wait 60")).done();
        if takes_over {
            nodes.client(manager).kill().expect("it runs");
            eventually("it is succeeded", || {
                let dirnet = look(&nodes, one).dirnet;
                dirnet.is_some_and(|dirnet| dirnet.role == "manager" || dirnet.manager != manager)
            });
        }
        let before = look(&nodes, one);
        place.weft(&format!("release {other} --name t --wait 60")).done();
        nodes.await_joined();
        let after = look(&nodes, one);
        let incarnation = |status: &NodeStatus| (status.incarnation, status.component_pid);
        assert_eq!(incarnation(&after), incarnation(&before), "{}", nodes.state());
    }
}

#[test]
fn orders_that_do_not_fit_are_refused() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    await_manager(&nodes);
    place.weft("isolate 2 --name t --json").refused(15, "node_out_of_range");
    place.weft("release 2 --name t --json").refused(15, "node_out_of_range");
    let reply = place.weft("isolate 0 --name t --json").refused(17, "standing");
    assert!(reply.contains("node 0 is the manager"), "{reply}");
    place.weft("release 1 --name t --json").refused(17, "standing");
    nodes.assert_unharmed();
}

/// No launcher restarts a node here, and of the two nodes one is isolated.
#[test]
fn where_nobody_is_left_to_decide_that_is_said_at_once() {
    let place = Place::new();
    let file = place.file("t.toml", "name = \"t\"\nnodes = 2\n");
    let _started = [0, 1].map(|rank| place.start(&format!("node {file} --rank {rank}"), ""));
    let nodes = place.find();
    nodes.await_joined();
    await_manager(&nodes);
    place.weft("isolate 1 --name t --wait 60").done();
    eventually("it is quiet", || look(&nodes, 1).state == NodeState::Isolated);
    let lost = place.weft("inject node 0 --name t --wait 0.5 --json");
    let lost = lost.refused(32, "node_unreachable");
    assert!(lost.contains("node 0 has not come back within 0.5 s"), "{lost}");
    let alone = place.weft("release 1 --name t --wait 1000 --json").refused(17, "standing");
    assert!(alone.contains("node 0 does not answer, node 1 is isolated"), "{alone}");
    let healed = place.weft("inject heal --name t").done();
    assert!(healed.contains("not running, so nothing is cut there: node 0"), "{healed}");
}

/// A node that fails whenever it is back is reset as often as the cluster file allows, then
/// isolated: this is reported to the operator, and the count starts again when it is released.
#[test]
fn a_node_that_fails_again_and_again_is_isolated_until_it_is_released() {
    let place = Place::new();
    let text = "name = \"t\"\nnodes = 3\ndirnet.reset = { max = 2, within_s = 3600 }\n";
    let (up, nodes) = place.up(&place.file("t.toml", text));
    await_manager(&nodes);
    for round in 1..=2 {
        let failures = fail_until_isolated(&nodes);
        assert!((2..=3).contains(&failures), "{failures} in round {round}\n{}", nodes.state());
        let shown = place.weft("status --name t").done();
        let line =
            "node 2 is isolated; `weft status --why 2` shows the reason, `weft release 2` admits";
        assert!(shown.contains(line), "{shown}");
        let why = place.weft("status --name t --why 2").done();
        assert!(why.contains("isolated by rule intensity"), "{why}");
        assert!(why.contains("reset as often as `dirnet.reset` allows"), "{why}");
        eventually("the launcher says so", || {
            up.said("out").matches("node 2 is isolated; `weft status --why 2`").count() == round
        });
        place.weft("release 2 --name t --wait 60").done();
        eventually("the launcher says that, too", || {
            up.said("out").matches("node 2 is released: its next").count() == round
        });
    }
    nodes.await_joined();
    await_manager(&nodes);
}

/// Kills node 2 whenever all have met it, until it is isolated; returns how often.
fn fail_until_isolated(nodes: &Nodes) -> usize {
    let is_isolated = || {
        let standing = |rank| look(nodes, rank).dirnet.is_some_and(|it| it.isolated == [2]);
        [0, 1].into_iter().all(standing)
    };
    let met = || look(nodes, 0).peers.iter().find(|peer| peer.rank == 2)?.incarnation;
    let mut failures = 0;
    while !is_isolated() {
        nodes.await_joined();
        let before = met();
        nodes.kill(2);
        failures += 1;
        eventually("it is back, or isolated", || met() > before || is_isolated());
    }
    failures
}
